"""The wall clock's timers, with a clock on the wall that the tests set."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pytest
from support.waiting import WAIT_SECONDS

from licorne.actors.services import clocks
from licorne.actors.services.clocks import RealClock
from licorne.model.state.host import Inspection, QueueCleaning, RetryAsks, TimerAction

if TYPE_CHECKING:
    from loguru import Record

DAY_NS: Final = 24 * 3600 * 1_000_000_000


@dataclass
class Wall:
    """Stands for the module `time`: days go by when the test says so."""

    days: int = 1
    elapsed_ns: int = 0

    def time_ns(self) -> int:
        """Return the time."""
        return self.days * DAY_NS

    def monotonic_ns(self) -> int:
        """Return the time that has passed."""
        return self.elapsed_ns


class Timers:
    """A clock, and what it has fired: the partitions' names, in order."""

    def __init__(self, wall: Wall) -> None:
        self.fired: list[tuple[str, TimerAction]] = []
        self.threads: set[str] = set()
        self.react: Callable[[str], object] = lambda _: None
        self.wall = wall
        self.clock = RealClock(self._fire)
        self._changed = threading.Condition()

    def _fire(self, partition: str, action: TimerAction) -> None:
        with self._changed:
            self.fired.append((partition, action))
            self.threads.add(threading.current_thread().name)
            self._changed.notify_all()
        self.react(partition)

    def call_on(self, day: int, partition: str, action: TimerAction = RetryAsks()) -> None:  # noqa: B008 - a value
        """Set a timer."""
        self.clock.call_at(day * DAY_NS, partition, action)

    def go_to(self, day: int) -> None:
        """Let it be that day; a timer in the past makes the clock look at the wall, and not before."""
        with self.clock._changed:
            self.wall.days = day
            self.call_on(0, "look")

    def wait_for(self, count: int) -> list[str]:
        """Wait until so many have fired; return their names."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.fired) >= count, WAIT_SECONDS), self.fired
            return [name for name, _ in self.fired]


@pytest.fixture
def timers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Timers]:
    """Give a clock that sees a wall of the test's own."""
    wall = Wall()
    monkeypatch.setattr(clocks, "time", wall)
    timers = Timers(wall)
    yield timers
    timers.clock.close()


def test_the_time_is_that_of_the_wall() -> None:
    """Nanoseconds since 1970."""
    before_ns = time.time_ns()

    assert before_ns <= RealClock(lambda *_: None).now_ns() <= time.time_ns()


def test_the_time_goes_on_when_the_wall_is_set_back(timers: Timers) -> None:
    """At the pace of the monotonic clock; it goes ahead with the wall again when that is ahead."""
    times_ns = []
    for day, elapsed_ns in ((5, 0), (2, 7), (5, 8), (6, 9)):
        timers.wall.days, timers.wall.elapsed_ns = day, elapsed_ns
        times_ns.append(timers.clock.now_ns())

    assert [5 * DAY_NS, 5 * DAY_NS + 7, 5 * DAY_NS + 8, 6 * DAY_NS] == times_ns


def test_a_timer_in_the_past_fires_at_once_on_the_clocks_thread(timers: Timers) -> None:
    """With the partition and the action that it was set with."""
    timers.call_on(1, "now", Inspection())
    timers.wait_for(1)

    assert [("now", Inspection())] == timers.fired
    assert {"licorne-clock"} == timers.threads


def test_timers_fire_in_the_order_of_their_times(timers: Timers) -> None:
    """Not in that of their making, except where they are due at the same time."""
    for day, name in ((30, "third"), (10, "first"), (20, "second"), (20, "second too")):
        timers.call_on(day, name)
    timers.go_to(40)

    assert ["look", "first", "second", "second too", "third"] == timers.wait_for(5)


