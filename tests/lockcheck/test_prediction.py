"""Predictions against a model checker: what R3 says can happen, in some schedule."""

from __future__ import annotations

import random
from itertools import islice
from typing import TYPE_CHECKING

import pytest
from lock_oracle import Program, Take, deadlocks, nests, random_programs, threads_of
from trace_oracle import trace_of

from licorne.lockcheck.prediction import predict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from licorne.lockcheck.rwlock import Policy

FORTH, BACK = (Take(0), Take(1)), (Take(1), Take(0))


def invented(programs: Iterable[Program], seed: int) -> tuple[list[Program], int]:
    """Return programs of which a deadlock is predicted that cannot happen, and how many are right."""
    chance = random.Random(seed)  # noqa: S311 - a seed to repeat
    wrong, right = [], 0
    for program in programs:
        if predict(trace_of(program, chance)).found:
            if deadlocks(program):
                right += 1
            else:
                wrong.append(program)
    return wrong, right


def predicted(program: Program) -> bool:
    """Tell whether any of a few runs predicts a deadlock."""
    chance = random.Random(1)  # noqa: S311 - a seed to repeat
    return any(predict(trace_of(program, chance)).found for _ in range(30))


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (Program(((FORTH,), (BACK,))), True),
        (Program(((FORTH,), (FORTH,))), False),
        (Program(((FORTH,), (0, BACK))), False),
        (Program((((Take(2), *FORTH),), ((Take(2), *BACK),))), False),
        (Program((((Take(2, "R"), *FORTH),), ((Take(2, "R"), *BACK),))), True),
        (Program(((FORTH,), ((Take(1), Take(0, attempt="timed")),))), False),
        (Program((((Take(0), Take(1)),), ((Take(1), Take(2)),), ((Take(2), Take(0)),))), True),
    ],
    ids=["reversed", "same order", "after a join", "gate", "readers of a gate", "timed", "three threads"],
)
def test_a_deadlock_is_predicted_where_it_can_happen(program: Program, *, expected: bool) -> None:
    """Whatever the schedule of the run was."""
    assert expected == predicted(program)


def test_a_writer_between_two_readers_is_predicted_unless_readers_go_first() -> None:
    """Two readers wait for writers that wait for the other one."""
    readers = ((Take(0, "R"), Take(1, "R")),), ((Take(1, "R"), Take(0, "R")),)
    writers = ((Take(0),),), ((Take(1),),)

    assert not predicted(Program(readers))
    assert predicted(Program((*readers, *writers)))
    assert not predicted(Program((*readers, *writers), "reader"))


def test_nothing_is_invented_for_small_programs() -> None:
    """Pairs with every attempt, threes of two locks, and random ones with joins."""
    pairs = islice(threads_of(nests(2, 2, ("block", "timed", "try")), 2), 0, None, 5)
    threes = islice(threads_of(nests(2, 2), 3), 0, None, 7)
    mixed = islice(random_programs(random.Random(5)), 300)  # noqa: S311 - a seed to repeat
    for programs in (pairs, threes, mixed):
        wrong, right = invented(programs, 3)

        assert [] == wrong
        assert right > 0


@pytest.mark.soak
@pytest.mark.parametrize("policy", ["writer", "reader"])
def test_nothing_is_invented_for_any_small_program(policy: Policy) -> None:
    """All families of the oracle of R2."""
    families = [
        threads_of(nests(3, 3), 2, policy),
        threads_of(nests(3, 2), 3, policy),
        threads_of(nests(2, 2, ("block", "timed", "try")), 2, policy),
    ]
    for family in families:
        assert [] == invented(family, 4)[0]


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10))
def test_nothing_is_invented_for_many_random_programs(seed: int) -> None:
    """Ten times ten thousand."""
    programs = islice(random_programs(random.Random(seed)), 10_000)  # noqa: S311 - likewise

    assert [] == invented(programs, seed)[0]
