"""A wait for an end under a lock that comes before this end is found, whether or not anybody was stuck."""

from __future__ import annotations

import concurrent.futures
import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest
from support.lockcheck.lock_corpus import RECORD, Guard, hold
from support.waiting import WAIT_SECONDS, wait_until

from licorne.lockcheck import Lock, Rung, Session, adopt, session
from licorne.lockcheck.checking.acquisition_checks import witness_of
from licorne.lockcheck.checking.knowledge import TAKEN_MAX
from licorne.lockcheck.confirming.confirmation import confirm
from licorne.lockcheck.holding.runtime import runtime

pytestmark = pytest.mark.lockcheck(off=True)
"""Sessions are opened here."""


@contextmanager
def beside(work: Callable[..., object], *given: object, name: str = "worker") -> Iterator[threading.Thread]:
    """Run some work in a thread, which is joined after what follows."""
    thread = threading.Thread(target=work, args=given, name=name)
    thread.start()
    yield thread
    thread.join()


@contextmanager
def before(work: Callable[..., object], *given: object, name: str = "worker") -> Iterator[threading.Thread]:
    """Run some work in a thread, all of it before what follows."""
    done = Done(work)
    with beside(done.run, *given, name=name) as thread:
        done.settle()
        yield thread


class Done:
    """Some work, and how often it was done: known in a way that orders nothing."""

    def __init__(self, work: Callable[..., object]) -> None:
        self._work = work
        self._times: list[int] = []

    def run(self, *given: object) -> None:
        """Do it."""
        try:
            self._work(*given)
        finally:
            self._times.append(1)

    def settle(self, times: int = 1) -> None:
        """Wait until it was done so often; where threads are steered, it may wait for what follows."""
        wait_until(lambda: len(self._times) >= times or runtime.steering is not None)


def hold_then(lock: Guard, signal: Callable[[], object]) -> None:
    """Hold a lock and then give a signal, which is also given where the lock cannot be taken."""
    try:
        hold(lock)
    finally:
        signal()


class Changes:
    """A condition, and how often it was notified."""

    def __init__(self) -> None:
        self.condition = threading.Condition()
        self.count = 0

    def make(self) -> None:
        """Make a change, and tell one thread."""
        with self.condition:
            self.count += 1
            self.condition.notify()

    def wait_for(self, count: int = 1) -> None:
        """Wait until so many were made."""
        with self.condition:
            self.condition.wait_for(lambda: self.count >= count)

    def make_for_a_waiter(self) -> None:
        """Make a change as soon as a thread waits for it."""
        wait_until(lambda: self.condition._waiters)  # type: ignore[attr-defined] # nobody else tells who waits
        self.make()


def cycles(program: Callable[[], object]) -> list[str]:
    """Return the cycles that a session finds in a program at R2, in words."""
    return [finding.text for finding in checked(program).findings if finding.rung is Rung.R2]


def checked(program: Callable[[], object]) -> Session:
    """Return the session that watched a program; its locks of `threading` are adopted."""
    with adopt("program"), session(on=RECORD) as opened:
        program()
    return opened


def assert_steered_to(program: Callable[[], object], folder: Path) -> None:
    """Assert that threads are steered to the only possible deadlock of a program."""
    (witness,) = filter(None, map(witness_of, checked(program).findings))
    with adopt("program"):
        outcome = confirm(witness, program, folder=folder)

    assert outcome.finding is not None, outcome.reasons
    assert outcome.finding.rung is Rung.R4
    assert outcome.finding.fingerprint == witness.fingerprint


# --------------------------------------------------------------------- the end may be waited for in vain


def join() -> None:
    """A thread ends long before it is joined under the lock that it took."""
    lock = Lock("lock")
    with before(hold, lock) as thread, lock:
        thread.join()


def result() -> None:
    """The same with the result of a task."""
    lock = Lock("lock")
    with ThreadPoolExecutor(2) as pool:
        future = pool.submit((holding := Done(hold)).run, lock)
        holding.settle()
        with lock:
            future.result()


def failure() -> None:
    """The same with the error of a task."""
    lock = Lock("lock")

    def work() -> None:
        hold(lock)
        raise KeyError

    with ThreadPoolExecutor(2) as pool:
        future = pool.submit((working := Done(work)).run)
        working.settle()
        with lock:
            assert isinstance(future.exception(), KeyError)


