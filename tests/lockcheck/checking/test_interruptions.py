"""Locks that finalizers and signal handlers take, and that are held elsewhere too."""

from __future__ import annotations

import functools
import gc
import signal
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from types import FrameType

import pytest
from support.lockcheck.lock_corpus import RECORD

from licorne.lockcheck import DeadlockPossibleError, Finding, Kind, Lock, RLock, Rung, session
from licorne.lockcheck.locks.factories import ExclusiveLock


class Resource:
    """A thing that takes a lock when it ends."""

    def __init__(self, lock: ExclusiveLock) -> None:
        self.lock = lock

    def __del__(self) -> None:
        with self.lock:
            pass


class Node:
    """A thing that only the garbage collector ends."""

    def __init__(self) -> None:
        self.itself = self


def take(lock: ExclusiveLock) -> None:
    """Take a lock and release it."""
    with lock:
        pass


def use(lock: ExclusiveLock) -> None:
    """Take it at another place."""
    with lock:
        pass


def by_reference_count(lock: ExclusiveLock) -> None:
    """The last reference goes."""
    Resource(lock)


def by_finalize(lock: ExclusiveLock) -> None:
    """As `weakref` registers it."""
    node = Node()
    node.itself = None  # type: ignore[assignment] # no cycle
    weakref.finalize(node, take, lock)


def by_collection(lock: ExclusiveLock) -> None:
    """A callback of a weak reference, when a cycle is collected."""
    node = Node()
    reference = weakref.ref(node, lambda _: take(lock))
    del node
    gc.collect()
    assert reference() is None


def by_signal(lock: ExclusiveLock) -> None:
    """A handler runs on the main thread."""

    def handler(_: int, __: object) -> None:
        take(lock)

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)


class Pool:
    """What both the program and finalizers give things back to."""

    def __init__(self, lock: ExclusiveLock) -> None:
        self.lock = lock

    def give_back(self) -> None:
        """Take a lock, by whatever way this is called."""
        with self.lock:
            pass


class Handle:
    """A thing that goes back to its pool when it ends."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool

    def __del__(self) -> None:
        give_back_to(self.pool)


def give_back_to(pool: Pool) -> None:
    pool.give_back()


def handle_in_a_cycle(pool: Pool) -> None:
    """The garbage collector ends it."""
    handle = Handle(pool)
    vars(handle)["itself"] = handle
    del handle
    gc.collect()


def handle_by_reference_count(pool: Pool) -> None:
    """The last reference goes."""
    Handle(pool)


def callback_in_a_cycle(pool: Pool) -> None:
    """A function of which no finalizer knows the name."""
    node = Node()
    functions = [pool.give_back]
    reference = weakref.ref(node, lambda _: functions[0]())
    del node
    gc.collect()
    assert reference() is None


def handler(pool: Pool) -> None:
    """A signal handler, by a function of its module."""
    before = signal.signal(signal.SIGUSR1, lambda *_: give_back_to(pool))
    try:
        signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)


class Lease:
    """A thing that goes back to its pool when it is closed, and closes when it ends."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool

    def close(self) -> None:
        """Give it back."""
        self.pool.give_back()

    def __del__(self) -> None:
        self.close()


def lease_by_reference_count(pool: Pool) -> None:
    """The finalizer calls its own method, which calls one of another class."""
    Lease(pool)


def callback_by_reference_count(pool: Pool) -> None:
    """The callback of a weak reference runs where the last reference goes."""
    thing = Node()
    thing.itself = None  # type: ignore[assignment] # no cycle

    def gone(_: object) -> None:
        take(pool.lock)

    reference = weakref.ref(thing, gone)
    del thing
    assert reference() is None


def decorated(function: Callable[[Pool], None]) -> Callable[[Pool], None]:
    @functools.wraps(function)
    def inner(pool: Pool) -> None:
        with pool.lock:
            function(pool)

    return inner


@decorated
def halt(_: Pool) -> None:
    """Do nothing under the lock of a pool."""


