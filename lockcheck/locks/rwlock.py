"""The read/write lock, plain: many readers or one writer, and a waiting writer goes before new readers.

Python's library has no such lock. This one keeps to rules that make it easy to reason about:

* *It is not recursive.* A thread that holds it in any mode and wants it again gets an error at once, even to
  read it again: that deadlocks as soon as a writer waits in between.
* *It hands over.* A release chooses the next owner, under the mutex, and that one owns the lock before it
  runs. So no other thread gets in between, and a waiter that gives up knows whether it came too late.
* *It relies on no interpreter lock.* All state is read and written under one mutex, which is never held while
  a thread waits, nor while the key is shown.

`policy="reader"` lets readers in while a writer waits; then writers may starve, and readers never wait for
readers, which the checker takes into account (see docs/lockcheck.md).
"""

from __future__ import annotations

from threading import Lock, get_ident
from types import TracebackType
from typing import Final, final

from ..findings.foreign import shown
from ..findings.terms import LockUsageError, Mode, RWPolicy

FOREVER: Final = -1.0


@final
class Waiter:
    """A thread in the queue; its gate opens when it owns the lock."""

    __slots__ = ("gate", "mode", "who")

    def __init__(self, who: int, mode: Mode) -> None:
        self.who = who
        self.mode = mode
        self.gate = Lock()
        self.gate.acquire()


class _Guard:
    """The context manager of `with rw.read():`: one object a lock and mode, made once."""

    __slots__ = ("_acquire", "_release")

    def __init__(self, lock: PlainRWLock, mode: Mode) -> None:
        self._acquire = lock.acquire_read if mode == "R" else lock.acquire_write
        self._release = lock.release_read if mode == "R" else lock.release_write

    def __enter__(self) -> None:
        self._acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._release()


