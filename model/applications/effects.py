"""The states of an application and their transitions, and the answers of an application to its partition.

An application is New until something is asked for it, Accepted until it has work running, Running until
nothing runs or waits, then Completing for half a minute in case more work comes, then Completed. A gang
whose placeholders time out either goes back to Accepted through Resuming (style Soft) or ends through
Failing in Failed (style Hard). Terminated applications expire after three days.

An event that is missing in the table is illegal: it raises and changes nothing. Running stays Running when
more work is placed: that is not a transition, and it is not reported.

An application does not call its queue, its user or the RM. The return value of the method that changed it has
everything that has to change beyond it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, final

from ..errors import LicorneError
from ..resources.resource import Resource
from ..values.allocation import Allocation, Ask
from ..values.facts import Fact
from ..values.messages import TerminationType
from .pending_asks import AskRecord, Reservation

if TYPE_CHECKING:
    from .report import ApplicationSummary


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
    """The events of an application; RMs read the values."""

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


class TimerKind(Enum):
    """The timers of an application."""

    __hash__ = object.__hash__  # That of `Enum` is written in Python, and each timer asks for it.

    STATE = "state"
    PLACEHOLDER = "placeholder"
    ALLOCATION = "allocation"
    """The first of its allocations has run as long as it may."""
    RUNNING = "running"
    """It has run as long as it may itself."""
    GANG = "gang"
    """A gang that is placed whole has waited for its room as long as it may."""


class StateEntered(NamedTuple):
    """The application went from one state to another; `text` is for the RM."""

    left: ApplicationState
    entered: ApplicationState
    text: str
    time_ns: int
    reason: str = ""
    """The reason, if the event alone does not determine it."""


class TimerSet(NamedTuple):
    """The application wants `on_timer` called with this generation, unless it stops the timer."""

    kind: TimerKind
    due_ns: int
    generation: int


@dataclass(frozen=True, slots=True)
class ReleaseWanted:
    """The RM is to end an allocation or an ask, and to confirm it."""

    allocation_key: str
    termination: TerminationType
    text: str
    of_ask: bool = False
    """It is an ask that waited and was given up."""


Effect: TypeAlias = StateEntered | TimerSet | ReleaseWanted


@final
class ApplicationFacts:
    """The facts of an application by which the partition orders it."""

    __slots__ = (
        "allocated",
        "first",
        "gang_waits",
        "max_priority",
        "pending",
        "placeholder_allocated",
        "reserved",
        "state",
        "submitted_at_ns",
    )

    def __init__(  # noqa: PLR0917 - made for every answer; keywords would cost more than the rest
        self,
        state: ApplicationState,
        pending: Resource,
        allocated: Resource,
        placeholder_allocated: Resource,
        max_priority: int,
        submitted_at_ns: int,
        reserved: int,
        first: Ask | None,
        gang_waits: bool = False,  # noqa: FBT001, FBT002 - likewise
    ) -> None:
        self.state = state
        self.pending = pending
        self.allocated = allocated
        self.placeholder_allocated = placeholder_allocated
        self.max_priority = max_priority
        self.submitted_at_ns = submitted_at_ns
        self.reserved = reserved
        self.first = first
        """The first waiting ask, if it may run on any node."""
        self.gang_waits = gang_waits
        """Nothing of it is placed before all of its gang is, in one result."""


@final
class Answer:
    """The result of a change of an application: its facts, what follows, and what it no longer holds.

    Most answers have few fields set: any other one has the class's own empty value.
    """

    asks: tuple[AskRecord, ...] = ()
    """Asks that were removed or changed."""
    allocations: tuple[Allocation, ...] = ()
    """Allocations that were removed, or made."""
    last_ask: AskRecord | None = None
    """The ask of the last allocation, which has ended: it was removed after what follows from that."""
    added: Resource | None = None
    """The sum of the asks that were added."""
    preempted: tuple[Allocation, ...] = ()
    """Those of the removed allocations that had been chosen as victims."""
    reservations: tuple[Reservation, ...] = ()
    """Reservations that were dropped."""
    swaps: tuple[Allocation, ...] = ()
    """Allocations that were to replace placeholders which are gone: they hold room on their nodes."""
    summary: ApplicationSummary | None = None
    """The total use of an application that ran and has ended."""
    ended: bool = False
    """Nothing is left: the application no longer counts as running for its user."""
    failed_checks: int = 0
    """The checks of its headroom that the placed ask had failed before, see `pending_asks`."""
    happened: tuple[Fact, ...] = ()
    """Set by the partition: what it reports of this change, after the states that were entered."""

    def __init__(self, facts: ApplicationFacts, effects: tuple[Effect, ...]) -> None:
        self.facts = facts
        self.effects = effects
