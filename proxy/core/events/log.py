"""The log of the events of one scheduler.

Every two seconds an RM gets what happened to it, in one batch of at most `event.requestCapacity` records: the
oldest ones. Records for which there was no room are counted, and are not sent.
"""

from __future__ import annotations

import threading
import time
import uuid
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple, final

from ....actors.services.interrupts import start_thread
from ....model.configuration.extra import ExtraConfig
from ....model.errors import RequestError
from ....model.values.events import EventRecord
from ....model.values.facts import Fact, FactSink
from ...si.api import ResourceManager, ResourceManagerCallback
from ..metrics.figures import EventCounters
from .ring import FactRing, expand, records_from
from .streams import EventStream, RecentRecords

_DEFAULTS: Final = ExtraConfig()
DELIVERY_SECONDS: Final = 2.0
_MESSAGE_RECORDS_MAX: Final = 1000
"""How many records one callback gets: a message over the wire has at most some megabytes."""


@dataclass(frozen=True, slots=True)
class EventBatch:
    """Records with neighbouring ids, and which ids there are.

    `highest_id` and `lowest_id` are 0 if there are no records.
    """

    instance_uuid: str
    lowest_id: int
    highest_id: int
    records: tuple[EventRecord, ...]


class TooManyStreamsError(RequestError):
    """There are as many streams as the configuration allows."""


