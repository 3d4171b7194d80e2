"""The wait-for graph of threads, in which an ask cycle is found before a thread blocks; the rule of asks.

A thread waits for one future at a time, and the answer to a future depends on one thread at a time: the
one that owns the actor with the message, or that runs the future's hook. So the way from a waiting
thread through the graph is a chain, and a new wait closes a cycle if and only if its chain comes back to
the thread that is about to wait. Edges between threads appear only when a thread begins to wait (one that
sleeps cannot become an owner), hence it is enough to look then, and no cycle forms later.

The walk is exact although other threads run on: a thread that is in the graph neither gains nor loses
actors, and to enter or leave the graph it needs the lock that the walk holds. So every link that the walk
follows from a waiting thread stays until the walk is over; a link to a running thread ends it.

The graph is one for the process: an actor may ask an actor of another dispatcher, and a cycle may lead
through both. Its lock is taken only by threads that are about to sleep or have just woken up.

The rule of asks is cluster > partition > application > node: a blocking ask goes down only, and so no cycle
of waiting actors can exist. The graph finds cycles that happen. The check of directions finds asks that could
be part of one, whether or not a cycle happens this time. It is for tests: a dispatcher has it only when made
with `check_direction=True`.
"""

from __future__ import annotations

import threading
from queue import Empty, SimpleQueue
from threading import Lock, get_ident
from typing import TYPE_CHECKING, Final, Protocol

from .errors import AskCycleError, AskDirectionError
from .pool import asleep

if TYPE_CHECKING:
    from .mailbox import Mailbox


class Awaited(Protocol):
    """A future, as a thread waits for it."""

    def done(self) -> bool:
        """Return whether there is an outcome."""

    def answerer(self) -> int | None:
        """Return the thread that the answer depends on now, `None` while there is no such thread."""

    def rule(self) -> AskRule | None:
        """Return the check of the answering actor's asks, if there is one."""

    def withdraw(self, error: Exception) -> None:
        """Fail with `error` and have the actor skip the message."""


class OpenWait:
    """One thread's wait for one future.

    Args:
        future: what the thread waits for.
        withdraws: whether the wait is the ask itself, so that a cycle takes the message back.
    """

    __slots__ = ("_wakes", "future", "thread", "withdraws")

    def __init__(self, future: Awaited, *, withdraws: bool) -> None:
        self.future = future
        self.thread = get_ident()
        self.withdraws = withdraws
        # Not a lock: being woken twice, or before falling asleep, must do no harm.
        self._wakes: SimpleQueue[None] = SimpleQueue()

    def wake(self) -> None:
        """Wake the thread, which checks its future again."""
        self._wakes.put(None)

    def sleep(self, timeout_seconds: float | None = None) -> bool:
        """Sleep until woken; `False` if that did not happen in time.

        Raises:
            DeadlockError: locks and asks wait for each other, and this wait is the victim.
        """
        rule = self.future.rule()
        with asleep():
            if rule is None or timeout_seconds is not None:
                return self.woken(timeout_seconds)
            rule.sleep(self)
            return True

    def woken(self, timeout_seconds: float | None = None) -> bool:
        """Wait to be woken; `False` if that did not happen in time."""
        try:
            self._wakes.get(timeout=timeout_seconds)
        except Empty:
            return False
        return True


class WaitGraph:
    """The waits of all threads of a process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._waits: dict[int, OpenWait] = {}

    def add(self, wait: OpenWait) -> None:
        """Enter a wait of the calling thread.

        Raises:
            AskCycleError: the wait would close a cycle; it is not entered, and if the wait is the ask
                itself, its message is withdrawn while all who could handle it are known to wait.
        """
        with self._lock:
            cycle = self._cycle(wait)
            if not cycle:
                self._waits[wait.thread] = wait
                return
            error = AskCycleError(f"waiting would never end: {' -> '.join([*cycle, cycle[0]])}")
            if wait.withdraws:
                wait.future.withdraw(error)
        raise error

    def remove(self, wait: OpenWait) -> None:
        """Take the calling thread's wait out again."""
        with self._lock:
            self._waits.pop(wait.thread, None)

    def _cycle(self, wait: OpenWait) -> list[str]:
        """Return the futures on the cycle that the new wait would close, by name; none if it closes none."""
        names: list[str] = []
        step: OpenWait | None = wait
        while step is not None and not step.future.done():
            names.append(str(step.future))
            answerer = step.future.answerer()
            if answerer == wait.thread:
                return names
            step = None if answerer is None else self._waits.get(answerer)
        return []


WAIT_GRAPH: Final = WaitGraph()
"""The graph of this process; empty whenever no thread waits."""


class AskRule(Protocol):
    """A check of the asks that one actor gets."""

    def asked(self, *, limited: bool = False) -> None:
        """Pass an ask that is about to be waited for, maybe for a `limited` time, or raise."""

    def enter(self) -> None:
        """Count the thread as running the actor, until `leave`."""

    def leave(self) -> None:
        """Note that the thread no longer runs the actor."""

    def sleep(self, wait: OpenWait) -> None:
        """Sleep in a wait without a limit until it is woken."""


class _Running(threading.local):
    """The ranked actors that the thread runs now, the innermost last."""

    def __init__(self) -> None:
        self.mailboxes: list[Mailbox] = []


class AskDirection:
    """Refuse blocking asks upwards, by the ranked actors of one dispatcher that each thread runs.

    The innermost ranked actor decides: actors without a rank are transparent, and what a thread runs is
    a chain of asks, so the innermost rank is the highest.
    """

    def __init__(self) -> None:
        self._running = _Running()

    def of(self, mailbox: Mailbox) -> AskRule:
        """Return the check of the asks of one actor."""
        return _DirectedAsks(mailbox, self._running)


class _DirectedAsks:
    """The asks that one actor gets, which must not go up."""

    def __init__(self, mailbox: Mailbox, running: _Running) -> None:
        self._mailbox = mailbox
        self._running = running

    def enter(self) -> None:
        """Count the thread as running this actor, until `leave`."""
        if self._mailbox.rank is not None:
            self._running.mailboxes.append(self._mailbox)

    def leave(self) -> None:
        """Note that the thread no longer runs this actor."""
        if self._mailbox.rank is not None:
            self._running.mailboxes.pop()

    def asked(self, *, limited: bool = False) -> None:  # noqa: ARG002 - a limit changes nothing
        """Pass a blocking ask that goes down, or whose rank is not known on either side.

        Raises:
            AskDirectionError: the thread runs an actor of the same or a higher rank.
        """
        asked = self._mailbox
        if not self._running.mailboxes or asked.rank is None:
            return
        asker = self._running.mailboxes[-1]
        assert asker.rank is not None
        if asked.rank <= asker.rank:
            raise AskDirectionError(
                f"{asker} of rank {asker.rank} may tell, but not ask and wait for,"
                f" {asked} of rank {asked.rank}: a blocking ask goes down only"
            )

    def sleep(self, wait: OpenWait) -> None:
        """Sleep until woken."""
        wait.woken()
