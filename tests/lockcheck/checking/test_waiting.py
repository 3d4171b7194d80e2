"""Real deadlocks: found while the threads wait, broken by a victim, and the others go on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial

import pytest
from support.lockcheck.deadlocked import LEAVE_ALONE, run_all
from support.lockcheck.lock_corpus import Guard
from support.waiting import EXPIRING_SECONDS, WAIT_SECONDS, wait_until

from licorne.lockcheck import DeadlockError, Kind, Lock, RLock, Rung, RWLock, session
from licorne.lockcheck.checking import waiting
from licorne.lockcheck.checking.policy import least_held
from licorne.lockcheck.holding.chains import Execution
from licorne.lockcheck.holding.runtime import runtime
from licorne.lockcheck.locks.rwlock import PlainRWLock
from licorne.lockcheck.sessions.session import Session


def gave_way_in(paths: Sequence[tuple[Guard, Guard]]) -> dict[str, DeadlockError]:
    """Run threads that each take their first lock, wait for the others, and take their second one.

    Returns the errors of those that gave way, by the name of the thread; all others have finished.
    """
    errors: dict[str, DeadlockError] = {}
    all_hold = threading.Barrier(len(paths))

    def take_both(name: str, first: Guard, second: Guard) -> None:
        try:
            with first:
                all_hold.wait(WAIT_SECONDS)
                with second:
                    pass
        except DeadlockError as error:
            errors[name] = error

    names = [f"t{number}" for number in range(len(paths))]
    run_all(**{name: partial(take_both, name, *path) for name, path in zip(names, paths, strict=True)})
    return errors


def stuck(paths: Sequence[tuple[Guard, Guard]], opened: Session) -> dict[str, DeadlockError]:
    """Run threads into a deadlock, and check that exactly one gave way."""
    errors = gave_way_in(paths)
    assert 1 == len(errors)
    assert [] == opened.faults
    return errors


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
        all_hold = threading.Barrier(4)

        def take(first: Guard, second: Guard, awaited: PlainRWLock | None = None) -> None:
            with first:
                all_hold.wait(WAIT_SECONDS)
                wait_until(lambda: awaited is None or bool(awaited.queued()))
                with second:
                    pass

        gave_way = run_all(
            reads_a=lambda: take(a.read(), b.read(), awaited=b),
            reads_b=lambda: take(b.read(), a.read(), awaited=a),
            writes_a=lambda: take(c, a.write()),
            writes_b=lambda: take(d, b.write()),
        )

    assert 1 == len(gave_way)


def test_the_report_has_both_stacks_of_every_thread() -> None:
    """Where it took what it holds, and where it waits."""
    with session(on=LEAVE_ALONE) as opened:
        errors = stuck(ring(2), opened)

    (error,) = errors.values()
    assert error.finding is not None
    for edge in error.finding.edges:
        assert ("take_both", "take_both") == (
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

        errors = stuck([paths[0], (Both(), paths[1][1])], opened)

    assert ["t0"] == list(errors)


@pytest.mark.parametrize("chooses", ["raises", "chooses nobody of them"])
def test_a_policy_that_fails_leaves_no_deadlock_unbroken(chooses: str) -> None:
    """The youngest gives way, and the session says so."""

    def policy(_: Sequence[Execution]) -> Execution:
        if chooses == "raises":
            raise ZeroDivisionError("on purpose")
        return runtime.new_execution("a stranger", known=False)

    with session(on=LEAVE_ALONE, victim=policy) as opened:
        assert 1 == len(gave_way_in(ring(2)))

    (fault,) = opened.faults
    assert (
        "ZeroDivisionError: on purpose" if chooses == "raises" else "is not one of those that can"
    ) in fault


def test_while_a_deadlock_is_reported_no_other_is_that_the_same_victim_ends() -> None:
    """Two readers are each in a deadlock with a writer that waits; all three check at the same time."""
    looked: list[Execution] = []

    def writer(executions: Sequence[Execution]) -> Execution:
        if not looked:
            names = {f"t{number}" for number in range(3)} - {execution.name for execution in executions}
            looked.extend(execution for execution in runtime.all_executions() if execution.name in names)
            wait_until(lambda: all(execution.wait is not None for execution in looked))
            waiting._break_deadlock(opened.watch, looked[0], writer)  # as its own thread does in that moment
        return min(executions, key=lambda execution: execution.name)

    with session(on=LEAVE_ALONE, victim=writer) as opened:
        mine, shared = RLock("mine"), RWLock("shared")
        errors = gave_way_in([(mine, shared.write()), (shared.read(), mine), (shared.read(), mine)])

    assert [] == opened.faults
    assert ["t0"] == list(errors)
    assert 1 == len(looked)
    assert [1] == [finding.count for finding in opened.findings if finding.rung is Rung.R5]


def test_a_deadlock_is_found_within_100_milliseconds_of_waiting() -> None:
    """A waiter looks every 20 ms, and its victim sees it within 20 more."""
    with session(on=LEAVE_ALONE) as opened:

        def work() -> float:
            began = time.perf_counter()
            stuck(ring(2), opened)
            return time.perf_counter() - began

        wait_until(lambda: work() < 0.1)


def test_a_wait_that_ends_by_itself_is_no_deadlock() -> None:
    """One of the two gives up after a moment."""
    with session(on=LEAVE_ALONE) as opened:
        one, two = Lock("one"), Lock("two")
        both = threading.Barrier(2)

        def patient() -> None:
            with one:
                both.wait(WAIT_SECONDS)
                with two:
                    pass

        def hasty() -> None:
            with two:
                both.wait(WAIT_SECONDS)
                assert not one.acquire(timeout=10 * EXPIRING_SECONDS)

        run_all(patient=patient, hasty=hasty)

    assert [] == [finding for finding in opened.findings if finding.rung is Rung.R5]


def test_a_wait_longer_than_the_session_allows_is_reported_once() -> None:
    """With the name of who holds the lock."""
    with session(on=LEAVE_ALONE, timeout_seconds=0.03) as opened:
        lock = Lock("slow")
        taken, go_on = threading.Event(), threading.Event()

        def hold_it() -> None:
            with lock:
                taken.set()
                go_on.wait(WAIT_SECONDS)

        holder = threading.Thread(target=hold_it, name="holder")
        holder.start()
        taken.wait(WAIT_SECONDS)
        assert not lock.acquire(timeout=20 * EXPIRING_SECONDS)
        go_on.set()
        holder.join()

    (finding,) = [finding for finding in opened.findings if finding.kind is Kind.STALL]
    assert "which is held by holder" in finding.text
    assert 1 == finding.count
