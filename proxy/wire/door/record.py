"""The record of a partition: its contents of one resource manager (RM), for a recovery on another worker.

The owner notes each request before it is sent, and each answer before the RM gets it. In an ordinary session
the RM gets exactly the messages of the worker. After a recovery it does not get repeated messages:
acceptances of nodes and applications, states on the way to the known one, and earlier requests to end
allocations. Allocations that the RM was ending when the worker was lost have ended: the record gives the
answers that the RM waits for and that no worker will give.

It serves RMs of the current generation of `si.v1`: fields of the older one are not read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias, final

from ....model.applications.effects import ApplicationEvent, ApplicationState
from ....model.nodes.node import CORDONED
from ....model.requests.nodes import update_refusal
from ....model.state.dependencies import ENDED_MAX
from ....model.values.allocation import WALLTIME_TAG
from ....model.values.dependencies import AFTER_TAG, ARRAY_TAG, ApplicationOutcome, Terms, terms_of
from ....model.values.messages import RejectionCode, full_partition_name
from ...si import si_pb2 as si
from ...si.messages import message_batches
from ...si.older_generation import Generation
from ...si.reading import RequestReader
from ..client.recovery_progress import RecoveryRejection
from .allocation_record import BATCH_MAX, AllocationRecord
from .entries import Creations, RecentNames
from .routing import LinkRequest

_Request: TypeAlias = "si.NodeRequest | si.ApplicationRequest | si.AllocationRequest"
_Response: TypeAlias = "si.NodeResponse | si.ApplicationResponse | si.AllocationResponse"
_S = ApplicationState
_STATES: Final = frozenset(state.value for state in _S)
_OVER: Final = frozenset(state.value for state in (_S.COMPLETED, _S.FAILED, _S.REJECTED, _S.EXPIRED))
_WAY: Final = {
    _S.ACCEPTED.value: (),
    _S.RUNNING.value: (_S.ACCEPTED.value,),
    _S.COMPLETING.value: (_S.ACCEPTED.value,),
    _S.FAILING.value: (_S.ACCEPTED.value, _S.RUNNING.value),
}
"""The states that an application enters again on a new worker before the one that the RM has."""
_NUDGE: Final = "licorne-door "
"""The prefix of the keys of asks that are withdrawn in the request that sends them, see `_nudges`."""
_LINKS: Final = tuple(tag.encode() for tag in (AFTER_TAG, ARRAY_TAG))
"""What the entry of an application contains that waits for others, or is an element of an array."""
_C = RejectionCode
_INVALID_NODE: Final = frozenset(code.value for code in (_C.INVALID, _C.NODE_UNKNOWN, _C.PARTITION_UNKNOWN))
"""The codes of rejected changes of nodes, and of entries without a partition."""


@final
class _KnownState:
    """The state of an application that the RM has."""

    __slots__ = ("repeats", "state")

    def __init__(self) -> None:
        self.state = ""
        """The last state that the RM got."""
        self.repeats = False
        """Whether a new worker has not yet brought the application there."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PartsToRecover:
    """The parts of a partition for `Recovery`, the next requests, and the first messages for the RM."""

    nodes: tuple[si.NodeInfo, ...]
    applications: tuple[si.AddApplicationRequest, ...]
    allocations: tuple[bytes, ...]
    """Messages `Allocation`, like the asks."""
    asks: tuple[bytes, ...]
    late: tuple[_Request, ...]
    """Requests to send through the recovery as soon as it has started, before other requests of the RM, which
    waits for answers to them. They must not be noted again."""
    heard: tuple[_Response, ...]
    """Messages that no worker will send: the RM gets them now."""


