"""The display of a partition, its nodes and its applications: values at one moment, copied in pieces.

A piece is small, so that the partition soon goes on: a list of names, or what is shown of some of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from ..applications.effects import ApplicationState
from ..applications.report import ShownApplication
from ..configuration.queue_properties import QueueProperties
from ..limits.limits import HolderKind
from ..limits.usage_tree import UsageRow, UsageView
from ..limits.user_limits import holder_names, usage_views
from ..nodes.node import NodeFacts
from ..placement.rules import PlacementRule
from ..queues.application_entry import ApplicationEntry
from ..queues.queue import Queue, QueueTemplate
from ..queues.use_order import KeptUse
from ..queues.users import path_of_user
from ..resources.decayed_use import decayed_means, rounded
from ..resources.resource import EMPTY, Resource
from ..state.partition_state import PartitionState, Quarantined
from ..values.dependencies import AFTER_TAGS, tags_for
from ..values.messages import ApplicationSubmission
from ..values.states import ObjectState


class PartitionValues(NamedTuple):
    """The display of a partition as a whole, at one moment."""

    rm_id: str
    name: str
    """The full name, `[rm]default`."""
    capacity: Resource
    used: Resource
    node_sort_policy: str
    node_sort_weights: Mapping[str, float]
    preemption_enabled: bool
    quota_preemption_enabled: bool
    nodes: int
    """How many nodes there are."""
    applications: Mapping[str, int]
    """How many applications are in each state: active, completed and rejected ones."""
    allocations: int
    """How many allocations there are."""
    state: ObjectState
    state_since_ns: int


def partition_values(state: PartitionState) -> PartitionValues:
    """Return what the partition as a whole shows."""
    return PartitionValues(
        rm_id=state.rm_id,
        name=state.name,
        capacity=state.capacity,
        used=state.tree.root.allocated,
        node_sort_policy=state.nodes.rule.word,
        node_sort_weights=dict(state.nodes.weights),
        preemption_enabled=state.preemption_enabled,
        quota_preemption_enabled=state.quota_preemption_enabled,
        nodes=len(state.nodes),
        applications=_application_counts(state),
        allocations=state.placed.allocations,
        state=state.state,
        state_since_ns=state.state_since_ns,
    )


def _application_counts(state: PartitionState) -> Mapping[str, int]:
    """Return how many applications are in each state; none of them is asked, since there may be many."""
    counts = Counter([entry.facts.state.value for entry in state.entries.values()])
    counts.update([ended.state for ended in state.completed.values()])
    if state.rejected:
        counts[ApplicationState.REJECTED.value] += len(state.rejected)
    return counts


class ShownNode(NamedTuple):
    """The values of the document of a node, at one moment."""

    facts: NodeFacts
    preempted: frozenset[tuple[str, str]]
    """The allocations that have been chosen as victims: their applications and keys."""


def shown_nodes(state: PartitionState, node_ids: Iterable[str]) -> tuple[ShownNode, ...]:
    """Copy what the documents of nodes are made of; those that are gone are left out.

    To make the documents takes ten times as long. That is left to the caller, so that the partition can work
    meanwhile.
    """
    entries = (state.nodes.get(node_id) for node_id in node_ids)
    rows = [entry.node.facts() for entry in entries if entry is not None]
    names = {allocation.ask.application_id for facts in rows for allocation in facts.allocations}
    preempted = frozenset(
        (name, key)
        for name in names
        if (entry := state.entries.get(name)) is not None
        for key in entry.application.allocations.preempted_keys()
    )
    return tuple(ShownNode(facts, preempted) for facts in rows)


class ListedApplication(NamedTuple):
    """An application that is active."""

    application_id: str
    queue_path: str
    state: ApplicationState


class ListedApplications(NamedTuple):
    """The applications of a partition; the lists have keys, which cost a thousandth of the rest."""

    active: tuple[ListedApplication, ...]
    completed: tuple[int, ...]
    """Serials: ids may come again."""
    rejected: tuple[str, ...]
    """Ids."""


def listed_applications(state: PartitionState) -> ListedApplications:
    """List the applications: active ones by the order of their arrival, the others in no order."""
    return ListedApplications(
        tuple(
            ListedApplication(name, entry.queue.path, entry.facts.state)
            for name, entry in state.entries.items()
        ),
        tuple(state.completed),
        tuple(state.rejected),
    )


def shown_active(state: PartitionState, names: Iterable[str]) -> tuple[ShownApplication, ...]:
    """Copy what the documents of active applications are made of; those that are gone are left out."""
    entries = (state.entries.get(name) for name in names)
    return tuple(entry.application.shown() for entry in entries if entry is not None)


def shown_completed(state: PartitionState, serials: Iterable[int]) -> tuple[ShownApplication, ...]:
    """Copy what the documents of ended applications are made of, likewise."""
    ended = (state.completed.get(serial) for serial in serials)
    return tuple(entry.application.shown() for entry in ended if entry is not None)


def shown_rejected(state: PartitionState, names: Iterable[str]) -> tuple[ShownApplication, ...]:
    """Copy what the documents of rejected applications are made of, likewise."""
    kept = (state.rejected.get(name) for name in names)
    return tuple(entry.application.shown() for entry in kept if entry is not None)


class ShownPartition(NamedTuple):
    """All that the documents of a partition show, as of one moment."""

    partition: PartitionValues
    root: QueueView
    """With all queues."""
    nodes: tuple[ShownNode, ...]
    """By node id."""
    applications: tuple[ShownApplication, ...]
    """Active, completed and rejected ones."""
    users: tuple[UsageView, ...]
    """By name."""
    groups: tuple[UsageView, ...]
    """By name."""


def shown_partition(state: PartitionState) -> ShownPartition:
    """Return what all documents of a partition are made of."""
    applications = shown_active(state, sorted(state.entries))
    applications += shown_completed(state, sorted(state.completed))
    applications += shown_rejected(state, sorted(state.rejected))
    return ShownPartition(
        partition=partition_values(state),
        root=queue_tree(state.tree.root),
        nodes=shown_nodes(state, node_ids(state)),
        applications=applications,
        users=_with_means(state, usage_views(state.limits, "user")),
        groups=usage_views(state.limits, "group"),
    )


def node_ids(state: PartitionState) -> tuple[str, ...]:
    """Return the ids of all nodes, sorted."""
    return tuple(entry.node_id for entry in state.nodes.by_name())


def shown_queue(state: PartitionState, path: str, *, subtree: bool) -> tuple[QueueView, ...]:
    """Copy a queue and those above it; nothing if the queue does not exist."""
    queue = state.tree.find(path)
    return () if queue is None else queue_and_above(queue, subtree=subtree)


def quarantined_entries(state: PartitionState) -> tuple[Quarantined, ...]:
    """Return what has broken, the first one first."""
    return tuple(state.quarantine.entries.values())


def application_ids(state: PartitionState) -> tuple[str, ...]:
    """Return the ids of all applications that can be explained, sorted."""
    ended = (ended.application.application_id for ended in state.completed.values())
    return tuple(sorted({*state.entries, *state.rejected, *ended}))


def placement_rules(state: PartitionState) -> tuple[PlacementRule, ...]:
    """Return the placement rules, in their order; each is a value."""
    return state.rules.all()


def holder_names_of(state: PartitionState, kind: HolderKind) -> tuple[str, ...]:
    """Return the names of all users, or of all groups, that have limits or use something; sorted."""
    return tuple(sorted(holder_names(state.limits, kind)))


def holders(state: PartitionState, kind: HolderKind, names: Iterable[str]) -> tuple[UsageView, ...]:
    """Return what some users, or some groups, have and may have; those that are not known are left out."""
    found = usage_views(state.limits, kind, names)
    return found if kind == "group" else _with_means(state, found)


def _with_means(state: PartitionState, users: tuple[UsageView, ...]) -> tuple[UsageView, ...]:
    """Return what users have, with what they have used on average in leaves that order them by it."""
    now_ns = state.now_ns()
    leaves = {leaf.path: leaf.entries.users for leaf in state.tree.leaves() if leaf.entries.users is not None}
    if not leaves:
        return users

    def with_mean(name: str, row: UsageRow) -> UsageRow:
        in_leaf = leaves.get(row.queue_path)
        place = None if in_leaf is None else in_leaf.seen(name)
        if place is None or place.decayed is None:
            return row
        return row._replace(decayed_mean=rounded(place.mean(now_ns)))

    return tuple(
        user._replace(queues=tuple(with_mean(user.name, row) for row in user.queues)) for user in users
    )


class QueueView(NamedTuple):
    """One queue, with those below it where they are shown."""

    path: str
    state: ObjectState
    is_leaf: bool
    managed: bool
    properties: Mapping[str, str]
    settings: QueueProperties
    template: QueueTemplate | None
    guaranteed: Resource | None
    maximum: Resource | None
    allocated: Resource
    pending: Resource
    preempting: Resource
    max_applications: int
    running: int
    accepted_allocating: tuple[str, ...]
    priority: int
    """As the parent sees it."""
    child_names: tuple[str, ...]
    """The names of all children, without their paths, sorted."""
    children: tuple[QueueView, ...]
    """By name; empty where they are not shown."""
    decayed_mean: Resource | None = None
    """Its average use, as far as that counts; `None` where its parent has no half-life."""
    lend: Resource | None = None
    withheld: Resource = EMPTY
    """The part of guarantees that it keeps back beyond its use (`licorne.model.queues.quota`)."""
    withheld_below: Resource = EMPTY
    """The sum of that of its children."""


def queue_view(queue: Queue, children: tuple[QueueView, ...] = ()) -> QueueView:
    """Copy a queue; `children` are those of its children that are shown with it."""
    return QueueView(
        queue.path,
        queue.state,
        queue.is_leaf,
        queue.managed,
        queue.properties,
        queue.settings,
        queue.template,
        queue.guaranteed,
        queue.maximum,
        queue.allocated,
        queue.pending,
        queue.preempting,
        queue.max_applications,
        queue.running,
        tuple(sorted(queue.accepted_allocating)),
        queue.exposed_priority,
        tuple(sorted(queue.children)),
        children,
        None if queue.decayed is None else rounded(decayed_means(queue.decayed, queue.now_ns())),
        queue.lend,
        queue.withheld,
        queue.withheld_below,
    )


def queue_tree(queue: Queue) -> QueueView:
    """Copy a queue and all queues below it."""
    return queue_view(queue, tuple(queue_tree(queue.children[name]) for name in sorted(queue.children)))


def queue_and_above(queue: Queue, *, subtree: bool = False) -> tuple[QueueView, ...]:
    """Copy a queue and those above it, which limit it; the queue comes first.

    Args:
        queue: The queue.
        subtree: Whether all queues below it are copied, too.
    """
    first = queue_tree(queue) if subtree else queue_view(queue)
    return (first, *map(queue_view, queue.above[1:]))


class SavedApplication(NamedTuple):
    """An active application: what its RM sent, and what it is now."""

    submission: ApplicationSubmission
    shown: ShownApplication


class SavedPartition(NamedTuple):
    """All that a partition has at one moment."""

    rm_id: str
    name: str
    """The full name, `[rm]default`."""
    time_ns: int
    nodes: tuple[NodeFacts, ...]
    """By node id."""
    applications: tuple[SavedApplication, ...]
    """In the order in which they came."""


def saved_partition(state: PartitionState) -> SavedPartition:
    """Return what the partition has."""
    return SavedPartition(
        state.rm_id,
        state.name,
        state.now_ns(),
        tuple(entry.node.facts() for entry in state.nodes.by_name()),
        tuple(
            SavedApplication(_as_it_waits(entry, entry.submission), entry.application.shown())
            for entry in state.entries.values()
            if entry.submission is not None
        ),
    )


def _as_it_waits(entry: ApplicationEntry, submission: ApplicationSubmission) -> ApplicationSubmission:
    """Return a submission without the names of applications that it waits for no longer."""
    if AFTER_TAGS.isdisjoint(submission.tags):
        return submission
    left = () if entry.waits is None else (*entry.waits.unmet, entry.waits.never)
    return replace(submission, tags=tags_for(submission.tags, lambda name: name in left))


def use_to_keep(state: PartitionState) -> KeptUse:
    """Return the decayed use of all queues and users, also of those that are gone."""
    uses = dict(state.tree.root.departed.items())
    for queue in state.tree:
        if queue.decayed is not None:
            uses[queue.path] = queue.decayed
        users = queue.entries.users
        for name, place in () if users is None else users.places.items():
            if place.decayed is not None:
                uses[path_of_user(queue, name)] = place.decayed
    return KeptUse(state.now_ns(), {path: use for path, use in sorted(uses.items()) if use.types})


class PlacedOn(NamedTuple):
    """An allocation, by names."""

    application_id: str
    allocation_key: str
    node_id: str


def unknown_to_applications(state: PartitionState, suspects: Iterable[PlacedOn]) -> tuple[PlacedOn, ...]:
    """Return those that are on their node now, and that their application does not have.

    The member of a swap is on its node before it counts for its application, which knows of the swap.
    """
    sides = _Sides(state)
    return tuple(
        placed
        for placed in suspects
        if sides.on_node(placed) and not sides.in_application(placed) and not _is_swapped_in(state, placed)
    )


def unknown_to_nodes(state: PartitionState, suspects: Iterable[PlacedOn]) -> tuple[PlacedOn, ...]:
    """Return those that their application has now, and that their node does not have."""
    sides = _Sides(state)
    return tuple(placed for placed in suspects if sides.in_application(placed) and not sides.on_node(placed))


def _is_swapped_in(state: PartitionState, placed: PlacedOn) -> bool:
    entry = state.entries.get(placed.application_id)
    return entry is not None and bool(entry.application.swaps.onto(placed.allocation_key))


class _Sides:
    """The holdings of the nodes and applications of some allocations; each is asked once."""

    def __init__(self, state: PartitionState) -> None:
        self._state = state
        self._nodes: dict[str, frozenset[PlacedOn]] = {}
        self._applications: dict[str, frozenset[PlacedOn]] = {}

    def on_node(self, placed: PlacedOn) -> bool:
        """Return whether the node has the allocation."""
        name = placed.node_id
        if name not in self._nodes:
            node = self._state.nodes.get(name)
            allocations = () if node is None else node.node.facts().allocations
            self._nodes[name] = frozenset(
                PlacedOn(each.ask.application_id, each.ask.allocation_key, name) for each in allocations
            )
        return placed in self._nodes[name]

    def in_application(self, placed: PlacedOn) -> bool:
        """Return whether the application has the allocation."""
        name = placed.application_id
        if name not in self._applications:
            entry = self._state.entries.get(name)
            rows = () if entry is None else entry.application.allocations.all()
            self._applications[name] = frozenset(
                PlacedOn(name, row.allocation.ask.allocation_key, row.allocation.node_id) for row in rows
            )
        return placed in self._applications[name]
