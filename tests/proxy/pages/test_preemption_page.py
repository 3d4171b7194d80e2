"""The examples of docs/preemption.md are true: what is recorded of each in tests/data/preemption happens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest
from support.proxy.page_examples import DOCS, Row, placed_in

from licorne.proxy.core.scheduler.scheduler import Scheduler
from licorne.proxy.play.transcripts.replay import Replay
from licorne.proxy.play.transcripts.transcript import read_transcript

PAGE: Final = (DOCS / "preemption.md").read_text(encoding="utf-8")
EXAMPLES: Final = DOCS.parent / "examples" / "preemption"
EXPECTED: Final = DOCS.parent / "tests" / "data" / "preemption"
NAMES: Final = sorted(path.stem for path in EXAMPLES.glob("*.jsonl"))


def in_short(row: Row) -> Row:
    """Keep what was placed where, and who was asked to go."""
    body = row.get("allocationResponse")
    if not isinstance(body, dict):
        return {}
    short = placed_in(body)
    if "released" in body:
        short["preempted"] = [entry["allocationKey"] for entry in body["released"]]
    return short


def text_of(path: Path) -> str:
    """Return the text of a file."""
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_an_example_happens_and_is_explained_as_recorded(name: str) -> None:
    """Every placement and every preemption, at the line that causes it, and no others; then its sentences."""
    heard: list[str] = []
    replay = Replay(
        Scheduler(engine="direct"), heard.append, configuration=text_of(EXAMPLES / f"{name}.yaml")
    )
    with replay.scheduler:
        replay.run(read_transcript(text_of(EXAMPLES / f"{name}.jsonl"), name))
        (partition,) = replay.scheduler._cluster.partitions()
        sentences = [line for record in partition._state.preemptions for line in record.explain()]
    rows = [(row["line"], in_short(row)) for row in map(json.loads, heard)]
    done = [json.dumps({"line": line, **short}) for line, short in rows if short]

    assert text_of(EXPECTED / f"{name}.txt").splitlines() == [*done, "", *sentences]


def test_the_page_lists_all_examples_and_shows_sentences_of_the_first() -> None:
    """Each has its queues, its requests, and what is expected of it."""
    listed = [line.split("`")[1] for line in PAGE.splitlines() if line.startswith("| `") and "| " in line]
    shown = PAGE.partition("## Examples")[2].partition("```text\n")[2].partition("```")[0]

    assert set(NAMES) <= set(listed)
    assert {path.stem for path in EXPECTED.iterdir()} == set(NAMES)
    assert shown in text_of(EXPECTED / "guarantee.txt")
