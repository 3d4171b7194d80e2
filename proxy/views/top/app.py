"""The application in the terminal: one server, shown until the user ends it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import ClassVar, final

from textual.app import App
from textual.binding import Binding, BindingType
from textual.events import Key

from .client import RestClient
from .main_screen import MainScreen
from .screen_state import ScreenState


@final
class TopApp(App[None]):
    """Shows one server.

    Args:
        client: Asks the server; it is closed at the end.
        state: What is shown at first.
        interval_seconds: How long it waits between two readings.
        now_ns: The clock, in nanoseconds since 1970.
    """

    ENABLE_COMMAND_PALETTE = False
    # The colours are those of the terminal, so that they can be read on any background.
    CSS = """
    Screen, Static, Input, DataTable, VerticalScroll { background: ansi_default; color: ansi_default; }
    #heading { height: auto; max-height: 6; }
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
