"""The states of a recovery: every pair of state and event."""

from __future__ import annotations

from itertools import product

import pytest

from licorne.model.errors import LicorneError
from licorne.proxy.wire.client.recovery_parts import (
    RECOVERY_TRANSITIONS,
    RecoveryEvent,
    RecoveryState,
    next_recovery_state,
)

RULES = {
    ("New", "Register"): "Registered",
    ("Registered", "Recover"): "Recovering",
    ("Recovering", "Success"): "Running",
    ("Running", "Recover"): "Recovering",
    ("Recovering", "Fail"): "Failed",
}
"""The rules, written out: what is not here is inappropriate."""


@pytest.mark.parametrize(("state", "event"), list(product(RecoveryState, RecoveryEvent)))
def test_each_pair_of_state_and_event_does_what_the_rules_say(
    state: RecoveryState, event: RecoveryEvent
) -> None:
    """A pair of the rules leads to its state, any other one raises and names both."""
    expected = RULES.get((state.value, event.value))
    if expected is not None:
        assert expected == next_recovery_state(state, event).value
        return

    text = f"event {event.value} is inappropriate for a recovery that is {state.value}"
    with pytest.raises(LicorneError, match=text):
        next_recovery_state(state, event)


def test_there_are_no_other_states_and_events() -> None:
    """The table has the states and events of the rules and no others."""
    assert {"New", "Registered", "Recovering", "Running", "Failed"} == {s.value for s in RecoveryState}
    assert {"Register", "Recover", "Success", "Fail"} == {event.value for event in RecoveryEvent}
    assert set(RULES) == {(state.value, event.value) for state, event in RECOVERY_TRANSITIONS}
