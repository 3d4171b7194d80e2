"""Waiting for what another thread or process does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import ParamSpec

from .listening import WAIT_SECONDS

__all__ = ["on_a_loop", "wait_until"]

_Parameters = ParamSpec("_Parameters")


def wait_until(
    happened: Callable[[], object], what: str = "what the test waits for", seconds: float = WAIT_SECONDS
) -> None:
    """Wait until something has happened.

    Raises:
        AssertionError: It did not, in time.
    """
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(0.005)


def on_a_loop(
    test: Callable[_Parameters, Coroutine[object, object, None]],
) -> Callable[_Parameters, None]:
    """Run a test that is a coroutine; one that hangs fails."""

    @wraps(test)
    def run(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(6 * WAIT_SECONDS):
                await test(*args, **kwargs)

        asyncio.run(bounded())

    return run
