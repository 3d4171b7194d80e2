"""Simulations from a program: tables, several runs, other processes, interrupts, and clear errors."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import licorne
from licorne import Workload, policies
from licorne.proxy.play.simulation.runs import run_elsewhere

NODES = [{"prefix": "n", "count": 2, "resources": {"vcore": 2}}]
DAY: dict[str, Any] = {
    "name": "two users",
    "nodes": [{"prefix": "n", "count": 2, "resources": {"vcore": 2, "memory": 100}}],
    "applications": [
        {
            "name": "ada",
            "count": 6,
            "queue": "root.q",
            "user": "ada",
            "tasks": [{"count": 2, "resources": {"vcore": "500m", "memory": 8}, "duration": "10m"}],
        },
        {
            "name": "ben",
            "count": 3,
            "queue": "root.q",
            "user": "ben",
            "submit": "1m",
            "tasks": [{"resources": {"vcore": 2}, "duration": "1m"}],
        },
    ],
}
MODULE = """
class Bens:
    def application_key(self, application):
        print("in the way of the answer")
        return 0 if application.user == "ben" else 1
"""


class Bens:
    """The jobs of ben first."""

    def application_key(self, application: policies.ApplicationView) -> int:
        """Return the place of a job."""
        return 0 if application.user == "ben" else 1


def _queues(order: str = "fifo") -> dict[str, Any]:
    leaf = {"name": "q", "properties": {"application.sort.policy": order}}
    return {
        "partitions": [{"name": "default", "queues": [{"name": "root", "submitacl": "*", "queues": [leaf]}]}]
    }


TWO: dict[str, Any] = {
    "fifo": {"queues": _queues()},
    "ben first": {"queues": _queues("policy/bens"), "policies": {"bens": Bens}},
}


def test_a_run_has_a_row_for_each_job_in_seconds_and_cores(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is printed."""
    run = licorne.simulate(DAY, name="as it is")

    first = run.jobs[0]
    assert {
        "job": "ada-1",
        "tasks": 2,
        "wait": 0.0,
        "run_time": 600.0,
        "slowdown": 1.0,
    }.items() <= first.items()
    assert (1.0, 16) == (first["resources_vcore"], first["resources_memory"])
    assert [1140.0, 1140.0, 1200.0] == [job["wait"] for job in run.jobs if job["user"] == "ben"]
    assert ("as it is", 9, 9) == tuple(run.summary[name] for name in ("run", "jobs", "completed"))
    assert 1320.0 == run.summary["makespan"]
    assert {"at": 0.0, "kind": "placed", "ask": "ada-1-t1-1", "user": "ada"}.items() <= run.decisions[
        0
    ].items()
    assert run.document["end_ns"] == 1_320_000_000_000
    assert ("", "") == capsys.readouterr()


class Failing:
    """Has no place for a job of ben, and raises another error about each node."""

    def application_key(self, application: policies.ApplicationView) -> float:
        """Return the place of a job."""
        return float("nan") if application.user == "ben" else 0

    def node_key(self, node: policies.NodeView) -> float:
        """Raise an error."""
        raise RuntimeError(f"a bug about {node.node_id} with {node.available.get('vcore')}")


def test_a_run_counts_the_failures_of_its_policies() -> None:
    """By policy and method, with the first reason, as the report and the comparison have it."""
    queues = _queues("policy/bad")
    queues["partitions"][0]["nodesortpolicy"] = {"type": "policy/bad"}
    given: dict[str, Any] = {"queues": queues, "policies": {"bad": Failing, "bens": Bens}}
    runs = licorne.compare(DAY, {"bad": given, "right": TWO["ben first"]})

    failures = runs["bad"].document["policy_failures"]
    assert [
        "policy bad.application_key, first about ben-1: expected a finite number or a text, got float nan",
        "policy bad.node_key, first about n-1: RuntimeError: a bug about n-1 with 2000",
    ] == sorted(each["text"] for each in failures)
    summary = runs["bad"].summary
    assert 2 < sum(each["count"] for each in failures) == summary["policy_failures"]
    assert (
        "; ".join(f"{each['count']} failures of {each['text']}" for each in failures)
        == (summary["policy_errors"])
    )
    assert (0, "") == tuple(runs["right"].summary[name] for name in ("policy_failures", "policy_errors"))
    assert failures == runs.document("bad", "right")["a"]["report"]["policy_failures"]


