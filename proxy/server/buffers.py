"""Bounded buffers between the event loop and the threads that call the scheduler.

They are the server's back-pressure: who puts into a full buffer waits, and so does not read more from its
peer.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from queue import SimpleQueue
from typing import TYPE_CHECKING, Final, Generic, TypeVar, final

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Sequence

__all__ = ["INBOX_MAX", "OUTGOING_MAX", "Inbox", "Outgoing"]

INBOX_MAX: Final = 64
"""How many requests of a peer wait for its thread before the server stops reading from the peer."""
OUTGOING_MAX: Final = 1_024
"""How many messages wait for a peer to read them before the callbacks of its RM wait."""

T = TypeVar("T")


@final
class Inbox(Generic[T]):
    """The requests of one peer: the event loop puts them in, one thread takes them out.

    All methods but `get` belong to the event loop.
    """

    def __init__(self, loop: AbstractEventLoop, size_max: int = INBOX_MAX) -> None:
        self._loop = loop
        self._size_max = size_max
        self._waiting: SimpleQueue[T | None] = SimpleQueue()
        self._has_room = asyncio.Event()
        self._waits = False
        self._closed = False

    async def put(self, item: T) -> None:
        """Put an item in; wait while the inbox is full."""
        while self._waiting.qsize() >= self._size_max and not self._closed:
            self._has_room.clear()
            self._waits = True
            if (
                self._waiting.qsize() >= self._size_max
            ):  # The thread may have made room before it saw the flag.
                await self._has_room.wait()
            self._waits = False
        if not self._closed:
            self._waiting.put(item)

    def close(self) -> None:
        """Put nothing more in; `get` returns what is there, then `None`."""
        if not self._closed:
            self._closed = True
            self._waiting.put(None)
            self._has_room.set()

    def get(self) -> T | None:
        """Wait for the next item and take it out; `None` after the last one. For the thread."""
        item = self._waiting.get()
        if item is None:
            self._waiting.put(None)  # A second question gets the same answer.
        elif self._waits and self._waiting.qsize() <= self._size_max // 2:
            self._loop.call_soon_threadsafe(self._has_room.set)
        return item


@final
class Outgoing(Generic[T]):
    """The messages to one stream: any thread puts them in, the event loop takes them out."""

    def __init__(self, loop: AbstractEventLoop, size_max: int = OUTGOING_MAX) -> None:
        self._loop = loop
        self._size_max = size_max
        self._waiting: deque[T] = deque()
        self._changed = threading.Condition()
        self._filled = asyncio.Event()
        self._taker_waits = False
        self._bounded = True
        self._finished = False
        self._closed = False

    def put(self, item: T) -> bool:
        """Put an item in, and wait while the buffer is full; return whether it will be sent."""
        with self._changed:
            while self._bounded and len(self._waiting) >= self._size_max and not self._closed:
                self._changed.wait()
            return self._append(item)

    def put_nowait(self, item: T) -> bool:
        """Put an item in, also if the buffer is full; return whether it will be sent."""
        with self._changed:
            return self._append(item)

    def _append(self, item: T) -> bool:
        if self._closed or self._finished:
            return False
        self._waiting.append(item)
        self._wake()
        return True

    def _wake(self) -> None:
        """Wake the event loop if it waits; the caller has the lock."""
        if self._taker_waits:
            self._taker_waits = False
            self._loop.call_soon_threadsafe(self._filled.set)

    @property
    def is_full(self) -> bool:
        """Return whether a callback would have to wait."""
        return len(self._waiting) >= self._size_max

    async def take(self) -> list[T]:
        """Wait for items and take all of them out; nothing when the buffer has ended. For the event loop."""
        while True:
            with self._changed:
                if self._waiting or self._closed or self._finished:
                    items = list(self._waiting)
                    self._waiting.clear()
                    self._changed.notify_all()
                    return [] if self._closed else items
                self._filled.clear()
                self._taker_waits = True
            await self._filled.wait()

    def put_back(self, items: Sequence[T]) -> None:
        """Put items back that were taken and not sent: they come first again."""
        if items:
            with self._changed:
                self._waiting.extendleft(reversed(items))
                self._wake()

    def set_bounded(self, bounded: bool) -> None:  # noqa: FBT001 - it is the verb's object
        """Have `put` wait while the buffer is full, or not."""
        with self._changed:
            self._bounded = bounded
            self._changed.notify_all()

    def finish(self) -> None:
        """Take no more items; those that are in it are still sent."""
        with self._changed:
            self._finished = True
            self._wake()

    def close(self) -> None:
        """Take no more items, and drop those that are in it: they have no reader."""
        with self._changed:
            self._closed = True
            self._waiting.clear()
            self._wake()
            self._changed.notify_all()
