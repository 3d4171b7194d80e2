"""The application in the terminal and its screen: it reads the server again and again."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import ClassVar, Final, final

from rich.style import Style
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.events import Key
from textual.screen import Screen
from textual.timer import Timer
from textual.widgets import DataTable, Footer, Input, Static

from ....model.configuration.durations import short_duration_text
from ...base.terminal.standard_output import counted
from .client import RestClient, ServerReadError
from .details import detail_lines, explanation_lines, heading_lines, pace_text
from .reading import ServerReader, ServerReading, partition_name
from .tables import LEGEND, Cell, Column, ViewTable, bar_text, column_widths, printable, time_text
from .tables_of_views import ScreenState, SortOrder
from .views import View

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
    """Return the text of a cell; one that is too long ends in an ellipsis."""
    if cell.bar is not None:
        return bar_text(cell.bar, width)
    text = Text(cell.text, style=cell.style, no_wrap=True)
    text.truncate(width, overflow="ellipsis")
    if column.is_number:
        text.pad_left(width - text.cell_len)
    return text


@final
class DetailScreen(Screen[None]):
    """Lines about one row at the time when it was opened; more may follow.

    Args:
        lines: The lines.
        more: Reads lines to add, such as the reasons why an application waits.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss_detail", "Back"),
        Binding("backspace,enter", "dismiss_detail", "Back", show=False),
    ]

    def __init__(self, lines: list[str], more: Callable[[], Awaitable[list[str]]] | None = None) -> None:
        super().__init__()
        self._lines = lines
        self._more = more

    def compose(self) -> ComposeResult:
        """Make what the screen consists of."""
        with VerticalScroll():
            yield Static(self._text(), id="detail")
        yield Footer()

    def on_mount(self) -> None:
        """Ask for more."""
        self.query_one(VerticalScroll).focus()
        if self._more is not None:
            self.run_worker(self._add(self._more), exclusive=True)

    def action_dismiss_detail(self) -> None:
        """Return to the table."""
        self.dismiss()

    async def _add(self, more: Callable[[], Awaitable[list[str]]]) -> None:
        self._lines = [*self._lines, *await more()]
        self.query_one("#detail", Static).update(self._text())

    def _text(self) -> Text:
        return Text("\n").join(
            Text(line, style="bold" if number == 0 or line == "why it waits" else "")
            for number, line in enumerate(self._lines)
        )


