"""The link to one resource manager: it delivers announcements in order, on its own thread.

To an RM that only buffers what it gets, the thread that flushes delivers, if no other one delivers at that
moment and the buffer has room: a hand-over to the link's thread would cost more than the delivery.

Scheduling never waits for an RM's callback. Announcements are queued here and delivered one after the other.
When an RM is so slow that `BACKLOG_MAX` announcements wait, `is_congested` returns true, and the partitions
of that RM place nothing more until half of them are delivered. Answers to the RM's own requests are always
queued, since the RM itself bounds their number. Other RMs are not affected.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar, final

from ...lockcheck import Condition, excludes, leaf

BACKLOG_MAX: Final = 16_384
BATCH_MAX: Final = 256
"""How many announcements a thread delivers before it looks at the state of the link again."""

M = TypeVar("M")
"""The type of an announcement."""


class Buffer(Protocol):
    """An RM whose callbacks only put what they get into a buffer, and wait only while it is full."""

    def has_room(self) -> bool:
        """Return whether the buffer is not full."""

    def begin_burst(self) -> None:
        """Let the callbacks that follow not wait, on the thread that delivers."""

    def end_burst(self) -> None:
        """Put what they got into the buffer."""


@final
class RmLink(Generic[M]):
    """Delivers announcements to one RM.

    Args:
        name: the end of the thread's name.
        deliver: hands one announcement to the RM; called on one thread at a time. What it raises is counted
            here, and reported by itself.
        on_congestion_end: called when a congestion ends.
        after: an earlier link to the same RM: nothing is delivered before it has ended.
        buffer: the buffer of the RM, if it has one. Without it only the link's thread delivers.
    """

    def __init__(
        self,
        name: str,
        deliver: Callable[[M], None],
        on_congestion_end: Callable[[], None],
        *,
        after: RmLink[M] | None = None,
        buffer: Buffer | None = None,
    ) -> None:
        self._name = name
        self._deliver = deliver
        self._on_congestion_end = on_congestion_end
        self._buffer = buffer
        self._may_begin = threading.Event()
        self._successors: list[RmLink[M]] = []
        self._ended = False
        self._waiting: deque[M] = deque()
        self._changed = Condition(name="link", key=name)
        self._delivers = True
        """Whether a thread delivers, or this link has not begun; that thread takes all that is queued."""
        self._closed = False
        self._congested = False
        """Set by those who announce, reset by the thread that delivers, both without the lock."""
        self.failures = 0
        """How many callbacks have raised."""
        self._after = after
        """The link that must end before this one begins; `None` once it has ended."""
        if after is None or not after._add_successor(self):  # noqa: SLF001 - of the same class
            self._begin()
        self._deliverer = threading.Thread(target=self._run, name=f"licorne-rm-{name}", daemon=True)
        self._deliverer.start()

    @leaf
    def announce(self, announcement: M) -> None:
        """Queue an announcement, to be delivered after the next `flush`.

        A partition flushes when it has nothing more to do, or after some turns: to wake the thread for each
        announcement would make the two threads compete for the interpreter all the time.
        """
        if len(self._waiting) >= BACKLOG_MAX - 1:
            # Before it is queued: the thread looks whether the congestion is over after it has delivered it.
            self._congested = True
        self._waiting.append(announcement)

    def flush(self) -> None:
        """Deliver what is queued, or wake the thread that does."""
        buffer = self._buffer
        if not self._waiting or not self._begin_burst(buffer) or buffer is None:
            return
        try:
            buffer.begin_burst()
            self._deliver_batch(min(len(self._waiting), BATCH_MAX))
        finally:
            buffer.end_burst()
            self._end_burst()

    def _begin_burst(self, buffer: Buffer | None) -> bool:
        """Return whether the calling thread is to deliver; otherwise another one does."""
        with self._changed:
            if self._delivers:
                return False
            self._delivers = buffer is not None and buffer.has_room()
            if not self._delivers:
                self._changed.notify()
            return self._delivers

    def _end_burst(self) -> None:
        with self._changed:
            self._delivers = False
            if self._waiting or self._closed:
                self._changed.notify()

    @property
    def backlog(self) -> int:
        """How many announcements wait."""
        return len(self._waiting)

    def is_congested(self) -> bool:
        """Return whether too many announcements wait for more to be placed for the RM.

        Each cycle asks, so it takes no lock. After `True` a call of `on_congestion_end` follows.
        """
        return self._congested

    @excludes()
    def close(self) -> None:
        """Deliver what is queued, then end the thread; from a callback of the RM, without waiting."""
        self.close_nowait()
        if not self._delivers_on(threading.current_thread()):
            self._deliverer.join()

    def close_nowait(self) -> None:
        """Have the thread deliver what is queued and end; do not wait for it."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def cancel(self) -> None:
        """End the thread of a link that has announced nothing, and wait for no other link."""
        self._begin()
        self.close()

    def _delivers_on(self, thread: threading.Thread) -> bool:
        """Return whether the thread calls the RM, for this link or for one that must end before."""
        after = self._after
        return self._deliverer is thread or (after is not None and after._delivers_on(thread))  # noqa: SLF001 - of the same class

    def _begin(self) -> None:
        self._after = None
        self._may_begin.set()

    def _run(self) -> None:
        self._may_begin.wait()
        while count := self._begin_batch():
            self._deliver_batch(count)
        with self._changed:
            self._ended = True
            successors, self._successors = self._successors, []
        for successor in successors:
            successor._begin()  # noqa: SLF001 - of the same class

    def _add_successor(self, successor: RmLink[M]) -> bool:
        """Add a link that begins when this one has ended; `False` if it has ended already."""
        with self._changed:
            if not self._ended:
                self._successors.append(successor)
            return not self._ended

    def _begin_batch(self) -> int:
        """Wait for announcements; return how many to deliver next, 0 when the link is closed and empty."""
        with self._changed:
            self._delivers = False
            while self._delivers or not (self._waiting or self._closed):
                self._changed.wait()
            self._delivers = True
            return min(len(self._waiting), BATCH_MAX)

    def _deliver_batch(self, count: int) -> None:
        for _ in range(count):
            try:
                self._deliver(self._waiting.popleft())
            except BaseException:  # noqa: BLE001 - it has been reported
                self.failures += 1
        self._end_congestion()

    def _end_congestion(self) -> None:
        if self._congested and len(self._waiting) <= BACKLOG_MAX // 2:
            self._congested = False
            self._on_congestion_end()
