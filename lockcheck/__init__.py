"""Lockcheck: locks whose order is declared, learned and checked. See docs/lockcheck.md.

The public names are here, and each is loaded when it is used. `locks` makes the locks, `checking` checks
them, `findings` has the values that it reports; the rooms import downwards only, in the order that
docs/lockcheck.md lists. It imports no other room of the package.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .adoption.described import describe
    from .adoption.installation import adopt
    from .checking.blocking import blocking, no_locks
    from .checking.standing import standing
    from .confirming import confirmation as confirmation
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
    from .reports import diagrams as diagrams
    from .reports import documents as documents
    from .reports import sarif as sarif
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

_NAMES: Final = {
    "adoption.described": "describe",
    "adoption.installation": "adopt",
    "checking.blocking": "blocking no_locks",
    "checking.standing": "standing",
    "findings.findings": "Edge Finding",
    "findings.terms": "DeadlockError DeadlockPossibleError Environment Frame Kind Level LockCheckError "
    "LockOrderError LockOrderWarning LockUsageError OrderDeclarationError Rung",
    "locks.contracts": "assert_held excludes fresh held leaf note_write publish requires unexercised unit",
    "locks.factories": "Condition Lock RLock RWLock lock_all",
    "order.order": "Order forbid key tree try_only",
    "sessions.session": "Session session",
}
"""The public names, by the module that each is in."""
_MODULES: Final = {name: module for module, names in _NAMES.items() for name in names.split()}
_ROOMS: Final = {
    "confirmation": "confirming",
    "diagrams": "reports",
    "documents": "reports",
    "sarif": "reports",
    "summaries": "sessions",
}
"""The modules for programs that write other reports, and the rooms they are in."""


def __getattr__(name: str) -> object:
    """Load what is used for the first time: a program that checks nothing loads nearly nothing."""
    if name in _MODULES:
        found = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    elif name in _ROOMS:
        found = import_module(f"{__name__}.{_ROOMS[name]}.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def _adopt_as_environment_says() -> None:
    """Adopt the locks of a program whose only change is the import of this package."""
    whose = os.environ.get("LOCKCHECK_ADOPT")
    if not whose:
        return
    from .findings.terms import Environment, Level  # noqa: PLC0415 - not loaded where nothing is checked

    if Environment.read().level is not Level.OFF:
        from .adoption.installation import adopt  # noqa: PLC0415 - likewise

        adopt(whose)


def _report_as_environment_says() -> None:
    """Have a signal report where the threads are."""
    name = os.environ.get("LOCKCHECK_SIGNAL")
    if name:
        from .checking.standing import report_on_signal  # noqa: PLC0415 - seldom used

        report_on_signal(name)


_adopt_as_environment_says()
_report_as_environment_says()