@final
class MainScreen(Screen[None]):
    """Shows a view of the server; a server that is lost is tried again.

    Args:
        client: Asks the server.
        state: The view and its settings at the start.
        interval_seconds: How long it waits between two readings.
        now_ns: The clock, in nanoseconds since 1970.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            Binding(str(number), f"show_view('{view.value}')", view.value, show=False)
            for number, view in enumerate(View, 1)
        ),
        Binding("slash", "filter", "Filter", key_display="/"),
        Binding("s", "sort('next')", "Sort"),
        Binding("o", "sort('reverse')", "Reverse"),
        Binding("r", "resource", "Type"),
        Binding("p", "partition", "Partition"),
        Binding("space", "fold", "Fold", key_display="␣"),
        Binding("u", "update", "Update"),
        Binding("escape", "clear_filter", "Clear", show=False),
    ]

    def __init__(
        self, client: RestClient, state: ScreenState, interval_seconds: float, now_ns: Callable[[], int]
    ) -> None:
        super().__init__()
        self._address = client.address
        self._reader = ServerReader(client)
        self._state = state
        self._interval_seconds = interval_seconds
        self._now_ns = now_ns
        self._timer: Timer | None = None
        self._readings = ReadingLog()
        self._is_filtering = False

    def compose(self) -> ComposeResult:
        """Make what the screen consists of."""
        yield Static(id="heading")
        yield Static(id="views")
        yield TableWidget()
        yield Static(id="note")
        yield Input(placeholder="show the rows with this text; Enter keeps it, Escape drops it")
        yield Footer()

    def on_mount(self) -> None:
        """Begin to read."""
        self.query_one(TableWidget).focus()
        self._show()
        self.action_update()

    def on_resize(self) -> None:
        """Fill the screen again."""
        self._show()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show the rows with the text so far."""
        self._state.filters[self._state.view] = event.value
        self._show()

    def on_input_submitted(self) -> None:
        """Keep the filter, and go back to the table."""
        self._end_filter()

    def on_data_table_row_selected(self) -> None:
        """Show all about the row under the cursor."""
        reading, key = self._readings.of(self._state.view), self.query_one(TableWidget).key
        if reading is None or key is None:
            return
        now_ns = self._now_ns()
        table = self._state.table(reading, now_ns)
        lines = detail_lines(self._state.view, reading, table, key, now_ns)
        if self._state.view is not View.APPLICATIONS:
            self.app.push_screen(DetailScreen(lines))
            return

        async def reasons() -> list[str]:
            try:
                explanation = await self._reader.explain(reading, key)
            except ServerReadError as error:
                return ["", printable(f"why it waits is not known: {error}")]
            return [] if explanation is None else explanation_lines(explanation)

        self.app.push_screen(DetailScreen(lines, reasons))

    def action_show_view(self, name: str) -> None:
        """Show another view."""
        self._end_filter()
        self._state.view = View(name)
        self._show()
        self.action_update()

    def filter_takes(self, character: str | None) -> bool:
        """Write a character into the filter; return whether that is open, and there is one."""
        if character is None or not self._is_filtering:
            return False
        self.query_one(Input).insert_text_at_cursor(character)
        return True

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether a key does something: queues are folded, and one partition has no next."""
        del parameters
        if action == "fold":
            return self._state.view is View.QUEUES
        if action == "partition":
            return self._readings.last is not None and len(self._readings.last.partitions) > 1
        return True

    def action_filter(self) -> None:
        """Let the user write a text that rows must have."""
        self._is_filtering = True
        field = self.query_one(Input)
        field.value = self._state.filter
        field.add_class("shown")
        field.focus()

    def action_clear_filter(self) -> None:
        """Show all rows again."""
        self._state.filters.pop(self._state.view, None)
        self._end_filter()
        self._show()

    def action_sort(self, how: str) -> None:
        """Sort by the next column (`next`), or turn the order round."""
        reading = self._readings.of(self._state.view)
        if reading is not None:
            table = self._state.table(reading, self._now_ns())
            (self._state.next_order if how == "next" else self._state.reverse_order)(table)
            self._show()

    def action_resource(self) -> None:
        """Show the quantities of the next type of resource."""
        if self._readings.last is not None:
            self._state.next_type(self._readings.last)
            self._show()

    def action_partition(self) -> None:
        """Show the next partition."""
        last = self._readings.last
        if last is None or not last.partitions or last.partition is None:
            return
        names = [partition_name(partition, last.partitions) for partition in last.partitions]
        at = names.index(partition_name(last.partition, last.partitions))
        self._state.partition = names[(at + 1) % len(names)]
        self.action_update()

    def action_fold(self) -> None:
        """Hide what is below the queue under the cursor, or show it again."""
        key = self.query_one(TableWidget).key
        if self._state.view is View.QUEUES and key is not None:
            self._state.fold(key)
            self._show()

    def action_update(self) -> None:
        """Read the server now; a reading that is under way is given up."""
        self.run_worker(self._read(), exclusive=True, group="reading")

    async def _read(self) -> None:
        """Read the server and show that; it is done again when the interval has passed."""
        if self._timer is not None:
            self._timer.stop()
        view = self._state.view
        try:
            reading = await self._reader.read(view, self._state.partition)
        except ServerReadError as error:
            self._readings.lose(str(error), self._now_ns())
        else:
            self._readings.take(view, reading, self._now_ns())
        self._show()
        self._timer = self.set_timer(self._interval_seconds, self.action_update)

    def _show(self) -> None:
        """Show what was read last."""
        state, now_ns = self._state, self._now_ns()
        reading, last = self._readings.of(state.view), self._readings.last
        table = ViewTable((), note="reading ...") if reading is None else state.table(reading, now_ns)
        trouble = self._readings.trouble(now_ns, self._interval_seconds)
        heading = Text(self._address)
        if last is not None:
            resource = state.type_of(last)
            heading = Text("\n".join(heading_lines(last, resource, self._address, self._readings.pace)))
        if trouble:
            heading.append("\n").append(printable(trouble), "bold red")
        self.refresh_bindings()
        self.query_one("#heading", Static).update(heading)
        self.query_one("#views", Static).update(views_line(state.view))
        self.query_one("#note", Static).update(note_line(table, state, reading))
        self.query_one(TableWidget).show(table, state.orders.get(state.view), self.size.width)

    def _end_filter(self) -> None:
        self._is_filtering = False
        field = self.query_one(Input)
        field.remove_class("shown")
        self.query_one(TableWidget).focus()


_WITH_BARS: Final = frozenset({View.QUEUES})


def views_line(shown: View) -> Text:
    """Return the views with their keys; each can be clicked."""
    line = Text(no_wrap=True)
    for number, view in enumerate(View, 1):
        click = Style(
            reverse=view is shown, bold=view is shown, meta={"@click": f"screen.show_view('{view.value}')"}
        )
        line.append(" " if number > 1 else "").append(f"{number} {view.value}", click)
    return line


def note_line(table: ViewTable, state: ScreenState, reading: ServerReading | None) -> str:
    """Return what is to be known about a table: why it is empty, what is left out, how bars are read."""
    parts = []
    if table.note:
        parts.append(printable(table.note))
    if state.filter and reading is not None:
        parts.append(f"filter {printable(state.filter)!r}: {counted(len(table.rows), 'row')}")
    if len(table.rows) > ROWS_MAX:
        parts.append(f"the first {ROWS_MAX:,} of {len(table.rows):,} rows are shown: filter with /")
    if state.view in _WITH_BARS and table.rows:
        parts.append(LEGEND)
    return "\n".join(parts)


_SECOND_NS: Final = 10**9


@final
@dataclass(slots=True)
class ReadingLog:
    """The last reading, which stays when the server is lost, and the error then."""

    last: ServerReading | None = None
    pace: str = ""
    error: str = ""
    """Why the server could not be read the last time, empty if it could."""
    _view: View | None = None
    _read_at_ns: int = 0
    _lost_at_ns: int = 0

    def take(self, view: View, reading: ServerReading, now_ns: int) -> None:
        """Take what was read for a view."""
        self.pace = pace_text(self.last, reading, (now_ns - self._read_at_ns) / _SECOND_NS)
        self.last, self._view, self._read_at_ns, self.error = reading, view, now_ns, ""

    def lose(self, error: str, now_ns: int) -> None:
        """Take that the server could not be read."""
        if not self.error:
            self._lost_at_ns = now_ns
        self.error, self.pace = error, ""

    def of(self, view: View) -> ServerReading | None:
        """Return the reading if it was one for this view."""
        return self.last if self._view is view else None

    def trouble(self, now_ns: int, interval_seconds: float) -> str:
        """Return that the server is lost, since when, and what is shown instead; empty if it is not."""
        if not self.error:
            return ""
        since = short_duration_text(now_ns - self._lost_at_ns)
        shown = f"; shown is what it was at {time_text(self._read_at_ns)}" if self.last else ""
        return f"LOST for {since}, tried each {interval_seconds:g} s: {self.error}{shown}"


@final
class TopApp(App[None]):
    """Shows one server.

    Args:
        client: Asks the server; it is closed at the end.
        state: The view and its settings at the start.
        interval_seconds: How long it waits between two readings.
        now_ns: The clock, in nanoseconds since 1970.
    """

    ENABLE_COMMAND_PALETTE = False
    # The colours are those of the terminal, so that they can be read on any background.
    CSS = """
    Screen, Static, Input, DataTable, VerticalScroll { background: ansi_default; color: ansi_default; }
    #heading { height: auto; max-height: 7; }
    #views { height: 1; }
    #note { height: auto; max-height: 4; }
    TableWidget { height: 1fr; scrollbar-size-vertical: 1; overflow-x: hidden; }
    TableWidget > .datatable--header { background: ansi_default; color: ansi_default; }
    TableWidget > .datatable--cursor { background: ansi_default; color: ansi_default; text-style: reverse; }
    TableWidget > .datatable--header-hover, TableWidget > .datatable--hover { background: ansi_default; }
    Input { height: 1; border: none; padding: 0; display: none; }
    Input:focus { border: none; }
    Input.shown { display: block; }
    Footer { background: ansi_default; color: ansi_default; }
    FooterKey .footer-key--key { background: ansi_default; color: ansi_default; text-style: bold reverse; }
    FooterKey .footer-key--description { background: ansi_default; color: ansi_default; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("q", "quit", "Quit")]

    def __init__(
        self,
        client: RestClient,
        state: ScreenState | None = None,
        *,
        interval_seconds: float = 2.0,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        super().__init__(ansi_color=True)
        self._client = client
        self._main = MainScreen(client, state or ScreenState(), interval_seconds, now_ns)

    def get_default_screen(self) -> MainScreen:
        """Return the screen with the views."""
        return self._main

    def on_key(self, event: Key) -> None:
        """Give the filter what was typed while it was being opened, such as `/queue` in one go.

        Such a key went to the table, and would be taken for a command.
        """
        if self._main.filter_takes(event.character if event.is_printable else None):
            event.prevent_default()

    async def on_unmount(self) -> None:
        """Close the connections."""
        await self._client.close()
