"""The programs in the documents for embedders run as they stand there, and print what the page says."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Final, NamedTuple

import pytest
from support.programs import forking_python

DOCS: Final = Path(__file__).parents[2] / "docs"
PAGES: Final = (
    "embedding.md",
    "asyncio.md",
    "configuration.md",
    "explain.md",
    "recovery.md",
    "policies.md",
    "notebooks.md",
)

Run = Callable[[str, Path], CompletedProcess[str]]

_BLOCK: Final = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)


class Program(NamedTuple):
    """One block of Python, and what it prints; `None` where the page does not say."""

    code: str
    output: str | None


def programs(text: str) -> list[Program]:
    """Return the blocks of Python of a page, each with the block of text right behind it."""
    return [Program(match[1], match[2]) for match in _BLOCK.finditer(text)]


PROGRAMS: Final = {page: programs((DOCS / page).read_text(encoding="utf-8")) for page in PAGES}


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    """Return what runs a program where the scheduler has been imported already."""
    with forking_python("from licorne import Scheduler") as run:
        yield run


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(program, id=f"{page}-{number}")
        for page, found in PROGRAMS.items()
        for number, program in enumerate(found, start=1)
    ],
)
def test_a_program_in_a_document_prints_what_the_page_says(
    program: Program, run: Run, tmp_path: Path
) -> None:
    """In a process of its own, which ends by itself and complains of nothing."""
    ran = run(program.code, tmp_path)

    expected = ran.stdout if program.output is None else program.output
    assert (0, "", expected) == (ran.returncode, ran.stderr, ran.stdout)


def test_the_tutorial_has_programs_on_both_engines() -> None:
    """A page without programs would pass every test above."""
    codes = "".join(program.code for program in PROGRAMS["embedding.md"])

    assert "Scheduler()" in codes
    assert 'Scheduler(engine="direct")' in codes


def test_a_program_is_read_with_the_output_behind_it() -> None:
    """Output elsewhere belongs to no program, and other languages are no programs."""
    with_output = "```python\na\n```\n\n```text\nb\n```\n"
    without = "```sh\nc\n```\n\n```python\nd\n```\nwords\n\n```text\ne\n```\n"
    page = f"{with_output}\nwords\n\n{without}"

    assert [Program("a\n", "b\n"), Program("d\n", None)] == programs(page)