class PlainRWLock:
    """Many readers or one writer.

    Args:
        name: the class of the lock, as a declared order names it; the plain lock only shows it.
        key: which of its class it is.
        policy: which goes first when a writer waits: the `writer`, or any `reader`.
    """

    __slots__ = (
        "__weakref__",
        "_mutex",
        "_queue",
        "_readers",
        "_reading",
        "_writer",
        "_writing",
        "key",
        "name",
        "policy",
    )

    def __init__(self, name: str = "rwlock", *, key: object = None, policy: RWPolicy = "writer") -> None:
        if policy not in {"writer", "reader"}:
            raise LockUsageError(f"expected a policy of a read/write lock, writer or reader, got {policy!r}")
        self.name = name
        self.key = key
        self.policy: RWPolicy = policy
        self._mutex = Lock()
        self._readers: set[int] = set()
        self._writer: int | None = None
        self._queue: list[Waiter] = []  # a deque would be as large as all the rest
        self._reading = _Guard(self, "R")
        self._writing = _Guard(self, "W")

    def __repr__(self) -> str:
        with self._mutex:
            writer, readers, queued = self._writer, len(self._readers), len(self._queue)
        held = f"written by {writer}" if writer is not None else f"{readers} readers"
        return f"<{type(self).__name__} {self.name} {shown(self.key)}: {held}, {queued} wait>"

    def read(self) -> _Guard:
        """Return the context manager that holds the lock for reading."""
        return self._reading

    def write(self) -> _Guard:
        """Return the context manager that holds the lock for writing."""
        return self._writing

    def acquire_read(self, timeout_seconds: float = FOREVER) -> bool:
        """Take the lock for reading.

        Args:
            timeout_seconds: how long to wait; zero tries once, a negative value waits for ever.

        Returns:
            Whether the lock was taken.

        Raises:
            LockUsageError: the thread holds the lock already, and would wait for itself.
        """
        me = get_ident()
        with self._mutex:
            if not self._queue and self._writer is None and me not in self._readers:
                self._readers.add(me)
                return True
            if self.try_enter(me, "R"):
                return True
            if timeout_seconds == 0:
                return False
            waiter = self.enqueue(me, "R")
        return self._wait(waiter, "R", timeout_seconds)

    def acquire_write(self, timeout_seconds: float = FOREVER) -> bool:
        """Take the lock for writing; arguments, result and errors as for reading."""
        me = get_ident()
        with self._mutex:
            if self._writer is None and not self._readers and not self._queue:
                self._writer = me
                return True
            if self.try_enter(me, "W"):
                return True
            if timeout_seconds == 0:
                return False
            waiter = self.enqueue(me, "W")
        return self._wait(waiter, "W", timeout_seconds)

    def release_read(self) -> None:
        """Release the lock for reading.

        Raises:
            LockUsageError: the thread does not hold it for reading.
        """
        me = get_ident()
        with self._mutex:
            if me in self._readers:
                self._readers.remove(me)
                if self._queue:
                    self.hand_over()
                return
        raise LockUsageError(
            f"{self.name} {shown(self.key)}: thread {me} releases a read lock it does not hold"
        )

    def release_write(self) -> None:
        """Release the lock for writing.

        Raises:
            LockUsageError: the thread does not hold it for writing.
        """
        me = get_ident()
        with self._mutex:
            if self._writer == me:
                self._writer = None
                if self._queue:
                    self.hand_over()
                return
        raise LockUsageError(
            f"{self.name} {shown(self.key)}: thread {me} releases a write lock it does not hold"
        )

    def holders(self) -> tuple[int | None, frozenset[int]]:
        """Return the ids of the writing thread, if any, and of the reading threads."""
        with self._mutex:
            return self._writer, frozenset(self._readers)

    def queued(self) -> tuple[tuple[int, Mode], ...]:
        """Return the waiting threads in the order of the queue: their ids, and the modes that they want."""
        with self._mutex:
            return tuple((waiter.who, waiter.mode) for waiter in self._queue)

    # -------------------------------------------- the rules, as steps that never block, under the mutex

    def try_enter(self, who: int, mode: Mode) -> bool:
        """Take the lock for the thread `who` if it is free, and not owned by it; the mutex is held."""
        if self._writer is not None or who in self._readers:
            return False
        if mode == "W":
            if self._readers or self._queue:
                return False
            self._writer = who
            return True
        if self._queue and self.policy == "writer":
            return False
        self._readers.add(who)
        return True

    def enqueue(self, who: int, mode: Mode) -> Waiter | None:
        """Put the thread `who` at the end of the queue, unless it holds the lock: it would wait for itself.

        The mutex is held.
        """
        if self._writer == who or who in self._readers:
            return None
        waiter = Waiter(who, mode)
        self._queue.append(waiter)
        return waiter

    def hand_over(self) -> None:
        """Give the lock to the threads that may have it now; the mutex is held.

        A waiting writer goes before waiting readers, even if they came first. If none waits, or if readers
        go first, all readers enter together.
        """
        if self._writer is not None:
            return
        writer = next((waiter for waiter in self._queue if waiter.mode == "W"), None)
        readers = [waiter for waiter in self._queue if waiter.mode == "R"]
        if readers and (writer is None or (self.policy == "reader")):
            for waiter in readers:
                self._admit(waiter)
        elif writer is not None and not self._readers:
            self._admit(writer)

    def give_up(self, waiter: Waiter) -> bool:
        """Take a waiter out of the queue; the mutex is held.

        Returns:
            `False` if it owns the lock in the meantime.
        """
        if waiter not in self._queue:
            return False
        self._queue.remove(waiter)
        self.hand_over()  # readers that waited behind the writer that left may enter
        return True

    def _admit(self, waiter: Waiter) -> None:
        self._queue.remove(waiter)
        if waiter.mode == "W":
            self._writer = waiter.who
        else:
            self._readers.add(waiter.who)
        waiter.gate.release()

    def _wait(self, waiter: Waiter | None, mode: Mode, timeout_seconds: float) -> bool:
        """Wait for the turn of a waiter; leave the queue on a timeout and on any exception.

        Raises:
            LockUsageError: the thread holds the lock already, so it does not wait.
        """
        if waiter is None:
            me = get_ident()
            held = "W" if self._writer == me else "R"
            raise LockUsageError(
                f"{self.name} {shown(self.key)}: thread {me} holds [{held}] and wants [{mode}] too"
            )
        try:
            if self._await_gate(waiter, timeout_seconds):
                return True
        except BaseException:
            with self._mutex:
                ours = not self.give_up(waiter)
            if ours:
                (self.release_write if waiter.mode == "W" else self.release_read)()
            raise
        with self._mutex:
            return not self.give_up(waiter)

    def _await_gate(self, waiter: Waiter, timeout_seconds: float) -> bool:
        """Wait until the gate opens or the time is up; the checked lock checks for deadlocks meanwhile."""
        return waiter.gate.acquire(timeout=timeout_seconds if timeout_seconds >= 0 else FOREVER)
