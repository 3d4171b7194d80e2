"""The table of the events, the newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..events.words import CHANGE_WORDS, DETAIL_WORDS, TYPE_WORDS
from .quantities import time_text
from .tables import Cell, Column, ViewRow, ViewTable, name_cell

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .documents import ReadEvent

__all__ = ["event_table"]

_COLUMNS: Final = (
    Column("id", "id", 8, is_number=True),
    Column("time", "time", 8),
    Column("type", "about", 11),
    Column("object", "object"),
    Column("change", "change", 7),
    Column("reference", "reference", least_screen=100),
    Column("message", "what"),
)


def event_table(events: Iterable[tuple[int, ReadEvent]]) -> ViewTable:
    """Return a row for each event with its id, the highest id first."""
    return ViewTable(_COLUMNS, tuple(_row(*each) for each in sorted(events, key=lambda each: -each[0])))


def _row(event_id: int, event: ReadEvent) -> ViewRow:
    detail = DETAIL_WORDS.get(event.event_change_detail, "")
    if event.event_change_detail and not detail:
        detail = str(event.event_change_detail)
    what = ": ".join(part for part in (detail, event.message) if part)
    return ViewRow(
        str(event_id),
        (
            Cell(event_id, str(event_id)),
            Cell(event.timestamp_nano, time_text(event.timestamp_nano)),
            name_cell(TYPE_WORDS.get(event.type, str(event.type))),
            name_cell(event.object_id),
            name_cell(CHANGE_WORDS.get(event.event_change_type, "")),
            name_cell(event.reference_id),
            name_cell(what),
        ),
    )
