"""A fault of the checker in any of its hooks switches it off, is said once, and the program goes on."""

from __future__ import annotations

import concurrent.futures
import importlib
import queue
import sys
import threading
from pathlib import Path
from typing import Final

import pytest
from support.lockcheck.broken_parts import break_part, broken
from support.lockcheck.hooked_program import (
    LEVELS,
    functions_called,
    functions_of_setup,
    place_of,
    program,
    run_with_fault,
    set_up_with_fault,
)
from support.lockcheck.lock_corpus import RECORD, hold

from licorne.lockcheck import Lock, adopt, session
from licorne.lockcheck.commands import command
from licorne.lockcheck.findings.terms import FAULT
from licorne.lockcheck.holding.runtime import runtime

pytestmark = pytest.mark.lockcheck(off=True)
"""Sessions are opened here."""

FAULT_TEXT: Final = "ZeroDivisionError: on purpose"
SAID: Final = f"lockcheck: switched off by a fault of its own, please report: {FAULT_TEXT}\n"
FEW: Final = 20
"""Each level calls more functions than these that those below it do not call."""

ENTRIES: Final = (
    "locks/",
    "adoption/adopted.py ",
    "adoption/installation.py Lock",
    "adoption/installation.py RLock",
    "checking/watch.py current",
    "checking/slow_path.py take_slow_path",
    "checking/slow_path.py here",
    "checking/slow_path.py entered",
    "checking/slow_path.py release_held",
    "checking/waiting.py LockWait.__init__",
    "checking/waiting.py refuse_own",
    "checking/waiting.py wait_in_slices",
    "checking/waiting.py wait_for_lock",
    "checking/watch.py Watch.guarded",
    "checking/watch.py Watch.note_fault",
    "environment/settings.py ",
    "findings/foreign.py ByIdentity.put.<locals>.<lambda>",
    "findings/terms.py level_of",
    "holding/chains.py Acquisition.__init__",
    "holding/chains.py Execution.__init__",
    "holding/chains.py LockIdentity.__init__",
    "holding/runtime.py _Local.__init__",
    *("holding/runtime.py handling_functions", "holding/runtime.py handled_by"),
    "holding/runtime.py raised_by_handler",
    "holding/runtime.py fails_open",
    "holding/runtime.py note_fault",
    "checking/slow_path.py many_members",
    "holding/stacks.py caller",
    "holding/stacks.py is_ours",
    "interception/hooks.py _Calls.__init__",
    "interception/hooks.py _Raised.__init__",
    "interception/hooks.py _after_fault",
    "interception/hooks.py _is_of_original",
    "interception/hooks.py _without_hook",
    "interception/hooks.py guarded.<locals>",
    "interception/hooks.py passed_on",
    *("adoption/semaphores.py _light_", "interception/events.py _light", "interception/queues.py _light_"),
    "interception/futures.py _light_result",
    "interception/found_late.py _steps_of",
    "interception/futures.py _as_completed",
    "interception/joins.py as_completed",
    "interception/thread_pools.py _followed",
    "interception/joins.py submit.<locals>.run",
    "interception/task_ends.py as_task",
    "interception/futures.py _submit.<locals>.run",
)
"""What is no hook, by how the place begins: the locks themselves and what makes them; the guards of hooks;
and functions of a few lines that call what is guarded, and what the program has handed over."""

BEGINNINGS: Final = (
    "adoption/installation.py Adoption.",
    "adoption/installation.py adopt",
    "adoption/naming.py Scope.of",
    "checking/policy.py Policy.__post_init__",
    "findings/foreign.py ByIdentity.put.<locals>.<lambda>",
    "findings/terms.py level_of",
    "holding/runtime.py fails_open",
    "interception/hooks.py Hooks.install",
    "interception/hooks.py Hooks.uninstall",
    "interception/hooks.py Hooks._restore",
    "sessions/session.py Session.",
    "sessions/session.py _activate",
)
"""What the program calls itself to begin and to end, and the guards of what that calls."""


