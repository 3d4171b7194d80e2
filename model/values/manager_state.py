"""The states of a resource manager (RM) and their transitions, as one table.

An RM is Init until it has registered, and Running from then on. It is Paused while its connection is lost:
nothing new is placed for it. It is Stopped when that lasted too long, or when it has shut down by itself: its
requests are refused as well. From every state it registers again, and begins anew. An event that a state does
not know changes nothing: `next_manager_state` returns `None`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final


class ManagerState(Enum):
    """The states of a resource manager; the values are what a client reads."""

    INIT = "Init"
    RUNNING = "Running"
    PAUSED = "Paused"
    STOPPED = "Stopped"


class ManagerEvent(Enum):
    """What happens to a resource manager."""

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
