"""`licorne compare`: one input under two configurations."""

from __future__ import annotations

import gzip
import json
import re
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer
from support.proxy.comparisons import compared
from support.proxy.simulation_builders import written
from typer.testing import CliRunner

from licorne.proxy.play.simulation import runs
from licorne.proxy.play.simulation.core import SchedulerCore
from licorne.proxy.play.simulation.runs import RunSettings
from licorne.proxy.play.simulation.workloads.workload import SimulatedWorkload
from licorne.proxy.shell.commands.simulate import simulate_command

_SCENARIO = """\
name: a morning
nodes: [{prefix: n, resources: {vcore: 8}}]
applications:
  - name: report
    queue: root.batch
    user: bob
    count: 3
    tasks: [{count: 4, resources: {vcore: 1}, duration: 30m}]
  - name: order
    queue: root.prod
    user: ann
    submit: 10m
    count: 2
    every: 10m
    tasks: [{count: 2, resources: {vcore: 1}, duration: 5m}]
"""
_TRANSCRIPT = """\
{"register": {"rmID": "rm", "policyGroup": "queues", "config": "partitions: [{name: default, queues: []}]"}}
{"node": {"rmID": "rm", "nodes": [{"nodeID": "n", "action": "CREATE", \
"schedulableResource": {"resources": {"vcore": {"value": "8000"}}}, \
"attributes": {"si/node-partition": "default"}}]}}
{"application": {"rmID": "rm", "new": [{"applicationID": "x", "queueName": "root.batch", \
"partitionName": "default", "ugi": {"user": "bob", "groups": ["bob"]}}]}}
{"allocation": {"rmID": "rm", "allocations": [{"allocationKey": "x1", "applicationID": "x", \
"partitionName": "default", "resourcePerAlloc": {"resources": {"vcore": {"value": "7000"}}}}]}}
{"schedule": "all"}
{"advance": "5s"}
"""


def _queues(batch: str = "") -> str:
    """Return a configuration with two queues."""
    return f"""\
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: prod
          - name: batch
{batch}"""


_SMALLER = _queues("            resources: {max: {vcore: 6}}\n")


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path, Path]:
    """Write A, B (where batch is smaller) and the input."""
    return (
        written(tmp_path / "a.yaml", _queues()),
        written(tmp_path / "b.yaml", _SMALLER),
        written(tmp_path / "day.yaml", _SCENARIO),
    )


def test_the_text_says_who_waits_longer_and_who_is_better_off(files: tuple[Path, Path, Path]) -> None:
    """By queue and by job; the batch job loses what both orders gain."""
    a, b, day = files

    result = compared(a, b, "--input", day)

    lines = [line.split() for line in result.stdout.splitlines()]
    assert (0, "") == (result.exit_code, result.stderr)
    assert f"a morning: A is {a}, B is {b}" == result.stdout.splitlines()[0]
    assert (
        "5 jobs: 1 later in B, by 30m in all; 2 earlier, by 30m in all; 2 at the same time"
        == result.stdout.splitlines()[1]
    )
    assert ["root.batch", "3", "1", "0", "0", "0", "2", "30m", "0s", "10m", "20m", "30m", "30m"] in lines
    assert ["order-1", "root.prod", "ann", "10m", "20m", "0s", "20m"] in lines


def test_the_document_has_effects_and_both_reports(files: tuple[Path, Path, Path]) -> None:
    """Nothing else is on standard output; the effects are those of the text, in nanoseconds."""
    a, b, day = files

    document = json.loads(compared(a, b, "-i", day, "--json").stdout)

    assert ("licorne comparison", 1) == (document["kind"], document["format"])
    assert [str(a), str(b)] == [document[side]["configuration"] for side in "ab"]
    assert [16, 16] == [document[side]["report"]["total"]["completed"] for side in "ab"]
    assert [("report-2", 30 * 60 * 10**9)] == [
        (job["a"]["job"], job["delay_ns"]) for job in document["later"]
    ]
    assert [("order-1", -20 * 60 * 10**9), ("order-2", -10 * 60 * 10**9)] == [
        (job["job"], job["delay_ns"]) for job in document["earlier"]
    ]
    assert ["root.batch", "root.prod"] == [part["queue"] for part in document["queues"]]


