"""The orders of queues for those who only look: nothing that the scheduler keeps is changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .order import ChildKey, child_key, stamp_of
from .queue import Queue, waits
from .quota import fair_maximum
from .use_order import use_rank

if TYPE_CHECKING:
    from .tree import QueueTree


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
        use = use_rank(child, limits, stamp.now_ns) if parent.weighs_use else 0.0
        return child_key(child, fair_maximum(child), by_priority=by_priority, use=use)

    return parent.child_order.ranked(parent, stamp, key)


def ranked_leaves(tree: QueueTree, parent: Queue | None = None) -> Iterator[Queue]:
    """Walk the leaves with something waiting, as the scheduler would visit them.

    Args:
        tree: The queues.
        parent: Where to begin; the root unless said otherwise.
    """
    for child in ranked_children(tree, parent or tree.root):
        if child.is_leaf:
            yield child
        else:
            yield from ranked_leaves(tree, child)
