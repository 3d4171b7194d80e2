"""The events of all workers, in one order and with ids of the door.

Workers are followed while there are readers, and for some time afterwards; for a later reader they continue
after the last event that was read. The order of each worker is kept.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Callable
from contextlib import aclosing, suppress
from typing import Any, Final, final

from starlette.requests import Request
from starlette.responses import Response

from .....model.configuration.extra import ExtraConfig
from ....core.documents.declarations import time_text
from ....core.documents.monitoring import OpenStreamDocument
from ....core.events.log import TooManyStreamsError
from ....views.rest.handlers.events import event_batch, event_stream, server_sent_events
from ....views.rest.responses import EventTextStream, TextBatch
from .reading import AskedWorker, DoorReader
from .worker_client import WorkerClient, WorkerSilentError

KEPT_MAX: Final = 20_000
"""The number of events that the door keeps."""
_HISTORY: Final = 10_000
"""The number of the newest events with which a worker starts when it is followed for the first time."""
_IDLE_SECONDS: Final = 60.0
"""The time for which workers are followed after the last reader."""
_LOOK_SECONDS: Final = 1.0
"""The interval at which the door looks for new workers, and tries again."""
_CATCH_UP_SECONDS: Final = 2.0
"""The time limit of a reader's wait for the present events of the workers."""
_EARLIER_MAX: Final = 256
"""The number of absent workers that are remembered."""
_SILENCE_SECONDS: Final = 60.0
"""The time after which a silent stream of a worker counts as lost: it gives a sign each 15 s."""
_SETTINGS: Final = ExtraConfig()


@final
class _Kept:
    """The newest events, by their ids."""

    def __init__(self) -> None:
        self._first = 0
        self._texts: list[bytes] = []

    @property
    def next_id(self) -> int:
        return self._first + len(self._texts)

    @property
    def lowest_id(self) -> int:
        return max(self._first, self.next_id - KEPT_MAX)

    def add(self, text: bytes) -> None:
        self._texts.append(text)
        if len(self._texts) > 2 * KEPT_MAX:  # This is rare, since it moves all other events.
            del self._texts[:KEPT_MAX]
            self._first += KEPT_MAX

    def read(self, start: int, count: int) -> list[bytes]:
        """Return up to `count` events from an id on, or an empty list if that event is not kept."""
        if start < self.lowest_id:
            return []
        place = start - self._first
        return self._texts[place : place + count]


@final
class _DoorStream:
    """The position of one reader; the stream ends if events that it has not read are gone."""

    def __init__(self, kept: _Kept, next_id: int, host: str, ended: Callable[[_DoorStream], None]) -> None:
        self.host = host
        self.created_ns = time.time_ns()
        self.next_id = next_id
        self._kept = kept
        self._ended = ended
        self._end_id: int | None = None
        self.is_over = False

    @property
    def behind(self) -> float:
        return (self._kept.next_id - self.next_id) / KEPT_MAX

    def take(self, count_max: int) -> list[bytes]:
        if self.next_id < self._kept.lowest_id:
            self.close()
        if self.is_over:
            return []
        if self._end_id is not None:
            count_max = min(count_max, self._end_id - self.next_id)
        texts = self._kept.read(self.next_id, count_max)
        self.next_id += len(texts)
        if self._end_id is not None and self.next_id >= self._end_id:
            self.close()
        return texts

    def finish(self) -> None:
        """Send the present events, then end."""
        self._end_id = self._kept.next_id

    def close(self) -> None:
        self.is_over = True
        self._ended(self)


@final
class _Follower:
    """Follows one worker; its position is kept while it pauses."""

    def __init__(self, worker: AskedWorker, client: WorkerClient, add: Callable[[bytes], None]) -> None:
        self._worker = worker
        self._client = client
        self._add = add
        self.instance = ""
        self.next_id = 0
        self.is_off = False
        """Whether the worker reports that it keeps no events."""
        self._read_more = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def catch_up(self) -> None:
        """Wait until the present events of the worker have been read."""
        with suppress(WorkerSilentError, TimeoutError, ValueError, KeyError):
            async with asyncio.timeout(_CATCH_UP_SECONDS):
                target = b"/ws/v1/events/batch?start=0&count=1"
                answer = await self._client.ask(self._worker.address, target, token=self._worker.token)
                self.is_off = answer.status == 500
                batch: dict[str, Any] = json.loads(await answer.body())
                highest = batch["HighestID"]
                end = highest + 1 if highest or batch["EventRecords"] else 0
                while self.instance != batch["InstanceUUID"] or self.next_id < end:
                    self._read_more.clear()
                    await self._read_more.wait()

    async def _run(self) -> None:
        while True:
            with suppress(WorkerSilentError, ValueError):
                await self._read()
            await asyncio.sleep(_LOOK_SECONDS)

    async def _read(self) -> None:
        """Read the stream until it ends; a restarted worker is read from its newest event on."""
        last = [(b"last-event-id", b"%d" % (self.next_id - 1))] if self.instance and self.next_id else []
        answer = await self._client.ask(
            self._worker.address,
            b"/licorne/v1/events?count=%d" % _HISTORY,
            headers=last,
            token=self._worker.token,
            seconds=_SILENCE_SECONDS,
        )
        self.is_off = answer.status == 500
        if answer.status != 200:
            answer.close()
            return
        async with aclosing(answer.events()) as blocks:
            async for block in blocks:
                head, _, data = block.partition(b"\ndata: ")
                self._read_more.set()
                if head.startswith(b"id: "):
                    self.next_id = int(head[4:]) + 1
                    self._add(data)
                elif head == b"event: instance" and not self._knows(json.loads(data)["InstanceUUID"]):
                    return

    def _knows(self, instance: str) -> bool:
        """Note the instance of a worker; return whether its ids continue the known ones."""
        goes_on = self.instance in ("", instance) or not self.next_id
        if not goes_on:
            self.next_id = 0
        self.instance = instance
        return goes_on


