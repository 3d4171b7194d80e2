"""The table of the events, the newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .quantities import time_text
from .tables import Cell, Column, ViewRow, ViewTable, name_cell

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .documents import ReadEvent

__all__ = ["event_table"]

_COLUMNS: Final = (
    Column("id", "id", 8, is_number=True),
    Column("time", "time", 8),
    Column("type", "about", 7),
    Column("object", "object"),
    Column("change", "change", 7),
    Column("reference", "reference", least_screen=100),
    Column("message", "what"),
)
_TYPES: Final = {1: "request", 2: "app", 3: "node", 4: "queue", 5: "user"}
_CHANGES: Final = {1: "set", 2: "add", 3: "remove"}
_DETAILS: Final = {
    100: "request cancelled",
    102: "request timed out",
    200: "allocation",
    201: "ask",
    202: "rejected",
    203: "new",
    204: "accepted",
    206: "running",
    207: "completing",
    208: "completed",
    209: "failing",
    210: "failed",
    211: "resuming",
    212: "expired",
    213: "queue full of applications",
    214: "may run in queue",
    215: "quota of applications used up",
    216: "may run within quota",
    300: "decommissioned",
    302: "schedulable",
    303: "allocation",
    304: "capacity",
    305: "occupied",
    306: "reservation",
    401: "dynamic queue",
    402: "type of queue",
    403: "maximum",
    404: "guarantee",
    405: "application",
    407: "preemption",
    500: "allocation cancelled",
    501: "allocation preempted",
    502: "allocation timed out",
    503: "placeholder replaced",
    504: "allocation lost with its node",
    600: "limit of user",
    601: "limit of group",
    602: "application linked",
    603: "use of user",
    604: "use of group",
}


def event_table(events: Iterable[tuple[int, ReadEvent]]) -> ViewTable:
    """Return a row for each event with its id, the highest id first."""
    return ViewTable(_COLUMNS, tuple(_row(*each) for each in sorted(events, key=lambda each: -each[0])))


def _row(event_id: int, event: ReadEvent) -> ViewRow:
    detail = _DETAILS.get(event.event_change_detail, "")
    if event.event_change_detail and not detail:
        detail = str(event.event_change_detail)
    what = ": ".join(part for part in (detail, event.message) if part)
    return ViewRow(
        str(event_id),
        (
            Cell(event_id, str(event_id)),
            Cell(event.timestamp_nano, time_text(event.timestamp_nano)),
            name_cell(_TYPES.get(event.type, str(event.type))),
            name_cell(event.object_id),
            name_cell(_CHANGES.get(event.event_change_type, "")),
            name_cell(event.reference_id),
            name_cell(what),
        ),
    )
