"""The locks and semaphores of `multiprocessing`, as far as the threads of one process use them.

All of them have a semaphore of `_multiprocessing` inside, which this takes the place of. Each is known as a
semaphore that is used as a lock (`semaphores.py`), since another process may release what this one took. What
a process that was forked does with them is not checked: it does not know what its parent holds.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, Final, cast

from ..checking.taken import forget_taken
from ..findings.foreign import ByIdentity
from ..holding.runtime import fails_open, local
from ..interception.hooks import Hooks, guarded
from .makers import adopted_for
from .scope import Scope
from .semaphores import Permits, know_permits, note_release, permits_of, take_permit

_MODULE: Final = "multiprocessing.synchronize"
_MAKERS: Final = frozenset({_MODULE, "multiprocessing.context", "multiprocessing.sharedctypes"})
"""Modules that make locks for their caller, which is the program: it can take them itself."""
_UNTAKEN: Final = frozenset({"Event.__init__", "Barrier.__init__"})
"""What makes locks that no program takes."""
_RECURSIVE: Final = 0
"""The kind of those that a thread may take again."""

_shared: Final[ByIdentity[Permits]] = ByIdentity()
"""Those that other processes may use too."""


def _maker(frame: FrameType | None) -> FrameType | None:
    """Return the frame that a new lock is for; `None` if no program takes it."""
    while frame is not None and frame.f_globals.get("__name__") in _MAKERS:
        if frame.f_code.co_qualname in _UNTAKEN:
            return None
        frame = frame.f_back
    return frame


@fails_open(cast("Permits | None", None))
def _adopted(kind: int, permits: int, frame: FrameType | None, scope: Scope | None) -> Permits | None:
    """Return who has the permits of a new semaphore; `None` if it is not adopted, or has none yet."""
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


def _acquire(
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


def _enter(acquire: Callable[[object], bool]) -> Callable[[object], bool]:
    def enter(self: object) -> bool:
        found = permits_of(self)
        if found is not None:
            found.identity.certain = True
        return acquire(self)

    return enter


def _release(method: Callable[[object], None], self: object) -> None:
    note_release(self, 1)
    forget_taken()
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
    acquire, release = guarded(plain.acquire, _acquire), guarded(plain.release, _release)
    methods = {
        "__new__": staticmethod(guarded(plain.__new__, _new(scope_now, plain))),
        "acquire": acquire,
        "release": release,
        "__enter__": _enter(acquire),
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
