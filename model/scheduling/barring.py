"""The search for what bars each kind of resting applications, and for the kinds that what ended may help.

The bars are those of `licorne.model.queues.bars`. They are found where no queue keeps anything back from
others and no ask has a claim: otherwise what ends anywhere may be room, and all that rests is looked at.
"""

from __future__ import annotations

from ..limits.user_limits import barring_limit
from ..queues.bars import Bar, LimitBar
from ..queues.queue import Queue
from ..queues.sleep import Sleep, Stamp
from ..queues.waiting import RestingKind
from ..resources.resource import Resource, fits_undefined_unlimited
from ..state.charges import room_at
from ..state.partition_state import PartitionState


def find_bars(state: PartitionState, leaf: Queue) -> None:
    """Note what bars the kinds in doubt of a leaf that a visit has tried without result."""
    waiting = leaf.entries.waiting
    waiting.doubt_since((state.changes, state.node_changes))
    if state.claims.by_key or state.tree.root.lending:
        return
    rooms = [(level, level.room()) for level in leaf.above if level.maximum is not None]
    for resting in [*waiting.doubtful]:
        bars = _bars_of(state, resting, rooms)
        if bars is not None:
            state.tree.bars.bar(resting, bars)
            del waiting.doubtful[resting]


def is_barred(state: PartitionState, leaf: Queue, sleep: Sleep, stamp: Stamp) -> bool:
    """Return whether bars still keep all that waits in a leaf, whose last walk found that they do.

    Args:
        state: The partition.
        leaf: The leaf.
        sleep: The result of that walk.
        stamp: The counts of changes now.
    """
    if sleep.stamp[0] == stamp[0] and leaf.entries.waiting.is_barred:
        return True
    find_bars(state, leaf)
    sleep.stamp = stamp
    return leaf.entries.waiting.is_barred


def _bars_of(
    state: PartitionState, resting: RestingKind, rooms: list[tuple[Queue, Resource | None]]
) -> tuple[tuple[Bar, Resource], ...] | None:
    """Return a bar for each size of a kind; `None` if one may have room, or the kind waits for more.

    Args:
        state: The partition.
        resting: The kind.
        rooms: The queues on the path that have a maximum, from the leaf on, each with its room.
    """
    kind, leaf = resting.kind, resting.leaf
    if kind.preempting or kind.gang is not None or kind.may_run is not None:
        return None
    bars: dict[tuple[Bar, Resource], None] = {}
    waiting = leaf.entries.waiting
    for size in kind.sizes:
        for level, room in rooms:
            if not fits_undefined_unlimited(room, size):
                bars[level, size] = None
                break
        else:
            is_reservable = kind.may_reserve and not waiting.is_unreservable(size, state.node_changes)
            if is_reservable or size not in state.nodes.closed:
                return None
            bars[None, size] = None
    first = resting.entries.head()
    assert first is not None, "a kind of which none rests is kept: please report"
    for size in kind.over_limit:
        limit = barring_limit(state.limits, leaf.path, first.application_id, first.user, size)
        if limit is None:
            return None
        bars[LimitBar(*limit), size] = None
    return tuple(bars)


def doubt_freed(state: PartitionState) -> None:
    """Put the kinds in doubt that may have room since something has ended or nodes have gained some.

    The doubt ends where others have got that room before.
    """
    bars = state.tree.bars
    bars.forget_gone()
    if state.claims.by_key or state.tree.root.lending:
        bars.open.clear()
    for opened, size in [*bars.open]:
        if not fits_undefined_unlimited(room_at(state, opened), size):
            bars.close(opened, size)
    if state.nodes.opened:
        bars.doubt(None, state.nodes.opened)
        state.nodes.opened.clear()
    for bar in [*bars.freed]:
        bars.doubt_fitting(bar, room_at(state, bar))
    bars.freed.clear()
