"""Orders that hold in every run, by what threads hand over; and those that only held in this one."""

from __future__ import annotations

import concurrent.futures
import queue
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

import pytest
from support.lockcheck.lock_corpus import RECORD, Crossed
from support.waiting import WAIT_SECONDS, wait_until

from licorne.lockcheck import Finding, Rung, session


def nothing() -> None:
    """Take no lock."""


def in_a_row(*works: Callable[[], object]) -> Callable[[], None]:
    """Return a function that runs each."""

    def run() -> None:
        for work in works:
            work()

    return run


def run_all(*works: Callable[[], object]) -> None:
    """Run each in a thread of its own, all to their end."""
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_SECONDS)
        assert not thread.is_alive()


def the_end_of_a_pool(locks: Crossed) -> None:
    """By `with`, and another pool follows."""
    for work in (locks.down, locks.up):
        with ThreadPoolExecutor(2) as pool:
            pool.submit(work)


def the_shutdown_of_a_pool(locks: Crossed) -> None:
    """Explicitly."""
    pool = ThreadPoolExecutor(2)
    pool.submit(locks.down)
    pool.shutdown(wait=True)
    locks.up()


def a_wait_for_all(locks: Crossed) -> None:
    """By the name in its module, as a program that is imported in the session has it."""
    with ThreadPoolExecutor(2) as pool:
        concurrent.futures.wait([pool.submit(locks.down), pool.submit(nothing)])
        locks.up()


def the_end_of_as_completed(locks: Crossed) -> None:
    """All of them are done then."""
    with ThreadPoolExecutor(2) as pool:
        assert 2 == len(
            list(concurrent.futures.as_completed([pool.submit(locks.down), pool.submit(nothing)]))
        )
        locks.up()


def a_callback_after_the_end(locks: Crossed) -> None:
    """It is called at once, by the thread that adds it."""
    with ThreadPoolExecutor(2) as pool:
        task, over = pool.submit(locks.down), threading.Lock()
        over.acquire()
        pool.submit(over.release)
        assert over.acquire(timeout=WAIT_SECONDS)
        wait_until(task.done)
        task.add_done_callback(lambda _: locks.up())


def a_callback(locks: Crossed) -> None:
    """It runs after its task, on whichever thread."""
    with ThreadPoolExecutor(2) as pool:
        pool.submit(locks.down).add_done_callback(lambda _: locks.up())


def an_event(locks: Crossed) -> None:
    """It is set once, and waited for without a limit."""
    event = threading.Event()
    run_all(in_a_row(locks.down, event.set), in_a_row(event.wait, locks.up))


def an_item(locks: Crossed) -> None:
    """There is one producer."""
    items = queue.Queue[int]()
    run_all(in_a_row(locks.down, partial(items.put, 1)), in_a_row(items.get, locks.up))


def all_items(locks: Crossed) -> None:
    """The one that waits for them has put all of them."""
    items, go_on = queue.Queue[int](), threading.Event()
    worker = threading.Thread(target=in_a_row(items.get, locks.down, items.task_done, go_on.wait))
    worker.start()
    items.put(1)
    items.join()
    locks.up()
    go_on.set()
    worker.join()


def a_thread_that_is_seen_to_have_ended(locks: Crossed) -> None:
    """By asking until it has."""
    thread = threading.Thread(target=locks.down)
    thread.start()
    wait_until(lambda: not thread.is_alive())
    locks.up()


def a_barrier(locks: Crossed) -> None:
    """Two threads meet, as many as it is for."""
    both = threading.Barrier(2)
    run_all(in_a_row(locks.down, both.wait), in_a_row(both.wait, locks.up))


def a_thread_then_another(locks: Crossed) -> None:
    """The first one has ended."""
    run_all(locks.down)
    locks.up()


def a_thread_that_is_started_after(locks: Crossed) -> None:
    """It begins after what its starter did."""
    locks.down()
    run_all(locks.up)


