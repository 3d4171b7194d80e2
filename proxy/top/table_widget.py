"""The table on the screen."""

from __future__ import annotations

from typing import ClassVar, Final, final

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.widgets import DataTable

from .bars import bar_text
from .screen_state import SortOrder
from .tables import Cell, Column, ViewTable, column_widths

__all__ = ["ROWS_MAX", "TableWidget"]

ROWS_MAX: Final = 1_000
"""How many rows are on the screen; the filter finds the others."""


@final
class TableWidget(DataTable[Text]):
    """A table of rows, in columns that fill the screen; the row under the cursor stays the same one."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "select_cursor", "Detail")]

    def __init__(self) -> None:
        super().__init__(cursor_type="row", cell_padding=0, zebra_stripes=False)
        self._shape: tuple[object, ...] = ()

    @property
    def key(self) -> str | None:
        """The key of the row under the cursor, `None` without one."""
        if not self.row_count:
            return None
        return self.coordinate_to_cell_key(self.cursor_coordinate).row_key.value

    def show(self, table: ViewTable, order: SortOrder | None, width: int) -> None:
        """Show other rows."""
        key, row_before, scrolled = self.key, self.cursor_row, self.scroll_y
        widths = column_widths(table.columns, width)
        shape = (table.columns, tuple(widths), order)
        self.clear(columns=shape != self._shape)
        if shape != self._shape:
            for column, characters in zip(table.columns, widths, strict=True):
                if characters:
                    self.add_column(_heading(column, order, characters), key=column.key, width=characters + 1)
        self._shape = shape
        places = [(place, characters) for place, characters in enumerate(widths) if characters]
        shown = table.rows[:ROWS_MAX]
        for row in shown:
            cells = (_cell(row.cells[place], table.columns[place], width) for place, width in places)
            self.add_row(*cells, key=row.key)
        keys = [row.key for row in shown]
        self.move_cursor(row=keys.index(key) if key in keys else min(row_before, max(0, len(keys) - 1)))
        self.scroll_to(y=scrolled, animate=False)


def _heading(column: Column, order: SortOrder | None, width: int) -> Text:
    mark = "" if order is None or order.key != column.key else "▼" if order.descending else "▲"
    text = f"{column.heading[: width - len(mark)]}{mark}"
    return Text(text.rjust(width) if column.is_number else text)


def _cell(cell: Cell, column: Column, width: int) -> Text:
    """Return what stands in a cell; a text that is too long ends in a sign that says so."""
    if cell.bar is not None:
        return bar_text(cell.bar, width)
    text = Text(cell.text, style=cell.style, no_wrap=True)
    text.truncate(width, overflow="ellipsis")
    if column.is_number:
        text.pad_left(width - text.cell_len)
    return text
