"""The states of a resource manager (RM), of a queue and of a partition, with their transitions, as tables.

An RM is Init until it has registered, and Running from then on. It is Paused while its connection is lost:
nothing new is placed for it. It is Stopped when that lasted too long, or when it has shut down by itself: its
requests are refused as well. From every state it registers again, and begins anew. An event that a state does
not know changes nothing: `next_manager_state` returns `None`.

Both are Active from the start. One that is to be removed is Draining: what it has continues, nothing new is
accepted. A Draining one that is configured again becomes Active again. The scheduler itself stops only a
partition that ends; Stopped is a state for operators. An event that leads to the same state changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from ..errors import LicorneError


class ManagerState(Enum):
    """The states of a resource manager; the values are what a client reads."""

    INIT = "Init"
    RUNNING = "Running"
    PAUSED = "Paused"
    STOPPED = "Stopped"


class ManagerEvent(Enum):
    """The events of a resource manager."""

    REGISTER = "Register"
    LOSE_CONNECTION = "LoseConnection"
    TIME_OUT = "TimeOut"
    SHUT_DOWN = "ShutDown"


MANAGER_TRANSITIONS: Final[Mapping[tuple[ManagerState, ManagerEvent], ManagerState]] = {
    (ManagerState.INIT, ManagerEvent.REGISTER): ManagerState.RUNNING,
    (ManagerState.RUNNING, ManagerEvent.REGISTER): ManagerState.RUNNING,
    (ManagerState.PAUSED, ManagerEvent.REGISTER): ManagerState.RUNNING,
    (ManagerState.STOPPED, ManagerEvent.REGISTER): ManagerState.RUNNING,
    (ManagerState.RUNNING, ManagerEvent.LOSE_CONNECTION): ManagerState.PAUSED,
    (ManagerState.PAUSED, ManagerEvent.TIME_OUT): ManagerState.STOPPED,
    (ManagerState.RUNNING, ManagerEvent.SHUT_DOWN): ManagerState.STOPPED,
}


def next_manager_state(state: ManagerState, event: ManagerEvent) -> ManagerState | None:
    """Return the state after the event, `None` if the state does not know the event."""
    return MANAGER_TRANSITIONS.get((state, event))


class ObjectState(Enum):
    """The states of a queue or a partition; the values are what a client reads."""

    ACTIVE = "Active"
    DRAINING = "Draining"
    STOPPED = "Stopped"


class ObjectEvent(Enum):
    """The events of a queue or a partition."""

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
