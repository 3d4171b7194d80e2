"""Facts: what has happened in a partition, in the shortest form; each stands for one or several events.

The model reports a fact where it happens. Texts and records are made of it only when events are read,
in `licorne.proxy.core.events`. Each fact is a tuple that begins with the number of its records, the id of its
resource manager and the time in nanoseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias, final

from ..resources.resource import EMPTY, Resource
from .allocation import Allocation, Ask
from .events import ChangeDetail, ChangeType, EventType
from .messages import TerminationType


class PlacedFact(NamedTuple):
    """An allocation was placed, and counts for its node, its user and the group, if there is one."""

    records: int
    rm_id: str
    time_ns: int
    allocation: Allocation
    queue_path: str
    user: str
    group: str | None


class EndedFact(NamedTuple):
    """An allocation ended; `on_node`: its node is there, and has it no longer."""

    records: int
    rm_id: str
    time_ns: int
    allocation: Allocation
    queue_path: str
    user: str
    group: str | None
    termination: TerminationType
    on_node: bool


class SwappedFact(NamedTuple):
    """An allocation replaced a placeholder; `leaves_node`: that was on another node, which is there."""

    records: int
    rm_id: str
    time_ns: int
    placeholder: Allocation
    real: Allocation
    queue_path: str
    user: str
    group: str | None
    leaves_node: bool


class UsageFact(NamedTuple):
    """A user, and the group if there is one, use something else than before in a queue."""

    records: int
    rm_id: str
    time_ns: int
    before: Resource
    after: Resource
    queue_path: str
    user: str
    group: str | None


class AsksAddedFact(NamedTuple):
    """Asks of one application were added."""

    records: int
    rm_id: str
    time_ns: int
    asks: tuple[Ask, ...]


class AsksDroppedFact(NamedTuple):
    """Asks of one application were dropped."""

    records: int
    rm_id: str
    time_ns: int
    asks: tuple[Ask, ...]
    timed_out: bool


class LeftFact(NamedTuple):
    """An application was removed from its queue."""

    records: int
    rm_id: str
    time_ns: int
    application_id: str
    queue_path: str


class HeadroomFact(NamedTuple):
    """An ask does not fit what its queue or its user has left, or fits again.

    `queue_path` is `None` for the user's limits; `available` is `None` if it fits.
    """

    records: int
    rm_id: str
    time_ns: int
    ask: Ask
    queue_path: str | None
    available: Resource | None


class UnschedulableFact(NamedTuple):
    """The resource manager's predicates refused nodes for an ask: texts, and how often each."""

    records: int
    rm_id: str
    time_ns: int
    ask: Ask
    refusals: tuple[tuple[str, int], ...]


class SingleFact(NamedTuple):
    """A rare fact: it is the event."""

    records: int
    rm_id: str
    time_ns: int
    type: EventType
    change: ChangeType
    detail: ChangeDetail
    object_id: str
    reference_id: str
    message: str
    resource: Resource


Fact: TypeAlias = (
    PlacedFact
    | EndedFact
    | SwappedFact
    | UsageFact
    | AsksAddedFact
    | AsksDroppedFact
    | LeftFact
    | HeadroomFact
    | UnschedulableFact
    | SingleFact
)


@final
class FactSink:
    """Where partitions report facts. `report` is `None` while they are not kept; it may change."""

    __slots__ = ("__weakref__", "report")

    def __init__(self, report: Callable[[Fact], None] | None = None) -> None:
        self.report = report


_new: Final = tuple.__new__
_BY_HUNDRED: Final = {
    2: EventType.APP,
    3: EventType.NODE,
    4: EventType.QUEUE,
    5: EventType.APP,
    6: EventType.USERGROUP,
}


@final
class EventReports:
    """The reports of one partition: its sink, and what all its facts have in common."""

    __slots__ = ("now_ns", "rm_id", "sink")

    def __init__(self, sink: FactSink, rm_id: str, now_ns: Callable[[], int]) -> None:
        self.sink = sink
        self.rm_id = rm_id
        self.now_ns = now_ns

    @property
    def are_kept(self) -> bool:
        """Whether what is reported is kept."""
        return self.sink.report is not None

    def note(
        self,
        change: ChangeType,
        detail: ChangeDetail,
        object_id: str,
        *,
        of: EventType | None = None,
        reference_id: str = "",
        message: str = "",
        resource: Resource | None = None,
    ) -> None:
        """Report a fact that is one event; its type follows from its detail unless `of` sets it."""
        report = self.sink.report
        if report is None:
            return
        kind = _BY_HUNDRED[detail // 100] if of is None else of
        size = EMPTY if resource is None else resource
        # Not by its constructor, which is slower: a function in Python that calls this one.
        time_ns = self.now_ns()
        report(
            _new(
                SingleFact,
                (1, self.rm_id, time_ns, kind, change, detail, object_id, reference_id, message, size),
            )
        )

    def note_queue(self, change: ChangeType, path: str, *, managed: bool) -> None:
        """Report that a queue was added or removed; one that is not managed is dynamic."""
        detail = ChangeDetail.NONE if managed else ChangeDetail.QUEUE_DYNAMIC
        self.note(change, detail, path, of=EventType.QUEUE)

    def note_reservation(
        self, change: ChangeType, node_id: str, allocation_key: str, resource: Resource
    ) -> None:
        """Report that a node was reserved for an ask, or no longer is."""
        self.note(
            change, ChangeDetail.NODE_RESERVATION, node_id, reference_id=allocation_key, resource=resource
        )

    def note_on_node(self, change: ChangeType, allocation: Allocation) -> None:
        """Report what came to a node, or left it, and counts for no user."""
        self.note(
            *(change, ChangeDetail.NODE_ALLOC, allocation.node_id),
            reference_id=allocation.ask.allocation_key,
            resource=allocation.ask.resource,
        )

    def note_link(self, change: ChangeType, application_id: str, group: str | None) -> None:
        """Report that an application counts against a group from now on, or no longer; not for no group."""
        if group is not None:
            self.note(change, ChangeDetail.UG_APP_LINK, group, reference_id=application_id)

    def note_usage(
        self, before: Resource, after: Resource, queue_path: str, user: str, group: str | None
    ) -> None:
        """Report what a user and the group use in a queue in place of something else."""
        report = self.sink.report
        if report is not None:
            records = 2 if group is None else 4
            fact = (records, self.rm_id, self.now_ns(), before, after, queue_path, user, group)
            report(UsageFact(*fact))


def unheard() -> EventReports:
    """Return reports that are not kept."""
    return EventReports(FactSink(), "", lambda: 0)
