"""Semaphores that are used as locks: the holder of a permit may request a lock, and that of a lock a permit.

A semaphore is a lock where it is taken by `with`, where the function that takes it releases it too, and once
an execution has released what it took. One that another execution releases than took it hands something
over: it is left alone from then on, and what was found about it is taken back. One that begins without
permits is left alone too.

A semaphore keeps its class, and what it counts. Only those are known that are made while locks are adopted.

All of them have a semaphore of `_multiprocessing` inside, which this takes the place of. Each is known as a
semaphore that is used as a lock (`semaphores.py`), since another process may release what this one took.
Their use by a process that was forked is not checked: it does not know what its parent holds.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable
from time import perf_counter_ns
from types import FrameType
from typing import Any, Final, cast, final

from ..checking.knowledge import gets, gives, publish
from ..checking.slow_path import here, take_out, take_slow_path
from ..checking.waiting import wait_for_lock
from ..checking.watch import current
from ..findings.foreign import ByIdentity
from ..findings.terms import Kind
from ..holding.chains import Acquisition, Attempt, Execution, SemaphoreIdentity, TrieNode, holds_of
from ..holding.runtime import fails_open, local, runtime
from ..holding.stacks import caller
from ..interception.hooks import Hooks, guarded
from .naming import Scope, adopted_for

_BOUNDED: Final = threading.BoundedSemaphore.__init__.__code__
_known: Final[ByIdentity[Permits]] = ByIdentity()
"""The semaphores that are used as locks, as far as is known."""
_MODULE: Final = "multiprocessing.synchronize"
_MAKERS: Final = frozenset({_MODULE, "multiprocessing.context", "multiprocessing.sharedctypes"})
"""Modules that make locks for their caller, which is the program: it can take them itself."""
_UNTAKEN: Final = frozenset({"Event.__init__", "Barrier.__init__"})
"""The makers of locks that no program takes."""
_RECURSIVE: Final = 0
"""The kind of those that a thread may take again."""
_shared: Final[ByIdentity[Permits]] = ByIdentity()
"""Those that other processes may use too."""


@final
class Permits:
    """The holders of the permits of a semaphore.

    Args:
        name: what the program assigns it to.
        permits: how many there are.
    """

    def __init__(self, name: str, permits: int) -> None:
        self.identity = SemaphoreIdentity(name, permits)
        self._asking: dict[Attempt, Acquisition] = {}
        self._unnoted: Counter[int] = Counter()
        """How many permits each execution took of which it is not known yet whether it releases them."""

    @fails_open(None)
    def __del__(self) -> None:
        identity = getattr(self, "identity", None)  # none if it could not be made
        if identity is not None and identity.alive:
            identity.alive = False

    def asked(self, attempt: Attempt) -> Acquisition:
        """Return the acquisition of a permit for an attempt."""
        return self._asking.get(attempt) or self._asking.setdefault(
            attempt, Acquisition(self.identity, "W", attempt)
        )

    def took(self, execution: Execution, after: TrieNode) -> None:
        """Note that an execution has a permit."""
        frame = caller()
        if self.identity.certain or (frame is not None and "release" in frame.f_code.co_names):
            after.since = perf_counter_ns()
            execution.node = after
        else:
            self._unnoted[execution.serial] += 1

    def gives(self, execution: Execution) -> None:
        """Note that an execution is about to release a permit; if it has none, this is not a lock."""
        if take_out(execution, self.identity, "W"):
            self.identity.certain = True
        elif self._unnoted[execution.serial]:
            self._unnoted[execution.serial] -= 1
            self._unnoted += Counter()  # without entries of 0
            self.identity.certain = True
        elif self.identity.alive:
            self.leave_alone()

    def exceeded_by(self, execution: Execution) -> bool:
        """Return whether an execution has more permits than there are: something else has released some."""
        held = sum(1 for _ in holds_of(self.identity, execution.node))
        return held + self._unnoted[execution.serial] > self.identity.permits

    def leave_alone(self) -> None:
        """Note that this is a signal and no lock."""
        self.identity.alive = None
        watch = current()
        if watch is not None:
            watch.withdraw(str(self.identity), Kind.CYCLE, Kind.RECURSION)


def know_permits(semaphore: object, permits: Permits) -> None:
    """Make a new semaphore known as one that is used as a lock."""
    _known.put(semaphore, permits)


@fails_open(cast("Permits | None", None))
def permits_of(semaphore: object) -> Permits | None:
    """Return who has the permits of a semaphore, if it is known and no signal."""
    found = _known.get(semaphore)
    return found if found is not None and found.identity.alive and not local.execution.inside else None


@fails_open(cast("TrieNode | None", None))
def _checked(found: Permits, attempt: Attempt) -> TrieNode | None:
    """Check that the calling execution takes a permit; return what it would hold then.

    Raises:
        LockOrderError, DeadlockPossibleError: that is the policy for what was found; nothing was taken.
    """
    execution, acquisition = local.execution, found.asked(attempt)
    if runtime.steering is not None:
        runtime.steering.wants(execution, acquisition)
    after = execution.node.next.get(acquisition)
    if after is None:
        return take_slow_path(execution, acquisition)
    return here(execution, acquisition, after) if after.code is not None else after


def take_permit(
    acquire: Callable[[bool, float | None], bool],
    found: Permits,
    timeout: float | None,
    *,
    breakable: bool = True,
) -> bool:
    """Take a permit of a known semaphore, and look for deadlocks meanwhile."""
    attempt: Attempt = "block" if timeout is None else "timed" if timeout > 0 else "try"
    after = _checked(found, attempt)
    if after is None:
        return acquire(timeout != 0, timeout or None)
    if not acquire(False, None):
        limit = -1.0 if timeout is None else timeout
        if attempt == "try" or not wait_for_lock(
            after.execution, after, lambda seconds: acquire(True, seconds), limit, breakable=breakable
        ):
            return False
    _note(found.took, after)
    return True


@fails_open(None)
def _note(took: Callable[[Execution, TrieNode], None], after: TrieNode) -> None:
    took(local.execution, after)


@fails_open(None)
def _adopt(semaphore: threading.Semaphore, frame: FrameType | None, scope: Scope | None) -> None:
    """Make a new semaphore known, if it is adopted and has permits."""
    while frame is not None and frame.f_code is _BOUNDED:
        frame = frame.f_back
    made_for = adopted_for(scope, frame)
    value = semaphore._value  # noqa: SLF001 - no public name
    if made_for is not None and value > 0:
        know_permits(semaphore, Permits(made_for[0], value))


@fails_open(None)
def note_release(semaphore: object, times: int) -> None:
    """Note that the calling execution is about to release permits."""
    found = permits_of(semaphore)
    if found is not None:
        for _ in range(times):
            found.gives(local.execution)


def _init(
    scope_now: Callable[[], Scope | None],
    method: Callable[[threading.Semaphore, int], None],
    self: threading.Semaphore,
    value: int = 1,
) -> None:
    method(self, value)
    _adopt(self, sys._getframe(2), scope_now())  # noqa: SLF001 - the caller of the guard


def _acquire(
    method: Callable[..., bool],
    self: threading.Semaphore,
    blocking: bool = True,  # noqa: FBT001, FBT002 - as in threading
    timeout: float | None = None,
) -> bool:
    found = permits_of(self)
    try:
        if found is None or (not blocking and timeout is not None):  # which it refuses
            return method(self, blocking, timeout)
        return take_permit(functools.partial(method, self), found, timeout if blocking else 0.0)
    finally:
        gets(self)


def _enter(
    method: Callable[..., bool],
    self: threading.Semaphore,
    blocking: bool = True,  # noqa: FBT001, FBT002 - as in threading
    timeout: float | None = None,
) -> bool:
    found = permits_of(self)
    if found is not None and blocking and timeout is None:
        found.identity.certain = True
    return _acquire(method, self, blocking, timeout)


def _release(
    method: Callable[[threading.Semaphore, int], None], self: threading.Semaphore, n: int = 1
) -> None:
    if n.__class__ is int and n > 0:
        note_release(self, n)
        gives(self)
    method(self, n)


def _light_acquire(original: Callable[..., bool], hooked: Callable[..., bool]) -> Callable[..., bool]:
    """Return `acquire` without its hook where a semaphore is no lock, such as that of an idle pool."""

    def acquire(self: threading.Semaphore, blocking: bool = True, timeout: float | None = None) -> bool:  # noqa: FBT001, FBT002 - as in threading
        if _known.get(self) is not None:
            return hooked(self, blocking, timeout)
        try:
            return original(self, blocking, timeout)
        finally:
            gets(self)

    return acquire


def put_all(hooks: Hooks, scope_now: Callable[[], Scope | None]) -> None:
    """Replace the methods of semaphores.

    Args:
        hooks: remember the methods that were there.
        scope_now: returns whose locks are adopted.
    """
    one, bounded = threading.Semaphore, threading.BoundedSemaphore
    hooks.wrap(one, "__init__", functools.partial(_init, scope_now))
    hooks.wrap(one, "acquire", _acquire)
    hooks.skip(one, "acquire", _light_acquire)
    hooks.wrap(one, "__enter__", _enter)
    hooks.wrap(one, "release", _release)
    hooks.wrap(bounded, "release", _release)


@fails_open(None, of_setup=True)
def forget_all() -> None:
    """Leave all semaphores alone from now on."""
    for found in _known.values():
        found.identity.alive = False


def _maker(frame: FrameType | None) -> FrameType | None:
    """Return the frame that a new lock is for; `None` if no program takes it."""
    while frame is not None and frame.f_globals.get("__name__") in _MAKERS:
        if frame.f_code.co_qualname in _UNTAKEN:
            return None
        frame = frame.f_back
    return frame


@fails_open(cast("Permits | None", None))
def _adopted(kind: int, permits: int, frame: FrameType | None, scope: Scope | None) -> Permits | None:
    """Return the holders of the permits of a new semaphore; `None` if it is not adopted or has no permits."""
    made_for = adopted_for(scope, _maker(frame)) if permits > 0 else None
    if made_for is None:
        return None
    found = Permits(made_for[0], permits)
    found.identity.reentrant = kind == _RECURSIVE
    return found


def _new(scope_now: Callable[[], Scope | None], plain: type) -> Callable[..., Any]:
    def new(
        method: Callable[..., Any], cls: type, kind: int, value: int, *rest: object, **named: object
    ) -> object:
        permits = _adopted(kind, value, sys._getframe(2), scope_now())  # noqa: SLF001 - the caller of the guard
        if permits is None:
            return method(plain, kind, value, *rest, **named)
        made = method(cls, kind, value, *rest, **named)
        know_permits(made, permits)
        _shared.put(made, permits)
        return made

    return new


def _acquire_process_lock(
    method: Callable[..., bool],
    self: object,
    block: object = True,  # noqa: FBT002 - as there
    timeout: float | None = None,
) -> bool:
    found = permits_of(self)
    if found is None:
        return method(self, block, timeout)
    limit = 0.0 if not block else None if timeout is None else max(timeout, 0.0)
    breakable = not _is_wait(sys._getframe(2))  # noqa: SLF001 - the caller of the guard
    taken = take_permit(functools.partial(method, self), found, limit, breakable=breakable)
    if taken:
        _check_owner(found)
    return taken


def _is_wait(caller: FrameType) -> bool:
    """Return whether a condition takes its lock again after it waited."""
    return caller.f_code.co_qualname == "Condition.wait" and caller.f_globals.get("__name__") == _MODULE


@fails_open(None)
def _check_owner(found: Permits) -> None:
    """Leave a semaphore alone that another process has released while an execution here had it."""
    if not found.identity.reentrant and found.exceeded_by(local.execution):
        found.leave_alone()


def _enter_process_lock(acquire: Callable[[object], bool]) -> Callable[[object], bool]:
    def enter(self: object) -> bool:
        found = permits_of(self)
        if found is not None:
            found.identity.certain = True
        return acquire(self)

    return enter


def _release_process_lock(method: Callable[[object], None], self: object) -> None:
    note_release(self, 1)
    publish()
    method(self)


def _exit(release: Callable[[object], None]) -> Callable[..., None]:
    def leave(self: object, *_: object) -> None:
        release(self)

    return leave


def put_process_locks(hooks: Hooks, scope_now: Callable[[], Scope | None]) -> None:
    """Put a class that is checked in the place of the semaphores of `_multiprocessing`, if there are any.

    Args:
        hooks: remember the class that was there.
        scope_now: returns whose locks are adopted.
    """
    try:
        module = importlib.import_module("_multiprocessing")  # it does nothing but define them
    except ImportError:  # not on every platform
        return
    plain = getattr(module, "SemLock", None)
    if plain is None:
        return
    acquire, release = (
        guarded(plain.acquire, _acquire_process_lock),
        guarded(plain.release, _release_process_lock),
    )
    methods = {
        "__new__": staticmethod(guarded(plain.__new__, _new(scope_now, plain))),
        "acquire": acquire,
        "release": release,
        "__enter__": _enter_process_lock(acquire),
        "__exit__": _exit(release),
        "__module__": plain.__module__,
    }
    hooks.put(module, plain.__name__, type(plain.__name__, (plain,), methods))


@fails_open(None)
def _forked() -> None:
    """Leave all of them alone: what the parent holds is its own to release."""
    for found in _shared.values():
        found.identity.alive = False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
