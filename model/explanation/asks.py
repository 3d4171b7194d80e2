"""Everything that blocks an ask, in the order in which a cycle would meet it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias, final

from ..applications.ask_walk import Candidate, CandidateKind
from ..applications.pending_asks import AskShape, shape_of
from ..applications.report import ApplicationReport, WaitingAsk
from ..nodes.entry import NodeEntry
from ..nodes.windows import WindowRefusal
from ..planning.planned_jobs import JobOwner, backfilling_queue, gang_members
from ..preemption.guarantee.attempt import EXHAUSTED, PRECONDITIONS, Asking, plan_now
from ..preemption.guarantee.attempt_budget import NoPreemption
from ..preemption.guarantee.gang_nodes import as_one
from ..preemption.guarantee.ledger import ProjectedUsage, QueueFactsOf, committed_resources
from ..preemption.guarantee.limited import lets_end_inside, limits_without_room
from ..preemption.protection import ProtectedVictims
from ..preemption.required_node import NO_HELP, PROTECTED, protected_on
from ..queues.application_entry import ApplicationEntry
from ..queues.queue import Queue
from ..queues.quota import may_preempt
from ..resources.resource import Resource, fits, resource_text
from ..state.node_windows import refusal_for
from ..state.partition_state import PartitionState
from ..state.preemption_log import PreemptionRecord
from ..values.allocation import NO_GANG_ROOM, Ask, Refusal, RefusalReason
from ..values.messages import User
from .blockers import (
    Blocker,
    NodeSummary,
    SubjectKind,
    node_lacks,
    obstacle_of,
    queue_quota_blockers,
    summarise,
    used_by_others,
    user_quota_blockers,
)
from .planned_starts import StartChecker
from .shared_summaries import SharedSummaries

ATTEMPT_TEXTS: Final = frozenset((*(why.text for why in NoPreemption), PRECONDITIONS, EXHAUSTED))
"""The notes of attempts to preempt that have failed."""
_OWN_TEXTS: Final = frozenset(
    (*(reason.value for reason in RefusalReason), *ATTEMPT_TEXTS, NO_HELP, PROTECTED)
)
"""The notes on asks besides the texts of their RMs."""
_HELPED: Final = NO_GANG_ROOM | {RefusalReason.QUEUE_QUOTA, RefusalReason.NO_NODE_FITS}
"""The reasons that preemption for a guarantee, or inside of a leaf, can remove."""
RefusedNodes: TypeAlias = "Mapping[str, Mapping[str, str]]"
"""By the keys of asks: the nodes that the resource manager refuses, and why."""
NOT_ASKED: Final[RefusedNodes] = {}
_NONE_REFUSED: Final[Mapping[str, str]] = {}
_Shape: TypeAlias = "tuple[Resource, int, str, str, bool]"
WITHOUT_NODES: Final = frozenset({RefusalReason.QUEUE_QUOTA, RefusalReason.USER_QUOTA})
"""Why an ask preempts for which no node was tried."""


class AskObstacles(NamedTuple):
    """The blockers of an ask, and the answers of nodes; `None` if they are not asked."""

    blockers: tuple[Blocker, ...]
    nodes: NodeSummary | None


@final
class AskChecker:
    """Applies every check of the cycle to the asks of one application; those of one shape share an answer.

    Args:
        state: The partition.
        leaf: The queue of the application; it may be a preview of one that does not exist.
        application_id: The application, which may be unknown.
        user: The user that it runs for.
        refused: The nodes that the resource manager refuses and why, by the key of the first ask of a shape.
        summaries: The summaries of nodes that are shared with other applications, `None` for none.
        tags: The tags of the application.
    """

    __slots__ = (
        "_application_id",
        "_leaf",
        "_nodes",
        "_quotas",
        "_refused",
        "_state",
        "_summaries",
        "_tags",
        "_user",
    )

    def __init__(
        self,
        state: PartitionState,
        leaf: Queue,
        application_id: str,
        user: User,
        refused: RefusedNodes = NOT_ASKED,
        *,
        summaries: SharedSummaries | None = None,
        tags: Mapping[str, str],
    ) -> None:
        self._state = state
        self._leaf = leaf
        self._application_id = application_id
        self._user = user
        self._refused = refused
        self._summaries = SharedSummaries() if summaries is None else summaries
        self._tags = tags
        self._quotas: dict[AskShape, tuple[Blocker, ...]] = {}
        self._nodes: dict[AskShape, NodeSummary] = {}

    def check_waiting(self, waiting: WaitingAsk, report: ApplicationReport) -> AskObstacles:
        """Check an ask that waits, with what the last walk noted about it."""
        ask = waiting.ask
        if waiting.waits_for_placeholder:
            return AskObstacles((_waits_for_placeholder(ask, report),), None)
        obstacles = self.check(ask, reserved_node=waiting.reserved_node)
        if any(blocker.reason is RefusalReason.WINDOW for blocker in obstacles.blockers):
            return obstacles
        refused = self._refused_by_predicates(waiting, obstacles)
        if refused is None:
            return obstacles
        nodes = obstacles.nodes
        if nodes is not None and nodes.available:
            nodes = nodes.refused(f"refused: {refused.detail}")
        return AskObstacles((*obstacles.blockers, refused), nodes)

    def check(self, ask: Ask, *, reserved_node: str = "") -> AskObstacles:
        """Check an ask without the RM's predicates; `reserved_node` is the empty text without one."""
        quotas = self._quotas_for(ask)
        if ask.required_node:
            node = self._required_node(ask, reserved_node) or self._kept_node(ask)
            # Only a node with room shows that the root has no room: otherwise its victims may help.
            claim = self._state.claims.find(ask.allocation_key)
            root = () if node else queue_quota_blockers(self._leaf, self._leaf.above[-1:], ask, claim)
            return AskObstacles((*quotas, *node, *root), None)
        nodes = self._summary(ask, reserved_node)
        if nodes.with_room:
            kept = () if nodes.available else self._kept_nodes(ask, reserved_node)
            return AskObstacles((*quotas, *kept), nodes)
        blocker = Blocker(reason=RefusalReason.NO_NODE_FITS, kind=SubjectKind.NODES, subject="")
        return AskObstacles((*quotas, blocker), nodes)

    def _quotas_for(self, ask: Ask) -> tuple[Blocker, ...]:
        shape = shape_of(ask)
        claim = self._state.claims.find(ask.allocation_key)
        known = self._quotas.get(shape)
        if known is None or claim is not None:
            path = self._leaf.path
            users = user_quota_blockers(self._state, path, self._application_id, self._user, ask)
            levels = self._leaf.above[:-1] if ask.required_node else self._leaf.above
            known = (*users, *queue_quota_blockers(self._leaf, levels, ask, claim))
            if claim is None:
                self._quotas[shape] = known
        return known

    def _summary(self, ask: Ask, reserved_node: str) -> NodeSummary:
        refused = self._refused.get(ask.allocation_key, _NONE_REFUSED)
        windows = self._windows(ask)
        if windows is not None:
            of_windows = {node_id: windows.text_for(node_id) for node_id in windows.node_ids}
            return summarise(
                self._state.nodes, ask.resource, own_node=reserved_node, refused={**refused, **of_windows}
            )
        own = self._state.nodes.get(reserved_node) if reserved_node else None
        if own is not None and obstacle_of(own, ask.resource, own=True) is None:
            return summarise(self._state.nodes, ask.resource, own_node=reserved_node, refused=refused)
        shape = shape_of(ask)
        known = self._nodes.get(shape)
        if known is None:
            known = self._summaries.of(self._state, ask.resource, refused)
            if ask.predicate_class or not refused:
                self._nodes[shape] = known
        return known

    def _windows(self, ask: Ask) -> WindowRefusal | None:
        return refusal_for(self._state, ask, self._leaf, self._user, self._tags)

    def _kept_nodes(self, ask: Ask, reserved_node: str) -> tuple[Blocker, ...]:
        """Return the windows that keep an ask from nodes with room, if there are any."""
        nodes = (
            node
            for node in self._state.nodes
            if obstacle_of(node, ask.resource, own=node.node_id == reserved_node) is None
        )
        return _blocker_by(self._windows(ask), nodes, SubjectKind.NODES, "")

    def _kept_node(self, ask: Ask) -> tuple[Blocker, ...]:
        """Return the windows that keep an ask from the node that it needs, if there are any."""
        node = self._state.nodes.get(ask.required_node)
        nodes = () if node is None else (node,)
        return _blocker_by(self._windows(ask), nodes, SubjectKind.NODE, ask.required_node)

    def _required_node(self, ask: Ask, reserved_node: str) -> tuple[Blocker, ...]:
        node = self._state.nodes.get(ask.required_node)
        if node is None:
            reason = RefusalReason.REQUIRED_NODE_UNKNOWN
            return (Blocker(reason=reason, kind=SubjectKind.NODE, subject=ask.required_node),)
        room = node.available if fits(node.capacity, ask.resource) else node.capacity
        holders = _other_holders(node, ask, reserved_node)
        if fits(room, ask.resource) and not holders:
            return ()
        lacks = node_lacks(ask.resource, room, node.capacity)
        foreign = used_by_others(node, lacks)
        details = [f"reserved for {', '.join(holders)}"] if holders else []
        if foreign:
            details.append(f"other schedulers use {resource_text(foreign)}")
        return (
            Blocker(
                reason=RefusalReason.REQUIRED_NODE_FULL,
                kind=SubjectKind.NODE,
                subject=node.node_id,
                lacks=lacks,
                detail="; ".join(details),
            ),
        )

    def _refused_by_predicates(self, waiting: WaitingAsk, obstacles: AskObstacles) -> Blocker | None:
        """Return the RM's refusal of the nodes with room, from the last walk that tried the ask."""
        if self._state.node_checks is None:
            return None
        nodes = obstacles.nodes
        if not (nodes.with_room if nodes is not None else not obstacles.blockers):
            return None
        if nodes is not None and not nodes.available:
            return Blocker(
                reason=RefusalReason.PREDICATES,
                kind=SubjectKind.NODES,
                subject="",
            )
        for refusal in self._last_refusals(waiting):
            if refusal.reason is RefusalReason.PREDICATES:
                return Blocker(
                    reason=refusal.reason,
                    kind=SubjectKind.NODE if waiting.ask.required_node else SubjectKind.NODES,
                    subject=refusal.subject,
                    detail=refusal.detail,
                    until_ns=refusal.until_ns,
                )
        return _refused_where_reserved(waiting)

    def _last_refusals(self, waiting: WaitingAsk) -> tuple[Refusal, ...]:
        """Return what refused an ask in the last walk that tried it."""
        backfills = backfilling_queue(self._leaf)
        if backfills is None:
            return waiting.refusals
        refusal = self._state.ends.denied.get(backfills.path, {}).get(waiting.ask.allocation_key)
        return () if refusal is None else (refusal,)