IN_EVERY_RUN: Final[tuple[tuple[Callable[[Crossed], None], str], ...]] = (
    (the_end_of_a_pool, "by the end of a thread at test_hand_overs.py:"),
    (the_shutdown_of_a_pool, "by the end of a thread at test_hand_overs.py:"),
    (a_wait_for_all, "by the end of all tasks at test_hand_overs.py:"),
    (the_end_of_as_completed, "by the end of all tasks at test_hand_overs.py:"),
    (a_callback, "by a callback after a task"),
    (a_callback_after_the_end, "by a callback after a task"),
    (an_event, "by an event that is set once at test_hand_overs.py:"),
    (an_item, "by a queue with one producer at test_hand_overs.py:"),
    (all_items, "by a queue of which all items are done at test_hand_overs.py:"),
    (a_thread_that_is_seen_to_have_ended, "by the end of a thread at test_hand_overs.py:"),
    (a_barrier, "by a barrier at test_hand_overs.py:"),
    (a_thread_then_another, "by the end of a thread at test_hand_overs.py:"),
    (a_thread_that_is_started_after, "by the start of a thread or task"),
)


@pytest.mark.parametrize(("program", "cause"), IN_EVERY_RUN)
def test_what_holds_in_every_run_guards_a_cycle(program: Callable[[Crossed], None], cause: str) -> None:
    """It is R1, with the reason, and the place where the later one waited."""
    (finding,) = found_in(program)

    assert Rung.R1 is finding.rung
    assert f"one after the other, in every run: {cause}" in "".join(finding.why)


def found_in(program: Callable[[Crossed], None]) -> tuple[Finding, ...]:
    """Return what is found in a program."""
    with session(on=RECORD) as opened:
        program(Crossed())
    assert [] == opened.faults
    return tuple(finding for finding in opened.findings if finding.rung is not Rung.RB)


def in_turn(*works: Callable[[], object]) -> None:
    """Run each in a thread of its own, one after the other, by a lock that nothing hears of."""
    turns = [threading.Lock() for _ in works]
    for turn in turns[1:]:
        turn.acquire()

    def work_in_turn(number: int) -> None:
        assert turns[number].acquire(timeout=WAIT_SECONDS)
        works[number]()
        if number + 1 < len(turns):
            turns[number + 1].release()

    run_all(*(partial(work_in_turn, number) for number in range(len(works))))


def an_event_of_two(locks: Crossed) -> None:
    """Either of two threads may end the wait."""
    event = threading.Event()
    in_turn(event.set, in_a_row(locks.down, event.set), in_a_row(event.wait, locks.up))


def an_event_within_a_limit(locks: Crossed) -> None:
    """The wait may end without it."""
    event = threading.Event()
    in_turn(in_a_row(locks.down, event.set), in_a_row(partial(event.wait, WAIT_SECONDS), locks.up))


def an_item_of_two(locks: Crossed) -> None:
    """Either of two producers may come first."""
    items = queue.Queue[int]()
    in_turn(partial(items.put, 1), in_a_row(locks.down, partial(items.put, 1)), in_a_row(items.get, locks.up))


def all_items_of_another(locks: Crossed) -> None:
    """They may be done before the other one puts any."""
    items = queue.Queue[int]()
    in_turn(
        partial(items.put, 1),
        in_a_row(items.get, locks.down, items.task_done),
        in_a_row(items.join, locks.up),
    )


def a_barrier_for_fewer(locks: Crossed) -> None:
    """Three threads come to one for two, so that any two may meet."""
    both = threading.Barrier(1)
    in_turn(in_a_row(locks.down, both.wait), in_a_row(both.wait, locks.up))


def the_first_of_a_wait(locks: Crossed) -> None:
    """The other task may run still."""
    with ThreadPoolExecutor(2) as pool:
        finished = threading.Lock()
        finished.acquire()
        first, second = pool.submit(nothing), pool.submit(locks.down)
        second.add_done_callback(lambda _: finished.release())
        concurrent.futures.wait([first, second], return_when=concurrent.futures.FIRST_COMPLETED)
        assert finished.acquire(timeout=WAIT_SECONDS)
        locks.up()


@pytest.mark.parametrize(
    "program",
    [
        an_event_of_two,
        an_event_within_a_limit,
        an_item_of_two,
        all_items_of_another,
        a_barrier_for_fewer,
        the_first_of_a_wait,
    ],
)
def test_what_only_held_in_this_run_guards_nothing(program: Callable[[Crossed], None]) -> None:
    """It is R2."""
    assert [Rung.R2] == [finding.rung for finding in found_in(program)]
