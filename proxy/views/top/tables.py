"""The table of a view: columns and rows of values, sorted, filtered, and as text.

A table is made of documents by pure functions, and shown by the application, printed as text, or as JSON.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias, final

from .quantities import short_quantity

Value: TypeAlias = str | int | None

_REPLACEMENT: Final = "\ufffd"
_NARROWEST: Final = 6
"""How many characters a column has at least that shares what the others leave."""


@final
@dataclass(frozen=True, slots=True)
class Bar:
    """Quantities of one type against each other, to be drawn.

    Without a maximum the bar ends at the largest of the others.
    """

    used: int
    pending: int = 0
    guaranteed: int | None = None
    maximum: int | None = None


@final
@dataclass(frozen=True, slots=True)
class Cell:
    """What stands in one place: the value for sorting and for JSON, and the text for people."""

    value: Value
    text: str
    bar: Bar | None = None
    style: str = ""
    """A style of rich; it repeats what the text says, for those who see colours."""


@final
@dataclass(frozen=True, slots=True)
class Column:
    """A column: its key in JSON, its heading, and how wide it is."""

    key: str
    heading: str
    width: int = 0
    """In characters; 0 for a share of what the others leave."""
    least_screen: int = 0
    """On a screen with fewer columns it is left out."""
    is_number: bool = False
    is_bar: bool = False


@final
@dataclass(frozen=True, slots=True)
class ViewRow:
    """One row; the key says which, as long as the view exists."""

    key: str
    cells: tuple[Cell, ...]


@final
@dataclass(frozen=True, slots=True)
class ViewTable:
    """A table; each row has a cell for each column."""

    columns: tuple[Column, ...]
    rows: tuple[ViewRow, ...] = field(default=())
    note: str = ""
    """What is to be said instead of rows."""

    def filtered(self, text: str) -> ViewTable:
        """Return the rows in which a text occurs, in capitals or not."""
        if not text:
            return self
        wanted = text.casefold()
        kept = (row for row in self.rows if any(wanted in cell.text.casefold() for cell in row.cells))
        return replace(self, rows=tuple(kept))

    def ordered(self, key: str, *, descending: bool) -> ViewTable:
        """Return the rows ordered by a column; equal ones stay in their order, and empty values are last.

        A column that the table does not have leaves the order as it is.
        """
        at = next((index for index, column in enumerate(self.columns) if column.key == key), None)
        if at is None:
            return self
        given = [row for row in self.rows if row.cells[at].value is not None]
        empty = [row for row in self.rows if row.cells[at].value is None]
        given.sort(key=lambda row: _sort_key(row.cells[at].value), reverse=descending)
        return replace(self, rows=(*given, *empty))


def _sort_key(value: Value) -> tuple[int, str]:
    """Return what values of one column are ordered by: numbers by size, texts by their letters."""
    return (value, "") if isinstance(value, int) else (0, value or "")


def name_cell(value: str, shown: str | None = None) -> Cell:
    """Return the cell of a name or text of a server; the text may differ from the value."""
    return Cell(value, printable(value if shown is None else shown))


def quantity_cell(resource: str, quantity: int | None, style: str = "") -> Cell:
    """Return the cell of a quantity of a type of resource."""
    return Cell(quantity, short_quantity(resource, quantity), style=style)


def printable(text: str) -> str:
    """Return a text of a server without characters that would change the terminal."""
    return text if text.isprintable() else "".join(c if c.isprintable() else _REPLACEMENT for c in text)


def column_widths(columns: Sequence[Column], screen: int) -> list[int]:
    """Return how wide each column is, 0 for those left out; a blank follows each.

    Columns without a width of their own share what the others leave, the first of them most.
    """
    shown = [column for column in columns if column.least_screen <= screen]
    shared = [column for column in shown if not column.width]
    rest = max(0, screen - len(shown) - sum(column.width for column in shown))
    each, more = divmod(rest, len(shared)) if shared else (0, 0)
    given = {
        column.key: max(_NARROWEST, each + (more if place == 0 else 0)) for place, column in enumerate(shared)
    }
    return [0 if column not in shown else column.width or given[column.key] for column in columns]
