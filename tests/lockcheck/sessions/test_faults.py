"""A bug of the checker, wherever it is, changes nothing in the program: it is counted and reported."""

from __future__ import annotations

import threading

import pytest
from support.lockcheck.broken_parts import break_part
from support.lockcheck.forked import forks_beside
from support.lockcheck.lock_corpus import RECORD, hold
from support.waiting import EXPIRING_SECONDS, WAIT_SECONDS

from licorne.lockcheck import (
    Condition,
    Kind,
    Lock,
    LockUsageError,
    Order,
    RLock,
    RWLock,
    Session,
    blocking,
    excludes,
    held,
    leaf,
    note_write,
    requires,
    session,
)

pytestmark = pytest.mark.lockcheck(off=True)
"""The program makes its mistakes once without a session."""

PARTS = (
    "checking.acquisition_checks._keeps_leaf",
    "checking.acquisition_checks._keeps_order",
    "checking.acquisition_checks._learn",
    "checking.acquisition_checks.find_cycle",
    "checking.acquisition_checks.fingerprint_of_cycle",
    "checking.forks._note_others",
    "checking.graph.Graph.add",
    "order.order.Order.check",
    "checking.watch.Watch.captured",
    "checking.watch.Watch.report_step",
    "checking.watch.Watch.report_use",
    "checking.watch.Watch.note",
    "checking.watch.capture",
    "checking.watch.act_on",
    "checking.watch.fingerprint_of",
    "checking.slow_path.check_acquisition",
    "checking.slow_path._wants_again",
    "checking.slow_path._wrongly_released",
    "checking.slow_path._count_members",
    "checking.blocking._check_held",
    "locks.contracts._report",
    "locks.contracts._report_misuse",
    "locks.checked_condition.CheckedCondition._report_use",
    "locks.checked_condition.waits_in_loop",
    "checking.waiting._break_deadlock",
    "checking.waiting._has_stalled",
)
"""What the checker does, each in its own function: room, module and name."""


def contracts() -> list[str]:
    """Break every contract."""

    class Guarded:
        lock = Lock("guarded")

        @requires("lock")
        def demand(self) -> str:
            return "demanded"

        @excludes("guarded")
        def refuse(self) -> str:
            return "refused"

        @leaf
        def end(self) -> str:
            with Lock("below a leaf"):
                return "ended"

    guarded = Guarded()
    said = [guarded.demand(), guarded.end()]
    with guarded.lock:
        return [*said, guarded.refuse()]


def program() -> list[object]:
    """Make every mistake that does not hang, and return what was seen of it."""
    seen: list[object] = []
    outer, inner, again = RLock("outer"), Lock("inner"), RLock("again")
    members, shared = [Lock("member", key=number) for number in range(5)], RWLock("shared")
    hold(outer, inner)
    hold(members[0], members[1])
    hold(inner, outer, again, again, shared.read())
    with outer:
        for member in members:
            hold(member)
    seen.append(inner.acquire(blocking=False))
    seen.append(inner.acquire(blocking=False))
    seen.append(inner.acquire(timeout=EXPIRING_SECONDS))
    with blocking("ask"):
        inner.release()
    with pytest.raises(RuntimeError):
        inner.release()
    upgrades()
    seen += [waits(), notifies(), takes(), ends_holding(), *contracts()]
    forked = Lock("forked")
    forks_beside(forked, lambda: hold(forked))
    hold(inner)
    return [*seen, held()]


def waits() -> list[bool]:
    """Wait for a lock without success, long enough for several searches for deadlocks."""
    lock, got = RWLock("waited for"), []
    thread = threading.Thread(target=lambda: got.append(lock.acquire_read(0.08)))
    with lock.write():
        thread.start()
        thread.join(WAIT_SECONDS)
    return got


def upgrades() -> None:
    """Write where only reading is safe, and want to write while reading."""
    lock = RWLock("read")
    note_write(lock, "something")
    with lock.read():
        note_write(lock, "something")
        with pytest.raises(LockUsageError):
            lock.acquire_write(0.01)


def notifies() -> bool:
    """Wait on a condition until it is notified, and notify without its lock."""
    condition, seen = Condition(name="condition"), []

    def wake() -> None:
        with condition:
            seen.append(1)
            condition.notify()

    with condition:
        thread = threading.Thread(target=wake)
        thread.start()
        woken = condition.wait_for(lambda: bool(seen), WAIT_SECONDS)
    thread.join(WAIT_SECONDS)
    with pytest.raises(RuntimeError):
        condition.notify()
    return woken


def takes() -> int:
    """Take something after a notification without a look whether it is there."""
    condition, things = Condition(name="things"), [7]

    def wake() -> None:
        with condition:
            condition.notify()

    with condition:
        thread = threading.Thread(target=wake)
        thread.start()
        condition.wait()
        thing = things.pop()
    thread.join(WAIT_SECONDS)
    return thing


def ends_holding() -> bool:
    """End a thread that holds a lock."""
    lock = Lock("forgotten")
    thread = threading.Thread(target=lock.acquire)
    thread.start()
    thread.join(WAIT_SECONDS)
    return not lock.acquire(blocking=False)


def checked_session() -> Session:
    """Return a session that knows an order, and has a limit that waits exceed."""
    return session(Order("outer < inner < member"), on=RECORD, timeout_seconds=0.001)


def checked() -> tuple[list[object], list[str]]:
    """Return what the program saw under a session, and the faults of that."""
    with checked_session() as opened:
        seen = program()
    return seen, opened.faults


def test_the_program_makes_every_mistake() -> None:
    """Otherwise a part that is broken would not run; and unchecked it sees the same."""
    with checked_session() as opened:
        seen = program()

    assert set(Kind) - {finding.kind for finding in opened.findings} == {Kind.DEADLOCK}
    assert seen == program()


@pytest.mark.parametrize("part", PARTS)
def test_a_part_of_the_checker_may_be_broken(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program sees what it sees without."""
    unbroken = program()
    break_part(monkeypatch, part)
    seen, faults = checked()

    assert unbroken == seen
    assert {"ZeroDivisionError: on purpose"} == set(faults)
