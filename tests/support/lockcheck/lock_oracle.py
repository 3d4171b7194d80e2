"""Small lock programs: what can become of them in every schedule, and what the checker says after one run.

The model checker walks all states of a program by breadth. It does not model the read/write lock: what
becomes of a lock is asked of a real one, put into the state that it is in.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal, TypeAlias
from unittest import mock

from support.lockcheck.lock_corpus import RECORD
from support.lockcheck.lock_programs import LEAVE, Act, Program, Take, Thread

from licorne.lockcheck import LockUsageError, RLock, Rung, RWLock, Session, session, unit
from licorne.lockcheck.checking.acquisition_checks import End
from licorne.lockcheck.checking.knowledge import taken_by
from licorne.lockcheck.findings.terms import Mode, RWPolicy
from licorne.lockcheck.holding.chains import Execution, learn
from licorne.lockcheck.holding.runtime import local, runtime
from licorne.lockcheck.locks import rwlock
from licorne.lockcheck.locks.rwlock import PlainRWLock, Waiter

LockState: TypeAlias = "tuple[int | None, frozenset[int], tuple[tuple[int, Mode], ...]]"
State: TypeAlias = "tuple[tuple[tuple[int, bool], ...], tuple[LockState, ...]]"
"""Of each thread its next step and whether it waits; of each lock who writes, who reads, who waits."""

FREE: LockState = (None, frozenset(), ())


@dataclass(frozen=True)
class Step:
    """One step of a thread; a `take` that fails goes on at `otherwise`."""

    what: Literal["take", "leave", "join"]
    take: Take
    """Of a join, the `lock` is the thread."""
    otherwise: int = 0
    again: bool = False
    """Whether the thread holds the lock already."""


def compiled(thread: Thread) -> tuple[Step, ...]:
    """Return the steps of a thread."""
    steps: list[Step] = []
    for part in thread:
        opened: list[int] = []
        for act in acts_of(part):
            if isinstance(act, int):
                steps.append(Step("join", Take(act)))
            elif isinstance(act, str):
                at = opened.pop(-1 if act == LEAVE else 0)
                steps.append(replace(steps[at], what="leave"))
                # A failed attempt goes on behind its own release: those of the outer ones are still to come.
                steps[at] = replace(steps[at], otherwise=len(steps))
            else:
                again = any(steps[at].take.lock == act.lock for at in opened)
                opened.append(len(steps))
                steps.append(Step("take", act, again=again))
    return tuple(steps)


def acts_of(part: Sequence[Act] | int) -> Sequence[Act]:
    """Return what a part of a thread does, with all that it releases at its end."""
    if isinstance(part, int):
        return (part,)
    left = sum(isinstance(act, Take) for act in part) - sum(isinstance(act, str) for act in part)
    closing: list[Act] = [LEAVE for _ in range(left)]
    return (*part, *closing)


def refuses(program: Program) -> bool:
    """Return whether a thread wants for sure what it holds, and does more than try."""
    return any(_refused(compiled(thread), program) for thread in program.threads)


def _refused(steps: tuple[Step, ...], program: Program) -> bool:
    """Walk through a thread that gets whatever it does not hold."""
    at = 0
    while at < len(steps):
        step = steps[at]
        if step.what == "take" and step.again and program.policy_of(step.take.lock) is not None:
            if step.take.attempt != "try":
                return True
            at = step.otherwise
        else:
            at += 1
    return False


# ------------------------------------------------------------------------------------ all schedules


@cache
def lock_after(
    policy: RWPolicy | None,
    before: LockState,
    who: int,
    act: Literal["try", "wait", "leave", "give up"],
    mode: Mode,
) -> LockState | None:
    """Let a thread do something with a real lock that is in some state; one without a policy is only written.

    Returns:
        The state after it; none where the lock cannot be had, or refuses its holder.
    """
    lock = PlainRWLock(policy=policy or "writer")
    lock._writer, readers, queue = before
    lock._readers = set(readers)
    lock._queue = [Waiter(*waiter) for waiter in queue]
    with mock.patch.object(rwlock, "get_ident", return_value=who):
        if act == "try" and not (lock.acquire_read if mode == "R" else lock.acquire_write)(0):
            return None
        if act == "leave":
            (lock.release_read if mode == "R" else lock.release_write)()
        if act == "give up":
            lock.give_up(next(waiter for waiter in lock._queue if waiter.who == who))
        if act == "wait" and lock.enqueue(who, mode) is None:
            return None
    return lock._writer, frozenset(lock._readers), lock.queued()


class Explorer:
    """All states of a program."""

    def __init__(self, program: Program) -> None:
        self.steps = [compiled(thread) for thread in program.threads]
        count = 1 + max(
            (step.take.lock for steps in self.steps for step in steps if step.what == "take"), default=0
        )
        self.policies = [program.policy_of(lock) for lock in range(count)]
        self.start: State = (tuple((0, False) for _ in self.steps), (FREE,) * count)

    def deadlocks(self) -> bool:
        """Return whether any schedule ends with a thread that cannot go on."""
        return any(not following and self.unfinished(state) for state, following in self.reached(self.start))

    def reached(self, start: State) -> Iterator[tuple[State, list[State]]]:
        """Yield every state that can be reached, by breadth, and those that follow it at once."""
        seen, pending = {start}, deque([start])
        while pending:
            state = pending.popleft()
            following = self.following(state)
            yield state, following
            for other in following:
                if other not in seen:
                    seen.add(other)
                    pending.append(other)

    def unfinished(self, state: State) -> bool:
        """Return whether a thread still has something to do."""
        return any(at < len(steps) for (at, _), steps in zip(state[0], self.steps, strict=True))

    def following(self, state: State) -> list[State]:
        """Return the states that one step of one thread leads to."""
        threads = (self.stepped(state, who) for who in range(len(self.steps)))
        return [after for after in threads if after is not None]

    def stepped(self, state: State, who: int) -> State | None:
        """Return the state after the next step of a thread; none where it cannot go on."""
        places, locks = state
        at, waits = places[who]
        if at == len(self.steps[who]):
            return None
        step = self.steps[who][at]
        if step.what == "join":
            ended = places[step.take.lock][0] == len(self.steps[step.take.lock])
            return moved(state, who, at + 1) if ended else None
        policy = self.policies[step.take.lock]
        if step.again and policy is None:
            return moved(state, who, at + 1)
        if waits:
            return self.waited(state, who, step)
        before, mode = locks[step.take.lock], step.take.mode
        if step.what == "leave":
            return moved(state, who, at + 1, step, lock_after(policy, before, who, "leave", mode))
        taken = lock_after(policy, before, who, "try", mode)
        if taken is not None:
            return moved(state, who, at + 1, step, taken)
        if step.take.attempt == "try":
            return moved(state, who, step.otherwise)
        queued = lock_after(policy, before, who, "wait", mode)
        if queued is None:
            return moved(state, who, step.otherwise)
        return moved(state, who, at, step, queued, waits=True)

    def waited(self, state: State, who: int, step: Step) -> State | None:
        """Return what becomes of a thread in the queue of a lock."""
        places, locks = state
        before = locks[step.take.lock]
        if all(waiter != who for waiter, _ in before[2]):
            return moved(state, who, places[who][0] + 1)
        if step.take.attempt == "block":
            return None
        policy = self.policies[step.take.lock]
        left = lock_after(policy, before, who, "give up", step.take.mode)
        return moved(state, who, step.otherwise, step, left)


def moved(
    state: State,
    who: int,
    at: int,
    step: Step | None = None,
    lock: LockState | None = None,
    *,
    waits: bool = False,
) -> State:
    """Return a state in which a thread stands elsewhere, and the lock of its step is as it is now."""
    places, locks = state
    there = (*places[:who], (at, waits), *places[who + 1 :])
    if step is None or lock is None:
        return there, locks
    number = step.take.lock
    return there, (*locks[:number], lock, *locks[number + 1 :])


def deadlocks(program: Program) -> bool:
    """Return whether any schedule of a program ends with a thread that cannot go on."""
    return Explorer(program).deadlocks()


# ---------------------------------------------------------------------------------- one run, checked


def checker_says(program: Program) -> frozenset[Rung]:
    """Run the threads one after the other, each as an execution, and return the rungs of what was found."""
    with session(on=RECORD) as opened:
        run_in_turn(program, opened)
    return frozenset(finding.rung for finding in opened.findings)


def run_in_turn(program: Program, opened: Session) -> None:
    """Run the threads of a program one after the other, each as an execution named by its number."""
    run = _Run(opened, program)
    for number in in_order(program):
        with unit(str(number)):
            for part in program.threads[number]:
                run.part(part)
    assert [] == opened.faults


def in_order(program: Program) -> list[int]:
    """Return the threads in an order in which each comes after those that it joins."""
    waits = [
        {act for part in thread for act in acts_of(part) if isinstance(act, int)}
        for thread in program.threads
    ]
    order: list[int] = []
    while len(order) < len(waits):
        order.append(next(who for who, others in enumerate(waits) if who not in order and others <= {*order}))
    return order


class _Run:
    """One run of a program on checked locks."""

    def __init__(self, opened: Session, program: Program) -> None:
        self.opened = opened
        policies = map(program.policy_of, range(4))
        self.locks: list[Any] = [
            RWLock("lock", key=number, policy=policy) if policy is not None else RLock("lock", key=number)
            for number, policy in enumerate(policies)
        ]

    def part(self, part: Sequence[Act] | int) -> None:
        """Do what a part of a thread says; what is inside of a refused acquisition is left out."""
        held: list[Take] = []
        skipped = 0
        for act in acts_of(part):
            if isinstance(act, int):
                if not skipped:
                    _joined(self.opened.watch.named_executions[str(act)])
            elif skipped:
                skipped += -1 if isinstance(act, str) else 1
            elif isinstance(act, str):
                self._leave(held.pop(-1 if act == LEAVE else 0))
            elif self._take(act):
                held.append(act)
            else:
                skipped = 1

    def _take(self, take: Take) -> bool:
        seconds = {"block": -1.0, "timed": 9.0, "try": 0.0}[take.attempt]
        lock = self.locks[take.lock]
        if not isinstance(lock, PlainRWLock):
            return bool(lock.acquire(timeout=seconds))
        try:
            return bool((lock.acquire_read if take.mode == "R" else lock.acquire_write)(seconds))
        except LockUsageError:
            return False

    def _leave(self, take: Take) -> None:
        lock = self.locks[take.lock]
        if not isinstance(lock, PlainRWLock):
            lock.release()
        else:
            (lock.release_read if take.mode == "R" else lock.release_write)()


def _joined(ended: Execution) -> None:
    """Note for the current execution that it waited for the end of another one, which has come."""
    End(f"the end of {ended.name}", None, taken_by(ended)).awaited()
    local.execution.segment = learn(local.execution.segment, ended.segment)
    runtime.cut_trie(local.execution)
