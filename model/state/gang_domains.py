"""The domain of nodes that the asks of a gang get, once a part of the gang runs."""

from __future__ import annotations

from functools import partial

from ..nodes.topology import KeptDomain
from ..queues.application_entry import ApplicationEntry
from ..values.allocation import Ask
from .partition_state import PartitionState


def keep_domain(state: PartitionState, entry: ApplicationEntry) -> None:
    """Have the asks of a gang that needs a domain get only nodes of the one where it runs, once it does."""
    if entry.application.gang_settings.required_level:
        state.avoided_nodes().domain_of = partial(_kept_domain, state)


def _kept_domain(state: PartitionState, ask: Ask) -> KeptDomain | None:
    """Return the domain that an ask must be placed in, `None` if it may be placed anywhere."""
    entry = state.entries.get(ask.application_id)
    if entry is None or entry.facts.gang_waits:
        return None
    settings = entry.application.gang_settings
    domains = state.topology.domains(settings.domains) if settings.required_level else None
    if domains is None:
        return None
    placed = (each.allocation.node_id for each in entry.application.allocations.all())
    return domains.kept(node_id for node_id in placed if node_id in state.topology.paths)
