"""The virtual clock."""

from __future__ import annotations

from support.model.builders import SECOND_NS, START_NS

from licorne.actors.services.clocks import EPOCH_2000_NS, VirtualClock
from licorne.model.state.host import Inspection, QueueCleaning, RetryAsks, TimerAction


class Alarm:
    """A clock with a log of what it fired: (seconds since the start, partition, action)."""

    def __init__(self) -> None:
        self.fired: list[tuple[int, str, TimerAction]] = []
        self.clock = VirtualClock(self._fire)

    def _fire(self, partition: str, action: TimerAction) -> None:
        self.fired.append(((self.clock.now_ns() - START_NS) // SECOND_NS, partition, action))

    def at(self, seconds: int, partition: str = "p", action: TimerAction = RetryAsks()) -> None:  # noqa: B008 - a value
        self.clock.call_at(START_NS + seconds * SECOND_NS, partition, action)

    def advance(self, seconds: int) -> None:
        """Move to a number of seconds since the start."""
        while self.clock.advance_to(START_NS + seconds * SECOND_NS):
            pass

    @property
    def now_seconds(self) -> float:
        return (self.clock.now_ns() - START_NS) / SECOND_NS


def test_the_clock_of_a_transcript_starts_with_the_year_2000() -> None:
    """The start is 2000-01-01T00:00:00Z unless another one is given."""
    assert 946_684_800 * 10**9 == EPOCH_2000_NS == Alarm().clock.now_ns()
    assert 5 == VirtualClock(lambda _partition, _action: None, 5).now_ns()


def test_time_moves_only_when_the_caller_moves_it() -> None:
    """Without anything due the clock goes to the time it is given."""
    alarm = Alarm()

    alarm.advance(7)

    assert (7, []) == (alarm.now_seconds, alarm.fired)


def test_what_is_due_fires_at_its_own_time() -> None:
    """On the way the clock stops where something is due, in order of time."""
    alarm = Alarm()
    alarm.at(5, action=QueueCleaning())
    alarm.at(3, action=Inspection())
    alarm.at(9)

    alarm.advance(7)

    assert [(3, "p", Inspection()), (5, "p", QueueCleaning())] == alarm.fired
    assert 7 == alarm.now_seconds
    assert START_NS + 9 * SECOND_NS == alarm.clock.next_due_ns()


def test_of_things_due_at_one_time_the_first_made_fires_first() -> None:
    """The order of making decides, not the name of the partition."""
    alarm = Alarm()
    for partition in ("b", "a", "c"):
        alarm.at(1, partition)

    alarm.advance(1)

    assert ["b", "a", "c"] == [partition for _, partition, _ in alarm.fired]


def test_one_thing_fires_with_each_step() -> None:
    """A step fires one thing and says so, so that the caller can look in between."""
    alarm = Alarm()
    alarm.at(1)
    alarm.at(1)

    steps = [alarm.clock.advance_to(START_NS + SECOND_NS) for _ in range(3)]

    assert [True, True, False] == steps


def test_time_never_goes_back() -> None:
    """Neither a time that is past nor a timer for one moves the clock back."""
    alarm = Alarm()
    alarm.advance(5)

    alarm.at(2)
    alarm.advance(3)

    assert [(5, "p", RetryAsks())] == alarm.fired
    assert 5 == alarm.now_seconds


def test_nothing_is_due_on_an_idle_clock() -> None:
    """Without timers there is no next deadline, and none is left when all have fired."""
    alarm = Alarm()
    before = alarm.clock.next_due_ns()
    alarm.at(1)
    alarm.advance(1)

    assert (None, None) == (before, alarm.clock.next_due_ns())


def test_what_a_timer_sets_fires_on_the_same_way() -> None:
    """A timer that sets another one within the time is followed by it."""
    fired: list[int] = []

    def fire(_partition: str, action: TimerAction) -> None:
        fired.append(clock.now_ns())
        if len(fired) < 3:
            clock.call_at(clock.now_ns() + 1, "p", action)

    clock = VirtualClock(fire, 0)
    clock.call_at(1, "p", RetryAsks())
    while clock.advance_to(10):
        pass

    assert ([1, 2, 3], 10) == (fired, clock.now_ns())


def test_what_is_cancelled_does_not_fire() -> None:
    """Nor is it a deadline; what else the partition waits for fires."""
    alarm = Alarm()
    alarm.at(1, action=QueueCleaning())
    alarm.at(2, "other", QueueCleaning())
    alarm.at(3)

    alarm.clock.cancel("p", QueueCleaning)
    deadline_ns = alarm.clock.next_due_ns()
    alarm.advance(5)

    assert START_NS + 2 * SECOND_NS == deadline_ns
    assert [(2, "other", QueueCleaning()), (3, "p", RetryAsks())] == alarm.fired


def test_nothing_fires_for_a_partition_that_is_forgotten() -> None:
    """The others go on."""
    alarm = Alarm()
    alarm.at(1)
    alarm.at(2, "other")
    alarm.at(3, action=Inspection())

    alarm.clock.forget("p")
    alarm.advance(5)

    assert [(2, "other", RetryAsks())] == alarm.fired
