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


def check_callback(callback: object) -> None:
    """Refuse an object that is no callback.

    Raises:
        RequestError: it lacks a method; the text names all that are missing.
    """
    missing = [name for name in _REQUIRED if not callable(getattr(callback, name, None))]
    if missing:
        raise RequestError(
            f"the callback {callback!r:.200} of a resource manager has no method {', '.join(missing)}: "
            "extend licorne.ResourceManager"
        )
