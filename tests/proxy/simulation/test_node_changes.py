"""Nodes that fail, drain, return and come while a simulation runs, on the scheduler itself."""

from __future__ import annotations

import time
from dataclasses import dataclass

import pytest
from support.proxy.simulation_builders import SECOND, a_node, a_task, an_application

from licorne.proxy.simulation.driver import NoProgress
from licorne.proxy.simulation.report import SimulationReport
from licorne.proxy.simulation.scheduler_core import SchedulerCore
from licorne.proxy.simulation.simulation import simulate
from licorne.proxy.simulation.workloads.workload import NodeChange, NodeEvent, Workload

_ONE_QUEUE = "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: q}]}]}]"
_NODES = (a_node("n1", vcore=2), a_node("n2", vcore=2))


def _event(at: int, change: NodeChange, *names: str, again: bool = False) -> NodeEvent:
    nodes = tuple(a_node(name, vcore=2) for name in names)
    return NodeEvent(at_ns=at * SECOND, change=change, nodes=nodes, is_repeated=again)


def _simulated(*events: NodeEvent) -> SimulationReport:
    """Run four tasks of a minute on two nodes with room for two each."""
    workload = Workload(
        name="test",
        nodes=_NODES,
        applications=(an_application(a_task("t", pieces=4)),),
        default_configuration=_ONE_QUEUE,
        node_events=events,
    )
    return simulate(
        workload,
        SchedulerCore,
        engine="direct",
        configuration=None,
        progress=NoProgress(),
        stopwatch=time.perf_counter,
        with_jobs=True,
    )


@dataclass(frozen=True, slots=True)
class _Row:
    """Events, how many of the four tasks complete or are lost, the second of the last end, and the nodes."""

    events: tuple[NodeEvent, ...]
    completed: int
    withdrawn: int
    ended: int
    nodes: int


CASES: dict[str, _Row] = {
    "nothing happens": _Row((), 4, 0, 60, 2),
    "work of a failed node is lost": _Row((_event(30, NodeChange.REMOVE, "n1"),), 2, 2, 60, 1),
    "or begins again where there is room": _Row(
        (_event(30, NodeChange.REMOVE, "n1", again=True),), 4, 0, 120, 1
    ),
    "on the node that returns": _Row(
        (_event(30, NodeChange.REMOVE, "n1", again=True), _event(40, NodeChange.RESTORE, "n1")), 4, 0, 100, 2
    ),
    "on a node that comes": _Row(
        (_event(30, NodeChange.REMOVE, "n1", again=True), _event(50, NodeChange.ADD, "n3")), 4, 0, 110, 2
    ),
    "not on one that is drained": _Row(
        (
            _event(20, NodeChange.DRAIN, "n2"),
            _event(30, NodeChange.REMOVE, "n1", again=True),
            _event(90, NodeChange.RESTORE, "n2"),
        ),
        4,
        0,
        150,
        1,
    ),
    "what ends as its node fails has completed": _Row((_event(60, NodeChange.REMOVE, "n1"),), 4, 0, 60, 1),
    "a node without work fails twice": _Row(
        (
            _event(70, NodeChange.REMOVE, "n1"),
            _event(80, NodeChange.RESTORE, "n1"),
            _event(90, NodeChange.REMOVE, "n1"),
        ),
        4,
        0,
        60,
        1,
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_work_goes_where_nodes_are(case: _Row) -> None:
    """Every message of the scheduler agrees with what is counted."""
    report = _simulated(*case.events)

    assert report.jobs is not None
    (job,) = report.jobs.rows
    assert ((), (), ()) == (report.surprises, report.refusals, report.rejections)
    assert (case.completed, case.withdrawn, case.nodes) == (
        report.total.completed,
        report.total.withdrawn,
        report.nodes,
    )
    assert case.ended * SECOND == job.ended_ns


def test_the_capacity_follows_the_nodes() -> None:
    """The use is of what is there: of two cores in place of four in the second half."""
    report = _simulated(_event(30, NodeChange.REMOVE, "n1"))

    assert {"vcore": 2} == dict(report.capacity)
    assert 1000 == report.total.utilization[0].mean_permille
