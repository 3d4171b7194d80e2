"""Threads that take locks inside each other: learned of one after the other, then run together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias
from unittest import mock

import order_bugs
from support.lockcheck import lock_corpus
from support.lockcheck.deadlocked import run_all
from support.lockcheck.lock_corpus import RECORD, Bug, Cluster, Guard, hold
from support.lockcheck.lock_oracle import acts_of
from support.lockcheck.lock_programs import Program, Take

from licorne.lockcheck import RWLock, session, unit
from licorne.lockcheck.checking.acquisition_checks import witness_of
from licorne.lockcheck.findings.findings import Witness
from licorne.lockcheck.locks.rwlock import PlainRWLock

Works: TypeAlias = "Callable[[], Mapping[str, Callable[[], object]]]"
"""Makes the locks anew, and what each thread does with them, by the name of the thread."""


def witnesses(works: Works) -> list[Witness]:
    """Let one thread do what all would, one after the other; return witnesses of what nothing guards."""
    with session(level="confirm", on=RECORD) as opened:
        for name, work in works().items():
            with unit(name):
                work()
    assert [] == opened.faults
    found = [witness_of(finding) for finding in opened.findings]
    return [witness for witness in found if witness is not None]


def together(works: Works) -> list[str]:
    """Run all threads to their end; return the names of those that gave way."""
    return run_all(**works())


def nests_of(paths: Mapping[str, Sequence[Sequence[Guard]]]) -> dict[str, Callable[[], object]]:
    """Return works that take locks inside each other, one nest after the other."""

    def work(nests: Sequence[Sequence[Guard]]) -> None:
        for nest in nests:
            hold(*nest)

    return {name: partial(work, nests) for name, nests in paths.items()}


def works_of_bug(bug: Bug) -> Works:
    """Return what the executions of a case of the corpus do, each to be a thread of its own."""

    def works() -> Mapping[str, Callable[[], object]]:
        paths: dict[str, list[Sequence[Guard]]] = {}

        def note(who: str, *nest: Guard) -> None:
            paths.setdefault(who, []).append(nest)

        with mock.patch.object(order_bugs, "nest", note), mock.patch.object(lock_corpus, "nest", note):
            bug.run(Cluster())
        return nests_of(paths)

    return works


def works_of_program(program: Program) -> Works:
    """Return what the threads of a small program do, which has no joins and waits without limits."""
    policy = program.policy
    assert policy is not None
    assert policy != "mixed"

    def guard(take: object, locks: Sequence[PlainRWLock]) -> Guard:
        assert isinstance(take, Take)
        assert take.attempt == "block"
        lock = locks[take.lock]
        return lock.read() if take.mode == "R" else lock.write()

    def works() -> Mapping[str, Callable[[], object]]:
        locks = [RWLock("lock", key=number, policy=policy) for number in range(4)]
        return nests_of(
            {
                f"t{number}": [
                    [guard(take, locks) for take in part] for part in thread if not isinstance(part, int)
                ]
                for number, thread in enumerate(program.threads)
            }
        )

    return works


def joins(program: Program) -> bool:
    """Return whether a thread of a program waits for the end of another one."""
    return any(isinstance(act, int) for thread in program.threads for part in thread for act in acts_of(part))


def waits_without_limits(program: Program) -> bool:
    """Return whether no thread of a program only tries, or waits for a while."""
    acts = (act for thread in program.threads for part in thread for act in acts_of(part))
    return all(act.attempt == "block" for act in acts if isinstance(act, Take))