@pytest.mark.parametrize("level", LEVELS)
def test_a_fault_in_any_function_of_the_checker_changes_nothing_but_that_it_is_switched_off(
    level: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the program sees is what it sees without; one line says so.

    Each function is broken at the lowest level at which it is called.
    """
    expected = program()
    below = {code for lower in LEVELS[: LEVELS.index(level)] for code in functions_called(lower)}
    called = [code for code in functions_called(level) if code not in below]
    broken = [code for code in called if not place_of(code).startswith(ENTRIES)]
    capsys.readouterr()
    wrong: list[object] = []
    for code in broken:
        seen, opened, failed = run_with_fault(level, code)
        said = capsys.readouterr().err
        if failed and (seen, opened.faults[:1], said) != (expected, [FAULT_TEXT], SAID):
            wrong.append((place_of(code), seen, opened.faults[:1], said))

    assert ([], True) == (wrong, len(broken) > FEW)


def replaceable() -> list[object]:
    """Return what sessions replace in the standard library, and what is in force."""
    threads, pools = threading, concurrent.futures
    return [
        threads.Thread.start, threads.Thread.join, threads.Condition.notify, threads.Event.wait,
        threads.Semaphore.acquire, queue.Queue.put, pools.Future.result, pools.wait,
        pools.ThreadPoolExecutor.submit, importlib.import_module("_multiprocessing").SemLock,
        runtime.watch,
    ]  # fmt: skip


@pytest.mark.parametrize("level", LEVELS)
def test_a_fault_where_a_session_begins_or_ends_switches_the_checker_off(
    level: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program sees what it sees without, and afterwards all functions are the original ones."""
    monkeypatch.setattr(
        threading, "Lock", threading.Lock
    )  # a fault may leave the factories, which do nothing
    monkeypatch.setattr(threading, "RLock", threading.RLock)
    expected, before = program(), replaceable()
    wrong: list[object] = []
    below = {code for lower in LEVELS[: LEVELS.index(level)] for code in functions_of_setup(lower)}
    called = [code for code in functions_of_setup(level) if code not in below]
    broken = [
        code
        for code in called
        if not place_of(code).startswith(BEGINNINGS) and "__init__" not in code.co_name
    ]
    capsys.readouterr()
    for code in broken:
        seen, opened = set_up_with_fault(level, code)
        said = capsys.readouterr().err
        outcomes: tuple[tuple[set[str], str], ...] = (({FAULT_TEXT}, SAID), (set(), ""))
        if seen != expected or (set(opened.faults), said) not in outcomes:
            wrong.append((place_of(code), seen, opened.faults, said))
        assert before == replaceable(), place_of(code)
        runtime.early_fault = None  # of the end of adoption, which the next session would note

    assert ([], True) == (wrong, bool(broken))


def test_a_fault_before_a_session_is_open_is_that_of_the_next_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A command adopts locks first: without this it would report that no lock was seen, and be content."""
    monkeypatch.setattr(threading, "Semaphore", None)
    with adopt(), session() as opened:
        monkeypatch.undo()
        assert threading.Lock().acquire()
    assert [] != opened.faults
    assert "switched off by a fault of its own, please report: " in capsys.readouterr().err
    with adopt(), session() as later:
        pass
    assert [] == later.faults


@pytest.mark.parametrize("level", LEVELS)
def test_what_the_called_functions_refuse_is_no_fault(level: str) -> None:
    """The program in which all goes well does also what is refused."""
    seen, opened = program(), run_with_fault(level, program.__code__)

    assert (seen, []) == (opened[0], opened[1].faults)


def test_nothing_is_checked_after_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it left behind could mislead later checks."""
    with session(on=RECORD) as opened:
        break_part(monkeypatch, "checking.slow_path.check_acquisition")
        hold(Lock("first"), Lock("second"))
        monkeypatch.undo()
        found = opened.findings
        hold(Lock("late"), Lock("later"))
        threading.Thread(target=Lock("left").acquire).start()

    assert (found, 1) == (opened.findings, len(opened.faults))


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
