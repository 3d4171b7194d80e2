"""The answer to an ask; a thread that waits for it runs the answering actor if no other thread does."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from queue import Full
from threading import Lock, get_ident
from types import TracebackType
from typing import TYPE_CHECKING, TypeAlias, TypeVar, cast

from pykka import Future, Timeout

from .waiting import WAIT_GRAPH, OpenWait

if TYPE_CHECKING:
    from .mailbox import Mailbox
    from .waiting import AskRule

T = TypeVar("T")

ExceptionInfo: TypeAlias = tuple[type[BaseException] | None, BaseException | None, TracebackType | None]
"""The return value of `sys.exc_info()`."""


_Outcome: TypeAlias = tuple[T | None, ExceptionInfo | None]
"""A value, or the exception to raise instead."""


class PooledFuture(Future[T]):
    """A future that helps: with a mailbox, `get` without a deadline runs the actor.

    A future without a mailbox is a promise that any thread may fulfil. A thread that waits for it can only
    sleep, and a cycle through it is not found, since it is not known which thread will fulfil it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.mailbox: Mailbox | None = None
        """The mailbox with the message that this future answers; set before the message is sent."""
        self.withdrawn = False
        """Whether the message is to be skipped; written while its actor's owner is known to wait."""
        self._lock = Lock()
        self._outcome: _Outcome[T] | None = None
        self._hook_thread: int | None = None
        self._waits: list[OpenWait] | None = None

    def __str__(self) -> str:
        """Name the actor that is to answer."""
        return "a promise" if self.mailbox is None else str(self.mailbox)

    # The interface for Pykka's users.

    def get(self, *, timeout: float | None = None) -> T:
        """Return the answer or raise the exception that is the answer.

        Raises:
            AskCycleError: the answering actor waits for this thread; the message stays sent.
            AskDirectionError: the dispatcher checks directions, and this thread runs an actor that must
                not wait for the answering one.
            pykka.Timeout: there was no answer within `timeout` seconds; there still may be one later.
        """
        rule = self.rule()
        if rule is not None:
            rule.asked(limited=timeout is not None)
        return self.obtain(timeout, withdraws=False)

    def set(self, value: T | None = None) -> None:
        """Give the answer; a second one raises `queue.Full`."""
        self._resolve((value, None))

    def set_exception(self, exc_info: ExceptionInfo | None = None) -> None:
        """Give an exception, by default the one being handled, as the answer."""
        assert exc_info is None or len(exc_info) == 3
        self._resolve((None, sys.exc_info() if exc_info is None else exc_info))

    def set_get_hook(self, func: Callable[[float | None], T]) -> None:
        """Have the first thread that gets the answer compute it."""
        with self._lock:
            if self._outcome is not None:
                raise Full
            super().set_get_hook(func)
            waits, self._waits = self._waits, None
        _wake(waits)

    # The interface for waits.

    def done(self) -> bool:
        """Return whether there is an answer."""
        with self._lock:
            return self._outcome is not None

    def answerer(self) -> int | None:
        """Return the thread that the answer depends on now."""
        with self._lock:
            if self._hook_thread is not None:
                return self._hook_thread
        return None if self.mailbox is None else self.mailbox.owner()

    def rule(self) -> AskRule | None:
        """Return the check of the answering actor's asks, if there is one."""
        return None if self.mailbox is None else self.mailbox.direction

    def withdraw(self, error: Exception) -> None:
        """Fail with `error` and have the actor skip the message."""
        self.withdrawn = True
        with suppress(Full):  # it has an answer already
            self.set_exception((type(error), error, None))

    def obtain(self, timeout: float | None, *, withdraws: bool) -> T:
        """Do the work of `get` after the check of the ask; on a cycle, withdraw the message (`withdraws`)."""
        with self._lock:
            outcome = self._outcome
        if outcome is None:
            outcome = self._await(timeout, withdraws=withdraws)
        return _unwrap(outcome)

    # Waiting and helping.

    def _await(self, timeout: float | None, *, withdraws: bool) -> _Outcome[T]:
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            with self._lock:
                outcome = self._outcome
                hook = self._get_hook if outcome is None and self._hook_thread is None else None
                if hook is not None:
                    self._hook_thread = get_ident()
            if outcome is not None:
                return outcome
            remaining = None if deadline is None else deadline - time.monotonic()
            if hook is not None:
                return self._compute(hook, remaining)
            if self.mailbox is not None and remaining is None:
                self._help(self.mailbox, withdraws=withdraws)
            elif not self._sleep(remaining, withdraws=withdraws):
                raise Timeout(f"{timeout} seconds")

    def _compute(self, hook: Callable[[float | None], T], remaining: float | None) -> _Outcome[T]:
        """Run the hook; an error that it raises is not kept, so that the next thread may try again."""
        outcome: _Outcome[T] | None = None
        try:
            outcome = (hook(remaining), None)
        finally:
            with self._lock:
                self._outcome = outcome
                self._hook_thread = None
                waits, self._waits = self._waits, None
            _wake(waits)
        return outcome

    def _help(self, mailbox: Mailbox, *, withdraws: bool) -> None:
        """Run the actor until it has answered, or wait for the thread that runs it."""
        if mailbox.claim():
            mailbox.drain_until(self)
            return
        wait = OpenWait(self, withdraws=withdraws)
        try:
            while not self.done():
                if mailbox.claim():
                    mailbox.drain_until(self)
                    continue
                WAIT_GRAPH.add(wait)
                try:
                    # Either registration declines if there is no longer anything to wait for.
                    if self._register(wait) and mailbox.register(wait):
                        wait.sleep()
                finally:
                    WAIT_GRAPH.remove(wait)
        finally:
            mailbox.unregister(wait)

    def _sleep(self, remaining: float | None, *, withdraws: bool) -> bool:
        """Sleep until something has changed; `False` at the deadline.

        A handler cannot be interrupted, so a thread with a deadline leaves the message to another thread.
        """
        if remaining is not None and remaining <= 0:
            return False
        wait = OpenWait(self, withdraws=withdraws)
        WAIT_GRAPH.add(wait)
        try:
            return not self._register(wait) or wait.sleep(remaining)
        finally:
            WAIT_GRAPH.remove(wait)
            self._unregister(wait)

    def _register(self, wait: OpenWait) -> bool:
        """Have the thread woken when the future changes; `False` if it has an outcome or a free hook."""
        with self._lock:
            if self._outcome is not None or (self._get_hook is not None and self._hook_thread is None):
                return False
            if self._waits is None:
                self._waits = [wait]
            elif wait not in self._waits:
                self._waits.append(wait)
            return True

    def _unregister(self, wait: OpenWait) -> None:
        with self._lock:
            if self._waits is not None and wait in self._waits:
                self._waits.remove(wait)

    def _resolve(self, outcome: _Outcome[T]) -> None:
        with self._lock:
            if self._outcome is not None or self._get_hook is not None:
                raise Full
            self._outcome = outcome
            waits, self._waits = self._waits, None
        _wake(waits)


def _unwrap(outcome: _Outcome[T]) -> T:
    value, exception = outcome
    if exception is None:
        return cast("T", value)
    kind, error, traceback = exception
    if error is None:
        assert kind is not None
        error = kind()
    raise error.with_traceback(traceback)


def _wake(waits: list[OpenWait] | None) -> None:
    for wait in waits or ():
        wait.wake()
