"""Asks of plain Pykka actors, which are checked like those of any other answerer (`answering`).

A `ThreadingActor` has its own thread, so each of its turns runs as the execution of that thread. An
ask is checked before its answer is waited for; if it is waited for at once, before the message is sent. An
answer is waited for once: to get it again does not wait.

Imported if the program has imported Pykka: see `found_late`.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar, cast, final

import pykka
from pykka._actor import ActorInbox
from pykka._future import GetHookFunc
from pykka._types import OptExcInfo
from pykka.messages import _ActorStop

from ..checking.answering import Answerer, await_answer
from ..findings.foreign import ByIdentity
from ..findings.terms import Rung
from ..holding.chains import Segment
from ..holding.runtime import LATCH, Interpreter, fails_open, local, next_segment, runtime
from ..holding.stacks import Runtimes, caller_outside
from .hooks import Hooks
from .signals import awaited, signalled

T = TypeVar("T")
Result = TypeVar("Result")

ASK: Final = (pykka.ActorRef, "ask")
"""The method by which everything is asked: if it is replaced, all are."""

_RUNTIMES: Final = Runtimes(
    os.path.dirname(os.path.dirname(__file__)) + os.sep,  # noqa: PTH120 - the package `lockcheck`, compared as text
    os.path.dirname(pykka.__file__) + os.sep,  # noqa: PTH120 - likewise
)


def put_all(hooks: Hooks) -> None:
    """Replace the method that asks plain actors, and the one that runs their turns."""
    actor = pykka.ThreadingActor
    hooks.put(*ASK, _ask(pykka.ActorRef.ask))  # it raises what the program is answered
    hooks.put(actor, "_create_future", staticmethod(HeardFuture))
    hooks.wrap(actor, "_actor_loop_setup", _turn)
    hooks.wrap(actor, "_handle_receive", _turn)


@final
class _Actor:
    """One actor: its answerer, and the thread on which it answers now."""

    __slots__ = ("answerer", "ended", "thread")

    def __init__(self, name: str) -> None:
        self.answerer = Answerer(name, _RUNTIMES, under_lock=Rung.RB)
        self.thread: int | None = None
        self.ended: Segment | None = None
        """Its last segment, if it has stopped."""


_actors: Final[ByIdentity[_Actor]] = ByIdentity()
"""By inbox."""


@fails_open(cast("_Actor | None", None))
def _actor_of(inbox: ActorInbox, kind: type[pykka.Actor]) -> _Actor | None:
    actor = _actors.get(inbox)
    if actor is None:
        new = _Actor(kind.__name__)
        with LATCH:
            actor = _actors.get(inbox) or new
            _actors.put(inbox, actor)
    return actor


class HeardFuture(pykka.ThreadingFuture[T]):
    """The answer to an ask. It remembers the actor that was asked, so that a wait for it can be checked."""

    def __init__(self) -> None:
        super().__init__()
        self.answered = False
        """Whether it has an answer, or is about to."""
        self.asked: _Actor | None = None
        """The actor that is to answer; `None` once the answer was fetched."""
        self.points = False
        """Whether it answers that the actor has stopped."""

    def set(self, value: T | None = None) -> None:
        """Give the answer, as Pykka does."""
        self._comes()
        super().set(value)

    def set_exception(self, exc_info: OptExcInfo | None = None) -> None:
        """Give an exception as the answer, as Pykka does."""
        self._comes()
        super().set_exception(exc_info)

    def set_get_hook(self, func: GetHookFunc[T]) -> None:
        """Set the function that computes it when it is fetched, as Pykka does; its own waits are checked."""
        self.asked = None
        super().set_get_hook(func)

    def get(self, *, timeout: float | None = None) -> Any:
        """Return the answer, or raise it, as Pykka does.

        Raises:
            pykka.Timeout: there was no answer within `timeout` seconds.
            LockOrderError, DeadlockPossibleError: that is the policy for what was found.
            DeadlockError: this wait would complete a deadlock, or is the victim of one. The message stays
                sent, whatever is raised.
        """
        asked = self.asked
        if asked is not None and runtime.watch is not None:
            _check(asked, timeout)
            if timeout is None:
                _await(asked, [self], self.wait)
        return self.take(timeout)

    def take(self, timeout: float | None) -> Any:
        """Do what `get` does, after the check."""
        try:
            return super().get(timeout=timeout)
        finally:
            if self.answered:
                self._has_come()

    def wait(self, seconds: float) -> bool:
        """Wait for a limited time; return whether the wait is over."""
        try:
            super().get(timeout=seconds)
        except pykka.Timeout:
            return self.answered or self.asked is None
        except Exception:  # noqa: BLE001 - it is the answer, and raised where that is fetched
            return True
        return True

    def _comes(self) -> None:
        """Note that the answer comes, before it does: a fetch right after it has to find this note."""
        signalled(self)
        self.answered = True

    def _has_come(self) -> None:
        """Note that the answer came before what follows; the end of an actor comes after all that it did."""
        asked, self.asked = self.asked, None
        awaited(self)
        if self.points and asked is not None and asked.ended is not None:
            next_segment(local.execution, asked.ended, "by the end of an actor")


@fails_open(None)
def _check(asked: _Actor, timeout: float | None) -> None:
    """Check an ask that is about to be waited for."""
    asked.answerer.asked(limited=timeout is not None)


def _await(asked: _Actor, sent: Sequence[HeardFuture[Any]], attempt: Callable[[float], bool]) -> None:
    """Wait for the answer to what was asked, or is at the first attempt, and check for deadlocks."""

    def thread() -> int | None:
        return None if sent and sent[0].answered else asked.thread

    program = caller_outside(_RUNTIMES, 1)
    await_answer(str(asked.answerer.identity), thread, attempt, frame=program, closes=True)


def _send_and_await(asked: _Actor, send: Callable[[], HeardFuture[Any]]) -> HeardFuture[Any]:
    """Ask, wait for the answer, and check for deadlocks; an ask that would complete one is not sent."""
    sent: list[HeardFuture[Any]] = []

    def attempt(seconds: float) -> bool:
        if not sent:
            sent.append(send())
        return sent[0].wait(seconds)

    _await(asked, sent, attempt)
    return sent[0]


def _ask(method: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap `ActorRef.ask`; actors whose futures are of another kind are not checked, and neither are ours."""

    @functools.wraps(method)
    def ask(
        self: pykka.ActorRef[Any], message: object, *, block: bool = True, timeout: float | None = None
    ) -> Any:
        kind = self.actor_class
        heard = kind._create_future is HeardFuture and runtime.watch is not None  # noqa: SLF001 - as `ask` does
        asked = _actor_of(self.actor_inbox, kind) if heard else None
        if asked is None:
            return method(self, message, block=block, timeout=timeout)

        def send() -> HeardFuture[Any]:
            future: HeardFuture[Any] = method(self, message, block=False)
            future.asked, future.points = asked, isinstance(message, _ActorStop)
            return future

        if not block:
            return send()
        _check(asked, timeout)
        future = send() if timeout is not None else _send_and_await(asked, send)
        return future.take(timeout)

    return ask


def _turn(method: Callable[..., Result], self: pykka.ThreadingActor, *given: object) -> Result:
    """Wrap the method that runs a turn of an actor on its thread."""
    actor = _actor_of(self.actor_inbox, type(self))
    if actor is None:
        return method(self, *given)
    actor.thread = Interpreter.thread_number()
    actor.answerer.enter()
    try:
        return method(self, *given)
    finally:
        actor.answerer.leave()
        actor.thread = None
        if self.actor_stopped.is_set():
            actor.ended = local.execution.segment