def two_tasks(waits: Callable[[list[Future[None]]], object]) -> None:
    """The same with two tasks, which are awaited together."""
    lock = Lock("lock")
    with ThreadPoolExecutor(2) as pool:
        holding = Done(hold)
        futures = [pool.submit(holding.run, lock), pool.submit(holding.run, lock)]
        holding.settle(2)
        with lock:
            waits(futures)


def all_results() -> None:
    """By `concurrent.futures.wait`."""
    two_tasks(concurrent.futures.wait)


def each_result() -> None:
    """By `as_completed`."""
    two_tasks(lambda futures: [*concurrent.futures.as_completed(futures)])


def of_one_thread(waits: Callable[[list[Future[None]]], object]) -> None:
    """Many tasks of one thread are done; the first one took the lock. A set of them has any order."""
    lock, last = Lock("lock"), Done(hold)
    submitted: list[Future[None]] = []

    def first() -> None:
        wait_until(lambda: submitted)
        hold(lock)

    with ThreadPoolExecutor(1) as pool:
        futures = [pool.submit(first), *(pool.submit(hold) for _ in range(31))]
        submitted.append(pool.submit(last.run))
        last.settle()
        with lock:
            waits(futures)


def all_results_of_one_thread() -> None:
    """By `concurrent.futures.wait`."""
    of_one_thread(concurrent.futures.wait)


def each_result_of_one_thread() -> None:
    """By `as_completed`."""
    of_one_thread(lambda futures: [*concurrent.futures.as_completed(futures)])


def mapped() -> None:
    """The same with `Executor.map`."""
    lock = Lock("lock")
    with ThreadPoolExecutor(2) as pool:
        results = pool.map((holding := Done(hold)).run, [lock])
        holding.settle()
        with lock:
            assert len(list(results)) == 1


def promise() -> None:
    """The same with a future that a thread resolves itself."""
    lock, future = Lock("lock"), Future[int]()
    with before(hold_then, lock, partial(future.set_result, 1)), lock:
        future.result()


def event() -> None:
    """The same with an event."""
    lock, done = Lock("lock"), threading.Event()
    with before(hold_then, lock, done.set), lock:
        done.wait()


def item() -> None:
    """The same with an item of a queue."""
    lock, items = Lock("lock"), queue.Queue[int]()
    with before(hold_then, lock, partial(items.put, 1)), lock:
        items.get()


def room() -> None:
    """The same with a queue for one item: the second item waits for the first one's end."""
    lock, items = Lock("lock"), queue.Queue[int](1)
    items.put(1)
    with before(hold_then, lock, items.get), lock:
        items.put(2)


def all_tasks() -> None:
    """The same with the end of all tasks of a queue."""
    lock, items = Lock("lock"), queue.Queue[int]()
    items.put(1)

    def work() -> None:
        items.get()
        hold_then(lock, items.task_done)

    with before(work), lock:
        items.join()


def end_of_pool() -> None:
    """The same with the end of a pool, of whose task none has the result."""
    lock = Lock("lock")
    pool = ThreadPoolExecutor(2)
    pool.submit((holding := Done(hold)).run, lock)
    holding.settle()
    with lock:
        pool.shutdown()


def end_of_pool_of_tasks_of_tasks() -> None:
    """The same where the task leaves another one to the pool, which ends on another thread of it."""
    lock = Lock("lock")
    pool = ThreadPoolExecutor(2)

    def work() -> None:
        with lock:
            pool.submit(int)

    pool.submit((working := Done(work)).run)
    working.settle()
    with lock:
        pool.shutdown()


def end_of_pool_of_one() -> None:
    """The same with a pool of one thread, and by leaving it."""
    lock = Lock("lock")
    with ExitStack() as under, ThreadPoolExecutor(1) as pool:
        pool.submit((holding := Done(hold)).run, lock)
        holding.settle()
        under.enter_context(lock)


def notification() -> None:
    """The same with a notification, which one thread alone makes."""
    lock, changes, held = Lock("lock"), Changes(), Done(int)

    def change() -> None:
        held.run()
        changes.make_for_a_waiter()

    with beside(hold_then, lock, change):
        held.settle()
        with lock, changes.condition:
            while not changes.count:
                changes.condition.wait()


def notification_of_before() -> None:
    """The same with the only notification, which came before the wait for what it tells."""
    lock, changed, ready = Lock("lock"), threading.Condition(), list[int]()

    def notify() -> None:
        with changed:
            ready.append(1)
            changed.notify_all()

    with before(hold_then, lock, notify), lock, changed:
        changed.wait_for(lambda: bool(ready))


