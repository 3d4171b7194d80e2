"""The live data of the page: the streams of all workers merged, for each viewer."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, suppress
from http import HTTPStatus
from typing import Any, Final, NamedTuple, final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from ....core.documents.clusters import WorkerDocument
from ....views.page.feed import VIEWERS_MAX
from ....views.rest.responses import RestError
from ..workers import LinkState
from .merging import worker_document
from .reading import AskedWorker, DoorReader, full_name, reader_of
from .worker_client import WorkerAnswer, WorkerSilentError

_RETRY_MS: Final = 1000
_BEGIN_SECONDS: Final = 2.0
"""The time limit of the wait for the workers' first documents; later ones are sent as changes."""
_LOOK_SECONDS: Final = 0.5
"""The interval at which a viewer's stream looks for new and lost workers."""
_SILENCE_SECONDS: Final = 30.0
"""The time after which a silent stream of a worker counts as lost: it gives a sign each 10 s."""
_MESSAGES_MAX: Final = 16
"""The number of messages that may wait for a viewer; then the workers wait, and drop the excess."""
_CONTENT: Final = b',"partitions":'
_STREAM: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class _Message(NamedTuple):
    """A message of a worker; without content the worker is lost."""

    worker: AskedWorker
    kind: bytes
    head: dict[str, Any]
    partitions: bytes
    """The text of an object, unchanged."""


@final
class LiveViewers:
    """Counts the viewers of a door."""

    def __init__(self) -> None:
        self.count = 0


async def _live(request: Request) -> Response:
    """Stream the whole state, then changes."""
    viewers: LiveViewers = request.app.state.door_viewers
    if viewers.count >= VIEWERS_MAX:
        text = f"{VIEWERS_MAX} pages are open already, more are not served"
        raise RestError(HTTPStatus.SERVICE_UNAVAILABLE, text)
    stream = _messages(reader_of(request), viewers)
    return StreamingResponse(stream, media_type="text/event-stream", headers=_STREAM)


LIVE: Final = {"/licorne/v1/live": _live}
"""The endpoints by their paths."""


async def _messages(reader: DoorReader, viewers: LiveViewers) -> AsyncGenerator[bytes, None]:
    viewers.count += 1
    viewer = _Viewer(reader)
    try:
        yield b"retry: %d\n\n" % _RETRY_MS
        async for message in viewer.messages():
            yield message
    finally:
        viewers.count -= 1
        await viewer.close()


