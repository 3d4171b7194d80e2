"""Waiting for what another thread or process does."""

from __future__ import annotations

import time
from collections.abc import Callable

from .listening import WAIT_SECONDS

__all__ = ["wait_until"]


def wait_until(happened: Callable[[], object], what: str, seconds: float = WAIT_SECONDS) -> None:
    """Wait until something has happened.

    Raises:
        AssertionError: It did not, in time.
    """
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(0.005)
