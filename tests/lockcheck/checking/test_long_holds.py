"""Locks that are held for too long: reported while they are, with the place of the holder."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path

import pytest
from support.lockcheck.deadlocked import heard
from support.lockcheck.interpreter_lock import EITHER_WAY, take_for_granted
from support.lockcheck.pytest_runs import run_module
from support.waiting import WAIT_SECONDS, wait_until

from licorne.lockcheck import (
    Finding,
    Kind,
    Lock,
    LockOrderError,
    LockOrderWarning,
    LockUsageError,
    Rung,
    RWLock,
    session,
)
from licorne.lockcheck.checking.policy import FindingAction
from licorne.lockcheck.commands.command import main
from licorne.lockcheck.findings.terms import FOUND, USAGE, Environment
from licorne.lockcheck.holding.runtime import runtime
from licorne.lockcheck.sessions.session import Session

LIMIT_SECONDS = 0.002
NOT_LONG_SECONDS = 600.0
MAY_WAIT = {"slow": ["*"], "other": ["*"]}
LOG: Mapping[Rung, FindingAction] = {Rung.R0: "log"}


def long_holds(opened: Session) -> list[Finding]:
    """Return what was found of long holds."""
    assert [] == opened.faults
    return [finding for finding in opened.findings if finding.kind is Kind.LONG_HOLD]


def is_slow(reported: threading.Event) -> None:
    """Go on when it has been reported."""
    assert reported.wait(WAIT_SECONDS)


@EITHER_WAY
@pytest.mark.parametrize("how", ["with", "acquire", "read"])
def test_a_long_hold_is_reported_while_it_lasts_with_where_the_holder_is(
    how: str, monkeypatch: pytest.MonkeyPatch, *, has_interpreter_lock: bool
) -> None:
    """Where the lock was taken, and where the thread is now, if others can look there; once a hold."""
    take_for_granted(monkeypatch, has_interpreter_lock=has_interpreter_lock)
    with (
        heard("long hold") as reported,
        session(on=LOG, max_hold_seconds=LIMIT_SECONDS, blocking=MAY_WAIT) as opened,
    ):
        if how == "with":
            with Lock("slow"):
                is_slow(reported)
        elif how == "read":
            with RWLock("slow").read():
                is_slow(reported)
        else:
            lock = Lock("slow")
            lock.acquire()
            is_slow(reported)
            lock.release()

    (finding,) = long_holds(opened)
    (edge,) = finding.edges
    assert (Rung.R0, "slow is held for at most 0.002 s", 1) == (finding.rung, finding.clause, finding.count)
    assert (
        test_a_long_hold_is_reported_while_it_lasts_with_where_the_holder_is.__name__
        in edge.hold_stack[0].function
    )
    assert has_interpreter_lock == ("is_slow" in {frame.function for frame in edge.want_stack})
    assert has_interpreter_lock == ("MainThread was at" in opened.report_text())


def test_each_hold_counts_and_the_report_is_one() -> None:
    """Two threads one after the other."""
    with session(on=LOG, max_hold_seconds=LIMIT_SECONDS, blocking=MAY_WAIT) as opened:
        lock = Lock("slow")
        for times in (1, 2):
            with lock:
                until_reported(opened, times)

    (finding,) = long_holds(opened)
    assert 2 == finding.count


def test_a_limit_may_be_that_of_a_class() -> None:
    """Others have none, or that of all."""
    with heard("long hold") as reported, session(on=LOG, blocking=MAY_WAIT) as opened:
        opened.max_hold("slow", NOT_LONG_SECONDS)
        opened.max_hold("other", LIMIT_SECONDS)
        with Lock("slow"), Lock("other"):
            is_slow(reported)

    assert ["other #"] == [finding.edges[0].held.rstrip("0123456789") for finding in long_holds(opened)]  # type: ignore[union-attr] # it holds one


def test_short_holds_are_not_reported() -> None:
    """However many."""
    with session(max_hold_seconds=NOT_LONG_SECONDS) as opened:
        lock = Lock("slow")
        for _ in range(1000):
            with lock:
                pass

    assert [] == long_holds(opened)


def test_where_findings_are_raised_a_long_hold_warns_and_raises_at_the_end_if_warnings_do() -> None:
    """Nothing can be raised in the middle of what the holder does."""
    with pytest.raises(LockOrderError, match="holds it still"):
        hold_too_long()
    with pytest.warns(LockOrderWarning, match="holds it still") as warned:
        hold_too_long()

    assert warned[0].filename.endswith(".py")


def hold_too_long() -> None:
    """Hold a lock until that is reported, and end the session."""
    with session(max_hold_seconds=LIMIT_SECONDS, blocking=MAY_WAIT) as opened, Lock("slow"):
        until_reported(opened, 1)


def until_reported(opened: Session, times: int) -> None:
    """Go on when so many long holds were reported."""
    wait_until(lambda: sum(one.count for one in long_holds(opened)) >= times)


def test_nobody_watches_where_no_limit_is_set() -> None:
    """And nobody does any more when the session is over."""

    def watchers() -> list[str]:
        return [thread.name for thread in threading.enumerate() if thread.name.startswith("lockcheck")]

    with session():
        without = watchers()
    with session(max_hold_seconds=NOT_LONG_SECONDS):
        with_one = watchers()

    assert ([], ["lockcheck long holds"], []) == (without, with_one, watchers())
    assert all(execution.name != "lockcheck long holds" for execution in runtime.all_executions())


def test_limits_that_mean_nothing_are_refused() -> None:
    """No time, and a level that notes none."""
    with pytest.raises(LockUsageError, match="the level order does not note"):
        session(level="order", max_hold_seconds=1)
    with pytest.raises(LockUsageError, match="cannot be held for at most 0 s"):
        session(max_hold_seconds=0)
    for text in ("soon", "-1", "inf", "nan"):
        with pytest.raises(LockUsageError, match="expected a number of seconds"):
            Environment.read({"LOCKCHECK_MAX_HOLD": text})
    assert 0.5 == Environment.read({"LOCKCHECK_MAX_HOLD": "0.5"}).max_hold_seconds


PROGRAM = """
import time
from licorne.lockcheck import Lock
with Lock("slow"):
    until = time.monotonic() + 60
    from licorne.lockcheck.holding.runtime import runtime
    while not runtime.watch.findings and time.monotonic() < until:
        pass
"""


def test_a_program_is_run_with_a_limit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It fails, as for every broken declaration."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")

    assert FOUND == main(["run", "--max-hold=0.002", str(program)])
    assert "slow is held for at most 0.002 s" in capsys.readouterr().err
    assert USAGE == main(["run", "--max-hold=0.002", "--level=order", str(program)])


TESTS = """
import time
from licorne.lockcheck import Lock

def test_slow(lockcheck):
    until = time.monotonic() + 60
    with Lock("slow"):
        while not lockcheck.findings and time.monotonic() < until:
            pass
"""


def test_a_test_fails_that_holds_a_lock_for_too_long(tmp_path: Path) -> None:
    """The option of pytest goes before the line of its configuration."""
    options = ("--lockcheck-max-hold=0.002", "-o", "lockcheck_max_hold=600")
    code, said = run_module(tmp_path, TESTS, "--lockcheck=full", *options)

    assert 1 == code
    assert "slow is held for at most 0.002 s" in said
