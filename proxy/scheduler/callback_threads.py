"""Which threads run code of a resource manager on behalf of the scheduler: a predicate or a callback."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, final

from ...model.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["CallbackThreads"]


@final
class CallbackThreads(threading.local):
    """Entered around each predicate and callback; each thread sees itself alone.

    The partition that asks a predicate waits for its answer. A call from inside that would wait for
    partitions could so wait for ever: for this one, or for another thread that waits for it. A callback may
    call the scheduler, but must not wait for another callback, which may do the same.
    """

    def __init__(self) -> None:
        self._predicates = 0
        self._callback_of: str | None = None

    @contextmanager
    def predicate(self) -> Iterator[None]:
        """Count the thread as inside a predicate."""
        self._predicates += 1
        try:
            yield
        finally:
            self._predicates -= 1

    @contextmanager
    def callback(self, rm_id: str) -> Iterator[None]:
        """Count the thread as inside a callback of a resource manager."""
        before, self._callback_of = self._callback_of, rm_id
        try:
            yield
        finally:
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
