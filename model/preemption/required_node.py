"""Preemption for an ask that can run on one node only, such as a member of a daemon set.

The node is reserved for the ask already. Every allocation on it that does not itself depend on the node may
become a victim if its priority is not higher: queues, guarantees, fences and switches do not count here,
except for a minimum run time. Foreign allocations keep their resources.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..applications.pending_asks import AskRecord
from ..nodes.entry import NodeEntry
from ..predicates.node_filters import FILTER_RETRY_NS
from ..queues.application_entry import ApplicationEntry
from ..queues.queue import Queue
from ..queues.quota import gives_room, kept_beside
from ..resources.comparisons import matches_any
from ..resources.resource import (
    Resource,
    add,
    fits,
    fits_undefined_unlimited,
    resource_text,
    subtract,
    subtract_eliminating_negative,
    total_of,
)
from ..state.claims import EndingVictim
from ..state.node_windows import window_on_node
from ..state.partition_state import PartitionState
from ..state.preemption_log import (
    FramePriorities,
    PreemptionCause,
    PreemptionRecord,
    Preemptor,
    VictimNeed,
    justify,
)
from ..state.rates import report_no_victim
from ..values.allocation import Ask
from .acts import by_ask, ending_of, mark_all, release_all, remember, report_preempted, victim_record
from .guarantee.ledger import QueueFactsOf, committed_resources
from .losses import by_whole_jobs, described_at
from .protection import Protected, ProtectedVictims, Protection, sparing
from .victim_orders import measure_in
from .victims import Need, Victim, given_back, needed_only, required_node_order

NO_HELP: Final = "No fit on required node, preemption does not help"
PROTECTED: Final = "No fit on required node, and what could end is protected for now"


def room_on_node(state: PartitionState, ask: Ask, node: NodeEntry) -> Resource:
    """Return the room of a node for an ask that needs it, less the room held for others that need it."""
    if not state.claims.by_key:
        return node.available
    return subtract(node.available, state.claims.held_on(node.node_id, ask.allocation_key))


def can_be_served(state: PartitionState, entry: ApplicationEntry, ask: Ask, node: NodeEntry) -> bool:
    """Return whether an ask has room on its required node after all possible victims have ended.

    Victims that are protected now may end later.
    """
    free, protected = _divided(state, entry, node)
    victims = [each for each in (*free, *(each.victim for each in protected)) if _is_eligible(each, ask)]
    room, _ = _room_to_come(state, ask, node)
    return fits(add(room, given_back(victims)), ask.resource)


def _room_to_come(state: PartitionState, ask: Ask, node: NodeEntry) -> tuple[Resource, list[EndingVictim]]:
    """Return the room of a node for its ask once the unclaimed victims there have ended, and those."""
    unclaimed = [each for each in state.claims.unclaimed() if each.node_id == node.node_id]
    return add(room_on_node(state, ask, node), total_of(each.resource for each in unclaimed)), unclaimed


def choose_for_required_node(
    ask: Ask,
    available: Resource,
    candidates: Sequence[Victim],
) -> tuple[Victim, ...] | None:
    """Choose the victims on a node without which the ask does not fit there.

    Args:
        ask: The ask for the node.
        available: The room of the node, plus the resources of all that ends on it for no other ask; the
            reservation holds it for the ask.
        candidates: The allocations on the node that are possible victims.

    Returns:
        The victims in the order they were chosen; without any one of them the ask would not fit. `None` if
        all candidates together are not enough. The available room alone is not enough for the ask.
    """
    eligible = [victim for victim in candidates if _is_eligible(victim, ask)]
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
) -> int | None:
    """Make room on the required node of an ask; return the time at which more victims may be free to end.

    The time is `None` if no victim waits for it.

    The caller has checked that the ask is within all quotas and that the node has no room. Commitments to
    other asks of its queues count against it. An ask that has preempted before waits until its victims have
    ended; only if their room went to another ask of this node may it preempt again. Allocations that end on
    the node already, for no other ask, give their room to this one before other victims are chosen.
    """
    ask = record.ask
    claim = state.claims.find(ask.allocation_key)
    if claim is not None and claim.ending:
        return None
    if state.windows.all and window_on_node(state, ask, node) is not None:
        return None
    refusal = None if state.filtered is None else state.filtered.refusal_by_filter(ask, node)
    if refusal is not None:
        _note_no_victim(state, entry, ask, refusal)
        return state.now_ns() + FILTER_RETRY_NS
    return _preempt(state, entry, ask, node)


def _preempt(state: PartitionState, entry: ApplicationEntry, ask: Ask, node: NodeEntry) -> int | None:
    if not committed_resources(state, entry.queue, ask.allocation_key).leaves_room(entry.queue, ask.resource):
        _note_no_victim(state, entry, ask)
        return None
    candidates, protected = _divided(state, entry, node)
    if state.whole_jobs_first:
        candidates = by_whole_jobs(candidates, subtract_eliminating_negative(ask.resource, node.available))
    room, unclaimed = _room_to_come(state, ask, node)
    coming = total_of(each.resource for each in unclaimed)
    if fits(room, ask.resource):
        state.claims.begin(entry, (ask,), unclaimed, state.now_ns())
        return None
    while True:
        victims = choose_for_required_node(ask, room, candidates)
        if not victims:
            waits = _waits_for(ask, room, candidates, protected)
            _note_no_victim(state, entry, ask, NO_HELP if waits is None else PROTECTED)
            return None if waits is None else waits.first.until_ns
        if _is_kept_back(entry.queue, ask, add(coming, given_back(victims))):
            _note_no_victim(state, entry, ask)
            return None
        going = mark_all(victims)
        if going is None:
            break
        candidates.remove(going)
    _carry_out(state, entry, ask, node, victims, unclaimed=unclaimed)
    state.claims.begin(entry, (ask,), [*ending_of(victims), *unclaimed], state.now_ns())
    return None


def _is_kept_back(leaf: Queue, ask: Ask, coming: Resource) -> bool:
    """Return whether guarantees of others keep an ask without room in the root, with the coming resources."""
    root = leaf.above[-1]
    beside = kept_beside(leaf).get(root)
    room = root.room(beside) if beside else None
    return room is not None and not fits_undefined_unlimited(add(room, coming), ask.resource)


def protected_on(
    state: PartitionState, entry: ApplicationEntry, ask: Ask, node: NodeEntry
) -> ProtectedVictims | None:
    """Return the protection of the victims that an ask needs on its node, `None` if its end does not help."""
    candidates, protected = _divided(state, entry, node)
    if not protected or choose_for_required_node(ask, node.available, candidates):
        return None
    return _waits_for(ask, node.available, candidates, protected)


def _waits_for(
    ask: Ask, room: Resource, candidates: Sequence[Victim], protected: Sequence[Protected]
) -> ProtectedVictims | None:
    """Return the protection of the victims that would be enough; `None` if no set would be."""
    helping = [each for each in protected if _is_eligible(each.victim, ask)]
    others = [victim for victim in candidates if _is_eligible(victim, ask)]
    everything = [*others, *(each.victim for each in helping)]
    if not helping or choose_for_required_node(ask, room, everything) is None:
        return None
    return ProtectedVictims.of(helping, len(others))


def _is_eligible(victim: Victim, ask: Ask) -> bool:
    return victim.allocation.ask.priority <= ask.priority and matches_any(ask.resource, victim.resource)


def _divided(
    state: PartitionState, entry: ApplicationEntry, node: NodeEntry
) -> tuple[list[Victim], list[Protected]]:
    """Return the possible victims on a node, and those that have not run long enough."""
    protection = Protection(entry.queue, state.now_ns(), for_guarantee=False, policies=sparing(state))
    free: list[Victim] = []
    protected: list[Protected] = []
    for victim in _on_node(state, node):
        if not gives_room(victim.queue, victim.resource, entry.queue):
            continue
        now, later = protection.divide(victim.queue, (victim,))
        free += now
        protected += later
    return free, protected


def _note_no_victim(state: PartitionState, entry: ApplicationEntry, ask: Ask, text: str = NO_HELP) -> None:
    state.notes.note(entry.application, ask.allocation_key, text, state.now_ns(), of_attempt=True)
    report_no_victim(state, ask)


def _on_node(state: PartitionState, node: NodeEntry) -> list[Victim]:
    """Return the possible victims on a node; marking them finds those that are ending."""
    found = []
    measure = measure_in(state)
    for allocation in node.node.facts().allocations:
        entry = state.entries.get(allocation.ask.application_id)
        key = allocation.ask.allocation_key
        if entry is None or entry.application.allocations.get(key) is None:
            continue  # It will replace a placeholder on another node.
        mine = entry.application.allocations
        victim = Victim(allocation, entry, preempted=mine.is_preempted(key))
        if not victim.is_free:
            continue
        if measure is not None:
            victim = measure.measured(victim._replace(checkpoint_ns=mine.checkpoint_ns(key)))
        found.append(victim)
    return found


def _carry_out(
    state: PartitionState,
    entry: ApplicationEntry,
    ask: Ask,
    node: NodeEntry,
    victims: tuple[Victim, ...],
    *,
    unclaimed: Sequence[EndingVictim],
) -> None:
    facts_of = QueueFactsOf(entry.queue, committed_resources(state, entry.queue, ask.allocation_key))
    key, path = ask.allocation_key, entry.queue.path
    preemptor = Preemptor(key, entry.application_id, path, node.node_id, ask.resource)
    justification = justify(
        [(preemptor, entry.queue)],
        ending_of(victims),
        lambda queue: facts_of(queue).used,
        {node.node_id: node.available},
        unclaimed,
    )
    now_ns = state.now_ns()
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
        victims=tuple(
            victim_record(
                victim,
                _why(victim, ask, node, now_ns),
                VictimNeed.NODE,
                FramePriorities("", ask.priority, victim.allocation.ask.priority),
            )
            for victim in victims
        ),
        justification=justification,
    )
    remember(state, record)


def _why(victim: Victim, ask: Ask, node: NodeEntry, now_ns: int) -> str:
    return (
        f"{described_at(victim, now_ns)}; of what runs on {node.node_id} with a priority up to "
        f"{ask.priority} it is next in the order, and without its {resource_text(victim.resource)} "
        f"the ask would not fit"
    )
