"""The live data of all viewers: one reading of the scheduler for all of them, and none without a viewer.

A reading is made ten times a second at most, on a thread of its own; after a long one the next waits for as
long again, so that readings take half of the time at most. Each viewer has a queue of a few messages. One
that is too slow loses what waits there, and gets the full document next.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import AsyncGenerator
from typing import Final, final

from ....model.errors import RequestError
from ...core.scheduler.scheduler import Scheduler
from .rows import LiveTables

INTERVAL_SECONDS: Final = 0.1
VIEWERS_MAX: Final = 64
_WAITING_MAX: Final = 16
"""How many messages wait for a viewer before it is given the full document in their place."""
_SILENCE_SECONDS: Final = 10.0
"""After so long without a message a comment is sent: it finds connections that are gone."""
_RETRY_MS: Final = 1000
_USAGES_EACH: Final = 10
"""Users and groups are read with each tenth reading: their rows are made anew each time."""


class TooManyViewersError(RequestError):
    """As many viewers as are allowed look already."""


@final
class Viewer:
    """One connection that shows live data. Used by the event loop alone."""

    def __init__(self) -> None:
        self.needs_all = True
        self._waiting: deque[str] = deque()
        self._arrived = asyncio.Event()

    def put(self, message: str) -> None:
        """Add a message; at the bound all that wait are dropped, and the full document comes next."""
        if len(self._waiting) >= _WAITING_MAX:
            self._waiting.clear()
            self.needs_all = True
            return
        self._waiting.append(message)
        self._arrived.set()

    async def get(self) -> str:
        """Return the next message, a comment after a long silence."""
        while not self._waiting:
            self._arrived.clear()
            try:
                async with asyncio.timeout(_SILENCE_SECONDS):
                    await self._arrived.wait()
            except TimeoutError:
                return ": nothing has changed\n\n"
        return self._waiting.popleft()


@final
class LiveFeed:
    """Reads the scheduler while there are viewers, and sends all of them what changed."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._view = scheduler.monitoring.live_view
        self._viewers: dict[Viewer, None] = {}
        self._task: asyncio.Task[None] | None = None
        self.readings = 0
        """How often the scheduler has been read."""

    async def messages(self) -> AsyncGenerator[str, None]:
        """Yield the messages of a new viewer, as server-sent events, until it goes."""
        viewer = Viewer()
        self._viewers[viewer] = None
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())
        try:
            yield f"retry: {_RETRY_MS}\n\n"
            while True:
                yield await viewer.get()
        finally:
            self._viewers.pop(viewer, None)

    def check_room(self) -> None:
        """Refuse a viewer beyond the bound.

        Raises:
            TooManyViewersError: There are as many as are allowed.
        """
        if len(self._viewers) >= VIEWERS_MAX:
            raise TooManyViewersError(f"{VIEWERS_MAX} pages are open already, more are not served")

    async def close(self) -> None:
        """Read no more."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _run(self) -> None:
        """Read and send, until there is no viewer."""
        tables = LiveTables()
        number = 0
        due = time.monotonic()
        while self._viewers:
            began = time.monotonic()
            needs_all = any(viewer.needs_all for viewer in self._viewers)
            try:
                all_of_it, change = await asyncio.to_thread(self._read, tables, needs_all=needs_all)
            except RequestError as error:
                all_of_it, change = "", ""
                self._tell_all(_event("unavailable", _quoted(str(error))))
            number += bool(change)
            self._tell(number, all_of_it, change)
            ended = time.monotonic()
            due = next_reading(due, began, ended)
            await asyncio.sleep(due - ended)

    def _read(self, tables: LiveTables, *, needs_all: bool) -> tuple[str, str]:
        """Return the full document, if anybody needs it, and what changed; runs on a thread of its own."""
        self.readings += 1
        with_usages = needs_all or self.readings % _USAGES_EACH == 0
        change = tables.update(self._view.rows(tables.known, with_usages=with_usages))
        return (tables.full() if needs_all else ""), change

    def _tell(self, number: int, all_of_it: str, change: str) -> None:
        now_ms = time.time_ns() // 1_000_000
        head = f'"number":{number},"time":{now_ms}'
        about = {"engine": self._scheduler.engine_name, "events": self._scheduler.events.enabled}
        full = _event("full", f'{{{head},{json.dumps(about)[1:-1]},"partitions":{all_of_it}}}')
        changed = _event("change", f'{{{head},"partitions":{change}}}')
        for viewer in self._viewers:
            if viewer.needs_all:
                if all_of_it:
                    viewer.needs_all = False
                    viewer.put(full)
            elif change:
                viewer.put(changed)

    def _tell_all(self, message: str) -> None:
        for viewer in self._viewers:
            viewer.needs_all = True
            viewer.put(message)


def next_reading(due: float, began: float, ended: float) -> float:
    """Return when to read next, in seconds of the clock of the arguments.

    Args:
        due: When the last reading was due: what it was late is not added to the interval.
        began: When it began.
        ended: When its messages were given to the viewers.
    """
    return max(due + INTERVAL_SECONDS, ended + (ended - began))


def _event(kind: str, data: str) -> str:
    return f"event: {kind}\ndata: {data}\n\n"


def _quoted(text: str) -> str:
    return json.dumps({"why": text})
