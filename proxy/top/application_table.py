"""The table of the applications: state, queue, user, what they use and what they wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...model.configuration.durations import short_duration_text
from .tables import Cell, Column, ViewRow, ViewTable, name_cell, quantity_cell

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .documents import ReadApplication

__all__ = ["application_table", "foremost_message"]

_COLUMNS: Final = (
    Column("application", "application"),
    Column("state", "state", 10),
    Column("queue", "queue"),
    Column("user", "user", 9),
    Column("used", "used", 7, is_number=True),
    Column("pending", "pending", 7, is_number=True),
    Column("asks", "asks", 5, is_number=True),
    Column("age", "age", 7, is_number=True),
    Column("why", "why it waits", least_screen=110),
)


def application_table(applications: Iterable[ReadApplication], resource: str, now_ns: int) -> ViewTable:
    """Return a row for each application, the oldest first.

    Args:
        applications: The applications.
        resource: The type of resource that the quantities are of.
        now_ns: The time that ages end at.
    """
    oldest_first = sorted(applications, key=lambda each: (each.submission_time, each.application_id))
    return ViewTable(_COLUMNS, tuple(_row(each, resource, now_ns) for each in oldest_first))


def foremost_message(application: ReadApplication) -> str:
    """Return the message that its asks have most often; of equal ones the first in their order."""
    counts: dict[str, int] = {}
    for ask in application.requests:
        for entry in ask.allocation_log:
            counts[entry.message] = counts.get(entry.message, 0) + entry.count
    return min(counts, key=lambda message: (-counts[message], message), default="")


def _row(application: ReadApplication, resource: str, now_ns: int) -> ViewRow:
    submitted = application.submission_time
    age_ns = max(0, now_ns - submitted) if submitted > 0 else None
    waiting = len(application.requests)
    return ViewRow(
        application.application_id,
        (
            name_cell(application.application_id),
            name_cell(application.application_state),
            name_cell(application.queue_name),
            name_cell(application.user),
            quantity_cell(resource, application.used_resource.get(resource, 0)),
            quantity_cell(resource, application.pending_resource.get(resource, 0)),
            Cell(waiting, str(waiting)),
            Cell(age_ns, "-" if age_ns is None else short_duration_text(age_ns)),
            name_cell(foremost_message(application)),
        ),
    )