class Server:
    """A thing with a method that handles signals, which calls another one of its own."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool

    def stop(self) -> None:
        """Give back what it has."""
        self.pool.give_back()

    def on_signal(self, _: int, __: object) -> None:
        """Handle a signal."""
        self.stop()


def by_signal_to(handle: Callable[[int, object], object]) -> None:
    before = signal.signal(signal.SIGUSR1, handle)
    try:
        signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)


def handler_by_decorator(pool: Pool) -> None:
    """The handler calls a function that a decorator made."""
    halt(pool)
    by_signal_to(lambda *_: halt(pool))


def handler_that_is_a_method(pool: Pool) -> None:
    """The handler calls methods, of its own object and of another one."""
    by_signal_to(Server(pool).on_signal)


@pytest.mark.parametrize(
    "interrupt",
    [
        *(handle_in_a_cycle, handle_by_reference_count, callback_in_a_cycle, handler),
        *(lease_by_reference_count, callback_by_reference_count),
        *(handler_by_decorator, handler_that_is_a_method),
    ],
    ids=lambda one: one.__name__,
)
def test_a_line_that_ran_outside_before_is_looked_at_again(interrupt: Callable[[Pool], None]) -> None:
    """The usual shape: the program and what interrupts it use the same method."""
    with session(on=RECORD) as opened:
        pool = Pool(Lock("pool"))
        for _ in range(3):
            pool.give_back()
        interrupt(pool)
        pool.give_back()
        take(Lock("other"))

    assert [(Rung.R2, Kind.RECURSION)] == [(one.rung, one.kind) for one in opened.findings]
    assert [] == opened.faults


@pytest.mark.parametrize("how", ["dropped", "replaced", "asked to close", "to its end", "unpacked"])
def test_a_generator_that_ends_unasked_is_a_finalizer(how: str) -> None:
    """One that runs to its end, or that is asked to close, is none."""
    lock: ExclusiveLock

    def stream() -> Iterator[int]:
        try:
            yield 1
        finally:
            with lock:
                pass

    with session(on=RECORD) as opened:
        lock = Lock("of the stream")
        running: Iterator[int] | None = stream()
        assert running is not None
        if how == "unpacked":
            (_,) = running
        else:
            next(running)
        if how == "dropped":
            del running
        elif how == "replaced":
            running = None
        elif how == "asked to close":
            running.close()  # type: ignore[attr-defined] # it is a generator
        else:
            assert [] == [*running]
        use(lock)
        take(Lock("other"))

    wanted = [Rung.R2] if how in ("dropped", "replaced") else []
    assert wanted == [one.rung for one in opened.findings]


WAYS = pytest.mark.parametrize("interrupt", [by_reference_count, by_finalize, by_collection, by_signal])


def found_in(
    interrupt: Callable[[ExclusiveLock], None], make: Callable[[str], ExclusiveLock], *, first: bool
) -> list[Finding]:
    """Return what is found if a lock is taken in one way and elsewhere."""
    with session(on=RECORD) as opened:
        lock = make("cache")
        if first:
            interrupt(lock)
            take(lock)
        else:
            use(lock)
            interrupt(lock)
    assert [] == opened.faults
    return [finding for finding in opened.findings if finding.rung is not Rung.RB]


@WAYS
@pytest.mark.parametrize("first", [True, False])
def test_a_lock_that_is_taken_in_an_interruption_and_held_elsewhere_is_a_finding(
    interrupt: Callable[[ExclusiveLock], None], *, first: bool
) -> None:
    """They did not meet in this run; whichever came first, also by the same function."""
    (finding,) = found_in(interrupt, Lock, first=first)

    assert (Rung.R2, Kind.RECURSION) == (finding.rung, finding.kind)
    assert finding.edges[0].hold_stack[0].function == ("take" if first else "use")
    assert finding.edges[0].want_stack


def test_the_finding_names_the_thread_that_held_the_lock() -> None:
    """Another one than that in which the finalizer ran."""
    with session(on=RECORD) as opened:
        lock = Lock("cache")
        thread = threading.Thread(target=use, args=(lock,), name="worker")
        thread.start()
        thread.join()
        by_reference_count(lock)

    (finding,) = opened.findings
    assert ["worker", "MainThread"] == [edge.execution for edge in finding.edges]
    assert ["use", "Resource.__del__"] == [
        stack[0].function for edge in finding.edges for stack in (edge.hold_stack, edge.want_stack) if stack
    ]


@pytest.mark.lockcheck(off=True)  # in a checked run they have wrappers before and after
def test_finalizers_are_those_of_the_program_after_the_session() -> None:
    """While it is open they have wrappers; a class without one of its own gets none."""
    kinds = (Resource, Closing, Shared)
    before = [vars(kind)["__del__"] for kind in kinds]
    with session(on=RECORD):
        take(Lock("any"))
        assert before != [vars(kind)["__del__"] for kind in kinds]
        assert "__del__" not in vars(Inherits)

    assert before == [vars(kind)["__del__"] for kind in kinds]


@WAYS
def test_a_re_entrant_lock_is_no_finding(interrupt: Callable[[ExclusiveLock], None]) -> None:
    """Its holder may take it again."""
    assert [] == found_in(interrupt, RLock, first=True)


@WAYS
def test_a_lock_that_is_taken_nowhere_else_is_no_finding(
    interrupt: Callable[[ExclusiveLock], None],
) -> None:
    """Nothing that holds it can be interrupted."""
    with session(on=RECORD) as opened:
        interrupt(Lock("own"))

    assert () == opened.findings


class Closing:
    """A thing with a lock of its own, which it takes to close, and closes when it ends."""

    def __init__(self) -> None:
        self.lock = Lock("own")

    def close(self) -> None:
        """Close it, once more or for the first time."""
        take(self.lock)

    def __del__(self) -> None:
        self.close()


class Shared:
    """A thing that takes a lock of all such things to close, and closes when it ends."""

    lock: ExclusiveLock

    def close(self) -> None:
        """Close it, once more or for the first time."""
        with self.lock:
            pass

    def __del__(self) -> None:
        self.close()


class Inherits(Shared):
    """Finalized by its base."""


@pytest.mark.parametrize("kind", [Shared, Inherits])
@pytest.mark.parametrize("times", [1, 3])
def test_a_method_that_is_called_first_by_hand_and_then_by_the_finalizer_is_a_finding(
    kind: type[Shared], times: int
) -> None:
    """At the same place in the code, which is otherwise not looked at again."""
    with session(on=RECORD) as opened:
        Shared.lock = Lock("of all")
        thing = kind()
        for _ in range(times):
            thing.close()
        del thing
        gc.collect()
        take(Lock("other"))

    assert [(Rung.R2, Kind.RECURSION)] == [(one.rung, one.kind) for one in opened.findings]


@pytest.mark.parametrize("afterwards", [True, False])
@pytest.mark.parametrize("in_a_cycle", [True, False])
def test_a_lock_that_ends_with_what_is_finalized_is_no_finding(*, in_a_cycle: bool, afterwards: bool) -> None:
    """What holds it uses the object, which is not finalized then; whether or not more locks follow."""
    with session(on=RECORD) as opened:
        thing = Closing()
        thing.close()
        use(thing.lock)
        if in_a_cycle:
            vars(thing)["itself"] = thing
        del thing
        gc.collect()
        if afterwards:
            take(Lock("other"))

    assert ((), []) == (opened.findings, opened.faults)


def test_a_finalizer_that_another_thread_is_in_is_not_over() -> None:
    """What other threads take meanwhile says nothing about the objects that it finalizes."""
    entered, taken = threading.Event(), threading.Event()

    class Waiting:
        def __init__(self) -> None:
            self.lock = Lock("own")

        def __del__(self) -> None:
            take(self.lock)
            entered.set()
            taken.wait()

    def end() -> None:
        thing = Waiting()
        use(thing.lock)
        del thing

    with session(on=RECORD) as opened:
        thread = threading.Thread(target=end)
        thread.start()
        entered.wait()
        take(Lock("other"))
        taken.set()
        thread.join()

    assert () == opened.findings


def shares_a_lock() -> None:
    """A thing ends that takes a lock of its user."""
    with session():
        lock = Lock("shared")
        use(lock)
        Resource(lock)


def test_a_lock_that_outlives_what_is_finalized_is_raised_at_the_end_of_the_session() -> None:
    """A finalizer cannot raise, and nothing follows it here."""
    with pytest.raises(DeadlockPossibleError):
        shares_a_lock()


def test_a_finalizer_that_only_tries_is_no_finding() -> None:
    """It does not wait."""

    class Careful:
        def __init__(self, lock: ExclusiveLock) -> None:
            self.lock = lock

        def __del__(self) -> None:
            if self.lock.acquire(blocking=False):
                self.lock.release()

    def end(lock: ExclusiveLock) -> None:
        Careful(lock)

    assert [] == found_in(end, Lock, first=False)


def test_the_collector_is_left_alone_when_no_session_is_open() -> None:
    """Its callbacks are those from before."""
    before = list(gc.callbacks)
    with session(on=RECORD):
        assert before != gc.callbacks

    assert before == gc.callbacks


def test_what_is_new_runs_no_function_for_each_signal() -> None:
    """There are more than sixty signals, and few have handlers."""
    called: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            called.append(frame.f_code.co_filename)

    with session(level="full"):
        lock = Lock("lock")
        take(Lock("before"))  # What interruptions may call is looked for once.
        sys.setprofile(note)
        try:
            lock.acquire()
        finally:
            sys.setprofile(None)
            lock.release()

    assert signal.__file__ not in called
    assert len(called) < 120
