"""Small lock programs: what can become of them in every schedule, and what the checker says after one run.

The model checker walks all states of a program by breadth. It does not model the read/write lock: it runs
the real one, step by step, with its clock hand (who runs) put where the schedule wants it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import combinations_with_replacement, permutations, product
from typing import TYPE_CHECKING, Literal, TypeAlias
from unittest import mock

from lock_corpus import RECORD

from licorne.lockcheck import Rung, RWLock, rwlock, session, unit
from licorne.lockcheck.happens_before import learn
from licorne.lockcheck.runtime import local, runtime
from licorne.lockcheck.rwlock import PlainRWLock, Waiter

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator, Sequence

    from licorne.lockcheck.findings import Mode
    from licorne.lockcheck.holding import Attempt
    from licorne.lockcheck.rwlock import Policy

__all__ = ["Nest", "Program", "checker_says", "deadlocks", "nests", "random_programs", "threads_of"]


@dataclass(frozen=True)
class Take:
    """One acquisition."""

    lock: int
    mode: Mode = "W"
    attempt: Attempt = "block"


Nest: TypeAlias = "tuple[Take, ...]"
"""Acquisitions inside each other; where one fails, what is inside of it is left out."""

Part: TypeAlias = "Nest | int"
"""A nest, or the number of a thread whose end is waited for."""

Thread: TypeAlias = "tuple[Part, ...]"


@dataclass(frozen=True)
class Program:
    """Threads that begin together."""

    threads: tuple[Thread, ...]
    policy: Policy = "writer"


LockState: TypeAlias = "tuple[int | None, frozenset[int], tuple[tuple[int, Mode], ...]]"
State: TypeAlias = "tuple[tuple[tuple[int, bool], ...], tuple[LockState, ...]]"
"""Of each thread its next step and whether it waits; of each lock who writes, who reads, who waits."""


@dataclass(frozen=True)
class Step:
    """One step of a thread; a `take` that fails goes on at `otherwise`."""

    what: Literal["take", "leave", "join"]
    take: Take
    otherwise: int = 0


def compiled(thread: Thread) -> tuple[Step, ...]:
    """Return the steps of a thread."""
    steps: list[Step] = []
    for part in thread:
        if isinstance(part, int):
            steps.append(Step("join", Take(part)))
            continue
        first, depth = len(steps), len(part)
        for place, take in enumerate(part):
            # A failed attempt goes on behind its own release: those of the outer ones are still to come.
            steps.append(Step("take", take, first + depth + (depth - place)))
        steps += [Step("leave", take) for take in reversed(part)]
    return tuple(steps)


# ------------------------------------------------------------------------------------ all schedules


class Explorer:
    """All states of a program, on the real lock."""

    def __init__(self, program: Program) -> None:
        self.steps = [compiled(thread) for thread in program.threads]
        self.count = 1 + max(
            (step.take.lock for steps in self.steps for step in steps if step.what == "take"), default=0
        )
        self.policy = program.policy
        self.who = 0

    def deadlocks(self) -> bool:
        """Tell whether any schedule ends with a thread that cannot go on."""
        start: State = (tuple((0, False) for _ in self.steps), ((None, frozenset(), ()),) * self.count)
        seen, pending = {start}, deque([start])
        with mock.patch.object(rwlock, "get_ident", self.running):
            while pending:
                state = pending.popleft()
                following = list(self.following(state))
                if not following and any(
                    at < len(steps) for (at, _), steps in zip(state[0], self.steps, strict=True)
                ):
                    return True
                for other in following:
                    if other not in seen:
                        seen.add(other)
                        pending.append(other)
        return False

    def running(self) -> int:
        """Return the thread whose turn it is: what the lock takes for the calling one."""
        return self.who

    def following(self, state: State) -> Iterator[State]:
        """Yield the states that one step of one thread leads to."""
        places, locks = state
        for who, (at, waits) in enumerate(places):
            if at == len(self.steps[who]):
                continue
            step = self.steps[who][at]
            if step.what == "join":
                if places[step.take.lock][0] == len(self.steps[step.take.lock]):
                    yield self.moved(state, who, at + 1, None)
                continue
            lock = self.restored(step.take.lock, locks[step.take.lock])
            self.who = who
            if step.what == "leave":
                (lock.release_read if step.take.mode == "R" else lock.release_write)()
                yield self.moved(state, who, at + 1, lock)
            elif waits:
                yield from self.after_waiting(state, who, step, lock)
            elif (lock.acquire_read if step.take.mode == "R" else lock.acquire_write)(0):
                yield self.moved(state, who, at + 1, lock)
            elif step.take.attempt == "try":
                yield self.moved(state, who, step.otherwise, lock)
            else:
                lock.enqueue(who, step.take.mode)
                yield self.moved(state, who, at, lock, waits=True)

    def after_waiting(self, state: State, who: int, step: Step, lock: PlainRWLock) -> Iterator[State]:
        """Yield what may become of a thread in the queue of a lock."""
        at = state[0][who][0]
        waiter = next((one for one in lock._queue if one.who == who), None)
        if waiter is None:
            yield self.moved(state, who, at + 1, lock)
        elif step.take.attempt == "timed":
            lock.give_up(waiter)
            yield self.moved(state, who, step.otherwise, lock)

    def moved(
        self, state: State, who: int, at: int, lock: PlainRWLock | None, *, waits: bool = False
    ) -> State:
        """Return a state in which a thread stands elsewhere and a lock is as it is now."""
        places, locks = state
        moved = tuple((at, waits) if one == who else place for one, place in enumerate(places))
        if lock is None:
            return moved, locks
        number = int(str(lock.key))
        now: LockState = (lock._writer, frozenset(lock._readers), lock.queued())
        return moved, (*locks[:number], now, *locks[number + 1 :])

    def restored(self, number: int, state: LockState) -> PlainRWLock:
        """Return a real lock in a state; its key is its number."""
        lock = PlainRWLock(key=number, policy=self.policy)
        lock._writer, readers, queue = state
        lock._readers = set(readers)
        lock._queue = deque(Waiter(who, mode) for who, mode in queue)
        return lock


def deadlocks(program: Program) -> bool:
    """Tell whether any schedule of a program ends with a thread that cannot go on."""
    return Explorer(program).deadlocks()


# ---------------------------------------------------------------------------------- one run, checked


def checker_says(program: Program) -> frozenset[Rung]:
    """Run the threads one after the other, each as a unit, and return the rungs of what was found."""
    with session(on=RECORD) as opened:
        locks = [RWLock("lock", key=number, policy=program.policy) for number in range(4)]
        for number in _in_order(program):
            with unit(str(number)):
                for part in program.threads[number]:
                    if isinstance(part, int):
                        _joined(opened.named_units[str(part)].segment)
                    else:
                        _run(part, locks)
    assert [] == opened.faults
    return frozenset(finding.rung for finding in opened.findings)


def _in_order(program: Program) -> list[int]:
    """Return the threads in an order in which each comes after those that it joins."""
    order: list[int] = []
    while len(order) < len(program.threads):
        order += [
            number
            for number, thread in enumerate(program.threads)
            if number not in order and all(part in order for part in thread if isinstance(part, int))
        ][:1]
    return order


def _joined(ended: object) -> None:
    """Let the unit that runs know that another one has ended."""
    local.unit.segment = learn(local.unit.segment, ended)  # type: ignore[arg-type] # a segment
    runtime.cut_trie(local.unit)


def _run(nest: Nest, locks: list[PlainRWLock]) -> None:
    if not nest:
        return
    take, lock = nest[0], locks[nest[0].lock]
    seconds = {"block": -1.0, "timed": 9.0, "try": 0.0}[take.attempt]
    assert (lock.acquire_read if take.mode == "R" else lock.acquire_write)(seconds)
    _run(nest[1:], locks)
    (lock.release_read if take.mode == "R" else lock.release_write)()


# -------------------------------------------------------------------------------------- the programs


def nests(locks: int, depth: int, attempts: tuple[Attempt, ...] = ("block",)) -> list[Nest]:
    """Return all nests of up to so many different locks."""
    ways: list[tuple[Mode, Attempt]] = [(mode, attempt) for mode in ("R", "W") for attempt in attempts]
    return [
        tuple(Take(lock, *way) for lock, way in zip(chosen, each, strict=True))
        for length in range(1, depth + 1)
        for chosen in permutations(range(locks), length)
        for each in product(ways, repeat=length)
    ]


def threads_of(parts: Sequence[Nest], count: int, policy: Policy = "writer") -> Iterator[Program]:
    """Yield all programs of so many threads with one nest each, but for their order."""
    for chosen in combinations_with_replacement(parts, count):
        yield Program(tuple((nest,) for nest in chosen), policy)


def random_programs(chance: random.Random) -> Iterator[Program]:
    """Yield programs without end: up to three threads and locks, four acquisitions, joins, all attempts."""
    while True:
        threads: list[Thread] = []
        for number in range(chance.choice((2, 3, 3))):
            parts: list[Part] = []
            left = chance.randint(1, 4)
            while left:
                length = chance.randint(1, min(3, left))
                left -= length
                parts.append(tuple(_random_take(lock, chance) for lock in chance.sample(range(3), length)))
            if number and chance.random() < 0.3:
                parts.insert(chance.randint(0, len(parts)), chance.randrange(number))
            threads.append(tuple(parts))
        policies: tuple[Policy, ...] = ("writer", "writer", "reader")
        yield Program(tuple(threads), chance.choice(policies))


def _random_take(lock: int, chance: random.Random) -> Take:
    modes: tuple[Mode, ...] = ("R", "W")
    attempts: tuple[Attempt, ...] = ("block", "block", "block", "timed", "try")
    return Take(lock, chance.choice(modes), chance.choice(attempts))
