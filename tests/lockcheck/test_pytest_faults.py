"""Faults of the checker under pytest: the tests end as without it, and the run says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.lockcheck.pytest_runs import run_pytest

from licorne.lockcheck.findings.terms import FAULT

MODULE = """
from licorne.lockcheck import Lock

def test_nested():
    with Lock("first"), Lock("second"):
        pass

def test_that_fails():
    assert False
"""

BROKEN = """
import {module}

def broken(*_, **__):
    raise ZeroDivisionError("on purpose")

{module}.{name} = broken
"""

SAID = "a fault of its own, please report: ZeroDivisionError: on purpose\n"


@pytest.mark.parametrize(
    "name", ["_verdict", "_write", "_complaints", "blocking_lines", "counted", "MergedSummaries.add"]
)
def test_a_fault_of_the_plugin_changes_how_no_test_ends(tmp_path: Path, name: str) -> None:
    """It is said on standard error."""
    (tmp_path / "conftest.py").write_text(BROKEN.format(module="licorne.lockcheck.pytest_runs", name=name))
    ran = run_pytest(tmp_path, MODULE, "--lockcheck=full")

    assert ("1 failed, 1 passed", 1) == (ran.stdout.splitlines()[-1].partition(" in ")[0], ran.returncode)
    assert SAID in ran.stderr


@pytest.mark.parametrize(("selected", "code"), [("nested", FAULT), ("fails", 1)])
def test_a_fault_in_a_check_fails_no_test_but_the_run(tmp_path: Path, selected: str, code: int) -> None:
    """A run that was not checked is not clean; one that fails anyway fails as it does without."""
    module = "licorne.lockcheck.checking.slow_path"
    (tmp_path / "conftest.py").write_text(BROKEN.format(module=module, name="check_acquisition"))
    ran = run_pytest(tmp_path, MODULE, "--lockcheck=full", "--lockcheck-adopt=none", "-k", selected)

    assert code == ran.returncode
    said = "Faults of the checker: 1, the first: ZeroDivisionError: on purpose" in ran.stdout
    assert said == (code == FAULT)
