"""The events of the recorded scenario, and of other transcripts on each engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest
from support.proxy.event_rows import EventRow, events_of, row_of_document
from support.transcripts.simulated_transcripts import simulated_transcript

from licorne.model.values.events import ChangeDetail

DATA: Final = Path(__file__).parents[3] / "conformance" / "rest"
CONFORMANCE: Final = Path(__file__).parents[3] / "conformance"
AREAS: Final = ("gang", "preemption", "limits", "reload", "nodes", "foreign", "quotas", "required-node")


def recorded_rows() -> list[EventRow]:
    """Return the recorded events."""
    batch = json.loads((DATA / "events_batch.json").read_text(encoding="utf-8"))
    return [row_of_document(record) for record in batch["EventRecords"]]


def is_root_maximum(row: EventRow) -> bool:
    """Return whether an event is about the maximum of the root."""
    return row.object_id == "root" and row.detail == ChangeDetail.QUEUE_MAX


def in_recorded_order(events: list[tuple[int, EventRow]]) -> list[EventRow]:
    """Return rows as they were recorded: those of one instant by type and object."""
    return [row for _, row in sorted(events, key=lambda event: (event[0], event[1].type, event[1].object_id))]


@pytest.mark.parametrize("engine", ["direct", "actors", "threads"])
def test_the_recorded_scenario_gives_the_recorded_events(engine: str) -> None:
    """All types, objects, details, messages and resources, but for the old maximum of the root."""
    text = (DATA / "scenario.jsonl").read_text(encoding="utf-8")
    rows = in_recorded_order(events_of(text, engine))  # type: ignore[arg-type]

    differing = [(ours, theirs) for ours, theirs in zip(rows, recorded_rows(), strict=True) if ours != theirs]

    assert [ours._replace(resource=()) for ours, _ in differing] == [
        theirs._replace(resource=()) for _, theirs in differing
    ]
    assert len(differing) == 3
    assert all(is_root_maximum(ours) for ours, _ in differing)


def test_the_event_of_the_root_has_the_new_maximum() -> None:
    """The recorded core shows the one before; ours is what the next recorded one shows."""
    rows = [row for row in recorded_rows() if is_root_maximum(row)]
    text = (DATA / "scenario.jsonl").read_text(encoding="utf-8")
    ours = [row for _, row in events_of(text) if is_root_maximum(row)]

    assert [row.resource for row in rows] == [(), *(row.resource for row in ours[:-1])]


def _transcripts() -> list[Path]:
    paths = [path for area in AREAS for path in sorted((CONFORMANCE / area).glob("*.jsonl"))]
    return [path for path in paths if not path.name.endswith(".expected.jsonl")]


@pytest.mark.parametrize("path", _transcripts(), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_engines_agree_on_the_events_of_a_recorded_transcript(path: Path) -> None:
    """Not only in what is decided: also in what is reported, and in its order."""
    text = path.read_text(encoding="utf-8")
    direct = events_of(text, "direct")

    assert bool(direct) is ('"event.trackingEnabled": "false"' not in text.replace('":"', '": "'))
    assert direct == events_of(text, "actors")
    assert direct == events_of(text, "threads")


@pytest.mark.parametrize("seed", range(10))
def test_engines_agree_on_the_events_of_a_random_transcript(seed: int) -> None:
    """Also where a resource manager talks nonsense."""
    text = "\n".join(simulated_transcript(seed))

    direct = events_of(text, "direct")

    assert direct == events_of(text, "actors")
    assert direct == events_of(text, "threads")
