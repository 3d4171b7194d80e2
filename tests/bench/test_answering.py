from __future__ import annotations

import pytest
from bench_fakes import FakeClock, fake_gauges
from figures import BenchError
from recorder import Goal, Recorder, recorder_for
from workloads import workload_named

from licorne.proxy.si import si_pb2 as si


def recorder_of(name: str, clock: FakeClock, sent: list[si.AllocationRequest]) -> Recorder:
    """Return the resource manager of a workload, which appends what it sends to a list."""
    return recorder_for(workload_named(name), fake_gauges(clock), sent.append)


@pytest.mark.parametrize(
    ("name", "ends"), [("q_gangs", si.PLACEHOLDER_REPLACED), ("q_storm", si.PREEMPTED_BY_SCHEDULER)]
)
def test_what_the_scheduler_ends_is_confirmed_as_it_came(name: str, ends: si.TerminationType) -> None:
    """The scheduler waits for the same release from the resource manager."""
    sent: list[si.AllocationRequest] = []
    recorder = recorder_of(name, FakeClock(), sent)
    release = si.AllocationRelease(allocationKey="k", applicationID="app", terminationType=ends)

    recorder.update_allocation(si.AllocationResponse(released=[release]))

    (request,) = sent
    assert [release] == list(request.releases.allocationsToRelease)
    assert request.rmID == "bench"
    assert recorder.has_reached(Goal(releases=1))


def test_a_timeout_makes_a_run_with_gangs_worthless() -> None:
    """It is no part of the course, so it is neither confirmed nor counted on."""
    sent: list[si.AllocationRequest] = []
    recorder = recorder_of("q_gangs", FakeClock(), sent)
    release = si.AllocationRelease(allocationKey="k", terminationType=si.TIMEOUT)
    recorder.update_allocation(si.AllocationResponse(released=[release]))

    with pytest.raises(BenchError, match="k was taken away: TIMEOUT"):
        recorder.has_reached(Goal())
    assert not sent


def test_a_predicate_takes_its_time_for_each_node() -> None:
    """The workload says how long; the node is accepted."""
    clock = FakeClock()
    recorder_of("p_predicates", clock, []).predicates(si.PredicatesArgs(allocationKey="k", nodeID="n"))

    assert clock.read() == 0.001


def test_other_workloads_have_a_resource_manager_that_only_counts() -> None:
    """One that had predicates would be asked for each node."""
    assert type(recorder_of("u500", FakeClock(), [])) is Recorder
