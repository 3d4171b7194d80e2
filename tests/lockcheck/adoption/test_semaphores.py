"""Semaphores that are used as locks take part in cycles and in deadlocks; those that hand over do not."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager

import pytest
from support.lockcheck.deadlocked import run_all
from support.lockcheck.lock_corpus import nest
from support.waiting import EXPIRING_SECONDS, WAIT_SECONDS, let_time_pass, wait_until

from licorne.lockcheck import Kind, Rung, Session, adopt, session, unit
from licorne.lockcheck.checking.policy import NOTE_ALL
from licorne.lockcheck.holding.runtime import runtime

pytestmark = pytest.mark.lockcheck(off=True)
"""Sessions are opened here."""


@pytest.fixture
def watched() -> Iterator[Session]:
    """Adopt what the test makes, in a session that raises nothing but the end of a deadlock."""
    with session(on=NOTE_ALL) as opened, adopt():
        yield opened


class Things:
    """Some locks, and a semaphore."""

    def __init__(self, permits: int) -> None:
        self.sem = threading.Semaphore(permits)
        self.a, self.b, self.c = threading.Lock(), threading.Lock(), threading.Lock()


def by_name(name: str, semaphore: threading.Semaphore, lock: threading.Lock) -> None:
    """Take a semaphore by name, then a lock, and release both."""
    with unit(name):
        semaphore.acquire()
        try:
            with lock:
                pass
        finally:
            semaphore.release()


def nested(permits: int, *paths: str) -> Callable[[], None]:
    """Return a run of executions that each take the things of a path such as `sem a` inside each other."""

    def run() -> None:
        things = Things(permits)
        for number, path in enumerate(paths):
            nest(f"{number}", *(getattr(things, name) for name in path.split()))

    return run


def both_ways_by_name() -> None:
    """Take a semaphore of one permit and a lock in both orders by `acquire` and `release`."""
    t = Things(1)
    by_name("one", t.sem, t.a)
    nest("two", t.a, t.sem)


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
        let_time_pass(0.001)


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


PHILOSOPHERS = ("sem a b", "sem b c", "sem c a")
"""Each needs a permit to begin, and two forks."""


@pytest.mark.parametrize(
    "run",
    [
        pytest.param(nested(1, "sem a", "a sem"), id="both orders"),
        pytest.param(both_ways_by_name, id="both orders by name"),
        pytest.param(
            nested(2, "sem a", "sem a", "a sem"), id="both permits are held where the lock is wanted"
        ),
        pytest.param(nested(2, *["sem sem"] * 2), id="two want a second one of two permits"),
        pytest.param(nested(3, *["sem sem"] * 3), id="three want a second one of three permits"),
        pytest.param(
            nested(2, "a sem", "sem a", "sem b", "b a"),
            id="one holder waits for a lock that is held by who waits for the other one",
        ),
        pytest.param(nested(3, *PHILOSOPHERS), id="all philosophers may begin"),
    ],
)
def test_a_semaphore_of_which_all_permits_may_be_held_is_part_of_a_cycle(
    watched: Session, run: Callable[[], None]
) -> None:
    """That is R2, as with locks, and nothing else is found."""
    run()

    assert {Rung.R2} == strongest(watched)


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (nested(2, "sem a", "a sem"), "has 2 permits, and 1 of them is held here"),
        (nested(2, *PHILOSOPHERS), "of which these would hold more than its 2 permits"),
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
    [
        pytest.param(nested(2, "sem sem"), id="one wants both permits"),
        pytest.param(nested(3, *["sem sem"] * 2), id="two want a second one of three permits"),
    ],
)
def test_a_second_permit_is_advice(watched: Session, run: Callable[[], None]) -> None:
    """More of them at once would wait for each other."""
    run()

    assert [(Rung.R1, Kind.RECURSION)] == [(one.rung, one.kind) for one in watched.findings]


@pytest.mark.parametrize("run", [handed_over, handed_over_at_last, a_signal, slept_on])
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

    gave_way = run_all(one=lambda: cross(*sems), other=lambda: cross(*reversed(sems)))

    assert 1 == len(gave_way)
    assert Rung.R5 in strongest(watched)


def test_two_threads_that_want_a_second_permit_of_two_are_found(watched: Session) -> None:
    """Neither gets one before the other gives its own back."""
    sem, meeting = threading.Semaphore(2), threading.Barrier(2)

    def twice() -> None:
        with sem:
            meeting.wait()
            with sem:
                pass

    gave_way = run_all(one=twice, other=twice)

    assert 1 == len(gave_way)
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
        waits.wait(WAIT_SECONDS)
        wait_until(lambda: any(execution.wait for execution in runtime.all_executions()))
        let_time_pass(0.05)  # so that who waits looks whether it is stuck
        sem.release()

    gave_way = run_all(takes=take, gives=give)

    assert ([], [True]) == (gave_way, done)
    assert () == watched.findings


def test_a_semaphore_behaves_as_without_lockcheck(watched: Session) -> None:
    """What it refuses it refuses, and what it returns it returns."""
    sem = threading.BoundedSemaphore(2)

    assert sem.acquire() is sem.acquire(timeout=WAIT_SECONDS) is True
    assert sem.acquire(False) is sem.acquire(timeout=0) is sem.acquire(timeout=EXPIRING_SECONDS) is False
    with pytest.raises(ValueError, match="timeout"):
        sem.acquire(False, WAIT_SECONDS)
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
