"""Real deadlocks: found while the threads wait, broken by a victim, and the others go on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence

import pytest
from support.lockcheck.deadlocked import until
from support.lockcheck.lock_corpus import Guard

from licorne.lockcheck import DeadlockError, Kind, Lock, RLock, Rung, RWLock, session
from licorne.lockcheck.checking import waiting
from licorne.lockcheck.checking.policy import FindingAction, least_held
from licorne.lockcheck.holding.chains import Execution
from licorne.lockcheck.holding.runtime import runtime
from licorne.lockcheck.sessions.session import Session

WAIT_SECONDS_MAX = 20.0
LEAVE_ALONE: Mapping[Rung, FindingAction] = {rung: "record" for rung in Rung if rung is not Rung.R5}


class Stuck:
    """Threads that each take their first lock, wait for the others, and take their second one."""

    def __init__(self, paths: Sequence[tuple[Guard, Guard]]) -> None:
        self.errors: dict[str, DeadlockError] = {}
        self.finished: list[str] = []
        self._all_hold = threading.Barrier(len(paths))
        self._threads = [
            threading.Thread(target=self._run, args=path, name=f"t{number}", daemon=True)
            for number, path in enumerate(paths)
        ]

    def _run(self, first: Guard, second: Guard) -> None:
        name = threading.current_thread().name
        try:
            with first:
                self._all_hold.wait(WAIT_SECONDS_MAX)
                with second:
                    self.finished.append(name)
        except DeadlockError as error:
            self.errors[name] = error

    def run(self) -> None:
        """Run them all to their end."""
        for thread in self._threads:
            thread.start()
        for thread in self._threads:
            thread.join(WAIT_SECONDS_MAX)
            assert not thread.is_alive()


def stuck(paths: Sequence[tuple[Guard, Guard]], opened: Session) -> Stuck:
    """Run threads into a deadlock, and check that exactly one gave way."""
    threads = Stuck(paths)
    threads.run()
    assert 1 == len(threads.errors)
    assert len(paths) - 1 == len(threads.finished)
    assert [] == opened.faults
    return threads


def ring(
    length: int, make: Callable[[int], Guard] = lambda number: Lock("ring", key=number)
) -> list[tuple[Guard, Guard]]:
    """Return paths of which each wants what the next one holds."""
    locks = [make(number) for number in range(length)]
    return [(locks[number], locks[(number + 1) % length]) for number in range(length)]


@pytest.mark.parametrize("level", ["order", "full"])
@pytest.mark.parametrize("length", [2, 3, 5])
def test_a_ring_of_threads_is_broken_by_one_victim(length: int, level: str) -> None:
    """The others get their locks when the victim releases its own."""
    with session(level=level, on=LEAVE_ALONE) as opened:
        stuck(ring(length), opened)

    (finding,) = [finding for finding in opened.findings if finding.rung is Rung.R5]
    assert (Kind.DEADLOCK, length) == (finding.kind, len(finding.edges))


def test_re_entrant_locks_are_broken_too() -> None:
    """A re-entrant lock is no less held by another thread."""
    with session(on=LEAVE_ALONE) as opened:
        stuck(ring(2, lambda number: RLock("ring", key=number)), opened)


def test_all_readers_count_as_holders() -> None:
    """A writer waits for every reader, so one of them that is stuck is enough."""
    with session(on=LEAVE_ALONE) as opened:
        shared, mine = RWLock("shared"), Lock("mine")
        stuck([(mine, shared.write()), (shared.read(), mine)], opened)


def test_a_reader_waits_for_a_writer_that_waits() -> None:
    """Two readers in both orders, and two writers between them."""
    with session(on=LEAVE_ALONE):
        a, b, c, d = RWLock("a"), RWLock("b"), Lock("c"), Lock("d")
        threads = Stuck([(a.read(), b.read()), (b.read(), a.read()), (c, a.write()), (d, b.write())])
        held = threading.Barrier(4)
        waits = {0: b, 1: a}

        def path(number: int, first: Guard, second: Guard) -> None:
            try:
                with first:
                    held.wait(WAIT_SECONDS_MAX)
                    while number in waits and not waits[number].queued():
                        time.sleep(0.001)
                    with second:
                        threads.finished.append(str(number))
            except DeadlockError as error:
                threads.errors[str(number)] = error

        paths = [(a.read(), b.read()), (b.read(), a.read()), (c, a.write()), (d, b.write())]
        running = [
            threading.Thread(target=path, args=(n, *guards), daemon=True) for n, guards in enumerate(paths)
        ]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join(WAIT_SECONDS_MAX)
            assert not thread.is_alive()

    assert (1, 3) == (len(threads.errors), len(threads.finished))


def test_the_report_has_both_stacks_of_every_thread() -> None:
    """Where it took what it holds, and where it waits."""
    with session(on=LEAVE_ALONE) as opened:
        threads = stuck(ring(2), opened)

    (error,) = threads.errors.values()
    assert error.finding is not None
    for edge in error.finding.edges:
        assert ("_run", "_run") == (
            edge.hold_stack[0].function.split(".")[-1],
            edge.want_stack[0].function.split(".")[-1],
        )
    assert "wanted ring" in error.__notes__[0]


def test_the_victim_is_chosen_by_policy() -> None:
    """Here the one with the fewest locks, and of equals the youngest."""
    with session(on=LEAVE_ALONE, victim=least_held) as opened:
        extra = Lock("extra")
        paths = ring(2)

        class Both:
            """Two locks as one guard."""

            def __enter__(self) -> None:
                extra.acquire()
                paths[1][0].__enter__()

            def __exit__(self, *error: object) -> None:
                paths[1][0].__exit__(None, None, None)
                extra.release()

        threads = stuck([paths[0], (Both(), paths[1][1])], opened)

    assert ["t0"] == list(threads.errors)


@pytest.mark.parametrize("chooses", ["raises", "chooses nobody of them"])
def test_a_policy_that_fails_leaves_no_deadlock_unbroken(chooses: str) -> None:
    """The youngest gives way, and the session says so."""

    def policy(_: Sequence[Execution]) -> Execution:
        if chooses == "raises":
            raise ZeroDivisionError("on purpose")
        return runtime.new_execution("a stranger", known=False)

    with session(on=LEAVE_ALONE, victim=policy) as opened:
        threads = Stuck(ring(2))
        threads.run()

    assert (1, 1) == (len(threads.errors), len(threads.finished))
    (fault,) = opened.faults
    assert ("ZeroDivisionError: on purpose" if chooses == "raises" else "is none of those that can") in fault


def test_while_a_deadlock_is_reported_no_other_is_that_the_same_victim_ends() -> None:
    """Two readers are each in a deadlock with a writer that waits; all three check at the same time."""
    looked: list[Execution] = []

    def writer(executions: Sequence[Execution]) -> Execution:
        if not looked:
            names = {f"t{number}" for number in range(3)} - {execution.name for execution in executions}
            looked.extend(execution for execution in runtime.all_executions() if execution.name in names)
            until(lambda: all(execution.wait is not None for execution in looked))
            waiting._break_deadlock(opened.watch, looked[0], writer)  # as its own thread does in that moment
        return min(executions, key=lambda execution: execution.name)

    with session(on=LEAVE_ALONE, victim=writer) as opened:
        mine, shared = RLock("mine"), RWLock("shared")
        threads = Stuck([(mine, shared.write()), (shared.read(), mine), (shared.read(), mine)])
        threads.run()

    assert [] == opened.faults
    assert ["t0"] == list(threads.errors)
    assert 1 == len(looked)
    assert [1] == [finding.count for finding in opened.findings if finding.rung is Rung.R5]


def test_a_deadlock_is_found_within_100_milliseconds_of_waiting() -> None:
    """A waiter looks every 20 ms, and its victim sees it within 20 more."""
    with session(on=LEAVE_ALONE) as opened:
        took: list[float] = []
        for _ in range(5):
            began = time.perf_counter()
            stuck(ring(2), opened)
            took.append(time.perf_counter() - began)

    assert min(took) < 0.1


def test_a_wait_that_ends_by_itself_is_no_deadlock() -> None:
    """One of the two gives up after a moment."""
    with session(on=LEAVE_ALONE) as opened:
        one, two = Lock("one"), Lock("two")
        both = threading.Barrier(2)

        def patient() -> None:
            with one:
                both.wait(WAIT_SECONDS_MAX)
                with two:
                    pass

        def hasty() -> None:
            with two:
                both.wait(WAIT_SECONDS_MAX)
                assert not one.acquire(timeout=0.1)

        threads = [threading.Thread(target=work) for work in (patient, hasty)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT_SECONDS_MAX)

    assert [] == [finding for finding in opened.findings if finding.rung is Rung.R5]


def test_a_wait_longer_than_the_session_allows_is_reported_once() -> None:
    """With the name of who holds the lock."""
    with session(on=LEAVE_ALONE, timeout_seconds=0.03) as opened:
        lock = Lock("slow")
        taken, go_on = threading.Event(), threading.Event()

        def hold_it() -> None:
            with lock:
                taken.set()
                go_on.wait(WAIT_SECONDS_MAX)

        holder = threading.Thread(target=hold_it, name="holder")
        holder.start()
        taken.wait(WAIT_SECONDS_MAX)
        assert not lock.acquire(timeout=0.2)
        go_on.set()
        holder.join()

    (finding,) = [finding for finding in opened.findings if finding.kind is Kind.STALL]
    assert "which is held by holder" in finding.text
    assert 1 == finding.count
