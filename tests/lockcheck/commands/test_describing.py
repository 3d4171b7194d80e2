"""Locks of other libraries that a project describes, checked in a program as it is."""

from __future__ import annotations

from pathlib import Path

import fasteners
import pytest
from support.lockcheck.pytest_runs import run_module, run_pytest

from licorne.lockcheck.commands.command import main
from licorne.lockcheck.findings.terms import CLEAN, FOUND, USAGE

PROJECT = """
[[tool.lockcheck.describe]]
class = "fasteners.ReaderWriterLock"
read = ["read_lock", ["acquire_read_lock", "release_read_lock"]]
write = "write_lock"
reentrant = true
"""
PROGRAM = """
import threading
import fasteners

def test_opposite_orders():
    users, groups = fasteners.ReaderWriterLock(), fasteners.ReaderWriterLock()

    def nested(first, second):
        with first.write_lock(), second.write_lock():
            pass

    went = threading.Semaphore(0)
    for pair in ((users, groups), (groups, users)):
        threading.Thread(target=lambda: (nested(*pair), went.release())).start()
        went.acquire()

if __name__ == "__main__":
    test_opposite_orders()
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the settings of a project whose program takes two locks in opposite orders."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "opposite.py").write_text(PROGRAM, "utf-8")
    settings = tmp_path / "pyproject.toml"
    settings.write_text("", "utf-8")
    return settings


@pytest.mark.lockcheck(off=True)
def test_an_unchanged_program_is_checked_as_its_project_describes_its_locks(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The class is as it was afterwards."""
    before = dict(vars(fasteners.ReaderWriterLock))
    without = main(["run", "opposite.py"])
    project.write_text(PROJECT, "utf-8")

    assert [CLEAN, FOUND] == [without, main(["run", "opposite.py"])]
    assert "users" in capsys.readouterr().err
    assert before == dict(vars(fasteners.ReaderWriterLock))


@pytest.mark.lockcheck(off=True)
@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ("describe = 3", "tool.lockcheck.describe: 3 is not a list of tables"),
        ("describe = [3]", "describe[0]: 3 is not a table"),
        ("describe = [{}]", "describe[0].class: None is not a class such as"),
        ('describe = [{class = "a.B", reads = "c"}]', "describe[0]: 'reads' is not a setting"),
        ('describe = [{class = "a.B", acquire = 3}]', "describe[0].acquire: 3 is not a name of a method"),
        ('describe = [{class = "a.B", read = [["a"]]}]', "describe[0].read: ['a'] is neither a method nor"),
        ('describe = [{class = "a.B", reentrant = 1}]', "describe[0].reentrant: 1 is neither true nor"),
        ('describe = [{class = "a.B", policy = "all"}]', "describe[0].policy: 'all' is neither writer"),
        (
            'describe = [{class = "no_such.B", read = "c"}]',
            "no_such.B: no_such cannot be imported",
        ),
        ('describe = [{class = "fasteners.B", read = "c"}]', "describe[0]: fasteners.B is not a class"),
        ('describe = [{class = "fasteners.ReaderWriterLock", read = "c"}]', "has no method 'c'"),
    ],
)
def test_a_wrong_description_is_refused_before_the_program_runs(
    settings: str, error: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error names the value, and where it is."""
    project.write_text(f"[tool.lockcheck]\n{settings}\n", "utf-8")

    assert USAGE == main(["run", "opposite.py"])
    assert error in capsys.readouterr().err


def test_pytest_checks_the_locks_that_the_project_describes(project: Path) -> None:
    """The test fails for the cycle, and a wrong description is said before any test runs."""
    without, _ = run_module(project.parent, PROGRAM, "--lockcheck=full")
    project.write_text(PROJECT, "utf-8")
    code, said = run_module(project.parent, PROGRAM, "--lockcheck=full")
    project.write_text("[tool.lockcheck]\ndescribe = 3\n", "utf-8")
    wrong = run_pytest(project.parent, PROGRAM, "--lockcheck=full")

    assert [0, 1] == [without, code]
    assert "R2 cycle" in said
    assert "tool.lockcheck.describe: 3 is not a list of tables" in wrong.stderr
    assert 4 == wrong.returncode
