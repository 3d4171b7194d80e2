"""Releases that an RM sends, carried out on a partition: what ends, and what is dropped with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ..applications.effects import Answer
from ..queues.application_entry import ApplicationEntry
from ..state.applying import apply
from ..state.charges import count_ended, drop_asks, drop_last_ask, leave_node, leave_swap
from ..state.partition_state import PartitionState
from ..values.allocation import Allocation, part_key
from ..values.facts import AsksAddedFact
from ..values.messages import (
    AllocationPlaced,
    AllocationsReleased,
    ApplicationRemoval,
    AskRelease,
    Release,
    TerminationType,
    UuidRelease,
)
from .allocations import remove_foreign
from .existing import withdraw_ask, withdraw_waiting
from .nodes import apply_swap_on_nodes, exchange_counts
from .quarantining import end_quarantined, forget_quarantined

_RELEASE_TEXT: Final = "allocation remove as per RM request"


def release_allocation(state: PartitionState, release: Release) -> None:
    """End the allocations and asks of releases; unknown ones have ended already."""
    if isinstance(release, AskRelease):
        _release_asks(state, release)
        return
    if isinstance(release, UuidRelease):
        _release_by_uuid(state, release)
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
    name = release.application_id or state.keys.owner_of(key) or state.parts.owner_of(key)
    entry = state.entries.get(name)
    if entry is None:
        return
    if key:
        keys = state.parts.of(name, key)
    else:
        keys = [record.ask.allocation_key for record in entry.application.asks.waiting()]
    withdraw_waiting(state, entry, keys)


def _release_by_uuid(state: PartitionState, release: UuidRelease) -> None:
    """End the allocations that an RM of the older generation means."""
    name, ask_key, uuid = release.application_id, release.allocation_key, release.uuid
    entry = state.entries.get(name)
    if not name:
        keys = [ask_key or uuid]
    elif uuid:
        keys = [part_key(ask_key, uuid) if ask_key else state.parts.with_uuid(name, uuid)]
    elif ask_key:
        keys = state.parts.of(name, ask_key) or [ask_key]
    elif entry is not None:
        keys = [placed.allocation.ask.allocation_key for placed in entry.application.allocations.all()]
    else:
        keys = [""]
    for key in keys:
        meant = Release(
            partition=release.partition,
            application_id=name,
            allocation_key=key,
            termination=release.termination,
            message=release.message,
        )
        release_allocation(state, meant)


def _release_quarantined(state: PartitionState, release: Release) -> None:
    entry = state.quarantine.applications.get(release.application_id)
    if entry is not None:
        ended = end_quarantined(state, entry, release.allocation_key)
        keys = tuple(allocation.ask.allocation_key for allocation in ended)
        if keys:
            _echo(state, entry, keys, release.termination)


def _put_back(state: PartitionState, entry: ApplicationEntry, allocation_key: str) -> bool:
    """Have an ask wait again that the RM could not start; return `False` if it has to end instead."""
    answer = entry.application.allocations.put_back(allocation_key, state.now_ns())
    if answer is None:
        return entry.application.allocations.get(allocation_key) is None  # It waits already, or is gone.
    for allocation in answer.allocations:
        leave_node(state, allocation)
        state.avoided_nodes().avoid(allocation_key, allocation.node_id, state.now_ns())
    count_ended(state, entry, answer, TerminationType.SCHEDULING_FAILED_ON_RM)
    asks = tuple(record.ask for record in answer.asks)
    entry.add_pending(*asks)
    if state.events.are_kept:
        added = AsksAddedFact(len(asks), state.rm_id, state.now_ns(), asks)
        answer.happened = (*answer.happened, added)
    apply(state, entry, answer)
    return True


def _release_one(state: PartitionState, entry: ApplicationEntry, release: Release) -> None:
    key = release.allocation_key
    if release.termination is TerminationType.SCHEDULING_FAILED_ON_RM and _put_back(state, entry, key):
        return
    _cancel_swap_of(state, entry, key)
    with_ask = release.termination is not TerminationType.TIMEOUT
    answer = entry.application.allocations.remove(key, release.termination, state.now_ns(), with_ask=with_ask)
    ended = answer is not None
    if answer is not None:
        for allocation in answer.allocations:
            leave_node(state, allocation)
        count_ended(state, entry, answer, release.termination)
        if answer.asks:
            drop_asks(state, entry, answer)
        apply(state, entry, answer)
        if answer.last_ask is not None:
            drop_last_ask(state, answer.last_ask)
    if with_ask and (answer is None or not (answer.asks or answer.last_ask)):
        withdraw_ask(state, entry, key)
    if ended:
        _echo(state, entry, (key,), release.termination)


def _cancel_swap_of(state: PartitionState, entry: ApplicationEntry, placeholder_key: str) -> None:
    """Make the member wait again whose placeholder ends in another way than by its replacement."""
    if not entry.facts.placeholder_allocated:
        return  # Without placeholders: most applications need not be asked.
    real = entry.application.swaps.cancel(placeholder_key)
    if real is None:
        return
    leave_swap(state, real)
    answer = entry.application.asks.displace(real.ask.allocation_key)
    if answer is not None:
        for record in answer.asks:
            entry.add_pending(record.ask)
        apply(state, entry, answer)


def _release_all(state: PartitionState, entry: ApplicationEntry, release: Release) -> None:
    now_ns = state.now_ns()
    if release.termination is TerminationType.SCHEDULING_FAILED_ON_RM:
        for placed in entry.application.allocations.all():
            _release_one(state, entry, replace(release, allocation_key=placed.allocation.ask.allocation_key))
        return
    if release.termination is TerminationType.TIMEOUT:
        for placed in entry.application.allocations.all():
            if placed.swap is not None:  # Asks are kept: the member waits again.
                _cancel_swap_of(state, entry, placed.allocation.ask.allocation_key)
    answer = entry.application.allocations.remove_all(now_ns, leaving=False)
    _leave(state, entry, answer, release.termination)
    keys = tuple(allocation.ask.allocation_key for allocation in answer.allocations)
    if release.termination is not TerminationType.TIMEOUT and entry.application_id in state.entries:
        asks = entry.application.asks.remove_all(now_ns)
        drop_asks(state, entry, asks)
        apply(state, entry, asks)
    if keys:
        _echo(state, entry, keys, release.termination)


def _leave(
    state: PartitionState, entry: ApplicationEntry, answer: Answer, termination: TerminationType
) -> None:
    """Take what an application has ended off its nodes, with the swaps that were under way, and count it."""
    for allocation in answer.allocations:
        leave_node(state, allocation)
    for real in answer.swaps:
        leave_swap(state, real)
    count_ended(state, entry, answer, termination)
    apply(state, entry, answer)


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
            count_ended(state, entry, answer, release.termination)
            apply(state, entry, answer)
    else:
        placeholder, real = answer.allocations
        exchange_counts(state, entry, placeholder, real, answer)
        apply_swap_on_nodes(state, placeholder, real)
        apply(state, entry, answer)
        state.host.announce(AllocationPlaced(real))
    withdraw_ask(state, entry, key)


# ----------------------------------------------------------------------------------- applications


def remove_application(state: PartitionState, removal: ApplicationRemoval) -> None:
    """Remove an application with all that it has; an unknown one is gone already."""
    entry = state.entries.get(removal.application_id)
    if entry is None:
        ended = forget_quarantined(state, removal.application_id, removal.outcome)
        if removal.outcome is not None:
            state.dependencies.note(removal.application_id, removal.outcome)
        _announce_end(state, removal.application_id, ended)
        return
    entry.outcome = removal.outcome
    serial = state.serials[removal.application_id]
    now_ns = state.now_ns()
    answer = entry.application.allocations.leave(now_ns)
    if answer is None:
        dropped = entry.application.asks.remove_all(now_ns)
        drop_asks(state, entry, dropped)
        apply(state, entry, dropped)
        if removal.application_id in state.entries:
            answer = entry.application.allocations.remove_all(now_ns, leaving=True)
    if answer is not None:
        _leave(state, entry, answer, TerminationType.STOPPED_BY_RM)
        _announce_end(state, removal.application_id, answer.allocations)
    state.forget(entry, serial)


def _announce_end(state: PartitionState, application_id: str, allocations: Sequence[Allocation]) -> None:
    releases = [
        Release(
            partition=state.name,
            application_id=application_id,
            allocation_key=allocation.ask.allocation_key,
            termination=TerminationType.STOPPED_BY_RM,
            message=f"Application {application_id} Removed",
        )
        for allocation in allocations
    ]
    if releases:
        state.host.announce(AllocationsReleased(tuple(releases)))
