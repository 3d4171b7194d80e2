"""Running a program under its own session."""

from __future__ import annotations

import importlib.util
import runpy
import sys
import threading
import traceback
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final

from ..checking.policy import NOTE_ALL
from ..findings.findings import Finding
from ..findings.terms import DeadlockError, Level, LockUsageError, OrderDeclarationError, Rung
from ..order.order import Order
from .session import Session

INTERRUPTED: Final = 130
"""The exit code of a program that was interrupted, as a shell has it."""


def named_order(text: str) -> Order:
    """Return a declared order: that of `module:NAME`, or else the one that the text declares.

    Raises:
        LockUsageError: the module or name does not exist, or the text declares no order.
    """
    if ":" not in text:
        try:
            return Order(text)
        except OrderDeclarationError as error:
            raise LockUsageError(f"--order: {error}") from None
    module, _, name = text.partition(":")
    try:
        found: object = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise LockUsageError(f"--order {text}: {error}") from None
    if not isinstance(found, Order):
        raise LockUsageError(f"--order {text}: expected an Order, got {found!r}")
    return found


def run_program(
    path: str,
    arguments: Sequence[str],
    level: Level,
    *,
    as_module: bool = False,
    order: str | None = None,
    by_key: bool = False,
    max_hold_seconds: float | None = None,
    witnesses: Path | None = None,
    blocking: Mapping[str, Collection[str]] | None = None,
) -> tuple[Session, int, dict[str, str]]:
    """Run a program as `python path arguments` would, under a session.

    Only a real deadlock raises an error, to break it; its report is printed at once. A session that the
    program opens is active instead of this one.

    Args:
        path: the program, a file or a module.
        arguments: its `sys.argv`, after its name.
        level: how much is checked.
        as_module: whether it is a module, as with `python -m`.
        order: the declared order, if any: chains, or `module:NAME`, where the module may be beside the
            program. Locks that the module makes are checked too.
        by_key: whether times are noted by key too.
        max_hold_seconds: how long a lock may be held; `None` for no limit.
        witnesses: the folder for replay files of real deadlocks; `None` for no files.
        blocking: the kinds of blocking calls that are allowed, by class of lock.

    Returns:
        The session, the exit code of the program, and where findings were reported in full, by fingerprint.

    Raises:
        LockUsageError: the file, the module or the order does not exist.
    """
    session = Session(
        level=level, on=NOTE_ALL, name=path,
        by_key=by_key, max_hold_seconds=max_hold_seconds, witnesses=witnesses,
        blocking=blocking,
    )  # fmt: skip
    printed: dict[str, str] = {}
    session.watch.tell = partial(_print_report, printed)
    with session:
        if order is not None:
            with _as_started(path, arguments, as_module=as_module):
                session.order = named_order(order)
        code = execute(path, arguments, as_module=as_module)
    return session, code, printed


def _print_report(printed: dict[str, str], finding: Finding, report: str) -> None:
    """Print the report of a finding, and note that it was printed."""
    with suppress(AttributeError, OSError, ValueError):  # standard error is missing or closed
        sys.stderr.write(report + "\n")
        printed[finding.fingerprint] = "the output above"


def execute(program: str, arguments: Sequence[str], *, as_module: bool = False) -> int:
    """Run a program as `python program arguments` would, and wait for the threads that it leaves running.

    Args:
        program: a file, or a module if `as_module` is set, as with `python -m`.
        arguments: the program's `sys.argv`, after its name.
        as_module: whether it is a module.

    Returns:
        The exit code of the program.

    Raises:
        LockUsageError: the file or module does not exist.
    """
    if as_module and not _is_module(program):
        raise LockUsageError(f"{program}: there is no such module")
    if not as_module and not Path(program).is_file():
        raise LockUsageError(f"{program}: there is no such program")
    threads = set(threading.enumerate())
    with _as_started(program, arguments, as_module=as_module):
        code = _run(program, as_module=as_module)
        _shut_pools_down()
        for thread in threading.enumerate():
            if thread not in threads and not thread.daemon:
                thread.join()
    return code


def _shut_pools_down() -> None:
    """End the threads of pools that were never shut down, as the interpreter does before it ends.

    Pools of another program in this process can be used again afterwards.
    """
    pools = sys.modules.get("concurrent.futures.thread")
    if pools is not None and pools._threads_queues:  # noqa: SLF001 - a pool has no public way
        before = pools._shutdown  # noqa: SLF001 - a pool has no public way
        try:
            pools._python_exit()  # noqa: SLF001 - likewise
        finally:
            vars(pools)["_shutdown"] = before


@contextmanager
def _as_started(program: str, arguments: Sequence[str], *, as_module: bool = False) -> Iterator[None]:
    """Set `sys.argv` and `sys.path` to those that the program would be started with."""
    argv, paths = sys.argv, list(sys.path)
    sys.argv = [program, *arguments]
    sys.path.insert(0, str(Path.cwd() if as_module else Path(program).resolve().parent))
    try:
        yield
    finally:
        sys.argv = argv
        sys.path[:] = paths


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:
        return False


def _run(program: str, *, as_module: bool) -> int:
    try:
        if as_module:
            runpy.run_module(program, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(program, run_name="__main__")
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        sys.stderr.write(f"{end.code}\n")
        return 1
    except KeyboardInterrupt:  # a program that hangs is interrupted: what was found is reported all the same
        traceback.print_exc()
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - a program that fails still has something to report
        if not (isinstance(error, DeadlockError) and error.finding and error.finding.rung is Rung.R4):
            traceback.print_exc()
        return 1
    return 0