def test_figures_over_time_are_rows_and_a_page() -> None:
    """Amounts in cores, shares of one; without figures a notebook shows the summary."""
    run = licorne.simulate(DAY)

    used = [row for row in run.series("used") if row["queue"] == "root.q" and row["item"] == "vcore"]
    assert 4.0 == used[0]["value"]
    assert (0.0, run.summary["makespan"]) == (used[0]["start"], used[-1]["end"])
    assert {"capacity", "fairness", "nodes"} < {row["figure"] for row in run.series()}
    assert all(0 <= float(row["value"] or 0) <= 1 for row in run.series("nodes"))
    assert "two users" in run.report_html(run)
    assert run._repr_html_().startswith("<iframe")
    bare = licorne.simulate(DAY, figures=False)
    assert "<th>wait_mean</th>" in bare._repr_html_()
    with pytest.raises(licorne.RequestError, match="give figures=True"):
        bare.series()


def test_runs_of_one_workload_are_compared() -> None:
    """By name and by number, as tables, and as `licorne compare` has it; each is what it is alone."""
    runs = licorne.compare(licorne.load(DAY), TWO)

    assert ["fifo", "ben first"] == [run.name for run in runs]
    assert [row["run"] for row in runs.summary] == ["fifo", "ben first"]
    assert 18 == len(runs.jobs)
    assert runs["ben first"].jobs == licorne.simulate(DAY, **TWO["ben first"]).jobs
    assert float(runs[1].summary["wait_mean"] or 0) < float(runs[0].summary["wait_mean"] or 0)
    document = runs.document("fifo", "ben first", why=True)
    found: Any = document
    assert {"user": "ben", "earlier": 3, "later": 0}.items() <= found["users"][1].items()
    assert "policy/bens" == found["why"]["needed"][0]["b"]
    assert "queues of ben first:" in found["why"]["needed"][0]["place_b"]


def test_runs_are_the_same_in_other_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A class that no other process can import is simulated here, also one that is defined in a function."""
    (tmp_path / "bens_policies.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    import bens_policies  # type: ignore[import-not-found]

    class Local(Bens):
        pass

    options = {
        "fifo": {"queues": _queues()},
        "imported": {"queues": _queues("policy/bens"), "policies": {"bens": bens_policies.Bens}},
        "local": {"queues": _queues("policy/bens"), "policies": {"bens": Local}},
    }
    work = licorne.load(DAY)
    elsewhere = run_elsewhere(work._loaded, options, 2, True, lambda: False)

    assert ["fifo", "imported"] == list(elsewhere)
    here, there = licorne.compare(work, options), licorne.compare(work, options, processes=3)
    assert here.jobs == there.jobs
    assert [run.decisions for run in here] == [run.decisions for run in there]
    assert [run.series() for run in here] == [run.series() for run in there]


class Interrupting:
    """Presses Ctrl-C when it is asked about the first job of ben."""

    def application_key(self, application: policies.ApplicationView) -> int:
        """Return the same place for each job."""
        if application.application_id == "ben-1":
            signal.raise_signal(signal.SIGINT)
        return 0


def test_ctrl_c_returns_what_is_known() -> None:
    """Of several runs those that were begun; the next call is another one."""
    options: dict[str, Any] = {"queues": _queues("policy/stop"), "policies": {"stop": Interrupting}}

    run = licorne.simulate(DAY, **options)
    assert run.is_interrupted
    assert (9, True) != (run.summary["completed"], run.summary["interrupted"])
    runs = licorne.compare(DAY, {"one": TWO["fifo"], "two": options, "three": TWO["fifo"]})
    assert [("one", False), ("two", True)] == [(run.name, run.is_interrupted) for run in runs]
    assert not licorne.simulate(DAY).is_interrupted


WAITING = """
import signal
from pathlib import Path