def event_for_nobody() -> None:
    """The thread tells of its end what nobody looks at."""
    lock, done = Lock("lock"), threading.Event()
    with before(hold_then, lock, done.set) as thread, lock:
        thread.join()


def line_for_another() -> None:
    """The thread tells a third one, which is not the one that waits."""
    lock, lines = Lock("lock"), queue.Queue[int]()
    with beside(lines.get), before(hold_then, lock, partial(lines.put, 1)) as thread, lock:
        thread.join()


def task_for_another_pool() -> None:
    """A task leaves another one to a pool, and its result is waited for."""
    lock = Lock("lock")
    with ThreadPoolExecutor(2) as pool, ThreadPoolExecutor(1) as other:
        work = Done(partial(hold_then, lock, partial(other.submit, int)))
        future = pool.submit(work.run)
        work.settle()
        with lock:
            future.result()


def second_lock() -> None:
    """The joined thread never takes the lock under which it is joined, but one that comes after it."""
    outer, inner = Lock("outer"), Lock("inner")
    with before(hold, inner) as thread, outer:
        thread.join()
    with inner, outer:
        pass


@pytest.mark.parametrize(
    "program",
    [
        *(join, result, failure, all_results, each_result, mapped, promise, event, item, room, all_tasks),
        *(
            end_of_pool,
            end_of_pool_of_tasks_of_tasks,
            end_of_pool_of_one,
            all_results_of_one_thread,
            each_result_of_one_thread,
            notification,
            notification_of_before,
        ),
        *(event_for_nobody, line_for_another, task_for_another_pool),
    ],
    ids=lambda one: one.__name__,
)
def test_what_comes_before_an_end_that_is_awaited_under_the_same_lock_is_a_cycle(
    program: Callable[[], None],
) -> None:
    found = cycles(program)

    assert len(found) == 1, found
    assert "lock" in found[0]


@pytest.mark.parametrize(
    "program",
    [join, result, event, item, room, all_tasks, notification, notification_of_before],
    ids=lambda one: one.__name__,
)
def test_threads_are_steered_to_such_a_wait(program: Callable[[], None], tmp_path: Path) -> None:
    assert_steered_to(program, tmp_path)


def test_a_cycle_leads_over_an_end_and_other_locks() -> None:
    """The main thread takes both in the other order only after the thread has ended: that is no cycle."""
    assert cycles(second_lock) == []

    def program() -> None:
        outer, inner = Lock("outer"), Lock("inner")
        with before(hold, inner, outer), before(hold, inner) as thread, outer:
            thread.join()

    (found,) = cycles(program)
    assert found.startswith("a cycle of 3 steps: outer #")


def test_what_a_joined_thread_waits_for_comes_before_its_end() -> None:
    """The main thread joins one that has joined another one, which took the lock."""

    def program() -> None:
        lock = Lock("lock")
        with beside(hold, lock) as worker, before(worker.join, name="between") as between, lock:
            between.join()

    (found,) = cycles(program)
    assert "the end of between, then nothing -> the end of worker, then nothing -> lock #" in found


def test_the_finding_says_who_waits_for_whose_end() -> None:
    (finding,) = [one for one in checked(join).findings if one.rung is Rung.R2]

    assert "the end of worker" in finding.text
    assert [edge.execution for edge in finding.edges] == ["MainThread", "worker"]
    assert [edge.class_edge for edge in finding.edges] == [None, None]


# ------------------------------------------------------------------------- nobody waits for such an end


def known_by_as_completed(lock: Guard, pool: ThreadPoolExecutor) -> None:
    """The lock is taken when it is known that the task is over."""
    for future in concurrent.futures.as_completed([pool.submit(hold, lock) for _ in range(5)]):
        with lock:
            future.result()


def known_by_wait(lock: Guard, pool: ThreadPoolExecutor) -> None:
    """The same with the first of many."""
    left = {pool.submit(hold, lock) for _ in range(5)}
    while left:
        done, left = concurrent.futures.wait(left, return_when=FIRST_COMPLETED)
        with lock:
            for future in done:
                future.result()


def known_by_done(lock: Guard, pool: ThreadPoolExecutor) -> None:
    """The future was asked before."""
    future = pool.submit(hold, lock)
    wait_until(future.done)
    with lock:
        future.result()


