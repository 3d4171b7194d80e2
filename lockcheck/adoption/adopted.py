"""The locks that take the place of those of `threading`: checked, and otherwise the same.

These refuse the same calls as a lock of `threading`, with the same error: the plain lock inside of them does
it. A `threading.Lock` that another thread releases than took it is a signal, not a lock, and is no longer
checked.
"""

from __future__ import annotations

import _thread
import pickle
import sys
import threading
from types import TracebackType
from typing import Final, final

from ..checking.forks import made_anew
from ..checking.knowledge import publish
from ..checking.policy import log_own_wait
from ..checking.slow_path import is_for_signal, take_out
from ..checking.stalls import StallWatch
from ..checking.waiting import refuse_own, wait_in_slices
from ..checking.watch import current
from ..findings.terms import Kind
from ..holding.chains import Attempt, Execution, LockIdentity, PlainLockIdentity, TrieNode, holds_of
from ..holding.runtime import Interpreter, local, runtime
from ..holding.stacks import caller_code_is, enters
from ..locks.checked import CheckedLock, CheckedRLock, FullLock, FullRLock
from ..locks.steered import SteeredLock, SteeredRLock

_PLAIN: Final = _thread.allocate_lock
_plain_rlock: Final = threading.RLock
_RESTORES: Final = threading.Condition._acquire_restore.__code__  # type: ignore[attr-defined] # noqa: SLF001 - no public name
_FOREIGN_SECONDS: Final = 0.5
"""How long a wait for an own lock lasts until all threads are taken to be known that could end it."""
_SHUTS_DOWN: Final = threading._shutdown.__code__  # type: ignore[attr-defined] # noqa: SLF001 - no public name
_TIMES: Final = frozenset({int, float})


def _of_plain(name: str) -> property:
    """Return a property of the plain lock, or report it as absent; `__getattr__` would slow all down."""
    return property(lambda lock: getattr(lock._plain, name))  # noqa: SLF001 - the property is a part of it


class _OwnWait:
    """The wait for a lock that the waiting execution holds itself.

    A lock that `with` has taken is released by the same thread. Otherwise another thread may: each that is
    not stuck, and does not wait for the end of all others as the main thread does at the end of a program.

    A thread that `threading` has not started may as well, and is known only once it runs.

    Args:
        held: where it was taken.
    """

    endless = True
    breakable = True
    signal = None

    def __init__(self, held: TrieNode) -> None:
        self._name = str(held.acquisition)
        self._began = Interpreter.seconds()
        self.certain: Final = held.code is not None and enters(held.code, held.instruction)
        """Whether no other thread releases the lock."""

    def needs(self, waiting: Execution) -> list[list[Execution]]:
        """Return the execution itself, with those on other threads that may release the lock."""
        if self.certain:
            return [[waiting]]
        unknown = threading.active_count() <= _thread._count() - StallWatch.threads  # noqa: SLF001 - no public name
        if unknown or Interpreter.seconds() - self._began < _FOREIGN_SECONDS:
            return []
        main, here = threading.main_thread(), threading.current_thread()
        group = [waiting]
        for thread in threading.enumerate():
            if thread is here or (thread is main and _shuts_down(thread.ident)):
                continue
            found = runtime.executions_on([thread.ident])
            if not found:
                return []
            group += [execution for execution in found if execution is not waiting]
        return [group]

    def describe(self) -> str:
        """Return what is waited for, in words."""
        return self._name


@final
class _Reduced:
    """Stands for a pickler, and notes how it would reduce an object."""

    way: tuple[object, ...] = ()

    def save_reduce(self, *way: object, obj: object) -> None:
        """Note a function, and what it is to be called with."""
        del obj
        self.way = way


def _shuts_down(thread: int | None) -> bool:
    """Return whether the main thread waits for the ends of all others, and for nothing else."""
    frame = sys._current_frames().get(thread or 0)  # noqa: SLF001 - documented
    while frame is not None and frame.f_code is not _SHUTS_DOWN:
        frame = frame.f_back
    return frame is not None


