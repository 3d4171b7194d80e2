"""A fault of the checker in any of its hooks switches it off, is said once, and the program goes on."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TYPE_CHECKING, Final

import pytest
from support.lockcheck.lock_corpus import RECORD, hold

from licorne.lockcheck import Condition, Lock, RLock, session
from licorne.lockcheck.commands import command
from licorne.lockcheck.environment import ambient_runs
from licorne.lockcheck.findings.exit_codes import FAULT
from licorne.lockcheck.holding.runtime import runtime
from licorne.lockcheck.sessions.recording import recording

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.lockcheck(off=True)
"""Sessions are opened here."""

SAID: Final = "lockcheck: switched off by a fault of its own, please report: ZeroDivisionError: on purpose\n"

HOOKS: Final = (
    "checking.slow_path.check_acquisition",
    "checking.slow_path._noted",
    "checking.slow_path._copied",
    "checking.waiting.capture",
    "checking.waiting.deadlock_of",
    "holding.runtime.learn",
    "interception.patches.started_after",
    "interception.hand_overs.ends",
    "interception.hand_overs.local",
    "sessions.session.held_nodes",
)
"""What is called where a lock is taken, released or waited for, and where threads and tasks begin and end."""


def broken(*_: object, **__: object) -> None:
    """Fail, whatever is asked."""
    raise ZeroDivisionError("on purpose")


class Broken:
    """Something that fails at each use."""

    __getattr__ = broken


def break_part(patch: pytest.MonkeyPatch, part: str) -> None:
    """Replace a part of the checker: room, module and name."""
    room, module, *owner, name = part.split(".")
    there = sys.modules[f"licorne.lockcheck.{room}.{module}"]
    before = getattr(there, name, None)
    patch.setattr(
        getattr(there, *owner) if owner else there, name, broken if callable(before) or owner else Broken()
    )


def program() -> list[object]:
    """Use locks, conditions, threads and pools; return what was seen."""
    seen: list[object] = []
    outer, inner, again = Lock("outer"), Lock("inner"), RLock("again")
    hold(outer, inner, again, again)
    hold(inner, outer)
    outer.acquire()
    inner.acquire()
    outer.release()  # out of turn
    seen.append(outer.acquire(blocking=False))
    inner.release()
    outer.release()
    ready: list[int] = []
    condition, taken = Condition(name="ready"), threading.Event()

    def wait() -> None:
        with condition:
            taken.set()
            condition.wait_for(lambda: bool(ready))

    waiting = threading.Thread(target=wait)
    waiting.start()
    taken.wait()
    with condition:
        ready.append(1)
        condition.notify()
    waiting.join()
    blocked = threading.Thread(target=lambda: seen.append(inner.acquire(timeout=0.06)))
    with inner:
        blocked.start()
        blocked.join()
    forgetful = threading.Thread(target=Lock("forgotten").acquire)
    forgetful.start()
    forgetful.join()
    with ThreadPoolExecutor(2) as pool:
        seen.extend(done.result() for done in as_completed([pool.submit(hold, outer, inner)]))
    return seen


@pytest.mark.parametrize("part", HOOKS)
def test_a_fault_in_a_hook_switches_the_checker_off_and_changes_nothing_else(
    part: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the program sees is what it sees without; one line says so."""
    expected = program()
    break_part(monkeypatch, part)
    with session(on=RECORD) as opened:
        assert expected == program()
        assert expected == program()
        monkeypatch.undo()
        found = opened.findings
        hold(Lock("late"), Lock("later"))
        threading.Thread(target=Lock("left").acquire).start()

    assert ["ZeroDivisionError: on purpose"] == list(dict.fromkeys(opened.faults))
    assert found == opened.findings
    assert SAID == capsys.readouterr().err


def test_a_fault_where_the_trace_is_written_ends_the_trace_and_the_checks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The program goes on, and the process can end."""
    expected = program()
    with recording(tmp_path / "locks.lct") as opened:
        break_part(monkeypatch, "traces.writer.TraceWriter.event")
        assert expected == program()
        monkeypatch.undo()

    assert ["ZeroDivisionError: on purpose"] == opened.faults
    assert SAID == capsys.readouterr().err


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
def test_a_forked_process_goes_on_after_a_fault_in_the_hook_of_the_fork(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its locks are free, and the recorder of its parent is not used."""
    with recording(tmp_path / "locks.lct"):
        break_part(monkeypatch, "sessions.recording.TraceRecorder.forget")
        child = os.fork()
        if child == 0:
            hold(Lock("first"), Lock("second"))
            os._exit(0 if runtime.recorder is None else 1)
        _, status = os.waitpid(child, 0)

    assert 0 == os.waitstatus_to_exitcode(status)


def test_a_fault_in_a_report_is_said_and_has_its_own_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The program has run by then."""
    program_file = tmp_path / "program.py"
    program_file.write_text("print('ran')\n", "utf-8")
    monkeypatch.setattr(command, "write_reports", broken)
    code = command.main(["run", str(program_file)])
    said = capsys.readouterr()

    assert (FAULT, "ran\n") == (code, said.out)
    assert "lockcheck: a fault of its own, please report: ZeroDivisionError: on purpose\n" in said.err


def test_a_fault_at_the_end_of_a_process_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What else is to happen at its end happens."""
    ends: list[Callable[[], None]] = []
    monkeypatch.setattr(atexit, "register", ends.append)
    ambient_runs._at_end(broken)
    ends[0]()

    assert "lockcheck: a fault of its own, please report: ZeroDivisionError: on purpose\n" == (
        capsys.readouterr().err
    )


def test_an_error_that_a_signal_handler_raises_in_a_check_is_the_programs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is no fault, and not swallowed."""
    import signal

    class TooSlowError(Exception):
        """The program has its own limit."""

    def handler(*_: object) -> None:
        raise TooSlowError

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        monkeypatch.setattr(
            sys.modules["licorne.lockcheck.checking.slow_path"],
            "check_acquisition",
            lambda *_: signal.raise_signal(signal.SIGUSR1),
        )
        with session() as opened, pytest.raises(TooSlowError):
            hold(Lock("any"))
    finally:
        signal.signal(signal.SIGUSR1, before)

    assert [] == opened.faults


def test_a_stack_that_is_too_deep_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check is left out."""

    def too_deep(*_: object) -> None:
        raise RecursionError

    with session() as opened:
        with monkeypatch.context() as patch:
            patch.setattr(sys.modules["licorne.lockcheck.checking.slow_path"], "check_acquisition", too_deep)
            hold(Lock("any"))
        hold(Lock("any"))

    assert ([], 1) == (opened.faults, opened.skipped)
