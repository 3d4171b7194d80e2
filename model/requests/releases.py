"""Releases that an RM sends, carried out on a partition: what ends, and what is dropped with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..state.applying import apply
from ..state.charges import count_ended, drop_asks, leave_node
from ..values.messages import (
    AllocationPlaced,
    AllocationsReleased,
    AskRelease,
    Release,
    TerminationType,
)
from .foreign import remove_foreign
from .nodes import apply_swap_on_nodes, exchange_counts
from .quarantining import end_quarantined

if TYPE_CHECKING:
    from ..queues.application_entry import ApplicationEntry
    from ..state.partition_state import PartitionState

__all__ = ["release_allocation"]

_RELEASE_TEXT: Final = "allocation remove as per RM request"


def release_allocation(state: PartitionState, release: Release) -> None:
    """End what the RM says has ended; what is not known has ended already."""
    if isinstance(release, AskRelease):
        _release_asks(state, release)
        return
    if not release.application_id:
        remove_foreign(state, release.allocation_key)
        return
    entry = state.entries.get(release.application_id)
    if entry is None:
        _release_quarantined(state, release)
        return
    if not release.allocation_key:
        _release_all(state, entry, release)
    elif release.termination is TerminationType.PLACEHOLDER_REPLACED:
        _confirm_replacement(state, entry, release)
    else:
        _release_one(state, entry, release)


def _release_asks(state: PartitionState, release: AskRelease) -> None:
    """Withdraw asks that wait; the RM knows, and is not answered."""
    key = release.allocation_key
    entry = state.entries.get(release.application_id or state.keys.owner_of(key))
    if entry is None:
        return
    asks = entry.application.asks
    for one in [key] if key else [record.ask.allocation_key for record in asks.waiting()]:
        record = asks.record(one)
        if record is not None and not record.placed:
            _remove_ask(state, entry, one)


def _release_quarantined(state: PartitionState, release: Release) -> None:
    entry = state.quarantine.applications.get(release.application_id)
    if entry is not None:
        ended = end_quarantined(state, entry, release.allocation_key)
        keys = tuple(allocation.ask.allocation_key for allocation in ended)
        if keys:
            _echo(state, entry, keys, release.termination)


def _release_one(state: PartitionState, entry: ApplicationEntry, release: Release) -> None:
    key = release.allocation_key
    _cancel_swap_of(state, entry, key)
    answer = entry.application.allocations.remove(key, release.termination, state.now_ns())
    ended = answer is not None
    if answer is not None:
        for allocation in answer.allocations:
            leave_node(state, allocation)
        count_ended(state, entry, answer)
        apply(state, entry, answer)
    if release.termination is not TerminationType.TIMEOUT:
        _remove_ask(state, entry, key)
    if ended:
        _echo(state, entry, (key,), release.termination)


def _cancel_swap_of(state: PartitionState, entry: ApplicationEntry, placeholder_key: str) -> None:
    """Make the member wait again whose placeholder ends in another way than by its replacement."""
    real = entry.application.swaps.cancel(placeholder_key)
    if real is None:
        return
    leave_node(state, real)
    answer = entry.application.asks.displace(real.ask.allocation_key)
    if answer is not None:
        for record in answer.asks:
            entry.add_pending(record.ask)
        apply(state, entry, answer)


def _remove_ask(state: PartitionState, entry: ApplicationEntry, key: str) -> None:
    if entry.application_id not in state.entries:
        return
    answer = entry.application.asks.remove(key, state.now_ns())
    drop_asks(state, entry, answer)
    apply(state, entry, answer)


def _release_all(state: PartitionState, entry: ApplicationEntry, release: Release) -> None:
    now_ns = state.now_ns()
    if release.termination is TerminationType.TIMEOUT:
        for placed in entry.application.allocations.all():
            if placed.swap is not None:  # Asks are kept: the member waits again.
                _cancel_swap_of(state, entry, placed.allocation.ask.allocation_key)
    answer = entry.application.allocations.remove_all(now_ns, leaving=False)
    for allocation in (*answer.allocations, *answer.swaps):
        leave_node(state, allocation)
    count_ended(state, entry, answer)
    apply(state, entry, answer)
    keys = tuple(allocation.ask.allocation_key for allocation in answer.allocations)
    if release.termination is not TerminationType.TIMEOUT and entry.application_id in state.entries:
        asks = entry.application.asks.remove_all(now_ns)
        drop_asks(state, entry, asks)
        apply(state, entry, asks)
    if keys:
        _echo(state, entry, keys, release.termination)


def _echo(
    state: PartitionState,
    entry: ApplicationEntry,
    keys: tuple[str, ...],
    termination: TerminationType,
) -> None:
    """Confirm what the RM ended by itself; a confirmation of the RM is not confirmed again."""
    if termination not in (TerminationType.STOPPED_BY_RM, TerminationType.UNKNOWN_TERMINATION_TYPE):
        return
    releases = tuple(
        Release(
            partition=state.name,
            application_id=entry.application_id,
            allocation_key=key,
            termination=TerminationType.STOPPED_BY_RM,
            message=_RELEASE_TEXT,
        )
        for key in keys
    )
    state.host.announce(AllocationsReleased(releases))


def _confirm_replacement(state: PartitionState, entry: ApplicationEntry, release: Release) -> None:
    """Complete a swap; without one the placeholder only ends."""
    key = release.allocation_key
    answer = entry.application.swaps.end(key, release.termination, state.now_ns())
    if answer is None:
        answer = entry.application.allocations.remove(key, release.termination, state.now_ns())
        if answer is not None:
            for allocation in answer.allocations:
                leave_node(state, allocation)
            count_ended(state, entry, answer)
            apply(state, entry, answer)
    else:
        placeholder, real = answer.allocations
        exchange_counts(state, entry, placeholder, real)
        apply_swap_on_nodes(state, placeholder, real)
        apply(state, entry, answer)
        state.host.announce(AllocationPlaced(real))
    _remove_ask(state, entry, key)