def known_by_callback(lock: Guard, pool: ThreadPoolExecutor) -> None:
    """A callback puts the future into a queue."""
    over: queue.Queue[Future[None]] = queue.Queue()
    for _ in range(20):
        pool.submit(hold, lock).add_done_callback(over.put)
    for _ in range(20):
        future = over.get()
        with lock:
            future.result()


def known_by_queue(lock: Guard, _: ThreadPoolExecutor) -> None:
    """A thread says that it needs the lock no more."""
    over: queue.Queue[threading.Thread] = queue.Queue()

    def work() -> None:
        hold(lock)
        over.put(threading.current_thread())

    for _each in range(3):
        threading.Thread(target=work).start()
    for _each in range(3):
        thread = over.get()
        with lock:
            thread.join()


def known_by_is_alive(lock: Guard, _: ThreadPoolExecutor) -> None:
    """The thread was asked before."""
    with beside(hold, lock) as thread:
        wait_until(lambda: not thread.is_alive())
        with lock:
            thread.join()


def known_by_is_set(lock: Guard, _: ThreadPoolExecutor) -> None:
    """The event was asked before."""
    done = threading.Event()
    with beside(hold_then, lock, done.set):
        wait_until(done.is_set)
        with lock:
            done.wait()


def known_by_semaphore(lock: Guard, _: ThreadPoolExecutor) -> None:
    """A permit says so."""
    permits = threading.Semaphore(0)
    with beside(hold_then, lock, permits.release) as thread:
        permits.acquire()
        with lock:
            thread.join()


def known_by_another_thread(lock: Guard, _: ThreadPoolExecutor) -> None:
    """A third thread passes it on."""
    first, second = queue.Queue[int](), queue.Queue[int]()

    def pass_on() -> None:
        second.put(first.get())

    with beside(pass_on), beside(hold_then, lock, partial(first.put, 1)) as thread:
        second.get()
        with lock:
            thread.join()


def known_by_start(lock: Guard, _: ThreadPoolExecutor) -> None:
    """A thread that waits is started by one that knows it."""
    done = threading.Event()
    with beside(hold_then, lock, done.set) as thread:
        done.wait()

        def wait() -> None:
            with lock:
                thread.join()

        with beside(wait, name="waiter"):
            pass


def known_by_signal_lock(lock: Guard, _: ThreadPoolExecutor) -> None:
    """A lock that another thread releases says so."""
    signal = threading.Lock()
    signal.acquire()
    with beside(hold_then, lock, signal.release) as thread:
        signal.acquire()
        with lock:
            thread.join()


def known_by_condition(lock: Guard, _: ThreadPoolExecutor) -> None:
    """A notification says so."""
    changes = Changes()
    with beside(hold_then, lock, changes.make) as thread:
        changes.wait_for()
        with lock:
            thread.join()


def known_by_size(lock: Guard, _: ThreadPoolExecutor) -> None:
    """The queue was asked before."""
    items = queue.Queue[int]()
    with beside(hold_then, lock, partial(items.put, 1)):
        wait_until(lambda: not items.empty())
        with lock:
            items.get()


def known_by_a_second_queue(lock: Guard, _: ThreadPoolExecutor) -> None:
    """An event and an item of a queue come before an item of another queue, which has two producers."""
    done, first, second = threading.Event(), queue.Queue[int](), queue.Queue[int]()
    second.put(0)
    second.get()

    def work() -> None:
        hold(lock)
        first.put(1)
        hold(Lock("another"))
        done.set()
        second.put(1)

    with beside(work):
        second.get()
        with lock:
            first.get()
            done.wait()


def another_producer(lock: Guard, _: ThreadPoolExecutor) -> None:
    """Another thread, which needs no lock, puts an item too."""
    items = queue.Queue[int]()
    with beside(hold_then, lock, partial(items.put, 1)), beside(items.put, 2):
        pass
    with lock:
        items.get()


def item_of_before(lock: Guard, _: ThreadPoolExecutor) -> None:
    """Only the second item comes after the lock."""
    items = queue.Queue[int]()

    def work() -> None:
        items.put(1)
        hold_then(lock, partial(items.put, 2))

    with beside(work), lock:
        items.get()


def room_enough(lock: Guard, _: ThreadPoolExecutor) -> None:
    """There is room for what is put under the lock."""
    items = queue.Queue[int](2)
    items.put(1)
    with before(hold_then, lock, items.get), lock:
        items.put(2)


def joined_before(lock: Guard, _: ThreadPoolExecutor) -> None:
    """Who joined it without the lock knows that it is over."""
    with beside(hold, lock) as thread:
        pass
    with lock:
        thread.join()


