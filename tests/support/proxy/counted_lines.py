"""What work costs, counted instead of timed: the lines of Python that it executes on this thread."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

__all__ = ["lines_executed"]


def lines_executed(work: Callable[[], object]) -> int:
    """Do the work, and return how many lines of Python it executed, each as often as it was.

    A loop counts with each turn, also in a comprehension or a generator. What a call into C does counts only
    as far as it calls back: sorting with a key written in Python does, sorting numbers does not.
    """
    count = 0

    def trace(_frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    outer = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(outer)
    return count
