"""Units that stand at the stops of a witness, and whether each keeps the one before it from going on."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeAlias, final

from ..checking.waiting import LockWait
from ..findings.findings import Edge
from ..holding.chains import modes_held, nesting_of
from ..holding.stacks import resolve

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..checking.standing import Standing
    from ..holding.chains import Grip, Unit, UnitWait

__all__ = ["Joining", "Member", "Paused", "awaited", "blocks", "edges_of"]


@final
class Paused:
    """A unit at a stop, or at several that look the same, about to want a lock."""

    def __init__(self, unit: Unit, grip: Grip, times: dict[int, int]) -> None:
        self.unit = unit
        self.grip = grip
        self.times = times
        """The stops, and how often it came to each of them, this time included."""
        self.began = time.monotonic()

    @property
    def waits(self) -> bool:
        """Whether it is in the queue of the lock that it wants."""
        wait = self.unit.wait
        return isinstance(wait, LockWait) and wait.grip.lock is self.grip.lock


@final
class Joining:
    """A unit at a stop where it waits for the end of a thread: it need not be paused."""

    grip = None

    def __init__(self, unit: Unit, place: int, wait: UnitWait) -> None:
        self.unit = unit
        self.times = {place: 1}
        self.began = time.monotonic()
        self.ends = awaited(unit, wait)
        """The units that it waits for."""
        self._wait = wait

    @property
    def waits(self) -> bool:
        """Whether it still does."""
        return self.unit.wait is self._wait


Member: TypeAlias = "Paused | Joining"


def awaited(unit: Unit, wait: UnitWait) -> list[Unit]:
    """Return the units that a wait is for; it may ask others for their locks."""
    return [one for group in wait.needs(unit) for one in group]


def blocks(following: Member, one: Member) -> bool:
    """Tell whether a unit has to wait for the one that follows it, or stands behind it in a queue."""
    if isinstance(one, Joining):
        return one.waits and following.unit in one.ends
    wanted = one.grip
    held = modes_held(wanted.lock, following.unit.node)
    if held:
        return "W" in {*held, wanted.mode}
    queued = following.grip
    writes_first = queued is not None and queued.lock is wanted.lock and queued.mode == "W"
    return writes_first and wanted.mode == "R" and wanted.lock.policy == "writer"


def edges_of(crew: Sequence[Standing]) -> tuple[Edge, ...]:
    """Return the edges of units that are stuck: what each holds of what the one before wants."""
    edges: list[Edge] = []
    for one, before in zip(crew, (crew[-1], *crew), strict=False):
        wanted = before.wanted
        joint = next(
            (held for held in one.held if wanted is not None and held.grip.lock is wanted.lock), None
        )
        edges.append(
            Edge(
                unit=one.unit,
                held=str(joint.grip) if joint is not None else None,
                wanted=one.awaits,
                all_held=tuple(str(held.grip) for held in one.held),
                hold_stack=resolve(joint.stack) if joint is not None else (),
                want_stack=resolve(one.stack),
                nesting=nesting_of(joint.grip, one.wanted) if joint and one.wanted else None,
            )
        )
    return tuple(edges)
