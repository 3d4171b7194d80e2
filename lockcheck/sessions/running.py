"""Running a program under its own session, to its very end.

The end is the interpreter's: pools end, threads that are no daemons are waited for, and then the functions of
`atexit` are called. All that happens in the session, since a program may hang there too.
"""

from __future__ import annotations

import atexit
import importlib.util
import runpy
import sys
import threading
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Final, final

from ..checking.policy import NOTE_ALL
from ..checking.stalls import StallWatch
from ..checking.watch import current
from ..findings.findings import Finding
from ..findings.terms import DeadlockError, Level, LockUsageError, OrderDeclarationError, Rung
from ..interception.hooks import Hooks
from ..order.order import Order
from .session import Session, report_finalized

_UNREGISTER: Final = atexit.unregister
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
        witnesses: the folder for replay files of real deadlocks; `None` for no files.
        blocking: the kinds of blocking calls that are allowed, by class of lock.

    Returns:
        The session, the exit code of the program, and where findings were reported in full, by fingerprint.

    Raises:
        LockUsageError: the file, the module or the order does not exist.
    """
    session = Session(level=level, on=NOTE_ALL, name=path, witnesses=witnesses, blocking=blocking)
    printed: dict[str, str] = {}
    session.watch.tell = partial(_print_report, printed)
    with session, StallWatch():
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


def refuse_missing(program: str, *, as_module: bool = False) -> None:
    """Refuse a program that is not there; arguments as for `execute`.

    Raises:
        LockUsageError: the file or module does not exist.
    """
    if as_module and not _is_module(program):
        raise LockUsageError(f"{program}: there is no such module")
    if not as_module and not Path(program).is_file():
        raise LockUsageError(f"{program}: there is no such program")


def execute(program: str, arguments: Sequence[str], *, as_module: bool = False) -> int:
    """Run a program as `python program arguments` would, with all that the interpreter does at its end.

    Args:
        program: a file, or a module if `as_module` is set, as with `python -m`.
        arguments: the program's `sys.argv`, after its name.
        as_module: whether it is a module.

    Returns:
        The exit code of the program.

    Raises:
        LockUsageError: the file or module does not exist.
    """
    refuse_missing(program, as_module=as_module)
    threads, exits = set(threading.enumerate()), _AtExit()
    with _as_started(program, arguments, as_module=as_module), exits.noted():
        code, names = _run(program, as_module=as_module)
        _shut_pools_down()
        for thread in threading.enumerate():
            if thread not in threads and not thread.daemon and thread is not threading.current_thread():
                thread.join()
        exits.call_all()
        if (watch := current()) is not None:
            report_finalized(watch)
        del names
    return code


@final
class _AtExit:
    """The functions that a program gives to `atexit`, which has no list of them that can be read."""

    def __init__(self) -> None:
        self._calls: list[tuple[Callable[..., object], partial[object]]] = []
        self._hooks = Hooks(self._put_all)

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note such functions while the body runs."""
        self._hooks.install()
        try:
            yield
        finally:
            self._hooks.uninstall()

    def call_all(self) -> None:
        """Call them as the interpreter does: the last one first, whatever they raise."""
        while self._calls:
            function, call = self._calls.pop()
            _UNREGISTER(function)
            try:
                call()
            except BaseException:  # noqa: BLE001 - as the interpreter does
                traceback.print_exc()

    def _put_all(self) -> None:
        self._hooks.wrap(atexit, "register", self._register)
        self._hooks.wrap(atexit, "unregister", self._unregister)

    def _register(
        self,
        method: Callable[..., object],
        function: Callable[..., object],
        /,
        *given: object,
        **named: object,
    ) -> object:
        registered = method(function, *given, **named)
        self._calls.append((function, partial(function, *given, **named)))
        return registered

    def _unregister(self, method: Callable[..., object], function: object, /) -> object:
        self._calls = [one for one in self._calls if one[0] != function]
        return method(function)


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


def _run(program: str, *, as_module: bool) -> tuple[int, object]:
    """Run a program; return its exit code, and its global names, which live as long as the interpreter."""
    try:
        if as_module:
            return 0, runpy.run_module(program, run_name="__main__", alter_sys=True)
        return 0, runpy.run_path(program, run_name="__main__")
    except SystemExit as end:
        names = _names_of(end.__traceback__)
        if end.code is None or isinstance(end.code, int):
            return end.code or 0, names
        sys.stderr.write(f"{end.code}\n")
        return 1, names
    except KeyboardInterrupt:  # a program that hangs is interrupted: what was found is reported all the same
        traceback.print_exc()
        return INTERRUPTED, None
    except Exception as error:  # noqa: BLE001 - a program that fails still has something to report
        if not (isinstance(error, DeadlockError) and error.finding and error.finding.rung is Rung.R4):
            traceback.print_exc()
        return 1, _names_of(error.__traceback__)


def _names_of(trace: TracebackType | None) -> object:
    """Return the global names of the program, of which a traceback has frames."""
    while trace is not None and trace.tb_frame.f_globals.get("__name__") != "__main__":
        trace = trace.tb_next
    return dict(trace.tb_frame.f_globals) if trace is not None else None
