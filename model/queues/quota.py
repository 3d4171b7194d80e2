"""Quotas along a path: from a leaf up to the root, one queue after the other.

A charge checks and counts in one step a queue, from the root down, and releases what it has counted if a
queue declines, so that quotas hold however many threads charge at once. Where a queue keeps something of its
guarantee back, that is brought up to date when the whole path has been charged, see `lending`.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..resources.comparisons import is_zero
from ..resources.resource import EMPTY, Resource, component_wise_min
from .lending import NOTHING_KEPT, kept_beside, settle
from .queue import Queue


def try_charge(leaf: Queue, resource: Resource) -> Queue | None:
    """Charge the whole path, or nothing; return the queue that has no room, `None` on success."""
    charged: list[Queue] = []
    lends = leaf.above[-1].lending
    beside = kept_beside(leaf) if lends else NOTHING_KEPT
    try:
        for queue in reversed(leaf.above):
            if not queue.try_charge(resource, beside.get(queue, EMPTY)):
                return queue
            charged.append(queue)
        charged.clear()  # All have room: nothing is to be released.
    finally:  # Also where one of them breaks.
        for queue in charged:
            queue.release_charge(resource)
    if lends:
        settle(leaf)
    return None


def charge(leaf: Queue, resource: Resource) -> None:
    """Charge the whole path whatever the quotas: the allocation runs already, as the RM says."""
    for queue in leaf.above:
        queue.charge(resource)
    settle(leaf)


def release_charge(leaf: Queue, resource: Resource) -> None:
    """Release a charge on the whole path."""
    for queue in leaf.above:
        queue.release_charge(resource)
    settle(leaf)


def headroom(queue: Queue) -> Resource | None:
    """Return how much more may be allocated in a queue, by its own maximum and those above; may be < 0."""
    return headrooms(queue)[0]


def headrooms(queue: Queue) -> tuple[Resource | None, Resource | None]:
    """Return the headroom, and that without the root."""
    beside = kept_beside(queue)
    below = _room_below_root(queue, beside)
    root = queue.above[-1]
    if root.maximum is None:
        return below, below
    room = root.room(beside.get(root, EMPTY))
    return (room if below is None else component_wise_min(room, below)), below


def headroom_without_root(queue: Queue) -> Resource | None:
    """Return the headroom as it would be in an unlimited cluster."""
    return _room_below_root(queue, kept_beside(queue))


def _room_below_root(queue: Queue, beside: Mapping[Queue, Resource]) -> Resource | None:
    room: Resource | None = None
    for level in queue.above[:-1]:
        if level.maximum is not None:
            own = level.room(beside.get(level, EMPTY))
            room = own if room is None else component_wise_min(own, room)
    return room


def maximum_below_root(queue: Queue) -> Resource | None:
    """Return the smallest maximum per type on the path, without the cluster's size."""
    limit: Resource | None = None
    for level in queue.above[:-1]:
        if level.maximum is not None:
            limit = level.maximum if limit is None else component_wise_min(level.maximum, limit)
    return limit


def fair_maximum(queue: Queue) -> Resource | None:
    """Return what shares are measured with: the cluster, overlaid by each maximum on the way down."""
    root = queue.above[-1]
    if root.maximum is None or is_zero(root.maximum):
        return None
    overlaid = root.maximum.as_dict()
    changed = False
    for level in reversed(queue.above[:-1]):
        if level.maximum is not None:
            overlaid.update(level.maximum.items())
            changed = True
    return Resource(overlaid) if changed else root.maximum


def has_guarantee(queue: Queue) -> bool:
    """Return whether the queue, or one above it, has a guarantee."""
    for level in queue.above:  # noqa: SIM110 - a generator takes three times as long, and each cycle asks
        if level.guaranteed is not None:
            return True
    return False


def may_preempt(leaf: Queue) -> bool:
    """Return whether asks of a leaf may preempt, for a guarantee or inside of it."""
    return has_guarantee(leaf) or leaf.settings.preemption_within.ends_lower_priorities


def has_place_for(queue: Queue, application_id: str) -> Queue | None:
    """Return the queue that runs its maximum of applications already, `None` if one more may start."""
    for level in reversed(queue.above):
        if not level.has_place_for(application_id):
            return level
    return None
