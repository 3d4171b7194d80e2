"""Read the requests of resource managers: from `si.v1` to the messages of the model.

Partition names become full names on the way. Fields of the older generation are read in
`older_generation`; a request that is refused there has no result. Nothing in a result refers to the request:
the caller may reuse it.

Fields are read by name only, so messages of another program's copy of `si.v1` are read like our own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Final, final

from ...model.errors import RequestError
from ...model.resources.resource import EMPTY, Resource
from ...model.values.dependencies import ApplicationOutcome
from ...model.values.messages import (
    AllocationSubmission,
    ApplicationRemoval,
    ApplicationSubmission,
    NodeAction,
    NodeUpdate,
    Registration,
    Release,
    full_partition_name,
)
from . import si_pb2 as si
from .constants import NODE_PARTITION
from .older_generation import (
    Generation,
    ask_releases,
    named_allocation,
    older_asks,
    termination_of,
    uses_uuids,
    uuid_releases,
)

RESOURCE_SIZES_MAX: Final = 4096
"""How many different sizes a reader keeps before it drops them all."""

_NO_TEXTS: Final[Mapping[str, str]] = MappingProxyType({})
_OUTCOMES: Final = {outcome.value: outcome for outcome in ApplicationOutcome}
_ACTIONS: Final = {action.value: action for action in NodeAction}


def registration(
    request: si.RegisterResourceManagerRequest, partitions: Collection[str] | None = None
) -> Registration:
    """Read the announcement of a resource manager, and the partitions that it has made if not all are."""
    return Registration(
        rm_id=request.rmID,
        version=request.version,
        policy_group=request.policyGroup,
        build_information=_texts(request.buildInfo),
        configuration=request.config,
        extra_configuration=_texts(request.extraConfig),
        partitions=None
        if partitions is None
        else tuple(full_partition_name(name, request.rmID) for name in partitions),
    )


def application_removals(request: si.ApplicationRequest) -> tuple[ApplicationRemoval, ...]:
    """Read the applications that end, in order.

    Raises:
        RequestError: An outcome is none.
    """
    rm_id = request.rmID
    return tuple(
        ApplicationRemoval(
            removal.applicationID, full_partition_name(removal.partitionName, rm_id), _outcome(removal)
        )
        for removal in request.remove
    )


def _outcome(removal: si.RemoveApplicationRequest) -> ApplicationOutcome | None:
    text = removal.outcome
    if text and text not in _OUTCOMES:
        what = f"the outcome of application {removal.applicationID}"
        raise RequestError(f"{what} is {text[:60]!r}: it must be {' or '.join(_OUTCOMES)}")
    return _OUTCOMES.get(text)


def releases(request: si.AllocationRequest, generation: Generation) -> tuple[Release, ...]:
    """Read what ends, in order.

    Releases of asks come last. A field of the older generation is noted in `generation`, and releases are
    read in the generation that is noted there.

    Raises:
        RequestError: A release of asks names neither an ask nor an application.
    """
    if not request.HasField("releases"):
        return ()
    asks = ask_releases(request)
    generation.is_older |= bool(asks) or uses_uuids(request)
    if generation.is_older:
        return uuid_releases(request) + asks
    rm_id = request.rmID
    return tuple(
        Release(
            partition=full_partition_name(release.partitionName, rm_id),
            application_id=release.applicationID,
            allocation_key=release.allocationKey,
            termination=(termination := termination_of(release)).kind,
            message=release.message,
            refusal=termination.refusal,
        )
        for release in request.releases.allocationsToRelease
    )


@final
class RequestReader:
    """Reads requests that have resources, and keeps the sizes it has read.

    Most asks come in a few sizes. Asks of equal size get the same resource object, which saves memory and
    lets comparisons end at once. The number of sizes is bounded by `RESOURCE_SIZES_MAX`. Any number of
    threads may use one reader: at worst, a race makes an equal resource twice.
    """

    __slots__ = ("_resources",)

    def __init__(self) -> None:
        self._resources: dict[bytes, Resource] = {}

    def node_updates(
        self, request: si.NodeRequest, generation: Generation
    ) -> dict[str, tuple[NodeUpdate, ...]]:
        """Read what is to be done with nodes, by the full name of their partition, each in order.

        The attributes of each node name its partition in full, also if the resource manager named none.
        An action that this version does not know counts as none given; its number is kept for the answer.
        A field of the older generation is noted in `generation`.

        Raises:
            RequestError: The key or UUID of an existing allocation is not one that the RM may give.
        """
        updates: dict[str, list[NodeUpdate]] = {}
        for node in request.nodes:
            partition = full_partition_name(node.attributes.get(NODE_PARTITION, ""), request.rmID)
            occupied = self.resource(node.occupiedResource) if node.HasField("occupiedResource") else None
            existing = self._existing(node, partition, request.rmID) if node.existingAllocations else ()
            generation.is_older |= occupied is not None or bool(existing)
            update = NodeUpdate(
                node_id=node.nodeID,
                action=_ACTIONS.get(node.action, NodeAction.UNKNOWN_ACTION_FROM_RM),
                attributes={**_texts(node.attributes), NODE_PARTITION: partition},
                resource=self.resource(node.schedulableResource)
                if node.HasField("schedulableResource")
                else None,
                unknown_action=0 if node.action in _ACTIONS else node.action,
                occupied=occupied,
                existing=existing,
            )
            updates.setdefault(partition, []).append(update)
        return {partition: tuple(nodes) for partition, nodes in updates.items()}

    def _existing(self, node: si.NodeInfo, partition: str, rm_id: str) -> tuple[AllocationSubmission, ...]:
        """Read what runs on a node; where an allocation names no node or partition, it means that one."""
        return tuple(
            self._allocation_submission(
                message,
                named_allocation(message, rm_id, node_id=message.nodeID or node.nodeID),
                full_partition_name(message.partitionName, rm_id) if message.partitionName else partition,
                node_id=message.nodeID or node.nodeID,
                placeholder=message.placeholder and bool(message.taskGroupName),
            )
            for message in node.existingAllocations
        )

    def application_submissions(self, request: si.ApplicationRequest) -> tuple[ApplicationSubmission, ...]:
        """Read the applications that begin, in order."""
        return tuple(self._application_submission(new, request.rmID) for new in request.new)

    def _application_submission(self, new: si.AddApplicationRequest, rm_id: str) -> ApplicationSubmission:
        return ApplicationSubmission(
            application_id=new.applicationID,
            queue_name=new.queueName,
            partition=full_partition_name(new.partitionName, rm_id),
            user=new.ugi.user,
            groups=tuple(new.ugi.groups),
            tags=_texts(new.tags),
            execution_timeout_ms=new.executionTimeoutMilliSeconds,
            placeholder_ask=self.resource(new.placeholderAsk) if new.HasField("placeholderAsk") else None,
            gang_scheduling_style=new.gangSchedulingStyle,
        )

    def allocation_submissions(
        self, request: si.AllocationRequest, generation: Generation
    ) -> list[AllocationSubmission]:
        """Read asks and existing allocations, in order; one without resources has the empty resource.

        Asks of the older generation come first; their additional terms are in `ask_terms`. A field of that
        generation is noted in `generation`.

        Raises:
            RequestError: A key or UUID is not one that the RM may give.
        """
        rm_id = request.rmID
        # One request is mostly about one partition: its name is made full once, and shared.
        short_name, partition = None, ""
        submissions = older_asks(request, self.resource) if request.asks else []
        generation.is_older |= bool(submissions)
        for message in request.allocations:
            key = message.allocationKey
            if message.UUID:
                generation.is_older = True
                key = named_allocation(message, rm_id, node_id=message.nodeID)
            if message.partitionName != short_name:
                short_name = message.partitionName
                partition = full_partition_name(short_name, rm_id)
            submissions.append(
                self._allocation_submission(
                    message, key, partition, node_id=message.nodeID, placeholder=message.placeholder
                )
            )
        return submissions

    def _allocation_submission(
        self, message: si.Allocation, key: str, partition: str, *, node_id: str, placeholder: bool
    ) -> AllocationSubmission:
        tags = message.allocationTags
        policy = message.preemptionPolicy
        return AllocationSubmission(  # In the order of its arguments: keywords take three times as long.
            key,
            message.applicationID,
            partition,
            self.resource(message.resourcePerAlloc),
            message.priority,
            _texts(tags) if tags else _NO_TEXTS,
            node_id,
            message.taskGroupName,
            placeholder,
            message.originator,
            policy.allowPreemptSelf,
            policy.allowPreemptOther,
        )

    def resource(self, message: si.Resource) -> Resource:
        """Read a resource; equal ones give the same object for as long as the reader keeps it."""
        # Deterministic serialization sorts the types, and is done in C: half the time of a sorted tuple.
        size = message.SerializeToString(deterministic=True)
        known = self._resources.get(size)
        if known is None:
            known = _read_resource(message)
            if len(self._resources) >= RESOURCE_SIZES_MAX:
                self._resources.clear()
            self._resources[size] = known
        return known


def _read_resource(message: si.Resource) -> Resource:
    """Read a resource with its types sorted: the order of a map on the wire is not even reproducible."""
    quantities = {name: quantity.value for name, quantity in sorted(message.resources.items())}
    return Resource(quantities) if quantities else EMPTY


def _texts(texts: Mapping[str, str]) -> Mapping[str, str]:
    """Copy a map of texts, sorted by key: the order of a map on the wire is not even reproducible."""
    return dict(sorted(texts.items())) if texts else _NO_TEXTS
