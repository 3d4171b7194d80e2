"""The example of a comparison in docs/simulation.md is true: the command says what the page says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Final

import pytest
from support.proxy.comparisons import compared
from support.proxy.page_examples import DOCS
from support.proxy.simulation_builders import written

_SECTION: Final = re.compile(r"^## Comparing two configurations\n(.*?)^## ", re.DOTALL | re.MULTILINE)
_BLOCK: Final = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_COMMAND: Final = re.compile(r"^    licorne compare (.+)$", re.MULTILINE)


@pytest.fixture
def section(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Write the files of the page into the folder of the test, and return the section."""
    found = _SECTION.search((DOCS / "simulation.md").read_text(encoding="utf-8"))
    assert found is not None
    files = [text for kind, text in _BLOCK.findall(found[1]) if kind == "yaml"]
    for name, text in zip(("morning.yaml", "now.yaml", "next.yaml"), files, strict=True):
        written(tmp_path / name, text)
    monkeypatch.chdir(tmp_path)
    return found[1]


def test_a_comparison_says_what_the_page_says(section: str) -> None:
    """The first command, with its output; then the one with conditions, with its errors; then the reasons."""
    shown = [text for kind, text in _BLOCK.findall(section) if kind == "text"]

    results = [compared(*shlex.split(command)) for command in _COMMAND.findall(section)]

    reasons = results[2].stdout.partition("why:\n")
    assert [0, 1, 0] == [result.exit_code for result in results]
    assert shown == [results[0].stdout, results[1].stderr, "".join(reasons[1:])]
