from __future__ import annotations

from dataclasses import replace

import pytest
from bench_fakes import (
    APPLICATION_SECONDS,
    ASK_SECONDS,
    NODE_SECONDS,
    PLACEMENT_SECONDS,
    RELEASE_SECONDS,
    FakeClock,
    FakeScheduler,
    a_workload,
    fake_gauges,
)
from driver import SelfRunning, Stepped
from figures import BenchError, Churn, Gauges, Measurement
from lit_run import measure_on_fresh_scheduler
from measurement import measure
from workloads import BenchWorkload, Course, NodeFill, Size, workload_named

from licorne.proxy.core.scheduler.engine_names import ENGINES, EngineName
from licorne.proxy.si import si_pb2 as si

PLACING_PER_SECOND = 1 / (ASK_SECONDS + PLACEMENT_SECONDS)
"""How many asks are handed over and placed in a second, one after the other."""


def measured(workload: BenchWorkload, *, cpu_share: float = 0.0, peak_bytes: int = 0) -> Measurement:
    """Measure a workload on the fake scheduler, stepped."""
    clock = FakeClock()
    gauges = fake_gauges(clock, cpu_share=cpu_share, peak_bytes=peak_bytes)
    return measure(workload, Stepped(FakeScheduler(clock), gauges), gauges)


def test_additions_and_pace_are_exactly_what_the_scheduler_takes_for_them() -> None:
    """The pace is from the first ask sent to the last allocation received: of nodes nothing is in it."""
    measurement = measured(a_workload(applications_per_leaf=2, asks_per_wave=5))

    assert measurement.nodes_per_second == 1 / NODE_SECONDS
    assert measurement.applications_per_second == 1 / APPLICATION_SECONDS
    assert measurement.asks_handed_over_per_second == 1 / ASK_SECONDS
    assert measurement.asks_taken_in_per_second is None  # Where asks are placed it is not known.
    assert measurement.allocations_per_second == measurement.pace_per_second == PLACING_PER_SECOND
    assert measurement.churn is None
    assert measurement.backlog is None


def test_a_self_running_scheduler_is_measured_by_the_same_code() -> None:
    """It works while it is asked, which shows in what the caller is kept for; the pace is the same."""
    clock = FakeClock()
    gauges = fake_gauges(clock)
    measurement = measure(a_workload(), SelfRunning(FakeScheduler(clock, eager=True), gauges), gauges)

    assert measurement.allocations_per_second == PLACING_PER_SECOND
    assert measurement.asks_handed_over_per_second == PLACING_PER_SECOND


def test_existing_allocations_are_not_in_the_pace() -> None:
    """They are placed, answered and waited for before the first ask is sent."""
    workload = a_workload(
        node_count=20, node_size=Size(600, 60), asks_per_wave=10, node_fill=NodeFill.NEARLY_FULL_CLUSTER
    )

    assert PLACING_PER_SECOND == measured(workload).allocations_per_second


def test_memory_is_counted_for_each_thing_there_are_many_of() -> None:
    """A thousand bytes more after 50 nodes are 20 for one; four applications tell nothing."""
    measurement = measured(a_workload(node_count=50, applications_per_leaf=2, asks_per_wave=25), peak_bytes=7)

    assert measurement.bytes_per_node == 20.0
    assert measurement.bytes_per_application is None
    assert measurement.bytes_per_ask == 10.0
    assert measurement.peak_bytes == 7


def test_locked_churn_waits_for_the_successor_of_each_release() -> None:
    """Every latency is one release and one placement, and the churn is nothing but these."""
    workload = a_workload(node_count=2, asks_per_wave=5, course=Course.CHURN_LOCKED)
    latency = RELEASE_SECONDS + PLACEMENT_SECONDS

    expected = Churn(per_second=1 / latency, latency_p50_seconds=latency, latency_p99_seconds=latency)
    assert expected == measured(workload).churn


def test_piped_churn_does_not_wait() -> None:
    """All 20 releases are sent before the scheduler does the first of them, so the last one waits longest."""
    measurement = measured(a_workload(node_count=2, asks_per_wave=5, course=Course.CHURN_PIPED))

    seconds = 20 * (RELEASE_SECONDS + PLACEMENT_SECONDS)
    expected = Churn(
        per_second=20 / seconds,
        latency_p50_seconds=20 * RELEASE_SECONDS + 10 * PLACEMENT_SECONDS,
        latency_p99_seconds=seconds,
    )
    assert expected == measurement.churn
    # The filling of the cluster is preparation: there is no other pace.
    assert (None, 20 / seconds) == (measurement.allocations_per_second, measurement.pace_per_second)


@pytest.mark.parametrize(
    "workload",
    [
        a_workload(node_count=2, asks_per_wave=5, course=Course.CHURN_LOCKED),
        a_workload(asks_per_wave=5, node_fill=NodeFill.FULL, course=Course.WAIT, node_count=1),
    ],
    ids=["20 asks fill the cluster and 20 wait", "a backlog, of which all asks wait"],
)
def test_waiting_asks_are_taken_in_when_the_mark_behind_them_is_accepted(workload: BenchWorkload) -> None:
    """The 20 that wait, and the mark, are what is timed."""
    measurement = measured(workload)

    assert measurement.asks_handed_over_per_second == 1 / ASK_SECONDS
    assert measurement.asks_taken_in_per_second == 20 / (20 * ASK_SECONDS + APPLICATION_SECONDS)


