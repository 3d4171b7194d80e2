"""Stacks: captured cheaply where something is new, and resolved only for reports."""

from __future__ import annotations

import contextlib
import dis
import linecache
import os
import sys
import sysconfig
import threading
from itertools import takewhile
from types import CodeType, FrameType, FunctionType
from typing import Final, TypeAlias

from ..findings.terms import Frame

RawStack: TypeAlias = "tuple[tuple[CodeType, int], ...]"
"""Code and instruction of each frame, innermost first."""

_CONTEXTS: Final = frozenset(
    {contextlib.__file__, os.path.join(os.path.dirname(os.__file__), "multiprocessing", "synchronize.py")}  # noqa: PTH118, PTH120
)
"""Files whose functions take locks for their caller; compared with names of code, as text."""
_THREADING: Final = threading.__file__
_STARTS_THREAD: Final = frozenset({"Thread.run", "Thread._bootstrap_inner", "Thread._bootstrap"})
_PYTEST: Final = f"{os.sep}_pytest{os.sep}"
_METHODS_OF_CONDITIONS: Final = frozenset(
    method.__code__ for method in vars(threading.Condition).values() if isinstance(method, FunctionType)
)
DEPTH_MAX: Final = 12
_LIBRARY: Final = tuple({sysconfig.get_paths()[name] + os.sep for name in ("stdlib", "platstdlib")})
_INSTALLED: Final = tuple(
    {sysconfig.get_paths()[name] + os.sep for name in ("purelib", "platlib")}
    | {f"{path}{name}{os.sep}" for path in _LIBRARY for name in ("site-packages", "dist-packages")}
)
"""Folders inside of the standard library's with packages that are not of it."""
# The package `lockcheck`; compared with names of code, as text.
_HERE: Final = os.path.dirname(os.path.dirname(__file__)) + os.sep  # noqa: PTH120


def is_of_checker(code: CodeType) -> bool:
    """Return whether code is the checker's."""
    return code.co_filename.startswith(_HERE)


def is_ours(code: CodeType) -> bool:
    """Return whether code is the checker's, or of what takes locks for the program, and not its own."""
    file = code.co_filename
    return (
        file.startswith(_HERE)
        or file in _CONTEXTS
        or (file == _THREADING and code in _METHODS_OF_CONDITIONS)  # the code of the program is slow to hash
    )


def is_of_library(file: str) -> bool:
    """Return whether a file of code belongs to the standard library."""
    if file.startswith("<frozen "):
        return True
    return file.startswith(_LIBRARY) and not file.startswith(_INSTALLED)


def caller() -> FrameType | None:
    """Return the innermost frame of the program itself."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - the documented way to walk a stack cheaply
    while frame is not None and is_ours(frame.f_code):
        frame = frame.f_back
    return frame


def waiting_frame() -> FrameType | None:
    """Return the innermost frame of the program that is not inside of what it waits with."""
    frame = caller()
    while frame is not None and (
        is_ours(frame.f_code) or str(frame.f_globals.get("__name__", "")).partition(".")[0] in _WAITED_WITH
    ):
        frame = frame.f_back
    return frame


def caller_code_is(frame: FrameType | None, code: CodeType) -> bool:
    """Return whether the innermost frame outside of this package, from a frame outwards, runs some code."""
    while frame is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    return frame is not None and frame.f_code is code


def enters(code: CodeType, instruction: int) -> bool:
    """Return whether the instruction of a code enters a `with` block."""
    before = ""
    for each in dis.get_instructions(code):
        if each.offset == instruction:
            return each.opname == "BEFORE_WITH" or (each.opname == "CALL" and before == "LOAD_SPECIAL")
        before = each.opname
    return False


_WAITED_WITH: Final = frozenset({"threading", "concurrent", "queue", "asyncio", "pykka"})
"""Packages whose functions wait for other threads."""


def capture(frame: FrameType | None) -> RawStack:
    """Return the raw stack from a frame outwards."""
    found: list[tuple[CodeType, int]] = []
    while frame is not None and len(found) < DEPTH_MAX:
        if not is_ours(frame.f_code):
            found.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return tuple(found)


def resolve(stack: RawStack) -> tuple[Frame, ...]:
    """Return the lines of a raw stack, without the outer ones of what runs the program or its tests."""
    program = list(takewhile(lambda entry: not _runs_program(entry[0]), stack[1:]))
    return tuple(_resolved(code, instruction) for code, instruction in (*stack[:1], *program))


def _runs_program(code: CodeType) -> bool:
    file = code.co_filename
    if file == _THREADING:
        return code.co_qualname in _STARTS_THREAD
    return file == "<frozen runpy>" or _PYTEST in file


def line_of(code: CodeType, instruction: int) -> int:
    """Return the line of an instruction."""
    lines = (line for start, end, line in code.co_lines() if start <= instruction < end and line)
    return next(lines, code.co_firstlineno)


def _resolved(code: CodeType, instruction: int) -> Frame:
    line = line_of(code, instruction)
    source = linecache.getline(code.co_filename, line).strip()
    return Frame(code.co_filename, line, code.co_qualname, source)
