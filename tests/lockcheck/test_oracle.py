"""The checker against a model checker: R2 exactly where some schedule comes to a standstill.

R2 claims no more than "nothing that we know of guards this". For straight programs that take all their
steps in every run, what we know is everything: there it must neither miss a deadlock nor invent one.
"""

from __future__ import annotations

import random
from itertools import islice, product
from typing import TYPE_CHECKING

import pytest
from lock_oracle import Program, Take, checker_says, deadlocks, nests, random_programs, threads_of

from licorne.lockcheck import Rung

if TYPE_CHECKING:
    from collections.abc import Iterable

    from licorne.lockcheck.rwlock import Policy


def disagreements(programs: Iterable[Program]) -> list[tuple[Program, bool]]:
    """Return programs of which the two say different things, and what the model checker says."""
    found = []
    for program in programs:
        stuck = deadlocks(program)
        if stuck != (Rung.R2 in checker_says(program)):
            found.append((program, stuck))
    return found


def test_the_oracle_knows_a_deadlock_and_its_absence() -> None:
    """Two locks in both orders, and in one."""
    forth, back = (Take(0), Take(1)), (Take(1), Take(0))

    assert deadlocks(Program(((forth,), (back,))))
    assert not deadlocks(Program(((forth,), (forth,))))
    assert not deadlocks(Program(((forth,), (0, back))))


def test_the_oracle_knows_the_writer_between_two_readers() -> None:
    """Without a writer readers pass each other; where readers go first it does no harm."""
    forth, back = (Take(0, "R"), Take(1, "R")), (Take(1, "R"), Take(0, "R"))
    writers = ((Take(0),),), ((Take(1),),)

    assert not deadlocks(Program(((forth,), (back,))))
    assert deadlocks(Program(((forth,), (back,), *writers)))
    assert not deadlocks(Program(((forth,), (back,), *writers), "reader"))


def test_pairs_of_threads_with_every_attempt() -> None:
    """Blocking, timed, tried; reading, writing; every fifth nest of two locks."""
    assert [] == disagreements(threads_of(nests(2, 2, ("block", "timed", "try"))[::5], 2))


def test_three_threads_with_two_locks() -> None:
    """Enough for a writer that waits between two readers; every third program."""
    assert [] == disagreements(islice(threads_of(nests(2, 2), 3), 0, None, 3))


def test_pairs_of_threads_with_gates() -> None:
    """Three locks inside each other, in every other order and mode."""
    twisted = [nest for nest in nests(3, 3) if len(nest) == 3][::5]
    assert [] == disagreements(threads_of(twisted, 2))


def test_threads_that_wait_for_the_end_of_others() -> None:
    """Before they begin, or between two nests."""
    pairs = [nest for nest in nests(2, 2) if len(nest) == 2]
    programs: list[Program] = []
    for one, other in product(pairs, repeat=2):
        programs.append(Program(((one,), (0, other))))
        programs.append(Program(((one,), (other, 0, one))))

    assert [] == disagreements(programs)


def test_random_programs() -> None:
    """A few of what the long run does many of."""
    assert [] == disagreements(islice(random_programs(random.Random(5)), 150))  # noqa: S311 - a seed to repeat


@pytest.mark.soak
@pytest.mark.parametrize("policy", ["writer", "reader"])
def test_every_program_of_the_small_families(policy: Policy) -> None:
    """Pairs of threads with three locks nested, threes with three locks, pairs with every attempt."""
    families = [
        threads_of(nests(3, 3), 2, policy),
        threads_of(nests(3, 2), 3, policy),
        threads_of(nests(2, 2, ("block", "timed", "try")), 2, policy),
        threads_of(nests(2, 2), 4, policy),
    ]
    for family in families:
        assert [] == disagreements(family)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10))
def test_many_random_programs(seed: int) -> None:
    """Ten times ten thousand, with joins."""
    assert [] == disagreements(islice(random_programs(random.Random(seed)), 10_000))  # noqa: S311 - likewise