@pytest.mark.parametrize("node_fill", [NodeFill.FULL, NodeFill.FRAGMENTED])
def test_a_backlog_reacts_to_a_freed_node(node_fill: NodeFill) -> None:
    """The reaction ends with the first new allocation, not with the last."""
    workload = a_workload(node_count=4, asks_per_wave=50, node_fill=node_fill, course=Course.WAIT)
    measurement = measured(workload)

    assert measurement.backlog is not None
    assert measurement.backlog.reaction_median_seconds == RELEASE_SECONDS + PLACEMENT_SECONDS
    assert measurement.backlog.reaction_max_seconds == RELEASE_SECONDS + PLACEMENT_SECONDS
    assert measurement.pace_per_second is None


@pytest.mark.parametrize("cpu_share", [0.0, 0.25])
def test_a_backlog_costs_processor_time_by_wall_time(cpu_share: float) -> None:
    """A process that uses a quarter of a core while asks wait has a share of 0.25."""
    workload = a_workload(asks_per_wave=50, node_fill=NodeFill.FULL, course=Course.WAIT)
    backlog = measured(workload, cpu_share=cpu_share).backlog

    assert backlog is not None
    assert backlog.waiting_cpu_share == pytest.approx(cpu_share)


FRAGMENTED = a_workload(
    node_count=4, node_size=Size(110, 11), node_fill=NodeFill.FRAGMENTED, course=Course.WAIT
)
NO_ROOM = a_workload(node_count=1, applications_per_leaf=2, asks_per_wave=5)


@pytest.mark.parametrize(
    ("workload", "text"),
    [
        pytest.param(FRAGMENTED, "4 allocations more than there is room for", id="a backlog that is placed"),
        pytest.param(NO_ROOM, r"allocations=10, .* not Goal\(.*allocations=20", id="not all asks are placed"),
        pytest.param(
            replace(a_workload(), waiting_count=1, waiting_sizes=(Size(10, 1),)),
            "1 allocations more",
            id="a waiting ask that is placed",
        ),
    ],
)
def test_what_is_not_as_the_workload_says_is_an_error(workload: BenchWorkload, text: str) -> None:
    """It would give a fine figure for the wrong thing."""
    with pytest.raises(BenchError, match=text):
        measured(workload)


def test_a_rejected_node_ends_the_measurement() -> None:
    """What the scheduler refuses cannot be measured."""

    class Rejecting(FakeScheduler):
        def update_node(self, request: si.NodeRequest) -> None:
            rejected = [si.RejectedNode(nodeID=node.nodeID, reason="no") for node in request.nodes]
            self._rm().update_node(si.NodeResponse(rejected=rejected))

    clock = FakeClock()
    with pytest.raises(BenchError, match="node node-00000 was rejected: no"):
        measure(a_workload(), Stepped(Rejecting(clock), fake_gauges(clock)), fake_gauges(clock))


def test_the_scheduler_gets_the_configuration_of_the_workload_once() -> None:
    """One registration, with the queues of the description."""
    clock = FakeClock()
    scheduler = FakeScheduler(clock)
    measure(a_workload(), Stepped(scheduler, fake_gauges(clock)), fake_gauges(clock))

    assert len(scheduler.registrations) == 1
    assert "name: b" in scheduler.registrations[0].config


def test_what_waits_is_there_before_the_pace_is_measured() -> None:
    """Its applications and asks are taken in first, and are not in the pace."""
    sizes = (Size(10_000, 1), Size(20_000, 2))
    workload = replace(a_workload(), waiting_count=3, waiting_sizes=sizes)
    clock = FakeClock()
    gauges = fake_gauges(clock)
    scheduler = FakeScheduler(clock)
    measurement = measure(workload, Stepped(scheduler, gauges), gauges)

    assert measurement.allocations_per_second == PLACING_PER_SECOND
    assert ["first-00000-0", "first-00001-0", "first-00002-0"] == [
        ask.allocationKey for ask in scheduler._waiting
    ]


def test_half_load_sends_one_ask_after_the_other_at_half_of_the_pace() -> None:
    """The scheduler is done with each before the next comes: its latency is what it takes alone."""
    measurement = measured(a_workload(node_count=4, course=Course.HALF_LOAD))
    alone = ASK_SECONDS + PLACEMENT_SECONDS

    assert measurement.allocations_per_second == 1 / alone
    half_load = measurement.half_load
    assert half_load is not None
    assert half_load.offered_per_second == pytest.approx(20 / 19 / (2 * alone))
    assert (alone, alone) == (half_load.latency_p50_seconds, half_load.latency_p99_seconds)


def test_gangs_are_measured_by_their_members_from_the_first_placeholder_on() -> None:
    """Both waves are in the time, the placeholders are not in the count."""
    measurement = measured(a_workload(node_count=4, course=Course.GANGS))

    assert measurement.allocations_per_second == 1 / (2 * (ASK_SECONDS + PLACEMENT_SECONDS))


# The workloads that a fake scheduler cannot run, each made small.
SMALL = {
    name: replace(
        workload_named(name), node_count=nodes, applications_per_leaf=applications, asks_per_wave=asks
    )
    for name, nodes, applications, asks in (
        ("a_types", 20, 1, 10),
        ("a_deep", 20, 1, 10),
        ("a_users", 20, 1, 10),
        ("k_pods", 20, 5, 1),
        ("l_half", 20, 2, 4),
        ("p_predicates", 20, 1, 2),
        ("p_parts", 100, 1, 2),
        ("q_gangs", 20, 2, 20),
        ("q_storm", 10, 5, 2),
    )
}


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_workload_runs_to_its_end_at_a_small_size(name: str, engine: EngineName) -> None:
    """The scheduler places all that it asks for, on every engine."""
    measurement = measure_on_fresh_scheduler(SMALL[name], engine, Gauges())

    assert measurement.pace_per_second
    assert (measurement.half_load is not None) == (name == "l_half")
    assert (measurement.pods is not None) == (name == "k_pods")
