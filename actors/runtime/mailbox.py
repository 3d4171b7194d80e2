"""One actor's messages, and the right to handle them.

A mailbox is a queue and an *owner*: the thread that may run the actor. Ownership changes hands under the
mailbox's lock, so no two messages of one actor ever run at once, and what one owner wrote the next one
sees. The thread that makes an actor owns it until it is started.

Three facts hold whenever the lock is free:

1. A mailbox that has messages and no owner is in the run queue (`_queued`), or is closed.
2. `_idle` means: started, open, no owner, no messages. An inline ask reads it.
3. A thread that gives up an actor with messages left wakes one thread that waits for the actor, so that
   progress never depends on a free worker.

Messages are queued under the lock, with all that follows from it. The owner takes messages out without the
lock: only the owner takes, and the library guarantees that a deque's `append` and `popleft` are safe against
each other. The owner may read an old state without the lock, so it reads the state again under the lock
before it gives up the actor.

Locks, outermost first: the wait-for graph's, a mailbox's, a future's or a pool's. None is held while
actor code, a hook or a log sink runs.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from threading import Lock, get_ident
from time import perf_counter_ns
from typing import TYPE_CHECKING, Final, TypeAlias, final

from pykka._envelope import Envelope
from pykka.messages import _ActorStop

from .errors import ActorEndedError, MailboxFullError
from .future import PooledFuture
from .waiting import Awaited, OpenWait

if TYPE_CHECKING:
    from .actor import PooledActor
    from .dispatcher import Dispatcher
    from .waiting import AskRule

MessageEnvelope: TypeAlias = Envelope[object]
"""A message, and the future of its answer if it is an ask."""
ENTRIES_MAX: Final = 128
"""When this many entries (asks, releases, applications, nodes) wait in a partition, calls that add more wait
until half of them are carried out."""
WAIT_SECONDS_MAX: Final = 1.0
"""How long one call waits at most. It may hold a lock that a predicate of the RM wants, for which the
partition waits: then nothing would ever be carried out."""


class Mailbox:
    """The inbox of one pooled actor, owned at first by the thread that makes the actor."""

    __slots__ = (
        "_actor",
        "_actor_class",
        "_actor_urn",
        "_closed",
        "_control",
        "_idle",
        "_lock",
        "_normal",
        "_owner",
        "_queued",
        "_waits",
        "direction",
        "dispatcher",
    )

    dispatcher: Dispatcher
    """Runs the actor; known when it is started."""

    def __init__(self) -> None:
        self._actor: PooledActor | None = None
        self._lock = Lock()
        # The queues are made when needed: most actors are only asked inline.
        self._control: deque[MessageEnvelope] | None = None
        self._normal: deque[MessageEnvelope] | None = None
        self._owner: int | None = get_ident()
        self._idle = False
        self._queued = False
        self._closed = False
        self._waits: list[OpenWait] | None = None
        self.direction: AskRule | None = None
        """The check of the actor's asks, if there is one."""

    def bind(self, actor: PooledActor) -> None:
        """Belong to this actor, until it has stopped: references may keep the mailbox longer than that."""
        self._actor = actor
        self._actor_class = type(actor)
        self._actor_urn = actor.actor_urn

    def open(self, first: MessageEnvelope | None) -> None:
        """Give up the actor for the first time; `first` is handled before the messages that have arrived."""
        assert self._actor is not None, "an actor is bound before it is started"
        self.direction = self.dispatcher.rule_of_asks(self._actor)
        if first is not None:
            with self._lock:
                self._control = deque((first, *(self._control or ())))
        self._release()

    @property
    def rank(self) -> int | None:
        """The actor's place in the order of asks."""
        return self._actor_class.rank

    def __str__(self) -> str:
        """Name the actor as its reference does."""
        return f"{self._actor_class.__name__} ({self._actor_urn})"

    # Sending.

    def offer(self, envelope: MessageEnvelope, *, control: bool = False, here: bool = False) -> bool:
        """Queue a message; `False` if the actor has stopped taking messages.

        If no thread is to run the actor yet, a worker will; with `here` the calling thread does so now.

        Raises:
            MailboxFullError: a normal message beyond the capacity. Control messages and requests to stop
                always have room.
        """
        with self._lock:
            if self._closed:
                return False
            if full := not control and self._is_full() and not isinstance(envelope.message, _ActorStop):
                push = False
            else:
                push = self._insert(envelope, control=control)
        if full:
            raise MailboxFullError(f"{self} holds {self._actor_class.mailbox_capacity} messages already")
        if push and here:
            self.dispatcher.serve_here(self)
        elif push:
            self.dispatcher.push(self)
        return True

    def put(self, envelope: MessageEnvelope, /) -> None:
        """Queue a message as Pykka's own references do."""
        if not self.offer(envelope):
            error = ActorEndedError(f"{self} not found")
            if envelope.reply_to is None:
                raise error
            envelope.reply_to.set_exception((ActorEndedError, error, None))

    def _is_full(self) -> bool:
        capacity = self._actor_class.mailbox_capacity
        return capacity is not None and len(self._normal or ()) >= capacity

    def _insert(self, envelope: MessageEnvelope, *, control: bool) -> bool:
        """Add a message; return whether the mailbox must now enter the run queue."""
        if control:
            if self._control is None:
                self._control = deque()
            self._control.append(envelope)
        else:
            if self._normal is None:
                self._normal = deque()
            self._normal.append(envelope)
        self._idle = False
        if self._owner is not None or self._queued:
            return False
        self._queued = True
        return True

    # Owning.

    def owner(self) -> int | None:
        """Return the thread that owns the actor."""
        with self._lock:
            return self._owner

    def enter(self) -> PooledActor | None:
        """Own the actor for one message handled inline, if it is idle."""
        with self._lock:
            if not self._idle:
                return None
            self._idle = False
            self._owner = get_ident()
            return self._actor

    def leave(self) -> None:
        """Give up what `enter` gave.

        Messages that came meanwhile go to the workers. To handle them here would save a thread switch, but
        the asker has its answer, and would have to wait for another sender's message to end.
        """
        with self._lock:
            if not self._normal and not self._control and not self._closed:
                self._owner = None
                self._idle = True
                return
        self._release()

    def claim(self) -> bool:
        """Own the actor, whatever is in its mailbox, if no thread does."""
        with self._lock:
            if self._owner is not None or self._closed:
                return False
            self._idle = False
            self._owner = get_ident()
            return True

    def drain_until(self, future: Awaited) -> None:
        """As the owner, handle messages until the future is answered; then give up the actor."""
        try:
            while not (future.done() or self._closed or self.empty()):
                self._handle(self.get())
        finally:
            self._release()

    def serve(self, budget: int, limit_ns: int | None = None) -> None:
        """As a worker that took the mailbox off the run queue, handle at most `budget` messages.

        After the message with which `limit_ns` have passed it is the next actor's turn.
        """
        with self._lock:
            self._queued = False
            if self._owner is not None or self._closed or self.empty():
                return
            self._owner = get_ident()
        end_ns = None if limit_ns is None else perf_counter_ns() + limit_ns
        try:
            while not (budget == 0 or self._closed or self.empty()):
                self._handle(self.get())
                budget -= 1
                if end_ns is not None and perf_counter_ns() > end_ns:
                    return
        finally:
            self._release()

    def close(self) -> None:
        """As the owner, refuse messages from now on; the rest is answered when the actor is given up."""
        with self._lock:
            self._closed = True

    def answer_last(self, envelope: MessageEnvelope) -> None:
        """As the owner that has closed it, defer an answer until all messages that are left have had one.

        So when a stop has returned, every message is accounted for.
        """
        with self._lock:
            assert self._closed, f"{self} takes messages still"
            if self._normal is None:
                self._normal = deque()
            self._normal.append(envelope)

    def get(self) -> MessageEnvelope:
        """As the owner, remove and return the first message, control messages before others."""
        envelopes = self._control or self._normal
        assert envelopes, f"{self} has no message"
        return envelopes.popleft()

    def empty(self) -> bool:
        """Return whether there are no messages."""
        return not self._control and not self._normal

    def waiting(self) -> int:
        """Return how many messages there are."""
        return len(self._control or ()) + len(self._normal or ())

    def _handle(self, envelope: MessageEnvelope) -> None:
        actor = self._actor
        assert actor is not None, f"{self} has stopped"
        reply = envelope.reply_to
        if isinstance(reply, PooledFuture) and reply.withdrawn:
            actor.on_withdrawn()
            return
        actor._handle_envelope(envelope)  # noqa: SLF001 - an actor and its mailbox are one

    def _release(self) -> None:
        """Give up the actor; wake a thread, or queue the mailbox, for the messages that are left."""
        if self._closed:
            self.discard_actor()
            return
        wait = None
        with self._lock:
            self._owner = None
            if self.empty():
                self._idle = True
                return
            if self._waits:
                wait = self._waits.pop(0)
            push, self._queued = not self._queued, True
        if wait is not None:
            wait.wake()
        if push:
            self.dispatcher.push(self)

    def discard_actor(self) -> None:
        """As the last owner, answer the messages that are left and release the actor for ever."""
        actor = self._actor
        assert actor is not None, f"{self} has stopped"
        while not self.empty():
            actor._return_envelope(self.get())  # noqa: SLF001 - likewise
        self._actor = None
        with self._lock:
            self._owner = None

    # Waiting.

    def register(self, wait: OpenWait) -> bool:
        """Wake the thread when the actor is given up with messages left; `False` if it can be claimed."""
        with self._lock:
            if self._closed:
                return True  # the thread that closed it answers all that is left
            if self._owner is None:
                return False
            if self._waits is None:
                self._waits = [wait]
            elif wait not in self._waits:
                self._waits.append(wait)
            return True

    def unregister(self, wait: OpenWait) -> None:
        """Remove the thread; if it was woken and leaves nevertheless, wake the next one."""
        next_wait = None
        with self._lock:
            if self._waits:
                if wait in self._waits:
                    self._waits.remove(wait)
                elif self._owner is None and not self.empty():
                    next_wait = self._waits.pop(0)
        if next_wait is not None:
            next_wait.wake()