class AdoptedLock(CheckedLock):
    """The replacement of a `threading.Lock`."""

    __slots__ = ()

    identified_by: type[LockIdentity] = PlainLockIdentity

    _is_over = staticmethod(sys.is_finalizing)
    _is_owned = _of_plain("_is_owned")  # conditions ask whether a lock has these
    _release_save = _of_plain("_release_save")
    _acquire_restore = _of_plain("_acquire_restore")
    _recursion_count = _of_plain("_recursion_count")

    @property  # type: ignore[misc] # it cannot be set, as that of any lock
    def __class__(self) -> type:  # for `isinstance`
        return type(self._plain)

    def __init__(self, name: str | None = None, *, key: object = None) -> None:
        if name is None:  # the program calls the type of a lock
            type(_plain_rlock() if self.reentrant else _PLAIN())()  # which may refuse
        super().__init__(name or type(self).__name__, key=key)

    @property
    def plain(self) -> object:
        """The plain lock inside."""
        return self._plain

    def guard_with(self, plain: threading.Lock) -> None:
        """Take a plain lock that exists already instead of a new one, before anything takes this lock."""
        self._plain = plain
        self._try = plain.acquire

    def __del__(self) -> None:
        """Forget a hold of this thread: none can wait for a lock that was dropped while it was held."""
        identity = getattr(self, "identity", None)  # none if the lock was refused
        if identity is None:
            return
        if identity.alive:
            identity.alive = False
        if not self._is_over() and self._at.execution is local.execution:
            self._forget_holds()

    def __repr__(self) -> str:
        return repr(self._plain).replace(hex(id(self._plain)), hex(id(self)))

    def __reduce_ex__(self, protocol: object) -> tuple[object, ...]:
        """Return how a pickler that knows plain locks, such as that of dill, reduces this one."""
        pickler = sys._getframe(1).f_locals.get("self")  # noqa: SLF001 - the documented way to the caller
        is_pickler = issubclass(type(pickler), pickle._Pickler)  # noqa: SLF001 - no public name
        ways = getattr(pickler, "dispatch", {}) if is_pickler else {}
        if type(self._plain) not in ways:
            self._plain.__reduce_ex__(protocol)  # type: ignore[arg-type] # which refuses
        reduced = _Reduced()
        ways[type(self._plain)](reduced, self._plain)
        return reduced.way

    def acquire_lock(self, blocking: bool = True, timeout: float = -1) -> bool:  # noqa: FBT001, FBT002 - as in threading
        """Take the lock: an older name."""
        return self.acquire(blocking, timeout)

    def release_lock(self) -> None:
        """Release the lock: an older name."""
        self.release()

    @staticmethod
    def _attempt(blocking: bool, timeout: float) -> Attempt:  # noqa: FBT001 - as in threading
        """Return how long an acquisition waits; refuse what that of `threading` refuses."""
        if timeout != -1 or type(timeout) not in _TIMES or type(blocking) is not bool:
            _PLAIN().acquire(blocking, timeout)
        return CheckedLock._attempt(blocking, timeout)  # noqa: SLF001 - the base class

    def _release_elsewhere(self) -> None:
        """Release the lock; one that another thread took is a signal, not a lock."""
        if any(holds_of(self.identity, local.execution.node)):
            super()._release_elsewhere()
        else:
            self._release_of_another()

    def locked(self) -> bool:
        """Return whether the lock is held, by whatever thread."""
        return self._plain.locked()  # type: ignore[union-attr] # it is not a re-entrant one

    locked_lock = locked

    def _at_fork_reinit(self) -> None:
        self._plain._at_fork_reinit()  # type: ignore[union-attr] # noqa: SLF001 - what threading calls in a child
        made_anew(self.identity.serial)
        self._forget_holds()

    def _forget_holds(self) -> None:
        while take_out(local.execution, self.identity, "W"):
            pass

    def _release_of_another(self) -> None:
        publish()
        self._plain.release()  # raises if it is free
        self._leave_alone()

    def _leave_alone(self) -> None:
        """Note that this is a signal and no lock."""
        self.identity.alive = None
        object.__dict__["__class__"].__set__(self, SignalLock)
        watch = current()
        if watch is not None:
            watch.withdraw(str(self.identity), Kind.RECURSION, Kind.LEAK)

    def _wait(self, execution: Execution, after: TrieNode, timeout: float, *, breakable: bool = True) -> bool:
        if not self.reentrant and any(holds_of(self.identity, execution.node)):
            if timeout < 0:
                refuse_own(execution, self._acquisition)
                return self._wait_for_own(execution)
            if is_for_signal(after):
                self._leave_alone()
        if breakable and caller_code_is(sys._getframe(1), _RESTORES):  # noqa: SLF001 - the documented way
            breakable = False
        return super()._wait(execution, after, timeout, breakable=breakable)

    def _wait_for_own(self, execution: Execution) -> bool:
        """Wait for this lock, which the execution holds; report that before, since the wait may never end."""
        held = next(iter(holds_of(self.identity, execution.node)))
        wait = _OwnWait(held)
        watch = current()
        if watch is not None and not wait.certain and not execution.inside:
            watch.guarded_on(execution, lambda: log_own_wait(execution, held), lambda: None)
        return wait_in_slices(
            execution, wait, lambda seconds: self._try(True, seconds), -1, closes=wait.certain
        )


