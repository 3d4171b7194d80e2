"""A scheduler, a clock and gauges for the tests of the bench: tiny, exact, and without time of their own."""

from __future__ import annotations

from typing import Final

from figures import Backlog, Churn, Figures, Gauges, HalfLoad, Measurement, Pods
from workloads import BenchQueue, BenchWorkload, Course, NodeFill, Size

from licorne.proxy.core.scheduler.engine_names import EngineName
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.si.api import ResourceManagerCallback

# What the fake scheduler takes for its work; exact as binary fractions, so that the figures are exact.
NODE_SECONDS: Final = 0.5
APPLICATION_SECONDS: Final = 0.25
ASK_SECONDS: Final = 0.125
PLACEMENT_SECONDS: Final = 2.0
RELEASE_SECONDS: Final = 1.0

_TEN_UNITS: Final = Size(100, 10)


class FakeClock:
    """Time that passes only when a test says so."""

    def __init__(self) -> None:
        self.now_seconds = 0.0

    def read(self) -> float:
        """Return the time."""
        return self.now_seconds

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.now_seconds += seconds


class FakeScheduler:
    """Places asks in the order they come, on the first node with room for their memory.

    Nothing happens but in `run_until_idle`; with `eager` each request calls that by itself.
    """

    def __init__(self, clock: FakeClock, *, eager: bool = False) -> None:
        self._clock = clock
        self._eager = eager
        self._callback: ResourceManagerCallback | None = None
        self._inbox: list[si.NodeRequest | si.ApplicationRequest | si.AllocationRequest] = []
        self._free: dict[str, int] = {}
        self._waiting: list[si.Allocation] = []
        self._placed: dict[str, si.Allocation] = {}
        self.registrations: list[si.RegisterResourceManagerRequest] = []
        self.stopped = False
        self._own_now_ns = 0

    def register_resource_manager(
        self, request: si.RegisterResourceManagerRequest, callback: ResourceManagerCallback
    ) -> si.RegisterResourceManagerResponse:
        """Keep the callback."""
        self.registrations.append(request)
        self._callback = callback
        return si.RegisterResourceManagerResponse()

    def update_node(self, request: si.NodeRequest) -> None:
        """Keep the request for later."""
        self._take(request)

    def update_application(self, request: si.ApplicationRequest) -> None:
        """Keep the request for later."""
        self._take(request)

    def update_allocation(self, request: si.AllocationRequest) -> None:
        """Keep the request for later; only this takes time before anything is done."""
        self._clock.advance(ASK_SECONDS * len(request.allocations))
        self._take(request)

    def update_configuration(self, request: si.UpdateConfigurationRequest) -> None:
        """Refuse: no workload changes its queues."""
        raise AssertionError(request)

    def stop(self) -> None:
        """Note that it was called."""
        self.stopped = True

    def run_until_idle(self) -> None:
        """Do all that was asked for and all that fits."""
        while self._inbox:
            self._handle(self._inbox.pop(0))
        self._place_waiting()

    def now_ns(self) -> int:
        """Return the time of its own, which passes only as it is told."""
        return self._own_now_ns

    def advance_to(self, time_ns: int) -> None:
        """Let its own time pass; nothing is due in it."""
        self._own_now_ns = time_ns

    def _take(self, request: si.NodeRequest | si.ApplicationRequest | si.AllocationRequest) -> None:
        self._inbox.append(request)
        if self._eager:
            self.run_until_idle()

    def _handle(self, request: si.NodeRequest | si.ApplicationRequest | si.AllocationRequest) -> None:
        if isinstance(request, si.NodeRequest):
            self._add_nodes(request)
        elif isinstance(request, si.ApplicationRequest):
            self._add_applications(request)
        else:
            for allocation in request.allocations:
                self._add_allocation(allocation)
            for release in request.releases.allocationsToRelease:
                self._release(release)

    def _add_nodes(self, request: si.NodeRequest) -> None:
        for node in request.nodes:
            self._free[node.nodeID] = node.schedulableResource.resources["memory"].value
        self._clock.advance(NODE_SECONDS * len(request.nodes))
        accepted = [si.AcceptedNode(nodeID=node.nodeID) for node in request.nodes]
        self._rm().update_node(si.NodeResponse(accepted=accepted))

    def _add_applications(self, request: si.ApplicationRequest) -> None:
        self._clock.advance(APPLICATION_SECONDS * len(request.new))
        accepted = [si.AcceptedApplication(applicationID=added.applicationID) for added in request.new]
        self._rm().update_application(si.ApplicationResponse(accepted=accepted))

    def _add_allocation(self, allocation: si.Allocation) -> None:
        if allocation.nodeID:
            self._put_on_node(allocation, allocation.nodeID)
        else:
            self._waiting.append(allocation)

    def _place_waiting(self) -> None:
        for ask in tuple(self._waiting):
            for node_id, free in self._free.items():
                if free >= ask.resourcePerAlloc.resources["memory"].value:
                    self._waiting.remove(ask)
                    self._put_on_node(ask, node_id)
                    break

    def _put_on_node(self, ask: si.Allocation, node_id: str) -> None:
        self._free[node_id] -= ask.resourcePerAlloc.resources["memory"].value
        placed = si.Allocation(
            allocationKey=ask.allocationKey, applicationID=ask.applicationID, nodeID=node_id
        )
        placed.resourcePerAlloc.CopyFrom(ask.resourcePerAlloc)
        self._placed[ask.allocationKey] = placed
        if ask.applicationID:
            self._clock.advance(PLACEMENT_SECONDS)
            self._rm().update_allocation(si.AllocationResponse(new=[placed]))

    def _release(self, release: si.AllocationRelease) -> None:
        placed = self._placed.pop(release.allocationKey)
        self._free[placed.nodeID] += placed.resourcePerAlloc.resources["memory"].value
        self._clock.advance(RELEASE_SECONDS)
        self._rm().update_allocation(si.AllocationResponse(released=[release]))

    def _rm(self) -> ResourceManagerCallback:
        assert self._callback is not None, "no resource manager has registered"
        return self._callback


