"""Parts of the checker that fail, whatever is asked of them."""

from __future__ import annotations

import sys

import pytest


def broken(*_: object, **__: object) -> None:
    """Fail, whatever is asked."""
    raise ZeroDivisionError("on purpose")


def break_part(patch: pytest.MonkeyPatch, part: str) -> None:
    """Replace a part of the checker: room, module and name."""
    room, module, *owner, name = part.split(".")
    there = sys.modules[f"licorne.lockcheck.{room}.{module}"]
    patch.setattr(getattr(there, *owner) if owner else there, name, broken)
