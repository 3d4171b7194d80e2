"""Preemption for a queue that is owed its guarantee: the attempt, from the first check to the last act.

The parts are in modules by subject: `queue_preemption_attempts` (how often), `queue_preemption_pool` (whom),
`queue_preemption_guarantees` (the arithmetic), `queue_preemption_nodes` (where),
`queue_preemption_judgement` (the RM's say) and `queue_preemption_selection` (the decision). What is decided
there changes nothing; it is carried out here, all or nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .placing import unreserve
from .preemption_acts import mark_all, release_all, remember, still_going
from .queue_preemption_attempts import CHECK_INTERVAL_NS, AttemptBudget, AttemptShape, due_ns
from .queue_preemption_guarantees import Ledger, QueueFactsOf
from .queue_preemption_pool import collect_victims
from .queue_preemption_records import record_of
from .queue_preemption_rooms import rooms_for, stale_reservations
from .queue_preemption_selection import NoPreemption, PreemptionPlan, PreemptionView, decide, lack_of_queues
from .resources import fits_actual

if TYPE_CHECKING:
    from .ask_walk import Candidate
    from .node_order import NodeSeat
    from .partition_state import PartitionState
    from .queue_preemption_rooms import StaleReservations
    from .seat import Seat

__all__ = ["AttemptBudget", "preempt_for_queue"]

NO_HELP: Final = NoPreemption.NO_NODE.text
PRECONDITIONS: Final = "Preemption preconditions failed"
EXHAUSTED: Final = "Preemption max attempts exhausted"


def preempt_for_queue(
    state: PartitionState,
    seat: Seat,
    candidate: Candidate,
    *,
    nodes_tried: bool,
    attempts: AttemptBudget,
) -> NodeSeat | None:
    """Ask the RM to end what stands in the way of an ask whose queue is owed its guarantee.

    Args:
        state: The partition.
        seat: The application of the ask.
        candidate: The ask; the caller has found neither room nor, with `nodes_tried`, a node to reserve.
        nodes_tried: The queues have room for the ask, and every node has been tried in vain.
        attempts: What this visit of the leaf may still spend; says when to look again after a refusal.

    Returns:
        The node to reserve for the ask, `None` if nothing was preempted.
    """
    now_ns = state.now_ns()
    attempts.look_again_ns = None
    refusal = _refusal(state, seat, candidate, attempts, now_ns, nodes_tried=nodes_tried)
    if refusal:
        _note(seat, candidate, refusal, now_ns)
        return None
    attempts.left -= 1
    node = _attempt(state, seat, candidate, nodes_tried=nodes_tried)
    if isinstance(node, NoPreemption):
        if node.holds_for_shape:
            shape = _shape(seat, candidate, nodes_tried=nodes_tried)
            state.fruitless_preemptions.note(shape, now_ns, _stamp(state))
        attempts.look_again_ns = now_ns + CHECK_INTERVAL_NS
        seat.application.note_preemption(candidate.ask.allocation_key, now_ns, triggered=False)
        _note(seat, candidate, node.text, now_ns)
        return None
    return node


def _refusal(
    state: PartitionState,
    seat: Seat,
    candidate: Candidate,
    attempts: AttemptBudget,
    now_ns: int,
    *,
    nodes_tried: bool,
) -> str:
    """Say why no attempt is made now; the empty text if one is to be made. Cheap: most asks end here."""
    ask = candidate.ask
    if not ask.allow_preempt_other or ask.required_node:
        return PRECONDITIONS
    if candidate.triggered_preemption and not _may_try_again(state, seat, candidate, nodes_tried=nodes_tried):
        return PRECONDITIONS
    due = due_ns(candidate, seat.queue.settings.preemption_delay_ns)
    if now_ns < due:
        attempts.look_again_ns = due
        return PRECONDITIONS
    if attempts.left <= 0:
        attempts.look_again_ns = now_ns
        return EXHAUSTED
    shape = _shape(seat, candidate, nodes_tried=nodes_tried)
    attempts.look_again_ns = state.fruitless_preemptions.until_ns(shape, now_ns, _stamp(state))
    return NO_HELP if attempts.look_again_ns is not None else ""


def _may_try_again(state: PartitionState, seat: Seat, candidate: Candidate, *, nodes_tried: bool) -> bool:
    """Tell whether an ask may preempt a second time.

    Its victims must be gone, and what they gave back as well: the node that was reserved for it, or the room
    of a queue that had enough at the time. With both it only waits for the RM's predicates to agree.
    """
    if candidate.reserved_node and nodes_tried:
        return False
    before = state.preemptions.last_for(candidate.ask.allocation_key, seat.application_id)
    return before is None or not still_going(state, before)


def _shape(seat: Seat, candidate: Candidate, *, nodes_tried: bool) -> AttemptShape:
    ask = candidate.ask
    return AttemptShape(seat.queue.path, ask.resource, ask.priority, nodes_tried, candidate.reserved_node)


def _stamp(state: PartitionState) -> tuple[int, int, int]:
    return (state.changes, state.node_changes, state.allocations)


def _note(seat: Seat, candidate: Candidate, text: str, now_ns: int) -> None:
    key = candidate.ask.allocation_key
    if text != NO_HELP:
        seat.application.note_refusal(key, text, now_ns)
    seat.application.note_refusal(key, NO_HELP, now_ns)


# ------------------------------------------------------------------------------------- the attempt


def _attempt(
    state: PartitionState,
    seat: Seat,
    candidate: Candidate,
    *,
    nodes_tried: bool,
) -> NodeSeat | NoPreemption:
    """Decide and carry it out; return the node to reserve, or why nothing was preempted."""
    facts_of = QueueFactsOf(seat.queue)
    if _is_hopeless(seat, candidate, facts_of):
        return NoPreemption.GUARANTEE
    stale = stale_reservations(state, candidate.ask)
    view = _view(state, seat, candidate, facts_of, stale, nodes_tried=nodes_tried)
    plan = decide(view, state.around.predicates)
    if isinstance(plan, NoPreemption):
        return plan
    node = state.nodes.get(plan.node_id)
    if node is None or mark_all(plan.victims) is not None:
        return NoPreemption.TOO_LATE
    _carry_out(state, seat, view, plan)
    if plan.node_id in stale and node.reserved:
        unreserve(state, *stale[plan.node_id])
    return node


def _is_hopeless(seat: Seat, candidate: Candidate, facts_of: QueueFactsOf) -> bool:
    """Tell without a look at any allocation whether nothing is owed to the ask, whoever would go."""
    leaf = facts_of(seat.queue)
    ledger = Ledger(leaf)
    own = ledger.own_remaining(leaf)
    return ledger.remaining(leaf) is None or not fits_actual(own, candidate.ask.resource)


def _view(
    state: PartitionState,
    seat: Seat,
    candidate: Candidate,
    facts_of: QueueFactsOf,
    stale: StaleReservations,
    *,
    nodes_tried: bool,
) -> PreemptionView:
    ask = candidate.ask
    pool = collect_victims(seat.queue, ask, facts_of)
    rooms = rooms_for(
        state,
        ask,
        pool,
        reserved_node=candidate.reserved_node,
        nodes_tried=nodes_tried,
        stale=stale,
    )
    return PreemptionView(
        ask=ask,
        leaf=facts_of(seat.queue),
        lack=lack_of_queues(ask, [(level.maximum, level.allocated) for level in seat.queue.above]),
        pool=pool,
        rooms=rooms,
        nodes_tried=nodes_tried,
    )


def _carry_out(state: PartitionState, seat: Seat, view: PreemptionView, plan: PreemptionPlan) -> None:
    key = view.ask.allocation_key
    now_ns = state.now_ns()
    release_all(state, plan.victims, f"preempting allocations to free up resources to run ask: {key}")
    seat.application.note_preemption(key, now_ns, triggered=True)
    remember(state, record_of(view, plan, seat, now_ns))
