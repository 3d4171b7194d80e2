"""The changelog has the form of Keep a Changelog, and begins with what is not released yet."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

TEXT: Final = (Path(__file__).parents[2] / "CHANGELOG.md").read_text(encoding="utf-8")
KINDS: Final = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security", "Known limits"}


def test_the_first_section_is_what_is_not_released_and_the_others_are_versions_with_a_date() -> None:
    """A reader sees at once what the last release does not have."""
    first, *others = re.findall(r"^## (.+)$", TEXT, re.MULTILINE)

    assert "Unreleased" == first
    assert [] == [title for title in others if not re.fullmatch(r"\d+\.\d+\.\d+ - \d{4}-\d\d-\d\d", title)]


def test_changes_are_grouped_by_their_kind() -> None:
    """By the kinds of Keep a Changelog, and the limits that a user has to know."""
    assert set() == set(re.findall(r"^### (.+)$", TEXT, re.MULTILINE)) - KINDS