def _blocker_by(
    windows: WindowRefusal | None, nodes: Iterable[NodeEntry], kind: SubjectKind, subject: str
) -> tuple[Blocker, ...]:
    kept = None if windows is None else windows.on(nodes)
    if kept is None:
        return ()
    return (
        Blocker(
            reason=RefusalReason.WINDOW, kind=kind, subject=subject, detail=kept.text, until_ns=kept.until_ns
        ),
    )


def _refused_where_reserved(waiting: WaitingAsk) -> Blocker | None:
    """Return the RM's refusal of the node that is reserved for an ask, which no walk tries."""
    noted = [each for each in waiting.noted if each.text not in _OWN_TEXTS]
    if not waiting.reserved_node or not noted:
        return None
    return Blocker(
        reason=RefusalReason.PREDICATES,
        kind=SubjectKind.NODE,
        subject=waiting.reserved_node,
        detail=max(noted, key=lambda each: each.last_ns).text,
    )


def _waits_for_placeholder(ask: Ask, report: ApplicationReport) -> Blocker:
    """Return the blocker of a member: the counts of its placeholders, which need the quotas and the room."""
    (counts,) = [group for group in report.task_groups if group.name == ask.task_group_name]
    return Blocker(
        reason=RefusalReason.WAITS_FOR_PLACEHOLDER,
        kind=SubjectKind.TASK_GROUP,
        subject=counts.name,
        detail=(
            f"{counts.waiting} of {counts.placeholders} placeholders waiting, {counts.placed} placed, "
            f"{counts.replaced} replaced, {counts.ended} ended"
        ),
    )


