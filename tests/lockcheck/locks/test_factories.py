"""Where locks come from: plain ones where nothing is checked, names by default, several at once."""

from __future__ import annotations

import json
import subprocess
import threading
from pathlib import Path

import pytest
from support.programs import run_python

from licorne.lockcheck import (
    Condition,
    Environment,
    Level,
    Lock,
    LockUsageError,
    Order,
    RLock,
    Rung,
    RWLock,
    held,
    lock_all,
    requires,
    session,
    unexercised,
)
from licorne.lockcheck.locks.rwlock import PlainRWLock

_OFF = """
import json, sys, threading
from licorne.lockcheck import Condition, Lock, RLock, RWLock, requires, leaf, excludes
def work(self): ...
print(json.dumps({
    "types": [type(Lock()) is type(threading.Lock()), type(RLock()) is type(threading.RLock()),
              type(RWLock()).__name__, type(Condition()).__name__],
    "same": [requires("lock")(work) is work, leaf(work) is work, excludes()(work) is work],
    "loaded": [name for name in sys.modules if name.startswith("licorne.lockcheck.")],
}))
"""

_AMBIENT = """
import sys, threading
from licorne.lockcheck import Lock, RLock, RWLock
a, b = Lock("a"), Lock("b")
def forth():
    with a, b: pass
def back():
    with b, a: pass
threads = [threading.Thread(target=work) for work in (forth, back)]
hold = threading.Lock()
for thread in threads:
    thread.start()
    thread.join()
lock = RWLock("twice")
with lock.read():
    try:
        lock.acquire_read()
    except Exception as error:
        print(type(error).__name__)
print("alive", type(a).__name__)
"""


