"""The states of a queue and of a partition and their transitions, as one table.

Both are Active from the start. One that is to be removed is Draining: what it has continues, nothing new is
accepted. A Draining one that is configured again becomes Active again. The scheduler itself stops only a
partition that ends; Stopped is a state for operators. An event that leads to the same state changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from ..errors import LicorneError


class ObjectState(Enum):
    """The states of a queue or a partition; the values are what a client reads."""

    ACTIVE = "Active"
    DRAINING = "Draining"
    STOPPED = "Stopped"


class ObjectEvent(Enum):
    """What happens to a queue or a partition."""

    REMOVE = "Remove"
    START = "Start"
    STOP = "Stop"


OBJECT_TRANSITIONS: Final[Mapping[tuple[ObjectState, ObjectEvent], ObjectState]] = {
    (ObjectState.ACTIVE, ObjectEvent.REMOVE): ObjectState.DRAINING,
    (ObjectState.DRAINING, ObjectEvent.REMOVE): ObjectState.DRAINING,
    (ObjectState.ACTIVE, ObjectEvent.START): ObjectState.ACTIVE,
    (ObjectState.STOPPED, ObjectEvent.START): ObjectState.ACTIVE,
    (ObjectState.DRAINING, ObjectEvent.START): ObjectState.ACTIVE,
    (ObjectState.ACTIVE, ObjectEvent.STOP): ObjectState.STOPPED,
    (ObjectState.STOPPED, ObjectEvent.STOP): ObjectState.STOPPED,
}


def next_object_state(state: ObjectState, event: ObjectEvent) -> ObjectState:
    """Return the state after the event.

    Raises:
        LicorneError: the table has no such transition.
    """
    target = OBJECT_TRANSITIONS.get((state, event))
    if target is None:
        raise LicorneError(f"event {event.value} is inappropriate in state {state.value}")
    return target
