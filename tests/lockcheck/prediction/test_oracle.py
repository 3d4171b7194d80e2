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


def test_the_oracle_knows_a_deadlock_and_its_absence() -> None:
    """Two locks in both orders, and in one."""
    assert deadlocks(Program(((FORTH,), (BACK,))))
    assert deadlocks(Program(((FORTH,), (BACK,)), None))
    assert not deadlocks(Program(((FORTH,), (FORTH,))))
    assert not deadlocks(Program(((FORTH,), (0, BACK))))


def test_the_oracle_knows_the_writer_between_two_readers() -> None:
    """Without a writer readers pass each other; where readers go first it does no harm."""
    forth, back = (Take(0, "R"), Take(1, "R")), (Take(1, "R"), Take(0, "R"))
    writers = ((Take(0),),), ((Take(1),),)

    assert not deadlocks(Program(((forth,), (back,))))
    assert deadlocks(Program(((forth,), (back,), *writers)))
    assert not deadlocks(Program(((forth,), (back,), *writers), "reader"))


def test_the_oracle_knows_who_is_refused() -> None:
    """Who tries what they hold is not; nor is anything inside of what was refused before."""
    once = Take(0, "R")

    assert refuses(Program((((once, Take(0)),),)))
    assert not refuses(Program((((once, Take(0, attempt="try")),),)))
    assert not refuses(Program((((once, LEAVE, once),),)))
    assert not refuses(Program((((Take(0), Take(0)),),), None))


def test_the_oracle_knows_a_join_under_a_lock() -> None:
    """The other thread needs the lock to end."""
    assert deadlocks(Program((((Take(0),),), ((Take(0), 0),))))
    assert not deadlocks(Program((((Take(1),),), ((Take(0), 0),))))


def test_the_oracle_knows_locks_of_different_policies() -> None:
    """A writer between two readers matters where it goes first; the third lock may be taken again."""
    writers = ((Take(0),),), ((Take(1),),)
    readers = ((Take(0, "R"), Take(1, "R")),), ((Take(1, "R"), Take(0, "R")),)
    again = ((Take(2), Take(2)),)

    assert not deadlocks(Program((*readers, *writers), "mixed"))
    assert deadlocks(Program(((FORTH,), (BACK,)), "mixed"))
    assert not refuses(Program((again, again), "mixed"))
    assert not deadlocks(Program((again, again), "mixed"))


def test_the_oracle_knows_locks_that_are_passed_hand_over_hand() -> None:
    """The first one is released before the third one is wanted."""
    taken: Nest = (Take(0), Take(1), DROP, Take(2))

    assert deadlocks(Program(((taken,), ((Take(2), Take(1)),))))
    assert not deadlocks(Program(((taken,), ((Take(2), Take(0)),))))


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
