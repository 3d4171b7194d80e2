"""The life of queues and partitions: every pair of state and event."""

from __future__ import annotations

from itertools import product

import pytest

from licorne.model.errors import LicorneError
from licorne.model.values.states import OBJECT_TRANSITIONS, ObjectEvent, ObjectState, next_object_state

RULES = {
    ("Active", "Remove"): "Draining",
    ("Draining", "Remove"): "Draining",
    ("Active", "Start"): "Active",
    ("Stopped", "Start"): "Active",
    ("Draining", "Start"): "Active",
    ("Active", "Stop"): "Stopped",
    ("Stopped", "Stop"): "Stopped",
}
"""The rules, written out: what is not here is inappropriate."""


@pytest.mark.parametrize(("state", "event"), list(product(ObjectState, ObjectEvent)))
def test_each_pair_of_state_and_event_does_what_the_rules_say(state: ObjectState, event: ObjectEvent) -> None:
    """A pair of the rules leads to its state, any other one raises and names both."""
    expected = RULES.get((state.value, event.value))
    if expected is not None:
        assert expected == next_object_state(state, event).value
        return

    text = f"event {event.value} is inappropriate in state {state.value}"
    with pytest.raises(LicorneError, match=text):
        next_object_state(state, event)


def test_there_are_no_other_states_and_events() -> None:
    """The table has the states and events of the rules and no others."""
    assert {"Active", "Draining", "Stopped"} == {state.value for state in ObjectState}
    assert {"Remove", "Start", "Stop"} == {event.value for event in ObjectEvent}
    assert set(RULES) == {(state.value, event.value) for state, event in OBJECT_TRANSITIONS}
