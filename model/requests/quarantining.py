"""Applications and nodes that broke: scheduling leaves them out, and all others continue.

Only a bug of Licorne can break one: a method of it raised what it should not, or an invariant of it does not
hold. Its answers are no longer trusted. So it is removed from the walks of the partition, and its
resources stay counted, as known from earlier answers, until the RM ends it.
"""

from __future__ import annotations

from contextlib import suppress

from ..applications.effects import ApplicationFacts, ApplicationState
from ..queues import quota as queue_quota
from ..queues.application_entry import ApplicationEntry, wake
from ..queues.queue import Queue
from ..resources.resource import EMPTY, Resource, add, take_away
from ..state.charges import count_victim_ended, end_claim, leave_node, uncount
from ..state.partition_state import BrokenKind, PartitionState
from ..state.placing import unreserve
from ..values.allocation import Allocation
from ..values.dependencies import ApplicationOutcome
from .reconfiguring import change_capacity

# ----------------------------------------------------------------------------------- applications


def quarantine_application(state: PartitionState, application_id: str, reason: str) -> bool:
    """Exclude an application from scheduling; return whether it was active until now."""
    entry = state.entries.get(application_id)
    if entry is None:
        return False
    _release_swaps_and_victims(state, entry)
    for claim in state.claims:
        if claim.entry is entry:
            end_claim(state, claim.ask.allocation_key)
    _free_reserved_nodes(state, entry)
    entry.facts = _facts(entry.facts, reserved=0)
    del state.entries[application_id]
    state.timers.stop_all(state.serials.pop(application_id))
    state.quarantine.applications[application_id] = entry
    state.quarantine.note(state.name, BrokenKind.APPLICATION, application_id, reason, state.now_ns())
    state.dependencies.give_up(entry)
    entry.queue.entries.suspend(entry)
    state.tree.refresh(entry.queue)
    wake(entry.queue)
    state.changes += 1
    return True


def _release_swaps_and_victims(state: PartitionState, entry: ApplicationEntry) -> None:
    """Free what swaps hold on other nodes, and count no victims, if the application can still answer."""
    with suppress(Exception):
        for placed in entry.application.allocations.all():
            if placed.swap is not None:
                leave_node(state, placed.swap)
            if placed.preempted:
                count_victim_ended(state, entry, placed.allocation)


def _free_reserved_nodes(state: PartitionState, entry: ApplicationEntry) -> None:
    for node in state.nodes.by_name():
        if not node.reserved:
            continue
        for key in node.node.facts().reservations:
            if state.keys.claimant_of(key) != entry.application_id:
                continue
            state.reserved.remove(key)
            state.node_changes += 1
            if node.node.unreserve(key):
                state.nodes.set_reserved(node, reserved=False)


def end_quarantined(
    state: PartitionState, entry: ApplicationEntry, allocation_key: str
) -> tuple[Allocation, ...]:
    """End an allocation of a broken application, the empty key means all; return what has ended."""
    ended = []
    for node in state.nodes.by_name():
        for allocation in node.node.facts().allocations:
            ask = allocation.ask
            if ask.application_id == entry.application_id and allocation_key in ("", ask.allocation_key):
                leave_node(state, allocation)
                if uncount_quarantined(state, entry, allocation):
                    ended.append(allocation)
    return tuple(ended)


def uncount_quarantined(state: PartitionState, entry: ApplicationEntry, allocation: Allocation) -> bool:
    """Count an allocation of a broken application no longer; return whether it had been counted."""
    facts = entry.facts
    resource = allocation.ask.resource
    if allocation.ask.placeholder:
        left = take_away(facts.placeholder_allocated, resource)
        after = None if left is None else _facts(facts, placeholder_allocated=left)
    else:
        left = take_away(facts.allocated, resource)
        after = None if left is None else _facts(facts, allocated=left)
    if after is None:
        return False  # It was to replace a placeholder: that one is counted.
    uncount(state, entry, allocation, ended=False)
    entry.facts = after
    return True


def forget_quarantined(
    state: PartitionState, application_id: str, outcome: ApplicationOutcome | None = None
) -> tuple[Allocation, ...]:
    """Drop a broken application with all that is counted for it; return the allocations that ended.

    For those that wait for its end it has failed, unless its RM names another outcome.
    """
    entry = state.quarantine.applications.get(application_id)
    if entry is None:
        return ()
    ended = end_quarantined(state, entry, "")
    del state.quarantine.applications[application_id]
    del state.quarantine.entries[BrokenKind.APPLICATION, application_id]
    queue, facts = entry.queue, entry.facts
    remaining = add(facts.allocated, facts.placeholder_allocated)  # The rest is on nodes that broke as well.
    queue_quota.release_charge(queue, remaining)
    for level in queue.above:
        level.remove_pending(facts.pending)
        level.forget_accepted(application_id)
        if facts.state is ApplicationState.RUNNING:
            level.count_running(application_id, -1)
    state.limits.decrease(queue.path, application_id, entry.user, remaining, remove_application=True)
    state.limits.drop_unused(queue.path, entry.user)
    queue.entries.drop_suspended(entry)
    _count_sizes(queue)
    state.tree.refresh(queue)
    entry.outcome = outcome or ApplicationOutcome.FAILED
    state.dependencies.end(entry)
    state.changes += 1
    if not queue.managed or queue.is_draining:
        state.timers.clean_later()
    state.host.release(entry.application)
    return ended


def _count_sizes(queue: Queue) -> None:
    """Recount the sizes of what waits in a leaf: those of an application that is gone are not known."""
    queue.entries.sizes.clear()
    for entry in queue.entries.by_id.values():
        for record in entry.application.asks.waiting():
            queue.entries.count_size(record.ask.resource, 1)


def _facts(
    facts: ApplicationFacts,
    *,
    allocated: Resource | None = None,
    placeholder_allocated: Resource | None = None,
    reserved: int | None = None,
) -> ApplicationFacts:
    return ApplicationFacts(
        facts.state,
        facts.pending,
        facts.allocated if allocated is None else allocated,
        facts.placeholder_allocated if placeholder_allocated is None else placeholder_allocated,
        facts.max_priority,
        facts.submitted_at_ns,
        facts.reserved if reserved is None else reserved,
        first=None,
    )


# ------------------------------------------------------------------------------------------ nodes


def quarantine_node(state: PartitionState, node_id: str, reason: str) -> bool:
    """Exclude a node from scheduling; return whether it was in use until now.

    Work there continues, and counts for its queues and users; the node's capacity no longer counts.
    """
    node = state.nodes.get(node_id)
    if node is None:
        return False
    state.nodes.remove(node_id)
    state.topology.remove(node_id)
    state.windows.remove(node_id)
    state.quarantine.nodes[node_id] = node
    state.quarantine.note(state.name, BrokenKind.NODE, node_id, reason, state.now_ns())
    for entry in list(state.entries.values()):
        if entry.facts.reserved:
            for reservation, _ in entry.application.reservations.with_asks():
                if reservation.node_id == node_id:
                    unreserve(state, entry, reservation.allocation_key)
    change_capacity(state, node.capacity, EMPTY)
    return True
