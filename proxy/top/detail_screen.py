"""The screen with all that is known about one row."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Footer, Static

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import ClassVar

    from textual.app import ComposeResult

__all__ = ["DetailScreen"]


@final
class DetailScreen(Screen[None]):
    """Lines about one row, as they were when it was opened; more may follow.

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
