"""Each dependency has its reason on the page of dependencies, and the page names no others."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PAGE: Final = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
NOT_FROM_PYPI: Final = {"chromium", "slapd", "prometheus", "etcd", "go"}


def names(requirements: Iterable[str]) -> set[str]:
    """Return the names of the packages in a list of requirements, in lower case."""
    return {re.split(r"[^\w-]", requirement)[0].lower() for requirement in requirements}


def named_in(heading: str) -> set[str]:
    """Return the packages in the first column of the table below a heading, in lower case."""
    table = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (?!-)(.+?) \|", table, re.MULTILINE)[1:]
    words = re.sub(r"\]\([^)]*\)|\([^)]*\)|\[", "", ", ".join(cells))
    return {word.strip().lower() for word in words.split(",")}


def test_what_every_user_installs_has_its_reason() -> None:
    """And what is no dependency any more has no row."""
    assert names(PROJECT["project"]["dependencies"]) == named_in("At run time")


def test_what_an_extra_brings_has_its_reason() -> None:
    """Each with the extra that brings it; one extra may name another."""
    extras = PROJECT["project"]["optional-dependencies"].values()

    assert names(package for extra in extras for package in extra) - {"licorne"} == named_in("Extras")


def test_what_developers_install_has_its_reason() -> None:
    """Five programs are in no index of Python."""
    assert names(PROJECT["dependency-groups"]["dev"]) == named_in("For development") - NOT_FROM_PYPI
