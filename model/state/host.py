"""The host of a partition: time and timers, messages to the RM, the RM's predicates, an engine's handles.

The model starts nothing and has no clock. An engine makes one host for each partition.

Timers are in a heap. One that is cancelled stays there until it comes to the front, or until more than half
of the heap is cancelled, which is then rebuilt. So the heap never holds more than twice what waits, and
cancelling needs no search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Final, NamedTuple, Protocol, TypeAlias, TypeVar, final

from ..applications.application import Application
from ..applications.effects import TimerKind
from ..applications.handle import ApplicationHandle
from ..applications.report import ApplicationSummary
from ..nodes.handle import NodeHandle
from ..nodes.node import Node
from ..nodes.order import NodeOrder
from ..policies.policies import NO_POLICIES, Policies, PolicyPoint
from ..predicates.deferred_checks import DeferredChecks
from ..predicates.node_checks import (
    ImmediateChecks,
    NodeChecks,
    Predicates,
    QuestionChannel,
    many_questions,
)
from ..predicates.node_filters import FilteredNodes
from ..queues.use_order import NO_KEPT_USE, KeptUse
from ..values.allocation import PlacementHalt
from ..values.facts import FactSink
from ..values.messages import Announcement

ANSWER_TIMEOUT_NS: Final = 2_000_000_000
"""How long the RM has for an answer of its predicates, by default."""
DueTimer: TypeAlias = "tuple[int, int, str, TimerAction]"
"""When it is due in nanoseconds since 1970, its number, the partition it is for, and what is to be done."""
CLEANING_INTERVAL_NS: Final = 10 * 1_000_000_000
"""How often queues that are empty are removed: at multiples of it since the partition was made."""
QUOTA_CHECK_INTERVAL_NS: Final = 1_000_000_000
"""How long a queue that is due for quota preemption, and without result, waits for the next try."""
INSPECTION_DELAY_NS: Final = 1_000_000_000
"""How long asks wait before they are reported to an autoscaler."""


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
    """The forms of a partition's classes in an engine."""

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
    policies: Policies = NO_POLICIES
    """The policies that the program has given, with objects of this partition."""
    kept_use: KeptUse = NO_KEPT_USE
    """The use of its queues and users before a restart."""
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
    """False: nodes are reserved only for asks that require them."""
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


def checks_of(host: PartitionHost, nodes: NodeOrder, filters: Sequence[str]) -> NodeChecks | None:
    """Return the checks of a partition's nodes, `None` if every node is taken.

    Args:
        host: The host of the partition.
        nodes: Its nodes.
        filters: The policies that its configuration names.
    """
    checks: NodeChecks | None = None
    if host.question_channel is not None:
        assert host.predicates is None, "predicates answer at once or later, not both: please report"
        checks = DeferredChecks(
            host.question_channel, host.answer_timeout_ns, open_max=host.open_questions_max
        )
    elif host.predicates is not None:
        checks = ImmediateChecks(host.predicates)
    if not host.policies.decide(PolicyPoint.FILTER):
        return checks
    filtered = FilteredNodes(checks, nodes, host.policies)
    filtered.use(filters)
    return filtered


