"""The checker does not hurt: not when it errs, is entered again, outlived, forked, or used for long."""

from __future__ import annotations

import gc
import logging
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from support.lockcheck.broken_parts import broken
from support.lockcheck.lock_corpus import RECORD, hold
from support.programs import run_python
from support.waiting import WAIT_SECONDS

from licorne.lockcheck import (
    DeadlockPossibleError,
    Kind,
    Lock,
    LockOrderError,
    LockOrderWarning,
    LockUsageError,
    Order,
    RLock,
    Rung,
    RWLock,
    held,
    session,
    tree,
    unit,
)
from licorne.lockcheck.checking import acquisition_checks
from licorne.lockcheck.checking.graph import OCCURRENCES_MAX
from licorne.lockcheck.checking.knowledge import EXECUTIONS_MAX
from licorne.lockcheck.holding.runtime import local, runtime
from licorne.lockcheck.locks.rwlock import PlainRWLock


def both_orders() -> None:
    """Take two locks in both orders, as two executions."""
    first, second = Lock("first"), Lock("second")
    with unit("one"):
        hold(first, second)
    with unit("two"):
        hold(second, first)


def test_an_error_of_the_checker_is_counted_and_the_program_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock is taken and released as if it were not checked."""
    monkeypatch.setattr(acquisition_checks, "_keeps_leaf", broken)
    with session() as opened:
        lock = Lock("any")
        with lock:
            assert not lock.acquire(blocking=False)
        assert lock.acquire(blocking=False)
        lock.release()

    assert ["ZeroDivisionError: on purpose"] == opened.faults
    assert "Faults of the checker: 1, the first: ZeroDivisionError" in opened.report_text()


def test_an_error_that_cannot_be_shown_is_counted_like_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be of the program: a key raises what it likes where it is compared."""

    class SilentError(Exception):
        def __str__(self) -> str:
            raise ZeroDivisionError

    def broken(*_: object) -> None:
        raise SilentError

    monkeypatch.setattr(acquisition_checks, "_keeps_leaf", broken)
    with session() as opened:
        hold(Lock("any"))

    assert ["SilentError: <SilentError, which raises ZeroDivisionError when it is shown>"] == opened.faults


AT_EXIT = """
import os
from licorne.lockcheck import Lock, session, sessions
from licorne.lockcheck.holding.runtime import _ThreadEnd, local, runtime
session().__enter__()
lock = Lock("held to the end")
lock.acquire()
os.goes_last = _ThreadEnd(local.execution, runtime), sessions  # a failed test leaves such things behind
"""


def test_what_goes_after_the_modules_at_exit_says_nothing() -> None:
    """Nobody is there any more to hear that a thread ended with its locks."""
    ran = run_python("-c", AT_EXIT)

    assert (0, "", "") == (ran.returncode, ran.stdout, ran.stderr)


def test_a_key_that_cannot_be_compared_or_shown_does_not_hurt() -> None:
    """Keys are the program's: they may raise whatever they like."""

    class Key:
        """A key that nothing can be done with."""

        def __lt__(self, other: object) -> bool:
            raise ValueError("on purpose")

        __repr__ = __lt__  # type: ignore[assignment] # on purpose

    from licorne.lockcheck import key

    with session(Order("a", same={"a": key()}), on=RECORD) as opened:
        hold(RWLock("a", key=Key()).write(), RWLock("a", key=Key()).write())

    assert opened.faults


class Finalized:
    """Something whose finalizer takes a lock."""

    def __init__(self, lock: PlainRWLock) -> None:
        self.lock = lock
        self.itself = self

    def __del__(self) -> None:
        with self.lock.write():
            pass


