from __future__ import annotations

import pytest
from support.proxy.fake_core import FakeCore
from support.proxy.simulation_builders import (
    SECOND,
    a_node,
    a_task,
    a_workload,
    an_application,
    counts_of,
    drive,
    run,
    tally_of,
)

from licorne.model.errors import LicorneError
from licorne.proxy.play.simulation.record import SimulationRecord
from licorne.proxy.play.simulation.simulated_rm import SimulatedRM
from licorne.proxy.play.simulation.workloads.workload import GangStyle
from licorne.proxy.si import si_pb2 as si


def _releases(core: FakeCore) -> list[tuple[str, int]]:
    """Return what was released, and how, in order."""
    return [
        (release.allocationKey, release.terminationType)
        for request in core.requests
        if isinstance(request, si.AllocationRequest)
        for release in request.releases.allocationsToRelease
    ]


def _asks(core: FakeCore) -> list[str]:
    """Return the keys that were asked for, in order."""
    requests = [request for request in core.requests if isinstance(request, si.AllocationRequest)]
    return [ask.allocationKey for request in requests for ask in request.allocations]


@pytest.fixture
def core() -> FakeCore:
    """Return a scheduler that places first what comes first."""
    return FakeCore()


def test_it_registers_brings_nodes_and_submits_in_that_order(core: FakeCore) -> None:
    """Applications before their asks, everything before the end of the first task."""
    run(core, an_application())

    kinds = [type(request).__name__.removesuffix("Request") for request in core.requests]

    assert ["RegisterResourceManager", "Node", "Application", "Allocation", "Allocation"] == kinds


def test_a_task_runs_for_its_duration_from_where_it_was_placed(core: FakeCore) -> None:
    """The second waits for the first to end, and ends as much later."""
    record = run(core, an_application(a_task("t1", cores=10), a_task("t2", cores=10, duration=30)))

    assert [0, 60 * SECOND] == tally_of(record).waits_ns
    assert 90 * SECOND == record.last_change_ns
    assert [("t1", si.STOPPED_BY_RM), ("t2", si.STOPPED_BY_RM)] == _releases(core)


def test_a_task_without_a_duration_runs_to_the_end(core: FakeCore) -> None:
    """Nothing releases it."""
    record = run(core, an_application(a_task(duration=None)))

    assert ({"submitted": 1, "placed": 1, "running": 1}, []) == (counts_of(record), _releases(core))


def test_work_that_ends_makes_room_for_what_is_submitted_at_the_same_moment() -> None:
    """A release is sent before new asks are."""
    record = run(FakeCore(), an_application(a_task("t1", cores=10), a_task("t2", cores=10, at=60)))

    assert [0, 0] == tally_of(record).waits_ns


def test_asks_follow_their_application(core: FakeCore) -> None:
    """Tasks of one application may be submitted later than it."""
    run(core, an_application(a_task("late", at=9), a_task("now", at=5), at=5))

    assert ["now", "late"] == _asks(core)


def test_what_does_not_fit_waits_to_the_end() -> None:
    """It is submitted all the same."""
    record = run(FakeCore(), an_application(a_task(cores=11)))

    assert {"submitted": 1, "waiting": 1} == counts_of(record)


def test_tasks_of_a_rejected_application_are_rejected() -> None:
    """Also those that would come later; the reason is reported without the name."""
    core = FakeCore(refused_queues={"root.q"})
    record = run(core, an_application(a_task("t", pieces=2), a_task("late", at=9), name="app-7"))

    assert {"submitted": 3, "rejected": 3} == counts_of(record)
    assert {"no queue for ...": 3} == record.remarks.rejections
    assert [] == _asks(core)


