"""What the checker needs of the interpreter, as it is before a program replaces it."""

from __future__ import annotations

import _thread
import sys
import threading
import time
from collections.abc import Mapping
from typing import final


@final
class Interpreter:
    """Functions of the interpreter that programs replace: `threading.get_ident`, or clocks in their tests.

    They are attributes of a class, since tools that stop the clock look through the names of all modules.
    """

    thread_number = staticmethod(_thread.get_ident)
    """Returns the number of the calling thread."""
    seconds = staticmethod(time.monotonic)
    """Returns the time by a clock that only goes forwards."""


def this_thread() -> threading.Thread:
    """Return the calling thread; one that `threading` does not know gets an object there."""
    known: Mapping[int, threading.Thread] = threading._active  # type: ignore[attr-defined] # noqa: SLF001 - unlike current_thread(), it calls nothing
    return known.get(Interpreter.thread_number()) or threading.current_thread()


def has_global_lock() -> bool:
    """Return whether only one thread runs at any time; there are builds without this from Python 3.13 on."""
    return bool(getattr(sys, "_is_gil_enabled", lambda: True)())
