"""The table of a view, made of a reading."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

from .application_table import application_table
from .event_table import event_table
from .health_tables import health_table, utilization_table
from .node_table import node_table
from .queue_table import queue_table
from .tables import ViewTable
from .usage_table import usage_table
from .views import View

if TYPE_CHECKING:
    from collections.abc import Collection

    from .reading import ServerReading

__all__ = ["table_of"]


def table_of(
    view: View, reading: ServerReading, resource: str, now_ns: int, folded: Collection[str] = ()
) -> ViewTable:
    """Return the table of a view.

    Args:
        view: The view; the reading is one for it.
        reading: What the server answered.
        resource: The type of resource that quantities are of.
        now_ns: The time that ages end at.
        folded: The paths of queues whose children are left out.
    """
    if reading.missing:
        return ViewTable((), note=reading.missing)
    table = _table(view, reading, resource, now_ns, folded)
    return table if table.rows else replace(table, note=f"no {view.value}")


def _table(
    view: View, reading: ServerReading, resource: str, now_ns: int, folded: Collection[str]
) -> ViewTable:
    match view:
        case View.QUEUES:
            return queue_table(reading.queues, resource, folded) if reading.queues else ViewTable(())
        case View.APPLICATIONS:
            return application_table(reading.applications, resource, now_ns)
        case View.NODES:
            return node_table(reading.nodes, resource)
        case View.USERS | View.GROUPS:
            return usage_table(reading.owners, resource, view.value.removesuffix("s"))
        case View.EVENTS:
            return event_table(reading.events)
        case View.HEALTH:
            return health_table(reading.health) if reading.health else ViewTable(())
        case View.UTILIZATION:
            return utilization_table(reading.utilization())
        case _:
            assert_never(view)