def test_a_preempted_task_is_confirmed_and_asked_for_again(core: FakeCore) -> None:
    """It starts from the beginning under a new key each time, and counts as submitted and placed once."""
    core.at(20 * SECOND, lambda: core.want_back("t", si.PREEMPTED_BY_SCHEDULER))
    core.at(30 * SECOND, lambda: core.want_back("t-r1", si.PREEMPTED_BY_SCHEDULER))
    record = run(core, an_application())

    assert ["t", "t-r1", "t-r2"] == _asks(core)
    assert [
        ("t", si.PREEMPTED_BY_SCHEDULER),
        ("t-r1", si.PREEMPTED_BY_SCHEDULER),
        ("t-r2", si.STOPPED_BY_RM),
    ] == _releases(core)
    assert {"submitted": 1, "placed": 1, "preempted": 2, "completed": 1} == counts_of(record)
    assert 90 * SECOND == record.last_change_ns


def test_an_ask_that_the_scheduler_takes_back_is_asked_for_again(core: FakeCore) -> None:
    """Its wait is counted from the first time."""
    core.at(20 * SECOND, lambda: core.want_back("t2", si.TIMEOUT))
    record = run(core, an_application(a_task("t1", cores=10), a_task("t2", cores=10)))

    assert ["t1", "t2", "t2-r1"] == _asks(core)
    assert {"submitted": 2, "placed": 2, "completed": 2} == counts_of(record)
    assert [0, 60 * SECOND] == tally_of(record).waits_ns


def test_a_task_that_lost_its_node_is_asked_for_again_without_a_confirmation(core: FakeCore) -> None:
    """The scheduler only reported it."""
    core.at(20 * SECOND, lambda: core.lose("t"))
    record = run(core, an_application())

    assert [("t-r1", si.STOPPED_BY_RM)] == _releases(core)
    assert {"submitted": 1, "placed": 1, "completed": 1} == counts_of(record)


def test_a_failed_application_gives_up_what_waits(core: FakeCore) -> None:
    """What runs goes on."""
    core.at(20 * SECOND, lambda: core.tell_state("a", "Failing"))
    record = run(core, an_application(a_task("t1", cores=10), a_task("t2", cores=10)))

    assert {"submitted": 2, "placed": 1, "completed": 1, "rejected": 1} == counts_of(record)
    assert {"application Failing: because": 1} == record.remarks.rejections


def test_an_ask_of_an_unknown_application_is_rejected_with_its_reason(core: FakeCore) -> None:
    """Names are left out of reasons, so that they can be counted."""
    core.at(SECOND, core._applications.clear)
    record = run(core, an_application(a_task("t1"), a_task("t2", at=2), a_task("t3", at=3)))

    assert {"failed to find application ...": 2} == record.remarks.rejections


def test_a_gang_starts_when_all_its_placeholders_are_placed(core: FakeCore) -> None:
    """Placeholders first; each is replaced by its task, and is confirmed as such."""
    tasks = a_task("t", cores=5, pieces=2)
    record = run(
        core, an_application(a_task("before", cores=6), name="b"), an_application(tasks, gang=GangStyle.SOFT)
    )

    assert ["before", "t-1-ph", "t-2-ph", "t-1", "t-2"] == _asks(core)
    assert [("t-1-ph", si.PLACEHOLDER_REPLACED), ("t-2-ph", si.PLACEHOLDER_REPLACED)] == _releases(core)[1:3]
    assert {"submitted": 3, "placed": 3, "completed": 3} == counts_of(record)
    assert [0, 60 * SECOND, 60 * SECOND] == tally_of(record).waits_ns


def test_a_gang_tells_the_size_of_its_placeholders_and_its_style(core: FakeCore) -> None:
    """Tasks that are submitted later are no members."""
    run(core, an_application(a_task("t", cores=2, pieces=3), a_task("late", at=9), gang=GangStyle.HARD))

    request = next(request for request in core.requests if isinstance(request, si.ApplicationRequest))

    assert (6, "Hard") == (
        request.new[0].placeholderAsk.resources["vcore"].value,
        request.new[0].gangSchedulingStyle,
    )
    assert ["t-1-ph", "t-2-ph", "t-3-ph", "t-1", "t-2", "t-3", "late"] == _asks(core)


