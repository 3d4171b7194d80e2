"""What R3 predicts; `test_oracle.py` runs what it predicts for many programs."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
from support.lockcheck.lock_programs import Program, Take, random_programs, small_programs
from support.lockcheck.trace_oracle import comes_true, in_turn, recorded, trace_of

from licorne.lockcheck.prediction.prediction import predict

FORTH, BACK = (Take(0), Take(1)), (Take(1), Take(0))


def predicted(program: Program) -> bool:
    """Return whether any of a few runs predicts a deadlock."""
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


def test_a_prediction_comes_true_when_its_witness_is_run() -> None:
    """And one without its first event does not: somebody does not hold anything yet."""
    program = Program(((FORTH,), (BACK,)))
    chance = random.Random(1)  # noqa: S311 - a seed to repeat
    found = [one for _ in range(30) for one in predict(trace_of(program, chance)).found]

    assert all(comes_true(program, one) for one in found)
    assert not any(comes_true(program, replace(one, witness=one.witness[1:])) for one in found)
    assert found


def test_what_a_recorder_has_written_predicts_what_comes_true(tmp_path: Path) -> None:
    """From the locks to the file and back: one run each, in which every thread waits for the one before."""
    chance = random.Random(7)  # noqa: S311 - a seed to repeat
    programs = islice(random_programs(chance, joins_inside=True), 150)
    right = 0
    for program in programs:
        for prediction in predict(recorded(program, tmp_path / "locks.lct")).found:
            assert comes_true(program, prediction), program
            right += 1

    assert right > 20


def test_a_recorder_writes_what_the_oracle_expects_of_the_same_schedule(tmp_path: Path) -> None:
    """Attempts, recursion that is refused, locks that are re-entrant, joins: event by event."""
    for policy in ("writer", None):
        for program in islice(small_programs(3, policy), 0, None, 37):
            assert in_turn(program).events == recorded(program, tmp_path / "locks.lct").events
