"""The second pass of a cycle: members of a gang take the places of their placeholders."""

from __future__ import annotations

from collections.abc import Collection

from ..applications.gang import SwapOffer, SwapWalk
from ..nodes.order import NodeEntry
from ..predicates.deferred_checks import NODES_PER_STEP
from ..predicates.node_checks import NodeChecks, Pending
from ..queues.application_entry import ApplicationEntry
from ..resources.texts import describe
from ..state.applying import apply
from ..state.charges import drop_reservations, leave_node
from ..state.partition_state import PartitionState
from ..values.allocation import Allocation, Ask
from ..values.events import ChangeDetail, ChangeType, EventType
from ..values.messages import AllocationsReleased, Release, TerminationType
from .giving import must_wait


def replace_placeholder(state: PartitionState) -> bool:
    """Start one swap if any member can replace a placeholder; return whether one was started."""
    for leaf in state.tree.leaves_in_order():
        holders = leaf.entries.placeholder_entries
        if not holders:
            continue
        for entry in leaf.entries.in_order(holders):
            if _try_application(state, entry):
                return True
            if must_wait(state):
                return False
    return False


def _try_application(state: PartitionState, entry: ApplicationEntry) -> bool:
    walk = SwapWalk()
    first: SwapOffer | None = None
    checks = state.node_checks
    keys_to_skip = () if checks is None else checks.keys_to_skip()
    unknown: dict[str, tuple[Ask, list[str]]] = {}
    waits = False
    while (offer := entry.application.swaps.next(walk)) is not None:
        key = offer.ask.allocation_key
        if keys_to_skip and key in keys_to_skip:
            waits = True
            continue
        if not offer.fits:
            if not unknown and not waits:  # Otherwise a member that goes first may take the placeholder.
                _cancel(state, entry, offer)
            continue
        first = first or offer
        node = state.nodes.get(offer.placeholder.node_id)
        if node is None:
            continue
        refusal = None if checks is None else checks.refuse(offer.ask, node.node_id, allocate=False)
        if isinstance(refusal, Pending):
            unknown.setdefault(key, (offer.ask, []))[1].append(node.node_id)
        elif refusal is None and not _must_wait(key, unknown, checks) and _swap(state, entry, offer, node):
            return True
    for ask, node_ids in unknown.values():
        _ask_about(checks, ask, node_ids)
    # The first member goes elsewhere if no placeholder will do: which one that is may not be known yet.
    if first is None or waits or first.ask.allocation_key in unknown:
        return False
    return _swap_elsewhere(state, entry, first)


def _must_wait(key: str, unknown: Collection[str], checks: NodeChecks | None) -> bool:
    """Return whether an answer is pending that goes first: for another placeholder, or for another member."""
    return key in unknown or (bool(unknown) and checks is not None and not checks.may_overtake)


def _ask_about(checks: NodeChecks | None, ask: Ask, node_ids: list[str]) -> None:
    """Ask about the placeholders that go first; some may be on one node."""
    assert checks is not None, "without predicates nothing is unknown: please report"
    checks.ask_about(ask, list(dict.fromkeys(node_ids))[:NODES_PER_STEP], allocate=False)


def _real(state: PartitionState, offer: SwapOffer, node: NodeEntry) -> Allocation:
    return Allocation(offer.ask, node.node_id, state.now_ns(), node.instance_type)


def _swap(state: PartitionState, entry: ApplicationEntry, offer: SwapOffer, node: NodeEntry) -> bool:
    """Swap on the placeholder's own node: it holds the room until the RM has confirmed its end."""
    return _begin(state, entry, offer, _real(state, offer, node))


def _swap_elsewhere(state: PartitionState, entry: ApplicationEntry, offer: SwapOffer) -> bool:
    """Swap to another node: it holds the room, and the placeholder its own, until the RM has confirmed."""
    own = offer.placeholder.node_id  # It has been tried, and needs no second room.
    node = _first_allowed(state, offer.ask, without=own)
    if node is None:
        return False
    real = _real(state, offer, node)
    available = node.node.try_add(real)
    if available is None:
        return False
    state.nodes.take(node, available)
    if _begin(state, entry, offer, real):
        state.events.note_on_node(ChangeType.ADD, real)
        return True
    leave_node(state, real)
    return False


def _first_allowed(state: PartitionState, ask: Ask, *, without: str) -> NodeEntry | None:
    if state.node_checks is not None:
        return state.node_checks.first_allowed(ask, state.nodes, without=(without,)).node
    fitting = state.nodes.fitting(ask.resource)
    return next((node for node in fitting if node.node_id != without), None)


def _begin(state: PartitionState, entry: ApplicationEntry, offer: SwapOffer, real: Allocation) -> bool:
    key = offer.placeholder.ask.allocation_key
    answer = entry.application.swaps.begin(real, key)
    if answer is None:
        return False
    entry.remove_pending(offer.ask)
    if state.node_checks is not None:
        state.node_checks.forget(keys=(offer.ask.allocation_key,))
    drop_reservations(state, answer.reservations)
    apply(state, entry, answer)
    text = f"replacing allocationKey: {offer.ask.allocation_key}"
    _announce(state, entry, key, TerminationType.PLACEHOLDER_REPLACED, text)
    return True


def _cancel(state: PartitionState, entry: ApplicationEntry, offer: SwapOffer) -> None:
    """Have a placeholder ended that is smaller than the member it was kept for."""
    key = offer.placeholder.ask.allocation_key
    if entry.application.allocations.mark_released(key):
        ask, placeholder = offer.ask, offer.placeholder.ask
        state.events.note(
            *(ChangeType.NONE, ChangeDetail.NONE, key),
            of=EventType.REQUEST,
            reference_id=entry.application_id,
            message=(
                f"Task group '{placeholder.task_group_name}' in application '{entry.application_id}': "
                f"allocation resources '{describe(ask.resource)}' are not matching placeholder "
                f"'{describe(placeholder.resource)}' allocation with ID '{key}'"
            ),
            resource=ask.resource,
        )
        _announce(state, entry, key, TerminationType.TIMEOUT, "cancel placeholder: resource incompatible")


def _announce(
    state: PartitionState,
    entry: ApplicationEntry,
    key: str,
    termination: TerminationType,
    text: str,
) -> None:
    release = Release(
        partition=state.name,
        application_id=entry.application_id,
        allocation_key=key,
        termination=termination,
        message=text,
    )
    state.host.announce(AllocationsReleased((release,)))
