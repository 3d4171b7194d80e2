"""Documents of events."""

from __future__ import annotations

from collections.abc import Sequence

from ...model.values.documents import Document, Json
from ...model.values.events import EventRecord

__all__ = ["batch_document", "event_document"]


def event_document(record: EventRecord) -> Document:
    """Return an event as it is shown: without what is zero or empty, but always with a resource."""
    document: Document = {}
    if record.type:
        document["type"] = int(record.type)
    if record.object_id:
        document["objectID"] = record.object_id
    if record.message:
        document["message"] = record.message
    if record.time_ns:
        document["timestampNano"] = record.time_ns
    if record.change:
        document["eventChangeType"] = int(record.change)
    if record.detail:
        document["eventChangeDetail"] = int(record.detail)
    if record.reference_id:
        document["referenceID"] = record.reference_id
    resources: dict[str, Json] = {
        name: {"value": quantity} if quantity else {} for name, quantity in record.resource.items()
    }
    document["resource"] = {"resources": resources} if resources else {}
    return document


def batch_document(
    instance_uuid: str, lowest_id: int, highest_id: int, records: Sequence[EventRecord]
) -> Document:
    """Return a batch of events with the ids that there are; `null` in place of no events."""
    return {
        "InstanceUUID": instance_uuid,
        "LowestID": lowest_id,
        "HighestID": highest_id,
        "EventRecords": [event_document(record) for record in records] or None,
    }