class AdoptedRLock(AdoptedLock):
    """The replacement of a `threading.RLock`."""

    __slots__ = ()

    identified_by = LockIdentity
    reentrant = True
    _owner = None
    """For gevent, which looks through all objects for re-entrant locks that a greenlet is to own."""

    acquire_lock = _of_plain("acquire_lock")
    release_lock = _of_plain("release_lock")
    locked_lock = _of_plain("locked_lock")
    locked = _of_plain("locked")

    def _release_of_another(self) -> None:
        self._plain.release()  # raises, unless the lock was taken before it was known

    def _is_owned(self) -> bool:
        return self._plain._is_owned()  # type: ignore[union-attr,no-any-return] # noqa: SLF001 - as in threading

    def _release_save(self) -> object:  # type: ignore[override]
        """Release the lock completely; return what restores it."""
        plain = self._plain
        if plain._is_owned():  # type: ignore[union-attr] # noqa: SLF001 - as in threading
            self._forget_holds()
        return plain._release_save()  # type: ignore[union-attr] # noqa: SLF001 - which raises if it is not owned

    def _acquire_restore(self, state: tuple[int, int]) -> None:  # type: ignore[override]
        """Take the lock again, however long that takes: the program goes on to release it."""
        for _ in range(state[0]):
            self._acquire_again()


@final
class SignalLock(AdoptedLock):
    """A lock that another thread released than took it: it is left alone."""

    __slots__ = ()

    def __enter__(self) -> bool:
        return self._plain.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def release(self) -> None:
        """Release the lock; an acquisition that began before it was a signal may have noted a hold."""
        publish()
        self._plain.release()
        self._forget_holds()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:  # noqa: FBT001, FBT002 - as in threading
        """Take the lock."""
        return self._try(blocking, timeout)


@final
class OrderLock(AdoptedLock):
    """At the level `order`."""

    __slots__ = ()


@final
class OrderRLock(AdoptedRLock, CheckedRLock):
    """At the level `order`."""

    __slots__ = ()


@final
class FullAdoptedLock(AdoptedLock, FullLock):
    """At the level `full`."""

    __slots__ = ()


@final
class FullAdoptedRLock(AdoptedRLock, FullRLock):
    """At the level `full`."""

    __slots__ = ()


@final
class SteeredAdoptedLock(AdoptedLock, SteeredLock):
    """At the level `confirm`."""

    __slots__ = ()


@final
class SteeredAdoptedRLock(AdoptedRLock, SteeredRLock):
    """At the level `confirm`."""

    __slots__ = ()


LOCKS: Final = (OrderLock, FullAdoptedLock, SteeredAdoptedLock)
RLOCKS: Final = (OrderRLock, FullAdoptedRLock, SteeredAdoptedRLock)
"""The classes by level, from `order` on."""

for _kinds, _original in ((LOCKS, _PLAIN()), (RLOCKS, _plain_rlock())):
    for _kind in _kinds:  # messages, and programs that look at the name of a type, are to see no difference
        _kind.__module__ = type(_original).__module__
        _kind.__name__ = _kind.__qualname__ = type(_original).__name__


def is_adopted(lock: object) -> bool:
    """Return whether a lock was adopted."""
    return issubclass(type(lock), AdoptedLock)
