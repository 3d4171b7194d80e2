"""Products, bounds, merges and pruning follow their tables."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from licorne.model.resources.combinations import (
    component_wise_max,
    component_wise_min_only_existing,
    merge_if_not_present,
    multiply,
    multiply_by_ratio,
    prune,
)
from licorne.model.resources.comparisons import equals
from licorne.model.resources.quantities import INT64_MAX, INT64_MIN
from licorne.model.resources.resource import EMPTY, Resource, add, component_wise_min

quantities = st.one_of(st.integers(-3, 3), st.integers(INT64_MIN, INT64_MAX))
resources = st.dictionaries(st.sampled_from("abcd"), quantities, max_size=4).map(Resource)
resources_or_none = st.none() | resources

A5 = Resource({"a": 5})
B3 = Resource({"b": 3})


@pytest.mark.parametrize(
    ("base", "factor", "expected"),
    [
        (None, 2, {}),
        (EMPTY, 2, {}),
        (A5, 0, {}),
        (A5, 1, {"a": 5}),
        (Resource({"a": 5, "b": 0}), 3, {"a": 15, "b": 0}),
        (A5, -1, {"a": -5}),
        (Resource({"a": INT64_MAX}), -2, {"a": -2 * INT64_MAX}),
        (Resource({"a": INT64_MIN}), -1, {"a": INT64_MAX + 1}),
    ],
)
def test_a_whole_factor_keeps_the_types_unless_it_is_zero(
    base: Resource | None, factor: int, expected: dict[str, int]
) -> None:
    """Products are exact beyond 64 bits and keep explicit zeros; a factor of zero leaves no types."""
    assert Resource(expected) == multiply(base, factor)


@pytest.mark.parametrize(
    ("base", "ratio", "expected"),
    [
        (None, 2.0, {}),
        (A5, 0.0, {}),
        (Resource({"a": 5, "b": 0}), 1.5, {"a": 7, "b": 0}),
        (Resource({"a": -5}), 1.5, {"a": -7}),
        (Resource({"a": INT64_MAX}), 1.1, {"a": INT64_MAX}),
        (Resource({"a": INT64_MIN}), 1.1, {"a": INT64_MIN}),
    ],
)
def test_a_ratio_truncates_toward_zero(base: Resource | None, ratio: float, expected: dict[str, int]) -> None:
    """Products lose their fraction and saturate; a ratio of zero leaves no types."""
    assert Resource(expected) == multiply_by_ratio(base, ratio)


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
        (None, None, None),
        (None, A5, None),
        (A5, None, A5),
        (A5, EMPTY, A5),
        (EMPTY, A5, EMPTY),
        (A5, B3, A5),
        (A5, Resource({"a": 4, "b": 3}), Resource({"a": 4})),
        (A5, Resource({"a": 6}), A5),
    ],
)
def test_the_minimum_of_existing_types_is_that_of_the_left_types(
    left: Resource | None, right: Resource | None, expected: Resource | None
) -> None:
    """Types that only the right side names are left out; no left side gives no result."""
    assert expected == component_wise_min_only_existing(left, right)


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


@settings(deadline=None)
@given(resources, resources_or_none)
def test_the_minimum_of_existing_types_is_the_minimum_cut_to_the_left(
    left: Resource, right: Resource | None
) -> None:
    """Both minimums agree on the types of the left side."""
    lowest = component_wise_min(left, right)

    expected = Resource({name: lowest[name] for name in left})
    assert expected == component_wise_min_only_existing(left, right)


@settings(deadline=None)
@given(resources_or_none, st.integers(-(2**40), 2**40))
def test_multiplying_is_adding_that_often(base: Resource | None, factor: int) -> None:
    """Every product is exact, and that of one more is what is added."""
    assert equals(multiply(base, factor + 1), add(multiply(base, factor), base))
