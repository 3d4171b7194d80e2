"""Processes that record themselves or are steered because the environment says so."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.lockcheck.recorded_programs import JOINS, crossed_program
from support.programs import run_python, written

from licorne.lockcheck import Rung
from licorne.lockcheck.commands.command import main
from licorne.lockcheck.findings.json_files import read_witness
from licorne.lockcheck.findings.terms import FOUND

AND_FORKS = "if os.fork() == 0: raise SystemExit\nos.wait()\n"


def run(folder: Path, **environment: str) -> str:
    """Run a program that forks at its end; return what it says on standard error."""
    program = written(folder, crossed_program(rest=JOINS + AND_FORKS))
    ran = run_python(program, folder=folder, environment={**os.environ, **environment})
    assert 0 == ran.returncode
    return ran.stderr


def test_a_process_records_itself_until_it_ends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The trace is closed, by the process that began it and not by the one that it forks."""
    said = run(tmp_path, LOCKCHECK="record", LOCKCHECK_TRACE="of-%p.lct")
    (path,) = tmp_path.glob("of-*.lct")

    assert f"locks are recorded to {path.name}" in said
    assert FOUND == main(["analyze", str(path)])
    output = capsys.readouterr().out
    assert "1 deadlock predicted" in output
    assert "note:" not in output


def test_a_process_writes_witnesses_of_what_it_found_and_is_steered_to_one(tmp_path: Path) -> None:
    """Where the variable names a file, that is what it is steered to."""
    said = run(tmp_path, LOCKCHECK="confirm")
    (path,) = (tmp_path / "lockcheck-witnesses").glob("*.json")

    assert 1 == said.count("a witness was written to lockcheck-witnesses/")
    assert Rung.R2 is read_witness(path).rung
    assert "R4 cycle" in run(tmp_path, LOCKCHECK="confirm", LOCKCHECK_WITNESS=str(path))
    assert Rung.R4 is read_witness(path).rung


def test_a_process_says_why_nothing_came_of_steering_it(tmp_path: Path) -> None:
    """Here the witness is of other threads."""
    run(tmp_path, LOCKCHECK="confirm")
    (path,) = (tmp_path / "lockcheck-witnesses").glob("*.json")
    path.write_text(path.read_text("utf-8").replace('"role": "one"', '"role": "three"'), "utf-8")
    said = run(tmp_path, LOCKCHECK="confirm", LOCKCHECK_WITNESS=str(path))

    assert "lockcheck: not confirmed: a cycle of 2 steps" in said
    assert "  - three never took a lock of these classes" in said
