"""The command `attach`: where the threads of a process are that was started without lockcheck, and hangs.

From Python 3.14 on the process tells by itself, unless its main thread is in a call of C; else `py-spy` looks
at it, if that is installed. Which locks a thread holds is not known there. A line inside of `with` means that
it may hold what the statement names, and a line at it, that it waits for that.
"""

from __future__ import annotations

import argparse
import ast
import json
import linecache
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from ..checking.stalls import WAITS
from ..findings.terms import CLEAN, Frame, LockUsageError
from ..interception.queues import ALL_DONE, ITEM, ROOM

_Threads: TypeAlias = "Sequence[tuple[str, Sequence[tuple[str, int, str]]]]"
"""The name of each thread, and file, line and function of its frames, the innermost first."""
ANSWER_SECONDS: Final = 3.0
"""How long a process has to answer."""
_LOOK_SECONDS: Final = 0.02
_WAITS: Final = {
    **WAITS,
    "Condition.wait": "a notification",
    "Condition.wait_for": "a notification",
    "Queue.get": ITEM,
    "Queue.put": ROOM,
    "Queue.join": ALL_DONE,
    "Thread.join": "the end of a thread",
    "Thread._wait_for_tstate_lock": "the end of a thread",
    "_ModuleLock.acquire": "the import of a module",
    "Popen.wait": "the end of a process",
    "Popen._wait": "the end of a process",
    "Popen._try_wait": "the end of a process",
    "_worker": "work",
}
"""Functions of the standard library that wait, and the objects of their waits."""
_BEGINS: Final = frozenset({"Thread.run", "Thread._bootstrap_inner", "Thread._bootstrap"})
_SCRIPT: Final = """
import json, os, sys, threading
def frames(frame):
    while frame is not None:
        yield frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_qualname
        frame = frame.f_back
names = {number: thread.name for number, thread in threading._active.items()}
stacks = {number: list(frames(frame)) for number, frame in sys._current_frames().items()}
stacks[threading.get_ident()] = list(frames(sys._getframe(1)))
with open({answer!r} + ".part", "w") as file:
    json.dump([(names.get(number, "a thread"), stack) for number, stack in stacks.items()], file)
os.replace({answer!r} + ".part", {answer!r})
"""
"""What the process runs: it has the names of its threads."""


def add_attach_command(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command; it sets `work`, which returns the exit code."""
    command = subparsers.add_parser("attach", help="tell where the threads of a running process are")
    command.add_argument("pid", type=int, metavar="PID", help="the process")
    command.set_defaults(work=_attach)


def _attach(options: argparse.Namespace) -> int:
    threads = _by_itself(options.pid)
    if threads is None:
        threads = _by_py_spy(options.pid)
    sys.stdout.write("\n".join(lines_of(threads)) + "\n")
    return CLEAN


def lines_of(threads: _Threads) -> Iterator[str]:
    """Yield where threads are, what they wait for, and which `with` statements they are in."""
    for name, stack in threads:
        wait = _wait_of(stack)
        yield f"{name} waits for {wait} at" if wait is not None else f"{name} is at"
        for file, line, function in stack:
            if function not in _BEGINS:
                yield f"    {Frame(file, line, function, linecache.getline(file, line).strip())}"
                yield from (f"      inside of `with {what}" for what in _inside_of(file, line))


def _wait_of(stack: Sequence[tuple[str, int, str]]) -> str | None:
    """Return what a thread waits for, if that is known."""
    text = None
    for file, line, function in stack:
        if function not in _WAITS:
            source = linecache.getline(file, line).strip()
            is_lock = text is None and (source.startswith("with ") or ".acquire(" in source)
            return f"a lock, it seems by `{source}`," if is_lock else text
        text = _WAITS[function]
    return text


def _inside_of(file: str, line: int) -> Iterator[str]:
    """Yield what the `with` statements name that a line of a function is in, the outermost first."""
    try:
        nodes = list(ast.walk(ast.parse("".join(linecache.getlines(file)))))
    except (SyntaxError, ValueError):
        return
    functions = (node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    begin = max(
        (node.lineno for node in functions if node.lineno < line <= (node.end_lineno or 0)), default=0
    )
    for node in nodes:
        if not isinstance(node, ast.With) or node.lineno < begin:
            continue
        if node.body[0].lineno <= line <= (node.end_lineno or 0):
            yield f"{', '.join(map(ast.unparse, node.items))}` of line {node.lineno}"


def _by_itself(process: int) -> _Threads | None:
    """Return what a process tells about its threads, if it does."""
    execute = getattr(sys, "remote_exec", None)  # from Python 3.14 on
    if execute is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        script, answer = Path(folder, "script.py"), Path(folder, "answer.json")
        script.write_text(_SCRIPT.replace("{answer!r}", repr(str(answer))), encoding="utf-8")
        try:
            execute(process, str(script))
        except (OSError, RuntimeError) as error:
            sys.stderr.write(f"lockcheck: process {process} cannot be asked: {error}\n")
            return None
        until = time.monotonic() + ANSWER_SECONDS
        while not answer.exists():
            if time.monotonic() > until:
                sys.stderr.write(f"lockcheck: process {process} does not answer, since it runs no Python\n")
                return None
            time.sleep(_LOOK_SECONDS)
        threads: _Threads = json.loads(answer.read_text("utf-8"))
        return threads


def _by_py_spy(process: int) -> _Threads:
    """Return what `py-spy` sees of the threads of a process.

    Raises:
        LockUsageError: it is not installed, or cannot look at the process.
    """
    folders = [str(Path(sys.executable).parent), *os.get_exec_path()]
    program = shutil.which("py-spy", path=os.pathsep.join(folders))
    if program is None:
        raise LockUsageError(f"attach {process}: install `py-spy`, which looks at processes from outside")
    ran = subprocess.run(  # noqa: S603 - the number is one
        [program, "dump", "--json", "--pid", str(process)], capture_output=True, text=True, check=False
    )
    if ran.returncode:
        raise LockUsageError(f"attach {process}: {ran.stderr.strip().partition(chr(10))[0]}")
    return [
        (
            thread["thread_name"] or f"thread {thread['thread_id']}",
            [(frame["filename"], frame["line"], frame["name"]) for frame in thread["frames"]],
        )
        for thread in json.loads(ran.stdout)
    ]
