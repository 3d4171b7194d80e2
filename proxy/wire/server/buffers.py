"""Bounded buffers between the event loop and the threads that call the scheduler.

They are the server's back-pressure: a task that puts into a full buffer waits, and so does not read more
from its peer. Each has a bound in items and one in bytes; an empty buffer takes an item of any size.
"""

from __future__ import annotations

import asyncio
import threading
from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Final, Generic, TypeVar, final

INBOX_MAX: Final = 64
"""How many requests of a peer wait for its thread before the server stops reading from the peer."""
INBOX_BYTES_MAX: Final = 1 << 20
"""How many bytes these requests have on the wire."""
OUTGOING_MAX: Final = 1_024
"""How many messages wait for a peer to read them before the callbacks of its RM wait."""
OUTGOING_BYTES_MAX: Final = 1 << 20
"""How many bytes these messages have."""

T = TypeVar("T")


@final
class Inbox(Generic[T]):
    """The requests of one peer: the event loop puts them in, one thread takes them out."""

    def __init__(
        self, loop: AbstractEventLoop, size_max: int = INBOX_MAX, bytes_max: int = INBOX_BYTES_MAX
    ) -> None:
        self._loop = loop
        self._size_max = size_max
        self._bytes_max = bytes_max
        self._items: SimpleQueue[tuple[T, int] | None] = SimpleQueue()
        """The items with their sizes; `None` behind the last one of a closed inbox."""
        self._lock = threading.Lock()
        self._count = 0
        self._bytes = 0
        self._has_room = asyncio.Event()
        self._putter_waits = False
        self._closed = False

    async def put(self, item: T, size_bytes: int = 0) -> None:
        """Put an item in; wait while the inbox is full. For any number of tasks of the event loop."""
        while not self._is_done_with(item, size_bytes):
            await self._has_room.wait()

    def _is_done_with(self, item: T, size_bytes: int) -> bool:
        """Put an item in, unless there is no room; return whether it was put. A closed inbox drops it."""
        with self._lock:
            if self._closed:
                return True
            is_full = self._count >= self._size_max or self._bytes + size_bytes > self._bytes_max
            if is_full and self._count:
                self._has_room.clear()
                self._putter_waits = True
                return False
            self._count += 1
            self._bytes += size_bytes
        self._items.put((item, size_bytes))
        return True

    def close(self, *, drop: bool = False) -> None:
        """Put nothing more in; `get` returns what is there, unless it is dropped, then `None`."""
        with self._lock:
            self._closed = True
            self._wake_putters()
        with suppress(Empty):
            while drop:
                self._items.get_nowait()
        self._items.put(None)

    def get(self) -> T | None:
        """Wait for the next item and take it out; `None` after the last one. For the thread."""
        found = self._items.get()
        if found is None:
            self._items.put(None)
            return None
        item, size_bytes = found
        with self._lock:
            self._count -= 1
            self._bytes -= size_bytes
            if self._count <= self._size_max // 2 and self._bytes <= self._bytes_max // 2:
                self._wake_putters()
        return item

    def _wake_putters(self) -> None:
        """Have those that wait look again; the caller has the lock."""
        if self._putter_waits:
            self._putter_waits = False
            call_soon(self._loop, self._has_room.set)


