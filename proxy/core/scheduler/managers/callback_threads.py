"""The threads that run code of a resource manager for the scheduler now: a predicate or a callback."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import final

from .....model.errors import RequestError


@final
class CallbackThreads(threading.local):
    """Contexts that are entered around each predicate and callback; each thread has its own state.

    The partition that asks a predicate waits for its answer. A call from inside the predicate that waits for
    partitions could wait for ever: for this partition, or for another thread that waits for it. A callback
    may call the scheduler, but must not wait for another callback, which may do the same.
    """

    def __init__(self) -> None:
        self._predicates = 0
        self._callback_of: str | None = None

    @contextmanager
    def predicate(self) -> Iterator[None]:
        """Mark the thread as inside a predicate."""
        self._predicates += 1
        try:
            yield
        finally:
            self._predicates -= 1

    @contextmanager
    def callback(self, rm_id: str) -> Iterator[None]:
        """Mark the thread as inside a callback of a resource manager."""
        before = self.enter_callback(rm_id)
        try:
            yield
        finally:
            self.leave_callback(before)

    def enter_callback(self, rm_id: str) -> str | None:
        """Mark the thread as `callback` does, for a third of its time; return what `leave_callback` needs."""
        before, self._callback_of = self._callback_of, rm_id
        return before

    def leave_callback(self, before: str | None) -> None:
        """Mark the thread as it was before `enter_callback`."""
        self._callback_of = before

    @property
    def callback_of(self) -> str | None:
        """The resource manager whose callback runs on this thread."""
        return self._callback_of

    @property
    def may_wait(self) -> bool:
        """Whether a call from this thread may wait for room: the scheduler does not wait for it."""
        return not self._predicates and self._callback_of is None

    def refuse(self, call: str) -> None:
        """Refuse a call if this thread is inside a predicate.

        Raises:
            RequestError: it is; nothing has changed.
        """
        if self._predicates:
            raise RequestError(
                f"{call} inside a predicate is refused: the partition that asked the predicate waits for it"
            )
