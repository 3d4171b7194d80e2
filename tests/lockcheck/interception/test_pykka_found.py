"""Who hears of Pykka's asks, and when: before and after Pykka was imported, or without it."""

from __future__ import annotations

import gc
import threading
from pathlib import Path
from typing import Any

import pykka
import pytest
from support.lockcheck.deadlocked import checked, deadlocks
from support.lockcheck.pykka_clerks import Clerk
from support.lockcheck.pytest_runs import run_module
from support.programs import run_lockcheck, run_python, written
from support.waiting import WAIT_SECONDS

from licorne.lockcheck import DeadlockError, Lock
from licorne.lockcheck.findings.terms import CLEAN
from licorne.lockcheck.prediction.prediction import predict
from licorne.lockcheck.sessions.recording import recording
from licorne.lockcheck.traces.trace import read_trace

UNDER_A_LOCK = """
from licorne.lockcheck import Lock
import pykka

class Clerk(pykka.ThreadingActor):
    def answer(self):
        return 7

clerk = Clerk.start().proxy()
with Lock("books"):
    print(clerk.answer().get())
clerk.stop()
"""
IN_A_TEST = """
from licorne.lockcheck import Lock

def test_asks_under_a_lock():
    import pykka

    class Clerk(pykka.ThreadingActor):
        pass

    clerk = Clerk.start()
    with Lock("books"):
        clerk.ask("a word")
    clerk.stop()
"""
WITHOUT_PYKKA = """
import sys
sys.modules["pykka"] = None
import threading
from licorne.lockcheck import Lock, session

with session() as opened:
    thread = threading.Thread(target=Lock("books").locked)
    thread.start()
    thread.join()
assert [] == opened.faults
assert "licorne.lockcheck.interception.pykka_asks" not in sys.modules
"""
UNKNOWN_PYKKA = """
import sys, threading, types
fake = sys.modules["pykka"] = types.ModuleType("pykka")
fake.ThreadingFuture = object
from licorne.lockcheck import session

with session() as opened:
    thread = threading.Thread(target=print, args=["runs"])
    thread.start()
    thread.join()
assert opened.faults and all("pykka" in fault for fault in opened.faults), opened.faults
"""


def test_a_program_that_imports_pykka_while_it_is_checked_is_heard_of(tmp_path: Path) -> None:
    """That is what `run` does: its session is there before the program is."""
    run = run_lockcheck(tmp_path, "run", written(tmp_path, UNDER_A_LOCK))

    assert (CLEAN, "7\n") == (run.returncode, run.stdout), run.stderr
    assert "may block while books" in run.stderr
    assert "program.py:11" in run.stderr


@pytest.mark.parametrize(("options", "expected"), [((), 0), (("--lockcheck-fail-on=R2,RB",), 1)])
def test_a_test_that_asks_under_a_lock_fails_only_if_told_so(
    tmp_path: Path, options: tuple[str, ...], expected: int
) -> None:
    """It is reported in any case."""
    code, output = run_module(tmp_path, IN_A_TEST, "--lockcheck=full", *options)

    assert expected == code
    assert "may block while books" in output


def test_pykka_is_not_needed() -> None:
    """Where it cannot be imported nothing misses it."""
    run = run_python("-c", WITHOUT_PYKKA)

    assert 0 == run.returncode, run.stderr


def test_a_version_of_pykka_that_is_not_known_is_a_fault() -> None:
    """Which is reported, and the program goes on."""
    run = run_python("-c", UNKNOWN_PYKKA)

    assert (0, "runs\n") == (run.returncode, run.stdout), run.stderr


@pytest.mark.lockcheck(off=True)
def test_pykka_is_not_changed_without_a_session() -> None:
    """Nothing is left behind, and what was asked meanwhile is answered."""
    owners: list[Any] = [pykka.ActorRef, pykka.ThreadingActor, threading.Thread]
    before = [dict(vars(owner)) for owner in owners]
    with checked():
        assert before[0]["ask"] is not pykka.ActorRef.ask
        clerk = Clerk.start()
        future = clerk.ask("a word", block=False)

    assert before == [dict(vars(owner)) for owner in owners]
    assert "a word" == future.get()
    assert "another" == clerk.ask("another")
    clerk.stop()


def test_an_actor_of_before_the_session_is_heard_of() -> None:
    """From its next turn on."""
    one, two = Clerk.start(), Clerk.start()
    assert "a word" == one.ask("a word")
    with checked() as opened, pytest.raises(DeadlockError):
        one.ask(lambda: two.ask(lambda: one.ask("a word")))

    assert 1 == len(deadlocks(opened))
    two.stop()
    one.stop()


def test_a_stopped_actor_is_dropped_although_references_stay() -> None:
    """Without the collector of garbage, as ever: who looked for a place in the code keeps no frame."""
    gc.disable()
    try:
        with checked():
            clerk = Clerk.start()
            thread: Any = clerk.ask(threading.current_thread)
            assert "a word" == clerk.ask("a word", block=False).get()
            clerk.stop()
            thread.join(WAIT_SECONDS)

            assert clerk._actor_weakref() is None
    finally:
        gc.enable()


@pytest.mark.lockcheck(off=True)
def test_a_future_of_before_the_session_is_awaited_as_ever() -> None:
    """Nobody knows who is to answer it."""
    clerk, go_on = Clerk.start(), threading.Event()
    future = clerk.ask(lambda: go_on.wait(WAIT_SECONDS), block=False)
    with checked() as opened, Lock("books"):
        go_on.set()
        assert future.get()

    assert () == opened.findings
    clerk.stop()


def test_a_recorded_answer_orders_what_follows(tmp_path: Path) -> None:
    """Also if it was there before anybody waited for it: nothing is predicted that the answer rules out."""
    path = tmp_path / "locks.lct"
    with recording(path):
        clerk, books, desk = Clerk.start(), Lock("books"), Lock("desk")
        later = threading.Lock()  # a plain one, of which the recording does not hear
        later.acquire()

        def takes_both() -> None:
            with books, desk:
                pass

        future = clerk.ask(takes_both, block=False)
        clerk.tell(later.release)
        assert later.acquire(timeout=WAIT_SECONDS)
        future.get()
        with desk, books:
            pass
        clerk.stop()

    assert () == predict(read_trace(path)).found