def test_the_first_decision_that_differs_is_the_first_ask_above_the_maximum(
    files: tuple[Path, Path, Path],
) -> None:
    """The seventh of batch is placed at once in A, and in B when others end."""
    a, b, day = files

    lines = compared(a, b, "-i", day).stdout.splitlines()

    assert [
        "the first decision that differs is number 7, at 0s:",
        "  A: report-2-t1-3 of report-2 (root.batch, bob) is placed on n-1",
        "     in B it is placed on n-1, at 30m0s",
        "  B decides nothing more at this moment",
    ] == lines[-4:]


@pytest.mark.parametrize("vcore", range(1, 13))
def test_no_job_starts_at_another_time_before_the_first_difference(tmp_path: Path, vcore: int) -> None:
    """Whatever the maximum is; without a difference every job starts at the same time."""
    arguments: list[str | Path] = [
        written(tmp_path / "a.yaml", _queues()),
        written(tmp_path / "b.yaml", _SMALLER.replace("6", str(vcore))),
        "-i",
        written(tmp_path / "day.yaml", _SCENARIO),
    ]

    document = json.loads(compared(*arguments, "--json").stdout)

    found, jobs = document["first_difference"], [*document["later"], *document["earlier"]]
    starts = [job[side]["started_ns"] for job in jobs for side in "ab"]
    assert (vcore < 8) == (found is not None)
    assert [] == [
        start for start in starts if start is not None and (found is None or start < found["at_ns"])
    ]


@pytest.mark.parametrize("name", ["day.yaml", "t.jsonl"])
def test_a_configuration_changes_nothing_against_itself(
    files: tuple[Path, Path, Path], tmp_path: Path, name: str
) -> None:
    """Both runs are of the same input, which the first leaves as it was."""
    written(tmp_path / "t.jsonl", _TRANSCRIPT)

    document = json.loads(compared(files[1], files[1], "-i", tmp_path / name, "--json").stdout)

    for side in "ab":
        del document[side]["report"]["wall_seconds"], document[side]["report"]["decisions_per_second"]
    assert document["a"] == document["b"]
    assert document["first_difference"] is None
    assert document["total"]["jobs"] == document["total"]["same"] > 0


def test_a_job_that_never_starts_in_b_is_the_largest_loss(tmp_path: Path) -> None:
    """A transcript under a maximum below what its one ask needs."""
    a, b = written(tmp_path / "a.yaml", _queues()), written(tmp_path / "b.yaml", _SMALLER)

    page = tmp_path / "page.html"

    result = compared(a, b, "-i", written(tmp_path / "t.jsonl", _TRANSCRIPT), "--html", page)

    alerts = re.findall(r'<p class="alert">(.*?)</p>', page.read_text(encoding="utf-8"))
    assert [True] == [text.startswith("B: 1 of 1 job never started, first x: ") for text in alerts]
    assert "1 job: 1 later in B, by 0s in all (1 never in B); 0 earlier" in result.stdout
    assert ["x", "root.batch", "bob", "0s", "0s", "never", "-"] in [
        line.split() for line in result.stdout.splitlines()
    ]


def test_at_most_ten_jobs_are_shown_each_way(tmp_path: Path) -> None:
    """The largest effects come first, in the text and in the document."""
    scenario = _SCENARIO.replace("count: 3", "count: 40")
    arguments: list[str | Path] = [
        written(tmp_path / "a.yaml", _queues()),
        written(tmp_path / "b.yaml", _SMALLER),
        "-i",
        written(tmp_path / "day.yaml", scenario),
    ]

    document = json.loads(compared(*arguments, "--json").stdout)
    delays = [job["delay_ns"] for job in document["later"]]

    assert document["total"]["later"] > 10
    assert (10, sorted(delays, reverse=True)) == (len(delays), delays)
    assert "start later in B, the 10 with the largest effect:" in compared(*arguments).stdout


