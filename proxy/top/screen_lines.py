"""The line of the views, and the line below the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.style import Style
from rich.text import Text

from ..terminal.tables import counted
from .bars import LEGEND
from .table_widget import ROWS_MAX
from .tables import printable
from .views import View

if TYPE_CHECKING:
    from .reading import ServerReading
    from .screen_state import ScreenState
    from .tables import ViewTable

__all__ = ["note_line", "views_line"]

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
