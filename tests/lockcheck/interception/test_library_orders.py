"""Orders that libraries make, or may make: none of these programs is accused of a possible deadlock."""

from __future__ import annotations

import concurrent.futures
import queue
import socket
import threading
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor
from multiprocessing.pool import ThreadPool

import pytest
from support.lockcheck.lock_corpus import RECORD
from support.waiting import wait_until

from licorne.lockcheck import Finding, Rung, adopt, session

pytestmark = pytest.mark.lockcheck(off=True)
"""Sessions are opened here."""


class Both:
    """Two locks, taken in both orders."""

    def __init__(self) -> None:
        self.first, self.second = threading.Lock(), threading.Lock()

    def down(self, *_: object) -> None:
        """Take one, then the other."""
        with self.first, self.second:
            pass

    def up(self, *_: object) -> None:
        """Take them the other way round."""
        with self.second, self.first:
            pass


def found(program: Callable[[Both], None]) -> tuple[Finding, ...]:
    """Return what a session finds in a program."""
    with adopt("program"), session(on=RECORD) as opened:
        program(Both())
    assert opened.faults == []
    return tuple(one for one in opened.findings if one.rung is not Rung.RB)


def in_threads(*works: Callable[[], None]) -> None:
    """Run each of some functions in a thread, to the end of all."""
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def pool_map(locks: Both) -> None:
    """`map` returns when all tasks have ended."""
    with ThreadPool(2) as pool:
        for _ in range(3):
            pool.map(locks.down, range(4), 1)
        for _ in range(3):
            pool.starmap(locks.up, [(1, 2)] * 4)


def pool_apply(locks: Both) -> None:
    """So does `apply`, and `get`."""
    with ThreadPool(3) as pool:
        pool.apply(locks.down)
        pool.apply(locks.up)
        pool.apply_async(locks.down, kwds={}).get()
        pool.apply_async(locks.up).get()


def pool_imap(locks: Both) -> None:
    """An iterator over results has its end behind all of them, by chunks too."""
    with ThreadPool(3) as pool:
        list(pool.imap(locks.down, range(4)))
        list(pool.imap_unordered(locks.up, range(4)))
        list(pool.imap(locks.down, range(4), 2))


def pool_callback(locks: Both) -> None:
    """A callback comes after its task."""
    with ThreadPool(2) as pool:
        called = threading.Event()

        def call(_: object) -> None:
            locks.up()
            called.set()

        pool.apply_async(locks.down, callback=call)
        called.wait()


def first_completed(locks: Both) -> None:
    """When none is left, all have ended."""
    with ThreadPoolExecutor(3) as pool:
        left = {pool.submit(locks.down) for _ in range(4)}
        while left:
            _, left = concurrent.futures.wait(left, return_when=FIRST_COMPLETED)
        locks.up()


def simple_queue(locks: Both) -> None:
    """The item comes after what its only producer did."""
    items: queue.SimpleQueue[int] = queue.SimpleQueue()

    def produce() -> None:
        locks.down()
        items.put(1)

    def consume() -> None:
        items.get()
        locks.up()

    in_threads(consume, produce)


def token_ring(locks: Both) -> None:
    """Threads take turns by events that are cleared."""
    turns = threading.Event(), threading.Event()
    turns[0].set()

    def run(mine: int, work: Callable[[], None]) -> None:
        for _ in range(5):
            turns[mine].wait()
            turns[mine].clear()
            work()
            turns[1 - mine].set()

    in_threads(lambda: run(0, locks.down), lambda: run(1, locks.up))


def socket_pair(locks: Both) -> None:
    """One thread waits for what the other one sends."""
    one, other = socket.socketpair()

    def send() -> None:
        locks.down()
        one.send(b"1")

    def receive() -> None:
        other.recv(1)
        locks.up()

    with one, other:
        in_threads(receive, send)


@pytest.mark.parametrize(
    "program",
    [
        *(pool_map, pool_apply, pool_imap, pool_callback, first_completed, simple_queue, token_ring),
        socket_pair,
    ],
    ids=lambda one: one.__name__,
)
def test_what_a_library_orders_or_may_order_is_no_possible_deadlock(program: Callable[[Both], None]) -> None:
    findings = found(program)

    assert {Rung.R1} == {one.rung for one in findings}
    assert all("one after the other" in reason for one in findings for reason in one.why), findings


def at_once(locks: Both) -> None:
    """Two tasks of a pool."""
    with ThreadPool(2) as pool:
        results = [pool.apply_async(locks.down), pool.apply_async(locks.up)]
        for result in results:
            result.get()


def within_one_map(locks: Both) -> None:
    """Two tasks of one call."""
    with ThreadPool(2) as pool:
        pool.map(lambda work: work(), [locks.down, locks.up], 1)


def before_it_is_sent(locks: Both) -> None:
    """Both come before what goes through the sockets."""
    one, other = socket.socketpair()

    def send() -> None:
        locks.down()
        one.send(b"1")

    def receive() -> None:
        locks.up()
        other.recv(1)

    with one, other:
        in_threads(receive, send)


@pytest.mark.parametrize(
    "program", [at_once, within_one_map, before_it_is_sent], ids=lambda one: one.__name__
)
def test_what_nothing_orders_is_one(program: Callable[[Both], None]) -> None:
    assert Rung.R2 in {one.rung for one in found(program)}


def test_a_pool_that_is_asked_under_a_lock_that_its_task_takes_is_a_possible_deadlock() -> None:
    """The task happened to be over."""

    def program(locks: Both) -> None:
        with ThreadPool(2) as pool:
            result = pool.apply_async(locks.down)
            wait_until(lambda: not pool._cache)  # type: ignore[attr-defined] # nobody else tells that it is over
            with locks.first:
                result.get()

    assert Rung.R2 in {one.rung for one in found(program)}


def test_a_look_at_all_of_a_future_tells_that_its_task_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """As asyncio takes results from Python 3.14 on; an older future gets the method here."""

    def snapshot(future: concurrent.futures.Future[object]) -> tuple[bool, bool, object, None]:
        return future.done(), False, None, None

    if not hasattr(concurrent.futures.Future, "_get_snapshot"):
        monkeypatch.setattr(concurrent.futures.Future, "_get_snapshot", snapshot, raising=False)

    def program(locks: Both) -> None:
        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(locks.down)
            wait_until(lambda: future._get_snapshot()[0])  # type: ignore[attr-defined] # see above
            locks.up()

    assert {Rung.R1} == {one.rung for one in found(program)}


def test_a_simple_queue_that_was_made_before_is_an_instance_of_the_class() -> None:
    before: object = queue.SimpleQueue()
    with session(on=RECORD):
        assert isinstance(before, queue.SimpleQueue)
        assert isinstance(queue.SimpleQueue(), type(before))
    assert type(before) is queue.SimpleQueue
