"""Factories of locks: they return the plain types where nothing is checked, else the checked ones.

This is decided when a lock is made. A plain `RLock()` *is* a `threading.RLock()`: a program that
checks nothing pays nothing.
"""

from __future__ import annotations

import linecache
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from types import TracebackType
from typing import Final, Protocol, cast

from ..checking.watch import current
from ..environment.settings import level_for
from ..findings.terms import Level, RWPolicy
from ..order.order import Order
from .rwlock import PlainRWLock

_ASSIGNED: Final = re.compile(r"(?:^|;)\s*(?:\w+\.)*(\w+)\s*(?::[^=]+)?=\s*$")
"""The target of an assignment, in the text before a call."""


def Lock(name: str | None = None, *, key: object = None, check: Level | str | None = None) -> ExclusiveLock:  # noqa: N802 - as in threading
    """Return a lock.

    Args:
        name: the class of the lock, as the declared order has it; by default the class and attribute
            that the calling line assigns it to.
        key: which of its class it is, for rules of order within the class and for reports.
        check: the level of this lock; by default that of the session or the environment.
    """
    level = level_for(check)
    if level is Level.OFF:
        return threading.Lock()
    if level is Level.CONFIRM:
        from .steered import SteeredLock  # noqa: PLC0415 - likewise

        return SteeredLock(name or _name_here(), key=key)
    from .checked import CheckedLock, FullLock  # noqa: PLC0415 - not loaded where nothing is checked

    return (FullLock if level is Level.FULL else CheckedLock)(name or _name_here(), key=key)


def RLock(name: str | None = None, *, key: object = None, check: Level | str | None = None) -> ExclusiveLock:  # noqa: N802 - as in threading
    """Return a re-entrant lock; arguments as for `Lock`."""
    level = level_for(check)
    if level is Level.OFF:
        return threading.RLock()
    if level is Level.CONFIRM:
        from .steered import SteeredRLock  # noqa: PLC0415 - likewise

        return SteeredRLock(name or _name_here(), key=key)
    from .checked import CheckedRLock, FullRLock  # noqa: PLC0415 - not loaded where nothing is checked

    return (FullRLock if level is Level.FULL else CheckedRLock)(name or _name_here(), key=key)


def RWLock(  # noqa: N802 - as its siblings
    name: str | None = None,
    *,
    key: object = None,
    policy: RWPolicy = "writer",
    check: Level | str | None = None,
) -> PlainRWLock:
    """Return a read/write lock.

    Args:
        name: as for `Lock`.
        key: as for `Lock`.
        policy: whether readers or writers go first, see `PlainRWLock`.
        check: as for `Lock`.
    """
    level = level_for(check)
    if level is Level.OFF:
        return PlainRWLock(name or "rwlock", key=key, policy=policy)
    if level is Level.CONFIRM:
        from .steered import SteeredRWLock  # noqa: PLC0415 - likewise

        return SteeredRWLock(name or _name_here(), key=key, policy=policy)
    from .checked_rw import CheckedRWLock, FullRWLock  # noqa: PLC0415 - not loaded where nothing is checked

    return (FullRWLock if level is Level.FULL else CheckedRWLock)(
        name or _name_here(), key=key, policy=policy
    )


def Condition(  # noqa: N802 - as in threading
    lock: ExclusiveLock | None = None,
    name: str | None = None,
    *,
    key: object = None,
    check: Level | str | None = None,
) -> threading.Condition:
    """Return a condition over a lock, or over a new re-entrant one; other arguments as for `Lock`."""
    level = level_for(check)
    if level is Level.OFF:
        return threading.Condition(cast("threading.Lock | None", lock))
    from .checked_condition import CheckedCondition  # noqa: PLC0415 - not loaded where nothing is checked

    return CheckedCondition(lock if lock is not None else RLock(name or _name_here(), key=key, check=level))


@contextmanager
def lock_all(
    *locks: ExclusiveLock | AbstractContextManager[object], order: Order | None = None
) -> Iterator[None]:
    """Hold several locks at once, taken in the declared order, whatever order they are given in.

    Args:
        locks: locks, or guards of read/write locks such as `rw.read()`.
        order: ranks the classes; by default the declared order of the active session. Within a
            class, and where no order is declared, the names and keys decide.
    """
    watch = current()
    if order is None and watch is not None:
        order = watch.policy.order
    ranks = order.ranks if order is not None else {}
    with ExitStack() as stack:
        for lock in sorted(locks, key=lambda lock: _place(lock, ranks)):
            stack.enter_context(lock)
        yield


def _place(lock: object, ranks: dict[str, int]) -> tuple[int, str, str, object, int]:
    """Return the sort key of a lock; plain locks come last, by address, which is total too."""
    identity = getattr(lock, "identity", None)
    if identity is None:
        return len(ranks) + 1, "", "", 0, id(lock)
    key = identity.key
    return (
        ranks.get(identity.name, len(ranks)),
        identity.name,
        type(key).__name__,
        key if key is not None else 0,
        identity.serial,
    )


def _name_here() -> str:
    """Return a name for the lock that a factory makes: class and attribute, else file and line."""
    frame = sys._getframe(2)  # noqa: SLF001 - the documented way to the caller
    code = frame.f_code
    line = linecache.getline(code.co_filename, frame.f_lineno)
    column = list(code.co_positions())[frame.f_lasti // 2][2]
    found = _ASSIGNED.search(line.encode()[:column].decode(errors="replace")) if column is not None else None
    owner = code.co_qualname.rpartition(".")[0].rpartition(".")[2] if code.co_name == "__init__" else ""
    if found is None:
        return f"{code.co_filename.rpartition('/')[2]}:{frame.f_lineno}"
    return f"{owner}.{found[1]}" if owner else found[1]


class ExclusiveLock(Protocol):
    """The common methods of `threading.Lock()` and `threading.RLock()`."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:  # noqa: FBT001, FBT002 - as in threading
        """Take the lock."""

    def release(self) -> None:
        """Release the lock."""

    def __enter__(self) -> bool: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