def _other_holders(node: NodeEntry, ask: Ask, reserved_node: str) -> tuple[str, ...]:
    """Return the other asks that have reserved a required node."""
    if not node.reserved or reserved_node == node.node_id:
        return ()
    keys = node.node.facts().reservations
    return tuple(key for key in keys if key != ask.allocation_key)


def not_entitled(state: PartitionState, leaf: Queue, ask: Ask) -> str:
    """Return of which types a queue has too little left of its guarantee; else nothing may end for it."""
    facts = QueueFactsOf(leaf, committed_resources(state, leaf, ask.allocation_key))(leaf)
    ledger = ProjectedUsage(facts, ask.resource)
    short = [
        f"it asks for {resource_text(Resource({name: asked}))}, and {leaf.path} has "
        f"{resource_text(Resource({name: max(0, left)}))} left of its guarantee"
        for name, asked in ask.resource.items()
        if (left := ledger.owed(name)) is not None and asked > left
    ]
    return "; ".join(short) or "no other queue uses more than its guarantee"


def helped_by_preemption(leaf: Queue) -> frozenset[RefusalReason]:
    """Return what preemption for asks of a leaf can change."""
    return _HELPED | {RefusalReason.USER_QUOTA} if lets_end_inside(leaf) else _HELPED


def kind_of_attempt(reasons: Collection[RefusalReason]) -> CandidateKind:
    """Return how an attempt to preempt is made for an ask that is refused for these reasons."""
    return CandidateKind.LIMIT if RefusalReason.USER_QUOTA in reasons else CandidateKind.PREEMPTION