@final
class _Held:
    """The facts of a partition whose registration or reload is not complete."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._facts: list[Fact] = []
        self._report: Callable[[Fact], None] = self._facts.append
        self.sink = FactSink(self._take)

    def _take(self, fact: Fact) -> None:
        with self._lock:
            self._report(fact)

    def release(self, report: Callable[[Fact], None] | None) -> None:
        """Pass on all facts, also those that come by the old way; drop them without a receiver."""
        with self._lock:
            self._report = report or _drop
            for fact in self._facts:
                self._report(fact)
            self.sink.report = report


def _drop(_: Fact) -> None:
    """Drop a fact."""


@final
class EventLog:
    """The events in all partitions of one scheduler, in order of arrival; any thread may call."""

    def __init__(self, now_ns: Callable[[], int] = time.time_ns) -> None:
        self._now_ns = now_ns
        self.instance_uuid = str(uuid.uuid4())
        self._ring = FactRing(_DEFAULTS.event_ring_buffer_capacity)
        self._recent = RecentRecords(self._ring)
        self._lock = threading.Lock()
        self._settings: dict[str, ExtraConfig] = {}
        self._sinks: dict[str, weakref.WeakSet[FactSink]] = {}
        self._held: dict[str, list[_Held]] = {}
        self._streams: set[EventStream] = set()
        self._is_closed = False
        self._dropped = 0
        self._lost = 0
        self._stored = 0
        self._not_stored = 0

    # ------------------------------------------------------------------------------- the partitions

    def new_sink(self, rm_id: str) -> FactSink:
        """Return the sink of a new partition; what it gets is held until `configure` or `forget_held`."""
        held = _Held()
        with self._lock:
            self._held.setdefault(rm_id, []).append(held)
            self._sinks.setdefault(rm_id, weakref.WeakSet()).add(held.sink)
        return held.sink

    def configure(self, rm_id: str, settings: ExtraConfig) -> None:
        """Take the settings of a resource manager that has registered or changed; they hold at once."""
        with self._lock:
            self._settings = {**self._settings, rm_id: settings}
            report = self._ring.report if settings.event_tracking_enabled else None
            for held in self._held.pop(rm_id, ()):
                held.release(report)
            for sink in self._sinks.get(rm_id, ()):
                sink.report = report
            self._ring.set_capacity(self._largest(lambda each: each.event_ring_buffer_capacity))

    def forget_held(self, rm_id: str) -> None:
        """Drop what partitions reported that were made for a registration or reload which has failed."""
        with self._lock:
            for held in self._held.pop(rm_id, ()):
                held.release(None)

    def forget(self, rm_id: str) -> None:
        """Forget the settings of a resource manager, and its partitions; what they reported stays."""
        with self._lock:
            self._settings = {name: each for name, each in self._settings.items() if name != rm_id}
            self._sinks.pop(rm_id, None)

    # -------------------------------------------------------------------------------- the settings

    @property
    def enabled(self) -> bool:
        """Whether events are kept: not if each resource manager has switched them off."""
        settings = self._settings.values()
        return not settings or any(each.event_tracking_enabled for each in settings)

    def _largest(self, value: Callable[[ExtraConfig], int]) -> int:
        """Return the largest value that a resource manager sets."""
        return max((value(settings) for settings in self._settings.values()), default=value(_DEFAULTS))

    @property
    def streams_max(self) -> int:
        """How many streams there may be."""
        return self._largest(lambda settings: settings.event_max_streams)

    @property
    def streams_per_host_max(self) -> int:
        """How many streams one host may have."""
        return self._largest(lambda settings: settings.event_max_streams_per_host)

    @property
    def batch_size_max(self) -> int:
        """How many records one answer of the REST interface has at most."""
        return self._largest(lambda settings: settings.event_rest_response_size)

    def request_capacity(self, rm_id: str) -> int:
        """Return how many records are kept for the next delivery to a resource manager."""
        return self._settings.get(rm_id, _DEFAULTS).event_request_capacity

    # -------------------------------------------------------------------------------------- reading

    def batch(self, start: int = 0, count: int | None = None) -> EventBatch:
        """Return records from an id on.

        Args:
            start: The id of the first one; the result is empty if it is no longer kept.
            count: How many at most; `None` for as many as one answer of the REST interface has.
        """
        wanted = self.batch_size_max if count is None else count
        span = self._ring.read(start, min(wanted, self._ring.capacity))
        records = records_from(span, start, wanted)
        return EventBatch(self.instance_uuid, span.lowest_id, max(0, span.next_id - 1), tuple(records))

    def stream(self, history: int = 0, *, start: int | None = None, host: str | None = None) -> EventStream:
        """Return a stream of all records from now on, after up to `history` of those that are kept.

        Args:
            history: How many.
            start: The id of the first one instead, or of the next one that is kept.
            host: Where the reader is; the numbers of streams are bounded for those that are elsewhere.

        Raises:
            TooManyStreamsError: There are as many streams as there may be.
            RequestError: The scheduler has been stopped.
        """
        lowest_id, next_id = self._ring.bounds()
        first = next_id - history if start is None else min(start, next_id)
        stream = EventStream(
            self._recent, max(lowest_id, first), self._ended, host=host, created_ns=self._now_ns()
        )
        with self._lock:
            if self._is_closed:
                raise RequestError("the scheduler has been stopped")
            if host is not None:
                self._check_room(host)
            self._streams.add(stream)
        return stream

    def open_streams(self) -> tuple[EventStream, ...]:
        """Return the streams that are open, the oldest first."""
        with self._lock:
            return tuple(sorted(self._streams, key=lambda stream: stream.created_ns))

    def _check_room(self, host: str) -> None:
        """Refuse a further stream of a host."""
        hosts = [stream.host for stream in self._streams if stream.host is not None]
        if len(hosts) >= self.streams_max:
            raise TooManyStreamsError(f"{len(hosts)} event streams are open: event.maxStreams")
        if hosts.count(host) >= self.streams_per_host_max:
            raise TooManyStreamsError(
                f"{hosts.count(host)} event streams of {host} are open: event.maxStreamsPerHost"
            )

    def _ended(self, stream: EventStream) -> None:
        with self._lock:
            if stream in self._streams:
                self._streams.discard(stream)
                self._dropped += stream.lost > 0
                self._lost += stream.lost

    def counters(self) -> EventCounters:
        """Return what became of the events so far."""
        dropped = self._ring.dropped
        _, processed = self._ring.bounds()
        with self._lock:
            return EventCounters(
                created=processed + dropped,
                channeled=processed,
                not_channeled=dropped,
                processed=processed,
                stored=self._stored,
                not_stored=self._not_stored,
                collected=self._stored,
                streams=len(self._streams),
                streams_dropped=self._dropped,
                lost_to_streams=self._lost,
            )

    # ------------------------------------------------------------------------------------ deliveries

    def facts_since(self, start: int) -> tuple[list[Fact], int, int]:
        """Return the facts from an id on, the id after them, and how many records were overwritten before.

        A fact of which some records are kept is returned as a whole.
        """
        lowest_id, next_id = self._ring.bounds()
        first = max(start, lowest_id)
        span = self._ring.read(first, next_id - first)
        return span.facts, next_id, first - start

    def count_delivery(self, stored: int, not_stored: int) -> None:
        """Count the records of a delivery to a resource manager, and those for which it had no room."""
        with self._lock:
            self._stored += stored
            self._not_stored += not_stored

    def close(self) -> None:
        """End all streams: each gives the kept events, then ends."""
        with self._lock:
            self._is_closed = True
            streams = list(self._streams)
        for stream in streams:
            stream.finish()


def takes_events(callback: ResourceManagerCallback) -> bool:
    """Return whether a callback does anything with events: not if it has inherited to ignore them."""
    return getattr(type(callback), "send_event", None) is not ResourceManager.send_event


class Receiver(NamedTuple):
    """An RM that gets events: `send` queues records for it."""

    rm_id: str
    send: Callable[[list[EventRecord]], None]


@final
class EventDelivery:
    """Delivers the events of one scheduler.

    Args:
        log: The events.
        receivers: Returns who gets events now.
    """

    def __init__(self, log: EventLog, receivers: Callable[[], Iterable[Receiver]]) -> None:
        self._log = log
        self._receivers = receivers
        self._next_ids: dict[str, int] = {}
        """From where each RM has not been served yet."""
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Deliver every two seconds from now on, on a thread."""
        with self._lock:
            if self._thread is None and not self._stop.is_set():
                self._thread = start_thread(self._run, "licorne-events")

    def _run(self) -> None:
        while not self._stop.wait(DELIVERY_SECONDS):
            self.deliver()

    def deliver(self) -> None:
        """Send each RM its events since the last time."""
        with self._lock:
            for receiver in self._receivers():
                self._deliver_to(receiver)

    def _deliver_to(self, receiver: Receiver) -> None:
        rm_id = receiver.rm_id
        facts, next_id, overwritten = self._log.facts_since(self._next_ids.get(rm_id, 0))
        self._next_ids[rm_id] = next_id
        room = self._log.request_capacity(rm_id)
        records: list[EventRecord] = []
        created = overwritten
        for fact in facts:
            if fact[1] != rm_id:
                continue
            created += fact[0]
            if len(records) < room:
                records += expand(fact)
        del records[room:]
        self._log.count_delivery(stored=len(records), not_stored=created - len(records))
        for start in range(0, len(records), _MESSAGE_RECORDS_MAX):
            receiver.send(records[start : start + _MESSAGE_RECORDS_MAX])

    def close(self) -> None:
        """End the thread, and deliver the events up to now."""
        self._stop.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        self.deliver()