def pool_of_known_results(lock: Guard, _: ThreadPoolExecutor) -> None:
    """The results of all tasks were waited for before the end of their pool."""
    for workers in (1, 2):
        pool = ThreadPoolExecutor(workers)
        for future in [pool.submit(hold, lock) for _ in range(5)]:
            future.result()
        with lock:
            pool.shutdown()


def two_notifiers(lock: Guard, _: ThreadPoolExecutor) -> None:
    """Another thread, which needs no lock, notifies as well."""
    changes, held = Changes(), Done(int)

    def work(*guards: Guard) -> None:
        for guard in guards:
            hold(guard)
        held.run()
        changes.make_for_a_waiter()

    with beside(work, lock), beside(work):
        held.settle(2)
        with lock:
            changes.wait_for(2)


def notification_of_another(lock: Guard, _: ThreadPoolExecutor) -> None:
    """Only the second notification comes after the lock."""
    changes = Changes()

    def work() -> None:
        changes.make()
        hold_then(lock, changes.make)

    with before(work), lock:
        changes.wait_for()


def limited(lock: Guard, _: ThreadPoolExecutor) -> None:
    """Who waits with a limit gives up."""
    with before(hold, lock) as thread, lock:
        thread.join(WAIT_SECONDS)


def another_lock(lock: Guard, _: ThreadPoolExecutor) -> None:
    """The thread takes another lock."""
    with before(hold, Lock("another")) as thread, lock:
        thread.join()


def began_under_it(lock: Guard, _: ThreadPoolExecutor) -> None:
    """What the thread took was over before a second one was begun, which is joined."""
    with beside(hold, lock):
        pass
    with lock, beside(int):
        pass


@pytest.mark.parametrize(
    "program",
    [
        *(known_by_as_completed, known_by_wait, known_by_done, known_by_callback, known_by_queue),
        *(known_by_semaphore, known_by_another_thread, known_by_start),
        *(known_by_size, known_by_a_second_queue, another_producer, item_of_before, room_enough),
        *(known_by_is_alive, known_by_is_set, known_by_signal_lock, known_by_condition),
        *(joined_before, limited, another_lock, began_under_it),
        *(pool_of_known_results, two_notifiers, notification_of_another),
    ],
    ids=lambda one: one.__name__,
)
def test_who_knows_that_the_end_came_does_not_wait(
    program: Callable[[Guard, ThreadPoolExecutor], None],
) -> None:
    def whole() -> None:
        with ThreadPoolExecutor(3) as pool:
            program(Lock("lock"), pool)

    assert cycles(whole) == []


def test_only_the_first_acquisitions_of_a_thread_are_remembered() -> None:
    """Memory is bounded: what comes after these is not known."""

    def work(others: int, lock: Guard) -> None:
        for _ in range(others):
            hold(Lock("another"))
        hold(lock)

    def program(others: int) -> None:
        lock = Lock("lock")
        with before(work, others, lock) as thread, lock:
            thread.join()

    assert len(cycles(lambda: program(TAKEN_MAX - 1))) == 1
    assert cycles(lambda: program(TAKEN_MAX)) == []


# --------------------------------------------------------------------------------- relatives of these


def notified_under(*around: str) -> Session:
    """Return the session that watched a wait for a notification under further locks."""

    def program() -> None:
        changes = Changes()
        with ExitStack() as held:
            for name in around:
                held.enter_context(Lock(name))
            with changes.condition:
                thread = threading.Thread(target=changes.make)
                thread.start()
                changes.wait_for()
        thread.join()

    return checked(program)


def test_a_wait_for_a_notification_under_another_lock_may_block() -> None:
    """The condition releases its own lock and no other one."""
    (finding,) = notified_under("outer").findings

    assert finding.rung is Rung.RB
    assert finding.text.startswith("condition may block while outer #")
    assert notified_under().findings == ()


def test_threads_are_steered_over_semaphores_that_are_used_as_locks_only_once(tmp_path: Path) -> None:
    """Whether who takes a permit releases it is not certain at its first use; a run before has shown it."""

    def program() -> None:
        first, second = threading.Semaphore(), threading.Semaphore()

        def down() -> None:
            with first, second:
                pass

        def up() -> None:
            with second, first:
                pass

        with before(down, name="down"), before(up, name="up"):
            pass

    assert_steered_to(program, tmp_path)
