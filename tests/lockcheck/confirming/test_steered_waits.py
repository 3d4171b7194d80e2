"""Steering to waits for events, results, items and notifications, which anything might end."""

from __future__ import annotations

import _thread
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from support.lockcheck.deadlocked import LEAVE_ALONE
from support.lockcheck.waiting_programs import (
    SECONDS_MAX,
    answer,
    each_result,
    end_of_a_pool,
    event,
    in_turn,
    item,
    notification,
    promise,
    result,
    result_before_another_task,
    two_results,
    under,
)

from licorne.lockcheck import Lock, Rung, session
from licorne.lockcheck.checking.scheduling_points import witness_of
from licorne.lockcheck.confirming.confirmation import confirm, steered
from licorne.lockcheck.findings.witness import Witness
from licorne.lockcheck.findings.witness_file import from_json, to_json
from licorne.lockcheck.holding.runtime import runtime
from licorne.lockcheck.prediction.predicted_findings import findings_of
from licorne.lockcheck.sessions.recording import recording
from licorne.lockcheck.traces.file import read_trace


def wait_until_both_wait(done: threading.Event) -> None:
    """Set an event as soon as a thread waits for it and another one for the lock of that."""
    pause = _thread.allocate_lock()
    pause.acquire()
    for _ in range(SECONDS_MAX * 1000):
        if sum(execution.wait is not None for execution in runtime.all_executions()) > 1:
            break
        pause.acquire(timeout=0.001)
    done.set()


def predicted(program: Callable[[], None], folder: Path) -> Witness:
    """Return the first witness of the deadlock that a recorded run predicts."""
    with recording(folder / "locks.lct"):
        program()
    finding, *_ = findings_of(read_trace(folder / "locks.lct"))[0]
    witness = witness_of(finding)
    assert witness is not None
    return witness


@pytest.mark.parametrize(
    "program",
    [event, item, promise, result, result_before_another_task, each_result, end_of_a_pool, notification],
)
def test_threads_are_steered_to_where_they_wait_for_each_other(
    program: Callable[[], None], tmp_path: Path
) -> None:
    """The file of the witness has what is waited for, and so has the one for a replay."""
    witness = predicted(program, tmp_path)
    outcome = confirm(from_json(to_json(witness), "it"), program, folder=tmp_path)

    assert outcome.finding is not None, outcome.reasons
    assert Rung.R4 is outcome.finding.rung
    assert outcome.finding.replay is not None
    assert {str(point.wanted) for point in witness.points} == {
        str(point.wanted) for point in from_json(to_json(witness), "it").points
    }


def test_threads_are_steered_to_an_answer_that_was_there_already(tmp_path: Path) -> None:
    """An actor counts as a lock: so the learned graph has the cycle, and a run is steered to the answer."""
    with session(on=LEAVE_ALONE) as opened:
        answer()
    (witness,) = filter(None, map(witness_of, opened.findings))
    outcome = confirm(from_json(to_json(witness), "it"), answer, folder=tmp_path)

    assert Rung.R2 is witness.rung
    assert outcome.finding is not None, outcome.reasons
    assert Rung.R4 is outcome.finding.rung


def test_what_is_stuck_likewise_after_the_first_is_no_other_deadlock(tmp_path: Path) -> None:
    """A second task waits for the lock when the first one has given way."""
    witness = predicted(two_results, tmp_path)
    with steered(witness) as (opened, _):
        two_results()

    (finding,) = [one for one in opened.findings if one.rung >= Rung.R2]
    assert (Rung.R4, 2) == (finding.rung, finding.count)


def test_a_wait_that_something_else_ends_is_no_deadlock(tmp_path: Path) -> None:
    """The witness says who sets the event; in the steered run a third thread does, after all stand there."""
    witness = predicted(event, tmp_path)

    def program() -> None:
        lock, done = Lock("lock"), threading.Event()
        others = [threading.Thread(target=wait_until_both_wait, args=(done,), name="third")]
        for thread in others:
            thread.start()
        in_turn(under(lock, done.set), under(lock, done.wait))
        for thread in others:
            thread.join(SECONDS_MAX)

    outcome = confirm(witness, program, pause_seconds=0.05)

    assert outcome.finding is None
