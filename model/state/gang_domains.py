"""The domain of nodes that the asks of a gang get, once a part of the gang runs."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from ..nodes.topology import Domains, KeptDomain
from ..queues.application_entry import ApplicationEntry
from ..values.allocation import Ask
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
