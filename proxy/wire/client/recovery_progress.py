"""How far a recovery has come: what was sent, what has been answered, and what is to be sent next.

Nodes and applications go first. An application that is rejected and has allocations is sent again as a
forced one, or its allocations become foreign ones. When all of them are answered the existing allocations
follow, and each node becomes schedulable when all of its allocations are answered. A scheduler that knows
something already gets the rest in the same way. Nothing here sends, locks or waits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, NamedTuple, TypeAlias, final

from ...si import constants
from ...si import si_pb2 as si
from ...si.messages import batches, message_batches
from .recovery_parts import KnownAllocation, KnownState, as_foreign

Request: TypeAlias = "si.NodeRequest | si.ApplicationRequest | si.AllocationRequest | AllocationBatch"
_PROBE: Final = "licorne-recovery"
"""The key of the ask that is rejected after the foreign allocations, which are not answered."""


@final
@dataclass(frozen=True, slots=True)
class AllocationBatch:
    """A request with allocations or asks that is made when it is sent: until then they are bytes."""

    rm_id: str
    entries: Sequence[KnownAllocation]

    def request(self) -> si.AllocationRequest:
        """Return the request."""
        request = si.AllocationRequest(rmID=self.rm_id)
        for entry in self.entries:
            request.allocations.add().MergeFromString(entry.data)
        return request


class RejectedKind(Enum):
    """A rejection by the scheduler."""

    NODE = "node"
    APPLICATION = "application"
    ALLOCATION = "allocation"
    REQUEST = "request"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryRejection:
    """Something that the scheduler has not accepted in a recovery, and why.

    `name` is the id, or the key of an allocation; of a request that is refused as a whole it is its kind.
    `node_id` is the node that is concerned, empty if there is none. `code` is the name of a `RejectionCode`,
    for programs; it is empty for a request that is refused as a whole.
    """

    kind: RejectedKind
    name: str
    reason: str
    node_id: str = ""
    application_id: str = ""
    code: str = ""


class _RejectedFor(NamedTuple):
    """The reason of a rejection, for people and for programs."""

    reason: str
    code: str

    def caused(self, what: str) -> _RejectedFor:
        """Return the refusal of what needs something that was rejected."""
        return _RejectedFor(f"its {what} was rejected: {self.reason}", self.code)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """The entries that a scheduler has already and that a recovery need not send."""

    applications: Collection[str]
    """The ids of its applications."""
    nodes: Collection[str]
    """Its nodes that are drained, and to become schedulable."""
    moved: Collection[tuple[str, str]]
    """Allocations that it has elsewhere than the resource manager, by application and key: they are released
    first."""


_NOTHING: Final = Before(applications=(), nodes=(), moved=())


@final
class RecoveryProgress:
    """The progress of one recovery; its owner guards it.

    Args:
        rm_id: The id of the resource manager.
        known: Its knowledge, or the part of it that the scheduler lacks.
        batch_max: How many entries one request has at most.
        before: The entries of the scheduler; `None` if it has just registered the resource manager, and
            places nothing yet.
        forces: Whether rejected applications with allocations are sent again as forced ones; otherwise their
            allocations are sent as foreign ones.
    """

    def __init__(
        self,
        rm_id: str,
        known: KnownState,
        batch_max: int,
        before: Before | None = None,
        *,
        forces: bool = True,
    ) -> None:
        self._rm_id = rm_id
        self._known = known
        self._batch_max = batch_max
        self._before = before or _NOTHING
        self._schedules_meanwhile = before is not None
        """Whether an ask may be placed before its allocation is sent, which has no answer then."""
        self._moved = set(self._before.moved)
        self._nodes_open = set(known.nodes).difference(self._before.nodes)
        self._applications_open = set(known.applications)
        self._allocations_open: dict[tuple[str, str], str] = {}
        """The allocations that were sent and are not answered yet, each with the node that waits for it; with
        the empty text if that waits for the probe."""
        self._probes_open: dict[str, tuple[str, ...]] = {}
        """The keys of the probes that were sent, with the nodes of the allocations that they follow."""
        self._open_on: dict[str, int] = {}
        """How many answers each node waits for; the nodes that are done are not in it."""
        self._forced: list[str] = []
        """Applications that have allocations and were rejected at first."""
        self._forces = forces
        self._is_forcing = not forces
        """Whether rejections of applications are final."""
        self._sends_allocations = False
        self._used = {allocation.application_id for allocation in known.allocations.values()} - {""}
        self._probe_application = _unused_name({*known.applications, *self._before.applications})
        self._refused_applications: dict[str, _RejectedFor] = {}
        self._refused_nodes: dict[str, _RejectedFor] = {}
        self.rejections: list[RecoveryRejection] = []
        self.left_out: set[str] = set()
        """Nodes that were rejected, or stay drained because an allocation on them was rejected."""

    @property
    def is_complete(self) -> bool:
        """Whether everything is answered, and each node is schedulable that is to be."""
        return self._sends_allocations and not self._open_on

    def begin(self) -> list[Request]:
        """Return the requests with the nodes and applications, or the next ones if there are none."""
        nodes = []
        for known in self._known.nodes.values():
            if known.nodeID in self._nodes_open:
                node = deepcopy(known)
                node.action = si.NodeInfo.CREATE_DRAIN
                nodes.append(node)
        requests: list[Request] = [*self._node_requests(nodes)]
        requests += self._application_requests(self._known.applications.values())
        return requests + self._next()

    # -------------------------------------------------------------------------------------- answers

    def take_nodes(self, response: si.NodeResponse) -> list[Request]:
        """Note which nodes are accepted; return what is to be sent now."""
        for rejected in response.rejected:
            name = rejected.nodeID
            if name in self._nodes_open:
                refusal = self._refused_nodes[name] = _RejectedFor(rejected.reason, rejected.code)
                self._leave_out(RejectedKind.NODE, name, refusal, node_id=name)
                self._nodes_open.discard(name)
        self._nodes_open.difference_update(accepted.nodeID for accepted in response.accepted)
        return self._next()

    def take_applications(
        self, response: si.ApplicationResponse
    ) -> tuple[list[Request], si.ApplicationResponse]:
        """Note which applications are accepted.

        Returns:
            The requests to send now, and the response without the rejections of entries that are sent again.
        """
        rest = deepcopy(response)
        del rest.rejected[:]
        for rejected in response.rejected:
            name = rejected.applicationID
            if name in self._applications_open and name in self._used and not self._is_forcing:
                self._applications_open.discard(name)
                self._forced.append(name)
                continue
            rest.rejected.append(rejected)
            if name in self._applications_open:
                self._applications_open.discard(name)
                refusal = self._refused_applications[name] = _RejectedFor(rejected.reason, rejected.code)
                self._note(RejectedKind.APPLICATION, name, refusal, application_id=name)
        self._applications_open.difference_update(accepted.applicationID for accepted in response.accepted)
        return self._next(), rest

    def take_allocations(
        self, response: si.AllocationResponse
    ) -> tuple[list[Request], si.AllocationResponse]:
        """Note which allocations are recovered.

        Returns:
            The requests to send now, and the response without the answers that the resource manager expects:
            those of allocations that it knew, of probes, and of releases of what runs elsewhere.
        """
        rest = si.AllocationResponse(rejected=response.rejected, releasedAsks=response.releasedAsks)
        rest.released.extend(released for released in response.released if not self._is_move(released))
        known, expected = self._known.allocations, self._allocations_open
        done: list[str] = []
        for placed in response.new:
            identity = (placed.applicationID, placed.allocationKey)
            waits = expected.get(identity)
            if waits is None or placed.nodeID != known[identity].node_id:
                rest.new.append(placed)
            else:
                del expected[identity]
                done.append(waits)
        probed: list[str] = []
        for rejected in response.rejectedAllocations:
            key, application_id = rejected.allocationKey, rejected.applicationID
            if application_id == self._probe_application:
                probed.append(key)
                continue
            rest.rejectedAllocations.append(rejected)
            waits = self._allocations_open.pop((application_id, key), None)
            if waits is not None:
                refusal = _RejectedFor(rejected.reason, rejected.code)
                self._reject_allocation(self._known.allocations[application_id, key], refusal)
                done.append(waits)
        for key in probed:
            done += self._probes_open.pop(key, ())
        return [*self._finish(filter(None, done)), *self._next()], rest

    def _is_move(self, released: si.AllocationRelease) -> bool:
        """Return whether a release is the answer to that of an allocation which runs elsewhere."""
        identity = (released.applicationID, released.allocationKey)
        if released.terminationType != si.STOPPED_BY_RM or identity not in self._moved:
            return False
        self._moved.discard(identity)
        return True

    # ------------------------------------------------------------------------------- what comes next

    def _next(self) -> list[Request]:
        """Return what is sent once everything before it is answered."""
        if self._nodes_open or self._applications_open or self._sends_allocations:
            return []
        if self._forced and not self._is_forcing:
            self._is_forcing = True
            self._applications_open = set(self._forced)
            return [*self._application_requests(map(self._forced_application, self._forced))]
        if not self._forces:
            self._disown()
        self._sends_allocations = True
        return self._allocation_requests()

    def _forced_application(self, name: str) -> si.AddApplicationRequest:
        application = deepcopy(self._known.applications[name])
        application.tags[constants.APP_TAG_CREATE_FORCE] = "true"
        return application

    def _disown(self) -> None:
        """Make foreign allocations of those whose applications are rejected."""
        known, refused = self._known.allocations.values(), self._refused_applications
        owned = (as_foreign(each) if each.application_id in refused else each for each in known)
        allocations = {(each.application_id, each.key): each for each in owned}
        self._known = replace(self._known, allocations=allocations)

    def _allocation_requests(self) -> list[Request]:
        """Return the allocations, by partition, each followed by a probe if some have no sure answer."""
        by_partition: dict[str, dict[str, list[KnownAllocation]]] = {}
        probed_on: dict[str, dict[str, None]] = {}
        for identity, allocation in self._known.allocations.items():
            why_not = self._why_not(allocation)
            if why_not is not None:
                self._reject_allocation(allocation, why_not)
                continue
            node_id, partition = allocation.node_id, allocation.partition
            # Those of one application after each other: a scheduler recovers them in one step.
            of_partition = by_partition.setdefault(partition, {})
            of_partition.setdefault(allocation.application_id, []).append(allocation)
            is_probed = self._schedules_meanwhile or allocation.is_foreign
            self._allocations_open[identity] = "" if is_probed else node_id
            if is_probed:
                probed_on.setdefault(partition, {})[node_id] = None
            else:
                self._open_on[node_id] = self._open_on.get(node_id, 0) + 1
        requests: list[Request] = []
        for partition, of_partition in by_partition.items():
            entries = [entry for of_application in of_partition.values() for entry in of_application]
            node_ids = probed_on.get(partition)
            if node_ids is not None:
                entries.append(self._probe(partition))
                self._probes_open[_probe_key(partition)] = tuple(node_ids)
                for node_id in node_ids:
                    self._open_on[node_id] = self._open_on.get(node_id, 0) + 1
            requests += ask_requests(self._rm_id, entries, self._batch_max)
        return requests + self._schedulable([name for name in self._known.nodes if name not in self._open_on])

    def _why_not(self, allocation: KnownAllocation) -> _RejectedFor | None:
        """Return why an allocation cannot be recovered, `None` if it can."""
        refusal = self._refused_nodes.get(allocation.node_id)
        if refusal is not None:
            return refusal.caused("node")
        refusal = self._refused_applications.get(allocation.application_id)
        return None if refusal is None else refusal.caused("application")

    def _probe(self, partition: str) -> KnownAllocation:
        """Return an ask that is rejected, since its application does not exist.

        A partition answers in order. So the rejection comes after those of the allocations before it.
        """
        name, key = self._probe_application, _probe_key(partition)
        message = si.Allocation(allocationKey=key, applicationID=name, partitionName=partition)
        return KnownAllocation(name, key, "", partition, False, message.SerializeToString())

    def _finish(self, answered: Iterable[str]) -> list[Request]:
        """Count answers of nodes; return the request that makes those schedulable that have all."""
        done = []
        for node_id in answered:
            self._open_on[node_id] -= 1
            if not self._open_on[node_id]:
                del self._open_on[node_id]
                done.append(node_id)
        return self._schedulable(done)

    def _schedulable(self, node_ids: Iterable[str]) -> list[Request]:
        known = self._known.nodes
        nodes = [known[name] for name in node_ids if name in known and name not in self.left_out]
        return [
            *self._node_requests(
                si.NodeInfo(
                    nodeID=node.nodeID,
                    action=si.NodeInfo.DRAIN_TO_SCHEDULABLE,
                    attributes={constants.NODE_PARTITION: node.attributes[constants.NODE_PARTITION]},
                )
                for node in nodes
                if node.action == si.NodeInfo.CREATE
            )
        ]

    # ------------------------------------------------------------------------------------- rejections

    def _reject_allocation(self, allocation: KnownAllocation, refusal: _RejectedFor) -> None:
        self._leave_out(
            RejectedKind.ALLOCATION,
            allocation.key,
            refusal,
            node_id=allocation.node_id,
            application_id=allocation.application_id,
        )

    def _leave_out(
        self, kind: RejectedKind, name: str, refusal: _RejectedFor, *, node_id: str, application_id: str = ""
    ) -> None:
        if node_id in self._known.nodes:
            self.left_out.add(node_id)
        self._note(kind, name, refusal, node_id=node_id, application_id=application_id)

    def _note(
        self,
        kind: RejectedKind,
        name: str,
        refusal: _RejectedFor,
        *,
        node_id: str = "",
        application_id: str = "",
    ) -> None:
        self.rejections.append(
            RecoveryRejection(
                kind=kind,
                name=name,
                reason=refusal.reason,
                code=refusal.code,
                node_id=node_id,
                application_id=application_id,
            )
        )

    # --------------------------------------------------------------------------------------- requests

    def _node_requests(self, nodes: Iterable[si.NodeInfo]) -> Iterator[si.NodeRequest]:
        for batch in message_batches([*nodes], self._batch_max):
            yield si.NodeRequest(rmID=self._rm_id, nodes=batch)

    def _application_requests(
        self, applications: Iterable[si.AddApplicationRequest]
    ) -> Iterator[si.ApplicationRequest]:
        for batch in message_batches([*applications], self._batch_max):
            yield si.ApplicationRequest(rmID=self._rm_id, new=batch)


def ask_requests(rm_id: str, asks: Sequence[KnownAllocation], batch_max: int) -> list[Request]:
    """Return the requests with asks or allocations, in order."""
    return [AllocationBatch(rm_id, batch) for batch in batches(asks, batch_max, _bytes_of)]


def _bytes_of(entry: KnownAllocation) -> int:
    return len(entry.data)


def _probe_key(partition: str) -> str:
    return f"{_PROBE} {partition}"


def _unused_name(names: Collection[str]) -> str:
    """Return an id that no application has."""
    name = _PROBE
    while name in names:
        name += "'"
    return name
