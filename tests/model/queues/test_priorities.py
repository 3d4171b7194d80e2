from __future__ import annotations

from licorne.model.queues.order import PriorityCounts
from licorne.model.resources.quantities import INT32_MIN


def test_the_highest_priority_follows_its_members() -> None:
    """It falls when the last member with it changes or has nothing waiting any more."""
    counts = PriorityCounts()
    highest = []
    for name, priority in [("a", 5), ("b", 5), ("c", -3), ("a", 1), ("b", INT32_MIN), ("a", INT32_MIN)]:
        counts.note(name, priority)
        highest.append(counts.highest)

    assert [5, 5, 5, 5, 1, -3] == highest


def test_a_recount_forgets_members_that_are_gone() -> None:
    """A queue that lost a child has the priority of those that are left."""
    counts = PriorityCounts()
    counts.note("gone", 9)

    counts.recount([("left", 2), ("idle", INT32_MIN)])
    before = counts.highest
    counts.note("left", INT32_MIN)

    assert (2, INT32_MIN) == (before, counts.highest)
