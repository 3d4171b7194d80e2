"""Builders and runs for the tests of simulations."""

from __future__ import annotations

import time
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from licorne.proxy.play.simulation.accounts import Tally
from licorne.proxy.play.simulation.core import SchedulerCore, Traffic
from licorne.proxy.play.simulation.driver import Driver, NoProgress, RunResult
from licorne.proxy.play.simulation.record import SimulationRecord
from licorne.proxy.play.simulation.report import SimulationReport
from licorne.proxy.play.simulation.simulated_rm import SimulatedRM
from licorne.proxy.play.simulation.simulation import CoreFactory, simulate
from licorne.proxy.play.simulation.workloads.inputs import Transcript
from licorne.proxy.play.simulation.workloads.workload import (
    GangStyle,
    SimulatedApplication,
    SimulatedNode,
    SimulatedTask,
    SimulatedWorkload,
)

if TYPE_CHECKING:
    from support.proxy.fake_core import FakeCore

SECOND = 10**9


def a_node(name: str = "n1", **resources: int) -> SimulatedNode:
    """Build a node; without resources it has ten cores."""
    return SimulatedNode(node_id=name, resources=resources or {"vcore": 10})


def a_task(
    key: str = "t",
    *,
    cores: int = 1,
    at: int = 0,
    duration: int | None = 60,
    priority: int = 0,
    pieces: int = 1,
) -> SimulatedTask:
    """Build a task; times are in seconds."""
    return SimulatedTask(
        key=key,
        resources={"vcore": cores},
        submit_at_ns=at * SECOND,
        duration_ns=None if duration is None else duration * SECOND,
        priority=priority,
        count=pieces,
    )


def an_application(
    *tasks: SimulatedTask,
    name: str = "a",
    queue: str = "root.q",
    at: int = 0,
    gang: GangStyle | None = None,
    user: str = "u",
) -> SimulatedApplication:
    """Build an application; its time is in seconds."""
    return SimulatedApplication(
        application_id=name,
        queue=queue,
        user=user,
        groups=("g",),
        submit_at_ns=at * SECOND,
        tasks=tasks or (a_task(),),
        gang=gang,
    )


def a_workload(
    *applications: SimulatedApplication, nodes: tuple[SimulatedNode, ...] = ()
) -> SimulatedWorkload:
    """Build a workload, on one node of ten cores by default."""
    return SimulatedWorkload(
        name="test", nodes=nodes or (a_node(),), applications=applications, default_configuration="queues"
    )


def drive(core: FakeCore, traffic: Traffic, record: SimulationRecord) -> RunResult:
    """Run a simulation; every look at the stopwatch takes one second."""
    seconds = count()
    return Driver(core, traffic, record, progress=NoProgress(), stopwatch=lambda: float(next(seconds))).run()


def run(
    core: FakeCore, *applications: SimulatedApplication, nodes: tuple[SimulatedNode, ...] = ()
) -> SimulationRecord:
    """Simulate applications and return the books."""
    record = SimulationRecord()
    workload = a_workload(*applications, nodes=nodes)
    drive(core, SimulatedRM(workload, core, record, workload.default_configuration), record)
    return record


def simulated(
    work: SimulatedWorkload | Transcript, core: CoreFactory = SchedulerCore, **settings: Any
) -> SimulationReport:
    """Simulate work, by default on the scheduler itself; settings are those of `simulate`."""
    usual: dict[str, Any] = {"engine": "direct", "configuration": None, "progress": NoProgress()}
    return simulate(work, core, **{**usual, "stopwatch": time.perf_counter, **settings})


def tally_of(record: SimulationRecord, queue: str = "root.q") -> Tally:
    """Return the counts of a queue, all users together."""
    total = Tally()
    for owner, tally in record.accounts.tallies().items():
        if owner.queue == queue:
            total.add(tally)
    return total


def counts_of(record: SimulationRecord, queue: str = "root.q") -> dict[str, int]:
    """Return what is counted for the work of a queue, without zeros."""
    names = ("submitted", "placed", "preempted", "completed", "withdrawn", "running", "waiting", "rejected")
    tally = tally_of(record, queue)
    return {name: getattr(tally, name) for name in names if getattr(tally, name)}


def written(path: Path, text: str) -> Path:
    """Write a file and return its path."""
    path.write_text(text, encoding="utf-8")
    return path


def shared_data(name: str) -> Path:
    """Return a file of the traces, which are not part of the project; skip the test where it is absent."""
    path = Path(__file__).resolve().parents[4] / "shared" / "data" / name
    if not path.exists():
        pytest.skip(f"the trace {path} is not on this machine")
    return path
