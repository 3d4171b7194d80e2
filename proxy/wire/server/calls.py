"""The calls that are under way: how each is answered, and how long one may be there without a word.

A call that no resource manager (RM) has claimed yet is a *stranger*. Strangers cannot keep RMs out: when
there are too many, the oldest ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar, final

import grpc

from .statuses import StatusError, status_of

STRANGERS_MAX: Final = 500
"""How many streams without an RM are open at once."""
LAST_SECONDS: Final = 5.0
"""How long a stream that ends may take to deliver what is queued, and its status."""

T = TypeVar("T")


@final
class Calls:
    """The calls of a server; it belongs to the event loop.

    Args:
        silence_seconds: How long a session may be open without its first message.
        strangers_max: How many streams without an RM are open at once.
    """

    def __init__(self, silence_seconds: float, strangers_max: int = STRANGERS_MAX) -> None:
        self.silence_seconds: Final = silence_seconds
        self._strangers_max = strangers_max
        self._strangers: dict[asyncio.Task[Any], None] = {}
        """The oldest is the first."""
        self._endings: dict[asyncio.Task[Any], StatusError] = {}
        """The calls that are being ended from here."""

    async def answer(
        self, context: grpc.aio.ServicerContext[Any, Any], answer: Callable[[], Awaitable[T]]
    ) -> T:
        """Answer a call; an error becomes its status."""
        task = asyncio.current_task()
        assert task is not None, "a call is answered by a task: please report"
        try:
            return await answer()
        except asyncio.CancelledError:
            status = self._endings.get(task)
            if status is None:
                raise
            task.uncancel()
            code, text = status_of(status)
        except Exception as error:  # noqa: BLE001 - it is the answer
            code, text = status_of(error)
        finally:
            self._endings.pop(task, None)
        try:
            async with asyncio.timeout(LAST_SECONDS):
                await context.abort(code, text)
        except TimeoutError:  # The peer does not read; gRPC keeps the status for it.
            raise asyncio.CancelledError from None
        raise AssertionError("a call that is aborted has ended: please report")

    def end(self, task: asyncio.Task[Any], status: StatusError) -> None:
        """End a call, whatever it waits for."""
        if not task.done():
            self._endings.setdefault(task, status)
            task.cancel()

    @contextmanager
    def stranger(self) -> Iterator[asyncio.Task[Any]]:
        """Count this call as one without an RM, until it is claimed or ends."""
        task = asyncio.current_task()
        assert task is not None, "a call is answered by a task: please report"
        self._strangers[task] = None
        if len(self._strangers) > self._strangers_max:
            oldest = next(iter(self._strangers))
            self.claim(oldest)
            text = f"more than {self._strangers_max} streams have no resource manager: this one is the oldest"
            self.end(oldest, StatusError(grpc.StatusCode.RESOURCE_EXHAUSTED, text))
        try:
            yield task
        finally:
            self.claim(task)

    def claim(self, task: asyncio.Task[Any]) -> None:
        """Note that a call is that of an RM."""
        self._strangers.pop(task, None)

    def end_strangers(self, status: StatusError) -> None:
        """End all calls without an RM."""
        for task in list(self._strangers):
            self.end(task, status)

    async def first_message(self, context: grpc.aio.ServicerContext[Any, Any]) -> Any:
        """Return the first message of a stream that begins with a greeting, `EOF` if there is none.

        Raises:
            StatusError: It did not come in time (DEADLINE_EXCEEDED).
        """
        try:
            async with asyncio.timeout(self.silence_seconds):
                return await context.read()
        except TimeoutError as error:
            text = f"no first message came within {self.silence_seconds:g} s"
            raise StatusError(grpc.StatusCode.DEADLINE_EXCEEDED, text) from error
