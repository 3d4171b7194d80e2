"""Simulations of jobs that wait for others: arrays, dependencies, think times."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.proxy.simulation_builders import (
    SECOND,
    a_node,
    a_task,
    a_workload,
    an_application,
    written,
)

from licorne.proxy.base.files.input_files import InputError
from licorne.proxy.core.scheduler.engine_names import ENGINES, EngineName
from licorne.proxy.play.simulation.core import SchedulerCore
from licorne.proxy.play.simulation.driver import Driver, NoProgress
from licorne.proxy.play.simulation.record import DecisionKind, Decisions, SimulationRecord
from licorne.proxy.play.simulation.simulated_rm import SimulatedRM
from licorne.proxy.play.simulation.workloads.sacct import read_sacct
from licorne.proxy.play.simulation.workloads.swf import read_swf
from licorne.proxy.play.simulation.workloads.workload import (
    SimulatedApplication,
    SimulatedWorkload,
    WorkloadCut,
    cut_workload,
)

_ONE_QUEUE = "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: q}]}]}]"
_SACCT = "JobID|User|Account|Partition|Submit|Start|Elapsed|State|AllocCPUS|Dependency|SubmitLine"


def _job(name: str, at: int = 0, run: int | None = 60, **options: Any) -> SimulatedApplication:
    job = an_application(a_task(name, at=at, duration=run), name=name, at=at)
    return replace(job, **options)


def _starts(workload: SimulatedWorkload, engine: EngineName = "direct") -> dict[str, int]:
    """Simulate a workload; return when each piece of work starts, in seconds."""
    decisions = Decisions()
    record = SimulationRecord(decisions=decisions)
    with closing(SchedulerCore(engine)) as core:
        rm = SimulatedRM(workload, core, record, _ONE_QUEUE)
        Driver(core, rm, record, progress=NoProgress(), stopwatch=lambda: 0.0).run()
    return {each.ask: each.at_ns // SECOND for each in decisions if each.kind is DecisionKind.PLACED}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_job_starts_when_what_it_waits_for_has_ended(engine: EngineName) -> None:
    """As it must have ended; of others the end of the simulation comes first."""
    workload = a_workload(
        _job("a"),
        _job("bad", run=90, fails=True),
        _job("any", tags={"after": "a,bad"}),
        _job("ok", tags={"afterOk": "a"}),
        _job("never", tags={"afterOk": "bad"}),
        _job("clean", tags={"afterFailed": "bad"}),
    )
    expected = {"a": 0, "bad": 0, "any": 90, "ok": 60, "clean": 90}
    assert _starts(workload, engine) == expected


def test_an_array_runs_as_many_as_its_limit() -> None:
    tags = {"array": "x", "arrayLimit": "2"}
    jobs = [_job(f"e{number}", run=10 + number, tags=tags) for number in range(5)]
    starts = _starts(a_workload(*jobs, _job("last", tags={"after": "x"})))
    assert starts == {"e0": 0, "e1": 0, "e2": 10, "e3": 11, "e4": 22, "last": 36}


def test_a_job_that_follows_is_submitted_after_its_think_time() -> None:
    """Its second task comes later, as in the log."""
    first = _job("a", run=100)
    tasks = (a_task("b", at=20), a_task("b2", at=25))
    second = replace(an_application(*tasks, name="b", at=20), follows="a", think_ns=7 * SECOND)
    assert _starts(a_workload(first, second)) == {"a": 0, "b": 107, "b2": 112}


def test_a_job_that_is_refused_has_failed() -> None:
    """So those that wait for it know."""
    workload = a_workload(
        replace(_job("a"), queue="root.none"),
        _job("b", tags={"afterFailed": "a"}),
        nodes=(a_node(),),
    )
    assert _starts(workload) == {"b": 0}


def test_a_cut_forgets_what_is_left_out() -> None:
    jobs = (_job("a"), _job("b", at=10, tags={"after": "a"}), _job("c", at=20, follows="a"))
    cut = cut_workload(a_workload(*jobs), WorkloadCut(from_ns=5 * SECOND))
    assert _starts(cut) == {"b": 5, "c": 15}
    assert "2 jobs" not in [note.text for note in cut.notes]
    assert [note.count for note in cut.notes if "not there" in note.text] == [2]


def _swf(folder: Path, *lines: str) -> Path:
    written(folder / "log.swf.machines", "0 big 2 8 1 8192\n")
    return written(folder / "log.swf", "".join(f"{line}\n" for line in lines))


def test_a_log_names_preceding_jobs_and_think_times(tmp_path: Path) -> None:
    """One that is not there is not waited for."""
    job = "{} {} 0 60 1 -1 -1 1 99 -1 1 12 5 -1 -1 -1 {} {}".format
    path = _swf(tmp_path, job(1, 0, -1, -1), job(2, 1, 1, -1), job(3, 70, 1, 20), job(4, 5, 9, -1))
    workload = read_swf(path)
    assert [(each.application_id, dict(each.tags), each.follows) for each in workload.applications] == [
        ("job-1", {}, ""),
        ("job-2", {"after": "job-1"}, ""),
        ("job-4", {}, ""),
        ("job-3", {}, "job-1"),
    ]
    configured = workload.default_configuration
    assert "root" in configured
    assert [each.think_ns for each in workload.applications] == [0, 0, 0, 20 * SECOND]
    assert [note.text for note in workload.notes if "not there" in note.text]


def test_a_job_that_precedes_itself_is_an_error_with_its_place(tmp_path: Path) -> None:
    path = _swf(tmp_path, "3 0 0 60 1 -1 -1 1 99 -1 1 12 5 -1 -1 -1 3 -1")
    with pytest.raises(InputError, match="preceding job: 3 is the job itself") as raised:
        read_swf(path)
    assert "log.swf:1:42" in str(raised.value)


def _sacct(folder: Path, *rows: str) -> dict[str, dict[str, str]]:
    """Return the tags of each job of rows `JobID|State|Dependency|SubmitLine`."""
    lines = [_SACCT]
    for row in rows:
        name, state, dependency, line = row.split("|")
        lines.append(
            f"{name}|ana|bio|short|2026-03-01T08:00:00|2026-03-01T08:05:00|00:10:00|{state}|1|{dependency}|{line}"
        )
    log = read_sacct(written(folder / "jobs.csv", "\n".join([*lines, ""])))
    known = {"account"}
    return {
        job.name: {tag: text for tag, text in job.tags.items() if tag not in known}
        | ({"fails": "yes"} if job.status == 0 else {})
        for job in log.jobs
    }


def test_sacct_has_arrays_and_dependencies(tmp_path: Path) -> None:
    assert _sacct(
        tmp_path,
        "1|COMPLETED||sbatch a.sh",
        "2_0|FAILED||sbatch -a 0-9%4 b.sh",
        "2_1|COMPLETED||sbatch -a 0-9%4 b.sh",
        "3_0|COMPLETED||sbatch --array=0-9 c.sh",
        "4_0|TIMEOUT||",
        "4_[1-9%2]|PENDING||",
        "5|COMPLETED|afterok:1:3_*(unfulfilled),afterany:2_0(unfulfilled)|",
        "6_7|COMPLETED||sbatch --dependency=aftercorr:4 --array=0-9 d.sh",
        "7|COMPLETED||sbatch -d afternotok:1 e.sh",
        "7.batch|COMPLETED|afterok:9|",
        "8|COMPLETED|singleton,after:1+5|",
        "9|COMPLETED|afterok:1?afterok:3|",
        "10_0|COMPLETED||sbatch --array=0-9%0 f.sh",
    ) == {
        "1": {},
        "2_0": {"array": "2", "arrayLimit": "4", "fails": "yes"},
        "2_1": {"array": "2", "arrayLimit": "4"},
        "3_0": {"array": "3"},
        "4_0": {"array": "4", "arrayLimit": "2", "fails": "yes"},
        "5": {"afterOk": "1,3", "after": "2_0"},
        "6_7": {"afterOk": "4_7"},
        "7": {"afterFailed": "1"},
        "8": {},
        "9": {},
        "10_0": {},
    }
