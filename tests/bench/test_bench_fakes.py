from __future__ import annotations

from bench_fakes import ASK_SECONDS, FakeClock, FakeScheduler, a_workload
from recorder import Goal, Recorder
from workload_requests import (
    ask_requests,
    node_request,
    registration_request,
    release_request,
)


def test_the_fake_scheduler_places_what_fits_and_lets_the_rest_wait() -> None:
    """One node holds ten of twelve asks; a release makes room for one more."""
    workload = a_workload(node_count=1, applications_per_leaf=1, asks_per_wave=6)
    clock = FakeClock()
    scheduler, recorder = FakeScheduler(clock), Recorder(clock.read)
    scheduler.register_resource_manager(registration_request(workload), recorder)
    scheduler.update_node(node_request(workload))
    for request in ask_requests(workload, 0):
        scheduler.update_allocation(request)

    scheduler.run_until_idle()
    assert recorder.progress() == Goal(nodes=1, allocations=10)

    scheduler.update_allocation(release_request("root.a-000", "root.a-000-0-00000"))
    scheduler.run_until_idle()
    assert recorder.progress() == Goal(nodes=1, allocations=11, releases=1)


def test_the_fake_scheduler_does_nothing_until_it_is_stepped() -> None:
    """Only the hand-over of asks takes time at once."""
    workload = a_workload(asks_per_wave=4)
    clock = FakeClock()
    scheduler, recorder = FakeScheduler(clock), Recorder(clock.read)
    scheduler.register_resource_manager(registration_request(workload), recorder)
    scheduler.update_node(node_request(workload))
    scheduler.update_allocation(ask_requests(workload, 0)[0])

    assert recorder.progress() == Goal()
    assert clock.now_seconds == 4 * ASK_SECONDS


def test_the_eager_fake_scheduler_works_inside_each_call() -> None:
    """It needs no stepping."""
    workload = a_workload()
    scheduler, recorder = FakeScheduler(FakeClock(), eager=True), Recorder(FakeClock().read)
    scheduler.register_resource_manager(registration_request(workload), recorder)

    scheduler.update_node(node_request(workload))

    assert recorder.progress() == Goal(nodes=4)
