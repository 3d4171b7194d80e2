"""The smallest set of changes that has an effect."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from licorne.proxy.play.comparison.settings import smallest_set


@given(st.integers(1, 40), st.data())
def test_the_changes_that_are_needed_are_left(count: int, data: st.DataObject) -> None:
    """Where some changes are needed together, they are what is left."""
    changes = list(range(count))
    needed = data.draw(st.sets(st.sampled_from(changes), min_size=1, max_size=4))

    found = smallest_set(changes, needed.issubset, runs_max=10_000)

    assert (tuple(sorted(needed)), True) == (found.changes, found.is_proved)


def test_one_change_of_thirty_takes_few_runs() -> None:
    """One change of thirty is found by halves."""
    found = smallest_set(range(30), lambda changes: 17 in changes, runs_max=60)

    assert ((17,), True) == (found.changes, found.is_proved)
    assert found.runs <= 10


def test_the_bound_of_runs_is_kept_and_said() -> None:
    """At the bound what is left has the effect, and is not said to be the smallest set."""
    asked: list[Sequence[int]] = []

    def has_effect(changes: Sequence[int]) -> bool:
        asked.append(changes)
        return {0, 29} <= set(changes)

    found = smallest_set(range(30), has_effect, runs_max=5)

    assert (5, 5, False) == (len(asked), found.runs, found.is_proved)
    assert {0, 29} <= set(found.changes)
