"""The page of decisions: every quirk of the recorded core that was marked has its row there.

The description of the recorded core is no part of this repository, so its marks are listed here.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

PAGE: Final = Path(__file__).parents[2] / "docs" / "decisions.md"
VERDICTS: Final = ("kept", "mended", "not built", "does not arise", "do not arise", "callbacks kept", "see §")

MARKS: Final = {
    "0": ("singletons of the process",),
    "1.4": ("division by zero",),
    "2.5": ("streams by host",),
    "2.6": ("dry run", "spelling of root", "maximum of the root", "queues called root"),
    "3.1": ("inherited template",),
    "3.3": ("quota tags",),
    "3.4": ("starting applications",),
    "3.6": ("properties of dynamic queues",),
    "3.8": ("blanks in lists", "names with colons"),
    "5.3": ("counter of allocations",),
    "5.7": ("counter of reservations", "cordoned reserved node"),
    "5.9": ("logged count", "room of outstanding asks"),
    "6.1": ("start time",),
    "6.2": ("removed applications",),
    "6.4": ("duplicate ids", "map without lock", "counter of placeholders"),
    "6.6": ("placeholder without group", "resize without score"),
    "6.7": ("usage at release of all",),
    "7.3": ("timeout with unknown group",),
    "7.4": ("confirmation without link",),
    "8.2": ("free room not credited", "victims not marked"),
    "8.4": ("read without lock",),
    "8.5": ("ancestors by text", "deadlock"),
    "8.6": ("mixed change", "first maximum", "wrong order", "released victims", "results", "below guarantee"),
    "9.1": ("forced without user", "one cache", "escaping", "group attribute", "odd answers"),
    "9.2": ("capitals", "two partitions", "usage wiped"),
    "10.1": ("unusable rules",),
    "10.2": ("queue without dot", "recovery queue by name"),
    "10.4": ("qualified by prefix",),
    "10.5": ("Deny",),
    "11.2": ("event of a rejected node",),
    "11.4": ("replacing what is not there",),
    "11.5": ("moved foreign allocation", "foreign allocations of a removed node"),
    "11.6": ("released placeholder",),
    "12.5": ("release without node",),
    "14.2": ("event of the root's maximum",),
    "14.3": ("recent events", "tracking again"),
    "15.3": ("start time", "utilisation"),
    "16": ("containers of queues",),
    "18.4": ("table read", "table changed"),
}
"""Section of the description -> its marks, in its order."""


@pytest.fixture(scope="module")
def rows() -> dict[str, list[tuple[str, list[str]]]]:
    """Return the rows of the page: heading -> first cell and the other cells of each row."""
    found: dict[str, list[tuple[str, list[str]]]] = {}
    heading = ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            heading = line.removeprefix("## ")
        elif line.startswith("| "):
            first, *others = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            found.setdefault(heading, []).append((first, others))
    return found


@pytest.mark.parametrize("section", MARKS)
def test_a_section_has_a_row_for_each_of_its_marks(
    rows: dict[str, list[tuple[str, list[str]]]], section: str
) -> None:
    """No quirk goes without a decision."""
    counted = Counter(first for table in rows.values() for first, _ in table)

    assert len(MARKS[section]) <= counted[section], f"marks: {MARKS[section]}"


@pytest.mark.parametrize(("start", "count"), [("The list of known defects", 17), ("Where the published", 18)])
def test_a_numbered_list_is_decided_from_its_first_to_its_last_entry(
    rows: dict[str, list[tuple[str, list[str]]]], start: str, count: int
) -> None:
    """The defects that were found by reading, and where documentation and core disagree."""
    (table,) = [table for heading, table in rows.items() if heading.startswith(start)]

    assert [str(number) for number in range(1, count + 1)] == [first for first, _ in table if first != "no."]


def test_every_decision_is_one_of_a_few_words(rows: dict[str, list[tuple[str, list[str]]]]) -> None:
    """Kept, mended, not built, or nothing to decide; what follows is the reason."""
    decided = [
        (first, others[1])
        for heading, table in rows.items()
        if heading != "Decisions that have no mark"
        for first, others in table
        if re.match(r"\d", first)
    ]

    assert [] == [(first, verdict) for first, verdict in decided if not verdict.startswith(VERDICTS)]
