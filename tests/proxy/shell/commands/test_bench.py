from __future__ import annotations

import json
import subprocess
from subprocess import CompletedProcess

import pytest
import typer
from support.proxy.bench_fakes import some_figures
from typer.testing import CliRunner

from licorne.proxy.bench import run
from licorne.proxy.bench.errors import BenchError
from licorne.proxy.bench.figures import Figures, figures_to_json
from licorne.proxy.bench.workload_table import DEFAULT_NAMES, WORKLOADS
from licorne.proxy.bench.workloads import BenchWorkload
from licorne.proxy.core.scheduler.engine_names import EngineName, engine_named
from licorne.proxy.shell.commands.bench import bench

Ran = list[tuple[str, EngineName]]


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> Ran:
    """Let every workload be done at once, and return what was run."""
    log: Ran = []

    def run_at_once(workload: BenchWorkload, engine: EngineName, *, threads: int | None) -> Figures:  # noqa: ARG001 - as the real one
        log.append((workload.name, engine))
        return some_figures(workload.name, engine=engine)

    monkeypatch.setattr(run, "run_in_process_of_its_own", run_at_once)
    return log


def bench_command(*arguments: str) -> tuple[int, str, str]:
    """Run the command, and return its status, standard output and standard error."""
    application = typer.Typer()
    application.command()(bench)
    result = CliRunner().invoke(application, arguments, env={"COLUMNS": "250", "TERM": "dumb"})
    return result.exit_code, result.stdout, result.stderr


def test_without_names_the_default_workloads_run_on_actors(ran: Ran) -> None:
    """A minute or two, every kind of sorting."""
    status, _, _ = bench_command()

    assert status == 0
    assert [(name, "actors") for name in DEFAULT_NAMES] == ran


def test_all_runs_every_workload(ran: Ran) -> None:
    """The whole table, in its order."""
    bench_command("--all")

    assert [workload.name for workload in WORKLOADS] == [name for name, _ in ran]


def test_named_workloads_run_on_the_engine_that_is_named(ran: Ran) -> None:
    """In the order of the command line."""
    bench_command("c", "a", "--engine", "direct")

    assert ran == [("c", "direct"), ("a", "direct")]


def test_all_engines_run_one_after_the_other(ran: Ran) -> None:
    """All are reported, so that they can be compared."""
    bench_command("a", "--all-engines")

    assert ran == [("a", "actors"), ("a", "direct"), ("a", "threads")]


def test_the_number_of_threads_goes_to_the_engine_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other engines have none to say, and run beside it with all that they have."""
    commands: list[list[str]] = []

    def done(command: list[str], **_: object) -> CompletedProcess[str]:
        commands.append(command[3:])
        figures = some_figures("a", engine=engine_named(command[4]))
        return CompletedProcess(command, 0, figures_to_json(figures), "")

    monkeypatch.setattr(subprocess, "run", done)
    bench_command("a", "--all-engines", "--threads", "3")

    assert commands == [["a", "actors"], ["a", "direct"], ["a", "threads", "3"]]


def test_threads_of_another_engine_are_refused(ran: Ran) -> None:
    """Rather than ignored; and so is a number that makes no sense."""
    for arguments, words in (
        (["--threads", "2"], "--threads is for the engine threads, not for actors"),
        (["--engine", "threads", "--threads", "0"], "Invalid value for '--threads'"),
    ):
        status, _, stderr = bench_command("a", *arguments)
        assert (2, []) == (status, ran)
        assert words in stderr


def test_an_unknown_engine_is_refused(ran: Ran) -> None:
    """As other commands do."""
    status, _, stderr = bench_command("a", "--engine", "warp")

    assert (2, []) == (status, ran)
    assert "licorne bench: engine 'warp' is unknown, there are actors, direct, threads\n" == stderr


def test_repeat_runs_each_so_often(ran: Ran) -> None:
    """Three times the same."""
    bench_command("b", "--repeat", "3")

    assert ran == [("b", "actors")] * 3


def test_an_unknown_name_runs_nothing(ran: Ran) -> None:
    """The error asks whether another name was meant, also where a known one stands beside it."""
    status, _, stderr = bench_command("u500", "a_fif")

    assert status == 2
    assert "unknown workload 'a_fif': did you mean a_fifo?" in stderr
    assert ran == []


def test_names_beside_all_are_refused(ran: Ran) -> None:
    """It would not be clear which of the two was meant."""
    status, _, stderr = bench_command("--all", "u500")

    assert status == 2
    assert "--all runs every workload; leave out u500" in stderr
    assert ran == []


def test_json_is_all_there_is_on_standard_output(ran: Ran) -> None:
    """Progress goes to standard error."""
    _, stdout, stderr = bench_command("u500", "u5000", "--json")

    assert [run["workload"] for run in json.loads(stdout)["runs"]] == [name for name, _ in ran]
    assert "u5000 on actors (2 of 2)" in stderr


def test_tables_are_written_by_default(ran: Ran) -> None:
    """The pace is in them."""
    _, stdout, _ = bench_command("u500")

    assert ran
    assert "Pace" in stdout
    assert "20,000" in stdout


def test_a_run_without_figures_ends_the_command_with_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message is the one of the run, without a traceback."""

    def fail(workload: BenchWorkload, engine: EngineName, *, threads: int | None) -> Figures:  # noqa: ARG001 - as the real one
        raise BenchError(f"{workload.name} on {engine}: no node came")

    monkeypatch.setattr(run, "run_in_process_of_its_own", fail)
    status, _, stderr = bench_command("u500")

    assert status == 1
    assert stderr.strip() == "Error: u500 on actors: no node came"
