"""The functions that the program gave to `signal`: they run wherever the main thread is."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FunctionType
from typing import Final

from .interpreter import Interpreter

_SIGNALS: Final = tuple(map(int, signal.valid_signals()))
_GETSIGNAL: Final[Callable[[int], object]] = signal._signal.getsignal  # type: ignore[attr-defined] # noqa: SLF001
"""The function below the one of `signal`, which makes an enumeration of each result."""


def handling_functions() -> list[FunctionType]:
    """Return the functions that handle signals; only the main thread runs them."""
    if Interpreter.thread_number() != threading.main_thread().ident:
        return []
    every = list(map(_GETSIGNAL, _SIGNALS))
    # Few signals have handlers of their own; there are many, so nothing is done in Python for each of them.
    distinct = dict(zip(map(id, every), every, strict=True)).values()
    found = (getattr(handler, "__func__", handler) for handler in distinct if callable(handler))
    return [function for function in found if type(function) is FunctionType]


def raised_by_handler(error: BaseException) -> bool:
    """Return whether a handler of the program raised an error, or code that it called."""
    codes, at = {function.__code__ for function in handling_functions()}, error.__traceback__
    while at is not None:
        if at.tb_frame.f_code in codes:
            return True
        at = at.tb_next
    return False
