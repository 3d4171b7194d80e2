"""Documents of events."""

from __future__ import annotations

from typing import Required

from typing_extensions import TypedDict

from ....model.values.events import EventRecord
from .fields import Int64, TimeNs, without_empty


class EventQuantityDocument(TypedDict, total=False):
    """One quantity."""

    value: Int64


class EventResourceDocument(TypedDict, total=False):
    """The quantities of an event."""

    resources: dict[str, EventQuantityDocument]


class EventDocument(TypedDict, total=False):
    """An event; without what is zero or empty."""

    type: int
    """What it is about: a request (1), application (2), node (3), queue (4), user or group (5)."""
    objectID: str
    referenceID: str
    message: str
    timestampNano: TimeNs
    eventChangeType: int
    """None (0), set (1), added (2), removed (3)."""
    eventChangeDetail: int
    resource: Required[EventResourceDocument]


class EventBatchDocument(TypedDict):
    """Events whose ids follow each other, and the ids that are still there."""

    InstanceUUID: str
    """Another one after each start of the scheduler."""
    LowestID: int
    HighestID: int
    EventRecords: list[EventDocument] | None


class EventStreamDocument(TypedDict):
    """The first line of a stream."""

    InstanceUUID: str


@without_empty
def event_document(record: EventRecord) -> EventDocument:
    """Return an event as it is shown: without what is zero or empty, but always with a resource."""
    resources: dict[str, EventQuantityDocument] = {
        name: {"value": quantity} if quantity else {} for name, quantity in record.resource.items()
    }
    return {
        "type": int(record.type),
        "objectID": record.object_id,
        "message": record.message,
        "timestampNano": record.time_ns,
        "eventChangeType": int(record.change),
        "eventChangeDetail": int(record.detail),
        "referenceID": record.reference_id,
        "resource": {"resources": resources} if resources else {},
    }
