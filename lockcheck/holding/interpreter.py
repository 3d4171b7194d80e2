"""Whether the interpreter lets only one thread run at a time."""

from __future__ import annotations

import sys

__all__ = ["has_global_lock"]


def has_global_lock() -> bool:
    """Return whether only one thread runs at any time; there are builds without this from Python 3.13 on."""
    return bool(getattr(sys, "_is_gil_enabled", lambda: True)())
