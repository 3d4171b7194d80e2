from __future__ import annotations

import threading

import pytest
from bench_fakes import FakeClock
from figures import BenchError
from recorder import Goal, Recorder

from licorne.proxy.si import si_pb2 as si

A_LONG_TIME_SECONDS = 60.0


def placed(count: int) -> si.AllocationResponse:
    """Return a response with so many new allocations."""
    return si.AllocationResponse(
        new=[si.Allocation(allocationKey=f"ask-{number}") for number in range(count)]
    )


def test_a_response_counts_with_all_it_carries() -> None:
    """Responses may be batched: each allocation in one has its time, in the order of arrival."""
    clock = FakeClock()
    recorder = Recorder(clock.read)
    recorder.update_allocation(placed(2))
    clock.advance(1.5)
    recorder.update_allocation(placed(1))

    assert recorder.progress() == Goal(allocations=3)
    assert [0.0, 0.0, 1.5] == list(recorder.allocation_times_seconds())


def test_a_change_of_state_is_no_acceptance() -> None:
    """The time of the last accepted application does not move when one starts to run."""
    clock = FakeClock()
    recorder = Recorder(clock.read)
    clock.advance(1.0)
    accepted = [si.AcceptedApplication(applicationID="app")]
    recorder.update_application(si.ApplicationResponse(accepted=accepted))
    clock.advance(1.0)
    updated = [si.UpdatedApplication(applicationID="app", state="Running")]
    recorder.update_application(si.ApplicationResponse(updated=updated))

    assert recorder.progress() == Goal(applications=1)
    assert recorder.last_application_at_seconds() == 1.0


def test_a_goal_is_reached_when_all_of_it_is() -> None:
    """One of two nodes is not enough, however many allocations there are."""
    recorder = Recorder(FakeClock().read)
    recorder.update_allocation(placed(5))
    recorder.update_node(si.NodeResponse(accepted=[si.AcceptedNode(nodeID="node")]))

    assert recorder.has_reached(Goal(nodes=1, allocations=5))
    assert not recorder.has_reached(Goal(nodes=2, allocations=1))


def tell(
    recorder: Recorder, response: si.NodeResponse | si.ApplicationResponse | si.AllocationResponse
) -> None:
    """Call the resource manager back."""
    if isinstance(response, si.NodeResponse):
        recorder.update_node(response)
    elif isinstance(response, si.ApplicationResponse):
        recorder.update_application(response)
    else:
        recorder.update_allocation(response)


@pytest.mark.parametrize(
    ("response", "text"),
    [
        (
            si.NodeResponse(rejected=[si.RejectedNode(nodeID=name, reason="no room") for name in "ab"]),
            "node a was rejected: no room",  # The second one is most likely a consequence.
        ),
        (
            si.ApplicationResponse(rejected=[si.RejectedApplication(applicationID="a", reason="no room")]),
            "a was rejected: no room",
        ),
        (
            si.AllocationResponse(
                rejectedAllocations=[si.RejectedAllocation(allocationKey="a", reason="no room")]
            ),
            "a was rejected: no room",
        ),
        # Only the resource manager itself ends allocations in a bench.
        (
            si.AllocationResponse(
                released=[si.AllocationRelease(allocationKey="a", terminationType=si.PREEMPTED_BY_SCHEDULER)]
            ),
            "a was taken away: PREEMPTED_BY_SCHEDULER",
        ),
    ],
)
def test_a_rejection_makes_the_run_worthless(
    response: si.NodeResponse | si.ApplicationResponse | si.AllocationResponse, text: str
) -> None:
    """It is raised where the goal is waited for, or looked at, and names what was rejected."""
    recorder = Recorder(FakeClock().read)
    tell(recorder, response)

    with pytest.raises(BenchError, match=text):
        recorder.wait(Goal(), A_LONG_TIME_SECONDS)
    with pytest.raises(BenchError, match=text):
        recorder.has_reached(Goal())


def test_who_waits_is_woken_by_the_thread_that_reaches_the_goal() -> None:
    """Callbacks come on another thread than the one that waits."""
    recorder = Recorder(FakeClock().read)

    def call_back() -> None:
        for _ in range(50):
            recorder.update_allocation(placed(2))

    thread = threading.Thread(target=call_back)
    thread.start()
    reached = recorder.wait(Goal(allocations=100), A_LONG_TIME_SECONDS)
    thread.join()

    assert reached
    assert recorder.progress() == Goal(allocations=100)


def test_who_waits_is_woken_by_a_problem() -> None:
    """A rejection on another thread ends the wait at once, with an error."""
    recorder = Recorder(FakeClock().read)
    rejected = si.NodeResponse(rejected=[si.RejectedNode(nodeID="node", reason="no")])
    thread = threading.Thread(target=recorder.update_node, args=(rejected,))
    thread.start()

    with pytest.raises(BenchError, match="node node was rejected"):
        recorder.wait(Goal(nodes=1), A_LONG_TIME_SECONDS)
    thread.join()


def test_a_goal_that_is_not_reached_in_time_is_reported() -> None:
    """The wait is bounded, here by nothing at all."""
    assert not Recorder(FakeClock().read).wait(Goal(nodes=1), 0.0)
