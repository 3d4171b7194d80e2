"""Simulations on the scheduler itself: what was written down is right, also when nodes fail and return."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from support.proxy.simulation_builders import (
    SECOND,
    a_node,
    a_task,
    a_workload,
    an_application,
    shared_data,
    simulated,
)

from licorne.proxy.core.scheduler.engine_names import ENGINES, EngineName
from licorne.proxy.play.simulation.core import AnnouncementGuard, SchedulerCore
from licorne.proxy.play.simulation.driver import Driver, NoProgress
from licorne.proxy.play.simulation.record import SimulationRecord
from licorne.proxy.play.simulation.report import JsonDocument, SimulationReport, document_of
from licorne.proxy.play.simulation.simulated_rm import RM_ID, SimulatedRM
from licorne.proxy.play.simulation.workloads.inputs import read_timed_transcript
from licorne.proxy.play.simulation.workloads.openb import OpenbMode, read_openb
from licorne.proxy.play.simulation.workloads.scenario import read_scenario
from licorne.proxy.play.simulation.workloads.swf import read_swf
from licorne.proxy.play.simulation.workloads.workload import (
    GangStyle,
    NodeChange,
    NodeEvent,
    SimulatedWorkload,
)

_ROOT = Path(__file__).resolve().parents[4]
_EXAMPLE = _ROOT / "examples" / "daily.yaml"
_CONFORMANCE = _ROOT / "tests" / "conformance"
_ONE_QUEUE = "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: q}]}]}]"


def _figures(report: SimulationReport) -> JsonDocument:
    """Return everything that must not differ from run to run."""
    return document_of(replace(report, wall_seconds=1.0, engine=""))


def _in_the_scheduler(core: SchedulerCore) -> tuple[int, int]:
    """Return how many asks wait and how many allocations there are in the scheduler's own view."""
    snapshot = json.loads(json.dumps(core._scheduler.snapshot()))
    applications = snapshot["applications"]["default"]
    return (
        sum(len(application.get("requests", ())) for application in applications),
        sum(len(application.get("allocations", ())) for application in applications),
    )


def test_the_bundled_example_places_and_completes_everything() -> None:
    """It is what `make run` shows."""
    report = simulated(read_scenario(_EXAMPLE))

    assert report.total.submitted == report.total.placed == report.total.completed
    assert ((), ()) == (report.rejections, report.surprises)
    assert report.total.waits is not None
    assert report.total.waits.max > 0


def test_both_engines_make_the_same_decisions() -> None:
    """Every figure but the real time is equal."""
    workload = read_scenario(_EXAMPLE)

    assert _figures(simulated(workload)) == _figures(simulated(workload, engine="actors"))


def test_the_record_agrees_with_the_scheduler_in_the_end() -> None:
    """What waits and what runs is the same on both sides."""
    applications = [
        an_application(
            a_task(f"t{n}", at=n, cores=n % 5 + 1, duration=None if n % 3 else 40, pieces=n % 3 + 1),
            name=f"a{n}",
            at=n,
        )
        for n in range(40)
    ]
    workload = a_workload(*applications, nodes=(a_node("n1", vcore=30), a_node("n2", vcore=12)))
    core, record = SchedulerCore("direct"), SimulationRecord()

    traffic = SimulatedRM(workload, core, record, _ONE_QUEUE)
    Driver(core, traffic, record, progress=NoProgress(), stopwatch=time.perf_counter).run()

    core._scheduler.validate()
    assert (len(record.waiting), len(record.running)) == _in_the_scheduler(core)
    assert min(len(record.waiting), len(record.running)) > 5
    assert not record.remarks.surprises
    assert 0 == core.scheduler.metrics.managers()[RM_ID].figures().predicates.durations
    core.close()