class Bad(NamedTuple):
    """A file that is replaced, its text, and a part of the error."""

    file: str
    text: str
    error: str


BAD: dict[str, Bad] = {
    "A is no configuration": Bad("a.yaml", "partitions: []\nqueue: []\n", "a.yaml:2:1: "),
    "B has a negative maximum": Bad("b.yaml", _SMALLER.replace("6", "-6"), "b.yaml:9:"),
    "B lacks the partition": Bad("b.yaml", _queues().replace("default", "gpu"), "no partition 'default'"),
    "the input is malformed": Bad("day.yaml", "nodes: 3\n", "day.yaml:1:8: nodes: "),
}


@pytest.mark.parametrize("case", BAD.values(), ids=BAD)
def test_bad_input_ends_with_two_before_anything_runs(
    files: tuple[Path, Path, Path], tmp_path: Path, case: Bad
) -> None:
    """Its file and its place are named, and nothing is on standard output."""
    a, b, day = files
    written(tmp_path / case.file, case.text)

    result = compared(a, b, "-i", day)

    assert (2, "") == (result.exit_code, result.stdout)
    assert result.stderr.startswith("licorne compare: ")
    assert case.error in result.stderr


def test_an_interrupted_comparison_compares_nothing(
    files: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of a run beside a whole one would mislead."""
    advance = SchedulerCore.advance_to

    def interrupted(core: SchedulerCore, now_ns: int, must_stop: Callable[[], bool]) -> None:
        advance(core, now_ns, must_stop)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(SchedulerCore, "advance_to", interrupted)
    a, b, day = files

    # The handler of the command takes the first signal; the run ends before there is a second.
    result = compared(a, b, "-i", day)

    assert (130, "", "licorne compare: interrupted; nothing is compared\n") == (
        result.exit_code,
        result.stdout,
        result.stderr,
    )


def test_a_long_workload_is_simulated_under_b_in_another_process(
    files: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The comparison is the same."""
    a, b, day = files
    here = compared(a, b, "-i", day)
    names: list[str] = []
    run_each = runs.run_each

    def noted(work: SimulatedWorkload, settings: Mapping[str, RunSettings], **others: Any) -> object:
        names.extend(settings)
        return run_each(work, settings, **others)

    monkeypatch.setattr(runs, "run_each", noted)
    monkeypatch.setattr(runs, "_LONG_TASKS", 1)

    beside = compared(a, b, "-i", day)

    assert [f"A, {a}"] == names
    assert (0, here.stdout) == (beside.exit_code, beside.stdout)


def test_a_condition_that_holds_fails_the_command(files: tuple[Path, Path, Path]) -> None:
    """The comparison is printed as ever, and the error says what the figure is."""
    a, b, day = files
    conditions = ["--fail-if", "p95 wait of root.prod > 5m", "--fail-if", "max delay of user bob > 20m"]

    result = compared(a, b, "-i", day, *conditions, "--json")

    assert (1, "licorne compare: max delay of user bob > 20m: it is 30m0s\n") == (
        result.exit_code,
        result.stderr,
    )
    assert [
        {"condition": conditions[1], "value": 0, "unbounded": False, "holds": False},
        {"condition": conditions[3], "value": 30 * 60 * 10**9, "unbounded": False, "holds": True},
    ] == json.loads(result.stdout)["conditions"]


@pytest.mark.parametrize(
    ("condition", "error"),
    [
        ("p95 wait of root.prod > soon", "column 25: expected a duration such as 5m, not 'soon'"),
        (
            "later of root.pord > 0",
            "column 10: no job is of the queue 'root.pord'; did you mean 'root.prod'?",
        ),
    ],
)
def test_a_condition_that_cannot_be_judged_ends_with_two(
    files: tuple[Path, Path, Path], condition: str, error: str
) -> None:
    """It neither passes nor fails."""
    a, b, day = files

    result = compared(a, b, "-i", day, "--fail-if", condition)

    assert (2, "", f"licorne compare: condition {condition!r}, {error}\n") == (
        result.exit_code,
        result.stdout,
        result.stderr,
    )


def test_a_part_of_a_packed_input_is_compared(files: tuple[Path, Path, Path], tmp_path: Path) -> None:
    """The options of the input are those of `licorne simulate`: here the first orders, twice as fast."""
    a, b, day = files
    packed = tmp_path / "day.yaml.gz"
    packed.write_bytes(gzip.compress(day.read_bytes()))

    cut = ("--from", "5m", "--first", "2", "--scale-rate", "2")
    document = json.loads(compared(a, b, "-i", packed, "--json", *cut).stdout)

    assert [("order-1", 150 * 10**9), ("order-2", 450 * 10**9)] == [
        (name, job["submitted_ns"])
        for name, job in zip(("order-1", "order-2"), _jobs_of(packed, tmp_path, *cut), strict=True)
    ]
    assert 2 == document["total"]["jobs"]


def _jobs_of(path: Path, folder: Path, *options: str) -> list[dict[str, int]]:
    """Return the jobs that `licorne simulate` writes down with the same options."""
    rows = folder / "jobs.jsonl"
    application = typer.Typer()
    application.command()(simulate_command())
    CliRunner().invoke(application, [str(path), "--jobs-jsonl", str(rows), *options])
    return [json.loads(line) for line in rows.read_text().splitlines()]


BAD_CUTS: dict[str, tuple[tuple[str, str], str]] = {
    "no duration": (("--from", "5"), "--from: invalid duration: '5'"),
    "a time before the start": (("--from", "-5m"), "--from -5m: a time before the start"),
    "no time at all": (("--to", "0s"), "--to 0s is not after --from 0s"),
    "no factor": (
        ("--scale-rate", "fast"),
        "--scale-rate: expected a number above 0 such as 1.5, not 'fast'",
    ),
    "nothing": (("--scale-nodes", "0"), "--scale-nodes: expected a number above 0 such as 1.5, not '0'"),
}


@pytest.mark.parametrize("case", BAD_CUTS.values(), ids=BAD_CUTS)
def test_a_part_that_is_none_is_refused(
    case: tuple[tuple[str, str], str], files: tuple[Path, Path, Path]
) -> None:
    """Before anything is read."""
    options, error = case
    a, b, day = files

    result = compared(a, b, "-i", day, *options)

    assert (2, f"licorne compare: {error}\n") == (result.exit_code, result.stderr)


def test_the_page_is_written_with_the_reasons(files: tuple[Path, Path, Path], tmp_path: Path) -> None:
    """With `--html` the comparison is one page, and `--why` has its reasons there as well."""
    a, b, day = files
    page = tmp_path / "page.html"

    result = compared(a, b, "--input", day, "--why", "--html", page)

    assert 0 == result.exit_code
    text = page.read_text(encoding="utf-8")
    assert "resources.max.vcore of root.batch" in text
    assert ["Who pays and who gains", "The first decision that differs", "Settings"] == re.findall(
        "<section><h2>(.*?)</h2>", text
    )[:3]


def test_a_page_that_cannot_be_written_is_refused_first(
    files: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    """A path of no file ends the command before anything is simulated."""
    a, b, day = files

    result = compared(a, b, "--input", day, "--html", tmp_path)

    assert (2, "") == (result.exit_code, result.stdout)
    assert f"{tmp_path}: cannot be written: it is a directory" in result.stderr
