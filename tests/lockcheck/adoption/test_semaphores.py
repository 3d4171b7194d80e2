"""Semaphores that are used as locks take part in cycles and in deadlocks; those that hand over do not."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack

import pytest

from licorne.lockcheck import DeadlockError, Rung, Session, adopt, session, unit
from licorne.lockcheck.checking.policy import NOTE_ALL
from licorne.lockcheck.holding.runtime import runtime

pytestmark = pytest.mark.lockcheck(off=True)
"""Sessions are opened here."""

SECONDS_MAX = 10


@pytest.fixture
def watched() -> Iterator[Session]:
    """Adopt what the test makes, in a session that raises nothing but the end of a deadlock."""
    with session(on=NOTE_ALL) as opened, adopt():
        yield opened


class Things:
    """A lock or two, and a semaphore."""

    def __init__(self, permits: int) -> None:
        self.sem = threading.Semaphore(permits)
        self.a, self.b = threading.Lock(), threading.Lock()


def nest(name: str, *guards: AbstractContextManager[object]) -> None:
    """Take some things in an execution of its own, each under those before."""
    with unit(name), ExitStack() as stack:
        for guard in guards:
            stack.enter_context(guard)


def by_name(name: str, semaphore: threading.Semaphore, lock: threading.Lock) -> None:
    """Take a semaphore by name, then a lock, and release both."""
    with unit(name):
        semaphore.acquire()
        try:
            with lock:
                pass
        finally:
            semaphore.release()


def both_ways() -> None:
    """Take a semaphore of one permit and a lock in both orders."""
    t = Things(1)
    nest("one", t.sem, t.a)
    nest("two", t.a, t.sem)


def both_ways_by_name() -> None:
    """Do the same by `acquire` and `release`."""
    t = Things(1)
    by_name("one", t.sem, t.a)
    nest("two", t.a, t.sem)


def all_permits() -> None:
    """Hold both permits where the lock is wanted."""
    t = Things(2)
    nest("one", t.sem, t.a)
    nest("two", t.sem, t.a)
    nest("three", t.a, t.sem)


def one_of_two_permits() -> None:
    """Hold only one of two permits where the lock is wanted."""
    t = Things(2)
    nest("one", t.sem, t.a)
    nest("three", t.a, t.sem)


def permits_twice(executions: int, permits: int) -> Callable[[], None]:
    """Return a run in which some executions want a second permit each."""

    def run() -> None:
        t = Things(permits)
        for number in range(executions):
            nest(f"{number}", t.sem, t.sem)

    return run


def over_another_lock() -> None:
    """Let one holder of a permit wait for a lock that is held by who waits for the other one."""
    t = Things(2)
    nest("one", t.a, t.sem)
    nest("two", t.sem, t.a)
    nest("three", t.sem, t.b)
    nest("four", t.b, t.a)


def philosophers(permits: int) -> Callable[[], None]:
    """Return a run of three philosophers who need a permit to begin."""

    def run() -> None:
        t, forks = Things(permits), [threading.Lock() for _ in range(3)]
        for number in range(3):
            nest(f"{number}", t.sem, forks[number], forks[(number + 1) % 3])

    return run


def handed_over() -> None:
    """Take permits that another execution releases, under a lock and not."""
    t = Things(1)
    for _ in range(2):
        nest("taker", t.a, acquired(t.sem))
        with unit("giver"), t.a:
            t.sem.release()


def handed_over_at_last() -> None:
    """Use a semaphore as a lock at first; then another execution releases it."""
    both = Things(1)
    nest("one", both.sem, both.a)
    nest("two", both.a, both.sem)
    nest("taker", acquired(both.sem))
    with unit("giver"):
        both.sem.release()


def a_signal() -> None:
    """Begin without permits."""
    t = Things(0)
    for _ in range(2):
        with unit("giver"), t.a:
            t.sem.release()
        with unit("taker"):
            t.sem.acquire()
            with t.a:
                pass


def only_tried() -> None:
    """Want a permit under a lock, but do not wait for it."""
    t = Things(1)
    nest("one", t.sem, t.a)
    with unit("two"), t.a:
        if t.sem.acquire(blocking=False):
            t.sem.release()


def slept_on() -> None:
    """Sleep with a permit, which is what it is for."""
    sem = threading.Semaphore(1)
    with sem:
        time.sleep(0.001)


def acquired(semaphore: threading.Semaphore) -> AbstractContextManager[object]:
    """Return what takes a semaphore and does not give it back."""
    return _Acquired(semaphore)


class _Acquired:
    def __init__(self, semaphore: threading.Semaphore) -> None:
        self._take = semaphore.acquire

    def __enter__(self) -> bool:
        return self._take()

    def __exit__(self, *_: object) -> None:
        pass


@pytest.mark.parametrize(
    "run",
    [both_ways, both_ways_by_name, all_permits, permits_twice(2, 2), permits_twice(3, 3), over_another_lock,
     philosophers(3)],
)  # fmt: skip
def test_a_semaphore_of_which_all_permits_may_be_held_is_part_of_a_cycle(
    watched: Session, run: Callable[[], None]
) -> None:
    """That is R2, as with locks, and nothing else is found."""
    run()

    assert {Rung.R2} == strongest(watched)


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (one_of_two_permits, "has 2 permits, and 1 of them is held here"),
        (philosophers(2), "of which these would hold more than its 2 permits"),
        (only_tried, "only tries"),
    ],
)
def test_a_cycle_that_a_semaphore_makes_harmless_is_r1_with_the_reason(
    watched: Session, run: Callable[[], None], reason: str
) -> None:
    """A permit is left, or too few for all of them to begin."""
    run()

    assert {Rung.R1} == strongest(watched)
    assert any(reason in why for finding in watched.findings for why in finding.why)


@pytest.mark.parametrize(
    "run",
    [permits_twice(1, 2), permits_twice(2, 3), handed_over, handed_over_at_last, a_signal, slept_on],
)
def test_what_is_no_lock_is_no_finding(watched: Session, run: Callable[[], None]) -> None:
    """Permits are left, another execution releases them, or they limit who blocks."""
    run()

    assert () == watched.findings


def test_two_threads_that_wait_for_each_other_over_semaphores_are_found(watched: Session) -> None:
    """One of them raises, so both end."""
    sems = [threading.Semaphore(1), threading.BoundedSemaphore(1)]
    meeting = threading.Barrier(2)

    def cross(one: threading.Semaphore, other: threading.Semaphore) -> None:
        with one:
            meeting.wait()
            with other:
                pass

    errors = run_threads([lambda: cross(*sems), lambda: cross(*reversed(sems))])

    assert [DeadlockError] == errors
    assert Rung.R5 in strongest(watched)


def test_two_threads_that_want_a_second_permit_of_two_are_found(watched: Session) -> None:
    """Neither gets one before the other gives its own back."""
    sem, meeting = threading.Semaphore(2), threading.Barrier(2)

    def twice() -> None:
        with sem:
            meeting.wait()
            with sem:
                pass

    errors = run_threads([twice, twice])

    assert [DeadlockError] == errors
    assert Rung.R5 in strongest(watched)


def test_who_waits_for_a_permit_that_another_thread_gives_is_not_stuck(watched: Session) -> None:
    """The same thread holds all permits by its own account, and waits for one more."""
    sem, waits, done = threading.Semaphore(1), threading.Event(), []

    def take() -> None:
        sem.acquire()
        waits.set()
        sem.acquire()
        done.append(True)

    def give() -> None:
        waits.wait(SECONDS_MAX)
        while not any(execution.wait for execution in runtime.all_executions()):
            threading.Event().wait(0.001)
        sem.release()

    errors = run_threads([take, give])

    assert ([], [True]) == (errors, done)
    assert () == watched.findings


def test_a_semaphore_behaves_as_without_lockcheck(watched: Session) -> None:
    """What it refuses it refuses, and what it returns it returns."""
    sem = threading.BoundedSemaphore(2)

    assert sem.acquire() is sem.acquire(timeout=1) is True
    assert sem.acquire(False) is sem.acquire(timeout=0) is sem.acquire(timeout=0.001) is False
    with pytest.raises(ValueError, match="timeout"):
        sem.acquire(False, 1)
    with pytest.raises(ValueError, match="n must be one or more"):
        sem.release(0)
    sem.release(2)
    with pytest.raises(ValueError, match="too many"):
        sem.release()
    assert () == watched.findings


def test_semaphores_are_left_alone_once_nothing_is_adopted() -> None:
    """A permit that was taken before is no lock that is held afterwards."""
    with session(on=NOTE_ALL) as opened:
        with adopt():
            t = Things(1)
            t.sem.__enter__()
        t.sem.release()
        nest("one", t.sem, t.a)
        nest("two", t.a, t.sem)

    assert () == opened.findings


@pytest.mark.parametrize("seed", range(10))
def test_r2_is_found_exactly_where_a_schedule_comes_to_a_standstill(seed: int) -> None:
    """Small random programs of semaphores and locks, by the side of a search through all schedules."""
    chosen = random.Random(seed)  # noqa: S311 - no secret
    with adopt():
        for _ in range(10):
            permits = [chosen.choice((1, 2, 2)), chosen.choice((1, 2)), None]
            programs = [
                [chosen.randrange(len(permits)) for _ in range(chosen.choice((2, 2, 3)))]
                for _ in range(chosen.randint(2, 4))
            ]
            programs = [once_each(one, permits) for one in programs]
            with session(on=NOTE_ALL) as watched:
                things = [threading.Lock() if one is None else threading.Semaphore(one) for one in permits]
                for place, program in enumerate(programs):
                    nest(f"{place}", *(things[thing] for thing in program))
            found = any(one.rung is Rung.R2 for one in watched.findings)

            assert comes_to_standstill(programs, permits) == found, (programs, permits)


def once_each(program: Iterable[int], permits: list[int | None]) -> list[int]:
    """Return a program that takes no more permits of a thing than there are: that is found at once."""
    counts: dict[int, int] = {}
    kept = []
    for thing in program:
        counts[thing] = counts.get(thing, 0) + 1
        if counts[thing] <= (permits[thing] or 1):
            kept.append(thing)
    return kept


def comes_to_standstill(programs: list[list[int]], permits: list[int | None]) -> bool:
    """Return whether any schedule of programs, each of which takes things and releases all, gets stuck."""
    pending, seen = [tuple(0 for _ in programs)], set()
    while pending:
        state = pending.pop()
        if state in seen:
            continue
        seen.add(state)
        taken = list(
            itertools.chain.from_iterable(
                one[:done] for one, done in zip(programs, state, strict=True) if done < len(one)
            )
        )
        following = [
            (*state[:place], done + 1, *state[place + 1 :])
            for place, (one, done) in enumerate(zip(programs, state, strict=True))
            if done < len(one) and taken.count(one[done]) < (permits[one[done]] or 1)
        ]
        if not following and any(done < len(one) for one, done in zip(programs, state, strict=True)):
            return True
        pending += following
    return False


def strongest(watched: Session) -> set[Rung]:
    """Return the rungs of the findings, but R1 beside a stronger one."""
    rungs = {finding.rung for finding in watched.findings}
    return rungs - {Rung.R1} or rungs


def run_threads(works: list[Callable[[], None]]) -> list[type[BaseException]]:
    """Run each in a thread, to its end; return the errors."""
    errors: list[type[BaseException]] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except DeadlockError as error:
            errors.append(type(error))

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS_MAX)

    assert not any(thread.is_alive() for thread in threads)
    return errors
