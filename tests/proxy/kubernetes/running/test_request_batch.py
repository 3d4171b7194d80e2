"""What the scheduler is to know: in order, in few requests, and one bad entry does not keep others back."""

from __future__ import annotations

from typing import Any

from licorne.model.errors import RequestError
from licorne.proxy.kubernetes.running.event_loop import RequestBatch
from licorne.proxy.si import si_pb2 as si


class Target:
    """Takes requests and refuses those with a key that is bad."""

    def __init__(self) -> None:
        self.requests: list[list[str]] = []

    def update_node(self, request: si.NodeRequest) -> None:
        self._take([entry.nodeID for entry in request.nodes])

    def update_application(self, request: si.ApplicationRequest) -> None:
        self._take(
            [*(new.applicationID for new in request.new), *(old.applicationID for old in request.remove)]
        )

    def update_allocation(self, request: si.AllocationRequest) -> None:
        ended = request.releases.allocationsToRelease
        self._take(
            [*(new.allocationKey for new in request.allocations), *(old.allocationKey for old in ended)]
        )

    def _take(self, names: list[str]) -> None:
        if "bad" in names:
            raise RequestError("bad")
        self.requests.append(names)


def batch(target: Target | None) -> tuple[RequestBatch, list[Any]]:
    """Return a batch with entries of all kinds, and what it has refused."""
    refused: list[Any] = []
    found = RequestBatch("rm", lambda entry, _: refused.append(entry))
    found.target = target
    for entry in (
        si.NodeInfo(nodeID="n1"),
        si.NodeInfo(nodeID="n2"),
        si.AddApplicationRequest(applicationID="app"),
        si.Allocation(allocationKey="a"),
        si.Allocation(allocationKey="b"),
        si.AllocationRelease(allocationKey="a"),
        si.Allocation(allocationKey="c"),
        si.RemoveApplicationRequest(applicationID="app"),
    ):
        found.add(entry)
    return found, refused


def test_neighbours_of_one_kind_are_one_request() -> None:
    """So that the order stays."""
    target = Target()
    found, refused = batch(target)
    found.flush()
    found.flush()

    assert [["n1", "n2"], ["app"], ["a", "b"], ["a"], ["c"], ["app"]] == target.requests
    assert [] == refused


def test_a_bad_entry_is_left_out() -> None:
    """The others of its request are sent one by one, in order."""
    target = Target()
    found = batch(target)[0]
    found.take()
    refused: list[str] = []
    found = RequestBatch("rm", lambda _, error: refused.append(str(error)))
    found.target = target
    for key in ("a", "bad", "b"):
        found.add(si.Allocation(allocationKey=key))
    found.flush()

    assert ([["a"], ["b"]], ["bad"]) == (target.requests, refused)


def test_entries_are_kept_until_there_is_a_target() -> None:
    """The recovery takes them first."""
    found, _ = batch(None)
    found.flush()

    assert 8 == len(found.take())
    assert [] == found.take()
