"""Code of the program, and the disk: neither is used while the checker holds a lock of its own."""

from __future__ import annotations

import _thread
import contextvars
import gc
import io
import linecache
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest
from support.lockcheck.deadlocked import LEAVE_ALONE, deadlocks, run_all
from support.lockcheck.lock_corpus import RECORD, hold, nest
from support.waiting import WAIT_SECONDS

from licorne.lockcheck import Kind, Lock, Order, Rung, RWLock, key, session, tree
from licorne.lockcheck.checking.acquisition_checks import witness_of
from licorne.lockcheck.confirming.confirmation import confirm
from licorne.lockcheck.environment.ambient import open_ambient_session
from licorne.lockcheck.findings.foreign import ByIdentity, name_of_work, shown
from licorne.lockcheck.findings.terms import Environment, Level
from licorne.lockcheck.holding.chains import Execution
from licorne.lockcheck.holding.runtime import LATCH

Result = TypeVar("Result")


def held_by_the_checker() -> list[str]:
    """Return which locks of the checker another thread cannot have now, however long it waits."""
    locks = {"the latch": LATCH}
    held: list[str] = []
    over = _thread.allocate_lock()
    over.acquire()

    def look() -> None:
        for name, lock in locks.items():
            if lock.acquire(timeout=WAIT_SECONDS):
                lock.release()
            else:
                held.append(name)
        over.release()

    _thread.start_new_thread(look, ())  # of which no session hears
    over.acquire()
    return held


class Probe:
    """Notes what ran, and what the checker held meanwhile."""

    def __init__(self) -> None:
        self.ran: set[str] = set()
        self.held: set[tuple[str, str]] = set()

    def note(self, what: str) -> None:
        self.ran.add(what)
        self.held |= {(what, name) for name in held_by_the_checker()}

    def on(self, what: str, function: Callable[..., Result]) -> Callable[..., Result]:
        """Return a function that is noted and does the same."""

        def noted(*given: object, **named: object) -> Result:
            self.note(what)
            return function(*given, **named)

        return noted


class Key:
    """A key that is noted whenever code of it runs."""

    def __init__(self, probe: Probe, number: int = 0) -> None:
        self.probe = probe
        self.number = number

    def __str__(self) -> str:
        self.probe.note("__str__")
        return f"key {self.number}"

    def __repr__(self) -> str:
        self.probe.note("__repr__")
        return f"key {self.number}"

    def __lt__(self, other: Key) -> bool:
        self.probe.note("__lt__")
        return self.number < other.number

    def __eq__(self, other: object) -> bool:
        self.probe.note("__eq__")
        return self is other

    def __hash__(self) -> int:
        self.probe.note("__hash__")
        return self.number

    def __del__(self) -> None:
        self.probe.note("__del__")


@pytest.fixture
def probe() -> Iterator[Probe]:
    """Probe what runs; nothing of the checker may be held."""
    probe = Probe()
    yield probe
    gc.collect()
    assert set() == probe.held


def stuck(probe: Probe) -> None:
    """Take two locks with keys in both orders, in two threads that wait for each other."""
    a, b, both = Lock("a", key=Key(probe)), RWLock("b", key=Key(probe)), threading.Barrier(2)

    def take(first: object, second: object) -> None:
        with first:  # type: ignore[attr-defined] # a lock
            both.wait(WAIT_SECONDS)
            with second:  # type: ignore[attr-defined] # likewise
                pass

    run_all(one=partial(take, a, b.write()), two=partial(take, b.write(), a))


def test_a_guarded_path_and_its_reasons(probe: Probe) -> None:
    """They name the gate, and the locks that readers share."""
    with session(on=RECORD) as opened:
        gate, a, b = (Lock(name, key=Key(probe)) for name in ("gate", "a", "b"))
        nest("one", gate, a, b)
        nest("two", gate, b, a)
        nest("three", RWLock("c", key=Key(probe)).read())
        assert "guarded by gate key 0, held in both" in opened.report_text()
    opened.summary()

    assert [] == opened.faults


def test_a_broken_order(probe: Probe) -> None:
    """Keys are compared and shown."""
    with session(Order("a", same={"a": key()}), on=RECORD) as opened:
        hold(Lock("a", key=Key(probe, 2)), Lock("a", key=Key(probe, 1)))
    with session(Order("a", same={"a": tree()}), on=RECORD) as strict:
        hold(Lock("a", key=Key(probe, 2)), Lock("a", key=Key(probe, 1)))

    assert [Kind.SAME_CLASS] * 2 == [one.findings[0].kind for one in (opened, strict)]
    assert {"__lt__", "__repr__", "__str__"} <= probe.ran


