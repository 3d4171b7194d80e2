from __future__ import annotations

from support.proxy.fake_core import START_NS, FakeCore

from licorne.proxy.si import si_pb2 as si
from licorne.proxy.si.api import ResourceManager


class _Listener(ResourceManager):
    def __init__(self) -> None:
        self.placed: list[tuple[str, str]] = []
        self.released: list[str] = []

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self.placed += [(one.allocationKey, one.nodeID) for one in response.new]
        self.released += [one.allocationKey for one in response.released]


def _core(listener: _Listener, *cores: int) -> FakeCore:
    core = FakeCore()
    core.register_resource_manager(si.RegisterResourceManagerRequest(), listener)
    for number, quantity in enumerate(cores):
        resources = si.Resource(resources={"vcore": si.Quantity(value=quantity)})
        node = si.NodeInfo(nodeID=f"n{number}", action=si.NodeInfo.CREATE, schedulableResource=resources)
        core.update_node(si.NodeRequest(nodes=[node]))
    core.update_application(si.ApplicationRequest(new=[si.AddApplicationRequest(applicationID="a")]))
    return core


def _ask(key: str, cores: int) -> si.AllocationRequest:
    resources = si.Resource(resources={"vcore": si.Quantity(value=cores)})
    ask = si.Allocation(allocationKey=key, applicationID="a", resourcePerAlloc=resources)
    return si.AllocationRequest(allocations=[ask])


def test_the_fake_places_each_ask_on_the_first_node_with_room() -> None:
    """An ask passes over a node that is too small for it."""
    listener = _Listener()
    core = _core(listener, 2, 4)
    for key, cores in (("k1", 3), ("k2", 2), ("k3", 2)):
        core.update_allocation(_ask(key, cores))

    results = core.run_until_idle()

    assert (2, [("k1", "n1"), ("k2", "n0")]) == (results, listener.placed)


def test_the_fake_gives_the_room_of_a_release_back() -> None:
    """What waits is placed when something before it is released."""
    listener = _Listener()
    core = _core(listener, 2)
    core.update_allocation(_ask("k1", 2))
    core.update_allocation(_ask("k2", 2))
    core.run_until_idle()
    release = si.AllocationRelease(allocationKey="k1", applicationID="a", terminationType=si.STOPPED_BY_RM)
    releases = si.AllocationReleasesRequest(allocationsToRelease=[release])

    core.update_allocation(si.AllocationRequest(releases=releases))
    core.run_until_idle()

    assert ([("k1", "n0"), ("k2", "n0")], ["k1"]) == (listener.placed, listener.released)


def test_the_fake_fires_timers_at_their_own_time() -> None:
    """A timer sees the clock at its deadline, not where the clock is moved to."""
    core = FakeCore()
    seen: list[int] = []
    core.at(5, lambda: seen.append(core.now_ns()))

    core.advance_to(START_NS + 9)

    assert ([START_NS + 5], START_NS + 9) == (seen, core.now_ns())
