"""How long a call of a library's method waits for a lock, by its arguments."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..holding.chains import Attempt

__all__ = ["attempts_of"]


def attempts_of(
    method: Callable[..., object],
) -> Callable[[object, tuple[object, ...], dict[str, object]], Attempt]:
    """Return what says of a call of a method how long it waits, by its arguments `blocking` and `timeout`."""
    signature = inspect.signature(method)

    def attempt_of(lock: object, given: tuple[object, ...], named: dict[str, object]) -> Attempt:
        if not given and not named:
            return "block"
        try:
            arguments = signature.bind(lock, *given, **named).arguments
        except TypeError:
            return "block"  # The library refuses them.
        timeout = arguments.get("timeout")
        if not arguments.get("blocking", True) or timeout == 0:
            return "try"
        return "timed" if isinstance(timeout, int | float) and timeout > 0 else "block"

    return attempt_of
