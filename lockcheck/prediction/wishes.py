"""What units of a trace want while they hold something, and who would keep them from it.

Only what can lie on a circle is kept. Nestings lead from a lock that is held to the one that is wanted, and
from the end of a unit, for which others wait in a join, to all that the unit wants. Where no way leads
round, nothing can close, and most of a trace is such. So the search for circles does not depend on how much
a program does, but on how much of it is tangled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from ..traces.trace import EventKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..findings.evidence import Mode
    from .trace_index import TraceIndex

__all__ = ["Wish", "Wishes"]


@final
class Wish:
    """What a unit wants while it holds something, and at which events; events that are alike make one."""

    __slots__ = ("events", "held", "kind", "mode", "number", "object", "unit", "written")

    def __init__(
        self, unit: int, kind: EventKind, thing: int, mode: Mode, held: frozenset[tuple[int, Mode]]
    ) -> None:
        self.unit = unit
        self.kind = kind
        self.object = thing
        self.mode = mode
        self.held = frozenset(lock for lock, _ in held)
        self.written = frozenset(lock for lock, how in held if how == "W")
        """Those of them that are held for writing."""
        self.events: list[int] = []
        self.number = 0

    @property
    def target(self) -> int:
        """The lock that is wanted; of a join the unit, as a negative number."""
        return -self.object if self.kind is EventKind.JOIN else self.object

    def can_stand_beside(self, other: Wish) -> bool:
        """Tell whether two units can hold what they hold at the same time."""
        return (
            self.unit != other.unit
            and self.written.isdisjoint(other.held)
            and other.written.isdisjoint(self.held)
        )


@final
class Wishes:
    """All wishes that can lie on a circle, in the order in which they were made first."""

    def __init__(self, index: TraceIndex) -> None:
        self._index = index
        every = _all_wishes(index)
        joined = {wish.object for wish in every if wish.kind is EventKind.JOIN}
        tangled = _tangled(
            {(lock, wish.target) for wish in every for lock in wish.held}
            | {(-wish.unit, wish.target) for wish in every if wish.unit in joined}
        )
        self.all = [
            wish
            for wish in every
            if wish.target in tangled
            and (not tangled.isdisjoint(wish.held) or -wish.unit in tangled or self._may_stand_between(wish))
        ]
        self._holding: dict[int, list[Wish]] = {}
        self._writing: dict[int, list[Wish]] = {}
        self._of_unit: dict[int, list[Wish]] = {}
        for number, wish in enumerate(self.all):
            wish.number = number
            self._of_unit.setdefault(wish.unit, []).append(wish)
            if self._may_stand_between(wish):
                self._writing.setdefault(wish.object, []).append(wish)
            for lock in wish.held:
                self._holding.setdefault(lock, []).append(wish)

    def blockers(self, wish: Wish) -> Iterator[Wish]:
        """Yield the wishes whose units, when they stop there, keep another one from going on."""
        if wish.kind is EventKind.JOIN:
            yield from (other for other in self._of_unit.get(wish.object, ()) if other.unit != wish.unit)
            return
        lock, reads = wish.object, wish.mode == "R"
        for other in self._holding.get(lock, ()):
            if other.unit != wish.unit and (not reads or lock in other.written):
                yield other
        if reads:
            yield from (other for other in self._writing.get(lock, ()) if other.unit != wish.unit)

    def _may_stand_between(self, wish: Wish) -> bool:
        """Tell whether it is that of a writer which readers stand behind while it waits."""
        return (
            wish.kind is EventKind.TOOK and wish.mode == "W" and self._index.policy(wish.object) == "writer"
        )


def _all_wishes(index: TraceIndex) -> list[Wish]:
    """Return what any unit ever waited for, or would have, had it not been free."""
    events = index.events
    wishes: dict[tuple[object, ...], Wish] = {}
    for at, taken in index.held.items():
        event = events[at]
        if at < index.given or event.attempt != "block" or at in index.inner:
            continue
        held = frozenset([(events[one].object, events[one].mode) for one in taken])
        key = event.unit, event.kind, event.object, event.mode, held
        wish = wishes.get(key)
        if wish is None:
            wish = wishes[key] = Wish(*key)
        wish.events.append(at)
    return list(wishes.values())


def _tangled(nestings: Iterable[tuple[int, int]]) -> set[int]:
    """Return what lies on a circle of nestings, or between two: what has something before and behind it."""
    left = set(nestings)
    while True:
        inside = {before for before, _ in left} & {after for _, after in left}
        still = {(before, after) for before, after in left if before in inside and after in inside}
        if len(still) == len(left):
            return inside
        left = still
