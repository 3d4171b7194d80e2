"""Threads that meet an event loop: what orders them is known, and waits for coroutines are waits for it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest
from support.lockcheck.lock_corpus import Crossed

from licorne.lockcheck import DeadlockError, Lock, Rung, Session, session
from licorne.lockcheck.checking.policy import FindingAction

pytestmark = pytest.mark.lockcheck(off=True)
"""Sessions are opened here."""

RECORD: Final[dict[Rung, FindingAction]] = {Rung.R2: "record"}


def cycles(opened: Session) -> list[Rung]:
    """Return the rungs of the cycles."""
    return [finding.rung for finding in opened.findings if finding.rung is not Rung.RB]


@contextmanager
def loop_on_a_thread() -> Iterator[asyncio.AbstractEventLoop]:
    """Yield an event loop that another thread runs meanwhile."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def test_threads_that_a_coroutine_awaits_one_after_the_other_are_in_order() -> None:
    """Whether the first one ends before the loop looks at it, or later."""
    with session(on=RECORD) as opened:
        locks, begun = Crossed(), threading.Event()

        async def main(*, late: bool) -> None:
            def first() -> None:
                if late:
                    begun.wait()
                locks.down()

            running = asyncio.ensure_future(asyncio.to_thread(first))
            await asyncio.sleep(0)
            begun.set()
            await running
            await asyncio.to_thread(locks.up)

        asyncio.run(main(late=False))
        asyncio.run(main(late=True))

    assert cycles(opened) == [Rung.R1]
    assert opened.faults == []


def test_threads_that_a_coroutine_starts_together_are_not_in_order() -> None:
    """Whichever ends first: on an idle machine one does before the other begins."""
    with session(on=RECORD) as opened:
        locks = Crossed()

        async def main() -> None:
            await asyncio.gather(asyncio.to_thread(locks.down), asyncio.to_thread(locks.up))

        asyncio.run(main())

    assert cycles(opened) == [Rung.R2]


def test_what_a_thread_did_comes_before_the_call_that_it_left() -> None:
    with session(on=RECORD) as opened:
        locks = Crossed()
        with loop_on_a_thread() as loop:
            locks.down()
            called = threading.Event()
            loop.call_soon_threadsafe(locks.up)
            loop.call_soon_threadsafe(called.set)
            assert called.wait(60)

    assert cycles(opened) == [Rung.R1]
    assert "by a call that a thread left for an event loop" in "".join(opened.findings[0].why)


def test_a_wait_for_a_coroutine_under_the_lock_that_it_wants_is_broken() -> None:
    with session(on={Rung.R5: "break", Rung.RB: "record"}) as opened, loop_on_a_thread() as loop:
        lock = Lock("lock")

        async def wants() -> int:
            with lock:
                return 1

        with lock:
            waited = asyncio.run_coroutine_threadsafe(wants(), loop)
            with pytest.raises(DeadlockError):
                waited.result()

    assert [Rung.R5] == cycles(opened)
    assert any("the result of" in edge.wanted for edge in opened.findings[-1].edges)


def test_the_calls_of_a_loop_are_as_without_a_session() -> None:
    """What is no callback is refused with the same error, and results are the same."""

    async def coroutine() -> int:
        return 2

    with loop_on_a_thread() as loop:
        loop.set_debug(True)
        with session(on=RECORD):
            with pytest.raises(TypeError, match="coroutines cannot be used"):
                loop.call_soon_threadsafe(coroutine)
            with pytest.raises(TypeError, match="A coroutine object is required"):
                asyncio.run_coroutine_threadsafe(1, loop)  # type: ignore[arg-type]
            assert asyncio.run_coroutine_threadsafe(coroutine(), loop).result(60) == 2


@pytest.mark.parametrize("awaits", [True, False])
def test_a_lock_that_is_held_over_an_await_is_named(*, awaits: bool) -> None:
    """The next coroutine that wants it stops the loop; the lock around the whole loop is the thread's."""
    with session(on=RECORD) as opened:
        around, lock = Lock("around"), Lock("lock")

        async def main() -> None:
            with lock:
                if awaits:
                    await asyncio.sleep(0)

        with around:
            asyncio.run(main())

    texts = [finding.text for finding in opened.findings if finding.rung is Rung.RB]
    assert sum("is held while its event loop runs other coroutines" in text for text in texts) == awaits
    assert opened.faults == []
