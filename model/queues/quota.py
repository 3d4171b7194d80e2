"""The quotas of queues: what is free, what is lent, when a lower maximum is enforced, and orders that follow.

A charge checks and counts in one step a queue, from the root down, and releases what it has counted if a
queue declines, so that quotas hold however many threads charge at once. Where a queue keeps something of its
guarantee back, that is brought up to date when the whole path has been charged.

A queue with `resources.lend` lends that much of its guarantee, type by type, and *keeps back* the rest. For
others it counts as the larger of what it uses, or is held for it, and what it keeps back; a parent as the
larger of the sum of its queues and what it keeps back itself. The difference to what it uses is what it
*withholds*. The resources that all queues beside a path withhold, below one of its queues, are not available
to the path there.

Queues are visited one after the other here, so only a thread that has the partition alone may charge where
any queue keeps something back.

The due time is set where a queue uses more than its maximum and has a `quota.preemption.delay`: when the
maximum was lowered, or when the RM reports something that exists already. It is cancelled when the usage is
within the maximum again, and removed once it has been due: one change is enforced once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from ..configuration.problems import Position
from ..resources.comparisons import component_wise_max, is_zero, prune
from ..resources.resource import (
    EMPTY,
    Resource,
    add,
    component_wise_min,
    subtract,
    subtract_eliminating_negative,
    total_of,
)
from .order import ChildKey, stamp_of
from .queue import Queue, waits
from .use_order import use_rank

if TYPE_CHECKING:
    from .tree import QueueTree

NOTHING_KEPT: Final[Mapping[Queue, Resource]] = MappingProxyType({})
"""The withheld resources where no queue of a tree lends."""


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
    """Charge the whole path whatever the quotas: the allocation runs already."""
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


class Withheld(NamedTuple):
    """The amount of a resource type that one queue withholds from all others."""

    path: str
    name: str
    quantity: int
    """Less than it keeps back by what it uses of it, or what is held for it."""
    kept: int
    position: Position | None
    """Where the setting stands, `None` if it is in no file."""


def kept_beside(queue: Queue) -> Mapping[Queue, Resource]:
    """Return what is withheld from a queue, by each queue above it; one without is not there.

    It costs a step a level: each queue has the sum of what those below it withhold.
    """
    if not queue.above[-1].lending:
        return NOTHING_KEPT
    beside: dict[Queue, Resource] = {}
    sum_beside = EMPTY
    for level, parent in pairwise(queue.above):
        others = subtract(parent.withheld_below, level.withheld)
        if len(others):
            sum_beside = add(sum_beside, others)
        beside[parent] = sum_beside
    return beside


def settle(queue: Queue) -> None:
    """Bring what a queue and those above it withhold up to date with their use and settings."""
    if not queue.above[-1].lending:
        return
    for level, parent in pairwise(queue.above):
        withheld = _withheld(level)
        if withheld is not EMPTY or level.withheld is not EMPTY:
            _count_below(parent, subtract(withheld, level.withheld))
            level.withheld = withheld


def leave(queue: Queue) -> None:
    """Have a queue that has been removed withhold nothing."""
    parent = queue.parent
    if parent is not None and queue.withheld is not EMPTY:
        _count_below(parent, subtract(EMPTY, queue.withheld))
        queue.withheld = EMPTY
        settle(parent)


def settle_all(root: Queue, queues: Iterable[Queue]) -> None:
    """Find anew what each queue of a tree withholds, after a change of settings.

    Args:
        root: The root of the tree.
        queues: All queues of the tree, parents before children.
    """
    every = [*queues]
    root.lending = any(
        queue.lend is not None or (queue.template is not None and queue.template.lend is not None)
        for queue in every
    )
    for queue in every:
        queue.withheld = queue.withheld_below = EMPTY
    if root.lending:
        for queue in reversed(every):
            withheld = _withheld(queue)
            if queue.parent is not None and withheld is not EMPTY:
                queue.withheld = withheld
                _count_below(queue.parent, withheld)


def gives_room(queue: Queue, resource: Resource, leaf: Queue) -> bool:
    """Return whether a resource that ends in a queue is room for a leaf, and not kept back for its queue."""
    for level in queue.above if queue.above[-1].lending else ():
        if level in leaf.above:
            break
        for name in level.lend or ():
            kept = (level.guaranteed or EMPTY).get(name) - (level.lend or EMPTY).get(name)
            if resource.get(name) > 0 and level.allocated.get(name) <= kept:
                return False
    return True


def validate_lending(queues: Iterable[Queue]) -> None:
    """Assert that queues withhold the amounts that follow from their settings and their use."""
    for queue in queues:
        below = total_of(child.withheld for child in queue.children.values())
        assert dict(prune(below).items()) == dict(queue.withheld_below.items()), (
            f"below {queue} {below!r} is withheld, and {queue.withheld_below!r} is counted: please report"
        )
        withheld = EMPTY if queue.parent is None else _withheld(queue)
        assert dict(withheld.items()) == dict(queue.withheld.items()), (
            f"{queue} withholds {withheld!r}, and {queue.withheld!r} is counted: please report"
        )


def withheld_from(queue: Queue, ancestor: Queue, name: str) -> list[Withheld]:
    """Return which queues beside the path from an ancestor down to a queue withhold a type, largest first."""
    found: list[Withheld] = []
    for level, parent in pairwise(queue.above):
        found.extend(_holders(parent, name, but_for=level.name))
        if parent is ancestor:
            break
    return sorted(found, key=lambda each: (-each.quantity, each.path))


def _holders(parent: Queue, name: str, *, but_for: str = "") -> Iterator[Withheld]:
    """Walk the queues below a parent whose settings withhold a type."""
    for child in parent.children.values():
        quantity = child.withheld.get(name)
        if child.name == but_for or quantity <= 0:
            continue
        if quantity > child.withheld_below.get(name):
            positions = child.positions
            position = positions.get(f"lend.{name}") or positions.get("lend")
            kept = (child.guaranteed or EMPTY).get(name) - (child.lend or EMPTY).get(name)
            yield Withheld(child.path, name, quantity, kept, position)
        else:
            yield from _holders(child, name)


def _withheld(queue: Queue) -> Resource:
    """Return what a queue withholds: what those below it do, or more if it uses less than it keeps back."""
    lend, guaranteed = queue.lend, queue.guaranteed
    below = queue.withheld_below
    if lend is None or guaranteed is None:
        return below
    kept = Resource({name: guaranteed.get(name) - lent for name, lent in lend.items()})
    unused = subtract_eliminating_negative(kept, add(queue.allocated, queue.held))
    own = Resource({name: quantity for name in lend if (quantity := unused.get(name)) > 0})
    if not len(own):
        return below
    return component_wise_max(own, below) if len(below) else own


def _count_below(parent: Queue, change: Resource) -> None:
    """Count a change of what a child withholds."""
    parent.withheld_below = prune(add(parent.withheld_below, change)) or EMPTY


class QuotaSettings(NamedTuple):
    """The values that decide the due time of a queue."""

    maximum: Resource | None = None
    delay_ns: int = 0


def is_over_maximum(queue: Queue) -> bool:
    """Return whether a queue uses more than its own maximum of any type."""
    maximum = queue.maximum
    if maximum is None:
        return False
    return any(queue.allocated.get(name) > quantity for name, quantity in maximum.items())


def quota_changed(queue: Queue, old_maximum: Resource | None, old_delay_ns: int, now_ns: int) -> None:
    """Set, move or cancel the due time of a queue whose configuration has been applied.

    A maximum counts as lowered where it is lower for any type, or newly limits one: in the recorded core
    a first maximum, and one that is lowered for some types and raised for others, is never enforced.

    Args:
        queue: The queue.
        old_maximum: Its maximum before, if any; `None` for a new queue.
        old_delay_ns: Its `quota.preemption.delay` before, 0 without one.
        now_ns: The time.
    """
    delay_ns = queue.settings.quota_preemption_delay_ns
    if not queue.managed or not delay_ns or not is_over_maximum(queue):
        queue.quota_preemption_due_ns = None
        return
    due_ns = queue.quota_preemption_due_ns
    if due_ns is not None:
        queue.quota_preemption_due_ns = due_ns + delay_ns - old_delay_ns
    elif _is_lowered(old_maximum, queue.maximum) or not old_delay_ns:
        queue.quota_preemption_due_ns = now_ns + delay_ns


def take_shares(queues: Iterable[Queue]) -> bool:
    """Set the quotas of queues that are parts of the maximum of their parents; return whether any are.

    Parents come before their children.
    """
    are_any = False
    for queue in queues:
        guaranteed, maximum = queue.shares
        if queue.parent is not None and (guaranteed is not None or maximum is not None):
            whole = queue.parent.maximum
            queue.set_quota(
                queue.guaranteed if guaranteed is None else guaranteed.of(whole),
                queue.maximum if maximum is None else maximum.of(whole),
            )
            are_any = True
    return are_any


def quota_settings(queues: Iterable[Queue]) -> dict[str, QuotaSettings]:
    """Return the settings of queues by path, to be kept while a configuration is applied to them."""
    return {
        queue.path: QuotaSettings(queue.maximum, queue.settings.quota_preemption_delay_ns) for queue in queues
    }


def quotas_changed(queues: Iterable[Queue], before: Mapping[str, QuotaSettings], now_ns: int) -> None:
    """Set, move or cancel the due times of all queues after a configuration has been applied to them."""
    for queue in queues:
        old = before.get(queue.path, QuotaSettings())
        quota_changed(queue, old.maximum, old.delay_ns, now_ns)


def _is_lowered(old: Resource | None, new: Resource | None) -> bool:
    """Return whether a new maximum is stricter than the old one for any type."""
    if new is None:
        return False
    if old is None:
        return True
    return any(not old.has(name) or quantity < old[name] for name, quantity in new.items())


def usage_raised(queue: Queue, now_ns: int) -> None:
    """Set the due times of a leaf and of those above it that now use more than their maximum.

    To be called where usage is raised whatever the quotas allow (recovery, placement by the RM, resizing), in
    a partition that enforces quotas.
    """
    for level in queue.above:
        delay_ns = level.settings.quota_preemption_delay_ns
        if level.managed and delay_ns and level.quota_preemption_due_ns is None and is_over_maximum(level):
            level.quota_preemption_due_ns = now_ns + delay_ns


def next_due_ns(queues: Iterable[Queue]) -> int | None:
    """Return when the next maximum is to be enforced, if any."""
    due = (queue.quota_preemption_due_ns for queue in queues)
    return min((time_ns for time_ns in due if time_ns is not None), default=None)


def is_reached(leaf: Queue) -> bool:
    """Return whether something waits in a leaf that a walk of the tree comes to.

    It does not where a queue above is stopped, or is a leaf itself since a configuration made it one.
    """
    return waits(leaf) and all(waits(level) and not level.is_leaf for level in leaf.above[1:-1])


def ranked_children(tree: QueueTree, parent: Queue) -> Iterator[Queue]:
    """Walk the children with something waiting, in their order."""
    by_priority = parent.settings.priority_sorting
    stamp = stamp_of(tree, parent)
    limits = fair_maximum(parent) if parent.weighs_use else None

    def key(child: Queue) -> ChildKey | None:
        if not waits(child):
            return None
        use = use_rank(child, limits, stamp.now_ns).value if parent.weighs_use else 0.0
        return parent.queue_order.key(child, fair_maximum(child), by_priority=by_priority, use=use)

    return parent.child_order.ranked(parent, stamp, key)


def ranked_leaves(tree: QueueTree, parent: Queue | None = None) -> Iterator[Queue]:
    """Walk the leaves with something waiting, as the scheduler would visit them.

    Args:
        tree: The queues.
        parent: Where to begin; by default the root.
    """
    for child in ranked_children(tree, parent or tree.root):
        if child.is_leaf:
            yield child
        else:
            yield from ranked_leaves(tree, child)
