"""Events as messages of `si.v1`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast, final

from ...model.errors import shortened
from ...model.values.events import EventRecord
from . import si_pb2 as si


@final
class EventsHappened:
    """Records for the callback `send_event` of one resource manager, queued as announcements are."""

    __slots__ = ("records",)

    def __init__(self, records: Sequence[EventRecord]) -> None:
        self.records = records

    def __repr__(self) -> str:
        return f"EventsHappened({len(self.records)} records)"


def write_events(records: Sequence[EventRecord]) -> list[si.EventRecord]:
    """Write records, in order; each has a resource, which may be empty."""
    return [_write_event(record) for record in records]


def _write_event(record: EventRecord) -> si.EventRecord:
    message = si.EventRecord(
        type=cast("si.EventRecord.Type", int(record.type)),
        objectID=record.object_id,
        message=shortened(record.message),
        timestampNano=record.time_ns,
        eventChangeType=cast("si.EventRecord.ChangeType", int(record.change)),
        eventChangeDetail=cast("si.EventRecord.ChangeDetail", int(record.detail)),
        referenceID=record.reference_id,
    )
    message.resource.SetInParent()
    for name, quantity in record.resource.items():
        message.resource.resources[name].value = quantity
    return message
