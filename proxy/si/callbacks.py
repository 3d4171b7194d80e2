"""Callbacks: the methods that one must have, and what one hears that is replaced by another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ...model.errors import RequestError

__all__ = ["check_callback", "replaced_hook"]

_REQUIRED: Final = (
    *("update_allocation", "update_application", "update_node", "update_container_scheduling_state"),
    *("predicates", "preemption_predicates", "send_event"),
)
"""The methods of `ResourceManagerCallback`."""
_DEFERRED: Final = {
    "predicates": "ask_predicates",
    "preemption_predicates": "ask_preemption_predicates",
}
"""The methods of `DeferredPredicates`, by those that they replace."""


def check_callback(callback: object) -> None:
    """Refuse an object that is no callback.

    Raises:
        RequestError: it lacks a method; the text names all that are missing.
    """
    required: tuple[str, ...] = _REQUIRED
    if any(_has(callback, name) for name in _DEFERRED.values()):
        required = tuple(_DEFERRED.get(name, name) for name in _REQUIRED)
    missing = [name for name in required if not _has(callback, name)]
    if missing:
        raise RequestError(
            f"the callback {callback!r:.200} of a resource manager has no method {', '.join(missing)}: "
            "extend licorne.ResourceManager"
        )


def replaced_hook(before: object, now: object = None) -> Callable[[str], object] | None:
    """Return the method `replaced` of a callback that another one has replaced, `None` if it has none.

    One that is replaced by itself, or by another one of the same speaker (its attribute `speaks_for`), has
    none: it has registered again by itself, and hears the end of what it had.
    """
    if _speaker(before) is _speaker(now):
        return None
    found: Callable[[str], object] | None = getattr(before, "replaced", None)
    return found


def _speaker(callback: object) -> object:
    """Return for whom a callback speaks in the end: itself, unless it says otherwise."""
    while (behind := getattr(callback, "speaks_for", None)) is not None:
        callback = behind
    return callback


def _has(callback: object, name: str) -> bool:
    return callable(getattr(callback, name, None))
