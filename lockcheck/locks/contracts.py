"""Contracts of functions: which lock has to be held, which must not be, and that none is taken.

If nothing is checked when a function is defined, the decorators return the function itself: a contract costs
nothing then. `unexercised` lists the contracts that no call has checked.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from ..checking.active import current
from ..checking.watch import Watch
from ..environment.settings import level_in_force
from ..findings.errors import LockUsageError
from ..findings.evidence import Kind, Mode
from ..findings.levels import Level
from ..holding.chains import TrieNode, held_nodes
from ..holding.runtime import local
from .executions import assert_held

Given = ParamSpec("Given")
Result = TypeVar("Result")

_runs: dict[str, int] = {}
"""How often each contract was checked, by function and contract. Each session has a count of its own, too."""


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
        LockUsageError: when it is called without an object, so it is no method.
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