def test_a_real_deadlock_its_file_and_its_victim(
    probe: Probe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program chooses who gives way, and the disk may be slow."""
    monkeypatch.setattr(Path, "write_text", probe.on("write", Path.write_text))
    monkeypatch.setattr(linecache, "getline", probe.on("read", linecache.getline))

    def oldest(executions: Sequence[Execution]) -> Execution:
        probe.note("victim")
        return min(executions, key=lambda execution: execution.serial)

    with session(on=LEAVE_ALONE, victim=oldest, witnesses=tmp_path) as opened:
        stuck(probe)

    assert [] == opened.faults
    assert 1 == len(deadlocks(opened))
    assert {"write", "read", "victim", "__str__"} <= probe.ran


def test_a_steered_deadlock_and_who_hears_of_it(
    probe: Probe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also there the file is written, and a function is called, without a lock of the checker."""
    with session(level=Level.CONFIRM, on=LEAVE_ALONE) as opened:
        stuck(probe)
    witness = witness_of(deadlocks(opened)[0])
    assert witness is not None
    monkeypatch.setattr(Path, "write_text", probe.on("write", Path.write_text))
    outcome = confirm(
        witness, partial(stuck, probe), folder=tmp_path, confirmed=lambda _: probe.note("confirmed")
    )

    assert outcome.finding is not None, outcome.reasons
    assert {"write", "confirmed", "__str__"} <= probe.ran


@pytest.mark.parametrize("level", [Level.ORDER, Level.FULL])
def test_what_is_forgotten(probe: Probe, level: Level) -> None:
    """Edges of locks that are gone, when they are many, and all of them when a session begins or ends."""
    with session(level=level, on=RECORD):
        outer = Lock("outer")
        for number in range(1100):
            hold(outer, Lock("inner", key=Key(probe, number)))
        with session(level=level, on=RECORD):
            hold(outer, Lock("inner", key=Key(probe)))
    gc.collect()

    assert {"__del__"} == probe.ran - {"__str__"}


def test_lines_of_a_summary(probe: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    """It names every place in the code."""
    with session(on=RECORD) as opened:
        hold(Lock("a"), Lock("b"))
        monkeypatch.setattr(linecache, "getline", probe.on("read", linecache.getline))
        opened.summary()

    assert {"read"} == probe.ran


@pytest.mark.lockcheck(off=True)
def test_the_session_of_the_environment(probe: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says that it was opened; where to may be code of the program."""
    output = io.StringIO()
    monkeypatch.setattr(output, "write", probe.on("write", output.write))
    monkeypatch.setattr(sys, "stderr", output)
    opened = open_ambient_session(Environment(Level.FULL, 60.0, exits=False, order_disabled=False))
    again = open_ambient_session(Environment(Level.FULL, 60.0, exits=False, order_disabled=False))
    assert opened is not None
    opened.__exit__(None, None, None)

    assert again is None
    assert {"write"} == probe.ran
    assert "Deadlock detection enabled" in output.getvalue()


@pytest.mark.parametrize("misuse", ["show", "release_read", "release_write", "acquire_read", "acquire_write"])
def test_a_key_may_ask_the_read_write_lock_that_it_is_of(misuse: str) -> None:
    """When it is shown, in an error too."""
    free: list[bool] = []

    class Asking:
        def __str__(self) -> str:
            free.append(not lock._mutex.locked())
            return "asking"

    with session(level=Level.OFF):
        lock = RWLock("a", key=Asking())
    if misuse == "show":
        assert "asking" in repr(lock)
    else:
        taken = lock.write() if misuse.startswith("acquire") else lock.read()
        with pytest.raises(RuntimeError, match="asking"), taken:
            (lock.release_write if misuse == "release_read" else getattr(lock, misuse))()

    assert [True] == free


class Hostile:
    """A key that can be neither shown nor compared."""

    def __str__(self) -> str:
        raise ZeroDivisionError("on purpose")

    __repr__ = __str__
    __hash__ = None  # type: ignore[assignment] # on purpose


def test_a_key_that_cannot_be_shown_hides_nothing() -> None:
    """A deadlock is broken, and a broken rule is found."""
    with session(on=LEAVE_ALONE) as opened:
        both = threading.Barrier(2)
        locks = [Lock("a", key=Hostile()), Lock("a", key=Hostile())]

        def take(first: int) -> None:
            with locks[first]:
                both.wait(WAIT_SECONDS)
                with locks[1 - first]:
                    pass

        assert 1 == len(run_all(one=partial(take, 0), two=partial(take, 1)))
    with session(Order("a"), on=RECORD) as strict:
        hold(Lock("a", key=Hostile()), Lock("a", key=Hostile()))

    assert [] == opened.faults == strict.faults
    assert (
        "a <Hostile, which raises ZeroDivisionError when it is shown>" in deadlocks(opened)[0].edges[0].wanted
    )
    assert [(Rung.R0, Kind.SAME_CLASS)] == [
        (one.rung, one.kind) for one in strict.findings if one.rung is Rung.R0
    ]


def test_what_cannot_be_shown_is_said_to_be_so() -> None:
    """By its class, and by what it raises."""
    assert "7" == shown(7)
    assert "'7'" == shown("7", repr)
    assert "<Hostile, which raises ZeroDivisionError when it is shown>" == shown(Hostile())


def test_what_is_kept_of_an_object_is_gone_with_it() -> None:
    """Objects that are equal are two all the same, and need no hash."""

    class Equal:
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = None  # type: ignore[assignment] # on purpose

    kept = ByIdentity[str]()
    one, other = Equal(), Equal()
    kept.put(one, "first")
    kept.put(one, "one")

    assert ("one", None, 1) == (kept.get(one), kept.get(other), len(kept))
    del one
    assert 0 == len(kept)


def test_the_name_of_work_is_that_of_the_function_inside() -> None:
    """Of a partial function, of one in a context as `asyncio.to_thread` has it, and of none at all."""
    context = contextvars.copy_context()
    assert name_of_work(shown) == "shown"
    assert name_of_work(partial(shown, 1)) == "shown"
    assert name_of_work(partial(context.run, partial(shown, 1), 2)) == "shown"
    assert name_of_work(partial(context.run)) == "Context.run"
    assert name_of_work(object()) == "a task"
