"""The differences between the list of a resource manager (RM) and the snapshot of the scheduler.

The snapshot is that of the REST interface: it is the same for a scheduler in this process and for a remote
one. Nothing here sends.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, final, runtime_checkable

from ....model.applications.effects import ApplicationState
from ....model.errors import LicorneError
from ....model.requests.applications import CREATE_IF_MISSING_TAG
from ....model.values.allocation import PART_MARK
from ....model.values.documents import Document
from ....model.values.messages import full_partition_name
from ...si import constants
from ...si import si_pb2 as si
from ...si.messages import message_batches
from .recovery_parts import KnownAllocation, KnownState
from .recovery_progress import Before, Request

_Size: TypeAlias = "dict[str, int]"
_ENDED: Final = frozenset(
    state.value
    for state in (
        ApplicationState.COMPLETED,
        ApplicationState.FAILED,
        ApplicationState.REJECTED,
        ApplicationState.EXPIRED,
    )
)


@runtime_checkable
class ShowsItsState(Protocol):
    """A scheduler that shows what it has, as `Scheduler` and `RemoteScheduler` do."""

    def snapshot(self, *, rm_id: str | None = None) -> Document:
        """Return the documents of the partitions of a resource manager."""
        ...


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StateDifferences:
    """The requests after which a scheduler has the list of an RM."""

    first: list[Request]
    """Releases and changes of nodes: to be sent first, in order."""
    missing: KnownState
    """The missing entries: to be recovered then.

    Asks and allocations whose size changes are among its asks, nodes that become schedulable among its nodes,
    and applications of which anything is sent among its applications.
    """
    before: Before


class _KnownEntry(NamedTuple):
    """An ask or an allocation that the scheduler has."""

    node_id: str
    """Where it runs; the empty text if it waits."""
    size: _Size


@final
class _Present:
    """The entries of the scheduler; each key begins with the full name of a partition."""

    def __init__(self) -> None:
        self.nodes: dict[tuple[str, str], Any] = {}
        """The documents of the nodes."""
        self.applications: set[tuple[str, str]] = set()
        self.entries: dict[tuple[str, str, str], _KnownEntry] = {}
        """By application and key; those of others have the empty application."""


def differences(scheduler: ShowsItsState, rm_id: str, known: KnownState, batch_max: int) -> StateDifferences:
    """Return what differs, in requests of `batch_max` entries at most.

    Raises:
        RequestError: The scheduler does not answer.
        LicorneError: The RM speaks the older generation of `si.v1`, in which a key may be that of several
            allocations.
    """
    comparison = _Comparison(known, _present(scheduler, rm_id))
    has_parts = any(PART_MARK in key for _, _, key in comparison.present.entries)
    if has_parts or any(allocation.message().UUID for allocation in known.allocations.values()):
        raise LicorneError(
            f"RM {rm_id!r} speaks the older generation of si.v1: it cannot list everything again"
        )
    releases = [*comparison.releases()]
    allocations = comparison.missing_allocations()
    changed = tuple(comparison.changed())
    concerned = {release.applicationID for release in releases}
    concerned |= {allocation.application_id for allocation in (*allocations.values(), *changed)}
    missing = KnownState(
        nodes=comparison.missing_nodes(),
        applications=comparison.missing_applications(concerned),
        allocations=allocations,
        asks=changed,
    )
    first: list[Request] = [
        si.AllocationRequest(rmID=rm_id, releases=si.AllocationReleasesRequest(allocationsToRelease=batch))
        for batch in message_batches(releases, batch_max)
    ]
    first += [
        si.ApplicationRequest(rmID=rm_id, remove=batch)
        for batch in message_batches([*comparison.removals()], batch_max)
    ]
    first += [
        si.NodeRequest(rmID=rm_id, nodes=batch)
        for batch in message_batches([*comparison.node_changes()], batch_max)
    ]
    before = Before(
        applications={name for _, name in comparison.present.applications},
        nodes={name for name, node in missing.nodes.items() if _place(node) in comparison.present.nodes},
        moved=comparison.moved,
    )
    return StateDifferences(first=first, missing=missing, before=before)


@final
class _Comparison:
    """The list of the RM, with the snapshot of the scheduler."""

    def __init__(self, known: KnownState, present: _Present) -> None:
        self.known = known
        self.present = present
        self.nodes = {*map(_place, known.nodes.values())}
        self.applications = {(entry.partitionName, name) for name, entry in known.applications.items()}
        self.moved: set[tuple[str, str]] = set()
        """Allocations that run on another node than in the scheduler; known after `releases`."""

    # ----------------------------------------------------------------------------------------- nodes

    def node_changes(self) -> Iterator[si.NodeInfo]:
        """Yield nodes that are gone, then those of another size, and those that are drained now."""
        for partition, name in sorted(self.present.nodes.keys() - self.nodes):
            yield _node(partition, name, si.NodeInfo.DECOMISSION)
        for node in self.known.nodes.values():
            document = self.present.nodes.get(_place(node))
            if document is None:
                continue
            yield from _resized(node, document)
            if node.action == si.NodeInfo.CREATE_DRAIN and document["schedulable"]:
                yield _node(*_place(node), si.NodeInfo.DRAIN_NODE)

    def missing_nodes(self) -> dict[str, si.NodeInfo]:
        """Return nodes that are new, or drained and to become schedulable."""
        missing = {}
        for name, node in self.known.nodes.items():
            document = self.present.nodes.get(_place(node))
            if document is None or (node.action == si.NodeInfo.CREATE and not document["schedulable"]):
                missing[name] = node
        return missing

    # ---------------------------------------------------------------------------------- applications

    def missing_applications(self, concerned: Collection[str]) -> dict[str, si.AddApplicationRequest]:
        """Return applications that are new, and those that may have ended when what concerns them arrives."""
        missing = {}
        for name, application in self.known.applications.items():
            if name in concerned or (application.partitionName, name) not in self.present.applications:
                missing[name] = application
                application.tags[CREATE_IF_MISSING_TAG] = "true"
        return missing

    def removals(self) -> Iterator[si.RemoveApplicationRequest]:
        """Yield applications that are gone."""
        for partition, name in sorted(self.present.applications - self.applications):
            yield si.RemoveApplicationRequest(applicationID=name, partitionName=partition)

    # ------------------------------------------------------------------------------ asks, allocations

    def releases(self) -> Iterator[si.AllocationRelease]:
        """Yield the ends of what is gone or runs elsewhere, and what has to wait again with its node gone.

        The entries of an application end with it.
        """
        waiting = {*map(_identity, self.known.asks)}
        for (partition, application_id, key), entry in self.present.entries.items():
            if application_id and (partition, application_id) not in self.applications:
                continue
            allocation = self.known.allocations.get((application_id, key))
            why = si.STOPPED_BY_RM
            if allocation is not None and allocation.partition == partition:
                if not entry.node_id or not application_id or entry.node_id == allocation.node_id:
                    continue  # Foreign allocations are moved by sending them again.
                self.moved.add((application_id, key))
            elif (partition, application_id, key) in waiting:
                if not self._has_lost_its_node(partition, entry):
                    continue
                why = si.SCHEDULING_FAILED_ON_RM
            yield si.AllocationRelease(
                partitionName=partition,
                applicationID=application_id,
                allocationKey=key,
                terminationType=why,
            )

    def missing_allocations(self) -> dict[tuple[str, str], KnownAllocation]:
        """Return allocations that are not there, or wait there; of others also those that have changed."""
        missing = {}
        for identity, allocation in self.known.allocations.items():
            entry = self.present.entries.get(_identity(allocation))
            if (
                entry is None
                or entry.node_id != allocation.node_id
                or (allocation.is_foreign and entry.size != _size_of(allocation))
            ):
                missing[identity] = allocation
        return missing

    def changed(self) -> Iterator[KnownAllocation]:
        """Yield allocations of another size, and asks that are new, have another size or wait again."""
        for allocation in self.known.allocations.values():
            entry = self.present.entries.get(_identity(allocation))
            if entry is None or entry.node_id != allocation.node_id or allocation.is_foreign:
                continue
            if entry.size != _size_of(allocation):
                yield allocation
        for ask in self.known.asks:
            entry = self.present.entries.get(_identity(ask))
            if entry is None or entry.size != _size_of(ask) or self._has_lost_its_node(ask.partition, entry):
                yield ask

    def _has_lost_its_node(self, partition: str, entry: _KnownEntry) -> bool:
        return bool(entry.node_id) and (partition, entry.node_id) not in self.nodes


def _place(node: si.NodeInfo) -> tuple[str, str]:
    return node.attributes[constants.NODE_PARTITION], node.nodeID


def _identity(allocation: KnownAllocation) -> tuple[str, str, str]:
    return allocation.partition, allocation.application_id, allocation.key


def _node(partition: str, name: str, action: si.NodeInfo.ActionFromRM) -> si.NodeInfo:
    return si.NodeInfo(nodeID=name, action=action, attributes={constants.NODE_PARTITION: partition})


def _size(resource: si.Resource) -> _Size:
    return {name: quantity.value for name, quantity in resource.resources.items() if quantity.value}


def _size_of(allocation: KnownAllocation) -> _Size:
    return _size(allocation.message().resourcePerAlloc)


def _shown_size(quantities: Mapping[str, int]) -> _Size:
    return {name: quantity for name, quantity in quantities.items() if quantity}


def _resized(node: si.NodeInfo, document: Any) -> Iterator[si.NodeInfo]:
    """Yield the update of a node whose size has changed, or its foreign usage, as an older RM reports it."""
    update = _node(*_place(node), si.NodeInfo.UPDATE)
    others = dict(document.get("occupied", {}))
    for foreign in document.get("foreignAllocations", []):
        for name, quantity in foreign.get("resource", {}).items():
            others[name] = others.get(name, 0) - quantity
    if _size(node.schedulableResource) != _shown_size(document.get("capacity", {})):
        update.schedulableResource.CopyFrom(node.schedulableResource)
    if _size(node.occupiedResource) != _shown_size(others):
        update.occupiedResource.CopyFrom(node.occupiedResource)
    if update.HasField("schedulableResource") or update.HasField("occupiedResource"):
        yield update


# ------------------------------------------------------------------------------- what the scheduler has


def _present(scheduler: ShowsItsState, rm_id: str) -> _Present:
    snapshot: Any = scheduler.snapshot(rm_id=rm_id)
    present = _Present()
    for short_name, nodes in snapshot["nodes"].items():
        partition = full_partition_name(short_name, rm_id)
        for node in nodes:
            present.nodes[partition, node["nodeID"]] = node
            for entry in node.get("foreignAllocations", []):
                _add(present, partition, "", entry)
    for short_name, applications in snapshot["applications"].items():
        partition = full_partition_name(short_name, rm_id)
        for application in applications:
            name = application["applicationID"]
            if application["applicationState"] in _ENDED:
                continue
            present.applications.add((partition, name))
            for entry in (*application.get("requests", []), *application.get("allocations", [])):
                _add(present, partition, name, entry)
    return present


def _add(present: _Present, partition: str, application_id: str, entry: Any) -> None:
    size = _shown_size(entry.get("resource", {}))
    present.entries[partition, application_id, entry["allocationKey"]] = _KnownEntry(
        entry.get("nodeId", ""), size
    )
