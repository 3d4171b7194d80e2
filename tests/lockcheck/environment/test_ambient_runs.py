"""Processes that are steered because the environment says so."""

from __future__ import annotations

import os
from pathlib import Path

from support.lockcheck.recorded_programs import JOINS, crossed_program
from support.programs import run_python, written

from licorne.lockcheck import Rung
from licorne.lockcheck.findings.json_files import read_witness

AND_FORKS = "if os.fork() == 0: raise SystemExit\nos.wait()\n"


def run(folder: Path, *, in_turn: bool = False, **environment: str) -> str:
    """Run a program that forks at its end; return what it says on standard error.

    Its threads run one after the other unless they are steered; with `in_turn` they do in any case.
    """
    text = crossed_program(rest=JOINS + AND_FORKS)
    program = written(
        folder, text.replace("one_by_one()\n", "_thread.allocate_lock()\n") if in_turn else text
    )
    ran = run_python(program, folder=folder, environment={**os.environ, **environment})
    assert 0 == ran.returncode
    return ran.stderr


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
    said = run(tmp_path, in_turn=True, LOCKCHECK="confirm", LOCKCHECK_WITNESS=str(path))

    assert "lockcheck: not confirmed: a cycle of 2 steps" in said
    assert "  - three never took a lock of these classes" in said
