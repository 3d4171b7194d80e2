"""The life of resource managers: every pair of state and event."""

from __future__ import annotations

from itertools import product

import pytest

from licorne.model.values.states import (
    MANAGER_TRANSITIONS,
    ManagerEvent,
    ManagerState,
    next_manager_state,
)

RULES = {
    ("Init", "Register"): "Running",
    ("Running", "Register"): "Running",
    ("Paused", "Register"): "Running",
    ("Stopped", "Register"): "Running",
    ("Running", "LoseConnection"): "Paused",
    ("Paused", "TimeOut"): "Stopped",
    ("Running", "ShutDown"): "Stopped",
}
"""The rules, written out: what is not here changes nothing."""


@pytest.mark.parametrize(("state", "event"), list(product(ManagerState, ManagerEvent)))
def test_each_pair_of_state_and_event_does_what_the_rules_say(
    state: ManagerState, event: ManagerEvent
) -> None:
    """A pair of the rules leads to its state, any other one to none."""
    target = next_manager_state(state, event)

    assert RULES.get((state.value, event.value)) == (None if target is None else target.value)


def test_there_are_no_other_states_and_events() -> None:
    """The table has the states and events of the rules and no others."""
    assert {"Init", "Running", "Paused", "Stopped"} == {state.value for state in ManagerState}
    assert {"Register", "LoseConnection", "TimeOut", "ShutDown"} == {event.value for event in ManagerEvent}
    assert set(RULES) == {(state.value, event.value) for state, event in MANAGER_TRANSITIONS}
