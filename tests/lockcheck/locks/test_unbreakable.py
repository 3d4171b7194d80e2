"""Who must have its lock back after a wait on a condition does not give way in a real deadlock."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from support.lockcheck.deadlocked import checked, deadlocks, heard, run_all
from support.waiting import WAIT_SECONDS

from licorne.lockcheck import Condition, Lock


def waits_for_a_change(
    condition: threading.Condition, other: threading.Lock, waiting: threading.Event
) -> None:
    """Wait on a condition with another lock held, and make sure that its lock is held afterwards."""
    with other, condition:
        waiting.set()
        condition.wait()
        condition.notify()


def changes(condition: threading.Condition, other: threading.Lock, waiting: threading.Event) -> None:
    """Notify, and want the other lock."""
    waiting.wait(WAIT_SECONDS)
    with condition:
        condition.notify()
        with other:
            pass


@pytest.mark.parametrize("youngest", ["waiter", "notifier"])
def test_the_other_one_gives_way_whatever_the_policy_says(youngest: str) -> None:
    """Without its lock, the waiter would leave a block that it does not hold."""
    with checked() as opened:
        condition, other, waiting = Condition(name="changed"), Lock("other"), threading.Event()
        works: dict[str, Callable[[], object]] = {
            "waiter": lambda: waits_for_a_change(condition, other, waiting),  # type: ignore[arg-type] # a lock
            "notifier": lambda: changes(condition, other, waiting),  # type: ignore[arg-type] # likewise
        }
        gave_way = run_all(**dict(sorted(works.items(), key=lambda pair: pair[0] == youngest)))

    assert ["notifier"] == gave_way
    assert 1 == len(deadlocks(opened))


def test_where_nobody_can_give_way_the_deadlock_is_only_reported() -> None:
    """Once, and it stands until somebody else ends it."""
    with heard("Deadlock") as reported, checked() as opened:
        locks = Lock("one"), Lock("two")
        both = threading.Barrier(2)

        def takes_back(mine: int) -> None:
            locks[mine].acquire()
            both.wait(WAIT_SECONDS)
            Condition(locks[1 - mine])._acquire_restore(1)  # type: ignore[attr-defined] # as `wait` does

        def ends_it() -> None:
            assert reported.wait(WAIT_SECONDS)
            locks[0].release()
            locks[1].release()

        gave_way = run_all(a=lambda: takes_back(0), b=lambda: takes_back(1), ends=ends_it)

    assert [] == gave_way
    (finding,) = deadlocks(opened)
    assert 1 == finding.count
