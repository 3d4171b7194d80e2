"""The requests that a worker has not carried out yet, and which of them may have ended or blocked it.

When a worker is lost, the requests that were under way are sent to the next one after everything else, entry
by entry, and each waits until the one before it is carried out. An entry that was under way alone when two
workers in a row were lost is *set aside*: the resource manager (RM) gets a rejection, and no worker gets the
entry.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final, NamedTuple, TypeAlias, final

from google.protobuf.message import Message

from ....model.values.messages import RejectionCode
from ...si import si_pb2 as si
from .record import PartsToRecover

SUSPECTS_MAX: Final = 64
"""If more entries were under way when a worker was lost, the next one gets all of them together, as fast as
possible; only if that one is lost as well, the entries are sent one by one."""
_BATCH_MAX: Final = 1_000
_NOTED_MAX: Final = 16_384
"""The number of requests that are noted; older ones are no longer suspected. A worker that reads as fast as
it can all the time may not be asked for long."""

_Request: TypeAlias = "si.NodeRequest | si.ApplicationRequest | si.AllocationRequest"


class SentEntry(NamedTuple):
    """A new entry from an RM: a node, an application, an ask or an allocation."""

    kind: str
    """`node`, `application` or `allocation`."""
    name: str
    """The id, or the key."""
    application_id: str = ""
    """The application of an allocation, empty for an allocation of others."""

    def __str__(self) -> str:
        """Return the name of the entry for people."""
        of = f" of application {self.application_id!r}" if self.application_id else ""
        return f"{self.kind} {self.name!r}{of}"


@final
@dataclass(frozen=True, slots=True)
class Replayed:
    """A request that a recovery sends after everything else."""

    request: _Request
    suspect: SentEntry | None
    """The only entry of the request, if the next request waits until it is carried out."""


class SetAside(NamedTuple):
    """An entry that is set aside, as a rejection."""

    callback: str
    """The name of the callback that informs the RM."""
    response: si.NodeResponse | si.ApplicationResponse | si.AllocationResponse
    """The argument of the callback."""
    reason: str


@final
class UnderWay:
    """The requests of one partition that the worker may not have carried out; the owner guards it.

    Args:
        rm_id: The id of the RM.
    """

    def __init__(self, rm_id: str) -> None:
        self._rm_id = rm_id
        self._requests: deque[tuple[type[_Request], bytes]] = deque(maxlen=_NOTED_MAX)
        """The requests in order, as bytes: that is cheaper than copies, and most of them are never read."""
        self._is_sent = False
        """Whether the present worker gets the noted requests."""
        self._losses = 0
        """The number of workers that were lost since one has answered."""
        self._suspects: dict[SentEntry, None] = {}
        self._alone: SentEntry | None = None
        """The entry that the present worker carries out alone."""
        self._was_alone: SentEntry | None = None
        """The entry that was under way alone when the last worker was lost."""
        self._aside: SentEntry | None = None

    def __len__(self) -> int:
        """Return the number of requests."""
        return len(self._requests)

    def note(self, request: _Request) -> None:
        """Note a request before it is sent."""
        self._requests.append((type(request), request.SerializeToString()))

    def send(self, entry: SentEntry | None) -> None:
        """Note that the worker gets one entry alone, or all noted requests from now on."""
        self._alone = entry
        self._is_sent = entry is None

    def carried_out(self, count: int) -> None:
        """Note that the worker is alive, and has carried out the oldest requests."""
        if not count and self._requests:
            return  # The suspected request may not be sent yet.
        for _ in range(min(count, len(self._requests))):
            self._requests.popleft()
        self._losses = 0
        self._suspects.clear()
        self._was_alone = None

    def lose(self, asked_behind: int | None) -> None:
        """Note that the worker is lost.

        Args:
            asked_behind: If the worker hangs, the number of requests before the question that it does not
                answer: the later ones have not caused it. `None` if it was lost for another reason.
        """
        self._losses += 1
        alone, self._alone = self._alone, None
        if alone is not None:
            if alone == self._was_alone:
                self._aside = alone
        elif self._is_sent:
            found = [*_entries(islice(self._requests, asked_behind))]
            self._suspects.update(dict.fromkeys(each for each in found if each is not None))
            alone = found[0] if len(found) == 1 else None
        self._is_sent = False
        self._was_alone = alone

    def set_aside(self, last_reason: str) -> SetAside | None:
        """Return the entry that no worker gets any longer, if any: the record has to forget it.

        Args:
            last_reason: The reason for the loss of the last worker.
        """
        entry, self._aside = self._aside, None
        if entry is None:
            return None
        self._suspects.pop(entry, None)
        self._was_alone = None
        others = [each for each in self._requests if [*_entries([each])] != [entry]]
        self._requests = deque(others, _NOTED_MAX)
        return _set_aside(entry, last_reason)

    def split(
        self, known: PartsToRecover, nodes: Collection[str], applications: Collection[str]
    ) -> tuple[PartsToRecover, list[Replayed]]:
        """Return the part that a recovery sends together, and the requests that follow.

        Args:
            known: The contents of the partition.
            nodes: The ids of accepted nodes, which later requests may refer to.
            applications: The ids of accepted applications, which later requests may refer to as well.
        """
        if not self._suspects or (len(self._suspects) > SUSPECTS_MAX and self._losses < 2):
            return known, []
        wanted = {each for each in _entries(self._requests) if each is not None}
        wanted -= {SentEntry("node", name) for name in nodes}
        wanted -= {SentEntry("application", name) for name in applications}
        rest, apart = _taken_apart(known, wanted)
        noted = [each for each in _entries(self._requests) if each is not None and each in apart]
        order = dict.fromkeys([*noted, *apart])  # Allocations of others on a separate node may not be noted.
        return rest, [*self._in_order(apart, order)]

    def _in_order(self, apart: Mapping[SentEntry, Message], order: Iterable[SentEntry]) -> Iterator[Replayed]:
        """Yield each suspect separately, and the entries between them together."""
        held: _Request | None = None
        count = 0
        for entry in order:
            request = _request_of(self._rm_id, apart[entry])
            is_suspect = entry in self._suspects
            if held is not None and (is_suspect or type(held) is not type(request) or count >= _BATCH_MAX):
                yield Replayed(held, None)
                held = None
            if is_suspect:
                yield Replayed(request, entry)
            elif held is None:
                held, count = request, 1
            else:
                held.MergeFrom(request)  # type: ignore[arg-type]  # They are of one type.
                count += 1
        if held is not None:
            yield Replayed(held, None)


def _entries(requests: Iterable[tuple[type[_Request], bytes]]) -> Iterator[SentEntry | None]:
    """Yield the new entries in requests, and `None` for each change and each end."""
    for kind, data in requests:
        match kind.FromString(data):
            case si.NodeRequest() as request:
                for node in request.nodes:
                    is_new = node.action in (si.NodeInfo.CREATE, si.NodeInfo.CREATE_DRAIN)
                    yield SentEntry("node", node.nodeID) if is_new else None
            case si.ApplicationRequest() as request:
                yield from (SentEntry("application", new.applicationID) for new in request.new)
                yield from (None for _ in request.remove)
            case si.AllocationRequest() as request:
                yield from map(_of_allocation, request.allocations)
                yield from (None for _ in request.releases.allocationsToRelease)


def _of_allocation(message: si.Allocation) -> SentEntry:
    return SentEntry("allocation", message.allocationKey, message.applicationID)


def _taken_apart(
    known: PartsToRecover, wanted: Collection[SentEntry]
) -> tuple[PartsToRecover, dict[SentEntry, Message]]:
    """Return the rest of the contents of a recovery, and these entries with the work on their nodes."""
    apart: dict[SentEntry, Message] = {}

    def takes(entry: SentEntry, message: Message) -> bool:
        if entry not in wanted or entry in apart:
            return False
        apart[entry] = message
        return True

    nodes = tuple(each for each in known.nodes if not takes(SentEntry("node", each.nodeID), each))
    applications = tuple(
        each for each in known.applications if not takes(SentEntry("application", each.applicationID), each)
    )
    allocations = known.allocations
    gone = {entry.name for entry in apart if entry.kind == "node"}
    if gone:
        parsed = [(data, si.Allocation.FromString(data)) for data in known.allocations]
        allocations = tuple(data for data, each in parsed if each.nodeID not in gone)
        apart.update((_of_allocation(each), each) for _, each in parsed if each.nodeID in gone)

    def is_left(message: si.Allocation) -> bool:
        return not takes(_of_allocation(message), message)

    asks = tuple(data for data in known.asks if is_left(si.Allocation.FromString(data)))
    late = [
        si.AllocationRequest(
            rmID=each.rmID,
            allocations=[one for one in each.allocations if is_left(one)],
            releases=each.releases if each.HasField("releases") else None,
        )
        if isinstance(each, si.AllocationRequest)
        else each
        for each in known.late
    ]
    return (
        replace(
            known,
            nodes=nodes,
            applications=applications,
            allocations=allocations,
            asks=asks,
            late=tuple(each for each in late if len(each.ListFields()) > 1),
        ),
        apart,
    )


def _request_of(rm_id: str, message: Message) -> _Request:
    """Return the request with one entry."""
    match message:
        case si.NodeInfo():
            return si.NodeRequest(rmID=rm_id, nodes=[message])
        case si.AddApplicationRequest():
            return si.ApplicationRequest(rmID=rm_id, new=[message])
        case _:
            assert isinstance(message, si.Allocation)
            return si.AllocationRequest(rmID=rm_id, allocations=[message])


def _set_aside(entry: SentEntry, last_reason: str) -> SetAside:
    code = RejectionCode.INVALID.value
    reason = (
        f"{entry} is set aside: nothing else was under way when two workers in a row were lost, the last one "
        f"for this reason: {last_reason}"
    )
    match entry.kind:
        case "node":
            node = si.RejectedNode(nodeID=entry.name, reason=reason, code=code)
            return SetAside("update_node", si.NodeResponse(rejected=[node]), reason)
        case "application":
            application = si.RejectedApplication(applicationID=entry.name, reason=reason, code=code)
            return SetAside("update_application", si.ApplicationResponse(rejected=[application]), reason)
        case _:
            allocation = si.RejectedAllocation(
                applicationID=entry.application_id, allocationKey=entry.name, reason=reason, code=code
            )
            return SetAside(
                "update_allocation", si.AllocationResponse(rejectedAllocations=[allocation]), reason
            )
