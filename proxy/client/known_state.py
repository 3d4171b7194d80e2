"""What a resource manager (RM) knows when it recovers, checked as a whole before anything is sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Final, final

from ...model.errors import LicorneError
from ...model.values.messages import full_partition_name
from ..si import constants
from ..si import si_pb2 as si

__all__ = ["KnownState", "is_foreign", "read_known_state"]

_ACTIONS: Final = (si.NodeInfo.CREATE, si.NodeInfo.CREATE_DRAIN)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class KnownState:
    """What an RM knows. The messages are copies, each with the full name of its partition."""

    nodes: Mapping[str, si.NodeInfo]
    """By id; the action is `CREATE`, or `CREATE_DRAIN` for a node that is to stay drained."""
    applications: Mapping[str, si.AddApplicationRequest]
    """By id."""
    allocations: Mapping[tuple[str, str], si.Allocation]
    """By application and key; those of others have the empty application."""
    asks: tuple[si.Allocation, ...]


def is_foreign(allocation: si.Allocation) -> bool:
    """Return whether another scheduler has placed an allocation."""
    return constants.FOREIGN in allocation.allocationTags


def read_known_state(
    rm_id: str,
    nodes: Iterable[si.NodeInfo],
    applications: Iterable[si.AddApplicationRequest],
    allocations: Iterable[si.Allocation],
    asks: Iterable[si.Allocation],
) -> KnownState:
    """Copy and check what an RM knows.

    Raises:
        LicorneError: Something occurs twice, or refers to what is not there, or is not what it is given as.
    """
    known = KnownState(
        nodes=_nodes(rm_id, nodes),
        applications=_applications(rm_id, applications),
        allocations=_allocations(rm_id, allocations),
        asks=tuple(_with_partition(ask, rm_id) for ask in asks),
    )
    for allocation in known.allocations.values():
        _check_references(allocation, known)
    for ask in known.asks:
        if ask.nodeID:
            raise LicorneError(f"ask {ask.allocationKey!r} is on node {ask.nodeID!r}: it is an allocation")
    return known


def _nodes(rm_id: str, nodes: Iterable[si.NodeInfo]) -> dict[str, si.NodeInfo]:
    found: dict[str, si.NodeInfo] = {}
    for given in nodes:
        node = deepcopy(given)
        name = node.nodeID
        if name in found:
            raise LicorneError(f"node {name!r} is given twice")
        if node.action not in _ACTIONS:
            raise LicorneError(
                f"the action of node {name!r} is {_name_of(node.action)}; for a recovery it is CREATE, "
                "or CREATE_DRAIN if the node is to stay drained"
            )
        if node.existingAllocations:
            raise LicorneError(f"node {name!r} has existingAllocations: give them as allocations")
        partition = full_partition_name(node.attributes.get(constants.NODE_PARTITION, ""), rm_id)
        node.attributes[constants.NODE_PARTITION] = partition
        found[name] = node
    return found


def _name_of(action: int) -> str:
    known = si.NodeInfo.ActionFromRM
    return known.Name(action) if action in known.values() else str(action)


def _applications(
    rm_id: str, applications: Iterable[si.AddApplicationRequest]
) -> dict[str, si.AddApplicationRequest]:
    found: dict[str, si.AddApplicationRequest] = {}
    for given in applications:
        application = deepcopy(given)
        name = application.applicationID
        if name in found:
            raise LicorneError(f"application {name!r} is given twice")
        application.partitionName = full_partition_name(application.partitionName, rm_id)
        found[name] = application
    return found


def _allocations(rm_id: str, allocations: Iterable[si.Allocation]) -> dict[tuple[str, str], si.Allocation]:
    found: dict[tuple[str, str], si.Allocation] = {}
    for given in allocations:
        allocation = _with_partition(given, rm_id)
        if is_foreign(allocation):
            allocation.applicationID = ""  # No answer names it, and no application has it.
        identity = (allocation.applicationID, allocation.allocationKey)
        if identity in found:
            raise LicorneError(f"allocation {allocation.allocationKey!r} is given twice")
        found[identity] = allocation
    return found


def _with_partition(given: si.Allocation, rm_id: str) -> si.Allocation:
    allocation = deepcopy(given)
    allocation.partitionName = full_partition_name(given.partitionName, rm_id)
    return allocation


def _check_references(allocation: si.Allocation, known: KnownState) -> None:
    key, partition = allocation.allocationKey, allocation.partitionName
    if not allocation.nodeID:
        raise LicorneError(f"allocation {key!r} has no node: it is an ask")
    node = known.nodes.get(allocation.nodeID)
    if node is None:
        raise LicorneError(f"allocation {key!r} is on node {allocation.nodeID!r}, which is not given")
    where = {f"node {allocation.nodeID!r}": node.attributes[constants.NODE_PARTITION]}
    if not is_foreign(allocation):
        application = known.applications.get(allocation.applicationID)
        if application is None:
            raise LicorneError(
                f"allocation {key!r} is of application {allocation.applicationID!r}, which is not given"
            )
        where[f"application {allocation.applicationID!r}"] = application.partitionName
    for what, other in where.items():
        if other != partition:
            raise LicorneError(f"allocation {key!r} is in partition {partition}, but its {what} in {other}")
