from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
import typer
from support.proxy.fake_core import FakeCore
from support.proxy.simulation_builders import written
from typer.testing import CliRunner, Result

from licorne.proxy.base.files import output_files
from licorne.proxy.base.files.output_files import UnwritableFileError
from licorne.proxy.play.simulation import report_table
from licorne.proxy.play.simulation.core import Core, SchedulerCore
from licorne.proxy.play.simulation.driver import interruption_noted
from licorne.proxy.shell.commands.simulate import simulate_command

_SCENARIO = """\
nodes: [{prefix: n, resources: {vcore: 2}}]
applications:
  - name: a
    queue: root.q
    user: u
    tasks: [{count: 3, resources: {vcore: 1}, duration: 1m..2m}]
"""


def _scheduler() -> SchedulerCore:
    return SchedulerCore("direct")


def _simulate(*arguments: str | Path, core: Core | None = None) -> Result:
    application = typer.Typer()
    application.command()(simulate_command(lambda *_: core or FakeCore()))
    return CliRunner().invoke(application, [str(argument) for argument in arguments])


def test_a_scenario_is_simulated_and_reported(tmp_path: Path) -> None:
    """The table goes to standard output, and there is no progress bar."""
    core = FakeCore()
    result = _simulate(written(tmp_path / "s.yaml", _SCENARIO), core=core)

    assert (0, "") == (result.exit_code, result.stderr)
    assert result.stdout.startswith("s: 1 node, 3 tasks, 1 queue, ")
    assert core.is_closed


def test_json_is_one_document(tmp_path: Path) -> None:
    """Nothing else is on standard output."""
    result = _simulate(written(tmp_path / "s.yaml", _SCENARIO), "--json", "--engine", "actors")

    document = json.loads(result.stdout)

    assert (3, "actors") == (document["total"]["completed"], document["engine"])


def test_the_seed_draws_the_durations(tmp_path: Path) -> None:
    """The same seed gives the same simulation, another one another."""
    path = written(tmp_path / "s.yaml", _SCENARIO)

    ends = [
        json.loads(_simulate(path, "--json", "--seed", seed).stdout)["end_ns"] for seed in ("1", "1", "2")
    ]

    assert ends[0] == ends[1] != ends[2]


def test_bad_input_ends_with_two_and_says_where(tmp_path: Path) -> None:
    """On standard error, and nothing is opened."""
    path = written(tmp_path / "s.yaml", _SCENARIO.replace("count: 3", "count: x"))
    core = FakeCore()

    result = _simulate(path, core=core)

    assert (2, "", []) == (result.exit_code, result.stdout, core.requests)
    assert f"licorne simulate: {path}:6:21: applications[0].tasks[0].count: " in result.stderr


def test_a_bad_configuration_is_named_with_its_place(tmp_path: Path) -> None:
    """Before the input is even read."""
    config = written(tmp_path / "queues.yaml", "partitions:\n  - name: default\n    queue: []\n")

    result = _simulate(tmp_path / "gone.yaml", "--config", config)

    assert 2 == result.exit_code
    assert f"{config}:3:5: " in result.stderr


def test_a_configuration_of_ones_own_is_used(tmp_path: Path) -> None:
    """Instead of the one that fits the input."""
    text = "partitions:\n  - name: default\n    queues: [{name: root, submitacl: '*'}]\n"
    core = FakeCore()

    _simulate(
        written(tmp_path / "s.yaml", _SCENARIO), "--config", written(tmp_path / "q.yaml", text), core=core
    )

    assert text == core.requests[0].config  # type: ignore[attr-defined]


@pytest.mark.parametrize("option", [["--engine", "steam"], ["--config", "/nowhere/queues.yaml"]])
def test_options_that_make_no_sense_are_bad_input(tmp_path: Path, option: list[str]) -> None:
    """In one line, without a traceback."""
    result = _simulate(written(tmp_path / "s.yaml", _SCENARIO), *option)

    assert (2, 1) == (result.exit_code, len(result.stderr.splitlines()))
    assert option[1] in result.stderr


