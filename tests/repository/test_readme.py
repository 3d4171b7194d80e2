"""The README's example of embedding runs as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

README: Final = Path(__file__).parents[2] / "README.md"
LINES_MAX: Final = 20
TIMEOUT_SECONDS: Final = 30


def embedding_examples(text: str) -> list[str]:
    """Return the Python blocks of a page that make a scheduler."""
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return [block for block in blocks if "Scheduler(" in block]


def the_example() -> str:
    """Return the one example of the README."""
    (example,) = embedding_examples(README.read_text(encoding="utf-8"))
    return example


def test_the_readme_embeds_the_scheduler_in_twenty_lines() -> None:
    """There is one such example, and it is short."""
    lines = [line for line in the_example().splitlines() if line.strip()]

    assert len(lines) <= LINES_MAX


def test_the_example_of_the_readme_runs(tmp_path: Path) -> None:
    """In a process of its own, which ends by itself and complains of nothing."""
    ran = subprocess.run(  # noqa: S603 - our own example, by our own interpreter
        [sys.executable, "-W", "error", "-c", the_example()],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )

    assert (0, "") == (ran.returncode, ran.stderr)


def test_only_python_blocks_that_make_a_scheduler_are_examples() -> None:
    """Shell commands and other Python are passed over."""
    page = "```sh\nScheduler(\n```\n```python\n1\n```\n```python\nwith Scheduler() as s:\n    ...\n```\n"

    assert ["with Scheduler() as s:\n    ...\n"] == embedding_examples(page)
