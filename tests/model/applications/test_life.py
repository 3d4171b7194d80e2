"""State, state log and timers of an application."""

from __future__ import annotations

import pytest
from support.model.builders import START_NS

from licorne.model.applications.effects import (
    ApplicationEvent,
    ApplicationState,
    Effect,
    StateEntered,
    TimerKind,
    TimerSet,
)
from licorne.model.applications.life import COMPLETING_TIMEOUT_NS, TERMINATED_RETENTION_NS, Life

RUN = ApplicationEvent.RUN
COMPLETE = ApplicationEvent.COMPLETE
FAIL = ApplicationEvent.FAIL
REJECT = ApplicationEvent.REJECT
THREE_DAYS_NS = 3 * 24 * 3600 * 10**9


def lived(*events: ApplicationEvent) -> tuple[Life, list[Effect]]:
    """Return a life after these events, one nanosecond apart, and what the last one caused."""
    life = Life()
    effects: list[Effect] = []
    for number, event in enumerate(events):
        effects = []
        assert life.handle(event, START_NS + number, effects)
    return life, effects


def timers(effects: list[Effect]) -> list[TimerSet]:
    return [effect for effect in effects if isinstance(effect, TimerSet)]


def test_a_life_begins_new_and_unwritten() -> None:
    """Nothing has been entered, nothing runs."""
    life = Life()

    assert (ApplicationState.NEW, [], None) == (life.state, life.log, life.started_at_ns)
    assert not life.has_timer(TimerKind.STATE)
    assert not life.has_timer(TimerKind.PLACEHOLDER)


def test_every_state_that_is_entered_is_logged() -> None:
    """With the time it was entered."""
    life, _ = lived(RUN, RUN, COMPLETE)

    entered = [(START_NS, "Accepted"), (START_NS + 1, "Running"), (START_NS + 2, "Completing")]
    assert entered == [(time, state.value) for time, state in life.log]


def test_a_change_is_reported_with_the_name_of_its_event() -> None:
    """From where to where, when, and why."""
    _, effects = lived(RUN, RUN)

    entered = StateEntered(
        ApplicationState.ACCEPTED, ApplicationState.RUNNING, "runApplication", START_NS + 1
    )
    assert [entered] == effects


def test_a_reason_takes_the_place_of_the_name() -> None:
    """Where a text is given, that is reported."""
    life, effects = Life(), list[Effect]()

    life.handle(FAIL, START_NS, effects, "ResourceReservationTimeout")

    assert "ResourceReservationTimeout" == next(
        effect.text for effect in effects if isinstance(effect, StateEntered)
    )


def test_an_illegal_event_changes_nothing() -> None:
    """It is answered with no, and nothing follows."""
    life, effects = Life(), list[Effect]()

    legal = life.handle(COMPLETE, START_NS, effects)

    assert (False, ApplicationState.NEW, [], []) == (legal, life.state, life.log, effects)


def test_running_on_is_no_change() -> None:
    """The event is legal, but nothing is entered, logged or reported."""
    life, effects = lived(RUN, RUN, RUN)

    assert (ApplicationState.RUNNING, 2, []) == (life.state, len(life.log), effects)


def test_the_start_is_when_it_first_ran() -> None:
    """Accepted is no start; to run again after Completing is none either."""
    life, _ = lived(RUN, RUN, COMPLETE, RUN)

    assert START_NS + 1 == life.started_at_ns


@pytest.mark.parametrize(
    ("events", "after_ns"),
    [
        ((RUN, COMPLETE), 30 * 10**9),
        ((RUN, COMPLETE, COMPLETE), THREE_DAYS_NS),
        ((FAIL, FAIL), THREE_DAYS_NS),
        ((REJECT,), THREE_DAYS_NS),
    ],
)
def test_some_states_end_by_themselves(events: tuple[ApplicationEvent, ...], after_ns: int) -> None:
    """Completing after half a minute, terminated states after three days."""
    life, effects = lived(*events)

    (timer,) = timers(effects)
    assert (TimerKind.STATE, START_NS + len(events) - 1 + after_ns) == (timer.kind, timer.due_ns)
    assert life.has_timer(TimerKind.STATE)
    assert (30 * 10**9, THREE_DAYS_NS) == (COMPLETING_TIMEOUT_NS, TERMINATED_RETENTION_NS)


@pytest.mark.parametrize("events", [(RUN,), (RUN, RUN), (FAIL,), (ApplicationEvent.RESUME,)])
def test_other_states_last(events: tuple[ApplicationEvent, ...]) -> None:
    """Accepted, Running, Failing and Resuming have no timer."""
    life, effects = lived(*events)

    assert ([], False) == (timers(effects), life.has_timer(TimerKind.STATE))


def test_who_leaves_a_state_stops_its_timer() -> None:
    """What was set for Completing means nothing once the application runs again."""
    life, effects = lived(RUN, COMPLETE)
    (timer,) = timers(effects)

    life.handle(RUN, START_NS, effects)

    assert not life.has_timer(TimerKind.STATE)
    assert not life.take_timer(TimerKind.STATE, timer.generation)


def test_a_timer_is_taken_once() -> None:
    """The second time it is gone."""
    life, effects = Life(), list[Effect]()
    life.start_timer(TimerKind.PLACEHOLDER, START_NS, effects)
    (timer,) = timers(effects)

    taken = [life.take_timer(TimerKind.PLACEHOLDER, timer.generation) for _ in range(2)]

    assert [True, False] == taken


def test_an_overtaken_timer_is_not_taken() -> None:
    """A timer that was started again is another one: the first does nothing when it comes."""
    life, effects = Life(), list[Effect]()
    for due_ns in (1, 2):
        life.start_timer(TimerKind.PLACEHOLDER, due_ns, effects)
    first, second = timers(effects)

    assert not life.take_timer(TimerKind.PLACEHOLDER, first.generation)
    assert life.take_timer(TimerKind.PLACEHOLDER, second.generation)


def test_the_two_timers_are_apart() -> None:
    """A change of state leaves the placeholders' timer, and the generation of one is not the other's."""
    life, effects = lived(RUN)
    life.start_timer(TimerKind.PLACEHOLDER, START_NS, effects)
    (timer,) = timers(effects)

    life.handle(COMPLETE, START_NS, effects)

    assert life.has_timer(TimerKind.PLACEHOLDER)
    assert not life.take_timer(TimerKind.STATE, timer.generation)
    assert life.take_timer(TimerKind.PLACEHOLDER, timer.generation)


def test_a_stopped_timer_is_not_taken() -> None:
    """To stop one that does not run is no matter."""
    life, effects = Life(), list[Effect]()
    life.stop_timer(TimerKind.PLACEHOLDER)
    life.start_timer(TimerKind.PLACEHOLDER, START_NS, effects)
    (timer,) = timers(effects)

    life.stop_timer(TimerKind.PLACEHOLDER)

    assert not life.take_timer(TimerKind.PLACEHOLDER, timer.generation)
