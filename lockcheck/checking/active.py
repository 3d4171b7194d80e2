"""The watch of the active session, for all checks; where nothing is checked, nothing else is loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..holding.runtime import runtime

if TYPE_CHECKING:
    from .watch import Watch

__all__ = ["current"]


def current() -> Watch | None:
    """Return the watch of the active session, or `None` if no session is open."""
    return runtime.watch  # type: ignore[return-value] # only a session puts something there: its watch
