"""Segments: what comes before what in every run, and why."""

from __future__ import annotations

from licorne.lockcheck.holding.happens_before import (
    CAUSES_MAX,
    Segment,
    begin,
    cause_of_order,
    concurrent,
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
