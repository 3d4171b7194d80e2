"""The host of a partition: time and timers, messages to the RM, the RM's predicates, an engine's handles.

The model starts nothing and has no clock of its own. An engine makes one host for each partition.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol, TypeAlias, TypeVar

from ..applications.application import Application
from ..applications.effects import TimerKind
from ..applications.handle import ApplicationHandle
from ..applications.report import ApplicationSummary
from ..nodes.handle import NodeHandle
from ..nodes.node import Node
from ..predicates.interfaces import Predicates, QuestionChannel, many_questions
from ..queues.use_order import NO_KEPT_USE, KeptUse
from ..values.facts import FactSink
from ..values.messages import Announcement
from ..values.refusals import PlacementHalt

ANSWER_TIMEOUT_NS: Final = 2_000_000_000
"""How long the RM has for an answer of its predicates, unless the program says otherwise."""


class ApplicationTimer(NamedTuple):
    """A timer of an application is due."""

    application_id: str
    serial: int
    """Distinguishes applications that had the same id one after the other."""
    kind: TimerKind
    generation: int


@dataclass(frozen=True, slots=True)
class QueueCleaning:
    """It is time to remove queues that are empty."""


@dataclass(frozen=True, slots=True)
class RetryAsks:
    """An answer may have changed: a reservation is due, a back-off is over, or the RM has answered."""


@dataclass(frozen=True, slots=True)
class Inspection:
    """It is time to report to the RM the asks that wait for room in the cluster."""


@dataclass(frozen=True, slots=True)
class QuotaCheck:
    """A queue has been above its maximum for as long as it may be."""


@dataclass(frozen=True, slots=True)
class Expiry:
    """An application that has ended has been kept long enough."""


TimerAction: TypeAlias = ApplicationTimer | QueueCleaning | RetryAsks | Inspection | QuotaCheck | Expiry
TimerKey: TypeAlias = "tuple[int, TimerKind] | type[TimerAction]"


def timer_key(action: TimerAction) -> TimerKey:
    """Return what a timer is cancelled by: the serial of its application and its kind, or what it does."""
    if isinstance(action, ApplicationTimer):
        return action.serial, action.kind
    return type(action)


def _cancel_nothing(_: TimerKey) -> None:
    """Cancel nothing: a timer whose object is gone does nothing when it is due."""


def _drop_summary(_: ApplicationSummary) -> None:
    """Drop a summary."""


def _no_time() -> int:
    """Return a time that stands still."""
    return 0


T = TypeVar("T")


class Instrument(Protocol):
    """What an engine makes of the classes that a partition consists of."""

    def __call__(self, kind: type[T], /) -> type[T]:
        """Return the class whose objects are made in the place of those of `kind`."""


def _unchanged(kind: type[T], /) -> type[T]:
    """Return the class itself."""
    return kind


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionHost:
    """All that a partition gets from outside."""

    now_ns: Callable[[], int]
    """Nanoseconds since 1970."""
    call_at: Callable[[int, TimerAction], None]
    """Have `Partition.on_timer` called with the action at that time."""
    announce: Callable[[Announcement], None]
    """Queue a message for the RM; in order, and the partition never waits for it."""
    flush: Callable[[], None]
    """Have the announced messages delivered; called at the end of a turn."""
    placement_halt: Callable[[], PlacementHalt | None]
    """Why nothing new is to be placed for the RM now, `None` if it is; asked before each cycle. When it
    ends, the partition gets the message `RetryAsks`."""
    predicates: Predicates | None
    """The RM's predicates if they answer at once. `None`, and no `question_channel`: it takes every node."""
    question_channel: QuestionChannel | None = None
    """The RM's predicates if they answer later; then there are no `predicates`."""
    kept_use: KeptUse = NO_KEPT_USE
    """What its queues and users have used before a restart."""
    answer_timeout_ns: int = ANSWER_TIMEOUT_NS
    """How long the RM has for an answer through the `question_channel`: then it counts as a refusal."""
    open_questions_max: Callable[[], int] = many_questions
    """With how many open questions through the `question_channel` a cycle goes no further. With one no ask is
    placed while an answer about an earlier one is pending: the decisions are those of answers at once."""
    adopt_node: Callable[[Node], NodeHandle]
    """Make a handle of a node."""
    adopt_application: Callable[[Application], ApplicationHandle]
    """Make a handle of an application."""
    release: Callable[[object], None]
    """Release the handle of a node or application that is not used again."""
    reservations_on: bool = True
    """False: no node is reserved but for asks that require it."""
    instrument: Instrument = _unchanged
    """The class of queues, limits, node order and counts: itself, or one whose marked methods are guarded, so
    that several threads may place asks in one partition (`licorne.model.scheduling.cycle`)."""
    cancel: Callable[[TimerKey], None] = _cancel_nothing
    """Cancel what waits under a key, see `timer_key`. A timer that is being delivered may still come."""
    summarise: Callable[[ApplicationSummary], None] = _drop_summary
    """Report to operators what an application has used, once it has ended."""
    stopwatch_ns: Callable[[], int] = _no_time
    """Nanoseconds since any moment, to time cycles; nothing is decided by it."""
    events: FactSink = field(default_factory=FactSink)
    """Gets what happens, as facts; no decision depends on it."""