def attempting(entry: ApplicationEntry, ask: Ask) -> tuple[Ask, tuple[Ask, ...]]:
    """Return what an attempt for an ask is made for: itself, or its gang as one ask with the members."""
    members = gang_members(entry) if entry.facts.gang_waits else ()
    return (as_one(members), members) if members else (ask, ())


def plan_for(
    state: PartitionState,
    entry: ApplicationEntry,
    waiting: WaitingAsk,
    reasons: Collection[RefusalReason],
) -> PreemptionRecord | NoPreemption | ProtectedVictims:
    """Return what an attempt for an ask, or for its gang, would come to now; `reasons` are why it waits."""
    ask, members = attempting(entry, waiting.ask)
    kind = kind_of_attempt(reasons)
    if members:
        has_room = not limits_without_room(state, entry, ask)
        kind = CandidateKind.PREEMPTION if has_room else CandidateKind.LIMIT
    candidate = Candidate(ask, kind, "" if members else waiting.reserved_node, False, None)
    beside = StartChecker(state, JobOwner.of(entry)).beside(members or (ask,))
    tried = not {*reasons} & WITHOUT_NODES
    return plan_now(Asking(state, entry, candidate, tried, members, beside))


def protected_text(protected: ProtectedVictims) -> str:
    """Return how many possible victims are protected, and which one is the first that will not be."""
    return (
        f"{protected.number} of {protected.possible} possible victims are protected, "
        f"the first, {protected.first.victim.key}, by {protected.first.why}"
    )


@final
class ProtectionChecker:
    """Says of the asks of one application whether protection alone keeps them from preempting.

    Args:
        state: The partition.
        entry: The application.
    """

    def __init__(self, state: PartitionState, entry: ApplicationEntry) -> None:
        self._state = state
        self._entry = entry
        self._is_used = bool(state.config.policies.protection) or any(
            queue.settings.min_runtime_ns or queue.settings.victims_max for queue in state.tree
        )
        self._known: dict[_Shape, Blocker | None] = {}
        """Asks of one shape have one answer; each is as costly as an attempt to preempt."""

    def add_to(self, waiting: WaitingAsk, obstacles: AskObstacles) -> AskObstacles:
        """Return what blocks an ask, with the protection of its victims where that is in the way."""
        reasons = {blocker.reason for blocker in obstacles.blockers}
        if not self._is_used or not reasons:
            return obstacles
        ask = waiting.ask
        nodes_tried = not reasons & WITHOUT_NODES
        reserved_node = "" if self._entry.facts.gang_waits else waiting.reserved_node
        shape = (ask.resource, ask.priority, ask.required_node, reserved_node, nodes_tried)
        if shape not in self._known:
            protected = self._protected(waiting, reasons)
            self._known[shape] = None if protected is None else _blocker(protected)
        blocker = self._known[shape]
        return obstacles if blocker is None else obstacles._replace(blockers=(*obstacles.blockers, blocker))

    def _protected(self, waiting: WaitingAsk, reasons: set[RefusalReason]) -> ProtectedVictims | None:
        state, entry, ask = self._state, self._entry, waiting.ask
        if ask.required_node:
            node = state.nodes.get(ask.required_node)
            is_full = reasons == {RefusalReason.REQUIRED_NODE_FULL}
            return None if node is None or not is_full else protected_on(state, entry, ask, node)
        is_tried = state.preemption_enabled and ask.allow_preempt_other and may_preempt(entry.queue)
        if not is_tried or reasons - helped_by_preemption(entry.queue):
            return None
        planned = plan_for(state, entry, waiting, reasons)
        return planned if isinstance(planned, ProtectedVictims) else None


def _blocker(protected: ProtectedVictims) -> Blocker:
    first = protected.first
    return Blocker(
        reason=RefusalReason.PROTECTED,
        kind=SubjectKind.QUEUE,
        subject=first.queue.path,
        detail=protected_text(protected),
        position=first.position,
        until_ns=first.until_ns,
    )