@final
class Outgoing(Generic[T]):
    """The messages to one stream: any thread puts them in, one task of the event loop takes them out.

    Args:
        loop: The event loop.
        size_of: Returns the bytes of a message.
        size_max: How many messages it holds.
        bytes_max: How many bytes they have.
    """

    def __init__(
        self,
        loop: AbstractEventLoop,
        size_of: Callable[[T], int],
        *,
        size_max: int = OUTGOING_MAX,
        bytes_max: int = OUTGOING_BYTES_MAX,
    ) -> None:
        self._loop = loop
        self._size_of = size_of
        self._size_max = size_max
        self._bytes_max = bytes_max
        self._bytes = 0
        self._waiting: deque[T] = deque()
        self._changed = threading.Condition()
        self._filled = asyncio.Event()
        self._taker_waits = False
        self._bounded = True
        self._finished = False
        self._closed = False

    def put(self, item: T) -> bool:
        """Put an item in, and wait while the buffer is full; return whether it will be sent."""
        size_bytes = self._size_of(item)
        with self._changed:
            while self._bounded and self._is_full() and not self._finished:
                self._changed.wait()
            return self._append(item, size_bytes)

    def put_nowait(self, *items: T) -> bool:
        """Put items in, also if the buffer is full; return whether they will be sent."""
        sizes = [*map(self._size_of, items)]
        with self._changed:
            return all(map(self._append, items, sizes))

    def try_put(self, item: T) -> bool:
        """Put an item in, unless the buffer is full; return whether it will be sent."""
        size_bytes = self._size_of(item)
        with self._changed:
            return not self._is_full() and self._append(item, size_bytes)

    def _append(self, item: T, size_bytes: int) -> bool:
        if self._finished:
            return False
        self._waiting.append(item)
        self._bytes += size_bytes
        self._wake()
        return True

    def _wake(self) -> None:
        """Wake the event loop if it waits; the caller has the lock."""
        if self._taker_waits:
            self._taker_waits = False
            call_soon(self._loop, self._filled.set)

    def _is_full(self) -> bool:
        return len(self._waiting) >= self._size_max or self._bytes >= self._bytes_max

    def has_room(self) -> bool:
        """Return whether the buffer is not full."""
        return not self._is_full()

    def wait_for_room(self) -> None:
        """Wait while the buffer is full, unless it has ended: a peer that does not read is not served."""
        if self._is_full():
            with self._changed:
                self._changed.wait_for(lambda: self._finished or not self._is_full())

    def has_items(self) -> bool:
        """Return whether there are items."""
        return bool(self._waiting)

    async def wait_for_items(self, is_over: Callable[[], bool] = lambda: False) -> None:
        """Wait until there are items, the buffer has ended, or it is over for the taker; see `take`."""
        while True:
            with self._changed:
                if is_over() or self._waiting or self._finished:
                    return
                self._filled.clear()
                self._taker_waits = True
            await self._filled.wait()

    async def take(self, is_over: Callable[[], bool] = lambda: False) -> list[T]:
        """Wait for items and take all of them out; for one task of the event loop at a time.

        Returns:
            Nothing when the buffer has ended, or when it is over for the taker.
        """
        await self.wait_for_items(is_over)
        with self._changed:
            if is_over():
                return []
            items = list(self._waiting)
            self._clear()
            return items

    def put_back(self, items: Sequence[T]) -> None:
        """Put items back that were taken and not sent, before all others."""
        with self._changed:
            if not self._closed:
                self._waiting.extendleft(reversed(items))
                self._bytes += sum(map(self._size_of, items))

    def look_again(self) -> None:
        """Make the taker check whether it is over; on the event loop."""
        self._filled.set()

    def _clear(self) -> None:
        self._waiting.clear()
        self._bytes = 0
        self._changed.notify_all()

    def set_bounded(self, bounded: bool) -> None:  # noqa: FBT001 - it is the verb's object
        """Have `put` wait while the buffer is full, or not."""
        with self._changed:
            self._bounded = bounded
            self._changed.notify_all()

    def finish(self) -> None:
        """Refuse items from now on; those in it are still sent."""
        with self._changed:
            self._finished = True
            self._wake()
            self._changed.notify_all()

    def close(self) -> None:
        """Refuse items from now on, and drop those in it: they have no reader."""
        with self._changed:
            self._closed = self._finished = True
            self._clear()
            self._wake()


def call_soon(loop: AbstractEventLoop, callback: Callable[..., object], *args: object) -> None:
    """Make the loop call something, from any thread; a closed loop calls nothing."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(callback, *args)
