from __future__ import annotations

import csv
import io
import json

from support.proxy.fake_core import FakeCore
from support.proxy.simulation_builders import SECOND, a_task, a_workload, an_application, drive

from licorne.proxy.play.simulation.accounts import Jobs, Owner
from licorne.proxy.play.simulation.job_figures import (
    JobFigures,
    JobReport,
    build_job_report,
    rows_to_csv,
    rows_to_jsonl,
)
from licorne.proxy.play.simulation.record import AskEntry, SimulationRecord
from licorne.proxy.play.simulation.report import FigureSpread
from licorne.proxy.play.simulation.simulated_rm import SimulatedRM
from licorne.proxy.play.simulation.workloads.workload import SimulatedApplication


def _report(*applications: SimulatedApplication, core: FakeCore | None = None) -> JobReport:
    """Simulate applications on one node of ten cores, and return the figures of jobs."""
    jobs = Jobs()
    record, workload = SimulationRecord(jobs=jobs), a_workload(*applications)
    core = core or FakeCore()
    drive(core, SimulatedRM(workload, core, record, workload.default_configuration), record)
    return build_job_report(jobs, record.capacity)


def _three_jobs() -> JobReport:
    """Six cores for 100 s; after a wait of 99 s, eight for 50 s; and eleven, which no node has."""
    return _report(
        an_application(a_task("t1", cores=6, duration=100), name="a", queue="root.a"),
        an_application(a_task("t2", cores=8, at=1, duration=50), name="b", queue="root.b", user="v", at=1),
        an_application(a_task("t3", cores=11, at=2), name="c", queue="root.b", at=2),
    )


def test_a_job_waits_from_its_submission_to_its_start() -> None:
    """The slowdown of the second is (99 + 50) / 50; the third waits to the end."""
    rows = _three_jobs().rows

    assert [(0, 0, 100), (1, 100, 150), (2, None, None)] == [
        tuple(None if at is None else at // SECOND for at in (row.submitted_ns, row.started_ns, row.ended_ns))
        for row in rows
    ]
    assert [1000, 2980, None] == [row.slowdown for row in rows]


def test_figures_of_queues_add_up_to_the_total() -> None:
    """600 and 400 of the 1,500 core seconds that there were until the last end."""
    report = _three_jobs()

    expected = JobFigures(
        jobs=2,
        started=1,
        waited=1,
        completed=1,
        wait_ns=FigureSpread(count=1, mean=99 * SECOND, median=99 * SECOND, p95=99 * SECOND, max=99 * SECOND),
        slowdown=FigureSpread(count=1, mean=2980, median=2980, p95=2980, max=2980),
        makespan_ns=149 * SECOND,
        use={"vcore": 267},
    )
    assert expected == report.queues["root.b"]
    assert (3, 150 * SECOND, {"vcore": 667}) == (
        report.total.jobs,
        report.total.makespan_ns,
        report.total.use,
    )
    assert {"vcore": 400} == report.queues["root.a"].use
    assert (["u", "v"], ["g"]) == (list(report.users), list(report.groups))


def test_a_short_job_counts_as_having_run_ten_seconds() -> None:
    """It waits 60 s and runs one: (60 + 1) / 10 is its bounded slowdown."""
    report = _report(
        an_application(a_task("t1", cores=10, duration=60), name="a"),
        an_application(a_task("t2", duration=1), name="b"),
    )

    assert [1000, 6100] == [row.slowdown for row in report.rows]


def test_a_job_starts_with_the_last_of_the_tasks_that_were_asked_for_first() -> None:
    """Two of its tasks find room at 0 and the third at 60; a task that is asked for later changes nothing."""
    report = _report(
        an_application(
            a_task("t", cores=5, pieces=3, duration=60), a_task("later", at=70, duration=200), name="a"
        )
    )

    row = report.rows[0]
    assert (4, 60 * SECOND, 270 * SECOND) == (row.tasks, row.started_ns, row.ended_ns)
    assert {"vcore": 16} == row.resources


def test_a_refused_job_has_no_start() -> None:
    """It counts for the queue that it asked for, and has ended when it was refused."""
    report = _report(an_application(queue="root.no"), core=FakeCore(refused_queues={"root.no"}))

    row = report.rows[0]
    assert ("root.no", 1, None, 0) == (row.queue, row.rejected, row.started_ns, row.ended_ns)
    assert (0, None) == (report.total.started, report.total.slowdown)


def _placed(record: SimulationRecord, *, is_recovered: bool = False) -> None:
    entry = AskEntry(
        account=record.accounts.opened(Owner(queue="root.q", user="u")),
        application_id="a",
        resources={"vcore": 1},
        asked_at_ns=0,
        is_recovered=is_recovered,
    )
    record.asked("k", entry, 0)
    record.placed("k", 0)


def test_a_preempted_job_goes_on_from_its_first_start() -> None:
    """What is taken off its node and given up is withdrawn, and counts as no work."""
    jobs = Jobs()
    record = SimulationRecord(jobs=jobs)
    _placed(record)
    record.given_up(record.preempted("k", 5 * SECOND))

    row = build_job_report(jobs, {}).rows[0]

    assert (1, 1, 0, 5 * SECOND) == (row.preempted, row.withdrawn, row.completed, row.ended_ns)
    assert ({}, None) == (next(iter(jobs)).worked, row.slowdown)


def test_a_job_that_ran_before_has_no_wait() -> None:
    """What the resource manager had already did not wait in this simulation."""
    jobs = Jobs()
    record = SimulationRecord(jobs=jobs)
    _placed(record, is_recovered=True)
    record.completed("k", 5 * SECOND)

    row = build_job_report(jobs, {}).rows[0]

    assert (None, None, 5 * SECOND) == (row.wait_ns, row.slowdown, row.run_ns)


def test_rows_are_written_as_csv_and_as_lines_of_json() -> None:
    """What is not known is empty in one, and null in the other."""
    rows = _three_jobs().rows
    table = list(csv.DictReader(io.StringIO(rows_to_csv(rows))))
    lines = [json.loads(line) for line in rows_to_jsonl(rows).splitlines()]

    assert [("a", "100000000000", "6"), ("b", "150000000000", "8"), ("c", "", "11")] == [
        (row["job"], row["ended_ns"], row["vcore"]) for row in table
    ]
    assert [row.document() for row in rows] == lines
    assert (["g"], None) == (lines[2]["groups"], lines[2]["started_ns"])


def test_nothing_that_was_submitted_has_no_figures() -> None:
    """Not even the use of a cluster that is there."""
    report = _report()

    assert (0, None, {"vcore": 0}, ()) == (
        report.total.jobs,
        report.total.makespan_ns,
        report.total.use,
        report.rows,
    )
