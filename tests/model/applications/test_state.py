"""The life of an application: every pair of state and event."""

from __future__ import annotations

from itertools import product

import pytest

from licorne.model.applications.effects import (
    ACTIVE_STATES,
    TRANSITIONS,
    ApplicationEvent,
    ApplicationState,
    IllegalTransitionError,
    next_state,
)
from licorne.model.errors import LicorneError

TABLE = """
runApplication      New -> Accepted
runApplication      Resuming -> Accepted
runApplication      Accepted -> Running
runApplication      Running -> Running
runApplication      Completing -> Running
rejectApplication   New -> Rejected
completeApplication Accepted -> Completing
completeApplication Running -> Completing
completeApplication Completing -> Completed
failApplication     New -> Failing
failApplication     Accepted -> Failing
failApplication     Running -> Failing
failApplication     Failing -> Failed
resumeApplication   New -> Resuming
resumeApplication   Accepted -> Resuming
expireApplication   Completed -> Expired
expireApplication   Failed -> Expired
expireApplication   Rejected -> Expired
"""
"""The rules, written out: what is not here is inappropriate."""

STATES = {
    "New",
    "Accepted",
    "Running",
    "Rejected",
    "Completing",
    "Completed",
    "Failing",
    "Failed",
    "Expired",
    "Resuming",
}


def the_rules() -> dict[tuple[str, str], str]:
    """Read the table: (state, event) -> next state."""
    rows = [line.split() for line in TABLE.strip().splitlines()]
    return {(state, event): target for event, state, _, target in rows}


@pytest.mark.parametrize(("state", "event"), list(product(ApplicationState, ApplicationEvent)))
def test_each_pair_of_state_and_event_does_what_the_rules_say(
    state: ApplicationState, event: ApplicationEvent
) -> None:
    """A pair of the rules leads to its state, any other one raises and names both."""
    expected = the_rules().get((state.value, event.value))
    if expected is not None:
        assert expected == next_state(state, event).value
        return

    with pytest.raises(IllegalTransitionError) as caught:
        next_state(state, event)

    assert (state, event) == (caught.value.state, caught.value.event)
    assert f"event {event.value} is inappropriate in state {state.value}" == str(caught.value)


def test_there_are_no_other_states_and_events() -> None:
    """The states and events are those of the rules, in the words that an RM reads."""
    events = {event for _, event in the_rules()}

    assert STATES == {state.value for state in ApplicationState}
    assert events == {event.value for event in ApplicationEvent}
    assert len(the_rules()) == len(TRANSITIONS)


def test_an_illegal_event_is_an_error_of_the_package() -> None:
    """Who catches the errors of the package catches this one."""
    with pytest.raises(LicorneError):
        next_state(ApplicationState.EXPIRED, ApplicationEvent.EXPIRE)


def test_terminated_applications_are_in_no_queue() -> None:
    """Rejected, Completed, Failed and Expired applications are out of their queues, all others are in."""
    terminated = {"Rejected", "Completed", "Failed", "Expired"}

    assert STATES - terminated == {state.value for state in ACTIVE_STATES}


def test_no_way_leads_out_of_the_end() -> None:
    """Nothing happens to an application that has expired."""
    assert [] == [pair for pair in TRANSITIONS if pair[0] is ApplicationState.EXPIRED]
