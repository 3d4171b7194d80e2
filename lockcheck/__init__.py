"""Lockcheck: locks whose order is declared, learned and checked. See docs/lockcheck.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .checking.blocking import blocking, no_locks
from .findings.errors import (
    DeadlockError,
    DeadlockPossibleError,
    LockCheckError,
    LockOrderError,
    LockOrderWarning,
    LockUsageError,
    OrderDeclarationError,
)
from .findings.evidence import Frame, Kind, Rung
from .findings.findings import Edge, Finding
from .findings.levels import Environment, Level
from .locks.contracts import excludes, leaf, requires, unexercised
from .locks.factories import Condition, Lock, RLock, RWLock, lock_all
from .locks.units import assert_held, fresh, held, note_write, publish, unit
from .order.order import Order
from .order.same_class import forbid, key, tree, try_only

if TYPE_CHECKING:
    from .sessions.session import Session, session

__all__ = [
    "Condition",
    "DeadlockError",
    "DeadlockPossibleError",
    "Edge",
    "Environment",
    "Finding",
    "Frame",
    "Kind",
    "Level",
    "Lock",
    "LockCheckError",
    "LockOrderError",
    "LockOrderWarning",
    "LockUsageError",
    "Order",
    "OrderDeclarationError",
    "RLock",
    "RWLock",
    "Rung",
    "Session",
    "assert_held",
    "blocking",
    "excludes",
    "forbid",
    "fresh",
    "held",
    "key",
    "leaf",
    "lock_all",
    "no_locks",
    "note_write",
    "publish",
    "requires",
    "session",
    "tree",
    "try_only",
    "unexercised",
    "unit",
]


def __getattr__(name: str) -> object:
    """Load what analyses only when somebody opens a session."""
    if name in {"Session", "session"}:
        from .sessions import session as module  # noqa: PLC0415

        return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
