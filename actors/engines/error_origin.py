"""The entity that an error came from, noted on the error while it rises to the partition that handles it."""

from __future__ import annotations

from typing import Final

from ...model.applications.application import Application
from ...model.errors import LicorneError
from ...model.nodes.node import Node
from ...model.state.partition_state import BrokenKind

_ORIGIN: Final = "_licorne_origin"
"""An attribute of the error itself: a wrapper would show callers another error than was raised."""


def note_origin(error: BaseException, entity: object) -> bool:
    """Note on an error that an entity raised it; return whether that was noted.

    It is not noted if the error came from another entity below, or if it is no sign of a bug: misuse by a
    caller, or a stopped actor, breaks nothing.
    """
    if isinstance(error, LicorneError) or origin_of(error) is not None:
        return False
    setattr(error, _ORIGIN, entity)
    return True


def origin_of(error: BaseException) -> object | None:
    """Return the entity that raised an error first, `None` if it is not known."""
    return getattr(error, _ORIGIN, None)


def broken_entity(error: BaseException) -> tuple[BrokenKind, str, str] | None:
    """Return the kind and id of the application or node that broke, and why; `None` for other origins."""
    broken = origin_of(error)
    reason = f"{type(error).__name__}: {error}"
    if isinstance(broken, Application):
        return BrokenKind.APPLICATION, broken.application_id, reason
    if isinstance(broken, Node):
        return BrokenKind.NODE, broken.node_id, reason
    return None
