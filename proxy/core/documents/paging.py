"""Long lists in pieces of bounded size: a partition copies each in a turn of its own, and works in between.

How many rows are asked for at once follows from the sizes of the rows before: an application may have one
allocation, or thousands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

from ....model.applications.report import ShownApplication
from ....model.limits.usage_tree import UsageView
from ....model.views.shown import ShownNode

T = TypeVar("T")
K = TypeVar("K")

ITEMS_WANTED: Final = 1_000
"""About how many asks and allocations a piece has: to copy so many takes some milliseconds."""
ROWS_MAX: Final = 250
"""How many nodes or applications a piece has at most."""
_ROWS_FIRST: Final = 16


def paged(
    keys: Sequence[K], ask: Callable[[Sequence[K]], Sequence[T]], size: Callable[[T], int]
) -> Iterator[Sequence[T]]:
    """Yield the rows of all keys in pieces; each is asked for when it is needed.

    Args:
        keys: What to ask for.
        ask: Returns the rows of some keys; fewer, if some are gone.
        size: Returns how many items a row has, 1 at least.
    """
    start, step = 0, _ROWS_FIRST
    while start < len(keys):
        rows = ask(keys[start : start + step])
        start += step
        fitting = ITEMS_WANTED * len(rows) // max(sum(map(size, rows)), 1)
        step = max(1, min(fitting, 4 * step, ROWS_MAX)) if rows else step
        yield rows


def size_of_node(node: ShownNode) -> int:
    """Return how many items the row of a node has; an allocation counts four times.

    Each may be of another application, which is asked whether the allocation is a victim.
    """
    return 1 + 4 * len(node.facts.allocations) + len(node.facts.foreign)


def size_of_application(application: ShownApplication) -> int:
    """Return how many items the row of an application has."""
    return 1 + len(application.asks) + len(application.allocations)


def size_of_usage(usage: UsageView) -> int:
    """Return how many items the row of a user or group has: each queue counts four times."""
    return 4 * len(usage.queues)
