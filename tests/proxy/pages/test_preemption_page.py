"""The examples of docs/preemption.md are true: what the page says is what happens."""

from __future__ import annotations

from typing import Final

import pytest
from support.proxy.page_examples import DOCS, Example, Row, examples_of, explained, placed_in, replayed

EXAMPLES: Final = examples_of(DOCS / "preemption.md", ["yaml", "jsonl", "jsonl", "text"])


def in_short(row: Row) -> Row:
    """Keep what was placed where, and who was asked to go."""
    body = row.get("allocationResponse")
    if not isinstance(body, dict):
        return {}
    short = placed_in(body)
    if "released" in body:
        short["preempted"] = [entry["allocationKey"] for entry in body["released"]]
    return short


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_an_example_does_what_the_page_says(example: Example) -> None:
    """Every placement and every preemption, at the line that causes it, and no others."""
    assert example.done == replayed(example, in_short)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_an_example_is_explained_as_the_page_says(example: Example) -> None:
    """The log of the partition in sentences."""
    assert tuple(example.follows[1].splitlines()) == explained(example)


def test_the_page_has_ten_examples() -> None:
    """An example that is not found would not be tested."""
    assert len(EXAMPLES) == 10
