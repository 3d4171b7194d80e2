"""The examples of docs/explain.md: the commands print what the page says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from typer.testing import CliRunner

from licorne.proxy.command_line import application

PAGE: Final = Path(__file__).parents[3] / "docs" / "explain.md"
_EXAMPLE: Final = re.compile(
    r"^### ([^\n]+)\n(?:(?!^#).)*?"
    r"^```yaml\n(.*?)^```\n\n^```jsonl\n(.*?)^```\n\n^```text\n(.*?)^```",
    re.DOTALL | re.MULTILINE,
)


class Example(NamedTuple):
    """One example of the page."""

    name: str
    queues: str
    said: str
    shown: str


def examples() -> list[Example]:
    """Return all examples of the page."""
    return [Example(*match.groups()) for match in _EXAMPLE.finditer(PAGE.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.name)
def test_an_example_prints_what_the_page_says(
    example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every command of it, character for character."""
    (tmp_path / "queues.yaml").write_text(example.queues, encoding="utf-8")
    (tmp_path / "day.jsonl").write_text(example.said, encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    printed = ""
    for line in example.shown.splitlines():
        if line.startswith("$ licorne "):
            result = CliRunner().invoke(application, shlex.split(line)[2:])
            assert (0, "") == (result.exit_code, result.stderr)
            printed += f"{line}\n{result.stdout}"

    assert example.shown == printed


def test_the_page_has_its_examples() -> None:
    """One that is not found would not be tested."""
    assert [
        "Everything at once",
        "Rejected",
        "A preemption, from both sides",
        "Where would it go?",
    ] == [example.name for example in examples()]
