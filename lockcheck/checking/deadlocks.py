"""Deadlocks in the wait-for graph: executions that wait and can never go on, whatever the others do.

A wait has groups of executions, and ends when one of each group has acted: each holder of a lock is a group
of its own, all workers of a pool are one. So an execution is stuck if it waits without a limit, and all of
one of its groups are stuck. Those that are not stuck are removed until nothing changes; what remains never
goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..holding.chains import Execution, ExecutionWait

__all__ = ["deadlock_of"]

_Groups: TypeAlias = "list[list[Execution]]"


def deadlock_of(execution: Execution) -> list[Execution]:
    """Return a deadlock that begins with a given execution, or nothing if it is in none.

    A waiting execution does not change what it holds. So a deadlock that is seen twice, with the same waits,
    existed as a whole in between.
    """
    first = _find_deadlock(execution)
    if not first:
        return []
    waits = [member.wait for member in first]
    again = _find_deadlock(execution)
    return first if first == again and all(m.wait is w for m, w in zip(first, waits, strict=True)) else []


def _find_deadlock(start: Execution) -> list[Execution]:
    stuck = _stuck(_waiting(start))
    path = _way_back(start, stuck)
    return _with_stand_ins(path, stuck) if path else []


def _waiting(start: Execution) -> dict[Execution, _Groups]:
    """Return an execution and all that it waits for, directly or not, with the groups of each."""
    found: dict[Execution, _Groups] = {}
    pending = [start]
    while pending:
        execution = pending.pop()
        wait: ExecutionWait | None = execution.wait
        if execution in found or wait is None or not wait.endless:
            continue
        found[execution] = [group for group in wait.needs(execution) if group]
        pending += [other for group in found[execution] for other in group]
    return found


def _stuck(waiting: dict[Execution, _Groups]) -> dict[Execution, _Groups]:
    """Return the executions that can never go on, each with those of its groups in which none can act."""
    stuck = waiting
    while True:
        left = {
            execution: blocked
            for execution, groups in stuck.items()
            if (blocked := [group for group in groups if all(other in stuck for other in group)])
        }
        if left == stuck:
            return left
        stuck = left


def _way_back(start: Execution, stuck: dict[Execution, _Groups]) -> list[Execution]:
    """Return a shortest path in the wait-for graph from an execution to itself; empty if there is none."""
    paths: dict[Execution, list[Execution]] = {start: [start]} if start in stuck else {}
    pending = list(paths)
    for execution in pending:
        for other in _blockers(stuck[execution]):
            if other is start:
                return paths[execution]
            if other not in paths:
                paths[other] = [*paths[execution], other]
                pending.append(other)
    return []


def _with_stand_ins(path: list[Execution], stuck: dict[Execution, _Groups]) -> list[Execution]:
    """Return a deadlock and the executions that could act instead of its members, but are stuck too."""
    deadlock = list(path)
    for place, execution in enumerate(deadlock):
        groups = (
            stuck[execution][:1] if place >= len(path) else [one for one in stuck[execution] if len(one) > 1]
        )
        deadlock += dict.fromkeys(other for other in _blockers(groups) if other not in deadlock)
    return deadlock


def _blockers(groups: _Groups) -> Iterator[Execution]:
    return (other for group in groups for other in group)
