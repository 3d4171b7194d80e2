from __future__ import annotations

from support.proxy.fake_core import FakeCore

from licorne.proxy.play.simulation.event_queue import PendingRequests
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.si.api import ResourceManager


def _pending() -> tuple[FakeCore, PendingRequests]:
    core = FakeCore()
    core.register_resource_manager(si.RegisterResourceManagerRequest(), ResourceManager())
    core.requests.clear()
    return core, PendingRequests(core, "rm")


def test_there_is_one_request_of_each_kind_in_a_fixed_order() -> None:
    """Room is given back before it is wanted, applications are there before their asks."""
    core, outbox = _pending()
    outbox.add_ask(si.Allocation(allocationKey="k1", applicationID="a"))
    outbox.add_ask(si.Allocation(allocationKey="k2", applicationID="a"))
    outbox.add_application(si.AddApplicationRequest(applicationID="a"))
    outbox.add_release(si.AllocationRelease(allocationKey="k0", applicationID="a"))

    outbox.send()

    releases, applications, asks = core.requests
    assert isinstance(releases, si.AllocationRequest)
    assert isinstance(applications, si.ApplicationRequest)
    assert isinstance(asks, si.AllocationRequest)
    assert ("k0", ["k1", "k2"]) == (
        releases.releases.allocationsToRelease[0].allocationKey,
        [ask.allocationKey for ask in asks.allocations],
    )
    assert {"rm"} == {request.rmID for request in (releases, applications, asks)}


def test_an_empty_outbox_says_nothing() -> None:
    """And after sending it is empty."""
    core, outbox = _pending()
    outbox.add_application(si.AddApplicationRequest(applicationID="a"))
    outbox.send()
    assert outbox.is_empty()

    outbox.send()

    assert 1 == len(core.requests)


def test_a_release_is_kept_as_it_was() -> None:
    """The message of a callback may be used again by its owner."""
    core, outbox = _pending()
    release = si.AllocationRelease(allocationKey="k", applicationID="a")
    outbox.add_release(release)
    release.allocationKey = "changed"

    outbox.send()

    request = core.requests[0]
    assert isinstance(request, si.AllocationRequest)
    assert "k" == request.releases.allocationsToRelease[0].allocationKey
