"""Segments: what comes before what in every run, and why."""

from __future__ import annotations

from licorne.lockcheck.holding.chains import (
    CAUSES_MAX,
    Segment,
    begin,
    cause_of_order,
    concurrent,
    knows,
    learn,
)


def test_why_a_segment_comes_after_others_is_kept_for_the_last_of_them() -> None:
    """A thread may come after thousands of tasks."""
    later = begin(0)
    for line in range(1, CAUSES_MAX + 2):
        later = learn(later, Segment(line), (f"by task {line}", None, 0))

    assert cause_of_order(Segment(CAUSES_MAX + 1), later) == (f"by task {CAUSES_MAX + 1}", None, 0)
    assert cause_of_order(later, Segment(2)) == ("by task 2", None, 0)
    assert cause_of_order(Segment(1), later) is None
    assert not concurrent(Segment(1), later)


def test_what_is_known_already_begins_no_segment() -> None:
    """An execution knows its own line, and what those knew of whom it learned; not what came later."""
    first = learn(Segment(1), Segment(3, 4))
    later = learn(begin(2), first)
    assert knows(later, first)
    assert knows(later, Segment(3, 4))
    assert knows(later, Segment(2, 9))
    assert not knows(later, learn(first))
    assert not knows(later, Segment(5))
    assert not knows(begin(2), first)
