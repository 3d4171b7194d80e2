"""The dispatcher: it runs the actors of one scheduler and lists them.

Nothing here is shared: two dispatchers in one process do not affect each other, and to stop the actors of one
leaves those of the other running.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from threading import Lock, get_ident
from typing import Any, ParamSpec, Self, TypeVar

from pykka import ActorRegistry
from pykka.messages import _ActorStop

from ...lockcheck.environment.settings import level_for
from ...lockcheck.findings.terms import Level
from ..services.log import Log
from .actor import PooledActor
from .errors import DispatcherError
from .mailbox import Mailbox
from .pool import WorkerPool
from .reference import AnyRef, DeadLetter, DeadLetterHook, Failure, FailureHook, PooledRef
from .waiting import AskDirection, AskRule

A = TypeVar("A", bound="PooledActor")
P = ParamSpec("P")


class Dispatcher:
    """A pool of workers, the mailboxes that wait for one, and the actors that live here.

    Args:
        workers: threads for messages that no asking thread runs itself. With 0 nothing runs by itself:
            `run_pending` does it on the calling thread, and an ask with a deadline needs an idle pool.
        max_workers: bound on all threads, those that wait or block inside a handler included.
        budget: messages of one actor that a worker handles before the next actor's turn.
        name: what the threads and the log call this dispatcher.
        on_dead_letter: called with every message sent by `tell` that is not delivered.
        on_failure: called with every exception that is not the answer to an ask.
        check_direction: refuse blocking asks that go sideways or up; for tests. If locks are checked when the
            dispatcher is made, lockcheck checks asks as well.
        log: gets what happens to the actors; by default everything is logged.

    Raises:
        DispatcherError: a number is out of its bounds.
    """

    def __init__(
        self,
        *,
        workers: int = 2,
        max_workers: int = 64,
        budget: int = 64,
        name: str = "licorne",
        on_dead_letter: DeadLetterHook | None = None,
        on_failure: FailureHook | None = None,
        check_direction: bool = False,
        log: Log | None = None,
    ) -> None:
        if not 0 <= workers <= max_workers:
            raise DispatcherError(f"workers={workers} is not between 0 and max_workers={max_workers}")
        if budget < 1:
            raise DispatcherError(f"budget={budget} handles no message")
        self.name = name
        self.log = (log or Log()).bind(dispatcher=name)
        self._direction = AskDirection() if check_direction else None
        self._checks_asks = level_for(None) is not Level.OFF
        self._on_dead_letter = on_dead_letter
        self._on_failure = on_failure
        self._lock = Lock()
        self._actors: dict[AnyRef, None] = {}
        self._closing = False
        self._pool = WorkerPool(
            workers=workers, max_workers=max_workers, budget=budget, name=name, log=self.log
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()

    # Actors.

    def start(self, actor_class: Callable[P, A], /, *args: P.args, **kwargs: P.kwargs) -> PooledRef[A]:
        """Make an actor with these arguments and start it here.

        Raises:
            DispatcherError: the dispatcher has been shut down.
        """
        actor = actor_class(*args, **kwargs)
        ref, inbox = actor.actor_ref, actor.actor_inbox
        inbox.dispatcher = self
        with self._lock:
            if not (closing := self._closing):
                self._actors[ref] = None
        if closing:
            inbox.close()
            inbox.discard_actor()
            raise DispatcherError(f"{self.name} is shut down and starts no {ref}")
        if actor.in_pykka_registry:
            ActorRegistry.register(ref)
        self.log.debug("Starting {}", actor)  # noqa: PLE1205 - loguru's braces
        actor._start_actor_loop()  # noqa: SLF001 - what `pykka.Actor.start` does
        return ref

    def actors(self) -> tuple[AnyRef, ...]:
        """Return the actors that are alive, in the order of their start."""
        with self._lock:
            return tuple(self._actors)

    def dismiss(self, ref: AnyRef) -> None:
        """Forget an actor that has stopped."""
        with self._lock:
            self._actors.pop(ref, None)

    def rule_of_asks(self, actor: PooledActor) -> AskRule | None:
        """Return the check of the asks that an actor gets: of directions, by lockcheck, both or none."""
        direction = self._direction.of(actor.actor_inbox) if self._direction is not None else None
        if not self._checks_asks:
            return direction
        from .checked_asks import checked_asks  # noqa: PLC0415 - not loaded where nothing is checked

        return checked_asks(*actor.actor_class_and_key(), actor.rank, direction)

    def stop_actors_nowait(self) -> None:
        """Ask all actors to stop, the last started first, without waiting for any of them."""
        for ref in reversed(self.actors()):
            ref.stop(block=False)

    # Running.

    def push(self, mailbox: Mailbox) -> None:
        """Have a worker serve the mailbox."""
        self._pool.push(mailbox)

    def serve_here(self, mailbox: Mailbox) -> None:
        """Serve the mailbox on the calling thread for a short turn; a worker does what is left."""
        self._pool.serve_here(mailbox)

    def run_pending(self) -> int:
        """Handle what is queued on the calling thread until nothing is; return the number of turns taken."""
        return self._pool.run_pending()

    def blocking(self) -> AbstractContextManager[None]:
        """Mark a block in which a handler waits for something else than an actor, for example for a socket.

        If it runs on a worker, a stand-in serves the others meanwhile.
        """
        return self._pool.blocking()

    def load(self) -> tuple[int, int, int]:
        """Return how many threads there are, how many of them wait, and how many mailboxes wait for one."""
        return self._pool.load()

    def shutdown(self, timeout_seconds: float | None = None) -> None:
        """Stop all actors after what they have to do, then end the workers.

        Askers stop before the actors that they ask: by rank, and the last started first. Messages sent
        afterwards are refused, since all actors have stopped. Calling it again does no harm.

        Args:
            timeout_seconds: bound on the wait for all actors; without one, the calling thread helps.

        Raises:
            DispatcherError: the calling thread runs an actor of this dispatcher, which could not end.
            pykka.Timeout: an actor has not stopped in time; the workers continue.
        """
        self.check_may_shut_down()
        deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        self._stop_actors(deadline)  # On its way out an actor may still start others.
        with self._lock:
            self._closing = True
        self._stop_actors(deadline)
        self._pool.close()

    def check_may_shut_down(self) -> None:
        """Raise if the calling thread runs an actor.

        Raises:
            DispatcherError: it does, so that it cannot wait for the end of all actors.
        """
        me = get_ident()
        for ref in self.actors():
            if ref.actor_inbox.owner() == me:
                raise DispatcherError(f"{ref} cannot wait for the shutdown of its own {self.name}")

    def _stop_actors(self, deadline: float | None) -> None:
        youngest_first = self.actors()[::-1]
        for ref in sorted(youngest_first, key=_asks_first):
            ref.stop(timeout=None if deadline is None else max(0.0, deadline - time.monotonic()))

    # Reporting.

    def report_failure(self, failure: Failure) -> None:
        """Report a failure to the embedder."""
        self._tell_hook(self._on_failure, failure)

    def report_dead_letter(self, ref: AnyRef, message: object) -> None:
        """Report a message that was not delivered to the embedder."""
        if not isinstance(message, _ActorStop):  # to stop a stopped actor has no effect
            self._tell_hook(self._on_dead_letter, DeadLetter(ref=ref, message=message))

    def _tell_hook(self, hook: Callable[[Any], None] | None, news: object) -> None:
        if hook is None:
            return
        try:
            hook(news)
        except Exception:  # a broken hook must not break actors
            self.log.exception("{}: a hook failed on {}", self.name, news)  # noqa: PLE1205 - loguru's braces


def _asks_first(ref: AnyRef) -> tuple[bool, int]:
    rank = ref.actor_inbox.rank
    return (rank is None, rank or 0)