class Waiting:
    asked = False

    def application_key(self, application):
        if not Waiting.asked:
            Waiting.asked = True
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            Path(__file__).with_name("asked").touch()
            signal.sigwait({signal.SIGINT})
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
            signal.raise_signal(signal.SIGINT)
        return 0
"""


def test_ctrl_c_is_passed_on_to_other_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their runs end, and what they know is returned; none is begun any more."""
    (tmp_path / "waiting_policies.py").write_text(WAITING, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    import waiting_policies  # type: ignore[import-not-found]

    given = {"queues": _queues("policy/waiting"), "policies": {"waiting": waiting_policies.Waiting}}
    work = licorne.load(DAY)
    found = run_elsewhere(
        work._loaded,
        {"first": given, "second": {"queues": _queues()}},
        1,
        False,
        (tmp_path / "asked").exists,
    )

    assert [("first", True)] == [(name, run.report.is_interrupted) for name, run in found.items()]


def test_a_table_of_jobs_is_a_workload() -> None:
    """That of a workload gives the same runs; columns of runs are left out, NaN is not known."""
    work = licorne.load(DAY)
    again = Workload.from_rows(
        [{**row, "slowdown": 1.0, "walltime": float("nan")} for row in work.jobs], work
    )

    assert licorne.simulate(work).jobs == licorne.simulate(again).jobs
    assert work.jobs == again.jobs
    assert licorne.simulate(work, queues=work.queues).jobs == licorne.simulate(work).jobs
    rows: list[dict[str, Any]] = [
        {"resources_vcore": 3, "tasks": 2, "run_time": 60, "gang": True},
        {"resources_vcore": 3.5, "tasks": 3, "submitted": 0.5, "priority": 2},
        {"resources_vcore": 5, "tasks": 1, "gang": True},
    ]
    made = Workload.from_rows(rows, NODES)
    assert ["job-1", "job-2"] == [row["job"] for row in made.jobs]
    assert 3.501 == made.jobs[1]["resources_vcore"]
    assert "there is no room for the whole of it" in made._repr_html_()
    assert [60.0, None] == [row["run_time"] for row in licorne.simulate(made).jobs]


def _rows(**row: object) -> Callable[[], object]:
    return lambda: Workload.from_rows([{"resources_vcore": 1}, {"resources_vcore": 1, **row}], NODES)


_THREE: Any = 3
_MISSPELT: Any = {"fist": 3}
WRONG: Mapping[str, tuple[Callable[[], object], str]] = {
    "no input": (
        lambda: licorne.simulate(_THREE),
        "an input: expected a path or a scenario as a mapping, got int 3",
    ),
    "no file": (lambda: licorne.load("no.swf"), "no.swf: cannot be read: No such file"),
    "an option": (lambda: licorne.load(DAY, **_MISSPELT), "unknown option 'fist'; did you mean 'first'"),
    "its value": (lambda: licorne.load(DAY, first=0), "first: expected a number from 1 on, not 0"),
    "its type": (lambda: licorne.load(DAY, gang=_THREE), "gang: expected true or false, not 3"),
    "a time": (lambda: licorne.load(DAY, begin="x"), "begin: invalid duration: 'x'"),
    "an end": (lambda: licorne.load(DAY, begin=3, end="2s"), "end 2s is not after begin 3"),
    "a factor": (
        lambda: licorne.load(DAY, scale_rate=0),
        "scale_rate: expected a number above 0 such as 1.5, not 0",
    ),
    "loaded": (lambda: licorne.simulate(licorne.load(DAY), first=1), "first: the workload is loaded already"),
    "a scenario": (
        lambda: licorne.load({**DAY, "node": 1}),
        "node: unknown key 'node'; did you mean 'nodes'",
    ),
    "an engine": (lambda: licorne.simulate(DAY, engine="steam"), "engine 'steam' is unknown"),
    "queues": (
        lambda: licorne.simulate(DAY, queues="partitions: [{name: default, queus: []}]"),
        "queues:1:14: partitions[0]: queue config is not set",
    ),
    "the name of a file": (lambda: licorne.simulate(DAY, queues="q.yaml"), "give pathlib.Path('q.yaml')"),
    "a policy": (
        lambda: licorne.compare(DAY, {"mine": {"queues": _queues("policy/bens")}}),
        "properties.application.sort.policy: no policy 'bens' was given to the scheduler; given: none",
    ),
    "no policy": (lambda: licorne.simulate(DAY, policies={"x": _THREE}), "the policy 'x': expected a class"),
    "an option of a run": (
        lambda: licorne.compare(DAY, {"a": {"queue": 3}}),
        "runs['a']: unknown option 'queue'; did you mean 'queues'",
    ),
    "no options": (
        lambda: licorne.compare(DAY, {"a": _THREE}),
        "expected a mapping of options, got 3",
    ),
    "no runs": (lambda: licorne.compare(DAY, {}), "runs: expected the options of at least one run"),
    "processes": (
        lambda: licorne.compare(DAY, TWO, processes=0),
        "processes: expected a number from 1 on, got 0",
    ),
    "a figure": (lambda: licorne.simulate(DAY).series("use"), "got 'use'; did you mean 'used'"),
    "a run": (lambda: licorne.compare(DAY, {"a": {}})["b"], "expected the name of a run ('a'), got 'b'"),
    "a column": (_rows(walltme=3), "rows[1]: unknown key 'walltme'; did you mean 'walltime'"),
    "a negative time": (_rows(submitted=-1), "rows[1].submitted: expected a number from 0.0 on, not -1"),
    "an endless time": (_rows(run_time=float("inf")), "rows[1].run_time: expected"),
    "an amount": (_rows(resources_vcore=-1), "rows[1].resources_vcore: expected an amount from 0 on, got -1"),
    "no amount": (_rows(resources_vcore=None), "rows[1].resources: expected quantities by resource type"),
    "a queue": (_rows(queue="q"), "rows[1].queue: 'q' is not a path of a queue"),
    "a name twice": (_rows(job="job-1"), "rows[1].job: 'job-1' is listed twice"),
    "no rows": (lambda: Workload.from_rows([], NODES), "rows: expected at least one job, got none"),
    "no nodes": (lambda: Workload.from_rows([{}], []), "nodes: expected at least one, got none"),
    "a node": (
        lambda: Workload.from_rows([{}], [{"prefix": "n", "resource": {"vcore": 1}}]),
        "nodes[0]: unknown key 'resource'; did you mean 'resources'",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_bad_input_is_named_with_its_place(case: str) -> None:
    """Each is an error of Licorne that has the value."""
    call, text = WRONG[case]
    with pytest.raises(licorne.LicorneError) as caught:
        call()
    assert text in str(caught.value)


def test_a_transcript_is_simulated_and_has_no_table_before(tmp_path: Path) -> None:
    """Jobs are known when they have been submitted."""
    path = tmp_path / "day.jsonl"
    node = {
        "nodeID": "n1",
        "action": "CREATE",
        "schedulableResource": {"resources": {"vcore": {"value": 2000}}},
    }
    register = {"rmID": "rm", "config": json.dumps(_queues())}
    lines = [{"register": register}, {"node": {"rmID": "rm", "nodes": [node]}}, {"schedule": "all"}]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    work = licorne.load(path)

    run = licorne.simulate(work)
    assert (1, 0, []) == (run.document["nodes"], run.summary["jobs"], run.jobs)
    with pytest.raises(licorne.RequestError, match="jobs: expected a workload with jobs, got the transcript"):
        _ = work.jobs
