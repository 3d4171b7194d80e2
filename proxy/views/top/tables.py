"""The table of a view: columns and rows of values, sorted, filtered, and as text.

A table is made of documents by pure functions, and shown by the application, printed as text, or as JSON.

Each part has its own character, so that a bar can be read without colours: `█` used, `▒` pending, `·`
free up to the maximum, `┃` where the guarantee ends. Pending that the maximum has no room for ends in `▶`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final, TypeAlias, final

from rich.text import Text

Value: TypeAlias = str | int | None
_REPLACEMENT: Final = "\ufffd"
_NARROWEST: Final = 6
"""How many characters a column has at least that shares what the others leave."""
_UNITS: Final = ("k", "M", "G", "T", "P", "E")
_BINARY_UNITS: Final = ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_BYTES: Final = ("memory", "ephemeral-storage", "storage")
_SECOND_NS: Final = 10**9
_TIME_NS_MAX: Final = 253_402_300_799 * _SECOND_NS
"""The end of the year 9999, the last that the calendar of Python has."""
LEGEND: Final = "█ used  ▒ pending  · free  ┃ guaranteed  ▶ pending beyond the maximum"
_STYLES: Final = {"█": "green", "!": "red", "▒": "blue", "·": "dim", "┃": "bold magenta", "▶": "bold blue"}
"""Colours of the sixteen that a terminal adapts to its background; yellow is hard to read on white."""


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
    """One cell: the value for sorting and for JSON, and the text for people."""

    value: Value
    text: str
    bar: Bar | None = None
    style: str = ""
    """A style of rich; it repeats the meaning of the text in colours."""


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
    """One row; the key identifies it as long as the view exists."""

    key: str
    cells: tuple[Cell, ...]


@final
@dataclass(frozen=True, slots=True)
class ViewTable:
    """A table; each row has a cell for each column."""

    columns: tuple[Column, ...]
    rows: tuple[ViewRow, ...] = field(default=())
    note: str = ""
    """The text to show instead of rows."""

    def filtered(self, text: str) -> ViewTable:
        """Return the rows in which a text occurs, in capitals or not."""
        if not text:
            return self
        wanted = text.casefold()
        kept = (row for row in self.rows if any(wanted in cell.text.casefold() for cell in row.cells))
        return replace(self, rows=tuple(kept))

    def ordered(self, key: str, *, descending: bool) -> ViewTable:
        """Return the rows ordered by a column; equal ones stay in their order, and empty values are last.

        A column that the table does not have leaves the order unchanged.
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

    Columns without a fixed width share the rest, the first of them most.
    """
    shown = [column for column in columns if column.least_screen <= screen]
    shared = [column for column in shown if not column.width]
    rest = max(0, screen - len(shown) - sum(column.width for column in shown))
    each, more = divmod(rest, len(shared)) if shared else (0, 0)
    given = {
        column.key: max(_NARROWEST, each + (more if place == 0 else 0)) for place, column in enumerate(shared)
    }
    return [0 if column not in shown else column.width or given[column.key] for column in columns]


def short_quantity(name: str, quantity: int | None) -> str:
    """Return a quantity in seven characters at most: `7.75` cores, `14.5Gi`, `2.5M`; a dash if there is none.

    Bytes have the units of configurations and explanations, powers of 1,024; all else has powers of ten.
    """
    if quantity is None:
        return "-"
    in_bytes = name in _BYTES or name.startswith("hugepages")
    step, units = (1_024, _BINARY_UNITS) if in_bytes else (1_000, _UNITS)
    size = abs(quantity) / (1_000 if name == "vcore" else 1)
    unit = -1
    while size >= step - 0.0005 and unit < len(units) - 1:
        size, unit = size / step, unit + 1
    digits = f"{size:.3f}" if unit < 0 else f"{size:.3g}" if size < 999.5 else f"{size:.0f}"
    text = digits.rstrip("0").rstrip(".") if "." in digits else digits
    return f"{'-' if quantity < 0 else ''}{text}{units[unit] if unit >= 0 else ''}"


def short_resource(quantities: dict[str, int]) -> str:
    """Return all quantities by name: `memory 14.5Gi, vcore 7.75`; a dash if there are none."""
    parts = (f"{name} {short_quantity(name, value)}" for name, value in sorted(quantities.items()))
    return ", ".join(parts) or "-"


def percent(part: int, whole: int) -> int | None:
    """Return a part in percent, rounded down; `None` without a whole."""
    return part * 100 // whole if whole > 0 else None


def time_text(time_ns: int) -> str:
    """Return a time of day where the program runs: `13:05:59`; a dash if there is none."""
    if not 0 < time_ns <= _TIME_NS_MAX:
        return "-"
    return datetime.fromtimestamp(time_ns // _SECOND_NS, tz=UTC).astimezone().strftime("%H:%M:%S")


def bar_text(bar: Bar, width: int) -> Text:
    """Draw a bar.

    Usage beyond the maximum is drawn as `!`. Something used or pending takes a character at least.
    """
    end = bar.maximum if bar.maximum is not None else max(bar.used + bar.pending, bar.guaranteed or 0)
    if width <= 0:
        return Text()
    if end <= 0:
        return Text(("!" if bar.used > 0 else "▶" if bar.pending > 0 else "·") * width, style=_STYLES["·"])
    used = _characters(bar.used, end, width)
    pending = min(_characters(bar.pending, end, width), width - used)
    characters = ["█"] * used + ["▒"] * pending + ["·"] * (width - used - pending)
    if bar.used > end:
        characters[-1] = "!"
    elif bar.pending and bar.used + bar.pending > end:
        characters[-1] = "▶"
    if bar.guaranteed:
        characters[min(width - 1, max(0, bar.guaranteed * width // end - 1))] = "┃"
    text = Text()
    for character in characters:
        text.append(character, _STYLES[character])
    return text


def _characters(quantity: int, end: int, width: int) -> int:
    """Return how many characters a quantity takes."""
    if quantity <= 0:
        return 0
    return min(width, max(1, round(quantity * width / end)))
