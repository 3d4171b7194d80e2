"""Names of code in texts: each that stands in backticks is a name that the repository has."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
ROOMS: Final = ("actors", "docs", "examples", "lockcheck", "model", "proxy", "tests")
SOURCES: Final = (".py", ".pyi", ".toml", ".yaml", ".proto", ".html", ".json", "Makefile")
FOREIGN: Final = {"cl_zewura", "foreign_allocations", "queue_container"}
"""Names of others: of a log that is published, of files of the recorded core."""

_TICKED: Final = re.compile(r"`[^`\n]*`")
_NAME: Final = re.compile(r"(?<!\w)_?[a-z]+(?:_[a-z0-9]+)+(?!\w)")
"""Words joined by underscores: what has none may be a word of the language."""


def files(*ends: str) -> list[Path]:
    """Return the files of the checkout with these ends, without recorded material."""
    inside = [path for room in ROOMS for path in (ROOT / room).rglob("*") if path.is_file()]
    paths = [*(path for path in ROOT.iterdir() if path.is_file()), *inside]
    recorded = ROOT / "tests" / "conformance"
    return [path for path in paths if path.name.endswith(ends) and recorded not in path.parents]


@cache
def names() -> set[str]:
    """Return all words of the code, and the names of its files; what stands in backticks does not count."""
    found = {part for path in files("") for part in re.split(r"\W", path.name)}
    for path in files(*SOURCES):
        found.update(re.findall(r"\w+", _TICKED.sub("", path.read_text(encoding="utf-8"))))
    return found


def unknown_names(text: str) -> list[str]:
    """Return the names in the backticks of a text that the repository does not have."""
    ticked = " ".join(_TICKED.findall(text))
    return [name for name in _NAME.findall(ticked) if name not in names() and name not in FOREIGN]


@pytest.mark.parametrize("kind", [".md", ".py"])
def test_a_name_in_backticks_exists(kind: str) -> None:
    """A module or a function that was renamed leaves its old name in pages and docstrings."""
    unknown = {
        str(path.relative_to(ROOT)): found
        for path in files(kind)
        if (found := unknown_names(path.read_text(encoding="utf-8")))
    }

    assert {} == unknown


def test_a_name_that_left_is_found() -> None:
    """Names without underscores may be words, and are left alone."""
    gone = "eman_hcus_on"[::-1]  # So that this file does not have it either.

    assert [gone] == unknown_names(f"see `{gone}` and `words`, no_{gone}, `unknown_names()`")
