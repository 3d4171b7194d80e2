"""The examples to which docs/gangs.md and docs/topology.md lead are true: what they say is what happens."""

from __future__ import annotations

from typing import Final

import pytest
from support.proxy.page_examples import DOCS, Example, Row, examples_of, placed_in, replayed

from licorne.proxy.core.scheduler.engine_names import EngineName

PAGE: Final = DOCS.parent / "tests" / "data" / "gangs.md"
EXAMPLES: Final = examples_of(PAGE, ["yaml", "jsonl", "jsonl"])


def in_short(row: Row) -> Row:
    """Keep what was placed where, what ended or is to end, and the states of applications."""
    allocations = row.get("allocationResponse")
    applications = row.get("applicationResponse")
    short: Row = {}
    if isinstance(allocations, dict):
        short = placed_in(allocations)
        if "released" in allocations:
            released = allocations["released"]
            short["released"] = {entry["allocationKey"]: entry["terminationType"] for entry in released}
    if isinstance(applications, dict) and "updated" in applications:
        short["states"] = {entry["applicationID"]: entry["state"] for entry in applications["updated"]}
    return short


@pytest.mark.parametrize("engine", ["direct", "actors", "threads"])
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_an_example_does_what_the_page_says(example: Example, engine: EngineName) -> None:
    """Every placement, release and state, at the line that causes it, and no others."""
    assert example.done == replayed(example, in_short, engine)


def test_there_are_five_examples() -> None:
    """An example that is not found would not be tested."""
    assert len(EXAMPLES) == 5
