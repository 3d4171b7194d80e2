"""What a partition has its clock call it for."""

from __future__ import annotations

from dataclasses import dataclass, field

from support.model.builders import SECOND_NS, START_NS

from licorne.model.applications.effects import TimerKind
from licorne.model.state.host import (
    ApplicationTimer,
    Inspection,
    PartitionHost,
    QueueCleaning,
    QuotaCheck,
    RetryAsks,
    TimerAction,
    TimerKey,
)
from licorne.model.state.partition_timers import CLEANING_INTERVAL_NS, PartitionTimers


@dataclass
class Clock:
    """Keeps what is called for, and what is cancelled."""

    time_ns: int = START_NS
    calls: list[tuple[int, TimerAction]] = field(default_factory=list)
    cancelled: list[TimerKey] = field(default_factory=list)

    def now_ns(self) -> int:
        return self.time_ns

    def call_at(self, due_ns: int, action: TimerAction) -> None:
        self.calls.append((due_ns, action))

    def cancel(self, key: TimerKey) -> None:
        self.cancelled.append(key)


def timers_on(clock: Clock) -> PartitionTimers:
    """Return the timers of a partition that gets from its host what they use alone."""
    host = PartitionHost(
        now_ns=clock.now_ns,
        call_at=clock.call_at,
        cancel=clock.cancel,
        announce=lambda _: None,
        flush=lambda: None,
        placement_halt=lambda: None,
        predicates=None,
        adopt_node=lambda node: node,
        adopt_application=lambda application: application,
        release=lambda _: None,
    )
    return PartitionTimers(host, START_NS)


def test_one_of_its_own_waits_once() -> None:
    """And again when it has come."""
    clock = Clock()
    timers = timers_on(clock)
    for _ in range(2):
        timers.clean_later()
        timers.inspect_later()
    timers.mark_fired(Inspection())
    timers.inspect_later()

    inspection = (START_NS + SECOND_NS, Inspection())
    assert [(START_NS + CLEANING_INTERVAL_NS, QueueCleaning()), inspection, inspection] == clock.calls


def test_the_cleaner_comes_at_multiples_of_its_interval() -> None:
    """Counted from when the partition was made."""
    clock = Clock(START_NS + CLEANING_INTERVAL_NS + 1)
    timers_on(clock).clean_later()

    assert [(START_NS + 2 * CLEANING_INTERVAL_NS, QueueCleaning())] == clock.calls


def test_a_look_that_is_due_earlier_takes_the_place_of_the_other() -> None:
    """A later one is none: the first one finds what is next."""
    clock = Clock()
    timers = timers_on(clock)
    for seconds in (5, 7, 3):
        timers.retry_at(START_NS + seconds * SECOND_NS)

    assert [(START_NS + seconds * SECOND_NS, RetryAsks()) for seconds in (5, 3)] == clock.calls
    assert [RetryAsks, RetryAsks] == clock.cancelled


def test_quotas_are_checked_once_a_second_at_most() -> None:
    """What is due already has been tried."""
    clock = Clock()
    timers = timers_on(clock)
    timers.check_quotas(START_NS + 9 * SECOND_NS)
    timers.check_quotas(START_NS)

    assert [(START_NS + seconds * SECOND_NS, QuotaCheck()) for seconds in (9, 1)] == clock.calls


def test_an_application_has_one_timer_of_a_kind() -> None:
    """None comes of one that is gone."""
    clock = Clock()
    timers = timers_on(clock)
    timer = ApplicationTimer("app", 7, TimerKind.STATE, 1)
    timers.start(START_NS, timer)
    assert ([(START_NS, timer)], []) == (clock.calls, clock.cancelled)

    timers.start(START_NS + 1, timer)
    assert [(7, TimerKind.STATE)] == clock.cancelled

    timers.start(START_NS, ApplicationTimer("app", 7, TimerKind.RUNNING, 2))
    timers.stop_all(7)
    assert [(7, TimerKind.STATE), (7, TimerKind.RUNNING)] == clock.cancelled[1:]
