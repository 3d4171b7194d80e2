"""What a partition is given from outside: time, the RM's ears and judgement, and an engine's handles.

The model starts nothing and knows no clock of its own. An engine makes these once for each partition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from ..applications.application import Application
    from ..applications.effects import TimerKind
    from ..nodes.node import Node
    from ..values.documents import Document
    from ..values.messages import Announcement

__all__ = [
    "ApplicationTimer",
    "Expiry",
    "Inspection",
    "Instrument",
    "PartitionHost",
    "Predicates",
    "QueueCleaning",
    "QuotaCheck",
    "RetryAsks",
    "TimerAction",
    "TimerKey",
    "timer_key",
]


@dataclass(frozen=True, slots=True)
class ApplicationTimer:
    """A timer of an application is due."""

    application_id: str
    serial: int
    """Tells applications apart that had the same id one after the other."""
    kind: TimerKind
    generation: int


@dataclass(frozen=True, slots=True)
class QueueCleaning:
    """It is time to remove queues that are empty."""


@dataclass(frozen=True, slots=True)
class RetryAsks:
    """Time may have changed an answer: an ask is old enough for a reservation, a back-off is over."""


@dataclass(frozen=True, slots=True)
class Inspection:
    """It is time to tell the RM of asks that wait for room in the cluster."""


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


class Predicates(Protocol):
    """The RM's judgement whether an ask may run on a node."""

    def refuse(self, allocation_key: str, node_id: str, *, allocate: bool) -> str | None:
        """Return why the node is refused, `None` if it is not. `allocate` is false for a reservation."""

    def preemption_index(
        self,
        allocation_key: str,
        node_id: str,
        victim_keys: tuple[str, ...],
        start_index: int,
    ) -> int | None:
        """Return the last victim that must go before the ask may run there, `None` if none of them helps."""


def _cancel_nothing(_: TimerKey) -> None:
    """Let timers come: what they are for has gone, and they do nothing."""


def _drop_summary(_: Document) -> None:
    """Let a summary pass."""


T = TypeVar("T")


class Instrument(Protocol):
    """What an engine makes of the classes of whose objects a partition is made."""

    def __call__(self, kind: type[T], /) -> type[T]:
        """Return the class to make objects with, in the place of `kind`."""


def _unchanged(kind: type[T], /) -> type[T]:
    """Make objects of the very class."""
    return kind


def _no_keys() -> Collection[str]:
    """Name no ask."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionHost:
    """All that a partition is given."""

    now_ns: Callable[[], int]
    """Nanoseconds since 1970."""
    call_at: Callable[[int, TimerAction], None]
    """Have `Partition.on_timer` called with the action at that time."""
    announce: Callable[[Announcement], None]
    """Tell the RM; in order, and never while the partition waits for it."""
    flush: Callable[[], None]
    """Have the RM hear what was announced; called at the end of a turn."""
    is_congested: Callable[[], bool]
    """Whether the RM is so far behind that nothing more should be placed for it."""
    predicates: Predicates | None
    """`None`: the RM takes every node."""
    keys_of_others: Callable[[], Collection[str]] = _no_keys
    """The keys of asks about which another cycle is asking the RM: this one passes over them. Passing over is
    no refusal, and leaves nothing behind."""
    adopt_node: Callable[[Node], Node]
    """Make a handle of a node."""
    adopt_application: Callable[[Application], Application]
    """Make a handle of an application."""
    release: Callable[[object], None]
    """Let the handle of a node or application go that nobody will use again."""
    reservations_on: bool = True
    """False: no node is reserved but for asks that require it."""
    instrument: Instrument = _unchanged
    """The class of queues, limits, node order and counts: itself, or one whose marked methods are guarded, so
    that several threads may place asks in one partition (`licorne.model.scheduling.concurrent_placing`)."""
    cancel: Callable[[TimerKey], None] = _cancel_nothing
    """Have what waits under a key, see `timer_key`, not come. What is on its way already may still come."""
    summarise: Callable[[Document], None] = _drop_summary
    """Tell operators what an application has used, once it has ended."""
