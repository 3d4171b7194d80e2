"""What a scheduler counts of its events."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EventCounters:
    """What became of the events since the scheduler was made.

    Each event that is created is channeled or dropped (`not_channeled`). One that is channeled is processed:
    it gets an id. For a resource manager it is stored for the next delivery, and `collected` with it, or
    dropped since the store is full (`not_stored`). A stream that is too slow is dropped: `lost_to_streams`
    counts what such streams have not read.
    """

    created: int
    channeled: int
    not_channeled: int
    processed: int
    stored: int
    not_stored: int
    collected: int
    streams: int
    streams_dropped: int
    lost_to_streams: int
