"""Waits under a lock for events, results, items and notifications, whose other side needs that lock.

In each recorded run the thing was done already, or was done in time; another order is a deadlock.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from support.lockcheck.waiting_programs import (
    all_results,
    each_result,
    end_of_a_pool,
    event,
    in_turn,
    item,
    notification,
    promise,
    result,
    result_before_another_task,
    through_a_third,
    under,
)
from support.waiting import WAIT_SECONDS

from licorne.lockcheck import Lock
from licorne.lockcheck.prediction.predicted_findings import findings_of
from licorne.lockcheck.sessions.recording import recording
from licorne.lockcheck.traces.trace import read_trace


@pytest.mark.parametrize(
    "program",
    [
        event,
        item,
        result,
        result_before_another_task,
        all_results,
        end_of_a_pool,
        promise,
        notification,
        through_a_third,
    ],
)
def test_a_wait_under_a_lock_that_the_other_side_needs_is_predicted(
    program: Callable[[], None], tmp_path: Path
) -> None:
    """Also where it was over at once."""
    assert 1 == len(predicted(program, tmp_path / "locks.lct"))


def test_each_of_some_results_is_waited_for_from_the_beginning_on(tmp_path: Path) -> None:
    """In whichever order they are yielded; one that comes later on the same thread needs the first one."""
    texts = predicted(each_result, tmp_path / "locks.lct")

    assert any(text.endswith("lock -> the result of under.<locals>.run") for text in texts)


def limited() -> None:
    """It ends by itself."""
    lock, done = Lock("lock"), threading.Event()
    in_turn(under(lock, done.set), under(lock, lambda: done.wait(WAIT_SECONDS)))


def looked_at() -> None:
    """Not waited for."""
    lock, done = Lock("lock"), threading.Event()
    in_turn(under(lock, done.set), under(lock, done.is_set))


def set_before_the_lock() -> None:
    """What comes after does not matter."""
    lock, done = Lock("lock"), threading.Event()

    def set_it() -> None:
        done.set()
        under(lock, int)()

    in_turn(set_it, under(lock, done.wait))


def set_by_two() -> None:
    """One of them without the lock."""
    lock, done = Lock("lock"), threading.Event()
    in_turn(under(lock, done.set), under(lock, done.wait))
    in_turn(done.set, int)


def item_of_two() -> None:
    """The one that is put under the lock is not needed."""
    lock, items = Lock("lock"), queue.Queue[int]()

    def put() -> None:
        items.put(1)
        under(lock, lambda: items.put(2))()

    in_turn(put, under(lock, items.get))


def item_of_before() -> None:
    """It was there when the recording began, as far as that is known."""
    lock, items = Lock("lock"), queue.Queue[int]()
    items.queue.append(0)

    def get() -> None:
        under(lock, items.get)()
        items.get()

    in_turn(under(lock, lambda: items.put(1)), get)


def started_under_the_lock() -> None:
    """The setter is started before, and by the one that waits after."""
    lock, done = Lock("lock"), threading.Event()
    under(lock, int)()
    thread = threading.Thread(target=under(lock, done.set))
    thread.start()
    done.wait()
    under(lock, done.wait)()
    thread.join()


@pytest.mark.parametrize(
    "program",
    [
        limited,
        looked_at,
        set_before_the_lock,
        set_by_two,
        item_of_two,
        item_of_before,
        started_under_the_lock,
    ],
)
def test_a_wait_that_ends_in_every_order_is_not_predicted(
    program: Callable[[], None], tmp_path: Path
) -> None:
    """Whatever else happens under the lock."""
    assert [] == predicted(program, tmp_path / "locks.lct")


def predicted(program: Callable[[], None], path: Path) -> list[str]:
    """Return what a recorded run of a program predicts."""
    with recording(path):
        program()
    return [finding.text for finding in findings_of(read_trace(path))[0]]