def run_strictly(code: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh interpreter that has some variables and raises warnings."""
    return run_python("-W", "error", "-c", code, folder=folder, environment=environment)


def test_where_nothing_is_checked_locks_are_the_plain_ones_and_nothing_is_loaded(tmp_path: Path) -> None:
    """Decorators return the function itself, and no module that analyses was imported."""
    found = json.loads(run_strictly(_OFF, tmp_path).stdout)

    assert [True, True, "PlainRWLock", "Condition"] == found["types"]
    assert [True, True, True] == found["same"]
    loaded = {name.removeprefix("licorne.lockcheck.") for name in found["loaded"]}
    assert set() == loaded & {"sessions", "graph", "cycles", "checked", "checked_rw", "observed", "report"}


@pytest.mark.parametrize("level", ["order", "full"])
def test_in_a_session_locks_are_checked(level: str) -> None:
    """Each kind, at each level; the constructor may say otherwise."""
    with session(level=level):
        assert all(hasattr(lock, "identity") for lock in (Lock(), RLock(), RWLock(), Condition()))
        assert isinstance(Lock(check="off"), type(threading.Lock()))
        assert PlainRWLock is type(RWLock(check=Level.OFF))


def test_an_unknown_level_is_refused() -> None:
    """By its name."""
    with pytest.raises(
        LockUsageError, match="'most' is not a level of checking: off, order, full or confirm"
    ):
        Lock(check="most")


class Account:
    """Something with a lock that has no name of its own."""

    def __init__(self) -> None:
        self._lock = RWLock()


def test_a_lock_without_a_name_is_called_after_what_it_is_assigned_to() -> None:
    """Class and attribute, or the variable."""
    with session():
        first, second = Lock(), Lock()
        alone = Lock()

        assert "Account._lock" == Account()._lock.identity.name  # type: ignore[attr-defined] # a checked one
        assert "alone" == alone.identity.name  # type: ignore[attr-defined] # a checked one
        code = test_a_lock_without_a_name_is_called_after_what_it_is_assigned_to.__code__
        place = f"test_factories.py:{code.co_firstlineno + 3}"
        assert {place} == {first.identity.name, second.identity.name}  # type: ignore[attr-defined] # checked ones


def test_lock_all_takes_locks_by_rank_then_by_key() -> None:
    """Whatever order they are given in."""
    with session(Order("queue < node", same={})) as opened:
        node, queue = Lock("node", key="n1"), RWLock("queue", key="root")
        with lock_all(node, queue.read()):
            assert ("queue root [R]", "node n1") == held()

    assert () == opened.findings


def test_a_contract_of_methods_says_so_where_it_stands_on_a_function() -> None:
    """A function has no object that could have the lock."""
    with session():

        @requires("lock")
        def work() -> None:
            """Work."""

        with pytest.raises(LockUsageError, match=r"work: requires lock\[W\]: it is called without an object"):
            work()


def test_contracts_that_never_ran_are_known() -> None:
    """A contract that nobody exercised is no evidence of anything."""
    with session():

        class Books:
            lock = RWLock("books")

            @requires("lock", "R")
            def read(self) -> None:
                """Read."""

            @requires("lock")
            def write(self) -> None:
                """Write."""

        books = Books()
        with books.lock.read():
            books.read()

    mine = [name for name in unexercised() if "test_contracts_that_never_ran" in name]
    assert 1 == len(mine)
    assert mine[0].endswith("Books.write: requires lock[W]")


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, Environment(Level.OFF, None, exits=False, order_disabled=False)),
        ({"LOCKCHECK": "order"}, Environment(Level.ORDER, None, exits=False, order_disabled=False)),
        (
            {"DEADLOCK_DETECTION_ENABLED": "true"},
            Environment(Level.FULL, 60.0, exits=False, order_disabled=False),
        ),
        (
            {"DEADLOCK_DETECTION_ENABLED": "true", "DEADLOCK_TIMEOUT_SECONDS": "10", "DEADLOCK_EXIT": "true"},
            Environment(Level.FULL, 10.0, exits=True, order_disabled=False),
        ),
        (
            {
                "DEADLOCK_DETECTION_ENABLED": "1",
                "DEADLOCK_TIMEOUT_SECONDS": "soon",
                "DEADLOCK_DISABLE_LOCK_ORDER": "t",
            },
            Environment(Level.FULL, 60.0, exits=False, order_disabled=True),
        ),
        ({"DEADLOCK_EXIT": "true"}, Environment(Level.OFF, None, exits=False, order_disabled=False)),
    ],
)
def test_the_environment_is_read_as_the_recorded_core_reads_it(
    variables: dict[str, str], expected: Environment
) -> None:
    """An unreadable timeout is 60 seconds; without detection the other variables mean nothing."""
    assert expected == Environment.read(variables)


def test_with_detection_by_the_environment_a_program_goes_on_and_findings_are_logged(tmp_path: Path) -> None:
    """As in the recorded core: a line at the start, reports, and the program lives."""
    ran = run_strictly(_AMBIENT, tmp_path, DEADLOCK_DETECTION_ENABLED="true")

    assert "=== Deadlock detection enabled (timeout: 60 seconds, exit on deadlock: False" in ran.stderr
    assert "Broken rule: twice" in ran.stderr
    assert ["LockUsageError", "alive FullLock"] == ran.stdout.splitlines()
    assert 0 == ran.returncode


def test_the_environment_may_switch_the_order_off(tmp_path: Path) -> None:
    """Then only what really hangs is reported."""
    ran = run_strictly(
        _AMBIENT, tmp_path, DEADLOCK_DETECTION_ENABLED="true", DEADLOCK_DISABLE_LOCK_ORDER="true"
    )

    assert "R0" not in ran.stderr
    assert 0 == ran.returncode


def test_the_environment_may_have_the_process_end_with_code_1(tmp_path: Path) -> None:
    """At the first finding that fails."""
    ran = run_strictly(_AMBIENT, tmp_path, DEADLOCK_DETECTION_ENABLED="true", DEADLOCK_EXIT="true")

    assert 1 == ran.returncode
    assert "alive" not in ran.stdout


def test_a_finding_is_raised_before_the_lock_is_taken() -> None:
    """So nothing is ever half locked."""
    with session(Order("outer < inner"), on={Rung.R0: "raise"}):
        outer, inner = Lock("outer"), Lock("inner")
        with inner, pytest.raises(RuntimeError, match="outer comes before inner") as caught:
            outer.acquire()

        assert outer.acquire(blocking=False)
        outer.release()
        assert "declared: outer < inner" in caught.value.__notes__[0]
