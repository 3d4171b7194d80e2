"""The measuring code: one workload, one scheduler, every figure.

Everything the resource manager sends is built before the clocks start. The pace is measured from the first
ask sent to the last allocation received by the callback; nodes and applications from the request sent to the
last acceptance received.

Asks have two figures. They are handed over as fast as the scheduler returns to its caller; an engine may
defer the work, which then shows in the pace. They are taken in when the scheduler has processed them: that is
not announced, so an application submitted after them serves as a mark. It would disturb the pace, so it is
used only where the asks find no room.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from driver import BenchDriver
from figures import Backlog, BenchError, Churn, Gauges, HalfLoad, Measurement, Pods, percentile
from recorder import Goal, recorder_for
from workload_requests import (
    RM_ID,
    application_request,
    ask_requests,
    end_request,
    mark_request,
    node_request,
    placement_request,
    registration_request,
    release_request,
    removal_request,
    single_ask_requests,
    waiting_application_request,
    waiting_ask_request,
)
from workloads import BenchWorkload, Course, Placement

from licorne.proxy.si import si_pb2 as si

# The time that a scheduler has for asks that find no room before it must be idle.
_IDLE_SECONDS: Final = 1.0
_WAITING_SECONDS: Final = 2.0
# That of the leaves whose applications wait to preempt: after it they try.
_PREEMPTION_DELAY_SECONDS: Final = 1.0
_PREEMPTION_PAUSE_SECONDS: Final = 0.1
_PREEMPTION_PAUSES_MAX: Final = 6_000
_FREED_NODES: Final = 9
# With fewer of a kind the pages of other things weigh more than they do.
_MEMORY_COUNT_MIN: Final = 50


def measure(workload: BenchWorkload, driver: BenchDriver, gauges: Gauges) -> Measurement:
    """Run a workload on a scheduler that was just made, and return all figures but the light.

    Raises:
        BenchError: something was rejected, taken away, or did not come.
        LicorneError: the scheduler refused a request as a whole.
    """
    run = _Run(workload, driver, gauges)
    run.register()
    nodes = run.add_nodes()
    if workload.waiting_count:
        run.add_waiting()
    applications = run.add_applications()
    run.place_existing()
    asks, outcome = _COURSES[workload.course](run)
    return Measurement(
        nodes_per_second=nodes.per_second,
        applications_per_second=applications.per_second,
        asks_handed_over_per_second=asks.handed_over_per_second,
        asks_taken_in_per_second=asks.taken_in_per_second,
        bytes_per_node=nodes.bytes_each,
        bytes_per_application=applications.bytes_each,
        bytes_per_ask=asks.bytes_each,
        peak_bytes=gauges.peak_bytes(),
        allocations_per_second=outcome if isinstance(outcome, float) else run.pace_per_second,
        churn=outcome if isinstance(outcome, Churn) else None,
        backlog=outcome if isinstance(outcome, Backlog) else None,
        half_load=outcome if isinstance(outcome, HalfLoad) else None,
        pods=outcome if isinstance(outcome, Pods) else None,
    )


@dataclass(frozen=True, slots=True)
class _Added:
    """What was added to the scheduler, how long it took, and what it keeps for it."""

    count: int
    seconds: float
    bytes_kept: int

    @property
    def per_second(self) -> float:
        return self.count / self.seconds

    @property
    def bytes_each(self) -> float | None:
        return self.bytes_kept / self.count if self.count >= _MEMORY_COUNT_MIN else None


@dataclass(frozen=True, slots=True)
class _Asks:
    """The figures of sending the asks of a workload."""

    handed_over_per_second: float
    taken_in_per_second: float | None
    bytes_each: float | None


class _Run:
    """One workload under way: what has been sent, and what must have come back by now."""

    def __init__(self, workload: BenchWorkload, driver: BenchDriver, gauges: Gauges) -> None:
        self.workload = workload
        self.driver = driver
        self.gauges = gauges
        self.recorder = recorder_for(workload, gauges, driver.api.update_allocation)
        self.allocations_expected = 0
        self.pace_per_second: float | None = None
        self.submission_cpu_seconds = 0.0
        self._nodes = node_request(workload)
        self._applications = application_request(workload)
        self._existing = placement_request(workload)
        self._waiting = waiting_application_request(workload)
        self._waiting_asks = waiting_ask_request(workload)
        self.waves = [ask_requests(workload, wave) for wave in range(workload.wave_count)]

    def register(self) -> None:
        """Register the resource manager."""
        self.driver.api.register_resource_manager(registration_request(self.workload), self.recorder)

    def add_nodes(self) -> _Added:
        """Create all nodes."""
        count = self.workload.node_count
        resident = self.resident_bytes()
        start = self.gauges.clock_seconds()
        self.driver.api.update_node(self._nodes)
        self.driver.wait(self.recorder, Goal(nodes=count))
        seconds = self.recorder.last_node_at_seconds() - start
        return _Added(count, seconds, self.resident_bytes() - resident)

    def add_applications(self) -> _Added:
        """Submit all applications."""
        count = self.workload.application_count
        resident = self.resident_bytes()
        start, cpu_start = self.gauges.clock_seconds(), self.gauges.cpu_seconds()
        self.driver.api.update_application(self._applications)
        self.driver.wait(self.recorder, Goal(applications=self._applications_accepted()))
        self.submission_cpu_seconds = self.gauges.cpu_seconds() - cpu_start
        seconds = self.recorder.last_application_at_seconds() - start
        return _Added(count, seconds, self.resident_bytes() - resident)

    def place_existing(self) -> None:
        """Create the allocations that exist before the first ask; only foreign ones have no answer."""
        if not self._existing.allocations:
            return
        self.driver.api.update_allocation(self._existing)
        self.expect_allocations(
            sum(1 for allocation in self._existing.allocations if allocation.applicationID)
        )

    def expect_allocations(self, count: int) -> None:
        """Wait until that many more allocations have come."""
        self.allocations_expected += count
        self.driver.wait(self.recorder, Goal(allocations=self.allocations_expected))

    def expect_no_allocations(self) -> None:
        """Check that there were no other allocations than those that were waited for."""
        surplus = self.recorder.progress().allocations - self.allocations_expected
        if surplus:
            raise BenchError(f"{surplus} allocations more than there is room for")

    def send_asks(self, wave: int) -> tuple[float, float]:
        """Send the asks of one wave, and return when that began and when the last was handed over."""
        update_allocation = self.driver.api.update_allocation
        start = self.gauges.clock_seconds()
        for request in self.waves[wave]:
            update_allocation(request)
        return start, self.gauges.clock_seconds()

    def wait_for_mark(self) -> float:
        """Submit an application after everything that was sent, and return when it was accepted."""
        self.submit_more(mark_request(self.workload))
        return self.recorder.last_application_at_seconds()

    def submit_more(self, request: si.ApplicationRequest) -> None:
        """Submit further applications, and wait until they are accepted: all that was sent before is in."""
        accepted = self.recorder.progress().applications
        self.driver.api.update_application(request)
        self.driver.wait(self.recorder, Goal(applications=accepted + len(request.new)))

    def add_waiting(self) -> None:
        """Submit the applications that wait, with their asks, and let the scheduler find no room for them.

        They are the oldest, so that they go first where the others are to be placed.
        """
        self.driver.api.update_application(self._waiting)
        self.driver.wait(self.recorder, Goal(applications=self.workload.waiting_count))
        self.driver.api.update_allocation(self._waiting_asks)
        self.driver.pause(_IDLE_SECONDS + _PREEMPTION_DELAY_SECONDS)
        self.expect_no_allocations()

    def _applications_accepted(self) -> int:
        return self.workload.application_count + self.workload.waiting_count

    def resident_bytes(self) -> int:
        """Return the memory in use, garbage left out."""
        self.gauges.collect_garbage()
        return self.gauges.resident_bytes()


# ------------------------------------------------------------------------------------- the courses


def _place_all(run: _Run) -> tuple[_Asks, float]:
    """Send all asks, and wait for all allocations."""
    count = run.workload.ask_count
    resident = run.resident_bytes()
    start, handed_over = run.send_asks(0)
    run.expect_allocations(count)
    seconds = run.recorder.allocation_times_seconds()[run.allocations_expected - 1] - start
    added = _Added(count, handed_over - start, run.resident_bytes() - resident)
    return _Asks(added.per_second, None, added.bytes_each), count / seconds


def _half_load(run: _Run) -> tuple[_Asks, HalfLoad]:
    """Place the first wave as fast as it goes, then send the second ask by ask at half of that pace.

    The n-th ask is taken to be answered by the n-th allocation: at half load hardly one waits for another.
    """
    workload, clock = run.workload, run.gauges.clock_seconds
    count = workload.ask_count // 2
    start, handed_over = run.send_asks(0)
    run.expect_allocations(count)
    run.pace_per_second = count / (run.recorder.allocation_times_seconds()[-1] - start)
    requests = single_ask_requests(run.waves[1])
    interval = 2 / run.pace_per_second
    sent = []
    due = clock()
    for request in requests:
        run.driver.pause(max(0.0, due - clock()))
        sent.append(clock())
        run.driver.api.update_allocation(request)
        due += interval
    run.expect_allocations(count)
    latencies = _latencies(sent, run.recorder.allocation_times_seconds()[-count:])
    return _Asks(count / (handed_over - start), None, None), HalfLoad(
        offered_per_second=count / (sent[-1] - sent[0]),
        latency_p50_seconds=percentile(latencies, 50),
        latency_p99_seconds=percentile(latencies, 99),
    )


def _place_gangs(run: _Run) -> tuple[_Asks, float]:
    """Place all placeholders, and replace them: the pace is that of the members, both waves in its time."""
    count = run.workload.ask_count // 2
    start, handed_over = run.send_asks(0)
    run.expect_allocations(count)
    run.send_asks(1)
    run.expect_allocations(count)
    seconds = run.recorder.allocation_times_seconds()[-1] - start
    return _Asks(count / (handed_over - start), None, None), count / seconds


def _end_pods(run: _Run) -> tuple[_Asks, Pods]:
    """Place the asks of all applications and end everything, then the same with one application a leaf.

    The asks come in one request, and so do the ends: what a request costs is no part of the comparison.
    """
    large = run.workload.with_large_applications()
    large_asks = [ask for request in ask_requests(large, 0) for ask in request.allocations]
    asks = [ask for request in run.waves[0] for ask in request.allocations]
    count, clock, cpu_seconds = len(asks), run.gauges.clock_seconds, run.gauges.cpu_seconds
    parts = [
        (si.AllocationRequest(rmID=RM_ID, allocations=each), end_request(each), removal_request(workload))
        for each, workload in ((asks, run.workload), (large_asks, large))
    ]
    next_applications = (application_request(large), mark_request(run.workload))
    start, handed_over, cpu = clock(), 0.0, []
    for (asked, ended, removed), following in zip(parts, next_applications, strict=True):
        cpu_start = cpu_seconds()
        run.driver.api.update_allocation(asked)
        handed_over = handed_over or clock()
        run.expect_allocations(count)
        run.driver.api.update_allocation(ended)
        run.driver.api.update_application(removed)
        run.submit_more(following)
        cpu.append(cpu_seconds() - cpu_start)
    run.pace_per_second = count / (run.recorder.allocation_times_seconds()[count - 1] - start)
    return _Asks(count / (handed_over - start), None, None), Pods(
        cpu_seconds_per_application=(run.submission_cpu_seconds + cpu[0]) / count,
        cpu_seconds_per_ask=cpu[1] / count,
    )


def _preempt(run: _Run) -> tuple[_Asks, float]:
    """Fill the cluster, then send the asks that take the place of all it holds: the pace is theirs."""
    count = run.workload.ask_count // 2
    half = len(run.waves[0]) // 2
    run.waves = [run.waves[0][:half], run.waves[0][half:]]
    run.send_asks(0)
    run.expect_allocations(count)
    start, handed_over = run.send_asks(1)
    # Attempts at preemption wait for their time: a scheduler that must be stepped is idle meanwhile.
    for _ in range(_PREEMPTION_PAUSES_MAX):
        run.driver.pause(_PREEMPTION_PAUSE_SECONDS)
        if run.recorder.has_reached(Goal(allocations=2 * count)):
            break
    run.expect_allocations(count)
    seconds = run.recorder.allocation_times_seconds()[-1] - start
    return _Asks(count / (handed_over - start), None, None), count / seconds


def _churn_locked(run: _Run) -> tuple[_Asks, Churn]:
    """Release one by one, and wait for each new allocation."""

    def release_and_wait(request: si.AllocationRequest) -> None:
        run.driver.api.update_allocation(request)
        run.expect_allocations(1)

    return _fill_up(run), _churn(run, release_and_wait)


def _churn_piped(run: _Run) -> tuple[_Asks, Churn]:
    """Release one by one without waiting; the new allocations come when they come."""
    return _fill_up(run), _churn(run, run.driver.api.update_allocation)


def _fill_up(run: _Run) -> _Asks:
    """Fill the cluster with the first wave, and let the second wait."""
    resident = run.resident_bytes()
    first_start, first_handed_over = run.send_asks(0)
    run.expect_allocations(run.workload.ask_count // 2)
    start, handed_over = run.send_asks(1)
    taken_in = run.wait_for_mark() - start
    run.driver.pause(_IDLE_SECONDS)
    run.expect_no_allocations()
    seconds = first_handed_over - first_start + handed_over - start
    added = _Added(run.workload.ask_count, seconds, run.resident_bytes() - resident)
    return _Asks(added.per_second, run.workload.ask_count // 2 / taken_in, added.bytes_each)


def _churn(run: _Run, release: Callable[[si.AllocationRequest], None]) -> Churn:
    """Release the whole first wave in the order of its asks."""
    requests = [
        release_request(ask.applicationID, ask.allocationKey)
        for request in run.waves[0]
        for ask in request.allocations
    ]
    first = run.allocations_expected
    clock = run.gauges.clock_seconds
    sent = []
    for request in requests:
        sent.append(clock())
        release(request)
    run.driver.wait(run.recorder, Goal(allocations=first + len(requests), releases=len(requests)))
    arrived = run.recorder.allocation_times_seconds()[first : first + len(requests)]
    return _churn_of(sent, arrived)


def _churn_of(sent: Sequence[float], arrived: Sequence[float]) -> Churn:
    latencies = _latencies(sent, arrived)
    return Churn(
        per_second=len(sent) / (arrived[-1] - sent[0]),
        latency_p50_seconds=percentile(latencies, 50),
        latency_p99_seconds=percentile(latencies, 99),
    )


def _latencies(sent: Sequence[float], arrived: Sequence[float]) -> list[float]:
    return [arrival - departure for departure, arrival in zip(sent, arrived, strict=True)]


def _let_wait(run: _Run) -> tuple[_Asks, Backlog]:
    """Let asks wait that cannot fit, then free one node after the other."""
    resident = run.resident_bytes()
    start, handed_over = run.send_asks(0)
    taken_in = run.wait_for_mark() - start
    run.driver.pause(_IDLE_SECONDS)
    added = _Added(run.workload.ask_count, handed_over - start, run.resident_bytes() - resident)
    asks = _Asks(added.per_second, run.workload.ask_count / taken_in, added.bytes_each)
    share = _waiting_cpu_share(run)
    run.expect_no_allocations()
    reactions = [_free_node(run, placement) for placement in _freed_placements(run.workload)]
    return asks, Backlog(
        waiting_cpu_share=share,
        reaction_median_seconds=percentile(reactions, 50),
        reaction_max_seconds=max(reactions),
    )


def _waiting_cpu_share(run: _Run) -> float:
    start, cpu_start = run.gauges.clock_seconds(), run.gauges.cpu_seconds()
    run.driver.pause(_WAITING_SECONDS)
    cpu = run.gauges.cpu_seconds() - cpu_start
    return cpu / (run.gauges.clock_seconds() - start)


def _freed_placements(workload: BenchWorkload) -> list[Placement]:
    """Return allocations that fill a node alone, spread over the cluster."""
    placements = list(workload.placements())
    return placements[:: max(1, len(placements) // _FREED_NODES)][:_FREED_NODES]


def _free_node(run: _Run, placement: Placement) -> float:
    """Release what fills a node, wait until it is full again, and return how long the first new one took."""
    assert placement.application_id is not None, "a foreign allocation frees no node of a backlog"
    room = run.workload.node_size.memory // run.workload.ask_sizes[0].memory
    request = release_request(placement.application_id, placement.allocation_key)
    first = run.allocations_expected
    start = run.gauges.clock_seconds()
    run.driver.api.update_allocation(request)
    run.expect_allocations(room)
    return run.recorder.allocation_times_seconds()[first] - start


_COURSES: Final[dict[Course, Callable[[_Run], tuple[_Asks, float | Churn | Backlog | HalfLoad | Pods]]]] = {
    Course.PLACE: _place_all,
    Course.CHURN_LOCKED: _churn_locked,
    Course.CHURN_PIPED: _churn_piped,
    Course.WAIT: _let_wait,
    Course.HALF_LOAD: _half_load,
    Course.GANGS: _place_gangs,
    Course.PREEMPT: _preempt,
    Course.PODS: _end_pods,
}
