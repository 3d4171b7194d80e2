"""The table of the queues: a tree, each queue with its bar and its quantities of one type of resource."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .tables import Bar, Cell, Column, ViewRow, ViewTable, name_cell, quantity_cell

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from .documents import ReadQueue

__all__ = ["queue_table"]

_COLUMNS: Final = (
    Column("queue", "queue"),
    Column("bar", "use", is_bar=True),
    Column("used", "used", 7, is_number=True),
    Column("guaranteed", "guarant", 7, is_number=True),
    Column("maximum", "maximum", 7, is_number=True),
    Column("pending", "pending", 7, is_number=True),
    Column("applications", "apps", 7, is_number=True),
    Column("status", "status", 8, least_screen=100),
    Column("policy", "policy", 8, least_screen=110),
)


def queue_table(root: ReadQueue, resource: str, folded: Collection[str] = ()) -> ViewTable:
    """Return the rows of a tree of queues, those below a queue after it.

    Args:
        root: The queue at the top.
        resource: Which type of resource the quantities are of.
        folded: The paths of queues whose children are left out.
    """
    return ViewTable(_COLUMNS, tuple(_rows(root, resource, folded, 0, None)))


def _rows(
    queue: ReadQueue, resource: str, folded: Collection[str], depth: int, above: int | None
) -> Iterator[ViewRow]:
    own = queue.max_resource.get(resource)
    # Without a maximum of its own a queue can use what the queue above it can.
    maximum = above if own is None else own if above is None else min(own, above)
    used = queue.allocated_resource.get(resource, 0)
    pending = queue.pending_resource.get(resource, 0)
    guaranteed = queue.guaranteed_resource.get(resource)
    is_folded = queue.queuename in folded and bool(queue.children)
    name = queue.queuename.rpartition(".")[2]
    mark = "+ " if is_folded else ""
    running = (
        f"{queue.running_apps}/{queue.max_running_apps}"
        if queue.max_running_apps
        else f"{queue.running_apps}"
    )
    yield ViewRow(
        queue.queuename,
        (
            name_cell(queue.queuename, f"{'  ' * depth}{mark}{name}"),
            Cell(None, "", Bar(used, pending, guaranteed, maximum)),
            quantity_cell(resource, used),
            quantity_cell(resource, guaranteed),
            quantity_cell(resource, own),
            quantity_cell(resource, pending),
            Cell(queue.running_apps, running),
            name_cell(queue.status),
            name_cell(queue.sorting_policy),
        ),
    )
    if not is_folded:
        for child in sorted(queue.children, key=lambda child: child.queuename):
            yield from _rows(child, resource, folded, depth + 1, maximum)
