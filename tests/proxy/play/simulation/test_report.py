from __future__ import annotations

import json

from support.proxy.fake_core import FakeCore
from support.proxy.simulation_builders import SECOND, a_node, a_task, an_application, run

from licorne.proxy.play.simulation.accounts import Owner
from licorne.proxy.play.simulation.driver import RunResult
from licorne.proxy.play.simulation.record import AskEntry, SimulationRecord
from licorne.proxy.play.simulation.report import SimulationReport, build_report, document_of
from licorne.proxy.play.simulation.workloads.workload import InputNote


def _report(record: SimulationRecord) -> SimulationReport:
    return build_report(
        record,
        RunResult(30, 2.0),
        workload="w",
        engine="fake",
        nodes=record.nodes,
        notes=(InputNote(3, "jobs skipped"),),
    )


def _two_queues() -> SimulationRecord:
    return run(
        FakeCore(refused_queues={"root.c"}),
        an_application(a_task("t1", cores=4), a_task("t2", cores=20), name="a1", queue="root.b"),
        an_application(a_task("t3", cores=6, duration=30), name="a2", queue="root.a"),
        an_application(a_task("t4"), name="a3", queue="root.c"),
    )


def test_the_total_is_the_sum_of_the_queues() -> None:
    """Queues are sorted by name."""
    report = _report(_two_queues())

    assert ["root.a", "root.b", "root.c"] == list(report.queues)
    for name in ("submitted", "placed", "waiting", "running", "completed", "rejected"):
        assert getattr(report.total, name) == sum(getattr(tally, name) for tally in report.queues.values())
    assert (4, 2, 1, 1) == (
        report.total.submitted,
        report.total.completed,
        report.total.waiting,
        report.total.rejected,
    )


def test_waiting_times_are_values_that_occurred() -> None:
    """The median and the 95th percentile by nearest rank, and the longest."""
    tasks = [a_task(f"t{n:02}", cores=10, duration=10) for n in range(20)]
    waits = _report(run(FakeCore(), an_application(*tasks))).total.waits

    assert waits is not None
    assert (20, 90, 180, 190) == (
        waits.count,
        waits.median // SECOND,
        waits.p95 // SECOND,
        waits.max // SECOND,
    )


def test_there_are_no_waiting_times_where_nothing_was_placed() -> None:
    """Nothing is no zero."""
    assert _report(run(FakeCore(), an_application(a_task(cores=11)))).total.waits is None


def test_utilization_is_a_share_of_the_cluster() -> None:
    """Ten cores, four of them for 60 s and six for 30 s, make 70 % of a minute."""
    report = _report(_two_queues())
    total = report.total.utilization[0]

    assert ("vcore", 700, 1000) == (total.resource, total.mean_permille, total.peak_permille)
    assert [1000] * 30 + [400] * 30 == list(total.series_permille)
    assert (300, 600) == (
        report.queues["root.a"].utilization[0].mean_permille,
        report.queues["root.a"].utilization[0].peak_permille,
    )


def test_the_document_has_its_documented_keys() -> None:
    """Programs read them."""
    document = document_of(_report(_two_queues()))
    assert isinstance(document, dict)

    assert [
        "format",
        "workload",
        "engine",
        "nodes",
        "capacity",
        "end_ns",
        "interrupted",
        "decisions",
        "wall_seconds",
        "decisions_per_second",
        "total",
        "queues",
        "users",
        "groups",
        "rejections",
        "refusals",
        "policy_failures",
        "surprises",
        "notes",
        "recorded_starts",
        "never_started",
    ] == list(document)
    assert (15.0, 60 * SECOND, {"vcore": 10}) == (
        document["decisions_per_second"],
        document["end_ns"],
        document["capacity"],
    )


def test_the_document_is_json() -> None:
    """What was rejected and what is to be known about the input is counted."""
    document = json.loads(json.dumps(document_of(_report(_two_queues()))))

    assert [{"count": 1, "text": "no queue for ..."}] == document["rejections"]
    assert [{"count": 3, "text": "jobs skipped"}] == document["notes"]
    assert {"queue", *document["total"]} == set(document["queues"][0])
    assert {"count": 1, "median": 0, "p95": 0, "max": 0} == document["queues"][0]["wait_ns"]
    assert None is document["queues"][2]["wait_ns"]


def test_a_run_without_real_time_has_no_speed() -> None:
    """A clock may be too coarse to see it."""
    record = run(FakeCore(), an_application(), nodes=(a_node(),))
    report = build_report(record, RunResult(1, 0.0), workload="w", engine="e", nodes=1, notes=())

    assert 0.0 == report.decisions_per_second


def test_work_that_preemption_loses_is_in_the_document_where_there_is_some() -> None:
    """In units times seconds, of its queue and of all; a tally that lost nothing has no such key."""
    record = SimulationRecord()
    for queue in ("root.a", "root.b"):
        account = record.accounts.opened(Owner(queue=queue, user="u"))
        record.asked(
            queue, AskEntry(account=account, application_id="x", resources={"vcore": 2}, asked_at_ns=0), 0
        )
        record.placed(queue, SECOND)
    record.preempted("root.a", 4 * SECOND)

    report = _report(record)

    assert [{"vcore": 6}, {"vcore": 6}, {}] == [
        report.total.lost,
        report.queues["root.a"].lost,
        report.queues["root.b"].lost,
    ]
    document = document_of(report)
    assert isinstance(document, dict)
    found = [json.dumps(document[part]).count('"lost"') for part in ("total", "queues", "users", "groups")]
    assert [1, 1, 1, 1] == found
