"""Rows of a partition for those who watch it, its figures for metrics, and its preemptions as documents.

A watcher reads the names of everything first, then the rows of some hundred names at a time, so that the
partition works in between. A row is made of immutable values that the partition has already. Unchanged values
are the same objects as before: a row is compared with the one that the watcher has, and is made only if
it is another one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, Self

from ..applications.effects import ApplicationFacts, ApplicationState
from ..limits.user_limits import holder_names
from ..nodes.entry import NodeEntry
from ..nodes.node import NodeFacts
from ..nodes.order import node_ids
from ..queues.queue import Queue
from ..resources.resource import Resource
from ..state.counters import EndedApplication, HistogramFigures, TimedPart
from ..state.partition_state import PartitionState
from ..state.preemption_log import Justification, PreemptionRecord, QueueBalance, VictimRecord
from ..values.documents import Document, quantities_shown
from ..values.states import ObjectState
from .shown import QueueView, queue_view

ENDED_MAX: Final = 200
"""How many of the applications that ended last are named, and how many that were rejected last."""


class LiveNames(NamedTuple):
    """The names of all that a partition has at one moment, and what there is once."""

    time_ns: int
    state: ObjectState
    capacity: Resource
    allocations: int
    nodes: tuple[str, ...]
    applications: tuple[str, ...]
    """Those that are active, in the order in which they came."""
    queues: tuple[str, ...]
    """The paths of all queues, each after its parent."""
    users: tuple[str, ...]
    groups: tuple[str, ...]
    ended: tuple[int, ...]
    """The serials of the applications that ended or were rejected last."""
    ended_total: int
    """How many have ended or were rejected, of those that are kept."""


class NodeRow(NamedTuple):
    """The facts of a node that a partition knows without asking it."""

    node_id: str
    capacity: Resource
    available: Resource
    schedulable: bool
    """Whether it is neither drained nor cordoned."""
    reserved: bool
    out: tuple[int, str, str] | None = None
    """While it takes no work: since when, why, and who has drained it."""

    @classmethod
    def of(cls, entry: NodeEntry) -> Self:
        """Copy an entry."""
        schedulable = entry.schedulable and not entry.cordoned
        return cls(entry.node_id, entry.capacity, entry.available, schedulable, entry.reserved, entry.out)


class LiveApplication(NamedTuple):
    """The facts of an active application that a partition knows."""

    application_id: str
    user: str
    queue_path: str
    facts: ApplicationFacts
    backoff_until_ns: int | None
    groups: tuple[str, ...] = ()
    """Those of its user."""
    tags: Mapping[str, str] = MappingProxyType({})


class LiveEnded(NamedTuple):
    """An application that has ended or was rejected; its row no longer changes."""

    serial: int
    application_id: str
    user: str
    queue_path: str
    state: ApplicationState
    submitted_at_ns: int
    finished_at_ns: int | None
    reason: str


def live_names(state: PartitionState) -> LiveNames:
    """Return the names of everything, and what the partition has once."""
    rejected = sorted(kept.serial for kept in state.rejected.values())[-ENDED_MAX:]
    completed = sorted(state.completed)[-ENDED_MAX:] if state.completed else []
    return LiveNames(
        time_ns=state.now_ns(),
        state=state.state,
        capacity=state.capacity,
        allocations=state.placed.allocations,
        nodes=node_ids(state.nodes),
        applications=tuple(state.entries),
        queues=tuple(queue.path for queue in _downwards(state.tree.root)),
        users=holder_names(state.limits, "user"),
        groups=holder_names(state.limits, "group"),
        ended=(*completed, *rejected),
        ended_total=len(state.completed) + len(state.rejected),
    )


def _downwards(queue: Queue) -> Iterable[Queue]:
    yield queue
    for name in sorted(queue.children):
        yield from _downwards(queue.children[name])


def live_nodes(
    state: PartitionState, node_ids: Iterable[str], known: Mapping[str, NodeRow]
) -> tuple[NodeRow, ...]:
    """Return the rows of nodes that differ from the known ones; those that are gone are left out."""
    changed = []
    for node_id in node_ids:
        entry = state.nodes.get(node_id)
        if entry is None:
            continue
        row = known.get(node_id)
        if (
            row is None
            or row.available is not entry.available
            or row.capacity is not entry.capacity
            or row.schedulable is not (entry.schedulable and not entry.cordoned)
            or row.reserved is not entry.reserved
            or row.out is not entry.out
        ):
            changed.append(NodeRow.of(entry))
    return tuple(changed)


def live_node_facts(state: PartitionState, node_id: str) -> NodeFacts | None:
    """Return all that a node knows of itself, `None` if it is unknown."""
    entry = state.nodes.get(node_id)
    return None if entry is None else entry.node.facts()


def live_applications(
    state: PartitionState, application_ids: Iterable[str], known: Mapping[str, LiveApplication]
) -> tuple[LiveApplication, ...]:
    """Return the rows of active applications that differ from the known ones; without those that are gone."""
    changed = []
    for application_id in application_ids:
        entry = state.entries.get(application_id)
        if entry is None:
            continue
        row = known.get(application_id)
        if row is None or row.facts is not entry.facts or row.backoff_until_ns != entry.backoff_until_ns:
            changed.append(
                LiveApplication(
                    application_id,
                    entry.user.name,
                    entry.queue.path,
                    entry.facts,
                    entry.backoff_until_ns,
                    entry.user.groups,
                    entry.tags,
                )
            )
    return tuple(changed)


def live_ended(state: PartitionState, serials: Iterable[int]) -> tuple[LiveEnded, ...]:
    """Return the rows of ended applications; this asks each of them, but a row does not change again."""
    wanted = frozenset(serials)
    handles = {serial: state.completed[serial].application for serial in wanted if serial in state.completed}
    handles.update(
        (kept.serial, kept.application) for kept in state.rejected.values() if kept.serial in wanted
    )
    rows = []
    for serial, handle in sorted(handles.items()):
        report = handle.report()
        rows.append(
            LiveEnded(
                serial,
                handle.application_id,
                handle.user.name,
                report.queue_path,
                report.state,
                report.submitted_at_ns,
                report.finished_at_ns,
                report.rejection or report.state_text,
            )
        )
    return tuple(rows)


def live_queues(state: PartitionState, paths: Iterable[str]) -> tuple[QueueView, ...]:
    """Return the rows of queues; those that are gone are left out."""
    queues = map(state.tree.find, paths)
    return tuple(queue_view(queue) for queue in queues if queue is not None)


class PartitionFigures(NamedTuple):
    """All that the metrics of a partition are made of, as of one moment."""

    name: str
    rm_id: str
    capacity: Resource
    queues: tuple[QueueView, ...]
    """Parents before their children."""
    placed_in: Mapping[str, int]
    """How many allocations have come to each leaf since it was made, by its path."""
    ended_in: Mapping[str, int]
    """How many have ended there."""
    active: Mapping[tuple[str, ApplicationState], int]
    """How many applications are active, by the path of their leaf and their state."""
    ended: Mapping[tuple[str, ApplicationState], int]
    """How many have ended since the partition was made: completed, failed or rejected."""
    nodes: tuple[NodeRow, ...]
    nodes_removed: int
    allocations: int
    reservations: int
    quarantined: int
    """How many applications and nodes broke and are excluded."""
    times: Mapping[TimedPart, HistogramFigures]
    waits: HistogramFigures
    """From the creation of an ask to its placement."""
    waits_in: Mapping[str, HistogramFigures] = MappingProxyType({})
    """The same by the path of the leaf, in longer buckets."""
    preempted: Mapping[tuple[str, str, str], int] = MappingProxyType({})
    """How many allocations were preempted, by both queues and the cause, as `PreemptionLog` counts."""
    lost_ns: Mapping[tuple[str, str, str], int] = MappingProxyType({})
    """How much work was lost with them."""
    backoffs: Mapping[str, int] = MappingProxyType({})
    """How often an application backed off, by its leaf."""
    promises_moved: Mapping[str, int] = MappingProxyType({})
    """How many promised starts have moved back, by the queue that backfills."""


def partition_figures(state: PartitionState) -> PartitionFigures:
    """Return the figures of a partition; the time it takes grows with its nodes, queues and applications."""
    return PartitionFigures(
        name=state.name,
        rm_id=state.rm_id,
        capacity=state.capacity,
        queues=tuple(map(queue_view, state.tree)),
        placed_in=dict(state.placed.placed_in),
        ended_in=dict(state.placed.ended_in),
        active=Counter((entry.queue.path, entry.facts.state) for entry in state.entries.values()),
        ended=dict(state.endings.counts),
        nodes=tuple(map(NodeRow.of, state.nodes)),
        nodes_removed=state.nodes_removed,
        allocations=state.placed.allocations,
        reservations=state.reservations,
        quarantined=len(state.quarantine.entries),
        times=state.times.figures(),
        waits=state.placed.waits(),
        waits_in=state.placed.waits_in(),
        preempted=dict(state.preemptions.victims),
        lost_ns=dict(state.preemptions.lost_ns),
        backoffs=dict(state.setbacks.backoffs),
        promises_moved=dict(state.setbacks.promises_moved),
    )


class Seen(NamedTuple):
    """How far a reader has read the logs of a partition."""

    since_ns: int = 0
    """When the partition was made: one that is made anew begins new logs."""
    ends: int = 0
    preemptions: int = 0


class Happened(NamedTuple):
    """What has happened in a partition since a reader has read it, and the names for its next questions."""

    seen: Seen
    ended: tuple[EndedApplication, ...]
    preemptions: tuple[PreemptionRecord, ...]
    missed: int
    """How many ends and preemptions were forgotten in between."""
    waits: Mapping[str, HistogramFigures]
    """All waits by the path of the leaf."""
    applications: tuple[str, ...]
    """The ids of the active applications."""


def happened(state: PartitionState, seen: Seen) -> Happened:
    """Return what has happened since a reader has read the partition."""
    now = Seen(state.state_since_ns, state.endings.recent.added, state.preemptions.added)
    is_same = seen.since_ns == now.since_ns and seen.ends <= now.ends
    known = seen if is_same and seen.preemptions <= now.preemptions else Seen()
    ended = state.endings.recent.since(known.ends)
    preemptions = state.preemptions.since(known.preemptions)
    missed = now.ends - known.ends - len(ended) + now.preemptions - known.preemptions - len(preemptions)
    return Happened(now, ended, preemptions, missed, state.placed.waits_in(), tuple(state.entries))


def recent_preemptions(state: PartitionState) -> tuple[PreemptionRecord, ...]:
    """Return the last preemptions, the oldest first."""
    return tuple(state.preemptions)


def preemption_document(record: PreemptionRecord) -> Document:
    """Return the document of a preemption, a `PreemptionDocument` of the REST interface."""
    return {
        "time": record.time_ns,
        "cause": record.cause.name,
        "queueName": record.queue_path,
        "applicationID": record.application_id,
        "allocationKey": record.allocation_key,
        "nodeID": record.node_id,
        "reason": record.reason,
        "victims": [victim_document(victim) for victim in record.victims],
        "justification": _justification(record.justification),
        "loop": record.loop,
    }


def victim_document(victim: VictimRecord) -> Document:
    """Return the document of a victim, a `VictimDocument`."""
    compared = victim.priorities
    return {
        "allocationKey": victim.allocation_key,
        "applicationID": victim.application_id,
        "queueName": victim.queue_path,
        "nodeID": victim.node_id,
        "resource": _quantities(victim.resource),
        "reason": victim.reason,
        "neededFor": victim.need.name,
        "gives": [*victim.gives],
        "priorities": None
        if compared is None
        else {"frame": compared.frame, "ask": compared.ask, "victim": compared.victim},
    }


def _justification(of: Justification) -> Document:
    return {
        "preemptors": [
            {
                "allocationKey": preemptor.allocation_key,
                "applicationID": preemptor.application_id,
                "queueName": preemptor.queue_path,
                "nodeID": preemptor.node_id,
                "resource": _quantities(preemptor.resource),
            }
            for preemptor in of.preemptors
        ],
        "queues": [_balance(queue) for queue in of.queues],
        "nodes": [
            {"nodeID": node.node_id, "before": _quantities(node.before), "after": _quantities(node.after)}
            for node in of.nodes
        ],
        "takenOver": [*of.taken_over],
    }


def _balance(queue: QueueBalance) -> Document:
    guaranteed = queue.guaranteed
    return {
        "queueName": queue.path,
        "guaranteed": None if guaranteed is None else _quantities(guaranteed),
        "owedBefore": _quantities(queue.owed(queue.before)),
        "owedAfter": _quantities(queue.owed(queue.after)),
        "aboveBefore": _quantities(queue.above(queue.before)),
        "aboveAfter": _quantities(queue.above(queue.after)),
    }


def _quantities(resource: Resource) -> Document:
    return {**quantities_shown(resource.as_dict())}