@final
class DoorEvents:
    """The events of the workers of a door; only the event loop may call."""

    def __init__(self, reader: DoorReader) -> None:
        self._reader = reader
        self.instance_uuid = str(uuid.uuid4())
        self.batch_size_max = _SETTINGS.event_rest_response_size
        self._kept = _Kept()
        self._streams: dict[_DoorStream, None] = {}
        self._followers: dict[str, _Follower] = {}
        self._earlier: dict[str, _Follower] = {}
        """The followers of absent workers: one that comes back continues at its old position."""
        self._keeper: asyncio.Task[None] | None = None
        self._used_at = 0.0

    @property
    def enabled(self) -> bool:
        """Whether a worker keeps events."""
        followers = self._followers.values()
        return not followers or not all(each.is_off for each in followers)

    async def catch_up(self) -> None:
        """Follow the workers from now on, and wait for their present events."""
        loop = asyncio.get_running_loop()
        self._used_at = loop.time()
        if self._keeper is None or self._keeper.done():
            self._keeper = loop.create_task(self._keep())
        await self._refresh()
        await asyncio.gather(*(each.catch_up() for each in self._followers.values()))

    def batch(self, start: int, count: int) -> TextBatch:
        """Return up to `count` events from an id on, or an empty batch if that event is not kept."""
        highest = max(0, self._kept.next_id - 1)
        return TextBatch(self._kept.lowest_id, highest, self._kept.read(start, count))

    def stream(self, history: int, *, start: int | None, host: str) -> EventTextStream:
        """Return a stream of all events from now on, after up to `history` of the kept ones.

        Raises:
            TooManyStreamsError: The limit of open streams is reached.
        """
        hosts = [each.host for each in self._streams]
        if len(hosts) >= _SETTINGS.event_max_streams:
            raise TooManyStreamsError(f"{len(hosts)} event streams are open")
        if hosts.count(host) >= _SETTINGS.event_max_streams_per_host:
            raise TooManyStreamsError(f"{hosts.count(host)} event streams of {host} are open")
        next_id = self._kept.next_id
        first = next_id - history if start is None else min(start, next_id)
        stream = _DoorStream(self._kept, max(self._kept.lowest_id, first), host, self._ended)
        self._streams[stream] = None
        return stream

    def open_streams(self) -> list[OpenStreamDocument]:
        """Return the documents of the open streams, the oldest first."""
        return [{"Name": each.host, "CreatedAt": time_text(each.created_ns)} for each in self._streams]

    def finish(self) -> None:
        """End all streams after their present events; any thread may call."""
        for stream in list(self._streams):
            stream.finish()

    async def close(self) -> None:
        """Stop following workers."""
        self.finish()
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.cancel()
            await asyncio.gather(keeper, return_exceptions=True)
        await self._pause()

    def _ended(self, stream: _DoorStream) -> None:
        self._streams.pop(stream, None)
        self._used_at = asyncio.get_running_loop().time()

    async def _keep(self) -> None:
        """Follow the present workers, until there was no reader for a while."""
        loop = asyncio.get_running_loop()
        while self._streams or loop.time() < self._used_at + _IDLE_SECONDS:
            await asyncio.sleep(_LOOK_SECONDS)
            await self._refresh()
        await self._pause()

    async def _refresh(self) -> None:
        """Follow each present worker, and forget those that are gone."""
        there = {worker.address: worker for worker in self._reader.workers()}
        for address in self._followers.keys() - there.keys():
            follower = self._earlier[address] = self._followers.pop(address)
            await follower.stop()
        while len(self._earlier) > _EARLIER_MAX:
            del self._earlier[next(iter(self._earlier))]
        for address, worker in there.items():
            known = self._followers.get(address) or self._earlier.pop(address, None)
            follower = known or _Follower(worker, self._reader.client, self._kept.add)
            self._followers[address] = follower
            follower.start()

    async def _pause(self) -> None:
        for follower in self._followers.values():
            await follower.stop()


async def _event_batch(request: Request) -> Response:
    await _events_of(request).catch_up()
    return event_batch(request)


async def _event_stream(request: Request) -> Response:
    await _events_of(request).catch_up()
    return await event_stream(request)


async def _server_sent_events(request: Request) -> Response:
    await _events_of(request).catch_up()
    return await server_sent_events(request)


def _events_of(request: Request) -> DoorEvents:
    events: DoorEvents = request.app.state.events
    return events


EVENTS: Final = {
    "/ws/v1/events/batch": _event_batch,
    "/ws/v1/events/stream": _event_stream,
    "/licorne/v1/events": _server_sent_events,
}
"""The endpoints by their paths."""
