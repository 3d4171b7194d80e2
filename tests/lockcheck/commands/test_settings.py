"""What is quiet: blocking calls under locks are reported and fail where that is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.lockcheck.pytest_runs import run_module

from licorne.lockcheck import LockUsageError, Rung
from licorne.lockcheck.commands.command import main
from licorne.lockcheck.commands.settings import ProjectSettings, blocking_rules, project_settings
from licorne.lockcheck.findings.terms import CLEAN, DEFAULT_FAIL_ON, FOUND, USAGE, failing_from, failing_of

BLOCKS = """
import time
from licorne.lockcheck import Lock

def test_blocks():
    with Lock("archive"):
        time.sleep(1e-9)

test_blocks()
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a program that sleeps under a lock, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("", "utf-8")
    (tmp_path / "prog.py").write_text(BLOCKS, "utf-8")
    return "prog.py"


def test_a_blocking_call_under_a_lock_is_reported_and_does_not_fail(
    program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only where that rung is named."""
    codes = [
        main(["run", program]),
        main(["run", "--fail-on=R2,RB", program]),
        main(["run", "--fail-on=RB", program]),
    ]

    assert [CLEAN, FOUND, FOUND] == codes
    assert 3 == capsys.readouterr().err.count("May block others: sleep may block while archive")


def test_a_rule_of_the_command_line_or_of_the_project_allows_a_kind(
    program: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """For a class, or for all of them; others are still reported."""
    main(["run", "--blocking=archive=file,sleep", program])
    allowed = capsys.readouterr().err
    main(["run", "--blocking=archive=file", program])
    other = capsys.readouterr().err
    settings = '[tool.lockcheck]\nfail_on = "RB"\n[tool.lockcheck.blocking]\n"*" = ["sleep"]\n'
    (tmp_path / "pyproject.toml").write_text(settings, "utf-8")

    assert CLEAN == main(["run", program])
    assert "RB " not in allowed
    assert "RB " in other


def test_a_project_says_which_rungs_fail(program: str, tmp_path: Path) -> None:
    """The command line overrides it."""
    (tmp_path / "pyproject.toml").write_text('[tool.lockcheck]\nfail_on = "R2,RB"\n', "utf-8")

    assert FOUND == main(["run", program])
    assert CLEAN == main(["run", "--fail-on=R2", program])


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[tool.lockcheck]\nfail_on = 3", "fail_on: 3 is not a text"),
        ('[tool.lockcheck]\nfail_on = "R9"', "fail_on: 'R9': 'R9' is not a rung"),
        ("[tool.lockcheck]\nblocking = 3", "blocking: 3 is not a table"),
        ("[tool.lockcheck.blocking]\na = 3", "blocking.a: 3 is not a list"),
        ("[tool.lockcheck]\nblokcing = 3", "'blokcing' is not a setting"),
        ("[tool]\nlockcheck = 3", "tool.lockcheck: 3 is not a table"),
        ("[", "no TOML"),
    ],
)
def test_a_wrong_setting_is_refused_before_the_program_runs(
    program: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, complaint: str
) -> None:
    """With the file, the setting and the value."""
    (tmp_path / "pyproject.toml").write_text(text, "utf-8")

    assert USAGE == main(["run", program])
    said = capsys.readouterr().err
    assert complaint in said
    assert str(tmp_path / "pyproject.toml") in said


def test_a_folder_without_a_project_has_the_defaults(tmp_path: Path) -> None:
    """And a rule that is none is refused."""
    with pytest.raises(LockUsageError, match="--blocking: 'archive' is not a rule"):
        blocking_rules(["archive"], "--blocking")
    empty = tmp_path / "a"
    empty.mkdir()
    (tmp_path / "pyproject.toml").write_text("[project]\n", "utf-8")

    assert ProjectSettings() == project_settings(empty)


def test_the_rungs_that_fail_are_those_from_the_lowest_named_on() -> None:
    """R0 always does; RB only where it is named."""
    assert DEFAULT_FAIL_ON == failing_of("R2") == failing_of("r0")
    assert DEFAULT_FAIL_ON | {Rung.RB} == failing_of("RB") == failing_of("R2, RB")
    assert set(Rung) - {Rung.RB} == failing_of("R1")
    assert {Rung.R0, Rung.R4, Rung.R5} == failing_from(Rung.R4)


def test_under_pytest_a_blocking_call_is_listed_at_the_end(tmp_path: Path) -> None:
    """The test passes; the ini file has rules, and says which rungs fail."""
    module = BLOCKS.removesuffix("test_blocks()\n")
    code, said = run_module(tmp_path, module, "--lockcheck=full")
    strict, _ = run_module(tmp_path, module, "--lockcheck=full", "-o", "lockcheck_fail_on=R2,RB")
    (tmp_path / "pytest.ini").write_text("[pytest]\nlockcheck_blocking =\n    archive=sleep\n", "utf-8")
    allowed, quiet = run_module(tmp_path, module, "--lockcheck=full", "--lockcheck-fail-on=RB")

    assert [0, 1, 0] == [code, strict, allowed]
    assert "found 1 at RB" in said
    assert "sleep may block while archive" in said
    assert "found nothing" in quiet


def test_a_baseline_is_written_with_reasons_to_fill_in(
    tmp_path: Path, program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each entry has the finding, its place and a last day; one that was there keeps its reason."""
    main(["run", "--json=r.json", program])
    written = main(["baseline", "--fail-on=RB", "--expires=2999-01-31", "r.json"])
    text = (tmp_path / "lockcheck.toml").read_text("utf-8")
    (tmp_path / "lockcheck.toml").write_text(
        text.replace("TODO: why this is accepted", "it is short"), "utf-8"
    )
    main(["baseline", "--fail-on=RB", "r.json"])
    kept = (tmp_path / "lockcheck.toml").read_text("utf-8")
    capsys.readouterr()

    assert CLEAN == written
    assert "# May block others: sleep may block" in text
    assert "prog.py:7 in test_blocks: time.sleep(1e-9)" in text
    assert text.replace("TODO: why this is accepted", "it is short") == kept
    assert CLEAN == main(["run", "--fail-on=RB", "--baseline=lockcheck.toml", program])
    assert "Accepted by lockcheck.toml: 1." in capsys.readouterr().err


def test_a_baseline_without_reasons_is_accepted_and_said(
    tmp_path: Path, program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is a start."""
    main(["run", "--json=r.json", program])
    main(["baseline", "--fail-on=RB", "--into=known.toml", "r.json"])

    assert CLEAN == main(["run", "--fail-on=RB", "--baseline=known.toml", program])
    assert "known.toml: 1 accepted without a reason" in capsys.readouterr().err
    assert USAGE == main(["baseline", "--expires=soon", "r.json"])
    assert "--expires: 'soon' is not a day" in capsys.readouterr().err
    assert not (tmp_path / "lockcheck.toml").exists()
