from __future__ import annotations

import pytest
from support.proxy.bench_fakes import FakeClock, FakeScheduler, a_workload, fake_gauges

from licorne.proxy.bench.driver import SelfRunning, Stepped
from licorne.proxy.bench.errors import BenchError
from licorne.proxy.bench.recorder import Goal, Recorder
from licorne.proxy.bench.requests import node_request, registration_request


def test_a_stepped_scheduler_runs_when_something_is_waited_for() -> None:
    """The nodes are taken in by the wait."""
    clock = FakeClock()
    driver, recorder = Stepped(FakeScheduler(clock), fake_gauges(clock)), Recorder(clock.read)
    driver.api.register_resource_manager(registration_request(a_workload()), recorder)
    driver.api.update_node(node_request(a_workload()))

    driver.wait(recorder, Goal(nodes=4))

    assert recorder.progress() == Goal(nodes=4)


def test_a_stepped_scheduler_that_is_idle_too_early_is_an_error() -> None:
    """Nothing more will come, so nothing is waited for."""
    clock = FakeClock()
    driver = Stepped(FakeScheduler(clock), fake_gauges(clock))

    with pytest.raises(BenchError, match=r"is idle, and .* has Goal\(nodes=0, .* not Goal\(nodes=1"):
        driver.wait(Recorder(clock.read), Goal(nodes=1))


def test_a_stepped_scheduler_is_stepped_while_it_rests() -> None:
    """Asks that came before the rest are taken in, and the rest is as long as it should be."""
    clock = FakeClock()
    driver, recorder = Stepped(FakeScheduler(clock), fake_gauges(clock)), Recorder(clock.read)
    driver.api.register_resource_manager(registration_request(a_workload()), recorder)
    driver.api.update_node(node_request(a_workload()))

    driver.pause(4.0)

    assert recorder.progress() == Goal(nodes=4)
    assert clock.now_seconds == pytest.approx(4.0)


def test_the_own_time_of_a_stepped_scheduler_passes_while_it_rests() -> None:
    """What waits for its time, as an attempt at preemption does, would never be tried."""
    clock = FakeClock()
    scheduler = FakeScheduler(clock)

    Stepped(scheduler, fake_gauges(clock)).pause(4.0)

    assert scheduler.now_ns() == pytest.approx(4_000_000_000)


def test_a_self_running_scheduler_is_only_waited_for() -> None:
    """What it does it has done on its own account."""
    clock = FakeClock()
    driver = SelfRunning(FakeScheduler(clock, eager=True), fake_gauges(clock))
    recorder = Recorder(clock.read)
    driver.api.register_resource_manager(registration_request(a_workload()), recorder)
    driver.api.update_node(node_request(a_workload()))

    driver.wait(recorder, Goal(nodes=4))

    assert recorder.progress() == Goal(nodes=4)


def test_a_self_running_scheduler_that_hangs_is_an_error() -> None:
    """The wait is bounded, and says what there was and what was missing."""
    clock = FakeClock()
    driver = SelfRunning(FakeScheduler(clock), fake_gauges(clock), wait_seconds_max=0.0)

    with pytest.raises(BenchError, match=r"after 0 s .* has Goal\(nodes=0, .* not Goal\(nodes=1"):
        driver.wait(Recorder(clock.read), Goal(nodes=1))


def test_the_rest_of_a_self_running_scheduler_is_sleep() -> None:
    """Nothing is called while it rests."""
    clock = FakeClock()
    SelfRunning(FakeScheduler(clock), fake_gauges(clock)).pause(3.0)

    assert clock.now_seconds == 3.0