def test_a_finalizer_may_take_a_lock_in_the_middle_of_a_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not checked, and counted as such; nothing waits for itself."""
    with session() as opened:
        lock, inner, outer = RWLock("finalizer"), Lock("inner"), Lock("outer")
        plain = acquisition_checks._keeps_leaf

        def collects(*given: object) -> bool:
            Finalized(lock)
            gc.collect()
            return plain(*given)  # type: ignore[arg-type] # passed on

        monkeypatch.setattr(acquisition_checks, "_keeps_leaf", collects)
        hold(outer, inner)

    assert ([], 2) == (opened.faults, opened.skipped)


def test_executions_of_threads_that_ended_are_forgotten() -> None:
    """However many there were."""
    with session():
        lock = Lock("any")
        before = len(runtime.all_executions())
        for _ in range(50):
            thread = threading.Thread(target=hold, args=(lock,))
            thread.start()
            thread.join()

        assert before == len(runtime.all_executions())


def test_sessions_nest_and_the_innermost_one_is_active() -> None:
    """What each finds is its own; afterwards the outer one is active again."""
    with session(on=RECORD, name="outer") as outer:
        with session(on=RECORD, name="inner") as inner:
            both_orders()
        assert 0 == len(outer.findings)
        both_orders()

    assert [["inner"], ["outer"]] == [
        [finding.test for finding in opened.findings if finding.rung is Rung.R2] for opened in (inner, outer)
    ]


def test_what_is_held_when_a_session_begins_counts_in_it() -> None:
    """The lock was taken before any session was open."""
    with session(on=RECORD):
        outer, inner = Lock("inner"), Lock("outer")
        with outer, session(Order("outer < inner"), on=RECORD) as opened, inner:
            assert ("inner #", "outer #") == tuple(name.rstrip("0123456789") for name in held())

    assert [Kind.ORDER] == [finding.kind for finding in opened.findings if finding.rung is Rung.R0]


@pytest.mark.lockcheck(off=True)  # else the session of the test run goes on looking
def test_locks_live_on_when_their_session_has_ended() -> None:
    """They still work, unchecked."""
    with session():
        lock, shared = RLock("any"), RWLock("shared")
    with lock, lock, shared.read():
        pass

    with lock:
        pass
    assert () == held()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
def test_a_forked_child_does_not_know_the_threads_of_its_parent() -> None:
    """What they held when it was forked nobody holds there."""
    with session(on=RECORD):
        lock, taken, go_on = Lock("held elsewhere"), threading.Event(), threading.Event()

        def keep() -> None:
            with lock:
                taken.set()
                go_on.wait(WAIT_SECONDS)

        thread = threading.Thread(target=keep)
        thread.start()
        taken.wait(WAIT_SECONDS)
        child = os.fork()
        if child == 0:
            os._exit(0 if [local.execution] == runtime.all_executions() else 1)
        _, status = os.waitpid(child, 0)
        go_on.set()
        thread.join()

    assert 0 == os.waitstatus_to_exitcode(status)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"order": "a < b"}, "expected an Order, got 'a < b'"),
        ({"on": {"R0": "warn"}}, "expected a rung with an action, got 'R0': 'warn'"),
        ({"on": {Rung.R0: "explode"}}, "expected a rung with an action, got <Rung.R0: 0>: 'explode'"),
    ],
)
def test_a_session_refuses_what_means_nothing(arguments: dict[str, Any], message: str) -> None:
    """Otherwise it would be active, and not check that."""
    with pytest.raises(LockUsageError, match=message):
        session(**arguments)


def test_an_order_may_be_declared_while_a_session_is_open() -> None:
    """As for the module of the order, which makes locks too; what is no order changes nothing."""
    with session(Order("a < b"), on=RECORD) as opened:
        with pytest.raises(LockUsageError, match="expected an Order, got 'b < a'"):
            opened.order = "b < a"  # type: ignore[assignment] # on purpose
        hold(Lock("a"), Lock("b"))
        before = opened.failures
        opened.order = Order("b < a")
        hold(Lock("a"), Lock("b"))

    assert () == before
    assert [Kind.ORDER] == [finding.kind for finding in opened.failures]


def test_a_checked_lock_that_is_refused_leaves_nothing_to_complain_of() -> None:
    """What was half made is thrown away in silence."""
    with session(), pytest.raises(LockUsageError, match="got 'last'"):
        RWLock("queue", policy="last")  # type: ignore[arg-type] # on purpose


def test_a_policy_may_raise_warn_or_log(caplog: pytest.LogCaptureFixture) -> None:
    """Before the lock is taken; a warning has the line of the program."""
    with (
        session(on={Rung.R2: "raise"}),
        pytest.raises(DeadlockPossibleError, match="Possible deadlock, not seen yet"),
    ):
        both_orders()
    with session(on={Rung.R2: "warn"}), pytest.warns(LockOrderWarning) as warned:
        both_orders()
    with session(on={Rung.R2: "log"}), caplog.at_level(logging.ERROR, "lockcheck"):
        both_orders()

    assert "lock_corpus.py" in warned[0].filename
    assert "how it comes to a standstill" in caplog.text


def test_a_thousand_locks_inside_each_other_are_checked_against_all_that_are_held() -> None:
    """The last two are in the wrong order; nothing else is objected to."""
    with session(Order("queue", same={"queue": tree()}), level="order", on=RECORD) as opened:
        queues = [Lock("queue", key="root" + ".q" * depth) for depth in range(1000)]
        hold(*queues)
        assert [] == list(opened.findings)
        hold(*queues[:-2], queues[-1], queues[-2])

    assert [Kind.SAME_CLASS] == [finding.kind for finding in opened.findings]


def test_what_is_found_again_is_counted_and_not_repeated() -> None:
    """One report a fingerprint."""
    with session(Order("outer < inner"), on=RECORD) as opened:
        outer, inner = Lock("outer"), Lock("inner")
        for _ in range(5):
            hold(inner, outer)

    (finding,) = [finding for finding in opened.findings if finding.rung is Rung.R0]
    assert 5 == finding.count


def test_a_leak_is_raised_at_the_latest_when_the_session_ends() -> None:
    """Where a thread ends nobody can catch an error."""
    opened = session().__enter__()
    thread = threading.Thread(target=Lock("forgotten").acquire, name="forgetful")
    thread.start()
    thread.join()

    with pytest.raises(LockOrderError, match="forgetful ended while it held"):
        opened.__exit__(None, None, None)


def test_an_execution_that_left_a_lock_behind_is_checked_when_it_goes_on() -> None:
    """It holds the lock still."""
    with session(Order("outer < inner"), on=RECORD) as opened:
        inner = Lock("inner")
        with unit("one"):
            inner.acquire()
        with unit("one"):
            hold(Lock("outer"))

    assert [Kind.LEAK, Kind.ORDER] == [finding.kind for finding in opened.findings]


def test_an_execution_needs_a_session_and_no_held_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise it would take over what another one holds."""
    with monkeypatch.context() as context:
        context.setattr(runtime, "watch", None)
        with pytest.raises(LockUsageError, match="needs a session"), unit("one"):
            pass
    with session():
        lock = Lock("any")
        with lock, pytest.raises(LockUsageError, match="holds any #"), unit("one"):
            pass


