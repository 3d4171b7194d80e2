"""The examples of docs/explain.md, and of other pages of its form: the commands print what the page says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from typer.testing import CliRunner

from licorne.proxy.shell.command_line import application

DOCS: Final = Path(__file__).parents[3] / "docs"
PAGES: Final = (DOCS / "explain.md", DOCS / "fair-share.md")
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
    """Return all examples of the pages."""
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    return [Example(*match.groups()) for text in texts for match in _EXAMPLE.finditer(text)]


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


def test_the_pages_have_their_examples() -> None:
    """One that is not found would not be tested."""
    assert [
        "Everything at once",
        "Rejected",
        "A preemption, from both sides",
        "Where would it go?",
        "Who had the cluster yesterday",
        "Who keeps it back",
    ] == [example.name for example in examples()]
