"""Bounds, merges, pruning and comparisons follow their tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from licorne.model.resources.comparisons import (
    component_wise_max,
    equals,
    equals_or_empty,
    fit_score,
    has_negative,
    is_zero,
    matches_any,
    merge_if_not_present,
    prune,
    type_match_percent,
)
from licorne.model.resources.quantities import INT64_MAX, INT64_MIN
from licorne.model.resources.resource import EMPTY, Resource, fits

quantities = st.one_of(st.integers(-3, 3), st.integers(INT64_MIN, INT64_MAX))
resources = st.dictionaries(st.sampled_from("abcd"), quantities, max_size=4).map(Resource)
resources_or_none = st.none() | resources

A5 = Resource({"a": 5})
B3 = Resource({"b": 3})


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        (None, None),
        (EMPTY, EMPTY),
        (A5, A5),
        (Resource({"a": 0}), EMPTY),
        (Resource({"a": 5, "b": 0, "c": -1}), Resource({"a": 5, "c": -1})),
    ],
)
def test_pruning_removes_zeros_only(resource: Resource | None, expected: Resource | None) -> None:
    """Negative quantities stay, and nothing stays nothing."""
    assert expected == prune(resource)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (None, None, EMPTY),
        (None, A5, EMPTY),
        (A5, None, EMPTY),
        (A5, EMPTY, A5),
        (A5, B3, Resource({"a": 5, "b": 3})),
        (A5, Resource({"a": 6}), Resource({"a": 6})),
        (Resource({"a": -5}), B3, Resource({"a": 0, "b": 3})),
        (B3, Resource({"a": -5}), Resource({"a": 0, "b": 3})),
    ],
)
def test_the_maximum_takes_a_missing_type_as_zero(
    left: Resource | None, right: Resource | None, expected: Resource
) -> None:
    """A negative quantity loses against an absence, and a missing side leaves no types."""
    assert expected == component_wise_max(left, right)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (None, None, None),
        (None, A5, A5),
        (A5, None, A5),
        (A5, B3, Resource({"a": 5, "b": 3})),
        (A5, Resource({"a": 9, "b": 3}), Resource({"a": 5, "b": 3})),
        (Resource({"a": 0}), Resource({"a": 9}), Resource({"a": 0})),
    ],
)
def test_merging_takes_over_the_types_that_are_missing(
    left: Resource | None, right: Resource | None, expected: Resource | None
) -> None:
    """A type that the left side names, even with zero, keeps its quantity."""
    assert expected == merge_if_not_present(left, right)


@given(resources, resources)
def test_the_maximum_is_commutative_and_bounds_both_sides(left: Resource, right: Resource) -> None:
    """The result is at least what either side has of any type."""
    highest = component_wise_max(left, right)

    assert highest == component_wise_max(right, left)
    assert all(highest[name] >= quantity for side in (left, right) for name, quantity in side.items())


# ------------------------------------------------------------------------------------------ comparisons


A0 = Resource({"a": 0})
A5_B3 = Resource({"a": 5, "b": 3})
NEGATIVE = Resource({"a": -1})


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        (None, (True, False)),
        (EMPTY, (True, False)),
        (A0, (True, False)),
        (A5, (False, False)),
        (NEGATIVE, (False, True)),
    ],
)
def test_zero_and_negative_are_distinguished(resource: Resource | None, expected: tuple[bool, bool]) -> None:
    """Zero has no quantity, negative has one below zero."""
    assert expected == (is_zero(resource), has_negative(resource))


@pytest.mark.parametrize(
    ("left", "right", "equal", "equal_or_empty"),
    [
        (None, None, True, True),
        (None, EMPTY, False, True),
        (None, A0, False, True),
        (None, A5, False, False),
        (EMPTY, A0, True, True),
        (A5, A5, True, True),
        (A5, Resource({"a": 5, "b": 0}), True, True),
        (A5, A5_B3, False, False),
        (A5, Resource({"a": 4}), False, False),
        (A5, EMPTY, False, False),
    ],
)
def test_equality_takes_a_missing_type_as_zero(
    left: Resource | None, right: Resource | None, *, equal: bool, equal_or_empty: bool
) -> None:
    """No resource at all equals only itself, unless all forms of nothing are to be equal."""
    assert equal == equals(left, right) == equals(right, left)
    assert equal_or_empty == equals_or_empty(left, right) == equals_or_empty(right, left)


Comparison: TypeAlias = Callable[[Resource | None, Resource | None], float]
COMPARISONS: Final[dict[Comparison, list[tuple[Resource | None, Resource | None, float]]]] = {
    # One common type is a match: quantities do not matter; a missing side matches nothing.
    matches_any: [
        (None, None, False),
        (None, A5, False),
        (A5, None, False),
        (EMPTY, A5, False),
        (A5, B3, False),
        (A5, A0, True),
        (A5_B3, B3, True),
    ],
    # The score adds the fractions that are missing of what is wanted: zero is a fit; a type of which nothing
    # is left costs one.
    fit_score: [
        (None, None, 0.0),
        (A5, None, 0.0),
        (None, A5_B3, 2.0),
        (None, Resource({"a": 0}), 1.0),
        (EMPTY, A5_B3, 2.0),
        (EMPTY, A0, 0.0),
        (A5, A5, 0.0),
        (A5, Resource({"a": 10}), 0.5),
        (NEGATIVE, Resource({"a": 10}), 1.0),
        (NEGATIVE, Resource({"a": -5}), 0.0),
        (A5, Resource({"a": 20, "b": 1}), 1.75),
    ],
    # A whole percentage of the types of the left side; an empty left side matches nothing.
    type_match_percent: [
        (None, A5, 0),
        (A5, None, 0),
        (EMPTY, A5, 0),
        (A5, EMPTY, 0),
        (A5, A0, 100),
        (A5_B3, A5, 50),
        (Resource({"a": 1, "b": 1, "c": 1}), A5_B3, 66),
        (A5, A5_B3, 100),
    ],
}


@pytest.mark.parametrize(
    ("compare", "left", "right", "expected"),
    [(compare, *row) for compare, rows in COMPARISONS.items() for row in rows],
)
def test_a_comparison_follows_its_table(
    compare: Comparison, left: Resource | None, right: Resource | None, expected: float
) -> None:
    """Each says what a missing type and a missing side mean."""
    assert expected == compare(left, right)


@given(resources, resources_or_none)
def test_a_score_of_zero_is_a_fit(available: Resource, wanted: Resource | None) -> None:
    """Scoring and fitting agree on what fits, and no score exceeds the number of types."""
    score = fit_score(available, wanted)

    assert fits(available, wanted) == (score == 0)
    assert 0 <= score <= len(wanted or ())


@given(resources)
def test_a_resource_equals_its_twin(resource: Resource) -> None:
    """The exact comparison implies the lenient one."""
    assert equals(resource, Resource(resource.as_dict()))