@final
class PartitionRecord:
    """The contents of one partition of one RM; the owner guards it.

    Sessions are numbered by the owner, from 1 upwards.

    Args:
        rm_id: The id of the RM.
        partition: The name of the partition, with or without the RM.
    """

    def __init__(self, rm_id: str, partition: str) -> None:
        self._rm_id = rm_id
        self._reader = RequestReader()
        self._nodes = Creations()
        self._applications = Creations()
        self._states: dict[str, _KnownState] = {}
        self._allocations = AllocationRecord(full_partition_name(partition, rm_id), self._nodes.is_known)
        self._partition = partition
        self._gone = RecentNames()
        """The applications that are gone."""
        self._ends: dict[str, str] = {}
        """How the last applications have ended, and the arrays of which one has, by name."""

    @property
    def accepted(self) -> tuple[Collection[str], Collection[str]]:
        """The ids of the nodes, and of the applications, that a worker has accepted."""
        return self._nodes.there, self._applications.there

    def has_application(self, application_id: str) -> bool:
        """Return whether an application of that id exists."""
        return self._applications.is_known(application_id)

    # ------------------------------------------------------------------------------------- requests

    def note_nodes(self, nodes: Iterable[si.NodeInfo]) -> None:
        """Note nodes before they are sent, in the order of sending."""
        for node in nodes:
            name = node.nodeID
            if self._is_invalid(node):
                self._nodes.expect_rejection(name, node.SerializeToString())
            elif node.action in (si.NodeInfo.CREATE, si.NodeInfo.CREATE_DRAIN):
                self._allocations.begin_node(name)
                self._nodes.create(name, node.SerializeToString())
            elif node.action == si.NodeInfo.DECOMISSION:
                self._nodes.end(name)
                self._allocations.end_node(name)
            else:
                self._nodes.change(name, node.SerializeToString(), partial(_folded, change=node))

    def _is_invalid(self, node: si.NodeInfo) -> bool:
        """Return whether an entry of a node will be rejected in any case."""
        request = si.NodeRequest(rmID=self._rm_id, nodes=[node])
        (updates,) = self._reader.node_updates(request, Generation()).values()
        return update_refusal(updates[0]) is not None

    def note_applications(self, request: si.ApplicationRequest) -> None:
        """Note new and removed applications before they are sent."""
        for new in request.new:
            changed = self._with_walltime(new)
            entry = new.SerializeToString() if changed is None else changed
            self._applications.create(new.applicationID, entry, is_change=changed is not None)
        for removal in request.remove:
            name = removal.applicationID
            self._note_end(name, removal.outcome or ApplicationOutcome.OK.value)
            self._applications.end(name)
            self._gone.add(name)
            self._states.pop(name, None)
            self._allocations.end_application(name)

    def _note_end(self, name: str, outcome: str) -> None:
        """Note how an application has ended, for those that wait for it or its array on another worker."""
        entry = self._applications.there.get(name, b"")
        array = _tags(entry).get(ARRAY_TAG, "") if ARRAY_TAG.encode() in entry else ""
        for each in {name, array} - {""}:
            self._ends.pop(each, None)
            self._ends[each] = outcome
        while len(self._ends) > ENDED_MAX:
            del self._ends[next(iter(self._ends))]

    def _ends_to_tell(self) -> list[si.RemoveApplicationRequest]:
        """Return how those have ended that applications wait for: a new worker does not know it."""
        entries = self._applications.there
        linked = [_tags(entry) for entry in entries.values() if any(tag in entry for tag in _LINKS)]
        live = {*entries, *(tags.get(ARRAY_TAG, "") for tags in linked)}
        terms = [terms_of(tags) for tags in linked]
        names = {name for each in terms if isinstance(each, Terms) for name in each.names} - live
        return [
            si.RemoveApplicationRequest(
                applicationID=name, partitionName=self._partition, outcome=self._ends[name]
            )
            for name in sorted(names & self._ends.keys())
        ]

    def _with_walltime(self, new: si.AddApplicationRequest) -> bytes | None:
        """Return a known application with the walltime of the request, `None` if that does not change it."""
        known = self._applications.there.get(new.applicationID)
        if known is None or WALLTIME_TAG not in new.tags:
            return None
        changed = si.AddApplicationRequest.FromString(known)
        changed.tags[WALLTIME_TAG] = new.tags[WALLTIME_TAG]
        return changed.SerializeToString()

    def note_allocations(self, request: si.AllocationRequest, session: int) -> si.AllocationRequest:
        """Note asks, allocations and releases; return the request to send instead.

        Confirmations by the RM of announcements of an earlier session are sent as `STOPPED_BY_RM`: the worker
        of this session does not know these announcements.
        """
        return self._allocations.note(request, session)

    # -------------------------------------------------------------------------------------- answers

    def expect_rejections(self, request: LinkRequest) -> None:
        """Note that a request without a partition is sent: all entries except ends will be rejected."""
        match request:
            case si.NodeRequest():
                for node in request.nodes:
                    if node.action != si.NodeInfo.DECOMISSION or self._is_invalid(node):
                        self._nodes.expect_rejection(node.nodeID, node.SerializeToString())
            case si.ApplicationRequest():
                for new in request.new:
                    self._applications.expect_rejection(new.applicationID, new.SerializeToString())
            case si.AllocationRequest():
                self._allocations.expect_rejections(request)
            case _:
                pass

    def doubt(self, name: str, said: Any) -> str:
        """Return the part of a callback that contradicts the requests sent, as a text; empty without one.

        Call this before `take`: a worker with such an answer is not the worker of this record.
        """
        match name:
            case "update_allocation":
                return self._allocations.doubt(_without_nudges(said))
            case "update_node":
                rejected = [each.nodeID for each in said.rejected]
                node = self._nodes.not_due([each.nodeID for each in said.accepted], rejected)
                return "" if node is None else f"it answered for node {node!r:.100}, which was not sent"
            case "update_application":
                return self._doubt_applications(said)
            case "update_container_scheduling_state":
                if self._allocations.may_have(said.applicationID, said.allocationKey):
                    return ""
                return f"it gave a hint about {said.allocationKey!r:.100}, which was never asked"
            case _:
                return ""

    def _doubt_applications(self, response: si.ApplicationResponse) -> str:
        names = [each.applicationID for each in response.rejected]
        rejected = [name for name in names if not self._gone.may_have(name)]
        name = self._applications.not_due([each.applicationID for each in response.accepted], rejected)
        if name is not None:
            return f"it answered for application {name!r:.100}, which was not sent"
        for each in response.updated:
            name = each.applicationID
            is_known = name in self._states or self._applications.is_known(name) or name in names
            if not is_known and not self._gone.may_have(name):
                return f"it named a state of application {name!r:.100}, which was never sent"
            if each.state not in _STATES:
                return f"it named the state {each.state!r:.100}, which applications do not have"
        return ""

    def take(self, name: str, said: Any, session: int) -> Any:
        """Note a callback of a worker; return the message for the RM, `None` for nothing."""
        match name:
            case "update_allocation":
                heard: Any = self.take_allocations(said, session)
            case "update_application":
                heard = self.take_applications(said)
            case "update_node":
                heard = self.take_nodes(said)
            case _:
                return said
        return heard if heard.ListFields() else None

    def take_nodes(self, response: si.NodeResponse) -> si.NodeResponse:
        """Note the answers of a worker about nodes; return those for the RM."""
        unheard = [
            place for place, each in enumerate(response.accepted) if not self._nodes.accept(each.nodeID)
        ]
        for rejected in response.rejected:
            self._nodes.reject(rejected.nodeID, is_invalid=rejected.code in _INVALID_NODE)
        if not unheard:
            return response
        rest = si.NodeResponse()
        rest.CopyFrom(response)
        for place in reversed(unheard):
            del rest.accepted[place]
        return rest

    def take_applications(self, response: si.ApplicationResponse) -> si.ApplicationResponse:
        """Note the answers of a worker about applications; return those for the RM."""
        rest = si.ApplicationResponse()
        rest.accepted.extend(each for each in response.accepted if self._accept(each.applicationID))
        for rejected in response.rejected:
            is_invalid = rejected.code == _C.PARTITION_UNKNOWN.value
            self._applications.reject(rejected.applicationID, is_invalid=is_invalid)
            self._gone.add(rejected.applicationID)
            self._forget_state(rejected.applicationID)
        rest.updated.extend(each for each in response.updated if self._enter(each))
        kept = len(rest.accepted) + len(rest.updated)
        if kept == len(response.accepted) + len(response.updated):
            return response
        rest.rejected.extend(response.rejected)
        return rest

    def _accept(self, name: str) -> bool:
        is_news = self._applications.accept(name)
        if name in self._applications.there:
            self._states.setdefault(name, _KnownState())
        return is_news

    def _forget_state(self, name: str) -> None:
        if name not in self._applications.there:
            self._states.pop(name, None)

    def _enter(self, updated: si.UpdatedApplication) -> bool:
        """Note the state of an application; return whether the RM gets it."""
        name, state = updated.applicationID, updated.state
        known = self._states.get(name)
        if known is None:
            return True
        if state == _S.NEW.value:  # It is not a change, but a warning about the request.
            return not known.repeats
        if state in _OVER:
            outcome = ApplicationOutcome.FAILED if state == _S.FAILED.value else ApplicationOutcome.OK
            self._note_end(name, outcome.value)
            self._applications.forget(name)
            self._gone.add(name)
            self._forget_state(name)
            return True
        if known.repeats and state in _WAY.get(known.state, ()):
            return False
        is_news, known.state, known.repeats = state != known.state, state, False
        return is_news

    def take_allocations(self, response: si.AllocationResponse, session: int) -> si.AllocationResponse:
        """Note the answers of a worker about asks and allocations; return those for the RM."""
        return self._allocations.take(_without_nudges(response), session)

    # ------------------------------------------------------------------------------------- recovery

    def begin_recovery(self, now_ns: int) -> PartsToRecover:
        """Return the contents for another worker, and the messages that the RM gets before that.

        Allocations that the RM was ending have ended. Pending answers are expected from the new worker,
        except those that the RM has. This may be called again before that recovery has ended.

        Args:
            now_ns: The time for the messages to the RM; nanoseconds since 1970.
        """
        self._gone.clear()
        nodes = self._nodes.begin_recovery()
        failed = [name for name, known in self._states.items() if self._has_failed(name, known)]
        for name in failed:
            self._note_end(name, ApplicationOutcome.FAILED.value)
            self._applications.forget(name)
            del self._states[name]
        applications = self._applications.begin_recovery()
        held = self._allocations.begin_recovery(self._applications.is_known)
        for known in self._states.values():
            known.repeats = bool(known.state)
        late: list[_Request] = [
            si.ApplicationRequest(rmID=self._rm_id, remove=batch)
            for batch in message_batches(self._ends_to_tell(), BATCH_MAX)
        ]
        late_nodes = [*map(si.NodeInfo.FromString, nodes.late)]
        late += [
            si.NodeRequest(rmID=self._rm_id, nodes=batch) for batch in message_batches(late_nodes, BATCH_MAX)
        ]
        late_applications = [*map(si.AddApplicationRequest.FromString, applications.late)]
        late += [
            si.ApplicationRequest(rmID=self._rm_id, new=batch)
            for batch in message_batches(late_applications, BATCH_MAX)
        ]
        for request in (*held.late, *self._nudges()):
            request.rmID = self._rm_id
            late.append(request)
        accepted_nodes = [si.AcceptedNode(nodeID=name) for name in nodes.accepted]
        accepted = [si.AcceptedApplication(applicationID=name) for name in applications.accepted]
        updated = [_failed(name, now_ns) for name in failed]
        heard: tuple[_Response, ...] = (
            *(si.NodeResponse(accepted=batch) for batch in message_batches(accepted_nodes, BATCH_MAX)),
            *(si.ApplicationResponse(accepted=batch) for batch in message_batches(accepted, BATCH_MAX)),
            *(si.AllocationResponse(released=batch) for batch in message_batches(held.released, BATCH_MAX)),
            *(si.ApplicationResponse(updated=batch) for batch in message_batches(updated, BATCH_MAX)),
        )
        return PartsToRecover(
            nodes=tuple(map(si.NodeInfo.FromString, nodes.entries)),
            applications=tuple(map(si.AddApplicationRequest.FromString, applications.entries)),
            allocations=held.allocations,
            asks=held.asks,
            late=tuple(late),
            heard=heard,
        )

    def end(self, now_ns: int) -> tuple[_Response, ...]:
        """End the whole contents, since the partition ends; return the messages for the RM.

        Args:
            now_ns: The time, nanoseconds since 1970.
        """
        names = [*self._applications.there]
        removals = [si.RemoveApplicationRequest(applicationID=name) for name in names]
        self.note_applications(si.ApplicationRequest(remove=removals))
        heard = self.begin_recovery(now_ns).heard
        if not names:
            return heard
        return (*heard, si.ApplicationResponse(updated=[_failed(name, now_ns) for name in names]))

    def end_recovery(
        self, rejections: Iterable[RecoveryRejection], left_out: Iterable[str]
    ) -> tuple[list[si.AllocationResponse], list[si.NodeRequest]]:
        """Drop the entries that the new worker rejected; called after all answers of the recovery.

        The configuration may have changed so that an application is rejected, and its allocations as well.

        Args:
            rejections: The rejections of the recovery.
            left_out: The nodes that have stayed drained in the recovery because of the rejections.

        Returns:
            The messages for the RM, and the requests that make these nodes schedulable; either may be empty.
        """
        nodes: list[si.NodeInfo] = []
        for name in left_out:
            entry = self._nodes.there.get(name)
            if entry is not None:
                node = si.NodeInfo.FromString(entry)
                if node.action == si.NodeInfo.CREATE:
                    action = si.NodeInfo.DRAIN_TO_SCHEDULABLE
                    nodes.append(si.NodeInfo(nodeID=name, action=action, attributes=node.attributes))
        rejected = self._allocations.leave_out(rejections)
        return (
            [
                si.AllocationResponse(rejectedAllocations=batch)
                for batch in message_batches(rejected, BATCH_MAX)
            ],
            [si.NodeRequest(rmID=self._rm_id, nodes=batch) for batch in message_batches(nodes, BATCH_MAX)],
        )

    def _has_failed(self, name: str, known: _KnownState) -> bool:
        """Return whether an application was Failing, and nothing is left that would end before it fails."""
        return known.state == _S.FAILING.value and not self._allocations.has_any(name)

    def _nudges(self) -> Iterator[si.AllocationRequest]:
        """Yield requests that complete applications that have run and have nothing left.

        An application completes on a worker only if it has had something there. So one ask of each is sent
        and withdrawn by the same request: nothing is placed, and only the states are answered.
        """
        for number, (name, known) in enumerate(self._states.items()):
            if not known.state or known.state == _S.FAILING.value or self._allocations.has_any(name):
                continue
            request = si.AllocationRequest()
            ask = request.allocations.add(
                applicationID=name, allocationKey=f"{_NUDGE}{number}", partitionName=self._partition
            )
            ask.resourcePerAlloc.resources["memory"].value = 1
            request.releases.allocationsToRelease.add(
                applicationID=name,
                allocationKey=ask.allocationKey,
                partitionName=self._partition,
                terminationType=si.STOPPED_BY_RM,
            )
            yield request


