"""Preemption for an ask that can run on one node only, such as a member of a daemon set.

The node is reserved for the ask already. Everything on it may become a victim that does not itself depend on
the node and whose priority is no higher: queues, guarantees, fences and switches do not count here. What
foreign allocations use stays used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..applications.pending_asks import AskRecord
from ..nodes.block import NodeEntry
from ..queues.application_entry import ApplicationEntry
from ..resources.comparisons import matches_any
from ..resources.quantity_texts import resource_text
from ..resources.resource import Resource, add, fits, total_of
from ..state.event_rates import report_no_victim
from ..state.partition_state import PartitionState
from ..state.preemption_log import PreemptionCause, PreemptionRecord
from ..values.allocation import Ask
from .acts import by_ask, ending_of, mark_all, release_all, remember, report_preempted, victim_record
from .claims import committed_resources
from .victims import Need, Victim, described, needed_only, required_node_order

__all__ = ["choose_for_required_node", "preempt_for_required_node"]

NO_HELP: Final = "No fit on required node, preemption does not help"


def choose_for_required_node(
    ask: Ask,
    available: Resource,
    candidates: Sequence[Victim],
) -> tuple[Victim, ...] | None:
    """Choose the victims on a node without which the ask does not fit there.

    Args:
        ask: What is to run on the node.
        available: What the node has left, and what ends on it for no other ask gives back; the reservation
            holds it for the ask.
        candidates: The allocations on the node that may still be chosen.

    Returns:
        The victims in the order they were chosen; without any one of them the ask would not fit. `None`
        if all candidates together are not enough. The ask does not fit what is available.
    """
    eligible = [
        victim
        for victim in candidates
        if victim.allocation.ask.priority <= ask.priority and matches_any(ask.resource, victim.resource)
    ]
    chosen: list[Victim] = []
    room = available
    for victim in sorted(eligible, key=required_node_order):
        chosen.append(victim)
        room = add(room, victim.resource)
        if fits(room, ask.resource):
            return needed_only(chosen, Need(available, ask.resource))
    return None


def preempt_for_required_node(
    state: PartitionState, entry: ApplicationEntry, record: AskRecord, node: NodeEntry
) -> bool:
    """Make room on the node that an ask must run on; return whether the RM was asked to end victims.

    The caller has checked that the ask is within all quotas and that the node has no room. What is committed
    to others of its queues counts against it. An ask that has preempted before waits until its victims have
    ended; only if their room went to another ask of this node may it preempt again. What ends on the node
    already, for no other ask, gives its room to this one before anything else is chosen.
    """
    ask = record.ask
    claim = state.claims.find(ask.allocation_key)
    if claim is not None and claim.ending:
        return False
    if not committed_resources(state, ask.allocation_key).leaves_room(entry.queue, ask.resource):
        _note_no_victim(state, entry, ask)
        return False
    candidates = _on_node(state, node)
    unclaimed = [each for each in state.claims.unclaimed() if each.node_id == node.node_id]
    room = add(node.available, total_of(each.resource for each in unclaimed))
    if fits(room, ask.resource):
        state.claims.begin(entry, ask, unclaimed, state.now_ns())
        return False
    while True:
        victims = choose_for_required_node(ask, room, candidates)
        if not victims:
            _note_no_victim(state, entry, ask)
            return False
        going = mark_all(victims)
        if going is None:
            break
        candidates.remove(going)
    _carry_out(state, entry, ask, node, victims)
    state.claims.begin(entry, ask, [*ending_of(victims), *unclaimed], state.now_ns())
    return True


def _note_no_victim(state: PartitionState, entry: ApplicationEntry, ask: Ask) -> None:
    state.notes.note(entry.application, ask.allocation_key, NO_HELP, state.now_ns())
    report_no_victim(state, ask)


def _on_node(state: PartitionState, node: NodeEntry) -> list[Victim]:
    """Return the allocations on a node that may be chosen; marking them finds those that are ending."""
    found = []
    for allocation in node.node.facts().allocations:
        entry = state.entries.get(allocation.ask.application_id)
        key = allocation.ask.allocation_key
        if entry is None or entry.application.allocations.get(key) is None:
            continue  # It is to take the place of a placeholder elsewhere.
        victim = Victim(allocation, entry, preempted=entry.application.allocations.is_preempted(key))
        if victim.is_free:
            found.append(victim)
    return found


def _carry_out(
    state: PartitionState,
    entry: ApplicationEntry,
    ask: Ask,
    node: NodeEntry,
    victims: tuple[Victim, ...],
) -> None:
    now_ns = state.now_ns()
    key = ask.allocation_key
    text = f"preempting allocations to free up resources to run daemon set ask: {key}"
    release_all(state, victims, text)
    report_preempted(state, victims, by_ask(ask, entry))
    entry.application.asks.note_preemption(key, now_ns, triggered=True)
    reason = (
        f"{key} of {entry.application_id} asks for {resource_text(ask.resource)} and can run on "
        f"{node.node_id} only, which has {resource_text(node.available)} left"
    )
    record = PreemptionRecord(
        time_ns=now_ns,
        cause=PreemptionCause.REQUIRED_NODE,
        queue_path=entry.queue.path,
        ask_queue_path=entry.queue.path,
        allocation_key=key,
        application_id=entry.application_id,
        node_id=node.node_id,
        wanted=ask.resource,
        reason=reason,
        victims=tuple(victim_record(victim, _why(victim, ask, node)) for victim in victims),
    )
    remember(state, record)


def _why(victim: Victim, ask: Ask, node: NodeEntry) -> str:
    return (
        f"{described(victim)}; of what runs on {node.node_id} with a priority up to {ask.priority} "
        f"it is next in the order, and without its {resource_text(victim.resource)} the ask would not fit"
    )
