"""Events read in batches, each where the last one ended."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, final

from pydantic import TypeAdapter

from .documents import ReadBatch

if TYPE_CHECKING:
    from .client import RestClient
    from .documents import ReadEvent

__all__ = ["EVENTS_MAX", "EventFollower"]

EVENTS_MAX: Final = 1_000
"""How many events are kept; older ones are dropped."""
_READS_MAX: Final = 4
"""How many batches are read at once: a server that is faster is followed at the next time."""
_PATH: Final = "/ws/v1/events/batch"
_BATCH: Final = TypeAdapter(ReadBatch)


@final
class EventFollower:
    """The newest events of a server."""

    def __init__(self) -> None:
        self._instance = ""
        self._next_id: int | None = None
        self._events: deque[tuple[int, ReadEvent]] = deque(maxlen=EVENTS_MAX)

    async def read(self, client: RestClient) -> tuple[tuple[int, ReadEvent], ...]:
        """Read what is new, and return all that is kept, each with its id, the oldest first.

        Raises:
            MissingDocumentError: The server has no events, or has switched them off.
            ServerReadError: The server cannot be read.
        """
        for _ in range(_READS_MAX):
            start = self._next_id
            query = {"count": 1} if start is None else {"start": start, "count": EVENTS_MAX}
            batch = await client.read(_BATCH, _PATH, query)
            if start is None or batch.instance != self._instance:
                self._begin(batch)
            elif batch.records:
                self._events.extend(enumerate(batch.records, start))
                self._next_id = start + len(batch.records)
            elif start < batch.lowest_id:  # those in between are overwritten
                self._next_id = max(batch.lowest_id, batch.highest_id - EVENTS_MAX + 1)
            if self._next_id is not None and self._next_id > batch.highest_id:
                break
        return tuple(self._events)

    def _begin(self, batch: ReadBatch) -> None:
        """Start with the newest events of a server, which may be another one at the same address."""
        self._instance = batch.instance
        self._next_id = max(batch.lowest_id, batch.highest_id - EVENTS_MAX + 1)
        self._events.clear()
