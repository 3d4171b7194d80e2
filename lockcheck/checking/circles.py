"""Circles of waiting: whether units that wait can never go on, whatever the others do.

A wait ends when of each of its groups one unit has acted: of the holders of a lock every single one, of the
workers of a pool any. So a unit is stuck if it waits without a limit, and in one of its groups all are
stuck. What remains when nobody else can be told free stands there for good.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..holding.chains import Unit, UnitWait

__all__ = ["circle_of"]

_Groups: TypeAlias = "list[list[Unit]]"


def circle_of(unit: Unit) -> list[Unit]:
    """Return units that wait for each other in a circle, beginning with one that is given; or none.

    A waiting unit does not change what it holds. So a circle that is seen twice, in the same waits, stood
    there in between, all at once.
    """
    first = _find_circle(unit)
    if not first:
        return []
    waits = [member.wait for member in first]
    again = _find_circle(unit)
    return first if first == again and all(m.wait is w for m, w in zip(first, waits, strict=True)) else []


def _find_circle(start: Unit) -> list[Unit]:
    stuck = _stuck(_waiting(start))
    path = _way_back(start, stuck)
    return _with_stand_ins(path, stuck) if path else []


def _waiting(start: Unit) -> dict[Unit, _Groups]:
    """Return a unit and all that it waits for, near or far, with what each waits for itself."""
    found: dict[Unit, _Groups] = {}
    pending = [start]
    while pending:
        unit = pending.pop()
        wait: UnitWait | None = unit.wait
        if unit in found or wait is None or not wait.endless:
            continue
        found[unit] = [group for group in wait.needs(unit) if group]
        pending += [other for group in found[unit] for other in group]
    return found


def _stuck(waiting: dict[Unit, _Groups]) -> dict[Unit, _Groups]:
    """Return the units that can never go on, with the groups of which nobody can act."""
    stuck = waiting
    while True:
        left = {
            unit: blocked
            for unit, groups in stuck.items()
            if (blocked := [group for group in groups if all(other in stuck for other in group)])
        }
        if left == stuck:
            return left
        stuck = left


def _way_back(start: Unit, stuck: dict[Unit, _Groups]) -> list[Unit]:
    """Return a shortest way along the waits from a unit back to itself; empty if there is none."""
    paths: dict[Unit, list[Unit]] = {start: [start]} if start in stuck else {}
    pending = list(paths)
    for unit in pending:
        for other in _blockers(stuck[unit]):
            if other is start:
                return paths[unit]
            if other not in paths:
                paths[other] = [*paths[unit], other]
                pending.append(other)
    return []


def _with_stand_ins(path: list[Unit], stuck: dict[Unit, _Groups]) -> list[Unit]:
    """Return a circle and all others that could act in place of one in it, if they were not stuck too."""
    circle = list(path)
    for place, unit in enumerate(circle):
        groups = stuck[unit][:1] if place >= len(path) else [one for one in stuck[unit] if len(one) > 1]
        circle += dict.fromkeys(other for other in _blockers(groups) if other not in circle)
    return circle


def _blockers(groups: _Groups) -> Iterator[Unit]:
    return (other for group in groups for other in group)