def test_a_gang_that_was_given_up_starts_task_by_task(core: FakeCore) -> None:
    """Its placeholders are confirmed as timed out, and its tasks are asked for."""
    core.at(90 * SECOND, lambda: core.want_back("t-1-ph", si.TIMEOUT))
    core.at(90 * SECOND, lambda: core.want_back("t-2-ph", si.TIMEOUT))
    core.at(90 * SECOND, lambda: core.tell_state("a", "Resuming"))
    run(core, an_application(a_task("t", cores=6, pieces=2), gang=GangStyle.SOFT))

    assert ["t-1-ph", "t-2-ph", "t-1", "t-2"] == _asks(core)
    assert {("t-1-ph", si.TIMEOUT), ("t-2-ph", si.TIMEOUT)} <= set(_releases(core))


def test_the_capacity_is_that_of_the_accepted_nodes() -> None:
    """All of them are there from the start."""
    record = run(FakeCore(), an_application(), nodes=(a_node("n1", vcore=4), a_node("n2", vcore=3, gpu=1)))

    assert (2, {"vcore": 7, "gpu": 1}) == (record.nodes, {n: c.value for n, c in record.capacity.items()})


def test_a_placement_that_no_ask_waits_for_is_a_surprise(core: FakeCore) -> None:
    """The books say so instead of hiding it."""
    placed = si.AllocationResponse(new=[si.Allocation(allocationKey="x", applicationID="a", nodeID="n1")])
    core.at(SECOND, lambda: core._tell(placed))

    assert {"placement of something that does not wait": 1} == run(core, an_application()).remarks.surprises


def test_an_error_inside_a_callback_ends_the_simulation(core: FakeCore) -> None:
    """The scheduler would only log it."""
    core.at(SECOND, lambda: core.tell_state("nobody", "Running"))

    with pytest.raises(KeyError, match="nobody"):
        run(core, an_application())


def test_a_refused_registration_is_raised() -> None:
    """Before anything else happens."""
    core, record = FakeCore(), SimulationRecord()
    rm = SimulatedRM(a_workload(an_application()), core, record, core.refused_configuration)

    with pytest.raises(LicorneError, match="is refused"):
        drive(core, rm, record)
    assert 1 == len(core.requests)


def test_priorities_and_permissions_stand_in_the_asks(core: FakeCore) -> None:
    """Work of a simulation may preempt and be preempted."""
    run(core, an_application(a_task(priority=-7)))

    asks = [ask for r in core.requests if isinstance(r, si.AllocationRequest) for ask in r.allocations]

    assert (-7, True, True) == (
        asks[0].priority,
        asks[0].preemptionPolicy.allowPreemptSelf,
        asks[0].preemptionPolicy.allowPreemptOther,
    )


def test_work_counts_for_the_queue_that_placement_put_it_in() -> None:
    """Not for the one that was asked for; what is rejected has no other."""
    core = FakeCore(queues_instead={"root.asked": "root.real"}, refused_queues={"root.none"})
    record = run(
        core,
        an_application(a_task("t1"), name="a1", queue="root.asked"),
        an_application(a_task("t2"), name="a2", queue="root.real"),
        an_application(a_task("t3"), name="a3", queue="root.none"),
    )

    assert {"root.real": 2, "root.none": 1} == {
        owner.queue: tally.submitted for owner, tally in record.accounts.tallies().items()
    }


def test_a_node_that_is_refused_is_no_surprise(core: FakeCore) -> None:
    """The reason stands with what was refused."""
    record, workload = SimulationRecord(), a_workload(an_application())
    rm = SimulatedRM(workload, core, record, "queues")

    rm.update_node(si.NodeResponse(rejected=[si.RejectedNode(nodeID="n1", reason="n1 is known")]))

    assert {"node rejected: ... is known": 1} == record.remarks.refusals
    assert not record.remarks.surprises
