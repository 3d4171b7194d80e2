"""The programs of the README run as they stand there, and print what it says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Final

import pytest
from support.programs import run_python
from typer.testing import CliRunner

from licorne.proxy.shell.command_line import application

README: Final = Path(__file__).parents[2] / "README.md"
DOORS: Final = 4
COMMANDS_A_DOOR: Final = 3
LINES_MAX: Final = 20
FIRST_SCREEN_LINES: Final = 50
PICTURE_BYTES_MAX: Final = 100_000


def blocks_of(text: str, language: str, *, with_text: str) -> list[str]:
    """Return the blocks of a page in a language that contain a text."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return [block for block in blocks if with_text in block]


def the_block(language: str, *, with_text: str) -> str:
    """Return the one block of the README that contains a text."""
    (block,) = blocks_of(README.read_text(encoding="utf-8"), language, with_text=with_text)
    return block


def first_screen() -> str:
    """Return what a reader sees of the README without scrolling far."""
    return "".join(README.read_text(encoding="utf-8").splitlines(keepends=True)[:FIRST_SCREEN_LINES])


def doors() -> list[list[str]]:
    """Return the commands of each door, without comments."""
    section = first_screen().partition("## Where to begin")[2].partition("\n## ")[0]
    return [
        [line.partition(" # ")[0].strip() for line in door.splitlines() if line.startswith("    ")]
        for door in section.split("\n**")[1:]
    ]


RUN_HERE: Final = [
    line
    for door in doors()
    for line in door
    if line.startswith(("licorne validate", "licorne simulate", "licorne compare"))
]
"""Commands of the doors that need neither a cluster nor a server: other tests run those, and lockcheck's."""


def test_the_first_screen_has_four_doors_with_three_commands_each() -> None:
    """Whoever comes with a cluster, a log, a program or a program that hangs has something to type."""
    assert [COMMANDS_A_DOOR] * DOORS == [len(door) for door in doors()]


@pytest.mark.parametrize("line", RUN_HERE)
def test_a_command_of_a_door_runs_in_a_checkout(
    line: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As printed, with the files of the checkout; what it writes goes elsewhere."""
    for name in ("examples", "deploy"):
        tmp_path.joinpath(name).symlink_to(README.parent / name)
    monkeypatch.chdir(tmp_path)

    ran = CliRunner().invoke(application, shlex.split(line)[1:])

    assert 0 == ran.exit_code, ran.output


def test_the_program_of_the_last_door_can_deadlock(tmp_path: Path) -> None:
    """Lockcheck finds it in a run that ends."""
    ran = run_python(
        "-m", "licorne.lockcheck", "run", str(README.parent / "examples" / "bank.py"), folder=tmp_path
    )

    assert 1 == ran.returncode
    assert "eadlock" in ran.stderr


def test_the_readme_embeds_the_scheduler_in_twenty_lines(tmp_path: Path) -> None:
    """In a process of its own, which prints what is said, ends by itself and complains of nothing."""
    program = the_block("python", with_text="Scheduler(")

    ran = run_python("-W", "error", "-c", program, folder=tmp_path)

    assert sum(1 for line in program.splitlines() if line) <= LINES_MAX
    assert (0, "") == (ran.returncode, ran.stderr)
    assert ran.stdout == program.partition("# prints: ")[2]


def test_the_readme_shows_what_the_lock_checker_finds(tmp_path: Path) -> None:
    """Each line that is shown is in the report; `[...]` stands for what is left out of a line.

    The numbers of locks may differ: they count what the libraries have made before.
    """
    (tmp_path / "bank.py").write_text(the_block("python", with_text="licorne.lockcheck"), encoding="utf-8")
    command, *shown = the_block("text", with_text="bank.py").splitlines()

    ran = run_python(
        "-W", "error", "-m", *command.removeprefix("$ ").partition("#")[0].split(), folder=tmp_path
    )

    assert 1 == ran.returncode
    said = re.sub(r"#\d+", "#", ran.stderr).splitlines()
    for line in (re.sub(r"#\d+", "#", each) for each in shown):
        start = line.removesuffix("[...]")
        assert [found for found in said if found == line or (start != line and found.startswith(start))], line


def test_the_first_screen_shows_small_pictures() -> None:
    """A page that loads slowly is no first screen."""
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", first_screen())
    sizes = [(README.parent / path).stat().st_size for path in pictures]

    assert sizes
    assert max(sizes) <= PICTURE_BYTES_MAX


def test_only_blocks_of_the_language_with_the_text_are_examples() -> None:
    """Shell commands and other Python are passed over."""
    page = "```sh\nScheduler(\n```\n```python\n1\n```\n```python\nwith Scheduler() as s:\n    ...\n```\n"

    assert ["with Scheduler() as s:\n    ...\n"] == blocks_of(page, "python", with_text="Scheduler(")