@final
class DueTimers:
    """Timers in order of their times, then of their making."""

    __slots__ = ("_cancelled", "_heap", "_serial", "_waiting")

    def __init__(self) -> None:
        self._heap: list[DueTimer] = []
        self._serial = 0
        self._waiting: dict[tuple[str, TimerKey], tuple[int, ...]] = {}
        """The numbers of what waits under a key: one, as a rule."""
        self._cancelled: set[int] = set()
        """The numbers of what is cancelled and still in the heap."""

    def __len__(self) -> int:
        return len(self._heap) - len(self._cancelled)

    def __iter__(self) -> Iterator[DueTimer]:
        """Walk over what waits, in no order."""
        return (timer for timer in self._heap if timer[1] not in self._cancelled)

    def add(self, due_ns: int, partition: str, action: TimerAction) -> bool:
        """Add a timer; return whether it is the next one."""
        self._serial += 1
        timer = (due_ns, self._serial, partition, action)
        key = (partition, timer_key(action))
        self._waiting[key] = (*self._waiting.get(key, ()), self._serial)
        heappush(self._heap, timer)
        return self._heap[0][1] == self._serial

    def cancel(self, partition: str, key: TimerKey) -> None:
        """Cancel what waits under a key of a partition, if anything does."""
        self._cancelled.update(self._waiting.pop((partition, key), ()))
        if 2 * len(self._cancelled) > len(self._heap):
            self._keep(list(self))

    def forget(self, partition: str) -> None:
        """Cancel all timers of a partition."""
        self._keep([timer for timer in self if timer[2] != partition])
        self._waiting = {key: numbers for key, numbers in self._waiting.items() if key[0] != partition}

    def next_due_ns(self) -> int | None:
        """Return when the next timer is due, `None` if none waits."""
        heap = self._heap
        while heap and heap[0][1] in self._cancelled:
            self._cancelled.remove(heappop(heap)[1])
        return heap[0][0] if heap else None

    def pop(self) -> DueTimer:
        """Take the next timer; there must be one."""
        due_ns = self.next_due_ns()
        assert due_ns is not None, "no timer waits: please report"
        timer = heappop(self._heap)
        key = (timer[2], timer_key(timer[3]))
        left = tuple(number for number in self._waiting.pop(key) if number != timer[1])
        if left:
            self._waiting[key] = left
        return timer

    def clear(self) -> None:
        """Have nothing come."""
        self._keep([])
        self._waiting = {}

    def _keep(self, timers: list[DueTimer]) -> None:
        """Have these timers alone in the heap."""
        heapify(timers)
        self._heap = timers
        self._cancelled = set()


@final
class PartitionTimers:
    """The timers of one partition. Owned by the partition; each timer is set once, for the earliest."""

    __slots__ = ("_due_ns", "_host", "_since_ns", "_started")

    def __init__(self, host: PartitionHost, since_ns: int) -> None:
        self._host = host
        self._since_ns = since_ns
        self._due_ns: dict[type[TimerAction], int] = {}
        """When the partition's own timers are due."""
        self._started: dict[int, tuple[TimerKind, ...]] = {}
        """The timers that were started for an application, by its serial: few have one of each kind."""

    def start(self, due_ns: int, timer: ApplicationTimer) -> None:
        """Start a timer of an application; it replaces one of the same kind."""
        started = self._started.get(timer.serial, ())
        if timer.kind in started:
            self._host.cancel(timer_key(timer))
        else:
            self._started[timer.serial] = (*started, timer.kind)
        self._host.call_at(due_ns, timer)

    def stop_all(self, serial: int) -> None:
        """Cancel all timers of an application that is gone."""
        for kind in self._started.pop(serial, ()):
            self._host.cancel((serial, kind))

    def clean_later(self) -> None:
        """Have queues removed that are empty, at the next turn of the cleaner."""
        turns = (self._host.now_ns() - self._since_ns) // CLEANING_INTERVAL_NS + 1
        self._set(QueueCleaning(), self._since_ns + turns * CLEANING_INTERVAL_NS)

    def check_quotas(self, due_ns: int) -> None:
        """Have the quotas checked when a queue is due for preemption."""
        self._set(QuotaCheck(), max(due_ns, self._host.now_ns() + QUOTA_CHECK_INTERVAL_NS))

    def retry_at(self, due_ns: int) -> None:
        """Try asks again when time may have changed an answer."""
        if self._is_earlier(RetryAsks, due_ns):
            self._host.cancel(RetryAsks)
            self._set(RetryAsks(), due_ns)

    def inspect_later(self) -> None:
        """Have the asks that wait for room in the cluster reported to the RM."""
        self._set(Inspection(), self._host.now_ns() + INSPECTION_DELAY_NS)

    def mark_fired(self, action: TimerAction) -> None:
        """Note that one of the partition's own timers has come."""
        self._due_ns.pop(type(action), None)

    def _set(self, action: TimerAction, due_ns: int) -> None:
        if self._is_earlier(type(action), due_ns):
            self._due_ns[type(action)] = due_ns
            self._host.call_at(due_ns, action)

    def _is_earlier(self, kind: type[TimerAction], due_ns: int) -> bool:
        waiting_ns = self._due_ns.get(kind)
        return waiting_ns is None or due_ns < waiting_ns
