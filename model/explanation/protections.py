"""Whether preemption would give an ask room, and waits only because its victims have not run long enough."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, TypeAlias, final

from ..applications.ask_walk import Candidate, CandidateKind
from ..applications.report import WaitingAsk
from ..planning.planned_jobs import JobOwner, gang_members
from ..preemption.guarantee.attempt import Asking, plan_now
from ..preemption.guarantee.attempt_budget import NoPreemption
from ..preemption.guarantee.gang_nodes import as_one
from ..preemption.guarantee.limited import lets_end_inside, limits_without_room
from ..preemption.protection import ProtectedVictims
from ..preemption.required_node import protected_on
from ..queues.application_entry import ApplicationEntry
from ..queues.queue import Queue
from ..queues.quota import may_preempt
from ..resources.resource import Resource
from ..state.partition_state import PartitionState
from ..state.preemption_log import PreemptionRecord
from ..values.allocation import Ask
from ..values.refusals import RefusalReason
from .asks import AskObstacles
from .blockers import Blocker, SubjectKind
from .planned_starts import StartChecker

_HELPED: Final = frozenset({RefusalReason.QUEUE_QUOTA, RefusalReason.NO_NODE_FITS, RefusalReason.GANG_ROOM})
"""What preemption for a guarantee, or inside of a leaf, can change."""

_Shape: TypeAlias = "tuple[Resource, int, str, str, bool]"


WITHOUT_NODES: Final = frozenset({RefusalReason.QUEUE_QUOTA, RefusalReason.USER_QUOTA})
"""Why an ask preempts for which no node was tried."""


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
        self._is_used = any(
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
