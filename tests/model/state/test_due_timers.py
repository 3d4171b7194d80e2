"""The timers of a clock, in order and without those that were cancelled, and what a partition sets."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st
from support.model.builders import SECOND_NS, START_NS, a_host

from licorne.model.applications.effects import TimerKind
from licorne.model.state.host import (
    CLEANING_INTERVAL_NS,
    ApplicationTimer,
    DueTimer,
    DueTimers,
    Expiry,
    Inspection,
    PartitionTimers,
    QueueCleaning,
    QuotaCheck,
    RetryAsks,
    TimerAction,
    TimerKey,
    timer_key,
)


def a_timer(serial: int = 1, kind: TimerKind = TimerKind.STATE, generation: int = 1) -> ApplicationTimer:
    return ApplicationTimer(f"app-{serial}", serial, kind, generation)


def taken(timers: DueTimers) -> list[DueTimer]:
    """Take everything, in order."""
    return [timers.pop() for _ in range(len(timers))]


def actions(timers: DueTimers) -> list[TimerAction]:
    return [timer[3] for timer in taken(timers)]


def test_timers_come_by_their_times_and_then_by_their_making() -> None:
    """The name of the partition and the action do not matter."""
    timers = DueTimers()
    for due_ns, partition in ((5, "b"), (3, "c"), (5, "a"), (4, "d")):
        timers.add(due_ns, partition, RetryAsks())

    assert [(3, "c"), (4, "d"), (5, "b"), (5, "a")] == [(due, name) for due, _, name, _ in taken(timers)]


def test_adding_returns_whether_the_timer_comes_next() -> None:
    """One that is due at the same time as another comes behind it."""
    timers = DueTimers()

    assert [True, False, False, True] == [timers.add(due_ns, "p", RetryAsks()) for due_ns in (5, 6, 5, 4)]


def test_what_is_cancelled_does_not_come() -> None:
    """All of one key in one partition, and nothing else."""
    timers = DueTimers()
    timers.add(1, "p", a_timer(generation=1))
    timers.add(2, "p", a_timer(generation=2))
    timers.add(3, "q", a_timer())
    timers.add(4, "p", a_timer(serial=2))
    timers.add(5, "p", a_timer(kind=TimerKind.PLACEHOLDER))
    timers.add(6, "p", RetryAsks())

    timers.cancel("p", timer_key(a_timer(generation=7)))

    assert [3, 4, 5, 6] == [due_ns for due_ns, *_ in taken(timers)]


def test_what_is_added_after_a_cancellation_comes() -> None:
    """Also if it is due before what was cancelled."""
    timers = DueTimers()
    timers.add(5, "p", RetryAsks())
    timers.add(9, "p", QueueCleaning())
    timers.cancel("p", RetryAsks)
    timers.add(3, "p", RetryAsks())

    assert (2, 3) == (len(timers), timers.next_due_ns())
    assert [RetryAsks(), QueueCleaning()] == actions(timers)


def test_a_cancellation_of_nothing_changes_nothing() -> None:
    """Neither where nothing was, nor where it has come, nor once more."""
    timers = DueTimers()
    timers.add(1, "p", Inspection())
    timers.add(2, "p", QuotaCheck())
    timers.pop()
    for key in (Inspection, Expiry, (1, TimerKind.STATE)):
        timers.cancel("p", key)

    assert [QuotaCheck()] == actions(timers)
    timers.cancel("p", QuotaCheck)
    assert (0, None) == (len(timers), timers.next_due_ns())


def test_nothing_comes_for_a_partition_that_is_forgotten() -> None:
    """Others keep theirs; what comes for it later comes."""
    timers = DueTimers()
    for due_ns in (1, 2, 3):
        timers.add(due_ns, "p", a_timer(serial=due_ns))
        timers.add(due_ns, "q", a_timer(serial=due_ns))
    timers.cancel("p", (2, TimerKind.STATE))

    timers.forget("p")
    timers.add(9, "p", a_timer(serial=9))

    assert [(1, "q"), (2, "q"), (3, "q"), (9, "p")] == [(due, name) for due, _, name, _ in taken(timers)]


def test_nothing_comes_after_all_was_cleared() -> None:
    """Nor is anything left to be cancelled."""
    timers = DueTimers()
    timers.add(1, "p", RetryAsks())
    timers.add(2, "p", QueueCleaning())
    timers.cancel("p", RetryAsks)

    timers.clear()
    timers.cancel("p", QueueCleaning)

    assert (0, None, []) == (len(timers), timers.next_due_ns(), list(timers))


def test_timers_that_come_and_go_take_no_more_room() -> None:
    """Beside some that stay, whether those that go are due before them or behind."""
    timers = DueTimers()
    for serial in range(10):
        timers.add(1_000, "p", a_timer(serial=serial))
    for serial in range(10, 5_000):
        for due_ns in (serial % 900, 3_000):
            timers.add(due_ns, "p", a_timer(serial=serial))
        timers.cancel("p", (serial, TimerKind.STATE))
        timers.next_due_ns()

    assert list(range(10)) == sorted(timer[1] - 1 for timer in timers)
    assert len(timers._heap) <= 2 * len(timers) + 1
    assert (10, len(timers._heap) - 10) == (len(timers._waiting), len(timers._cancelled))


_steps = st.lists(
    st.tuples(
        st.sampled_from(["add", "add", "add", "cancel", "pop", "forget"]),
        st.integers(0, 5),
        st.sampled_from("pq"),
        st.sampled_from([a_timer(1), a_timer(1, generation=2), a_timer(2), RetryAsks(), Inspection()]),
    ),
    max_size=60,
)


@given(_steps)
def test_timers_are_those_of_a_list_that_is_searched(steps: list[tuple[str, int, str, TimerAction]]) -> None:
    """Whatever is added, cancelled, forgotten and taken, in any order."""
    timers, expected = DueTimers(), list[tuple[int, int, str, "TimerAction"]]()
    for number, (step, due_ns, partition, action) in enumerate(steps):
        if step == "add":
            timers.add(due_ns, partition, action)
            expected.append((due_ns, number, partition, action))
        elif step == "cancel":
            timers.cancel(partition, timer_key(action))
            keep = (partition, timer_key(action))
            expected = [timer for timer in expected if (timer[2], timer_key(timer[3])) != keep]
        elif step == "forget":
            timers.forget(partition)
            expected = [timer for timer in expected if timer[2] != partition]
        elif expected:
            first = min(expected, key=lambda timer: timer[:2])
            expected.remove(first)
            due, _, name, what = timers.pop()
            assert (first[0], *first[2:]) == (due, name, what)
        assert len(expected) == len(timers) == len(list(timers))
        assert min((timer[0] for timer in expected), default=None) == timers.next_due_ns()


# ------------------------------------------------------------------------------------------ a partition


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
    host = a_host(now_ns=clock.now_ns, call_at=clock.call_at, cancel=clock.cancel)
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