def _without_nudges(response: si.AllocationResponse) -> si.AllocationResponse:
    """Return a response without the rejections of the door's own asks, whose applications are rejected."""
    rejected = response.rejectedAllocations
    nudges = [place for place, each in enumerate(rejected) if each.allocationKey.startswith(_NUDGE)]
    if not nudges:
        return response
    rest = si.AllocationResponse()
    rest.CopyFrom(response)
    for place in reversed(nudges):
        del rest.rejectedAllocations[place]
    return rest


def _tags(entry: bytes) -> Mapping[str, str]:
    """Return the tags of an application."""
    return si.AddApplicationRequest.FromString(entry).tags


def _folded(entry: bytes, change: si.NodeInfo) -> bytes:
    """Return a node after a change: like the core, without its attributes, except for a cordon."""
    node = si.NodeInfo.FromString(entry)
    if change.action == si.NodeInfo.DRAIN_NODE:
        node.action = si.NodeInfo.CREATE_DRAIN
    elif change.action == si.NodeInfo.DRAIN_TO_SCHEDULABLE:
        node.action = si.NodeInfo.CREATE
    else:
        if change.HasField("schedulableResource"):
            node.schedulableResource.CopyFrom(change.schedulableResource)
        if change.HasField("occupiedResource"):
            node.occupiedResource.CopyFrom(change.occupiedResource)
        if CORDONED in change.attributes:
            node.attributes[CORDONED] = change.attributes[CORDONED]
    return node.SerializeToString()


def _failed(name: str, now_ns: int) -> si.UpdatedApplication:
    return si.UpdatedApplication(
        applicationID=name,
        state=_S.FAILED.value,
        stateTransitionTimestamp=now_ns,
        message=ApplicationEvent.FAIL.value,
    )
