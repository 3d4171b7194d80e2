"""The programs of the pages for embedders run on a server in another process, with one line changed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest
from support.programs import run_python
from support.proxy.processes import serving

PAGES: Final = ("embedding.md", "explain.md")
DOCS: Final = Path(__file__).parents[4] / "docs"
_BLOCK: Final = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)
_MADE: Final = re.compile(r'\bScheduler\((?:engine="(\w+)")?\)')


def _programs() -> list[tuple[str, str, str | None]]:
    """Return name, code and output of each program that makes a scheduler."""
    found = []
    for page in PAGES:
        text = (DOCS / page).read_text(encoding="utf-8")
        for number, match in enumerate(_BLOCK.finditer(text), start=1):
            if _MADE.search(match[1]):
                found.append((f"{page}-{number}", match[1], match[2]))
    return found


@pytest.mark.parametrize(
    ("code", "output"), [pytest.param(code, output, id=name) for name, code, output in _programs()]
)
def test_a_program_for_one_scheduler_runs_on_the_other(code: str, output: str | None, tmp_path: Path) -> None:
    """Only the line that makes the scheduler differs; it prints the same."""
    made = _MADE.search(code)
    assert made is not None
    with serving("--engine", made[1] or "actors") as server:
        remote = _MADE.sub(f'RemoteScheduler("{server.address}")', code, count=1)
        remote = f"from licorne import RemoteScheduler\n{remote}"
        ran = run_python("-W", "error", "-c", remote, folder=tmp_path)

    expected = ran.stdout if output is None else output
    assert (0, "", expected) == (ran.returncode, ran.stderr, ran.stdout)


def test_there_are_such_programs() -> None:
    """Pages without programs would pass the test above."""
    assert len(_programs()) > 5