def test_a_refused_registration_ends_with_two_and_closes_the_core(tmp_path: Path) -> None:
    """The reason is that of the scheduler."""
    core = FakeCore(refuses_everything=True)
    result = _simulate(written(tmp_path / "s.yaml", _SCENARIO), core=core)

    assert 2 == result.exit_code
    assert "is refused" in result.stderr
    assert core.is_closed


def _interrupting_core(*seconds: int) -> FakeCore:
    """Return a core that is interrupted by Ctrl-C at these moments."""
    core = FakeCore()
    for second in seconds:
        core.at(second * 10**9, lambda: signal.raise_signal(signal.SIGINT))
    return core


def test_an_interrupted_simulation_reports_what_is_known(tmp_path: Path) -> None:
    """And ends with the status that says so; the books stand at a moment at which all had come to rest."""
    path = written(tmp_path / "s.yaml", _SCENARIO)
    whole = json.loads(_simulate(path, "--json").stdout)
    core = _interrupting_core(80)

    result = _simulate(path, "--json", core=core)

    document = json.loads(result.stdout)
    assert (130, "licorne simulate: interrupted; these are the results so far\n") == (
        result.exit_code,
        result.stderr,
    )
    assert (False, True) == (whole["interrupted"], document["interrupted"])
    assert (3, 2) == (document["total"]["submitted"], document["total"]["placed"])
    assert document["end_ns"] < whole["end_ns"]
    assert core.is_closed


def test_an_interrupted_simulation_says_so_in_its_table(tmp_path: Path) -> None:
    """In the headline."""
    result = _simulate(written(tmp_path / "s.yaml", _SCENARIO), core=_interrupting_core(80))

    assert ": 1 node, 3 tasks, 1 queue, interrupted after " in result.stdout


def test_a_second_interruption_ends_it_at_once(tmp_path: Path) -> None:
    """Nothing is reported then."""
    core = _interrupting_core(80, 80)

    result = _simulate(written(tmp_path / "s.yaml", _SCENARIO), core=core)

    assert (130, "") == (result.exit_code, result.stdout)
    assert core.is_closed
    assert signal.default_int_handler is signal.getsignal(signal.SIGINT)


def test_a_signal_with_a_handler_of_another_program_is_left_alone() -> None:
    """As in a program that embeds the simulation."""
    heard: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    try:
        with interruption_noted() as is_interrupted:
            signal.raise_signal(signal.SIGINT)
            assert not is_interrupted()
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)

    assert [signal.SIGINT] == heard


def test_pods_are_packed_or_replayed(tmp_path: Path) -> None:
    """By their own times, they end."""
    nodes = written(tmp_path / "nodes.csv", "sn,cpu_milli,memory_mib,gpu,model\nn0,2000,64,0,\n")
    header = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,"
    pods = written(tmp_path / "pods.csv", f"{header}scheduled_time\np0,500,8,0,0,,LS,Running,5,65,5\n")

    packed = json.loads(_simulate(pods, "--nodes", nodes, "--json").stdout)
    replayed = json.loads(_simulate(pods, "--nodes", nodes, "--json", "--own-times").stdout)

    assert (1, 0) == (packed["total"]["running"], packed["total"]["completed"])
    assert (0, 1) == (replayed["total"]["running"], replayed["total"]["completed"])


def test_figures_are_written_to_files(tmp_path: Path) -> None:
    """The same twice, byte for byte; the table goes to standard output as ever."""
    path = written(tmp_path / "s.yaml", _SCENARIO)
    files = [tmp_path / name for name in ("r.html", "r.json", "r.csv")]
    options: list[str | Path] = ["--report", files[0], "--report-json", files[1], "--report-csv", files[2]]

    first = _simulate(path, *options), [file.read_bytes() for file in files]
    second = _simulate(path, *options), [file.read_bytes() for file in files]

    assert first[0].stdout.startswith("s: 1 node, 3 tasks, 1 queue, ")
    assert first[1] == second[1]
    assert first[1][0].startswith(b"<!DOCTYPE html>")
    assert b"licorne simulation figures" in first[1][1]
    assert first[1][2].startswith(b"figure,queue,item,start_ns,end_ns,value\n")


