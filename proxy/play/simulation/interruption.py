"""Ctrl-C during a simulation: it stops at the next moment, with a consistent record; a second one ends it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


def never() -> bool:
    """Return false: there is no interrupt."""
    return False


@contextmanager
def interruption_noted() -> Iterator[Callable[[], bool]]:
    """Note Ctrl-C while the context is open; give a function that returns whether there was one.

    Where something else than Python's own handler is set, or on another thread than the main one, signals are
    left alone.

    Raises:
        KeyboardInterrupt: There was one before, and here is another.
    """
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield never
        return
    is_noted = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal is_noted
        if is_noted:
            signal.default_int_handler(number, frame)
        is_noted = True

    signal.signal(signal.SIGINT, note)
    try:
        yield lambda: is_noted
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
