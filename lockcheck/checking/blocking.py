"""Blocking calls while a lock is held, and code that must run without locks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from ..findings.terms import Kind, Rung
from ..holding.chains import LockIdentity, held_nodes
from ..holding.runtime import fails_open, local
from .watch import Watch, current


@contextmanager
def blocking(kind: str, detail: str = "") -> Iterator[None]:
    """Mark a body that may block, such as an ask: every lock that is held then must allow it.

    Args:
        kind: `ask`, `callback`, `file`, ...; a session allows kinds by class of lock.
        detail: what exactly is called, for the report.
    """
    if local.execution.node.acquisition is not None:
        _check(kind, detail, Kind.BLOCKING, except_for=None)
    yield


@contextmanager
def no_locks(what: str) -> Iterator[None]:
    """Mark a body that must not run while any lock is held, whatever the session allows."""
    _check(what, "", Kind.CONTRACT, except_for=None)
    yield


def waits_with(timeout_seconds: float | None) -> bool:
    """Return whether a call with such a limit waits at all; one with the limit zero only looks.

    The call itself refuses values that are not numbers.
    """
    try:
        return timeout_seconds is None or timeout_seconds > 0
    except TypeError:
        return False


def blocks(kind: str, detail: str = "", *, except_for: LockIdentity | None = None) -> None:
    """Check a call that may block now; `except_for` is a lock that is released meanwhile.

    The program did not declare that it blocks, so that a finding is RB.
    """
    if local.execution.node.acquisition is not None:
        _check(kind, detail, Kind.BLOCKING, except_for=except_for, rung=Rung.RB)


def asks(answers: LockIdentity, frame: FrameType) -> bool:
    """Check an ask; under a lock it counts as a blocking call, unless the declared order has both classes.

    Args:
        answers: what is asked.
        frame: where the program asks.

    Returns:
        Whether nothing is wrong with that.
    """
    watch = current()
    order = watch.policy.order if watch is not None else None
    known = order.ranks if order is not None else {}
    held = (
        node.acquisition.lock for node in held_nodes(local.execution.node) if node.acquisition is not None
    )
    if all(
        lock.answers or lock.permits is not None or {lock.name, answers.name} <= known.keys() for lock in held
    ):
        return True
    return _check("ask", str(answers), Kind.BLOCKING, except_for=None, frame=frame)


@fails_open(True)
def _check(
    what: str,
    detail: str,
    kind: Kind,
    *,
    except_for: LockIdentity | None,
    frame: FrameType | None = None,
    rung: Rung = Rung.R0,
) -> bool:
    """Report a call that a held lock does not allow; return whether there was nothing to report."""
    execution = local.execution
    watch = current()
    if watch is None or execution.inside or execution.node.acquisition is None:
        return True
    return watch.guarded_on(
        execution,
        lambda: _check_held(watch, what, detail, kind, except_for=except_for, frame=frame, rung=rung),
        lambda: False,
    )


def _check_held(
    watch: Watch,
    what: str,
    detail: str,
    kind: Kind,
    *,
    except_for: LockIdentity | None,
    frame: FrameType | None,
    rung: Rung,
) -> bool:
    for holder in held_nodes(local.execution.node):
        acquisition = holder.acquisition
        if acquisition is None or acquisition.lock is except_for:
            continue
        if acquisition.lock.answers or acquisition.lock.permits is not None:
            continue  # an actor may block while it runs, and a semaphore is there to limit who blocks
        if kind is Kind.BLOCKING and watch.policy.allows(what, acquisition.lock.name):
            continue
        subject = f"{what} {detail}".strip()
        if kind is Kind.BLOCKING:
            text = f"{subject} may block while {acquisition} is held"
            why = ("release the lock first, or allow it for the class of the lock in the session",)
        else:
            text = f"{subject} must run without locks, but {acquisition} is held"
            why = (f"{subject} was marked so at the place below",)
        watch.report_use(kind, text, [holder], why=why, what=what, rung=rung, frame=frame)
        return False
    return True
