"""What answers asks, without actors: at the edges of threads and sessions."""

from __future__ import annotations

import _thread
import threading

from support.lockcheck.lock_corpus import RECORD
from support.waiting import WAIT_SECONDS

from licorne.actors.runtime.checked_asks import CheckedAsks, Runtimes
from licorne.lockcheck import Kind, Lock, session

RUNTIMES = Runtimes(__file__, threading.__file__)


def test_an_ask_on_a_thread_of_nothing_but_its_runtime_is_checked() -> None:
    """Nobody called the function that asks, so it is the place itself."""
    over = threading.Event()

    def ask_under_a_lock() -> None:
        lock.acquire()
        try:
            clerk.asked()
        finally:
            lock.release()
            over.set()

    with session(on=RECORD) as opened:
        lock, clerk = Lock("books"), CheckedAsks("clerk", runtimes=RUNTIMES)
        _thread.start_new_thread(ask_under_a_lock, ())
        assert over.wait(WAIT_SECONDS)

    (finding,) = opened.findings
    assert Kind.BLOCKING is finding.kind
    assert finding.edges[0].want_stack[0].function.endswith("ask_under_a_lock")
    assert [] == opened.faults


def test_what_began_to_answer_without_a_session_is_not_released() -> None:
    """Though it was held in an earlier session."""
    clerk = CheckedAsks("clerk", runtimes=RUNTIMES)
    with session():
        clerk.enter()
        clerk.leave()
    clerk.enter()
    with session(on=RECORD) as opened:
        clerk.leave()

    assert ((), []) == (opened.findings, opened.faults)
