"""The programs of the README run as they stand there, and print what it says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from support.programs import run_python

README: Final = Path(__file__).parents[2] / "README.md"
LINES_MAX: Final = 20
FIRST_SCREEN_LINES: Final = 50
PICTURE_BYTES_MAX: Final = 100_000


def blocks_of(text: str, language: str, *, with_text: str) -> list[str]:
    """Return the blocks of a page in a language that contain a text."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return [block for block in blocks if with_text in block]


def the_block(language: str, *, with_text: str) -> str:
    """Return the one block of the first screen of the README that contains a text."""
    lines = README.read_text(encoding="utf-8").splitlines(keepends=True)
    (block,) = blocks_of("".join(lines[:FIRST_SCREEN_LINES]), language, with_text=with_text)
    return block


def test_the_first_screen_embeds_the_scheduler_in_twenty_lines(tmp_path: Path) -> None:
    """In a process of its own, which prints what is said, ends by itself and complains of nothing."""
    program = the_block("python", with_text="Scheduler(")

    ran = run_python("-W", "error", "-c", program, folder=tmp_path)

    assert sum(1 for line in program.splitlines() if line) <= LINES_MAX
    assert (0, "") == (ran.returncode, ran.stderr)
    assert ran.stdout == program.partition("# prints: ")[2]


def test_the_first_screen_shows_what_the_lock_checker_finds(tmp_path: Path) -> None:
    """Each line that is shown is in the report; `[...]` stands for what is left out of a line."""
    (tmp_path / "bank.py").write_text(the_block("python", with_text="licorne.lockcheck"), encoding="utf-8")
    command, *shown = the_block("text", with_text="bank.py").splitlines()

    ran = run_python(
        "-W", "error", "-m", *command.removeprefix("$ ").partition("#")[0].split(), folder=tmp_path
    )

    assert 1 == ran.returncode
    said = ran.stderr.splitlines()
    for line in shown:
        start = line.removesuffix("[...]")
        assert [found for found in said if found == line or (start != line and found.startswith(start))], line


def test_the_first_screen_shows_small_pictures() -> None:
    """A page that loads slowly is no first screen."""
    text = "".join(README.read_text(encoding="utf-8").splitlines(keepends=True)[:FIRST_SCREEN_LINES])
    sizes = [(README.parent / path).stat().st_size for path in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text)]

    assert sizes
    assert max(sizes) <= PICTURE_BYTES_MAX


def test_only_blocks_of_the_language_with_the_text_are_examples() -> None:
    """Shell commands and other Python are passed over."""
    page = "```sh\nScheduler(\n```\n```python\n1\n```\n```python\nwith Scheduler() as s:\n    ...\n```\n"

    assert ["with Scheduler() as s:\n    ...\n"] == blocks_of(page, "python", with_text="Scheduler(")
