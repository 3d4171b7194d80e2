"""A bug of the checker, wherever it is, changes nothing in the program: it is counted and reported."""

from __future__ import annotations

import sys
import threading

import pytest
from support.lockcheck.lock_corpus import RECORD, hold

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
from licorne.lockcheck.findings.statistics import PENDING_MAX

pytestmark = pytest.mark.lockcheck(off=True)
"""The program makes its mistakes once with nobody looking on."""

PARTS = (
    "judging._keeps_leaf",
    "judging._keeps_order",
    "judging._learn",
    "judging.find_cycle",
    "judging.fingerprint_of_cycle",
    "graph.Graph.add",
    "order.Order.check",
    "watch.Watch.captured",
    "watch.Watch.tally",
    "watch.Watch.report_step",
    "watch.Watch.report_use",
    "watch.Watch.note",
    "watch.capture",
    "watch.act_on",
    "watch.fingerprint_of",
    "stepping.judge",
    "stepping._place",
    "stepping._wants_again",
    "stepping._wrongly_released",
    "stepping._count_members",
    "statistics.UsageTally.fold",
    "blocking._check_held",
    "contracts._report",
    "units._report",
    "checked_condition.CheckedCondition._report_use",
    "checked_condition.waits_in_loop",
    "waiting._break_deadlock",
    "waiting._has_stalled",
)
"""What the checker does, each in its own function."""


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
    seen.append(inner.acquire(timeout=0.001))
    with blocking("ask"):
        inner.release()
    with pytest.raises(RuntimeError):
        inner.release()
    upgrades()
    seen += [waits(), notifies(), takes(), ends_holding(), *contracts()]
    for _ in range(PENDING_MAX + 2):
        hold(inner)
    return [*seen, held()]


def waits() -> list[bool]:
    """Wait for a lock in vain, long enough for several looks at who waits for whom."""
    lock, got = RWLock("waited for"), []
    thread = threading.Thread(target=lambda: got.append(lock.acquire_read(0.08)))
    with lock.write():
        thread.start()
        thread.join(10)
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
        woken = condition.wait_for(lambda: bool(seen), 10)
    thread.join(10)
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
    thread.join(10)
    return thing


def ends_holding() -> bool:
    """End a thread that holds a lock."""
    lock = Lock("forgotten")
    thread = threading.Thread(target=lock.acquire)
    thread.start()
    thread.join(10)
    return not lock.acquire(blocking=False)


def checked_session() -> Session:
    """Return a session that knows an order, and has limits that waits and holds exceed."""
    return session(Order("outer < inner < member"), on=RECORD, timeout_seconds=0.001, max_hold_seconds=0.01)


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

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("on purpose")

    module, _, name = part.partition(".")
    owner, _, name = name.rpartition(".")
    (there,) = (
        found
        for known, found in sys.modules.items()
        if known.startswith("licorne.lockcheck.")
        and known.endswith(f".{module}")
        and not hasattr(found, "__path__")
    )
    monkeypatch.setattr(getattr(there, owner) if owner else there, name, broken)
    seen, faults = checked()

    assert unbroken == seen
    assert {"ZeroDivisionError: on purpose"} == set(faults)
