"""Waits of tests: for what has to come, however slow the machine, and for time where only time shows it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Final, ParamSpec, TypeVar

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")

WAIT_SECONDS: Final = 60
"""How long a test waits for what has to come; a slow machine does not come near it."""

PROGRAM_SECONDS: Final = 5 * WAIT_SECONDS
"""How long a program that ends by itself may run, such as a type checker or a build."""

EXPIRING_SECONDS: Final = 0.01
"""The limit of a wait for what never comes: a slow machine only makes it longer."""

_LOOK_SECONDS: Final = 0.005


def happens(happened: Callable[[], _Result], seconds: float = WAIT_SECONDS) -> _Result:
    """Wait until something has happened, or the time is over; return what tells which of them."""
    ends = time.monotonic() + seconds
    while not (result := happened()) and time.monotonic() < ends:
        time.sleep(_LOOK_SECONDS)
    return result


def wait_until(
    happened: Callable[[], _Result], what: str = "what the test waits for", seconds: float = WAIT_SECONDS
) -> _Result:
    """Wait until something has happened, and return what tells so.

    Raises:
        AssertionError: It did not, in time.
    """
    result = happens(happened, seconds)
    assert result, f"not within {seconds:g} s: {what}"
    return result


def let_time_pass(seconds: float) -> None:
    """Do nothing for a while: only where what is tested is time itself, or where a fault needs time to show.

    A test passes whether the machine takes these seconds or a hundred times as many.
    """
    time.sleep(seconds)


def stays(so: Callable[[], object], seconds: float = EXPIRING_SECONDS) -> bool:
    """Return whether something is so after a while as well; a slow machine cannot end what stays so."""
    let_time_pass(seconds)
    return bool(so())


def on_a_loop(
    test: Callable[_Parameters, Coroutine[object, object, None]],
) -> Callable[_Parameters, None]:
    """Run a test that is a coroutine; one that hangs fails."""

    @wraps(test)
    def run(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(2 * WAIT_SECONDS):
                await test(*args, **kwargs)

        asyncio.run(bounded())

    return run
