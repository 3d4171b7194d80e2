"""The second pass of a cycle: members of a gang take the places of their placeholders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..applications.gang import SwapWalk
from ..state.applying import apply
from ..state.charges import drop_reservations, leave_node
from ..values.allocation import Allocation
from ..values.messages import AllocationsReleased, Release, TerminationType

if TYPE_CHECKING:
    from ..applications.gang import SwapOffer
    from ..nodes.order import NodeEntry
    from ..queues.application_entry import ApplicationEntry
    from ..state.partition_state import PartitionState

__all__ = ["replace_placeholder"]


def replace_placeholder(state: PartitionState) -> bool:
    """Start one swap if any member can replace a placeholder; return whether one was started."""
    for leaf in state.tree.leaves_in_order():
        if not leaf.entries.placeholder_entries:
            continue
        for entry in list(leaf.entries):
            if entry.facts.placeholder_allocated and _try_application(state, entry):
                return True
    return False


def _try_application(state: PartitionState, entry: ApplicationEntry) -> bool:
    walk = SwapWalk()
    first: SwapOffer | None = None
    keys_of_others = state.host.keys_of_others()
    while (offer := entry.application.swaps.next(walk)) is not None:
        if keys_of_others and offer.ask.allocation_key in keys_of_others:
            continue
        if not offer.fits:
            _cancel(state, entry, offer)
            continue
        first = first or offer
        node = state.nodes.get(offer.placeholder.node_id)
        if (
            node is not None
            and _allowed(state, offer, node, allocate=False)
            and _swap(state, entry, offer, node)
        ):
            return True
    return first is not None and _swap_elsewhere(state, entry, first)


def _allowed(state: PartitionState, offer: SwapOffer, node: NodeEntry, *, allocate: bool) -> bool:
    predicates = state.host.predicates
    if predicates is None:
        return True
    return predicates.refuse(offer.ask.allocation_key, node.node_id, allocate=allocate) is None


def _real(state: PartitionState, offer: SwapOffer, node: NodeEntry) -> Allocation:
    return Allocation(offer.ask, node.node_id, state.now_ns(), node.instance_type)


def _swap(state: PartitionState, entry: ApplicationEntry, offer: SwapOffer, node: NodeEntry) -> bool:
    """Swap on the placeholder's own node: it holds the room until the RM has confirmed its end."""
    return _begin(state, entry, offer, _real(state, offer, node))


def _swap_elsewhere(state: PartitionState, entry: ApplicationEntry, offer: SwapOffer) -> bool:
    """Swap to another node: it holds the room, and the placeholder its own, until the RM has confirmed."""
    for node in state.nodes.fitting(offer.ask.resource):
        own = node.node_id == offer.placeholder.node_id  # It has been tried, and needs no second room.
        if own or not _allowed(state, offer, node, allocate=True):
            continue
        real = _real(state, offer, node)
        available = node.node.try_add(real)
        if available is None:
            return False
        state.nodes.take(node, available)
        if _begin(state, entry, offer, real):
            return True
        leave_node(state, real)
        return False
    return False


def _begin(state: PartitionState, entry: ApplicationEntry, offer: SwapOffer, real: Allocation) -> bool:
    key = offer.placeholder.ask.allocation_key
    answer = entry.application.swaps.begin(real, key)
    if answer is None:
        return False
    entry.remove_pending(offer.ask)
    drop_reservations(state, answer.reservations)
    apply(state, entry, answer)
    text = f"replacing allocationKey: {offer.ask.allocation_key}"
    _announce(state, entry, key, TerminationType.PLACEHOLDER_REPLACED, text)
    return True


def _cancel(state: PartitionState, entry: ApplicationEntry, offer: SwapOffer) -> None:
    """Have a placeholder ended that is smaller than the member it was kept for."""
    key = offer.placeholder.ask.allocation_key
    if entry.application.allocations.mark_released(key):
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
