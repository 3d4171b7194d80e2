"""The states of a recovery and their transitions, as one table.

A recovery is New until the resource manager (RM) has registered, and Registered for a moment. It is
Recovering while the RM's nodes, applications and existing allocations are sent and answered, then Running:
asks are sent from then on. It is Failed if it cannot end in that way; a new one begins with a registration.
What is not in the table is an illegal event: it raises and changes nothing.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

from ...model.errors import LicorneError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["RECOVERY_TRANSITIONS", "RecoveryEvent", "RecoveryState", "next_recovery_state"]


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
