"""The example of a comparison in docs/simulation.md is true: the command says what the page says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest
from support.proxy.comparisons import compared
from support.proxy.page_examples import DOCS
from support.proxy.simulation_builders import written

_SECTION: Final = re.compile(r"^## Comparing two configurations\n(.*?)^## ", re.DOTALL | re.MULTILINE)
_BLOCK: Final = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_COMMAND: Final = re.compile(r"^    licorne compare (.+)$", re.MULTILINE)


def test_a_comparison_says_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files of the page, its command, and its output."""
    section = _SECTION.search((DOCS / "simulation.md").read_text(encoding="utf-8"))
    assert section is not None
    command, blocks = _COMMAND.search(section[1]), _BLOCK.findall(section[1])
    assert command is not None
    assert ["yaml", "yaml", "yaml", "text"] == [kind for kind, _ in blocks]
    for name, (_, text) in zip(("morning.yaml", "now.yaml", "next.yaml"), blocks, strict=False):
        written(tmp_path / name, text)
    monkeypatch.chdir(tmp_path)

    result = compared(*command[1].split())

    assert (0, blocks[3][1]) == (result.exit_code, result.stdout)