@final
class _Viewer:
    """One open page: it has a separate stream to each worker."""

    def __init__(self, reader: DoorReader) -> None:
        self._reader = reader
        self._waiting: asyncio.Queue[_Message] = asyncio.Queue(_MESSAGES_MAX)
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._number = 0
        self._given: set[str] = set()
        """The partitions of the page."""
        self._halted: dict[str, list[object]] = {}
        self._workers: list[WorkerDocument] = []
        """The places of the partitions, as the page has them."""

    async def messages(self) -> AsyncGenerator[bytes, None]:
        """Yield the messages for the page: the whole state, then changes."""
        found = await self._first()
        yield self._full(found)
        for message in found:
            if message.kind == b"change":  # It came during the wait for another worker.
                yield self._change(message)
        while True:
            self._follow()
            for change in self._changed_places():
                yield change
            try:
                async with asyncio.timeout(_LOOK_SECONDS):
                    message = await self._waiting.get()
            except TimeoutError:
                yield b": nothing has changed\n\n"
                continue
            yield self._change(message)

    async def close(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    # ---------------------------------------------------------------------------------- the workers

    def _follow(self) -> None:
        """Read each present worker, and no other."""
        there = {worker.address: worker for worker in self._reader.workers()}
        for address in [each for each in self._tasks if each not in there]:
            self._tasks.pop(address).cancel()
        for address, worker in there.items():
            task = self._tasks.get(address)
            if task is None or task.done():
                self._tasks[address] = asyncio.get_running_loop().create_task(self._read(worker))

    async def _read(self, worker: AskedWorker) -> None:
        """Read a worker until its stream ends; `_follow` starts again."""
        with suppress(WorkerSilentError, ValueError):
            answer = await self._reader.client.ask(
                worker.address, b"/licorne/v1/live", token=worker.token, seconds=_SILENCE_SECONDS
            )
            if answer.status != HTTPStatus.OK:
                answer.close()
            else:
                await self._read_all(worker, answer)
        await asyncio.sleep(_LOOK_SECONDS)

    async def _read_all(self, worker: AskedWorker, answer: WorkerAnswer) -> None:
        async with aclosing(answer.events()) as events:
            async for event in events:
                message = _parsed(worker, event)
                if message is not None:
                    await self._waiting.put(message)

    async def _first(self) -> Sequence[_Message]:
        """Return the documents of the workers that give one in time."""
        self._follow()
        missing = set(self._tasks)
        found: list[_Message] = []
        with suppress(TimeoutError):
            async with asyncio.timeout(_BEGIN_SECONDS):
                while missing:
                    message = await self._waiting.get()
                    found.append(message)
                    missing.discard(message.worker.address)
        return found

    # --------------------------------------------------------------------------------- the messages

    def _full(self, found: Sequence[_Message]) -> bytes:
        """Return the first message: the state of all workers."""
        order = [worker.address for worker in self._reader.workers()]
        fulls = [each for each in found if each.kind == b"full" and each.worker.address in order]
        fulls.sort(key=lambda each: order.index(each.worker.address))
        self._workers = [worker_document(place) for place in self._reader.places()]
        for each in fulls:
            self._given.update(map(full_name, each.worker.places))
        about = {
            "engine": ", ".join(dict.fromkeys(str(each.head.get("engine", "")) for each in fulls)),
            "events": any(each.head.get("events") for each in fulls) or not fulls,
            "workers": self._workers,
        }
        members = b",".join(each.partitions[1:-1] for each in fulls if each.partitions != b"{}")
        return self._event(b"full", about, b"{%b}" % members)

    def _change(self, message: _Message) -> bytes:
        """Return a message of a worker as a change; a whole partition replaces the known one."""
        self._number += 1
        if message.kind == b"full":
            self._given.update(map(full_name, message.worker.places))
        return self._event(b"change", {}, message.partitions)

    def _changed_places(self) -> Iterator[bytes]:
        """Yield the changed places of partitions, and those without a worker; the page keeps their state."""
        places = self._reader.places()
        halted = {
            full_name(place): [place.state.value, place.since_ns // 1_000_000, place.reason]
            for place in places
            if place.state in (LinkState.STARTING, LinkState.RECOVERING)
        }
        workers = [worker_document(place) for place in places]
        changed = {
            name: {"halted": why}
            for name, why in halted.items()
            if name in self._given and self._halted.get(name) != why
        }
        if changed or workers != self._workers:
            self._halted, self._workers = halted, workers
            self._number += 1
            yield self._event(b"change", {"workers": workers}, json.dumps(changed).encode())

    def _event(self, kind: bytes, about: dict[str, object], partitions: bytes) -> bytes:
        head = {"number": self._number, "time": time.time_ns() // 1_000_000, **about}
        return b"event: %b\ndata: %b%b%b}\n\n" % (kind, json.dumps(head).encode()[:-1], _CONTENT, partitions)


def _parsed(worker: AskedWorker, block: bytes) -> _Message | None:
    """Return a message of a worker; `None` if it is neither a document nor a change."""
    kind, _, data = block.partition(b"\ndata: ")
    kind = kind.removeprefix(b"event: ")
    if kind not in (b"full", b"change"):
        return None
    head, _, partitions = data.partition(_CONTENT)
    return _Message(worker, kind, json.loads(head + b"}"), partitions.removesuffix(b"}"))
