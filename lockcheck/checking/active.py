"""The watch of the active session, for whoever checks; nothing else is loaded where nothing is checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..holding.runtime import runtime

if TYPE_CHECKING:
    from .watch import Watch

__all__ = ["current"]


def current() -> Watch | None:
    """Return the watch of the active session; none where no session is open."""
    return runtime.watch  # type: ignore[return-value] # only a session puts something there: its watch
