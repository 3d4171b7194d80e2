"""Which entity an error came from, while it travels up to the partition that deals with it."""

from __future__ import annotations

from typing import Final

from ..model.applications.application import Application
from ..model.errors import LicorneError
from ..model.nodes.node import Node
from ..model.state.quarantine import BrokenKind

__all__ = ["broken_entity", "note_origin", "origin_of"]

_ORIGIN: Final = "_licorne_origin"
"""An attribute of the error itself: to wrap it would show askers another error than was raised."""


def note_origin(error: BaseException, entity: object) -> bool:
    """Note on an error that an entity raised it, and tell whether that is so and news.

    It is not so where the error came from below, or where it is no sign of a bug: misuse by a caller, and to
    meet an actor that has stopped, break nothing.
    """
    if isinstance(error, LicorneError) or origin_of(error) is not None:
        return False
    setattr(error, _ORIGIN, entity)
    return True


def origin_of(error: BaseException) -> object | None:
    """Return the entity that an error came from first, `None` if it is not known."""
    return getattr(error, _ORIGIN, None)


def broken_entity(error: BaseException) -> tuple[BrokenKind, str, str] | None:
    """Return the application or node that an error came from, by id, and why; `None` for whatever else."""
    broken = origin_of(error)
    reason = f"{type(error).__name__}: {error}"
    if isinstance(broken, Application):
        return BrokenKind.APPLICATION, broken.application_id, reason
    if isinstance(broken, Node):
        return BrokenKind.NODE, broken.node_id, reason
    return None
