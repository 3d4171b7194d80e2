"""The steps that change a partition when an ask is placed or a node reserved: all or nothing each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack

from ..applications.ask_walk import AskWalk
from ..applications.effects import Answer, ApplicationState
from ..applications.life import view_of_ask
from ..applications.pending_asks import QUEUE_CHECK, USER_CHECK
from ..nodes.entry import NodeEntry
from ..queues import quota as queue_quota
from ..queues.application_entry import ApplicationEntry
from ..queues.queue import Queue
from ..queues.quota import try_charge
from ..resources.resource import EMPTY, Resource, subtract, total_of
from ..values.allocation import Allocation, Ask
from ..values.events import ChangeDetail, ChangeType
from ..values.facts import HeadroomFact
from ..values.messages import AllocationPlaced
from .applying import apply, is_starting
from .charges import drop_reservations, end_claim, report_all_placed, report_placed
from .claims import ReservedAsk
from .partition_state import PartitionState


def commit(state: PartitionState, entry: ApplicationEntry, ask: Ask, node: NodeEntry) -> bool:
    """Place an ask on a node: charge the queues, take the room, place the ask; all or nothing."""
    resource = ask.resource
    queue = entry.queue
    refused = _charge_claimed(state, queue, ask) if state.claims.by_key else try_charge(queue, resource)
    if refused is not None:
        return False
    now_ns = state.host.now_ns()
    allocation = Allocation(ask, node.node_id, now_ns, node.instance_type)
    answer = available = None
    try:
        available = node.node.try_add(allocation)
        if available is not None:
            answer = entry.application.allocations.try_place(allocation, now_ns)
    finally:  # Also where one of them breaks.
        if answer is None:
            queue_quota.release_charge(queue, resource)
            if available is not None:
                state.nodes.give(node, node.node.remove(ask.allocation_key))
    if available is None:
        state.nodes.take(node, node.node.facts().available)
        return False
    if answer is None:
        return False
    state.nodes.take(node, available)
    group = state.limits.increase(queue.path, entry.application_id, entry.user, resource)
    finish_placing(state, entry, allocation, answer, group)
    return True


def _charge_claimed(state: PartitionState, queue: Queue, ask: Ask) -> Queue | None:
    """Charge the queues where asks have claims: what its own claim holds is for this ask.

    So is the room that others hold in the root, if the ask needs its node: the capacity of all nodes is not a
    quota of such an ask.
    """
    root = queue.above[-1]
    with state.claims.lifted(ask.allocation_key):
        held = root.held if ask.required_node else EMPTY
        root.change_held(subtract(EMPTY, held))
        try:
            return try_charge(queue, ask.resource)
        finally:
            root.change_held(held)


def commit_all(
    state: PartitionState, entry: ApplicationEntry, placements: Sequence[tuple[Ask, NodeEntry]]
) -> bool:
    """Place asks of one application at once: one charge of its queues with their sum; all of them or none."""
    total = total_of(ask.resource for ask, _ in placements)
    if try_charge(entry.queue, total) is not None:
        return False
    now_ns = state.now_ns()
    allocations = [Allocation(ask, node.node_id, now_ns, node.instance_type) for ask, node in placements]
    available: dict[NodeEntry, Resource] = {}
    answer = declined = None
    with ExitStack() as undo:  # Also where a step breaks.
        undo.callback(queue_quota.release_charge, entry.queue, total)
        for allocation, (ask, node) in zip(allocations, placements, strict=True):
            left = node.node.try_add(allocation)
            if left is None:
                declined = node
                break
            undo.callback(node.node.remove, ask.allocation_key)
            available[node] = left
        else:
            answer = entry.application.allocations.try_place_all(allocations, now_ns)
        if answer is not None:
            undo.pop_all()
    if declined is not None:  # It has less than it was known to have.
        state.nodes.take(declined, declined.node.facts().available)
    if answer is None:
        return False
    for node, left in available.items():
        state.nodes.take(node, left)
    group = state.limits.increase(entry.queue.path, entry.application_id, entry.user, total)
    _finish_placing_all(state, entry, allocations, answer, group)
    return True


def _finish_placing_all(
    state: PartitionState,
    entry: ApplicationEntry,
    allocations: Sequence[Allocation],
    answer: Answer,
    group: str | None,
) -> None:
    """Count asks as placed that queues, user, nodes and application have accepted; report them to the RM."""
    report_all_placed(state, entry, allocations, answer, group)
    for allocation in allocations:
        ask = allocation.ask
        entry.remove_pending(ask)
        end_claim(state, ask.allocation_key)
        state.placed.count(ask, entry.queue.path, allocation.bound_at_ns - ask.created_at_ns)
    _note_placed(state, allocations)
    if answer.reservations:
        drop_reservations(state, answer.reservations)
    apply(state, entry, answer)
    for allocation in allocations:
        state.host.announce(AllocationPlaced(allocation))


def finish_placing(
    state: PartitionState, entry: ApplicationEntry, allocation: Allocation, answer: Answer, group: str | None
) -> None:
    """Count an ask as placed that queues, user, node and application have accepted; report it to the RM."""
    if answer.failed_checks:
        report_passed(state, entry, allocation.ask, answer.failed_checks)
    report_placed(state, entry, allocation, answer, group)
    entry.remove_pending(allocation.ask)
    if state.node_checks is not None or state.class_orders is not None:
        _note_placed(state, (allocation,))
    ask = allocation.ask
    if state.claims.by_key:
        end_claim(state, ask.allocation_key)
    state.placed.count(ask, entry.queue.path, allocation.bound_at_ns - ask.created_at_ns)
    if answer.reservations:
        drop_reservations(state, answer.reservations)
    apply(state, entry, answer)
    state.host.announce(AllocationPlaced(allocation))


def _note_placed(state: PartitionState, allocations: Sequence[Allocation]) -> None:
    """Forget what is known of the waiting asks, and report the placements to the policy of nodes."""
    if state.node_checks is not None:
        state.node_checks.forget(keys=[allocation.ask.allocation_key for allocation in allocations])
    if state.class_orders is not None:
        for allocation in allocations:
            state.class_orders.note_placed(view_of_ask(allocation.ask), allocation.node_id)


def count_accepted(entry: ApplicationEntry) -> None:
    """Count an application that does not run yet for the maxima of its queues: it has an allocation now."""
    if entry.facts.state is ApplicationState.ACCEPTED and is_starting(entry.facts):
        for level in entry.queue.above:
            level.count_accepted(entry.application_id)


def reserve(
    state: PartitionState, entry: ApplicationEntry, ask: Ask, node: NodeEntry, *, required: bool
) -> bool:
    """Reserve a node for an ask: the node and the application, or neither."""
    if not node.node.try_reserve(ask.allocation_key, ask.resource, required=required):
        return False
    answer = entry.application.reservations.try_add(
        ask.allocation_key,
        node.node_id,
        state.now_ns(),
        required=required,
    )
    if answer is None:
        node.node.unreserve(ask.allocation_key)
        return False
    state.reserved.add(ReservedAsk(entry, node.node_id, ask))
    state.nodes.set_reserved(node, reserved=True)
    state.events.note_reservation(ChangeType.ADD, node.node_id, ask.allocation_key, ask.resource)
    apply(state, entry, answer)
    return True


def ordinary_reservations(state: PartitionState, node: NodeEntry) -> list[tuple[ApplicationEntry, str]]:
    """Return the reservations of a node that an ask has precedence over which can run nowhere else.

    Each is given by its application and the key of its ask. Where there is one, nothing else is reserved: a
    node has one reservation, or only those of asks that can run nowhere else.
    """
    on_node = state.reserved.on_node(node.node_id)
    return [(each.entry, each.ask.allocation_key) for each in on_node if not each.ask.required_node]


def unreserve(state: PartitionState, entry: ApplicationEntry, allocation_key: str) -> None:
    """Drop a reservation everywhere it is counted."""
    answer = entry.application.reservations.remove(allocation_key)
    if answer is not None:
        drop_reservations(state, answer.reservations)
        apply(state, entry, answer)


def unreserve_all(state: PartitionState, reservations: Iterable[tuple[ApplicationEntry, str]]) -> None:
    """Drop reservations, each given by its application and the key of its ask."""
    for entry, key in reservations:
        unreserve(state, entry, key)


def drop_left_reserved(state: PartitionState) -> None:
    """Drop the reservations of asks whose claims have ended, and that are to keep none without."""
    left = state.claims.left_reserved
    while left:
        allocation_key, entry = left.popitem()
        unreserve(state, entry, allocation_key)


def report_checks(state: PartitionState, walk: AskWalk) -> None:
    """Report which asks of a walk fit the headroom no longer, or again; the walk forgets them."""
    checks, walk.checks = walk.checks, []
    report = state.events.sink.report
    if report is None:
        return
    for ask, check, available in checks:
        path = walk.queue_path if check == QUEUE_CHECK else None
        report(HeadroomFact(1, state.rm_id, walk.now_ns, ask, path, available))


def report_passed(state: PartitionState, entry: ApplicationEntry, ask: Ask, failed_checks: int) -> None:
    """Report that an ask which was placed fits what it had not fitted before."""
    report = state.events.sink.report
    if report is None:
        return
    now_ns = state.now_ns()
    if failed_checks & USER_CHECK:
        report(HeadroomFact(1, state.rm_id, now_ns, ask, None, None))
    if failed_checks & QUEUE_CHECK:
        report(HeadroomFact(1, state.rm_id, now_ns, ask, entry.queue.path, None))


def set_runnable(state: PartitionState, entry: ApplicationEntry, *, in_queue: bool, by_user: bool) -> None:
    """Note whether the maxima of applications let an application start, and report what has changed."""
    name = entry.application_id
    if in_queue is not entry.runnable_in_queue:
        entry.runnable_in_queue = in_queue
        detail = ChangeDetail.APP_RUNNABLE_QUEUE if in_queue else ChangeDetail.APP_CANNOTRUN_QUEUE
        state.events.note(ChangeType.NONE, detail, name)
    if by_user is not entry.runnable_by_user:
        entry.runnable_by_user = by_user
        detail = ChangeDetail.APP_RUNNABLE_QUOTA if by_user else ChangeDetail.APP_CANNOTRUN_QUOTA
        state.events.note(ChangeType.NONE, detail, name)
