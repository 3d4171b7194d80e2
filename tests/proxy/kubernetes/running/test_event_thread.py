"""The thread of the scheduler of pods: order, timers, workers, errors and the end."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from support.waiting import WAIT_SECONDS

from licorne.proxy.kubernetes.running.event_loop import EventThread


class Recorded:
    """An event thread, and what it has called."""

    def __init__(self) -> None:
        self.loop = EventThread(workers_max=2)
        self.calls: list[Any] = []
        self.errors: list[Exception] = []
        self.idle = 0
        self.loop.start(on_idle=self._note_idle, on_error=self.errors.append)

    def _note_idle(self) -> None:
        self.idle += 1

    def settle(self) -> None:
        """Wait until all that was posted is carried out."""
        done = threading.Event()
        self.loop.post(done.set)

        assert done.wait(WAIT_SECONDS)


@pytest.fixture
def recorded() -> Iterator[Recorded]:
    """Return a thread that runs, and end it."""
    found = Recorded()
    yield found
    found.loop.stop()


def test_calls_are_carried_out_in_order_on_one_thread(recorded: Recorded) -> None:
    """Whoever posts them; when there are none left the thread says so."""
    threads = set()

    def note(number: int) -> None:
        threads.add(threading.current_thread().name)
        recorded.calls.append(number)

    for number in range(2_000):
        recorded.loop.post(note, number)
    recorded.settle()

    assert list(range(2_000)) == recorded.calls
    assert {"licorne-kubernetes"} == threads


def test_timers_are_carried_out_in_the_order_of_their_times(recorded: Recorded) -> None:
    """Those of one time in the order in which they came."""
    done = threading.Event()

    def plan() -> None:
        recorded.loop.later(0.02, done.set)
        recorded.loop.later(0.01, recorded.calls.append, "second")
        recorded.loop.later(0.0, recorded.calls.append, "first")

    recorded.loop.post(plan)

    assert done.wait(WAIT_SECONDS)
    assert ["first", "second"] == recorded.calls


def test_what_a_call_raises_does_not_end_the_others(recorded: Recorded) -> None:
    """It is handed over, and the next call follows."""

    def fail() -> None:
        raise ValueError

    recorded.loop.post(fail)
    recorded.loop.post(recorded.calls.append, "next")
    recorded.settle()

    assert ["next"] == recorded.calls
    assert [ValueError] == [type(error) for error in recorded.errors]


@pytest.mark.parametrize("is_urgent", [True, False])
def test_work_is_answered_on_the_thread(recorded: Recorded, is_urgent: bool) -> None:  # noqa: FBT001 - of the table
    """With what it returns or raises."""
    done = threading.Barrier(2)

    def then(answer: object) -> None:
        recorded.calls.append((answer, threading.current_thread().name))
        done.wait(WAIT_SECONDS)

    def fail() -> object:
        raise OSError("away")

    recorded.loop.work(lambda: 7, then, is_urgent=is_urgent)
    done.wait(WAIT_SECONDS)
    recorded.loop.work(fail, then, is_urgent=is_urgent)
    done.wait(WAIT_SECONDS)
    (first, thread), (second, _) = recorded.calls

    assert (7, "licorne-kubernetes", OSError) == (first, thread, type(second))


def test_work_after_the_end_is_dropped() -> None:
    """What was posted before is carried out."""
    recorded = Recorded()
    recorded.loop.post(recorded.calls.append, "before")
    recorded.loop.stop()
    recorded.loop.work(lambda: 7, recorded.calls.append)
    recorded.loop.post(recorded.calls.append, "after")

    assert ["before"] == recorded.calls
    assert 0 < recorded.idle