def test_an_execution_runs_once_at_a_time() -> None:
    """Two threads cannot be one execution."""
    with (
        session(),
        unit("one"),
        pytest.raises(LockUsageError, match="the execution 'one' runs already"),
        unit("one"),
    ):
        pass


def test_a_lock_that_another_execution_released_is_free_for_its_taker() -> None:
    """The wrong release is reported once, and nothing follows from it."""
    with session(on=RECORD, blocking={"handed over": {"join"}}) as opened:
        lock = Lock("handed over")
        lock.acquire()
        thread = threading.Thread(target=lock.release)
        thread.start()
        thread.join()
        with lock:
            pass

    assert [Kind.WRONG_RELEASE] == [finding.kind for finding in opened.findings]


def test_members_taken_without_with_are_a_walk_too() -> None:
    """By `acquire` and `release`."""
    with session(on=RECORD) as opened:
        outer, members = RWLock("outer"), [RWLock("member", key=number) for number in range(4)]
        with outer.read():
            for member in members:
                member.acquire_read()
                member.release_read()

    assert Kind.ITERATION in {finding.kind for finding in opened.findings}


def test_many_short_tasks_neither_fill_the_graph_nor_the_clocks() -> None:
    """What is left out is counted; of tasks that nest nothing, the first ones are known and no other one."""
    with session() as opened, ThreadPoolExecutor(2) as pool:
        outer, inner = Lock("outer"), Lock("inner")
        for _ in range(EXECUTIONS_MAX):
            pool.submit(hold, inner).result()
        before = len(local.execution.segment.seen)
        for _ in range(200):
            pool.submit(hold, inner).result()
        assert before == len(local.execution.segment.seen)
        for _ in range(200):
            pool.submit(hold, outer, inner).result()

    assert OCCURRENCES_MAX == len(opened.graph)
    assert 200 - OCCURRENCES_MAX == opened.graph.unexamined
    assert "136 repetitions" in opened.report_text()