def test_timers_are_visited_only_while_something_waits() -> None:
    """An application completes 30 s after its last end, which matters only to what waits."""
    visited: list[int] = []

    class VisitedCore(SchedulerCore):
        def run_until_idle(self) -> int:
            visited.append((self.now_ns() - start_ns) // SECOND)
            return super().run_until_idle()

    core, record = VisitedCore("direct"), SimulationRecord()
    start_ns = core.now_ns()
    jobs = [(0, 3, 10), (100, 3, 200), (110, 8, 10)]  # (submitted, cores, seconds): the third waits
    workload = a_workload(
        *(
            an_application(a_task(f"t{at}", at=at, cores=n, duration=d), name=f"a{at}", at=at)
            for at, n, d in jobs
        )
    )

    traffic = SimulatedRM(workload, core, record, _ONE_QUEUE)
    Driver(core, traffic, record, progress=NoProgress(), stopwatch=time.perf_counter).run()
    core.close()

    assert [0, 10, 100, 110, 300, 310] == sorted(set(visited))


def test_messages_and_announcements_give_the_same_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the manager does not take as the model has it comes as a message."""
    workload = read_scenario(_EXAMPLE)
    taken = _figures(simulated(workload))
    monkeypatch.setattr(AnnouncementGuard, "announced", lambda *_: False)

    assert taken == _figures(simulated(workload))


def test_a_gang_waits_until_all_of_it_has_room() -> None:
    """Half of it would have had room at once."""
    gang = an_application(a_task("t", cores=5, pieces=2), name="gang", gang=GangStyle.SOFT)
    before = an_application(a_task("before", cores=6), name="before")

    report = simulated(replace(a_workload(before, gang), default_configuration=_ONE_QUEUE))

    assert report.total.waits is not None
    assert (3, 60) == (report.total.completed, report.total.waits.max // 10**9)


def test_a_gang_that_never_has_room_is_given_up_and_starts_what_fits() -> None:
    """The scheduler's timer for placeholders is part of the simulation."""
    gang = an_application(a_task("t", cores=6, pieces=2), name="gang", gang=GangStyle.SOFT)

    report = simulated(replace(a_workload(gang), default_configuration=_ONE_QUEUE))

    assert (2, 2) == (report.total.submitted, report.total.completed)


def test_a_queue_that_does_not_exist_rejects_its_applications() -> None:
    """Every task is accounted for, and the reason is reported."""
    queues = "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: other}]}]}]"
    report = simulated(replace(a_workload(an_application(a_task(pieces=4))), default_configuration=queues))

    assert (4, 4) == (report.total.submitted, report.total.rejected)
    assert 4 == report.rejections[0].count


_BY_USER = """
partitions:
  - name: default
    placementrules:
      - {name: user, create: true, parent: {name: fixed, value: root.people, create: true}}
    queues:
      - {name: root, submitacl: "*", queues: [{name: people, parent: true}]}
"""


@pytest.mark.parametrize("engine", ["direct", "actors", "threads"])
def test_work_counts_where_the_rules_put_it(engine: EngineName) -> None:
    """That is the answer to "what if" where the rules, and not the applications, name the queue."""
    applications = (
        an_application(a_task("t1"), name="a1"),
        replace(an_application(a_task("t2", pieces=2), name="a2"), user="v", groups=("g", "h")),
    )
    report = simulated(replace(a_workload(*applications), default_configuration=_BY_USER), engine=engine)

    assert {"root.people.u": 1, "root.people.v": 2} == {
        name: tally.completed for name, tally in report.queues.items()
    }
    assert {"u": 1, "v": 2} == {name: tally.completed for name, tally in report.users.items()}
    assert {"g": 3, "h": 2} == {name: tally.completed for name, tally in report.groups.items()}
    assert 3 == report.total.completed


def test_a_transcript_counts_where_the_rules_put_it() -> None:
    """It names no queue, and the scheduler is asked for it."""
    report = simulated(read_timed_transcript(_CONFORMANCE / "dynamic-queues" / "quota-tags.jsonl"))

    assert ["root.p.dev"] == list(report.queues)


@pytest.mark.parametrize("name", ["gang/replace", "nodes/grow", "preemption/basic", "mixes/mix-4"])
def test_a_recorded_transcript_is_simulated(name: str) -> None:
    """Its lines are said, and every ask is somewhere in the end."""
    total = simulated(read_timed_transcript(_CONFORMANCE / f"{name}.jsonl")).total

    assert total.submitted > 0
    assert total.submitted == (
        total.waiting + total.running + total.completed + total.rejected + total.withdrawn
    )


def test_the_first_pods_of_openb_are_packed() -> None:
    """There is room for all of the first ones."""
    nodes = shared_data("openb/openb_node_list_all_node.csv")
    workload = read_openb(nodes, shared_data("openb/openb_pod_list_default.csv"))

    report = simulated(replace(workload, applications=workload.applications[:400]))

    assert (1523, 400, 400) == (report.nodes, report.total.placed, report.total.running)


def test_the_first_jobs_of_wagap_run() -> None:
    """With their queues and users."""
    workload = read_swf(shared_data("swf/wagap-2013.swf"))
    report = simulated(replace(workload, applications=workload.applications[:300]))

    assert report.total.submitted == report.total.completed
    assert {"root.q_1d", "root.q_2w"} <= set(report.queues)


@pytest.mark.soak
@pytest.mark.parametrize("mode", list(OpenbMode))
def test_all_pods_of_openb(mode: OpenbMode) -> None:
    """8,152 pods on 1,523 nodes; packed in order, nearly all devices are in use."""
    nodes = shared_data("openb/openb_node_list_all_node.csv")
    report = simulated(read_openb(nodes, shared_data("openb/openb_pod_list_default.csv"), mode))

    assert 8152 == report.total.submitted == report.total.placed + report.total.waiting
    assert () == report.surprises
    if mode is OpenbMode.PACKING:
        shares = {one.resource: one.peak_permille for one in report.total.utilization}
        assert shares["gpu"] > 900


@pytest.mark.soak
@pytest.mark.parametrize(("name", "tasks", "never"), [("hpc2n", 31_905, 0), ("wagap-2013", 19_194, 1)])
def test_a_whole_log_runs_to_its_end(name: str, tasks: int, never: int) -> None:
    """Only what is larger than every node is left."""
    report = simulated(read_swf(shared_data(f"swf/{name}.swf")))

    assert (tasks, tasks - never, never) == (
        report.total.submitted,
        report.total.completed,
        report.total.waiting,
    )
    assert ((), ()) == (report.rejections, report.surprises)


# ------------------------------------------------------------------------------- nodes that come and go


_NODES = (a_node("n1", vcore=2), a_node("n2", vcore=2))


def _event(at: int, change: NodeChange, *names: str, again: bool = False) -> NodeEvent:
    nodes = tuple(a_node(name, vcore=2) for name in names)
    return NodeEvent(at_ns=at * SECOND, change=change, nodes=nodes, is_repeated=again)


def _with_events(*events: NodeEvent) -> SimulationReport:
    """Run four tasks of a minute on two nodes with room for two each."""
    workload = SimulatedWorkload(
        name="test",
        nodes=_NODES,
        applications=(an_application(a_task("t", pieces=4)),),
        default_configuration=_ONE_QUEUE,
        node_events=events,
    )
    return simulated(workload, with_jobs=True)


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
    report = _with_events(*case.events)

    assert report.jobs is not None
    (job,) = report.jobs.rows
    assert ((), (), ()) == (report.surprises, report.refusals, report.rejections)
    assert (case.completed, case.withdrawn, case.nodes) == (
        report.total.completed,
        report.total.withdrawn,
        report.nodes,
    )
    assert case.ended * SECOND == job.ended_ns


@pytest.mark.parametrize("engine", ENGINES)
def test_an_ask_of_the_moment_of_an_end_is_decided_with_those_that_wait(engine: EngineName) -> None:
    """The one that comes when the node becomes free has the higher priority: it goes first."""
    applications = (
        an_application(a_task("a", duration=100), name="a"),
        an_application(a_task("b", at=1, duration=100), name="b", at=1),
        an_application(a_task("c", at=100, duration=100, priority=10), name="c", at=100),
    )
    work = replace(a_workload(*applications, nodes=(a_node(vcore=1),)), default_configuration=_ONE_QUEUE)
    report = simulated(work, engine=engine, with_jobs=True)

    assert report.jobs is not None
    assert {"a": 0, "b": 200 * SECOND, "c": 100 * SECOND} == {
        row.job: row.started_ns for row in report.jobs.rows
    }


def test_the_capacity_follows_the_nodes() -> None:
    """The use is of what is there: of two cores in place of four in the second half."""
    report = _with_events(_event(30, NodeChange.REMOVE, "n1"))

    assert {"vcore": 2} == dict(report.capacity)
    assert 1000 == report.total.utilization[0].mean_permille
