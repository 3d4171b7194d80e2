"""What was read last, when, and since when the server is lost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from ...model.configuration.durations import short_duration_text
from .heading import pace_text
from .quantities import time_text

if TYPE_CHECKING:
    from .reading import ServerReading
    from .views import View

__all__ = ["ReadingLog"]

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
