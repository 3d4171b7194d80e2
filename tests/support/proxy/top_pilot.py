"""`licorne top` in a terminal of a test: keys go in, the text of the screen comes out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, final

from support.proxy.document_server import NOW_NS
from textual.pilot import Pilot
from textual.widgets import Footer
from textual.widgets._footer import FooterKey

from licorne.proxy.views.top.client import RestClient
from licorne.proxy.views.top.main_screen import TopApp
from licorne.proxy.views.top.tables_of_views import ScreenState

_NEVER_SECONDS = 1_000_000.0


@final
class Terminal:
    """A terminal with the application.

    Attributes:
        pilot: Presses its keys.
        now_ns: The time of its clock.
    """

    def __init__(self, pilot: Pilot[None], app: TopApp, clock: list[int]) -> None:
        self.pilot = pilot
        self._app = app
        self._clock = clock

    def lines(self) -> list[str]:
        """Return the lines of the screen, without blanks at their ends."""
        strips: Any = self._app.screen._compositor.render_strips()
        return ["".join(segment.text for segment in strip).rstrip() for strip in strips]

    def text(self) -> str:
        """Return the screen, without empty lines."""
        return "\n".join(line for line in self.lines() if line)

    async def press(self, *keys: str) -> str:
        """Press keys, wait until all that was asked for has come, and return the screen."""
        for key in keys:
            await self.pilot.press(key)
            await self.settle()
        return self.text()

    async def settle(self) -> None:
        """Wait until all that was asked for has come, and is shown.

        A pause ends when the process is idle, which it also seems to be where others have the processor. The
        footer is drawn last, in steps of its own: so what it shows is compared.
        """
        await self._app.workers.wait_for_complete()
        await self.pilot.pause()
        while not self._shows_its_keys():
            await self.pilot.pause()

    def _shows_its_keys(self) -> bool:
        """Return whether the footer, where there is one, has the keys that may be pressed now."""
        screen = self._app.screen
        keys = [active.binding.key for active in screen.active_bindings.values() if active.binding.show]
        return all(
            [shown.key for shown in footer.query(FooterKey)] == keys for footer in screen.query(Footer)
        )

    def pass_seconds(self, seconds: int) -> None:
        """Let the clock of the application go on."""
        self._clock[0] += seconds * 10**9


@asynccontextmanager
async def in_terminal(
    address: str,
    *,
    state: ScreenState | None = None,
    size: tuple[int, int] = (80, 24),
    interval_seconds: float = _NEVER_SECONDS,
    token: str | None = None,
) -> AsyncIterator[Terminal]:
    """Run the application against a server; it reads by itself after the interval alone."""
    clock = [NOW_NS]
    client = RestClient(address, token=token)
    app = TopApp(client, state, interval_seconds=interval_seconds, now_ns=lambda: clock[0])
    async with app.run_test(size=size) as pilot:
        terminal = Terminal(pilot, app, clock)
        await terminal.settle()
        yield terminal
