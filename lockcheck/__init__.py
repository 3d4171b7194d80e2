"""Lockcheck: locks whose order is declared, learned and checked. See docs/lockcheck.md.

The public names are here. `locks` makes the locks, `checking` checks them, `findings` has the values that it
reports; the rooms import downwards only, in the order that docs/lockcheck.md lists. It imports no other room
of the package.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING

from .checking.blocking import blocking, no_locks
from .findings.findings import Edge, Finding
from .findings.terms import (
    DeadlockError,
    DeadlockPossibleError,
    Environment,
    Frame,
    Kind,
    Level,
    LockCheckError,
    LockOrderError,
    LockOrderWarning,
    LockUsageError,
    OrderDeclarationError,
    Rung,
)
from .locks.contracts import (
    assert_held,
    excludes,
    fresh,
    held,
    leaf,
    note_write,
    publish,
    requires,
    unexercised,
    unit,
)
from .locks.factories import Condition, Lock, RLock, RWLock, lock_all
from .order.order import Order, forbid, key, tree, try_only

if TYPE_CHECKING:
    from .adoption.described import describe
    from .adoption.installation import adopt
    from .checking import answering as answering
    from .checking.standing import standing
    from .confirming import confirmation as confirmation
    from .reports import annotations as annotations
    from .reports import diagrams as diagrams
    from .reports import documents as documents
    from .reports import junit as junit
    from .reports import page as page
    from .reports import sarif as sarif
    from .sessions import recording as recording
    from .sessions import summaries as summaries
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
    "adopt",
    "assert_held",
    "blocking",
    "describe",
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
    "standing",
    "tree",
    "try_only",
    "unexercised",
    "unit",
]


_MODULES = {
    "annotations": "reports",
    "answering": "checking",
    "confirmation": "confirming",
    "diagrams": "reports",
    "documents": "reports",
    "junit": "reports",
    "page": "reports",
    "recording": "sessions",
    "sarif": "reports",
    "summaries": "sessions",
}
"""The modules for programs that write other reports, and the rooms they are in."""


def _adopt_as_environment_says() -> None:
    """Adopt the locks of a program whose only change is the import of this package."""
    whose = os.environ.get("LOCKCHECK_ADOPT")
    if whose and Environment.read().level is not Level.OFF:
        from .adoption.installation import adopt  # noqa: PLC0415 - not loaded where nothing is checked

        adopt(whose)


def _report_as_environment_says() -> None:
    """Have a signal report where the threads are."""
    name = os.environ.get("LOCKCHECK_SIGNAL")
    if name:
        from .checking.standing import report_on_signal  # noqa: PLC0415 - seldom used

        report_on_signal(name)


def __getattr__(name: str) -> object:
    """Load what analyses when it is used first: most programs only take locks.

    One of the modules is called `annotations`, so that this file may not import the feature of that name.
    """
    if name == "adopt":
        from .adoption.installation import adopt  # noqa: PLC0415

        return adopt
    if name == "describe":
        from .adoption.described import describe  # noqa: PLC0415

        return describe
    if name == "standing":
        from .checking.standing import standing  # noqa: PLC0415

        return standing
    if name in {"Session", "session"}:
        from .sessions import session as module  # noqa: PLC0415

        return getattr(module, name)
    if name in _MODULES:
        return import_module(f"{__name__}.{_MODULES[name]}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_adopt_as_environment_says()
_report_as_environment_says()
