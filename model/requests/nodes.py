"""Requests about nodes, carried out on a partition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..applications.effects import Answer
from ..identifiers import id_refusal, names_refusal
from ..nodes.entry import NodeEntry
from ..nodes.node import CORDONED, Node
from ..queues.application_entry import ApplicationEntry
from ..queues.quota import release_charge
from ..resources.resource import EMPTY, Resource, negative_text, subtract
from ..state.applying import apply
from ..state.charges import count_ended, drop_reservations, leave_node
from ..state.partition_state import BrokenKind, PartitionState
from ..values.allocation import FOREIGN_TAG, Allocation
from ..values.events import ChangeDetail, ChangeType, EventType
from ..values.facts import SwappedFact
from ..values.messages import (
    AllocationPlaced,
    AllocationsReleased,
    AllocationSubmission,
    NodeAction,
    NodesAnswered,
    NodeUpdate,
    Rejection,
    RejectionCode,
    RejectionReason,
    Release,
    TerminationType,
    invalid,
)
from ..values.states import ObjectState
from .allocations import foreign_name_refusal, submission_refusal, submit_allocations
from .quarantining import uncount_quarantined
from .reconfiguring import change_capacity

OUT_REASON_TAG: Final = "licorne/drain-reason"
OUT_BY_TAG: Final = "licorne/drained-by"
OUT_TAGS: Final = frozenset({OUT_REASON_TAG, OUT_BY_TAG})
"""The attributes of an update that drains a node: why, and by whom."""
CREATIONS: Final = frozenset({NodeAction.CREATE, NodeAction.CREATE_DRAIN})
_KNOWN: Final = ", ".join(action.name for action in NodeAction if action.value)


def update_nodes(state: PartitionState, updates: Sequence[NodeUpdate]) -> NodesAnswered | None:
    """Carry out node updates in order; return the answer, if any.

    The RM is answered about creations, and about updates that are invalid or of a node that is not known. The
    removal of such a node has no answer: it is gone, as it should be.
    """
    accepted: list[str] = []
    rejected: list[Rejection] = []
    for update in updates:
        reason = update_refusal(update)
        if reason is not None:
            rejected.append(Rejection(update.node_id, reason))
            continue
        if update.action in CREATIONS:
            refusal = _create(state, update)
            if refusal is None:
                accepted.append(update.node_id)
            else:
                rejected.append(Rejection(update.node_id, refusal.text, refusal.code))
            continue
        entry = state.nodes.get(update.node_id)
        if entry is not None:
            _update(state, entry, update)
        elif update.node_id in state.quarantine.nodes:
            if update.action is NodeAction.DECOMISSION:
                remove_quarantined_node(state, update.node_id)
        elif update.action is not NodeAction.DECOMISSION:
            text = (
                f"nothing is done for the action {update.action.name}: "
                f"partition {state.name} has no node {update.node_id}"
            )
            rejected.append(Rejection(update.node_id, text, RejectionCode.NODE_UNKNOWN))
    if not accepted and not rejected:
        return None
    return NodesAnswered(tuple(accepted), tuple(rejected))


def update_refusal(update: NodeUpdate) -> str | None:
    """Return why an update is invalid whatever the partition has, `None` if it is valid."""
    name = update.node_id
    if update.action is NodeAction.UNKNOWN_ACTION_FROM_RM:
        number = update.unknown_action
        why = f"its action {number} is unknown" if number else "its action is missing"
        return f"nothing is done with node {name!r}: {why}; known are {_KNOWN}"
    if not name:
        return f"nothing is done for the action {update.action.name}: the node id is empty"
    bad = (
        id_refusal("the node id", name)
        or names_refusal(f"an attribute of node {name}", update.attributes)
        or names_refusal(f"a resource type of node {name}", update.resource or EMPTY)
        or names_refusal(f"a resource type that others use of node {name}", update.occupied or EMPTY)
    )
    if bad is not None:
        return bad
    misplaced = _misplaced(update)
    if misplaced is not None:
        return misplaced
    if update.action is NodeAction.UPDATE or update.action in CREATIONS:
        return negative_text(f"the capacity of node {name}", update.resource) or negative_text(
            f"what others use of node {name}", update.occupied
        )
    return None


def _misplaced(update: NodeUpdate) -> str | None:
    """Return which field of an update is not for its action, `None` if all are."""
    if update.existing and update.action not in CREATIONS:
        field, actions = "existingAllocations", "CREATE and CREATE_DRAIN"
    elif update.occupied is not None and update.action not in {*CREATIONS, NodeAction.UPDATE}:
        field, actions = "occupiedResource", "CREATE, CREATE_DRAIN and UPDATE"
    else:
        return None
    return (
        f"nothing is done with node {update.node_id}: {field} is for the actions {actions}, "
        f"not for {update.action.name}"
    )


def _create(state: PartitionState, update: NodeUpdate) -> RejectionReason | None:
    name = update.node_id
    if state.state is not ObjectState.ACTIVE:
        return RejectionReason(
            RejectionCode.PARTITION_STOPPED, f"partition {state.name} is stopped cannot add a new node {name}"
        )
    if state.nodes.get(name) is not None or name in state.quarantine.nodes:
        text = (
            f"failure while adding new node, node rejected with error: failed to add node {name} to "
            f"partition {state.name}, error: partition {state.name} has an existing node {name}, "
            "node name must be unique"
        )
        return RejectionReason(RejectionCode.NODE_EXISTS, text)
    schedulable = update.action is NodeAction.CREATE
    reason = invalid(existing_refusal(state, update) or state.topology.refusal(name, update.attributes))
    if reason is not None:
        return reason
    node = Node(name, update.attributes, update.resource or EMPTY, schedulable=schedulable)
    capacity = node.facts().capacity
    handle = state.host.adopt_node(node)
    entry = NodeEntry(
        *(handle, name, node.instance_type, capacity), schedulable=schedulable, attributes=node.attributes
    )
    entry.cordoned = update.attributes.get(CORDONED) == "true"
    entry.out = None if schedulable and not entry.cordoned else _out(state, update)
    state.nodes.add(entry)
    state.topology.add(name, entry.attributes)
    state.windows.add(name, entry.attributes)
    _note_schedulable(state, name, schedulable=schedulable)
    state.events.note(
        *(ChangeType.ADD, ChangeDetail.NONE, name),
        of=EventType.NODE,
        message="Node added to the scheduler",
        resource=capacity,
    )
    change_capacity(state, EMPTY, capacity)
    if update.occupied is not None:
        _set_occupied(state, entry, update.occupied)
    if update.existing:
        recover_existing(state, update)
    return None


def _update(state: PartitionState, entry: NodeEntry, update: NodeUpdate) -> None:
    if update.action is NodeAction.UPDATE:
        if update.resource is not None:
            _resize(state, entry, update)
        if update.occupied is not None:
            _set_occupied(state, entry, update.occupied)
        if CORDONED in update.attributes:
            _set_cordoned(state, entry, update)
    elif update.action is NodeAction.DRAIN_NODE:
        if entry.schedulable or not OUT_TAGS.isdisjoint(update.attributes):
            entry.out = _out(state, update)
        _set_schedulable(state, entry, schedulable=False)
    elif update.action is NodeAction.DRAIN_TO_SCHEDULABLE:
        if not entry.cordoned:
            entry.out = None
        _set_schedulable(state, entry, schedulable=True)
    elif update.action is NodeAction.DECOMISSION:
        remove_node(state, entry)


def _out(state: PartitionState, update: NodeUpdate) -> tuple[int, str, str]:
    """Return since when a drained node takes no work, why, and who has drained it."""
    tags = update.attributes
    return state.now_ns(), tags.get(OUT_REASON_TAG, ""), tags.get(OUT_BY_TAG, "")


def _resize(state: PartitionState, entry: NodeEntry, update: NodeUpdate) -> None:
    assert update.resource is not None, "the caller has looked"
    available = entry.node.set_capacity(update.resource)
    if available is None:
        return
    before = entry.capacity
    entry.capacity = entry.node.facts().capacity
    state.nodes.give(entry, available)
    state.events.note(ChangeType.SET, ChangeDetail.NODE_CAPACITY, entry.node_id, resource=entry.capacity)
    change_capacity(state, before, entry.capacity)


def _set_occupied(state: PartitionState, entry: NodeEntry, occupied: Resource) -> None:
    state.nodes.give(entry, entry.node.set_used_by_others(occupied))
    state.events.note(ChangeType.SET, ChangeDetail.NODE_OCCUPIED, entry.node_id, resource=occupied)


def _note_schedulable(state: PartitionState, node_id: str, *, schedulable: bool) -> None:
    text = f"schedulable: {str(schedulable).lower()}"
    state.events.note(ChangeType.SET, ChangeDetail.NODE_SCHEDULABLE, node_id, message=text)


def _set_cordoned(state: PartitionState, entry: NodeEntry, update: NodeUpdate) -> None:
    cordoned = update.attributes[CORDONED] == "true"
    if entry.node.set_cordoned(cordoned=cordoned):
        entry.cordoned = cordoned
        if entry.schedulable:
            entry.out = _out(state, update) if cordoned else None
        _note_schedulable(state, entry.node_id, schedulable=entry.schedulable and not cordoned)


def _set_schedulable(state: PartitionState, entry: NodeEntry, *, schedulable: bool) -> None:
    if entry.node.set_schedulable(schedulable=schedulable):
        state.nodes.set_schedulable(entry, schedulable=schedulable)
        state.node_changes += 1
        _note_schedulable(state, entry.node_id, schedulable=schedulable)


# ---------------------------------------------------------------------------------------- removal


def remove_node(state: PartitionState, entry: NodeEntry) -> None:
    """Remove a node with all that is on it; each allocation that ends is reported to the RM.

    The node is closed to placements before its allocations end, and its capacity is subtracted last: the
    headroom never falls below what is allocated in between.
    """
    facts = entry.node.facts()
    state.nodes.remove(entry.node_id)
    state.topology.remove(entry.node_id)
    state.windows.remove(entry.node_id)
    state.nodes_removed += 1
    for key in facts.reservations:
        _unreserve(state, key)
    releases: list[Release] = []
    for allocation in facts.allocations:
        _end_on_node(state, entry.node_id, allocation, releases)
    for allocation in facts.foreign:
        state.foreign.pop(allocation.ask.allocation_key, None)
    if releases:
        state.host.announce(AllocationsReleased(tuple(releases)))
    change_capacity(state, entry.capacity, EMPTY)
    _note_removed(state, entry.node_id)
    state.host.release(entry.node)


def _note_removed(state: PartitionState, node_id: str) -> None:
    text = "Node removed from the scheduler"
    state.events.note(ChangeType.REMOVE, ChangeDetail.NODE_DECOMISSION, node_id, message=text)


def remove_quarantined_node(state: PartitionState, node_id: str) -> None:
    """Remove a broken node; what is on it is known from the applications alone."""
    node = state.quarantine.nodes.pop(node_id)
    state.nodes_removed += 1
    del state.quarantine.entries[BrokenKind.NODE, node_id]
    releases: list[Release] = []
    for entry in list(state.entries.values()):
        for placed in entry.application.allocations.all():
            for allocation in (placed.swap, placed.allocation):
                if allocation is not None and allocation.node_id == node_id:
                    _end_on_node(state, node_id, allocation, releases)
    for allocation in list(state.foreign.values()):
        if allocation.node_id == node_id:
            del state.foreign[allocation.ask.allocation_key]
    if releases:
        state.host.announce(AllocationsReleased(tuple(releases)))
    _note_removed(state, node_id)
    state.host.release(node.node)


def _unreserve(state: PartitionState, allocation_key: str) -> None:
    for entry in list(state.entries.values()):
        if not entry.facts.reserved:
            continue
        answer = entry.application.reservations.remove(allocation_key)
        if answer is not None:
            drop_reservations(state, answer.reservations)
            apply(state, entry, answer)
            return


def _end_on_node(
    state: PartitionState,
    node_id: str,
    allocation: Allocation,
    releases: list[Release],
) -> None:
    key = allocation.ask.allocation_key
    entry = state.entries.get(allocation.ask.application_id)
    if entry is None:
        broken = state.quarantine.applications.get(allocation.ask.application_id)
        if broken is not None and uncount_quarantined(state, broken, allocation):
            releases.append(_release(state, allocation, node_id))
        return
    real = entry.application.swaps.of(key)
    if real is not None and real.node_id != node_id:
        _confirm_swap(state, entry, allocation, releases)
        return
    if real is not None:
        _cancel_swap(state, entry, key, real)
    elif entry.application.allocations.get(key) is None:
        placeholder_key = entry.application.swaps.onto(key)
        if placeholder_key:
            _cancel_swap(state, entry, placeholder_key, allocation)
        return
    answer = entry.application.allocations.remove(
        key,
        TerminationType.UNKNOWN_TERMINATION_TYPE,
        state.now_ns(),
    )
    if answer is not None:
        releases.append(_release(state, allocation, node_id))
        termination = TerminationType.UNKNOWN_TERMINATION_TYPE
        count_ended(state, entry, answer, termination, node_is_gone=True)
        apply(state, entry, answer)


def _cancel_swap(
    state: PartitionState, entry: ApplicationEntry, placeholder_key: str, real: Allocation
) -> None:
    """Make the real ask wait again: its node is gone before the RM confirmed the end of the placeholder."""
    entry.application.swaps.cancel(placeholder_key)
    answer = entry.application.asks.displace(real.ask.allocation_key)
    if answer is not None:
        for record in answer.asks:
            entry.add_pending(record.ask)
        apply(state, entry, answer)


def _confirm_swap(
    state: PartitionState,
    entry: ApplicationEntry,
    placeholder: Allocation,
    releases: list[Release],
) -> None:
    """Complete a swap whose placeholder ends with its node, while the real allocation is elsewhere."""
    answer = entry.application.swaps.end(
        placeholder.ask.allocation_key,
        TerminationType.PLACEHOLDER_REPLACED,
        state.now_ns(),
    )
    assert answer is not None, "the swap was under way a moment ago: please report"
    releases.append(_release(state, placeholder, placeholder.node_id))
    exchange_counts(state, entry, placeholder, answer.allocations[1], answer)
    apply_swap_on_nodes(state, placeholder, answer.allocations[1])
    apply(state, entry, answer)
    state.host.announce(AllocationPlaced(answer.allocations[1]))


def exchange_counts(
    state: PartitionState, entry: ApplicationEntry, placeholder: Allocation, real: Allocation, answer: Answer
) -> None:
    """Count the real allocation for its queues and its user in the place of the placeholder.

    The events are added to the answer.
    """
    path = entry.queue.path
    before = placeholder.ask.resource
    after = real.ask.resource
    release_charge(entry.queue, subtract(before, after))
    state.limits.decrease(path, entry.application_id, entry.user, before, remove_application=False)
    group = state.limits.increase(path, entry.application_id, entry.user, after)
    if state.events.are_kept:
        moves = real.node_id != placeholder.node_id
        leaves_node = moves and state.nodes.get(placeholder.node_id) is not None
        records = (4 if group is None else 6) + leaves_node
        fact = SwappedFact(
            *(records, state.rm_id, state.now_ns(), placeholder, real),
            *(path, entry.user.name, group, leaves_node),
        )
        answer.happened = (*answer.happened, fact)
    state.placed.exchange()
    state.ends.run_times.forget(placeholder.ask.allocation_key)
    state.ends.forget()
    state.changes += 1


def apply_swap_on_nodes(state: PartitionState, placeholder: Allocation, real: Allocation) -> None:
    """Remove the placeholder from its node, and update the real allocation on its own node."""
    leave_node(state, placeholder)
    node = state.nodes.get(real.node_id)
    if node is not None:
        state.nodes.give(node, node.node.replace(real.ask.allocation_key, real))


def _release(state: PartitionState, allocation: Allocation, node_id: str) -> Release:
    return Release(
        partition=state.name,
        application_id=allocation.ask.application_id,
        allocation_key=allocation.ask.allocation_key,
        termination=TerminationType.STOPPED_BY_RM,
        message=f"Node {node_id} Removed",
    )


def existing_refusal(state: PartitionState, update: NodeUpdate) -> str | None:
    """Return why a node cannot be created with what exists on it, `None` if it can; nothing has changed."""
    owners: dict[str, str] = {}
    for allocation in update.existing:
        reason = _refusal(state, update, allocation, owners)
        if reason is not None:
            return (
                f"failure while adding new node {update.node_id}: its existing allocation "
                f"{allocation.allocation_key} is refused: {reason}"
            )
        owners[allocation.allocation_key] = allocation.application_id
    return None


def _refusal(
    state: PartitionState, update: NodeUpdate, allocation: AllocationSubmission, owners: dict[str, str]
) -> str | None:
    key, name = allocation.allocation_key, allocation.application_id
    if allocation.node_id != update.node_id:
        return f"it is on node {allocation.node_id}"
    if allocation.partition != state.name:
        return f"it is in partition {allocation.partition}"
    if key in owners:
        return "it is there twice"
    if FOREIGN_TAG in allocation.tags:
        if not key:
            return "its allocation key is empty"
        bad = foreign_name_refusal(allocation)
        if bad is not None:
            return bad
        before = state.foreign.get(key)
        return None if before is None else f"it runs on node {before.node_id}"
    reason = submission_refusal(state, allocation, is_node_new=True)
    if reason is not None:
        return reason.text
    placed = state.entries[name].application.allocations.get(key)
    if placed is not None:
        return f"it runs on node {placed.node_id}"
    record = state.entries[name].application.asks.record(key)
    return "it is about to run elsewhere" if record is not None and record.placed else None


def recover_existing(state: PartitionState, update: NodeUpdate) -> None:
    """Recover what exists on a node that has been created: nothing of it is refused."""
    rejections = submit_allocations(state, update.existing)
    assert not rejections, f"{rejections}: please report"
