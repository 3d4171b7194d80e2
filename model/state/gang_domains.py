"""The domain of nodes that the asks of a gang get once a part of it runs; gangs that no domain can hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from functools import partial

from ..applications.gang import whole_members
from ..nodes.gang_room import NodeRoom, slots_of_each
from ..nodes.topology import Domains, KeptDomain
from ..queues.application_entry import ApplicationEntry
from ..values.allocation import Ask
from ..values.events import ChangeDetail, ChangeType, EventType
from ..values.messages import ApplicationChanged
from .partition_state import PartitionState


def keep_domain(state: PartitionState, entry: ApplicationEntry) -> None:
    """Have the asks of a gang that needs a domain get only nodes of the one where it runs, once it does.

    If the gang has slices, these are the domains where slices lack members.
    """
    if entry.application.gang_settings.needed_level:
        state.avoided_nodes().domain_of = partial(_kept_domain, state)


def _kept_domain(state: PartitionState, ask: Ask) -> KeptDomain | None:
    """Return the domains that an ask must be placed in, `None` if it may be placed anywhere."""
    entry = state.entries.get(ask.application_id)
    if entry is None or entry.facts.gang_waits:
        return None
    domains = _needed_domains(state, entry)
    if domains is None:
        return None
    placed = [each.allocation for each in entry.application.allocations.all()]
    placed = [each for each in placed if each.node_id in state.topology.paths]
    group = "" if ask.placeholder else ask.task_group_name
    swapping = [
        each.node_id
        for each in placed
        if group and each.ask.placeholder and each.ask.task_group_name == group
    ]
    return domains.kept([each.node_id for each in placed], swapping)


def warn_if_impossible(state: PartitionState, entry: ApplicationEntry, asks: Sequence[Ask]) -> None:
    """Report to the RM, and as an event, that domains can never hold a gang which new asks complete."""
    domains = _needed_domains(state, entry)
    if domains is None:
        return
    settings = entry.application.gang_settings
    before = {record.ask.allocation_key: record.ask for record in entry.application.asks.waiting()}
    members = whole_members(settings, (before | {ask.allocation_key: ask for ask in asks}).values())
    if not members or whole_members(settings, before.values()):
        return
    empty = [NodeRoom(node.node_id, node.capacity) for node in state.nodes]
    size, count = Counter(ask.resource for ask in members).most_common(1)[0]
    if empty and not domains.has_slots([room.node_id for room in empty], slots_of_each(size, empty), count):
        text = f"no nodes can ever hold the gang: {domains.text(count)}"
        state.events.note(
            *(ChangeType.NONE, ChangeDetail.NONE, entry.application_id), of=EventType.APP, message=text
        )
        changed = ApplicationChanged(entry.application_id, entry.facts.state.value, state.now_ns(), text)
        state.host.announce(changed)


def outside_of_slice(state: PartitionState, entry: ApplicationEntry, node_id: str) -> Collection[str]:
    """Return the nodes to which a member on this node may not move, since a slice must stay in one domain."""
    domains = _needed_domains(state, entry)
    if domains is None or not domains.slice_depth or node_id not in domains.paths:
        return ()
    own = domains.slice_domain(node_id)
    return [other for other in domains.paths if domains.slice_domain(other) != own]


def _needed_domains(state: PartitionState, entry: ApplicationEntry) -> Domains | None:
    settings = entry.application.gang_settings
    return state.topology.domains(settings.domains) if settings.needed_level else None
