"""Traces that are written as where the interpreter has a global lock, or as where it has none."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final

import pytest

_REALLY: Final[Callable[[], bool]] = getattr(sys, "_is_gil_enabled", lambda: True)

EITHER_WAY: Final = pytest.mark.parametrize(
    "has_interpreter_lock", [True, False], ids=["with a global lock", "without a global lock"]
)


def take_for_granted(monkeypatch: pytest.MonkeyPatch, *, has_interpreter_lock: bool) -> None:
    """Have the interpreter say that it has a global lock, or none; skip a test that needs one it lacks."""
    if has_interpreter_lock and not _REALLY():  # what relies on it would break
        pytest.skip("this interpreter has no global lock")
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: has_interpreter_lock, raising=False)
