from __future__ import annotations

import pytest
from bench_fakes import FakeClock, FakeScheduler, a_workload, fake_gauges
from driver import SelfRunning, Stepped
from figures import BenchError
from recorder import Goal, Recorder
from workload_requests import node_request, registration_request


class Scene:
    """A fake scheduler with a driver of one kind, and what its resource manager counts."""

    def __init__(self, kind: type[Stepped | SelfRunning], *, eager: bool = False) -> None:
        self.clock = FakeClock()
        self.driver = kind(FakeScheduler(self.clock, eager=eager), fake_gauges(self.clock))
        self.recorder = Recorder(self.clock.read)

    def add_nodes(self) -> None:
        """Register and send four nodes."""
        self.driver.api.register_resource_manager(registration_request(a_workload()), self.recorder)
        self.driver.api.update_node(node_request(a_workload()))


@pytest.mark.parametrize(("kind", "eager"), [(Stepped, False), (SelfRunning, True)])
def test_the_scheduler_has_worked_when_it_was_waited_for(
    kind: type[Stepped | SelfRunning], *, eager: bool
) -> None:
    """One that is stepped takes the nodes in by the wait, one that runs by itself on its own account."""
    scene = Scene(kind, eager=eager)
    scene.add_nodes()

    scene.driver.wait(scene.recorder, Goal(nodes=4))

    assert scene.recorder.progress() == Goal(nodes=4)


def test_a_stepped_scheduler_that_is_idle_too_early_is_an_error() -> None:
    """Nothing more will come, so nothing is waited for."""
    scene = Scene(Stepped)

    with pytest.raises(BenchError, match=r"is idle, and .* has Goal\(nodes=0, .* not Goal\(nodes=1"):
        scene.driver.wait(scene.recorder, Goal(nodes=1))


def test_a_stepped_scheduler_is_stepped_while_it_rests() -> None:
    """Asks that came before the rest are taken in, and the rest is as long as it should be."""
    scene = Scene(Stepped)
    scene.add_nodes()

    scene.driver.pause(4.0)

    assert scene.recorder.progress() == Goal(nodes=4)
    assert scene.clock.now_seconds == pytest.approx(4.0)


def test_the_own_time_of_a_stepped_scheduler_passes_while_it_rests() -> None:
    """What waits for its time, as an attempt at preemption does, would never be tried."""
    clock = FakeClock()
    scheduler = FakeScheduler(clock)

    Stepped(scheduler, fake_gauges(clock)).pause(4.0)

    assert scheduler.now_ns() == pytest.approx(4_000_000_000)


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
