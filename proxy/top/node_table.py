"""The table of the nodes: what each has, what is used of it, and whether it takes work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .quantities import percent
from .tables import Bar, Cell, Column, ViewRow, ViewTable, name_cell, quantity_cell

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .documents import NodeDocument

__all__ = ["node_table"]

_COLUMNS: Final = (
    Column("node", "node"),
    Column("bar", "use", is_bar=True),
    Column("percent", "use %", 6, is_number=True),
    Column("used", "used", 7, is_number=True),
    Column("capacity", "capac.", 7, is_number=True),
    Column("available", "free", 7, is_number=True),
    Column("allocations", "allocs", 6, is_number=True),
    Column("state", "state", 8),
)


def node_table(nodes: Iterable[NodeDocument], resource: str) -> ViewTable:
    """Return a row for each node, by name; the quantities are of one type of resource."""
    return ViewTable(
        _COLUMNS, tuple(_row(node, resource) for node in sorted(nodes, key=lambda node: node.node_id))
    )


def _row(node: NodeDocument, resource: str) -> ViewRow:
    used = node.allocated.get(resource, 0) + node.occupied.get(resource, 0)
    capacity = node.capacity.get(resource, 0)
    share = percent(used, capacity)
    state = "reserved" if node.is_reserved else "ready"
    return ViewRow(
        node.node_id,
        (
            name_cell(node.node_id),
            Cell(None, "", Bar(used, maximum=capacity)),
            Cell(share, "-" if share is None else str(share)),
            quantity_cell(resource, used),
            quantity_cell(resource, capacity),
            quantity_cell(resource, node.available.get(resource, 0)),
            Cell(len(node.allocations), str(len(node.allocations))),
            name_cell(state) if node.schedulable else Cell("drained", "drained", style="red"),
        ),
    )