def entries_of(args: Sequence[object]) -> int:
    """Count the entries of a request; an empty one counts as one."""
    return sum(len(each) for each in args if isinstance(each, (tuple, list))) or 1


@final
class Inflow:
    """The entries that were sent to one partition and are not carried out yet."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._entries = 0
        self._full = False
        """Whether calls wait; written with the lock held."""
        self._open = True

    @property
    def entries(self) -> int:
        """How many entries wait now."""
        return self._entries

    def wait_for_room(self) -> None:
        """Wait while too much waits, until the partition ends or `WAIT_SECONDS_MAX` have passed."""
        if not self._full:
            return
        with self._changed:
            self._changed.wait_for(lambda: not (self._full and self._open), WAIT_SECONDS_MAX)

    def add(self, entries: int) -> None:
        """Count what has been sent."""
        with self._lock:  # Not by the condition: its methods are written in Python.
            self._entries += entries
            self._full = self._full or self._entries >= ENTRIES_MAX

    def remove(self, entries: int) -> None:
        """Count what has been carried out, and wake the calls that wait once there is room."""
        with self._lock:
            self._entries -= entries
            if self._full and self._entries <= ENTRIES_MAX // 2:
                self._full = False
                self._changed.notify_all()

    def close(self) -> None:
        """Wake all calls that wait: the partition has ended."""
        with self._changed:
            self._open = False
            self._changed.notify_all()
