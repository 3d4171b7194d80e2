"""Parts of a recovery: what the resource manager (RM) knows, the callback, and the states.

An RM that lists everything again recovers again, without a registration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Final, NamedTuple, TypeAlias, final

from google.protobuf.message import DecodeError

from ....model.errors import LicorneError, ReplacedError
from ....model.values.messages import full_partition_name
from ...si import constants
from ...si import si_pb2 as si
from ...si.api import (
    DeferredPredicates,
    ExplainsRefusals,
    ResourceManager,
    ResourceManagerCallback,
    StateDumpPlugin,
)
from ...si.arguments import ask_predicate, check_message, check_messages, replaced_hook

_ACTIONS: Final = (si.NodeInfo.CREATE, si.NodeInfo.CREATE_DRAIN)
GivenAllocation: TypeAlias = "si.Allocation | bytes"
"""An allocation or an ask as an RM gives it: a message, or the bytes of one."""


class Watcher(ResourceManager):
    """A callback around one that agrees to every node: a scheduler need not ask it.

    Args:
        callback: The callback of the RM.
        take_nodes: Called with each answer about nodes before the RM gets it.
        take_applications: Likewise; returns what the RM gets of it.
        take_allocations: Likewise.
        take_replaced: Called with the reason when another one has registered the RM; without it this hears
            the end of what it had instead, as every callback without the method `replaced`.
    """

    def __init__(
        self,
        callback: ResourceManagerCallback,
        take_nodes: Callable[[si.NodeResponse], None],
        take_applications: Callable[[si.ApplicationResponse], si.ApplicationResponse],
        take_allocations: Callable[[si.AllocationResponse], si.AllocationResponse],
        take_replaced: Callable[[str], object] | None = None,
    ) -> None:
        self._callback = callback
        self.speaks_for = callback
        if take_replaced is not None:
            self.replaced: Callable[[str], object] = partial(self._tell_replaced, take_replaced)
        self.is_muted = False
        """Whether the RM is no longer called: it has registered again, and has not lost what ends here."""
        self._take_nodes = take_nodes
        self._take_applications = take_applications
        self._take_allocations = take_allocations
        reconnected = getattr(callback, "reconnected", None)
        if reconnected is not None:
            self.reconnected = reconnected  # A remote scheduler calls it, see `RemoteScheduler`.
        if isinstance(callback, DeferredPredicates):
            self.ask_predicates = callback.ask_predicates  # Likewise, and asks in its own way.
            self.ask_preemption_predicates = callback.ask_preemption_predicates
        if isinstance(callback, StateDumpPlugin):
            self.get_state_dump = callback.get_state_dump  # A scheduler looks whether there is one.
        if isinstance(callback, ExplainsRefusals):
            self.refused_nodes = callback.refused_nodes  # Likewise.

    def update_allocation(self, response: si.AllocationResponse) -> None:
        """Take placements, releases and rejections; the RM gets those that it does not expect."""
        rest = self._take_allocations(response)
        if rest.ListFields() and not self.is_muted:
            self._callback.update_allocation(rest)

    def update_application(self, response: si.ApplicationResponse) -> None:
        """Take answers about applications, and changes of state."""
        rest = self._take_applications(response)
        if rest.ListFields() and not self.is_muted:
            self._callback.update_application(rest)

    def update_node(self, response: si.NodeResponse) -> None:
        """Take accepted and rejected nodes."""
        self._take_nodes(response)
        if not self.is_muted:
            self._callback.update_node(response)

    def _tell_replaced(self, take_replaced: Callable[[str], object], reason: str) -> None:
        """Take note that another one has registered the RM, which hears that if it can.

        Raises:
            ReplacedError: It cannot; this is reported as a failing callback is.
        """
        take_replaced(reason)
        hook = replaced_hook(self._callback)
        if hook is None:
            raise ReplacedError(reason)
        hook(reason)

    def preemption_predicates(
        self, args: si.PreemptionPredicatesArgs
    ) -> si.PreemptionPredicatesResponse | None:
        """Return what the RM answers."""
        return self._callback.preemption_predicates(args)

    def send_event(self, events: Sequence[si.EventRecord]) -> None:
        """Pass events on."""
        self._callback.send_event(events)

    def update_container_scheduling_state(self, request: si.UpdateContainerSchedulingStateRequest) -> None:
        """Pass a hint on."""
        if not self.is_muted:
            self._callback.update_container_scheduling_state(request)


@final
class _AskedWatcher(Watcher):
    """A callback around one with predicates."""

    def predicates(self, args: si.PredicatesArgs) -> None:
        """Ask the RM."""
        ask_predicate(self._callback, args)


def watcher_of(
    callback: ResourceManagerCallback,
    take_nodes: Callable[[si.NodeResponse], None],
    take_applications: Callable[[si.ApplicationResponse], si.ApplicationResponse],
    take_allocations: Callable[[si.AllocationResponse], si.AllocationResponse],
    take_replaced: Callable[[str], object] | None = None,
) -> Watcher:
    """Return the callback around that of an RM; it has predicates only if that one has."""
    asks = getattr(type(callback), "predicates", None) is not ResourceManager.predicates
    kind = _AskedWatcher if asks else Watcher
    return kind(callback, take_nodes, take_applications, take_allocations, take_replaced)


class RecoveryState(Enum):
    """The states of a recovery."""

    NEW = "New"
    REGISTERED = "Registered"
    RECOVERING = "Recovering"
    RUNNING = "Running"
    FAILED = "Failed"


class RecoveryEvent(Enum):
    """The events of a recovery."""

    REGISTER = "Register"
    RECOVER = "Recover"
    SUCCEED = "Success"
    FAIL = "Fail"


RECOVERY_TRANSITIONS: Final[Mapping[tuple[RecoveryState, RecoveryEvent], RecoveryState]] = {
    (RecoveryState.NEW, RecoveryEvent.REGISTER): RecoveryState.REGISTERED,
    (RecoveryState.REGISTERED, RecoveryEvent.RECOVER): RecoveryState.RECOVERING,
    (RecoveryState.RECOVERING, RecoveryEvent.SUCCEED): RecoveryState.RUNNING,
    (RecoveryState.RECOVERING, RecoveryEvent.FAIL): RecoveryState.FAILED,
    (RecoveryState.RUNNING, RecoveryEvent.RECOVER): RecoveryState.RECOVERING,
}


def next_recovery_state(state: RecoveryState, event: RecoveryEvent) -> RecoveryState:
    """Return the state after the event.

    Raises:
        LicorneError: the table has no such transition.
    """
    target = RECOVERY_TRANSITIONS.get((state, event))
    if target is None:
        raise LicorneError(f"event {event.value} is inappropriate for a recovery that is {state.value}")
    return target


class KnownAllocation(NamedTuple):
    """An allocation or an ask, as bytes: a tenth of the memory of a message, and less work than a copy."""

    application_id: str
    """Empty for what another scheduler has placed."""
    key: str
    node_id: str
    """Empty for an ask."""
    partition: str
    """The full name."""
    is_foreign: bool
    data: bytes
    """The message; its partition may have the short name."""

    def message(self) -> si.Allocation:
        """Return the message; the caller owns it."""
        return si.Allocation.FromString(self.data)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class KnownState:
    """The knowledge of an RM, as copies. Nodes and applications have the full name of their partition."""

    nodes: Mapping[str, si.NodeInfo]
    """By id; the action is `CREATE`, or `CREATE_DRAIN` for a node that is to stay drained."""
    applications: Mapping[str, si.AddApplicationRequest]
    """By id."""
    allocations: Mapping[tuple[str, str], KnownAllocation]
    """By application and key; those of others have the empty application."""
    asks: tuple[KnownAllocation, ...]


def is_foreign(allocation: si.Allocation) -> bool:
    """Return whether another scheduler has placed an allocation."""
    return constants.FOREIGN in allocation.allocationTags


def as_foreign(allocation: KnownAllocation) -> KnownAllocation:
    """Return an allocation that only uses room on its node, since its application is rejected."""
    known = allocation.message()
    message = si.Allocation(
        allocationKey=known.allocationKey,
        partitionName=known.partitionName,
        allocationTags={**known.allocationTags, constants.FOREIGN: constants.ALLOC_TYPE_DEFAULT},
        resourcePerAlloc=known.resourcePerAlloc,
        priority=known.priority,
        nodeID=known.nodeID,
    )
    return allocation._replace(application_id="", is_foreign=True, data=message.SerializeToString())


def read_known_state(
    rm_id: str,
    nodes: Iterable[si.NodeInfo],
    applications: Iterable[si.AddApplicationRequest],
    allocations: Iterable[GivenAllocation],
    asks: Iterable[GivenAllocation],
) -> KnownState:
    """Copy and check what an RM knows; each iterable is walked once, and none of its messages is kept.

    Raises:
        LicorneError: Something occurs twice, or refers to what is not there, or is not what it is given as.
    """
    check_messages("nodes", nodes, si.NodeInfo)
    check_messages("applications", applications, si.AddApplicationRequest)
    check_messages("allocations", allocations, si.Allocation)
    check_messages("asks", asks, si.Allocation)
    read = _KnownReader(rm_id)
    known = KnownState(
        nodes=_nodes(rm_id, nodes),
        applications=_applications(rm_id, applications),
        allocations=_allocations(map(read.allocation, allocations)),
        asks=tuple(map(read.allocation, asks)),
    )
    partitions = {name: node.attributes[constants.NODE_PARTITION] for name, node in known.nodes.items()}
    for allocation in known.allocations.values():
        _check_references(allocation, known, partitions)
    for ask in known.asks:
        if ask.node_id:
            raise LicorneError(f"ask {ask.key!r} is on node {ask.node_id!r}: it is an allocation")
    return known


@final
class _KnownReader:
    """Reads the allocations of one RM. Equal names are the same object, since there are few of them."""

    def __init__(self, rm_id: str) -> None:
        self._rm_id = rm_id
        self._names: dict[str, str] = {}
        self._partitions: dict[str, str] = {}
        """The full names by those that are given."""

    def allocation(self, given: GivenAllocation) -> KnownAllocation:
        if isinstance(given, bytes):
            message, data = _parsed(given), given
        else:
            check_message("an allocation or ask", given, si.Allocation)
            message, data = given, given.SerializeToString()
        name = message.applicationID
        foreign = is_foreign(message)
        if foreign and name:
            message = si.Allocation.FromString(data)
            name = message.applicationID = ""  # No answer names it, and no application has it.
            data = message.SerializeToString()
        partition = self._partitions.get(message.partitionName)
        if partition is None:
            partition = full_partition_name(message.partitionName, self._rm_id)
            self._partitions[message.partitionName] = partition
        node_id = message.nodeID
        names = self._names
        return KnownAllocation(
            names.setdefault(name, name),
            message.allocationKey,
            names.setdefault(node_id, node_id),
            partition,
            foreign,
            data,
        )


def _parsed(data: bytes) -> si.Allocation:
    try:
        return si.Allocation.FromString(data)
    except DecodeError as error:
        raise LicorneError(f"{data[:80]!r} is not a serialized si.v1 Allocation") from error


def _nodes(rm_id: str, nodes: Iterable[si.NodeInfo]) -> dict[str, si.NodeInfo]:
    found: dict[str, si.NodeInfo] = {}
    for given in nodes:
        check_message("a node", given, si.NodeInfo)
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
        check_message("an application", given, si.AddApplicationRequest)
        application = deepcopy(given)
        name = application.applicationID
        if name in found:
            raise LicorneError(f"application {name!r} is given twice")
        application.partitionName = full_partition_name(application.partitionName, rm_id)
        found[name] = application
    return found


def _allocations(allocations: Iterable[KnownAllocation]) -> dict[tuple[str, str], KnownAllocation]:
    found: dict[tuple[str, str], KnownAllocation] = {}
    for allocation in allocations:
        identity = (allocation.application_id, allocation.key)
        if identity in found:
            raise LicorneError(f"allocation {allocation.key!r} is given twice")
        found[identity] = allocation
    return found


def _check_references(allocation: KnownAllocation, known: KnownState, partitions: Mapping[str, str]) -> None:
    """Check that what an allocation names is given; `partitions` are those of the nodes."""
    _, key, node_id, partition, foreign, _ = allocation
    if not node_id:
        raise LicorneError(f"allocation {key!r} has no node: it is an ask")
    of_node = partitions.get(node_id)
    if of_node is None:
        raise LicorneError(f"allocation {key!r} is on node {node_id!r}, which is not given")
    if of_node != partition:
        raise LicorneError(
            f"allocation {key!r} is in partition {partition}, but its node {node_id!r} in {of_node}"
        )
    if foreign:
        return
    name = allocation.application_id
    application = known.applications.get(name)
    if application is None:
        raise LicorneError(f"allocation {key!r} is of application {name!r}, which is not given")
    if application.partitionName != partition:
        raise LicorneError(
            f"allocation {key!r} is in partition {partition}, "
            f"but its application {name!r} in {application.partitionName}"
        )
