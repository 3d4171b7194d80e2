"""The examples of docs/explain.md, and of docs/fair-share.md: the commands print what the page says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Final

import pytest
from support.proxy.page_examples import DOCS
from typer.testing import CliRunner

from licorne.proxy.shell.command_line import application

EXAMPLES: Final = DOCS.parent / "examples" / "explain"
_BLOCK: Final = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)
SHOWN: Final = [
    block
    for page in ("explain.md", "fair-share.md")
    for block in _BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))
]


@pytest.mark.parametrize("shown", SHOWN, ids=lambda shown: shlex.split(shown)[5])
def test_an_example_prints_what_the_page_says(shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command of it, character for character."""
    monkeypatch.chdir(EXAMPLES)

    printed = ""
    for line in shown.splitlines():
        if line.startswith("$ licorne "):
            result = CliRunner().invoke(application, shlex.split(line)[2:])
            assert (0, "") == (result.exit_code, result.stderr)
            printed += f"{line}\n{result.stdout}"

    assert shown == printed


def test_the_pages_show_every_example() -> None:
    """One that is not found would not be tested."""
    used = {Path(word).name for block in SHOWN for word in re.findall(r"[\w-]+\.(?:yaml|jsonl)\b", block)}

    assert {path.name for path in EXAMPLES.iterdir()} == used