def test_a_timer_fires_when_the_wall_is_set_ahead(timers: Timers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Although nothing wakes the thread: it slept until the hour was over."""
    monkeypatch.setattr(clocks, "_SLEEP_MAX_SECONDS", 0.01)
    timers.call_on(30, "late")
    timers.wall.days = 30

    assert ["late"] == timers.wait_for(1)


def test_a_timer_that_is_not_due_waits(timers: Timers) -> None:
    """One that is due earlier overtakes it, although it was set later."""
    timers.call_on(30, "late")
    timers.call_on(20, "early")
    timers.go_to(20)
    assert ["look", "early"] == timers.wait_for(2)

    timers.go_to(30)
    assert ["look", "early", "look", "late"] == timers.wait_for(4)


def test_actions_of_one_time_need_not_be_comparable(timers: Timers) -> None:
    """The order of making decides, before anybody compares what is to be done."""
    timers.call_on(10, "same", QueueCleaning())
    timers.call_on(10, "same", RetryAsks())
    timers.go_to(10)
    timers.wait_for(3)

    assert [("same", QueueCleaning()), ("same", RetryAsks())] == timers.fired[1:]


@pytest.mark.parametrize("error", [ValueError, SystemExit])
def test_a_timer_that_fails_is_logged_and_stops_no_other(
    timers: Timers, records: list[Record], error: type[BaseException]
) -> None:
    """The clock goes on."""

    def fail(partition: str) -> None:
        if partition == "bad":
            raise error("on purpose")

    timers.react = fail
    timers.call_on(1, "bad")
    timers.call_on(1, "good")

    assert ["bad", "good"] == timers.wait_for(2)
    (record,) = [entry for entry in records if entry["level"].name == "ERROR"]
    assert "timer RetryAsks() of partition bad failed" == record["message"]


def test_a_timer_may_set_the_next_one(timers: Timers) -> None:
    """From the clock's own thread."""
    timers.react = lambda partition: timers.call_on(1, partition + "!") if len(partition) < 5 else None
    timers.call_on(1, "a")

    assert ["a", "a!", "a!!", "a!!!", "a!!!!"] == timers.wait_for(5)


@pytest.mark.parametrize("forgotten", [True, False])
def test_what_is_cancelled_or_forgotten_does_not_fire(timers: Timers, forgotten: bool) -> None:  # noqa: FBT001 - both
    """Although the clock was waiting for it; what comes behind it fires."""
    timers.call_on(20, "gone", QueueCleaning())
    timers.call_on(30, "stays")
    if forgotten:
        timers.clock.forget("gone")
    else:
        timers.clock.cancel("gone", QueueCleaning)

    timers.go_to(30)

    assert ["look", "stays"] == timers.wait_for(2)


# ------------------------------------------------------------------------------------------ the end


def test_a_clock_without_timers_has_no_thread() -> None:
    """It starts with the first one."""
    before = set(threading.enumerate())
    clock = RealClock(lambda *_: None)

    assert before == set(threading.enumerate())
    clock.close()


def test_a_closed_clock_fires_nothing_and_has_no_thread(timers: Timers) -> None:
    """What was set is forgotten, and what comes is not taken."""
    before = set(threading.enumerate())
    timers.call_on(30, "waiting")
    timers.clock.close()
    timers.clock.close()
    timers.call_on(0, "late")

    assert before == set(threading.enumerate())
    assert [] == timers.fired


def test_a_timer_may_close_the_clock(timers: Timers) -> None:
    """It does not wait for itself, and what was due next does not fire."""
    closed = threading.Event()

    def close(_: str) -> None:
        timers.clock.close()
        closed.set()

    timers.react = close
    timers.call_on(30, "later")
    timers.call_on(1, "now")
    assert closed.wait(WAIT_SECONDS)

    assert ["now"] == [name for name, _ in timers.fired]


def test_a_timer_that_is_centuries_away_does_not_stop_the_clock(timers: Timers) -> None:
    """A thread cannot sleep so long; what is due before it still comes."""
    timers.call_on(200_000, "far")
    timers.call_on(2, "near")

    timers.go_to(2)

    assert "near" in timers.wait_for(2)
