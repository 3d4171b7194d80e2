"""Everything that blocks an ask, in the order in which a cycle would meet it."""

from __future__ import annotations

from typing import Final, NamedTuple, final

from ..applications.pending_asks import AskShape, shape_of
from ..applications.report import ApplicationReport, WaitingAsk
from ..nodes.block import NodeEntry
from ..planning.planned_jobs import backfilling_queue
from ..preemption.guarantee.attempt import EXHAUSTED, PRECONDITIONS
from ..preemption.guarantee.attempt_budget import NoPreemption
from ..preemption.guarantee.ledger import ProjectedUsage, QueueFactsOf, committed_resources
from ..preemption.required_node import NO_HELP, PROTECTED
from ..queues.queue import Queue
from ..resources.quantity_texts import resource_text
from ..resources.resource import Resource, fits
from ..state.partition_state import PartitionState
from ..values.allocation import Ask
from ..values.refusals import Refusal, RefusalReason
from ..values.users import User
from .blockers import Blocker, SubjectKind
from .node_summary import NodeSummary, node_lacks, summarise, used_by_others
from .quotas import queue_quota_blockers, user_quota_blockers

ATTEMPT_TEXTS: Final = frozenset((*(why.text for why in NoPreemption), PRECONDITIONS, EXHAUSTED))
"""What is noted of attempts to preempt that have failed."""
_OWN_TEXTS: Final = frozenset(
    (*(reason.value for reason in RefusalReason), *ATTEMPT_TEXTS, NO_HELP, PROTECTED)
)
"""What is noted on asks besides the words of their RMs."""


class AskObstacles(NamedTuple):
    """What blocks an ask, and what the nodes say; `None` where they are not asked."""

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
    """

    __slots__ = ("_application_id", "_leaf", "_nodes", "_quotas", "_state", "_user")

    def __init__(self, state: PartitionState, leaf: Queue, application_id: str, user: User) -> None:
        self._state = state
        self._leaf = leaf
        self._application_id = application_id
        self._user = user
        self._quotas: dict[AskShape, tuple[Blocker, ...]] = {}
        self._nodes: dict[AskShape, NodeSummary] = {}

    def check_waiting(self, waiting: WaitingAsk, report: ApplicationReport) -> AskObstacles:
        """Check an ask that waits, with what the last walk noted about it."""
        ask = waiting.ask
        if waiting.waits_for_placeholder:
            return AskObstacles((_waits_for_placeholder(ask, report),), None)
        obstacles = self.check(ask, reserved_node=waiting.reserved_node)
        refused = self._refused_by_predicates(waiting, obstacles)
        if refused is None:
            return obstacles
        return AskObstacles((*obstacles.blockers, refused), obstacles.nodes)

    def check(self, ask: Ask, *, reserved_node: str = "") -> AskObstacles:
        """Check an ask without the RM's predicates; `reserved_node` is the empty text for none."""
        quotas = self._quotas_for(ask)
        if ask.required_node:
            node = self._required_node(ask, reserved_node)
            # Only a node with room shows that the root has none: otherwise there may be victims on the node.
            claim = self._state.claims.find(ask.allocation_key)
            root = () if node else queue_quota_blockers(self._leaf, self._leaf.above[-1:], ask, claim)
            return AskObstacles((*quotas, *node, *root), None)
        nodes = self._summary(ask, reserved_node)
        if nodes.with_room:
            return AskObstacles(quotas, nodes)
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
        if reserved_node:
            return summarise(self._state.nodes, ask.resource, own_node=reserved_node)
        shape = shape_of(ask)
        known = self._nodes.get(shape)
        if known is None:
            known = self._nodes[shape] = summarise(self._state.nodes, ask.resource)
        return known

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
    return "; ".join(short) or "no other queue uses more than its guarantee of what is asked for"
