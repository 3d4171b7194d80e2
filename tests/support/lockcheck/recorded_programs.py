"""Small programs on real threads: one after the other where they are recorded, all together where steered."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from support.lockcheck.lock_oracle import in_order
from support.lockcheck.lock_programs import Act, Program, Take
from support.waiting import WAIT_SECONDS

from licorne.lockcheck import DeadlockError, RWLock
from licorne.lockcheck.findings.terms import RWPolicy

ONE_BY_ONE: Final = """
import _thread
import threading
from contextlib import nullcontext
from licorne.lockcheck.holding.runtime import runtime

def one_by_one():
    return _thread.allocate_lock() if runtime.steering is None else nullcontext()
"""
"""The beginning of a program: what its threads enter first, so that they take turns unless they are steered.

Lockcheck does not hear of it. Without it they would take turns on most runs, and be stuck in others.
"""


CROSSED: Final = f"""
{ONE_BY_ONE}
import os, sys
from licorne.lockcheck import Lock
a, b, gate = Lock("a"), Lock("b"), Lock("gate")
turns = one_by_one()
def one():
    with turns, GATE a, b:
        pass
def two():
    with turns, GATE b, a:
        pass
threads = [threading.Thread(target=work) for work in (one, two)]
for thread in threads:
    thread.start()
    AFTER_START
"""
JOINS: Final = "for thread in threads: thread.join()\n"


def crossed_program(*, gate: str = "", after_start: str = "pass", rest: str = JOINS) -> str:
    """Return a program whose threads take two locks in both orders; what follows joins them."""
    return CROSSED.replace("GATE", gate).replace("AFTER_START", after_start) + rest


class RunningProgram:
    """The threads of a program that waits without limits; one that has to give way ends.

    Args:
        program: what they do.
        one_by_one: whether each begins when the one before is over, without anything that is heard of.
    """

    def __init__(self, program: Program, *, one_by_one: bool) -> None:
        assert program.policy in {"writer", "reader"}
        policy: RWPolicy = "writer" if program.policy == "writer" else "reader"
        numbers = in_order(program)
        self._program = program
        self._locks = [RWLock("lock", key=number, policy=policy) for number in range(4)]
        self._one_by_one = one_by_one
        self._over = {number: threading.Lock() for number in numbers}
        self._before = dict(zip(numbers, (None, *numbers), strict=False))
        self._threads = {
            number: threading.Thread(target=self._work, args=(number,), name=f"t{number}", daemon=True)
            for number in numbers
        }

    def run(self) -> None:
        """Run them all to their end."""
        for over in self._over.values():
            over.acquire()
        for thread in self._threads.values():
            thread.start()
        for thread in self._threads.values():
            thread.join(WAIT_SECONDS)
            assert not thread.is_alive(), f"{thread.name} never ends"

    def _work(self, number: int) -> None:
        before = self._before[number]
        if self._one_by_one and before is not None:
            assert self._over[before].acquire(timeout=WAIT_SECONDS)
        with suppress(DeadlockError):
            for part in self._program.threads[number]:
                self._act((part,) if isinstance(part, int) else part)
        self._over[number].release()

    def _act(self, acts: Sequence[Act]) -> None:
        if not acts:
            return
        act, *rest = acts
        if isinstance(act, int):
            self._threads[act].join()
            self._act(rest)
            return
        assert isinstance(act, Take)
        lock = self._locks[act.lock]
        with lock.read() if act.mode == "R" else lock.write():
            self._act(rest)
