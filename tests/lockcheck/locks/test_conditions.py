"""How conditions are used: who waits asks again afterwards, and holds its lock once."""

from __future__ import annotations

import concurrent.futures
import dis
import multiprocessing
import queue
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType

import pytest
from support.lockcheck.lock_corpus import RECORD
from support.waiting import EXPIRING_SECONDS, WAIT_SECONDS

from licorne.lockcheck import Condition, Kind, LockOrderError, Rung, session
from licorne.lockcheck.locks.checked_condition import what_follows


class Shelf:
    """Things that one thread puts and another one takes, in many ways."""

    def __init__(self) -> None:
        self.changed = Condition(name="shelf")
        self.things: list[int] = []
        self.closed = False

    def serve(self, take: Callable[[], object]) -> None:
        """Put a thing whenever the taker has begun to wait, until it has ended."""
        taker = threading.Thread(target=take, daemon=True)
        taker.start()
        while taker.is_alive():
            if self.changed._waiters:  # type: ignore[attr-defined] # nobody else tells who waits
                with self.changed:
                    self.things.append(7)
                    self.changed.notify()
            taker.join(EXPIRING_SECONDS)

    def in_a_loop(self) -> int:
        with self.changed:
            while not self.things:
                self.changed.wait()
            return self.things.pop()

    def in_an_endless_loop(self) -> int:
        with self.changed:
            while True:
                if self.things:
                    return self.things.pop()
                self.changed.wait()

    def wait_for(self) -> int:
        with self.changed:
            self.changed.wait_for(lambda: self.things)
            return self.things.pop()

    def decides_afterwards(self) -> int:
        with self.changed:
            if not self.things:
                self.changed.wait()
            if self.things:
                return self.things.pop()
            raise LookupError

    def _wait(self) -> None:
        self.changed.wait()

    def by_a_helper(self) -> int:
        with self.changed:
            while not self.things:
                self._wait()
            return self.things.pop()

    def keeps_the_result(self) -> bool:
        with self.changed:
            return self.changed.wait()

    def for_a_while(self) -> int:
        with self.changed:
            self.changed.wait(WAIT_SECONDS)
            return self.things.pop()

    def once(self) -> int:
        with self.changed:
            if not self.things:
                self.changed.wait()
            return self.things.pop()

    def once_by_a_helper(self) -> int:
        with self.changed:
            if not self.things:
                self._wait()
            return self.things.pop()

    def goes_on_with_nothing(self) -> None:
        with self.changed:
            if not self.things:
                self.changed.wait()

    def by_acquire(self) -> int:
        self.changed.acquire()
        try:
            self.changed.wait()
            return self.things.pop()
        finally:
            self.changed.release()

    def twice(self) -> int:
        with self.changed:
            return self.in_a_loop()


def used(take: Callable[[Shelf], object]) -> list[tuple[Kind, str]]:
    """Have a thing taken that is put when somebody waits for it; return what was found."""
    with session(on=RECORD) as opened:
        shelf = Shelf()
        shelf.serve(lambda: take(shelf))
    assert [] == opened.faults
    return [(one.kind, one.text.partition("which ")[2]) for one in opened.findings if one.rung is Rung.R0]


@pytest.mark.parametrize(
    "take",
    [
        Shelf.in_a_loop,
        Shelf.in_an_endless_loop,
        Shelf.wait_for,
        Shelf.decides_afterwards,
        Shelf.by_a_helper,
        Shelf.keeps_the_result,
        Shelf.for_a_while,
        Shelf.goes_on_with_nothing,
        Shelf.by_acquire,
    ],
    ids=lambda f: f.__name__,
)
def test_a_wait_in_a_loop_is_not_reported(take: Callable[[Shelf], object]) -> None:
    """Nor who waits for a limited time, or keeps what `wait` says."""
    assert [] == used(take)


@pytest.mark.parametrize("take", [Shelf.once, Shelf.once_by_a_helper], ids=lambda f: f.__name__)
def test_a_wait_that_is_not_checked_again_is_reported(take: Callable[[Shelf], object]) -> None:
    """Before it waits."""
    with session(), pytest.raises(LockOrderError, match="does not check again what it waits for"):
        take(Shelf())


def test_an_outer_block_that_loses_its_lock_is_reported() -> None:
    """A wait releases all that is held of the lock."""
    assert [(Kind.CONDITION, "holds its lock 2 times")] == used(Shelf.twice)


@pytest.mark.parametrize("allowed", [["wait without a predicate", "lost lock"], ["*"]])
def test_a_session_may_allow_both_for_a_class(allowed: list[str]) -> None:
    """As it allows what blocks."""
    with session(blocking={"shelf": allowed}) as opened:
        shelf = Shelf()
        shelf.serve(lambda: (shelf.twice(), shelf.once()))

    assert () == opened.findings


def test_the_order_level_keeps_no_places_and_looks_at_no_code() -> None:
    """Where a lock was taken may have been elsewhere."""
    with session(level="order") as opened:
        shelf = Shelf()
        shelf.serve(shelf.once)

    assert () == opened.findings


WAITS = {("LOAD_METHOD", "wait"), ("LOAD_ATTR", "wait"), ("LOAD_FAST", "nwait")}
"""How a method is named that waits; the feeding thread of `multiprocessing.Queue` has it in a variable."""


def lone_waits(code: CodeType) -> Iterator[tuple[str, bool]]:
    """Yield the functions that wait without a limit, forget the result and decide nothing afterwards.

    Each with whether it goes on with anything.
    """
    found = list(dis.get_instructions(code))
    for place, one in enumerate(found):
        if (one.opname, one.argval) in WAITS:
            call = next((at for at in found[place:] if at.opname.startswith("CALL")), None)
            if call is None or call.arg != 0:
                continue
            after = next((at.opname for at in found[found.index(call) + 1 :]), "")
            decides, uses = what_follows(code, call.offset)
            if after == "POP_TOP" and not decides:
                yield code.co_qualname, uses
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from lone_waits(constant)


def test_no_condition_of_the_standard_library_would_be_reported() -> None:
    """Those of its functions that decide nothing after a wait go on with nothing."""
    found: set[tuple[str, bool]] = set()
    for module in (threading, queue, concurrent.futures, multiprocessing):
        home = Path(module.__file__ or "")
        for file in home.parent.rglob("*.py") if home.name == "__init__.py" else [home]:
            found.update(lone_waits(compile(file.read_text("utf-8"), str(file), "exec")))

    assert {("Thread.start", False), ("JoinableQueue.join", False)} <= found
    assert [] == [name for name, goes_on in found if goes_on]
