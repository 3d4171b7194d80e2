"""Bounds, merges and pruning follow their tables."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from licorne.model.resources.combinations import (
    component_wise_max,
    merge_if_not_present,
    prune,
)
from licorne.model.resources.quantities import INT64_MAX, INT64_MIN
from licorne.model.resources.resource import EMPTY, Resource

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


@settings(deadline=None)
@given(resources, resources)
def test_the_maximum_is_commutative_and_bounds_both_sides(left: Resource, right: Resource) -> None:
    """The result is at least what either side has of any type."""
    highest = component_wise_max(left, right)

    assert highest == component_wise_max(right, left)
    assert all(highest[name] >= quantity for side in (left, right) for name, quantity in side.items())
