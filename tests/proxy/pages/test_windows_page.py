"""The examples of docs/windows.md: its configuration is valid, and its week is as the table shows."""

from __future__ import annotations

import re
from pathlib import Path

import yaml
from support.proxy.page_examples import DOCS
from typer.testing import CliRunner

from licorne.model.configuration.reader import inspect
from licorne.proxy.shell.command_line import application

PAGE = (DOCS / "windows.md").read_text(encoding="utf-8")
WEEK = DOCS.parent / "examples" / "windows" / "week.yaml"


def test_the_configuration_of_the_page_is_valid() -> None:
    (text,) = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    report = inspect(text)
    assert (report.errors, report.warnings) == ((), ())
    assert report.config is not None
    assert [window.name for window in report.config.partitions[0].windows] == ["firmware", "course"]


def test_the_week_of_the_page_is_simulated(tmp_path: Path) -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (\w+) \|$", PAGE, re.MULTILINE)
    without = yaml.safe_load(WEEK.read_text(encoding="utf-8"))
    del without["windows"]
    other = tmp_path / "week.yaml"
    other.write_text(yaml.safe_dump(without), encoding="utf-8")
    waits = [_longest_waits(WEEK), _longest_waits(other)]
    assert rows
    assert [(name, waits[0][name], waits[1][name]) for name, _, _ in rows] == rows


def _longest_waits(scenario: Path) -> dict[str, str]:
    """Return the longest wait of the tasks of each leaf."""
    printed = CliRunner().invoke(application, ["simulate", str(scenario)]).stdout
    rows = [line.split() for line in printed.splitlines() if line.startswith("root.")]
    return {row[0].removeprefix("root."): row[-1] for row in rows if len(row) > 5}


def test_explain_shows_the_windows_of_the_week() -> None:
    (command,) = re.findall(r"^\$ licorne (explain \S+) --input \S+ (--at \S+)$", PAGE, re.MULTILINE)
    words = [*command[0].split(), "--input", str(WEEK), *command[1].split()]
    printed = CliRunner().invoke(application, words).stdout
    assert "reserved for firmware from 2000-01-04 08:00 UTC; this needs 12h" in printed
