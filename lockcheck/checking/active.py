"""The watch of the active session, for all checks; where nothing is checked, nothing else is loaded."""

from __future__ import annotations

from ..holding.runtime import runtime
from .watch import Watch


def current() -> Watch | None:
    """Return the watch of the active session, or `None` if no session is open or a fault switched it off."""
    watch: Watch | None = runtime.watch  # type: ignore[assignment] # a session puts it there
    return watch if watch is not None and not watch.off else None
