"""Contracts of functions, named executions, fresh locks, and the locks that an execution holds.

If nothing is checked when a function is defined, the decorators return the function itself: a contract costs
nothing then. `unexercised` lists the contracts that no call has checked.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

from ..checking.watch import Watch, current
from ..environment.settings import level_in_force
from ..findings.terms import Kind, Level, LockUsageError, Mode
from ..holding.chains import LockIdentity, TrieNode, held_names, held_nodes, modes_held
from ..holding.runtime import LATCH, go_on_as, local, runtime

Given = ParamSpec("Given")
Result = TypeVar("Result")
_runs: dict[str, int] = {}
"""How often each contract was checked, by function and contract. Each session has its own count, too."""


def unexercised() -> tuple[str, ...]:
    """Return the contracts that were declared and never checked, in order of declaration."""
    return tuple(name for name, times in _runs.items() if times == 0)


def requires(
    attribute: str, mode: Mode = "W"
) -> Callable[[Callable[Given, Result]], Callable[Given, Result]]:
    """Declare that a method needs the lock in an attribute of its object to be held.

    Args:
        attribute: the name of the attribute, such as `lock`.
        mode: `R` is satisfied by `W` too.

    Raises:
        LockUsageError: when it is called without an object, so it is not a method.
    """

    def declare(method: Callable[Given, Result]) -> Callable[Given, Result]:
        name = _declared(method, f"requires {attribute}[{mode}]")
        if name is None:
            return method

        @functools.wraps(method)
        def checked(*given: Given.args, **named: Given.kwargs) -> Result:
            if not given:
                raise LockUsageError(f"{name}: it is called without an object that has the lock")
            _count(name)
            assert_held(getattr(given[0], attribute), mode)
            return method(*given, **named)

        return checked

    return declare


def excludes(*classes: str) -> Callable[[Callable[Given, Result]], Callable[Given, Result]]:
    """Declare that a function must not run while a lock of these classes is held; without classes, of any."""

    def declare(function: Callable[Given, Result]) -> Callable[Given, Result]:
        name = _declared(function, f"excludes {', '.join(classes) or 'all locks'}")
        if name is None:
            return function

        @functools.wraps(function)
        def checked(*given: Given.args, **named: Given.kwargs) -> Result:
            _count(name)
            _check_excluded(name, classes)
            return function(*given, **named)

        return checked

    return declare


def leaf(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """Declare that neither a function nor what it calls takes a lock."""
    name = _declared(function, "leaf")
    if name is None:
        return function

    @functools.wraps(function)
    def checked(*given: Given.args, **named: Given.kwargs) -> Result:
        _count(name)
        execution = local.execution
        outer, execution.leaf = execution.leaf, execution.leaf or function.__qualname__
        node = execution.node
        following, node.next = node.next, {}  # what was checked without the contract is checked with it
        try:
            return function(*given, **named)
        finally:
            execution.leaf = outer
            node.next = following

    return checked


def _declared(function: Callable[Given, Result], contract: str) -> str | None:
    """Remember a contract; return its name, or `None` if nothing is checked."""
    if level_in_force() is Level.OFF:
        return None
    name = f"{function.__module__}.{function.__qualname__}: {contract}"
    _runs.setdefault(name, 0)
    watch = current()
    if watch is not None:
        watch.contracts.setdefault(name, 0)
    return name


def _count(name: str) -> None:
    """Count that a contract is checked."""
    _runs[name] += 1
    watch = current()
    if watch is not None:
        watch.contracts[name] = watch.contracts.get(name, 0) + 1


def _check_excluded(name: str, classes: tuple[str, ...]) -> None:
    execution, watch = local.execution, current()
    if watch is None or execution.inside:
        return
    for holder in held_nodes(execution.node):
        acquisition = holder.acquisition
        if acquisition is not None and (
            acquisition.lock.name in classes
            if classes
            else not acquisition.lock.answers and acquisition.lock.permits is None
        ):
            watch.guarded_on(execution, functools.partial(_report, watch, name, holder), lambda: None)
            return


def _report(watch: Watch, name: str, holder: TrieNode) -> None:
    watch.report_use(Kind.CONTRACT, f"{name}, but {holder.acquisition} is held", [holder], clause=name)


def identity_of(lock: object) -> LockIdentity | None:
    """Return the identity of a checked lock; `None` for a plain one."""
    return getattr(lock, "identity", None)


@contextmanager
def unit(name: str) -> Iterator[None]:
    """Run the body as a separate execution: it is learned from as if it were a thread.

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
        runs, lambda: _report_misuse(watch, identity, mode, kind, what, reads=bool(modes)), lambda: None
    )


def _report_misuse(
    watch: Watch, identity: LockIdentity, mode: Mode, kind: Kind, what: str, *, reads: bool
) -> None:
    state_text = "is held for reading only" if reads else "is not held"
    if kind is Kind.CONTRACT:
        text = f"{identity} must be held [{mode}], but {state_text}"
    else:
        kind = Kind.READ_WRITE if reads else Kind.UNGUARDED_WRITE
        text = f"{what} is written, but {identity} {state_text}"
    innermost = list(held_nodes(local.execution.node))[:1]
    watch.report_use(kind, text, innermost, clause=f"{identity.name}[{mode}]")