def test_files_are_there_when_a_reader_of_the_report_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`simulate --report FILE | head -1` has written the file."""

    def gone(*_: object, **__: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(report_table, "print_report", gone)
    files = (tmp_path / "r.html", tmp_path / "jobs.csv")
    path = written(tmp_path / "s.yaml", _SCENARIO)
    _simulate(path, "--report", files[0], "--jobs-csv", files[1])

    assert all(file.stat().st_size for file in files)


def test_a_report_is_printed_where_a_file_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The simulation may have taken hours."""

    def full(path: Path, _: str) -> None:
        raise UnwritableFileError(f"{path}: No space left on device")

    monkeypatch.setattr(output_files, "write_whole", full)
    result = _simulate(written(tmp_path / "s.yaml", _SCENARIO), "--report", tmp_path / "r.html")

    assert 2 == result.exit_code
    assert result.stdout.startswith("s: 1 node, 3 tasks, 1 queue, ")
    assert "No space left on device" in result.stderr


def test_two_runs_are_compared(tmp_path: Path) -> None:
    """The figures of one run are the other side of the next."""
    path = written(tmp_path / "s.yaml", _SCENARIO)
    _simulate(path, "--report-json", tmp_path / "r.json")
    result = _simulate(path, "--seed", "2", "--report", tmp_path / "r.html", "--compare", tmp_path / "r.json")

    assert 0 == result.exit_code
    assert "compared with: s" in (tmp_path / "r.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--compare", "s.yaml"], "--report FILE must name that page"),
        (["--compare", "s.yaml", "--report", "r.html"], "s.yaml: is not JSON: expecting value"),
        (["--report", "none/r.html"], "none/r.html: cannot be written: there is no directory none"),
        (["--report", "x", "--report-csv", "./x"], "--report and --report-csv name the same file, x"),
    ],
)
def test_reports_that_cannot_be_written_are_refused_before_anything_runs(
    options: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is simulated or written."""
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "s.yaml", _SCENARIO)
    core = FakeCore()
    result = _simulate("s.yaml", *options, core=core)

    assert (2, "") == (result.exit_code, result.stdout)
    assert message in result.stderr
    assert [] == core.requests
    assert ["s.yaml"] == [path.name for path in tmp_path.iterdir()]


_LOG = """\
; MaxProcs: 2
1 0 -1 60 2 -1 -1 2 90 -1 1 1 1 -1 -1 -1 -1 -1
2 1 -1 30 2 -1 -1 2 90 -1 1 2 1 -1 -1 -1 -1 -1
3 2 -1 30 3 -1 -1 3 90 -1 1 2 1 -1 -1 -1 -1 -1
"""


def test_whole_jobs_are_reported_and_written(tmp_path: Path) -> None:
    """By queue, user and group in the report, and each in a row of its own."""
    log, files = written(tmp_path / "log.swf", _LOG), (tmp_path / "jobs.csv", tmp_path / "jobs.jsonl")
    options = ("--gang", "--jobs-csv", files[0], "--jobs-jsonl", files[1])
    document = json.loads(_simulate(log, "--json", *options, core=_scheduler()).stdout)
    table = _simulate(log, *options, core=_scheduler()).stdout

    jobs = document["jobs"]
    assert (2, 59 * 10**9, 90 * 10**9) == (
        jobs["total"]["jobs"],
        jobs["total"]["wait_ns"]["max"],
        jobs["total"]["makespan_ns"],
    )
    assert (["root.default"], ["u1", "u2"]) == (
        [one["queue"] for one in jobs["queues"]],
        [one["user"] for one in jobs["users"]],
    )
    assert "root.default 2 1 2 0 29s 59s 59s 1.98 100.0%" in [
        " ".join(line.split()) for line in table.splitlines()
    ]
    assert "makespan of 2 jobs: 1m30s" in table.splitlines()
    rows = [json.loads(line) for line in files[1].read_text(encoding="utf-8").splitlines()]
    assert [("job-1", 0, 90 * 10**9), ("job-2", 60 * 10**9, 90 * 10**9)] == [
        (row["job"], row["started_ns"], row["walltime_ns"]) for row in rows
    ]
    assert 3 == len(files[0].read_text(encoding="utf-8").splitlines())


def test_without_these_options_a_report_has_no_jobs(tmp_path: Path) -> None:
    """As before there were any."""
    document = json.loads(_simulate(written(tmp_path / "log.swf", _LOG), "--json").stdout)

    assert "jobs" not in document
    assert 7 == document["total"]["submitted"]


def test_whole_jobs_are_of_logs(tmp_path: Path) -> None:
    """Another kind of input is refused, with its file and kind."""
    path = written(tmp_path / "s.yaml", _SCENARIO)
    result = _simulate(path, "--gang")

    text = "--gang, --task-processors and --estimate-factor are for logs of jobs, and this is a scenario"
    assert (2, f"licorne simulate: {path}: {text}\n") == (result.exit_code, result.stderr)


@pytest.mark.parametrize("option", ["--task-processors", "--estimate-factor"])
def test_a_number_of_a_log_is_from_one_on(option: str, tmp_path: Path) -> None:
    """The message names the option and the value."""
    result = _simulate(written(tmp_path / "log.swf", _LOG), option, "0")

    assert 2 == result.exit_code
    assert option in result.stderr
    assert "'0'" in result.stderr


_DIVIDED = "; MaxNodes: 2\n; MaxProcs: 4\n" + "".join(
    f"{number} 0 -1 60 2 -1 -1 {size} 60 -1 1 1 1 -1 {number} -1 -1 -1\n"
    for number, size in enumerate((3, 3, 3), start=1)
)


def test_the_queues_of_a_log_place_its_jobs_whole_and_can_be_written(tmp_path: Path) -> None:
    """No job holds a part of its room and waits for the rest, as under queues that place step by step."""
    log, queues = written(tmp_path / "log.swf", _DIVIDED), tmp_path / "queues.yaml"

    made = _simulate(log, "--gang", "--json", "--write-config", queues, core=_scheduler())
    stepwise = written(tmp_path / "s.yaml", queues.read_text().replace("whole", "stepwise"))
    other = _simulate(log, "--gang", "--config", stepwise, core=_scheduler())

    assert json.loads(made.stdout)["never_started"] is None
    assert "gang.placing: whole" in queues.read_text()
    assert other.stdout.splitlines()[1].startswith(
        "3 of 3 jobs never started, first job-1: 0/2 nodes are available: 2 Insufficient vcore"
    )


def test_a_report_names_the_jobs_that_never_started(tmp_path: Path) -> None:
    """With the number, the first one and its reason; a rejected one has the reason of its rejection."""
    scenario = _SCENARIO.replace("vcore: 1", "vcore: 3")
    config = written(
        tmp_path / "q.yaml", "partitions: [{name: default, queues: [{name: root, queues: [{name: q}]}]}]"
    )
    waits = _simulate(written(tmp_path / "s.yaml", scenario), "--json", core=_scheduler())
    rejected = _simulate(tmp_path / "s.yaml", "--config", config, "--json", core=_scheduler())

    waiting = json.loads(waits.stdout)["never_started"]
    assert (1, 1, "a-1") == (waiting["jobs"], waiting["of"], waiting["first"])
    assert waiting["reason"] == "0/1 nodes are available: 1 Insufficient vcore"
    assert "no placement rule matched" in json.loads(rejected.stdout)["never_started"]["reason"]


def test_written_queues_are_those_of_the_input(tmp_path: Path) -> None:
    """They are neither a copy of other queues, nor a part of a transcript."""
    path = written(tmp_path / "s.yaml", _SCENARIO)
    transcript = written(tmp_path / "t.jsonl", '{"advance": "1s"}\n{"schedule": 1}\n')
    out = tmp_path / "out.yaml"

    twice = _simulate(path, "--config", path, "--write-config", out)
    lines = _simulate(transcript, "--write-config", out)

    assert (2, 2, False) == (twice.exit_code, lines.exit_code, out.exists())
    assert "leave out --config" in twice.stderr
    assert "is a transcript, with its own queues" in lines.stderr
