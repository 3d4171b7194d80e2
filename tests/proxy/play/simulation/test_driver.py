from __future__ import annotations

from collections.abc import Callable

import pytest
from support.proxy.fake_core import FakeCore
from support.proxy.simulation_builders import SECOND, a_task, a_workload, an_application, drive, run, tally_of

from licorne.proxy.play.simulation.driver import QUIET_LIMIT_NS, Driver, SimulationError
from licorne.proxy.play.simulation.record import SimulationRecord
from licorne.proxy.play.simulation.simulated_rm import SimulatedRM
from licorne.proxy.play.simulation.workloads.workload import SimulatedWorkload

YEAR = 365 * 86_400


class _Recorder:
    def __init__(self) -> None:
        self.seen: list[tuple[int, int, int]] = []

    def advanced(self, done: int, total: int, now_ns: int) -> None:
        self.seen.append((done, total, now_ns // SECOND))


def _noting(core: FakeCore, moments: list[int]) -> Callable[[], None]:
    return lambda: moments.append(core.now_ns())


def test_a_run_counts_decisions_and_real_seconds() -> None:
    """The stopwatch is looked at twice, and takes a second each time."""
    core, record = FakeCore(), SimulationRecord()
    workload = a_workload(an_application(a_task(pieces=3)))

    result = drive(core, SimulatedRM(workload, core, record, "queues"), record)

    assert (3, 1.0) == (result.decisions, result.wall_seconds)


def test_progress_is_reported_at_every_moment() -> None:
    """Submitted and ended, of twice the number of tasks."""
    core, record, recorder = FakeCore(), SimulationRecord(), _Recorder()
    workload: SimulatedWorkload = a_workload(an_application(a_task("t1"), a_task("t2", at=5)))
    rm = SimulatedRM(workload, core, record, "queues")

    Driver(core, rm, record, progress=recorder, stopwatch=lambda: 0.0).run()

    assert [(1, 4, 0), (2, 4, 5), (3, 4, 60), (4, 4, 65)] == recorder.seen


def test_timers_of_the_core_fire_at_their_own_moments() -> None:
    """Also between two events of the resource manager."""
    core = FakeCore()
    moments: list[int] = []
    start_ns = core.now_ns()
    core.at(7 * SECOND, _noting(core, moments))
    run(core, an_application())

    assert [start_ns + 7 * SECOND] == moments


def test_a_simulation_ends_when_nothing_is_open() -> None:
    """Timers of the core that can change nothing are not waited for."""
    core = FakeCore()
    moments: list[int] = []
    core.at(61 * SECOND, _noting(core, moments))
    run(core, an_application())

    assert [] == moments


def test_what_waits_keeps_a_simulation_going_for_a_while() -> None:
    """A timer may still bring it on, but not after a long silence."""
    core = FakeCore()
    moments: list[int] = []
    core.at(QUIET_LIMIT_NS, _noting(core, moments))
    core.at(QUIET_LIMIT_NS + SECOND, _noting(core, moments))
    run(core, an_application(a_task(cores=11)))

    assert 1 == len(moments)


def test_the_same_workload_gives_the_same_record() -> None:
    """Nothing depends on anything but the input."""
    applications = [
        an_application(a_task(f"t{n}", at=n, cores=n % 4 + 1, duration=50 + n), name=f"a{n}", at=n)
        for n in range(30)
    ]

    first, second = (run(FakeCore(), *applications) for _ in range(2))

    assert tally_of(first).waits_ns == tally_of(second).waits_ns
    assert first.last_change_ns == second.last_change_ns


def test_a_simulation_of_centuries_is_refused() -> None:
    """The times of the scheduler interface would run over."""
    with pytest.raises(SimulationError, match="more than 200 years"):
        run(FakeCore(), an_application(a_task(duration=201 * YEAR)))


def test_a_core_that_never_comes_to_rest_is_found_out() -> None:
    """A timer that is always due would have the simulation hang at one moment."""
    core = FakeCore()
    core.next_deadline_ns = core.now_ns  # type: ignore[method-assign]

    with pytest.raises(AssertionError, match="never stop exchanging messages"):
        run(core, an_application(a_task(cores=11)))
