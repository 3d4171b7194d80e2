"""Whether a new lock is adopted, by the code that makes it, and its name and level."""

from __future__ import annotations

from types import FrameType
from typing import Final

from ..environment.settings import level_for
from ..findings.levels import Level
from ..holding.runtime import local
from .naming import name_at
from .scope import Scope, is_of_library

_libraries: Final[dict[str, bool]] = {}
"""Whether each file belongs to the standard library."""


def adopted_for(scope: Scope | None, frame: FrameType | None) -> tuple[str, Level] | None:
    """Return the name and the level of a lock that a frame makes now; `None` if it is not adopted.

    Args:
        scope: whose locks are adopted, if any are.
        frame: where it is made; `None` if no program makes it.
    """
    execution = local.execution
    if scope is None or frame is None or execution.inside:
        return None
    file = frame.f_code.co_filename
    of_library = _libraries.get(file)
    if of_library is None:
        of_library = _libraries[file] = is_of_library(file)
    if not scope.has(str(frame.f_globals.get("__name__", "")), of_library=of_library):
        return None
    level = level_for(None)
    if level is Level.OFF:
        return None
    inside, execution.inside = execution.inside, True  # the source is read for the name
    try:
        return name_at(frame), level
    finally:
        execution.inside = inside
