"""The tables of users and of groups: what each uses in each queue, against its limits there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .tables import Bar, Cell, Column, ViewRow, ViewTable, name_cell, quantity_cell

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .documents import UsageDocument, UsageOwner

__all__ = ["usage_table"]


def usage_table(owners: Iterable[UsageOwner], resource: str, heading: str) -> ViewTable:
    """Return a row for each user or group and queue; the quantities are of one type of resource.

    A queue in which neither something runs nor a limit is set has no row, but each user or group has one.

    Args:
        owners: Users or groups.
        resource: The type of resource.
        heading: The heading of their names.
    """
    columns = (
        Column("name", heading, 16),
        Column("queue", "queue"),
        Column("bar", "use of limit", is_bar=True),
        Column("used", "used", 7, is_number=True),
        Column("maximum", "limit", 7, is_number=True),
        Column("applications", "apps", 7, is_number=True),
    )
    named = sorted((owner.user_name or owner.group_name, owner.queues) for owner in owners if owner.queues)
    return ViewTable(columns, tuple(row for name, usage in named for row in _rows(name, usage, resource, 0)))


def _rows(name: str, usage: UsageDocument, resource: str, depth: int) -> Iterator[ViewRow]:
    used = usage.resource_usage.get(resource, 0)
    maximum = usage.max_resources.get(resource)
    running = len(usage.running_applications)
    full = maximum is not None and used >= maximum
    apps_full = 0 < usage.max_applications <= running
    if depth == 0 or running or used or usage.max_resources or usage.max_applications:
        apps = f"{running}/{usage.max_applications}" if usage.max_applications else str(running)
        yield ViewRow(
            f"{name}\n{usage.queue_path}",
            (
                name_cell(name),
                name_cell(usage.queue_path, f"{'  ' * depth}{usage.queue_path.rpartition('.')[2]}"),
                # Without a limit there is nothing that a bar could be read against.
                Cell(None, "", Bar(used, maximum=maximum) if maximum is not None else None),
                quantity_cell(resource, used, style=_FULL if full else ""),
                quantity_cell(resource, maximum),
                Cell(running, apps, style=_FULL if apps_full else ""),
            ),
        )
    for child in sorted(usage.children, key=lambda child: child.queue_path):
        yield from _rows(name, child, resource, depth + 1)


_FULL: Final = "bold red"
