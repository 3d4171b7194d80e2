"""Events as rows that tests compare, and schedulers whose events they look at."""

from __future__ import annotations

from typing import Any, NamedTuple

from licorne.model.values.events import EventRecord
from licorne.proxy.core.scheduler.engine_names import EngineName
from licorne.proxy.core.scheduler.scheduler import Scheduler
from licorne.proxy.play.transcripts.replay import Replay
from licorne.proxy.play.transcripts.transcript import read_transcript

EVERYTHING = 1_000_000


class EventRow(NamedTuple):
    """An event without its time."""

    type: int
    object_id: str
    reference_id: str
    change: int
    detail: int
    message: str
    resource: tuple[tuple[str, int], ...]


def row_of(record: EventRecord) -> EventRow:
    """Return the row of a record."""
    return EventRow(
        *(int(record.type), record.object_id, record.reference_id, int(record.change), int(record.detail)),
        *(record.message, tuple(sorted(record.resource.items()))),
    )


def row_of_document(document: dict[str, Any]) -> EventRow:
    """Return the row of an event that the REST interface shows."""
    resources = document["resource"].get("resources", {})
    return EventRow(
        *(document.get("type", 0), document.get("objectID", ""), document.get("referenceID", "")),
        *(document.get("eventChangeType", 0), document.get("eventChangeDetail", 0)),
        document.get("message", ""),
        tuple(sorted((name, each["value"]) for name, each in resources.items())),
    )


def replayed(text: str, engine: EngineName = "direct") -> Scheduler:
    """Return a stepped scheduler that has replayed a transcript."""
    scheduler = Scheduler(engine=engine, stepped=True)
    Replay(scheduler, lambda _: None).run(read_transcript(text, "a transcript"))
    return scheduler


def records_of(scheduler: Scheduler) -> tuple[EventRecord, ...]:
    """Return all events of a scheduler."""
    log = scheduler.events
    return log.batch(log.batch(0, 1).lowest_id, EVERYTHING).records


def events_of(text: str, engine: EngineName = "direct") -> list[tuple[int, EventRow]]:
    """Return the times and rows of the events of a transcript."""
    with replayed(text, engine) as scheduler:
        return [(record.time_ns, row_of(record)) for record in records_of(scheduler)]
