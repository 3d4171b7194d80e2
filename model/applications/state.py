"""The states of an application and their transitions, as one table.

An application is New until something is asked for it, Accepted until it has work running, Running until
nothing runs or waits, then Completing for half a minute in case more work comes, then Completed. A gang
whose placeholders time out either goes back to Accepted through Resuming (style Soft) or ends through
Failing in Failed (style Hard). Terminated applications expire after three days.

What is not in the table is an illegal event: it raises and changes nothing. Running stays Running when
more work is placed: that is no transition, and it is not reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from ..errors import LicorneError


class ApplicationState(Enum):
    """The states of an application; the values are what an RM reads."""

    __hash__ = object.__hash__  # That of `Enum` is written in Python, and each placement asks for it.

    NEW = "New"
    ACCEPTED = "Accepted"
    RUNNING = "Running"
    REJECTED = "Rejected"
    COMPLETING = "Completing"
    COMPLETED = "Completed"
    FAILING = "Failing"
    FAILED = "Failed"
    EXPIRED = "Expired"
    RESUMING = "Resuming"


class ApplicationEvent(Enum):
    """What happens to an application; the values are what an RM reads."""

    __hash__ = object.__hash__  # As above.

    RUN = "runApplication"
    REJECT = "rejectApplication"
    COMPLETE = "completeApplication"
    FAIL = "failApplication"
    RESUME = "resumeApplication"
    EXPIRE = "expireApplication"


_S = ApplicationState
_E = ApplicationEvent

TRANSITIONS: Final[Mapping[tuple[ApplicationState, ApplicationEvent], ApplicationState]] = {
    (_S.NEW, _E.RUN): _S.ACCEPTED,
    (_S.RESUMING, _E.RUN): _S.ACCEPTED,
    (_S.ACCEPTED, _E.RUN): _S.RUNNING,
    (_S.RUNNING, _E.RUN): _S.RUNNING,
    (_S.COMPLETING, _E.RUN): _S.RUNNING,
    (_S.NEW, _E.REJECT): _S.REJECTED,
    (_S.ACCEPTED, _E.COMPLETE): _S.COMPLETING,
    (_S.RUNNING, _E.COMPLETE): _S.COMPLETING,
    (_S.COMPLETING, _E.COMPLETE): _S.COMPLETED,
    (_S.NEW, _E.FAIL): _S.FAILING,
    (_S.ACCEPTED, _E.FAIL): _S.FAILING,
    (_S.RUNNING, _E.FAIL): _S.FAILING,
    (_S.FAILING, _E.FAIL): _S.FAILED,
    (_S.NEW, _E.RESUME): _S.RESUMING,
    (_S.ACCEPTED, _E.RESUME): _S.RESUMING,
    (_S.COMPLETED, _E.EXPIRE): _S.EXPIRED,
    (_S.FAILED, _E.EXPIRE): _S.EXPIRED,
    (_S.REJECTED, _E.EXPIRE): _S.EXPIRED,
}

ACTIVE_STATES: Final = frozenset(
    {_S.NEW, _S.ACCEPTED, _S.RUNNING, _S.COMPLETING, _S.FAILING, _S.RESUMING},
)
"""The states in which an application is in a queue."""


class IllegalTransitionError(LicorneError):
    """An event that the state of the application does not know; nothing has changed."""

    def __init__(self, state: ApplicationState, event: ApplicationEvent) -> None:
        super().__init__(f"event {event.value} is inappropriate in state {state.value}")
        self.state = state
        self.event = event


def next_state(state: ApplicationState, event: ApplicationEvent) -> ApplicationState:
    """Return the state after the event.

    Raises:
        IllegalTransitionError: the table has no such transition.
    """
    target = TRANSITIONS.get((state, event))
    if target is None:
        raise IllegalTransitionError(state, event)
    return target
