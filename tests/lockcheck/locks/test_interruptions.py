"""Signals, finalizers and forks come at any moment: the checker stays whole, and so does what it checks."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import FrameType

import pytest
from support.lockcheck.lock_corpus import RECORD, hold
from support.waiting import WAIT_SECONDS

from licorne import lockcheck
from licorne.lockcheck import Finding, Kind, Level, Lock, Order, RLock, RWLock, held, session
from licorne.lockcheck.checking import acquisition_checks
from licorne.lockcheck.sessions.session import Session

HERE = str(Path(lockcheck.__file__).parent)
LEVELS = pytest.mark.parametrize("level", [Level.ORDER, Level.FULL])


@contextmanager
def interrupted(before: int, handler: Callable[[], None]) -> Iterator[list[int]]:
    """Run a handler before an instruction of the checker, as a signal or a finalizer may run.

    Yields a list that has a number for each instruction of the checker that has run.
    """
    ran: list[int] = []

    def instruction(frame: FrameType, event: str, _: object) -> object:
        if event == "opcode":
            ran.append(frame.f_lasti)
            if len(ran) == before:
                handler()
        return instruction

    def call(frame: FrameType, *_: object) -> object:
        if not frame.f_code.co_filename.startswith(HERE):
            return None
        frame.f_trace_opcodes = True
        return instruction

    outer = sys.gettrace()
    sys.settrace(call)  # type: ignore[arg-type] # `object` stands for the function itself
    try:
        yield ran
    finally:
        sys.settrace(outer)


def is_free(lock: AbstractContextManager[object]) -> bool:
    """Return whether another thread can take a lock."""
    found: list[bool] = []

    def take() -> None:
        found.append(lock.acquire(blocking=False))  # type: ignore[attr-defined] # it is an exclusive one
        if found[0]:
            lock.release()  # type: ignore[attr-defined] # likewise

    thread = threading.Thread(target=take)
    thread.start()
    thread.join(WAIT_SECONDS)
    return found == [True]


@LEVELS
@pytest.mark.parametrize("same", [False, True], ids=["another lock", "the same lock"])
def test_a_handler_may_take_a_lock_before_any_instruction_of_a_check(level: Level, *, same: bool) -> None:
    """An exclusive lock is taken and released, within another one; the handler does so too."""
    with session(level=level, on=RECORD) as opened:
        outer, inner, other = Lock("outer"), RLock("inner"), RLock("other")
        in_handler = inner if same else other
        before, ran = 0, [0]

        def handler() -> None:
            with in_handler:
                pass

        hold(outer, in_handler)
        with interrupted(0, handler), outer, inner:  # from Python 3.13 on code is traced when it runs again
            pass
        while before <= len(ran):
            before += 1
            with interrupted(before, handler) as ran, outer, inner:
                pass
            assert () == held(), before

        assert before > 50
        assert all(map(is_free, (outer, inner, other)))
    assert ([], []) == (opened.faults, [one.kind for one in opened.findings if one.kind is not Kind.CYCLE])


@LEVELS
def test_a_handler_may_take_a_lock_while_a_read_write_lock_is_checked(level: Level) -> None:
    """Another one than that; the lock itself is not recursive."""
    with session(level=level, on=RECORD) as opened:
        lock, other = RWLock("lock"), RWLock("other")

        def handler() -> None:
            with other.write():
                pass

        hold(lock.read(), other.write())
        with interrupted(0, handler), lock.read():  # from Python 3.13 on code is traced when it runs again
            pass
        before, ran = 0, [0]
        while before <= len(ran):
            before += 1
            with interrupted(before, handler) as ran, lock.read():
                pass
            assert () == held(), before

        assert before > 50
        assert (None, frozenset()) == lock.holders() == other.holders()
    assert ([], ()) == (opened.faults, opened.findings)


def new_edge(before: int) -> tuple[Session, int]:
    """Check edges that nobody has seen before, and take another lock meanwhile.

    Returns:
        The session, and how many instructions it took.
    """
    with session(Order("outer < inner"), on=RECORD) as opened:
        outer, inner, other = Lock("outer"), Lock("inner"), Lock("other")

        def handler() -> None:
            with other:
                pass

        with interrupted(before, handler) as ran, outer, inner:
            pass
        assert () == held()
        assert {"outer[W] -> inner[W]"} <= set(map(str, opened.graph.classes))
    return opened, len(ran)


def test_a_handler_may_take_a_lock_anywhere_in_the_check_of_what_is_new() -> None:
    """There it is not looked at, and counted as such; what is new is checked all the same."""
    before, ran, skipped = 1, 1, 0
    while before <= ran:
        opened, ran = new_edge(before)
        before, skipped = before + 11, skipped + opened.skipped

        assert ([], ()) == (opened.faults, opened.failures), before
    assert skipped > 20


def test_a_signal_in_the_middle_of_a_check_is_handled_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """A real one: its handler takes a lock, which is not checked."""
    plain = acquisition_checks._keeps_leaf

    def with_signal(*given: object) -> bool:
        signal.raise_signal(signal.SIGUSR1)
        return plain(*given)  # type: ignore[arg-type] # passed on

    with session() as opened:
        lock, in_handler, taken = Lock("lock"), RWLock("in handler"), []

        def handler(*_: object) -> None:
            with in_handler.write():
                taken.append(held())

        before = signal.signal(signal.SIGUSR1, handler)
        try:
            monkeypatch.setattr(acquisition_checks, "_keeps_leaf", with_signal)
            hold(lock)
        finally:
            signal.signal(signal.SIGUSR1, before)

    assert [1] == [len(names) for names in taken]
    assert ([], 1) == (opened.faults, opened.skipped)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
def test_in_a_child_the_threads_that_it_does_not_have_did_not_end_with_their_locks() -> None:
    """They go on in the parent, and release them there."""
    holds, goes_on = threading.Event(), threading.Event()
    with session(level=Level.ORDER, on=RECORD) as opened:
        lock = Lock("a")

        def work() -> None:
            with lock:
                holds.set()
                goes_on.wait()

        thread = threading.Thread(target=work)
        thread.start()
        holds.wait()
        child = os.fork()
        if child == 0:
            os._exit(len(leaks_in(opened)))
        goes_on.set()
        thread.join()

    assert 0 == os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert [] == leaks_in(opened)


def leaks_in(opened: Session) -> list[Finding]:
    """Return the leaks alone: where every lock is checked, the wait under the lock is found as well."""
    return [one for one in opened.findings if one.kind is Kind.LEAK]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
def test_a_child_that_is_forked_while_others_learn_can_go_on_checking() -> None:
    """Nothing inside the checker is left locked by a thread that the child does not have."""
    with session(on=RECORD) as opened:
        stop = threading.Event()

        def learn() -> None:
            while not stop.is_set():
                hold(Lock("outer"), Lock("inner"))

        threads = [threading.Thread(target=learn) for _ in range(2)]
        for thread in threads:
            thread.start()
        codes = [os.waitstatus_to_exitcode(os.waitpid(_forked_checks(), 0)[1]) for _ in range(10)]
        stop.set()
        for thread in threads:
            thread.join()

    assert {0} == set(codes)
    assert [] == opened.faults


def _forked_checks() -> int:
    """Fork a child that learns an edge; it ends with code 0 if that works, and within ten seconds."""
    child = os.fork()
    if child == 0:
        signal.alarm(WAIT_SECONDS)  # a signal without a handler ends the child
        hold(Lock("outer"), RWLock("inner").read())
        os._exit(0 if () == held() else 1)
    return child
