"""Events as texts of JSON: what the routes of events read, wherever the events are kept."""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol, final

from ....model.values.events import EventRecord
from ...core.documents.monitoring import event_document
from ...core.events.log import EventLog
from ...core.events.streams import EventStream
from .responses import json_bytes

_TEXTS_MAX: Final = 8_192


class TextBatch(NamedTuple):
    """Events whose ids follow each other, and the ids that are still there."""

    lowest_id: int
    highest_id: int
    texts: list[bytes]
    """The JSON of each."""


class EventTextStream(Protocol):
    """The events that come, one after the other; the event loop alone reads."""

    @property
    def next_id(self) -> int:
        """The id of the event that `take` returns first."""

    @property
    def behind(self) -> float:
        """How much of the room for events those have that it has not given yet; above 1 it loses some."""

    @property
    def is_over(self) -> bool:
        """Whether there are no more events."""

    def take(self, count_max: int) -> list[bytes]:
        """Return the next events that are there already, `count_max` at most; it does not wait."""

    def close(self) -> None:
        """End the stream."""


class EventTexts(Protocol):
    """The events that are kept; any thread may call."""

    @property
    def enabled(self) -> bool:
        """Whether events are kept."""

    @property
    def instance_uuid(self) -> str:
        """Another one whenever ids begin anew."""

    @property
    def batch_size_max(self) -> int:
        """How many events a batch has at most."""

    def batch(self, start: int, count: int) -> TextBatch:
        """Return up to `count` events from an id on; if that is not kept there are none."""

    def stream(self, history: int, *, start: int | None, host: str) -> EventTextStream:
        """Return a stream of all events from now on, after up to `history` of those that are kept.

        Args:
            history: How many.
            start: The id of the first one instead, or of the next one that is kept.
            host: Where the reader is; the number of its streams is bounded.

        Raises:
            TooManyStreamsError: There are as many streams as there may be.
            RequestError: There are no events any more.
        """


@final
class LoggedEvents:
    """The events of a scheduler of this process; the JSON of the newest is made once for all streams."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._texts: dict[int, bytes] = {}

    @property
    def enabled(self) -> bool:
        """Whether events are kept."""
        return self._log.enabled

    @property
    def instance_uuid(self) -> str:
        """Another one after each start of the scheduler."""
        return self._log.instance_uuid

    @property
    def batch_size_max(self) -> int:
        """How many events a batch has at most."""
        return self._log.batch_size_max

    def batch(self, start: int, count: int) -> TextBatch:
        """Return up to `count` events from an id on; if that is not kept there are none."""
        found = self._log.batch(start, count)
        texts = [json_bytes(event_document(record)) for record in found.records]
        return TextBatch(found.lowest_id, found.highest_id, texts)

    def stream(self, history: int, *, start: int | None, host: str) -> EventTextStream:
        """Return a stream of all events from now on, after up to `history` of those that are kept."""
        return _LoggedStream(self._log.stream(history, start=start, host=host), self)

    def text_of(self, number: int, record: EventRecord) -> bytes:
        """Return the JSON of the event with an id; for the event loop."""
        text = self._texts.get(number)
        if text is None:
            text = self._texts[number] = json_bytes(event_document(record))
            if len(self._texts) > _TEXTS_MAX:
                del self._texts[next(iter(self._texts))]
        return text


@final
class _LoggedStream:
    def __init__(self, stream: EventStream, events: LoggedEvents) -> None:
        self._stream = stream
        self._events = events

    @property
    def next_id(self) -> int:
        return self._stream.next_id

    @property
    def behind(self) -> float:
        return self._stream.behind

    @property
    def is_over(self) -> bool:
        return self._stream.is_over

    def take(self, count_max: int) -> list[bytes]:
        first = self._stream.next_id
        records = self._stream.take(count_max)
        return [self._events.text_of(number, record) for number, record in enumerate(records, first)]

    def close(self) -> None:
        self._stream.close()
