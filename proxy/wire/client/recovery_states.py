"""The life of a recovery: from the registration of a resource manager (RM) until all that it knows is there.

An RM that lists everything anew recovers again, without a registration.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from ....model.errors import LicorneError


class RecoveryState(Enum):
    """The states of a recovery."""

    NEW = "New"
    REGISTERED = "Registered"
    RECOVERING = "Recovering"
    RUNNING = "Running"
    FAILED = "Failed"


class RecoveryEvent(Enum):
    """What happens to a recovery."""

    REGISTER = "Register"
    RECOVER = "Recover"
    SUCCEED = "Success"
    FAIL = "Fail"


RECOVERY_TRANSITIONS: Final[Mapping[tuple[RecoveryState, RecoveryEvent], RecoveryState]] = {
    (RecoveryState.NEW, RecoveryEvent.REGISTER): RecoveryState.REGISTERED,
    (RecoveryState.REGISTERED, RecoveryEvent.RECOVER): RecoveryState.RECOVERING,
    (RecoveryState.RECOVERING, RecoveryEvent.SUCCEED): RecoveryState.RUNNING,
    (RecoveryState.RECOVERING, RecoveryEvent.FAIL): RecoveryState.FAILED,
    (RecoveryState.RUNNING, RecoveryEvent.RECOVER): RecoveryState.RECOVERING,
}


def next_recovery_state(state: RecoveryState, event: RecoveryEvent) -> RecoveryState:
    """Return the state after the event.

    Raises:
        LicorneError: the table has no such transition.
    """
    target = RECOVERY_TRANSITIONS.get((state, event))
    if target is None:
        raise LicorneError(f"event {event.value} is inappropriate for a recovery that is {state.value}")
    return target
