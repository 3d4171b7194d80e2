"""What work costs, counted instead of timed: the lines of Python that it executes on this thread."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

import licorne

_PACKAGE: Final = str(Path(licorne.__file__).parent)
_OTHERS: Final = (f"{_PACKAGE}/tests", f"{_PACKAGE}/.venv", f"{_PACKAGE}/lockcheck")
"""Other folders of a checkout, and the checker of locks, which runs only if it is switched on."""


class Count:
    """What was executed of the package.

    Attributes:
        lines: How many lines, each as often as it was executed.
        calls: How often a function was entered; a generator counts each time that it goes on.
        codes: Which functions were entered.
    """

    def __init__(self) -> None:
        self.lines = 0
        self.calls = 0
        self.codes: set[CodeType] = set()

    @property
    def files(self) -> set[str]:
        """The files of the functions, below the folder of the package."""
        return {code.co_filename.removeprefix(f"{_PACKAGE}/") for code in self.codes}


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

    _traced(work, trace)
    return count


def package_counts(work: Callable[[], object], part: CodeType) -> tuple[Count, list[Count]]:
    """Do the work, and return what it executed of the package: in all, and in each call of one function."""
    whole, parts = Count(), list[Count]()
    counts = [whole]
    of_package: dict[str, bool] = {}

    def trace_line(frame: FrameType, event: str, _argument: object) -> Any:
        if event == "line":
            for count in counts:
                count.lines += 1
        elif event == "return" and frame.f_code is part:
            counts.pop()
        return trace_line

    def trace(frame: FrameType, _event: str, _argument: object) -> Any:
        code = frame.f_code
        name = code.co_filename
        if name not in of_package:
            of_package[name] = name.startswith(_PACKAGE) and not name.startswith(_OTHERS)
        if not of_package[name]:
            return None
        if code is part:
            parts.append(Count())
            counts.append(parts[-1])
        for count in counts:
            count.calls += 1
            count.codes.add(code)
        return trace_line

    _traced(work, trace)
    return whole, parts


def _traced(work: Callable[[], object], trace: Callable[[FrameType, str, object], Any]) -> None:
    outer = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(outer)