def fake_gauges(clock: FakeClock, *, cpu_share: float = 0.0, peak_bytes: int = 0) -> Gauges:
    """Return gauges of that clock, a process that uses so much of one core, and memory that grows by 1,000.

    Memory is read before and after each phase, so each phase keeps 1,000 bytes.
    """
    readings = iter(range(0, 1_000_000, 1_000))
    return Gauges(
        clock_seconds=clock.read,
        cpu_seconds=lambda: clock.read() * cpu_share,
        sleep_seconds=clock.advance,
        collect_garbage=lambda: 0,
        resident_bytes=lambda: next(readings),
        peak_bytes=lambda: peak_bytes,
    )


def a_workload(
    *,
    node_count: int = 4,
    node_size: Size = _TEN_UNITS,
    applications_per_leaf: int = 2,
    asks_per_wave: int = 5,
    node_fill: NodeFill = NodeFill.EMPTY,
    course: Course = Course.PLACE,
) -> BenchWorkload:
    """Return a workload that is quickly done; without arguments it asks for half of its cluster."""
    return BenchWorkload(
        name="tiny",
        node_count=node_count,
        node_size=node_size,
        queues=(BenchQueue(name="a"), BenchQueue(name="b")),
        applications_per_leaf=applications_per_leaf,
        asks_per_wave=asks_per_wave,
        ask_sizes=(Size(10, 1),),
        node_fill=node_fill,
        course=course,
    )


def some_figures(
    workload: str = "u500",
    *,
    engine: EngineName = "actors",
    light: float = 40_000.0,
    build: str = "pure Python",
    pace: float | None = 20_000.0,
    churn: Churn | None = None,
    backlog: Backlog | None = None,
    half_load: HalfLoad | None = None,
    pods: Pods | None = None,
) -> Figures:
    """Return figures as a run gives them; by default half of the light."""
    return Figures(
        workload=workload,
        engine=engine,
        build=build,
        light_before_per_second=light,
        light_after_per_second=light,
        measurement=Measurement(
            nodes_per_second=50_000.0,
            applications_per_second=20_000.0,
            asks_handed_over_per_second=100_000.0,
            asks_taken_in_per_second=None,
            bytes_per_node=7_000.0,
            bytes_per_application=None,
            bytes_per_ask=3_000.0,
            peak_bytes=90_000_000,
            allocations_per_second=pace,
            churn=churn,
            backlog=backlog,
            half_load=half_load,
            pods=pods,
        ),
    )
