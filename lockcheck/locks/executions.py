"""Named executions, fresh locks, and the locks that the current execution holds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..checking.active import current
from ..checking.watch import Watch
from ..findings.errors import LockUsageError
from ..findings.evidence import Kind, Mode
from ..holding.chains import LockIdentity, held_names, held_nodes, modes_held
from ..holding.runtime import LATCH, go_on_as, local, runtime


def identity_of(lock: object) -> LockIdentity | None:
    """Return the identity of a checked lock; `None` for a plain one."""
    return getattr(lock, "identity", None)


@contextmanager
def unit(name: str) -> Iterator[None]:
    """Run the body as an execution of its own: it is learned from as if it were a thread.

    So a test can let one thread do what several would, one after the other. Executions of one name are one;
    nothing orders executions of different names.

    Raises:
        LockUsageError: no session is open, the current execution holds locks, or another thread runs a body
            of this name.
    """
    watch = current()
    before = local.execution
    if watch is None:
        raise LockUsageError(f"the execution {name!r} needs a session to run in")
    held = held_names(before.node)
    if held:
        raise LockUsageError(f"{before.name} holds {held[-1]} and cannot go on as {name!r}")
    with LATCH:
        if name in watch.running_executions:
            raise LockUsageError(f"the execution {name!r} runs already")
        watch.running_executions.add(name)
        if name not in watch.named_executions:
            watch.named_executions[name] = runtime.new_execution(name)
        go_on_as(watch.named_executions[name])
    try:
        yield
    finally:
        if runtime.ended is not None:
            runtime.ended(local.execution)
        go_on_as(before)
        watch.running_executions.discard(name)


def held() -> tuple[str, ...]:
    """Return the locks that the current execution holds, outermost first."""
    return held_names(local.execution.node)


def fresh(lock: object) -> None:
    """Declare that only the current execution knows a lock, until it is published or another one takes it.

    Until then the lock blocks no other execution.
    """
    identity = identity_of(lock)
    if identity is not None:
        identity.fresh_for = local.execution


def publish(lock: object) -> None:
    """Declare that others know a lock from now on."""
    identity = identity_of(lock)
    if identity is not None:
        identity.fresh_for = None


def assert_held(lock: object, mode: Mode = "W") -> None:
    """Report, as a broken contract, that a lock is not held, or only for reading.

    Raises:
        LockOrderError: that is the policy.
    """
    _demand(lock, mode, Kind.CONTRACT, "")


def note_write(lock: object, what: str) -> None:
    """Report that something is written which a lock guards, without the lock or under its read lock.

    Args:
        lock: what guards it.
        what: what is written, for the report.
    """
    _demand(lock, "W", Kind.READ_WRITE, what)


def _demand(lock: object, mode: Mode, kind: Kind, what: str) -> None:
    identity = identity_of(lock)
    watch, runs = current(), local.execution
    if identity is None or watch is None or runs.inside:
        return
    modes = modes_held(identity, runs.node)
    if "W" in modes or mode in modes or identity.fresh_for is runs:
        return
    watch.guarded_on(
        runs, lambda: _report(watch, identity, mode, kind, what, reads=bool(modes)), lambda: None
    )


def _report(watch: Watch, identity: LockIdentity, mode: Mode, kind: Kind, what: str, *, reads: bool) -> None:
    state_text = "is held for reading only" if reads else "is not held"
    if kind is Kind.CONTRACT:
        text = f"{identity} must be held [{mode}], but {state_text}"
    else:
        kind = Kind.READ_WRITE if reads else Kind.UNGUARDED_WRITE
        text = f"{what} is written, but {identity} {state_text}"
    innermost = list(held_nodes(local.execution.node))[:1]
    watch.report_use(kind, text, innermost, clause=f"{identity.name}[{mode}]")
