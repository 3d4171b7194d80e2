"""The level of checking in force: that of the active session, else that of the environment."""

from __future__ import annotations

from ..checking.watch import current
from ..findings.terms import Environment, Level, level_of
from ..holding.runtime import runtime


def level_in_force() -> Level:
    """Return the level for locks that are made now."""
    watch = current()
    return watch.policy.level if watch is not None else Environment.read().level


def level_for(check: Level | str | None) -> Level:
    """Return the level of a new lock, and open a session if it is checked and no session is active.

    Args:
        check: the argument of the constructor; `None` leaves it to the session and the environment.
    """
    level = level_in_force() if check is None else level_of(check)
    if level is not Level.OFF and runtime.watch is None:
        from dataclasses import replace  # noqa: PLC0415 - nothing of this is loaded where nothing is checked

        from .ambient import open_ambient_session  # noqa: PLC0415

        environment = Environment.read()
        open_ambient_session(replace(environment, level=max(level, environment.level)))
    return level
