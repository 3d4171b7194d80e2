"""The methods that a callback must have before a resource manager may register with it."""

from __future__ import annotations

from typing import Final

from ...model.errors import RequestError

__all__ = ["check_callback"]

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


def _has(callback: object, name: str) -> bool:
    return callable(getattr(callback, name, None))
