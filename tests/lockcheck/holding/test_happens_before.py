"""Segments: what comes before what in every run, and why."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from licorne.lockcheck.holding.chains import (
    CAUSES_MAX,
    FORGET_EVERY,
    Segment,
    begin,
    cause_of_order,
    concurrent,
    knows,
    learn,
)

FIRST: Final = 10**12
"""No execution of the process has the number of a line of these tests."""


def a_line(number: int) -> Segment:
    """Return the first segment of a line on which something was learned."""
    return replace(begin(FIRST + number), silent=False)


def test_why_a_segment_comes_after_others_is_kept_for_the_last_of_them() -> None:
    """A thread may come after thousands of tasks."""
    later, tasks = a_line(0), [a_line(number) for number in range(1, CAUSES_MAX + 2)]
    for number, task in enumerate(tasks):
        later = learn(later, task, (f"by task {number}", None, 0))

    assert cause_of_order(tasks[-1], later) == (f"by task {CAUSES_MAX}", None, 0)
    assert cause_of_order(later, tasks[1]) == ("by task 1", None, 0)
    assert cause_of_order(tasks[0], later) is None
    assert not concurrent(tasks[0], later)


def test_what_is_known_already_begins_no_segment() -> None:
    """An execution knows its own line, and what those knew of whom it learned; not what came later."""
    third = a_line(3)
    first = learn(a_line(1), third)
    later = learn(a_line(2), first)
    assert knows(later, first)
    assert knows(later, third)
    assert knows(later, replace(later, number=9))
    assert not knows(later, learn(first))
    assert not knows(later, a_line(5))
    assert not knows(a_line(2), first)


def test_lines_of_which_no_segment_is_left_are_forgotten() -> None:
    """The main thread of a long run comes after thousands of others, with which nothing is compared."""
    later, kept = a_line(0), a_line(1)
    later = learn(later, kept)
    for number in range(2, 100):
        later = learn(later, a_line(number))

    assert not concurrent(kept, later)
    assert len(later.seen) <= FORGET_EVERY + 1
    assert knows(a_line(0), Segment(FIRST + 99))
