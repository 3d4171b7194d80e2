"""What it takes to look at deep nestings, counted in lines of the checker that are run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from types import FrameType

import pytest

from licorne import lockcheck
from licorne.lockcheck import Lock, Rung, session
from licorne.lockcheck.checking.policy import NOTE_ALL
from licorne.lockcheck.locks.factories import ExclusiveLock

OURS = lockcheck.__file__.removesuffix("__init__.py")


def lines_run(work: Callable[[], object]) -> int:
    """Return how many lines of the checker some work runs."""
    lines = 0

    def note(frame: FrameType, event: str, _: object) -> Callable[..., object] | None:
        nonlocal lines
        if not frame.f_code.co_filename.startswith(OURS):
            return None
        lines += event == "line"
        return note

    before = sys.gettrace()
    sys.settrace(note)  # type: ignore[arg-type] # the type is not public
    try:
        work()
    finally:
        sys.settrace(before)
    return lines


def nest(locks: Sequence[ExclusiveLock]) -> None:
    for lock in locks:
        lock.acquire()
    for lock in reversed(locks):
        lock.release()


def nest_elsewhere(locks: Sequence[ExclusiveLock]) -> None:
    for lock in locks:
        lock.acquire()
    for lock in reversed(locks):
        lock.release()


def lines_by_nesting(depth: int, level: str, *, classes: int) -> list[int]:
    """Return the lines that it takes to nest locks for the first time, elsewhere, and there again."""
    with session(level=level) as opened:
        locks = [Lock(f"class {number % classes}") for number in range(depth)]
        lines = [lines_run(partial(step, locks)) for step in (nest, nest_elsewhere, nest_elsewhere)]
        assert not [finding for finding in opened.findings if finding.rung > Rung.R1]
    return lines


@pytest.mark.parametrize(("level", "classes"), [("order", 40), ("full", 40), ("full", 1), ("confirm", 40)])
def test_what_is_new_takes_the_square_of_the_depth_at_most_and_what_is_known_its_depth(
    level: str, classes: int
) -> None:
    """Each of the nested locks is compared with those that are held: so twice the depth is four times it."""
    half, whole = (lines_by_nesting(depth, level, classes=classes) for depth in (20, 40))

    growth = [after / before for before, after in zip(half, whole, strict=True)]
    assert all(limit > grown for limit, grown in zip((4.3, 4.3, 2.1), growth, strict=True)), growth


def test_a_cycle_is_found_that_further_places_close() -> None:
    """Where no pair of locks is new, a search is left out only if there is no cycle yet."""
    with session(level="full", on=NOTE_ALL) as opened:
        first, second = Lock("first"), Lock("second")
        with lockcheck.unit("one"):
            nest([first, second])
        with lockcheck.unit("other"):
            nest([second, first])
        known = len([finding for finding in opened.findings if finding.rung is Rung.R2])
        with lockcheck.unit("other"):
            nest_elsewhere([second, first])
        found = [finding for finding in opened.findings if finding.rung is Rung.R2]

    assert (1, 2) == (known, len(found))
