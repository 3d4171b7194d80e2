"""What the scheduler is to know: entries in order, sent as few requests."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from typing import Any, Final, Protocol, TypeAlias, final

from ....model.errors import LicorneError
from ...si import si_pb2 as si

Entry: TypeAlias = (
    si.NodeInfo
    | si.AddApplicationRequest
    | si.RemoveApplicationRequest
    | si.Allocation
    | si.AllocationRelease
)
_KINDS: Final = {
    si.NodeInfo: "node",
    si.AddApplicationRequest: "application",
    si.RemoveApplicationRequest: "removal",
    si.Allocation: "allocation",
    si.AllocationRelease: "release",
}


class RequestTarget(Protocol):
    """Who takes requests: a scheduler, or a recovery, which holds them back until it is done."""

    def update_node(self, request: si.NodeRequest) -> None:
        """Take new and changed nodes."""
        ...

    def update_application(self, request: si.ApplicationRequest) -> None:
        """Take new and removed applications."""
        ...

    def update_allocation(self, request: si.AllocationRequest) -> None:
        """Take asks, allocations and releases."""
        ...


@final
class RequestBatch:
    """Keeps entries until they are flushed; used by one thread.

    Args:
        rm_id: The resource manager that they are of.
        on_refused: Is called with an entry that makes its whole request bad, and the error.
    """

    def __init__(self, rm_id: str, on_refused: Callable[[Entry, LicorneError], None]) -> None:
        self.target: RequestTarget | None = None
        """Who gets them; until there is one, they are kept."""
        self._rm_id = rm_id
        self._on_refused = on_refused
        self._entries: list[Entry] = []

    def add(self, entry: Entry) -> None:
        """Keep an entry, behind those that are kept."""
        self._entries.append(entry)

    def flush(self) -> None:
        """Send what is kept: neighbours of one kind in one request, so that the order stays."""
        target = self.target
        if target is None:
            return
        for kind, group in groupby(self.take(), key=lambda entry: _KINDS[type(entry)]):
            self._send(target, kind, list(group))

    def take(self) -> list[Entry]:
        """Return what is kept, and keep it no longer."""
        entries, self._entries = self._entries, []
        return entries

    def _send(self, target: RequestTarget, kind: str, entries: list[Any]) -> None:
        try:
            self._request(target, kind, entries)
        except LicorneError as error:
            if len(entries) == 1:
                self._on_refused(entries[0], error)
                return
            for entry in entries:  # a request with one bad entry is refused as a whole: the others are good
                self._send(target, kind, [entry])

    def _request(self, send: RequestTarget, kind: str, entries: list[Any]) -> None:
        match kind:
            case "node":
                send.update_node(si.NodeRequest(rmID=self._rm_id, nodes=entries))
            case "application":
                send.update_application(si.ApplicationRequest(rmID=self._rm_id, new=entries))
            case "removal":
                send.update_application(si.ApplicationRequest(rmID=self._rm_id, remove=entries))
            case "allocation":
                send.update_allocation(si.AllocationRequest(rmID=self._rm_id, allocations=entries))
            case _:
                releases = si.AllocationReleasesRequest(allocationsToRelease=entries)
                send.update_allocation(si.AllocationRequest(rmID=self._rm_id, releases=releases))
