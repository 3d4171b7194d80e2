"""The checker against a model checker: R2 exactly where some schedule comes to a standstill.

R2 claims no more than "nothing that we know of guards this". For straight programs that take all their
steps in every run, what we know is everything: there it must neither miss a deadlock nor invent one. R0 has
to be where a thread wants what it holds; and what R3 predicts from one recorded run is run, and must get
stuck. `make oracle` compares all small programs; here are some of each family.
"""

from __future__ import annotations

import random
import sys
from itertools import islice, product
from pathlib import Path

import pytest
from support.lockcheck import oracle_run
from support.lockcheck.lock_oracle import deadlocks, refuses
from support.lockcheck.lock_programs import (
    DROP,
    LEAVE,
    Nest,
    Program,
    Take,
    nests,
    random_programs,
    small_programs,
)
from support.lockcheck.lock_verdicts import compare

FORTH, BACK = (Take(0), Take(1)), (Take(1), Take(0))


READERS = ((Take(0, "R"), Take(1, "R")),), ((Take(1, "R"), Take(0, "R")),)
WRITERS = ((Take(0),),), ((Take(1),),)
READ = Take(0, "R")
AGAIN = ((Take(2), Take(2)),)
HAND_OVER_HAND: Nest = (Take(0), Take(1), DROP, Take(2))


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        pytest.param(Program(((FORTH,), (BACK,))), True, id="both orders"),
        pytest.param(Program(((FORTH,), (BACK,)), None), True, id="both orders of re-entrant locks"),
        pytest.param(Program(((FORTH,), (FORTH,))), False, id="one order"),
        pytest.param(Program(((FORTH,), (0, BACK))), False, id="one thread after the other"),
        pytest.param(Program(READERS), False, id="readers pass each other"),
        pytest.param(Program((*READERS, *WRITERS)), True, id="writers between two readers"),
        pytest.param(Program((*READERS, *WRITERS), "reader"), False, id="writers where readers go first"),
        pytest.param(
            Program((((Take(0),),), ((Take(0), 0),))), True, id="a join under the lock of the other"
        ),
        pytest.param(Program((((Take(1),),), ((Take(0), 0),))), False, id="a join under another lock"),
        pytest.param(Program((*READERS, *WRITERS), "mixed"), False, id="only one of the writers goes first"),
        pytest.param(Program(((FORTH,), (BACK,)), "mixed"), True, id="both orders of different policies"),
        pytest.param(Program((AGAIN, AGAIN), "mixed"), False, id="the third lock may be taken again"),
        pytest.param(
            Program(((HAND_OVER_HAND,), ((Take(2), Take(1)),))),
            True,
            id="the second lock is held for the third",
        ),
        pytest.param(
            Program(((HAND_OVER_HAND,), ((Take(2), Take(0)),))), False, id="the first lock is released before"
        ),
    ],
)
def test_the_oracle_knows_a_deadlock_and_its_absence(program: Program, *, expected: bool) -> None:
    """In any schedule of the program."""
    assert expected == deadlocks(program)


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        pytest.param(Program((((READ, Take(0)),),)), True, id="who wants to write what it reads"),
        pytest.param(Program((((READ, Take(0, attempt="try")),),)), False, id="who only tries"),
        pytest.param(Program((((READ, LEAVE, READ),),)), False, id="who has left it"),
        pytest.param(Program((((Take(0), Take(0)),),), None), False, id="a re-entrant lock"),
        pytest.param(Program((AGAIN, AGAIN), "mixed"), False, id="the re-entrant one of different locks"),
    ],
)
def test_the_oracle_knows_who_is_refused(program: Program, *, expected: bool) -> None:
    """A thread that wants for sure what it holds, and does more than try."""
    assert expected == refuses(program)


def test_small_programs_are_told_once_each() -> None:
    """One thread takes a lock, the other one the same or another: two modes, three attempts each."""
    programs = list(small_programs(2, "writer"))

    assert 2 * 6 * 7 // 2 == len(programs) == len(set(programs))
    assert 2 * (21 - 6) == len(list(small_programs(2, "reader")))


def test_every_program_of_three_acts() -> None:
    """Acquisitions and joins, recursion and upgrades; every ninth one, whatever goes first."""
    for policy in ("writer", "reader", None):
        tally = compare(islice(small_programs(3, policy), 0, None, 9))

        assert [] == tally.wrong


@pytest.mark.parametrize(
    ("name", "every"),
    [
        ("2 threads, 3 locks inside each other, writer", 29),
        ("3 threads, 2 of 3 locks each, writer", 41),
        ("3 threads, 2 of 3 locks each, reader", 83),
        ("2 threads, 2 locks, all attempts, writer", 29),
        ("4 threads, 2 locks, writer", 43),
        ("2 threads, hand over hand, writer", 101),
        ("3 threads, 2 of 3 locks each, mixed", 41),
        ("random, mixed", 160),
        ("random 0", 100),
        ("random, joins under locks", 200),
    ],
)
def test_some_of_each_family(name: str, every: int) -> None:
    """Among them are deadlocks, and deadlocks that are predicted."""
    tally = compare(islice(oracle_run.FAMILIES[name](), 0, None, every))

    assert [] == tally.wrong
    assert tally.counts["deadlocks"] > 0
    assert tally.counts["predicted"] > 0


def test_threads_that_wait_for_the_end_of_others() -> None:
    """Before they begin, or between two nests."""
    pairs = [nest for nest in nests(2, 2) if len(nest) == 2]
    programs: list[Program] = []
    for one, other in product(pairs, repeat=2):
        programs.append(Program(((one,), (0, other))))
        programs.append(Program(((one,), (other, 0, one))))

    assert [] == compare(programs).wrong


def test_a_disagreement_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A comparison that cannot fail proves nothing."""
    monkeypatch.setattr("support.lockcheck.lock_verdicts.checker_says", lambda _: frozenset())
    monkeypatch.setattr("support.lockcheck.lock_verdicts.comes_true", lambda *_: False)
    wrong = compare([Program(((FORTH,), (BACK,)))] * 20).wrong

    assert {"R2 missed: P", "R3 invented "} == {one[:12] for one in wrong}


def test_a_run_that_was_stopped_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was looked at is not looked at again, and counts."""
    monkeypatch.setattr(oracle_run, "NOTES", tmp_path)
    assert 0 == oracle_run.main(["2 acts, writer"])
    first = capsys.readouterr().out
    monkeypatch.setattr(oracle_run, "compare", lambda *_: sys.exit("looked at twice"))
    assert 0 == oracle_run.main(["2 acts, writer"])

    assert first == capsys.readouterr().out
    assert "all: 42 programs, 0 deadlocks" in first


@pytest.mark.soak
@pytest.mark.parametrize("name", oracle_run.FAMILIES)
def test_all_of_each_family(name: str) -> None:
    """What `make oracle` counts."""
    assert [] == compare(oracle_run.FAMILIES[name]()).wrong


def test_random_programs_are_the_same_for_the_same_seed() -> None:
    """So that a disagreement can be looked at again."""
    one, other = (list(islice(random_programs(random.Random(5)), 20)) for _ in range(2))  # noqa: S311 - likewise

    assert one == other
