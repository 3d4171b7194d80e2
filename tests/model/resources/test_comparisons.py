"""Comparisons look at the types they say, and take a missing type for what they say."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from licorne.model.resources.comparisons import (
    equals,
    equals_or_empty,
    fit_score,
    has_negative,
    is_empty,
    is_zero,
    matches_any,
    strictly_greater,
    strictly_greater_only_existing,
    strictly_greater_or_equal,
    strictly_greater_or_equal_only_existing,
    type_match_percent,
)
from licorne.model.resources.quantities import INT64_MAX, INT64_MIN
from licorne.model.resources.resource import EMPTY, Resource, fits

quantities = st.one_of(st.integers(-3, 3), st.integers(INT64_MIN, INT64_MAX))
resources = st.dictionaries(st.sampled_from("abcd"), quantities, max_size=4).map(Resource)
resources_or_none = st.none() | resources

A0 = Resource({"a": 0})
A5 = Resource({"a": 5})
B3 = Resource({"b": 3})
A5_B3 = Resource({"a": 5, "b": 3})
NEGATIVE = Resource({"a": -1})


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        (None, (True, True, False)),
        (EMPTY, (True, True, False)),
        (A0, (False, True, False)),
        (A5, (False, False, False)),
        (NEGATIVE, (False, False, True)),
    ],
)
def test_the_forms_of_nothing_are_told_apart(
    resource: Resource | None, expected: tuple[bool, bool, bool]
) -> None:
    """Empty has no types, zero has no quantity, negative has one below zero."""
    assert expected == (is_empty(resource), is_zero(resource), has_negative(resource))


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
    left: Resource | None,
    right: Resource | None,
    equal: bool,  # noqa: FBT001 - a column of the table
    equal_or_empty: bool,  # noqa: FBT001 - a column of the table
) -> None:
    """No resource at all equals only itself, unless all forms of nothing are to be equal."""
    assert equal == equals(left, right) == equals(right, left)
    assert equal_or_empty == equals_or_empty(left, right) == equals_or_empty(right, left)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (None, None, False),
        (None, A5, False),
        (A5, None, False),
        (EMPTY, A5, False),
        (A5, B3, False),
        (A5, A0, True),
        (A5_B3, B3, True),
    ],
)
def test_one_common_type_is_a_match(
    left: Resource | None,
    right: Resource | None,
    expected: bool,  # noqa: FBT001 - a column of the table
) -> None:
    """Quantities do not matter; a missing side matches nothing."""
    assert expected == matches_any(left, right)


@pytest.mark.parametrize(
    ("larger", "smaller", "greater", "or_equal"),
    [
        (None, None, False, True),
        (EMPTY, EMPTY, False, True),
        (None, A5, False, False),
        (A5, None, True, True),
        (A0, None, False, True),
        (None, NEGATIVE, True, True),
        (A5, A5, False, True),
        (A5_B3, A5, True, True),
        (A5, A5_B3, False, False),
        (A5, B3, False, False),
        (Resource({"a": 6, "b": 2}), A5_B3, False, False),
        (Resource({"a": 6, "b": 3}), A5_B3, True, True),
        (A5, Resource({"a": 5, "b": 0}), False, True),
    ],
)
def test_greater_looks_at_all_types(
    larger: Resource | None,
    smaller: Resource | None,
    greater: bool,  # noqa: FBT001 - a column of the table
    or_equal: bool,  # noqa: FBT001 - a column of the table
) -> None:
    """No type may be lower, a missing type being zero; strictly greater needs a difference."""
    assert greater == strictly_greater(larger, smaller)
    assert or_equal == strictly_greater_or_equal(larger, smaller)


@pytest.mark.parametrize(
    ("larger", "smaller", "greater", "or_equal"),
    [
        (None, None, False, False),
        (EMPTY, EMPTY, False, False),
        (None, A5, False, False),
        (EMPTY, A5, False, False),
        (A5, None, True, True),
        (A5, EMPTY, True, True),
        (A0, EMPTY, False, False),
        (Resource({"a": 5, "b": 0}), EMPTY, False, False),
        (NEGATIVE, None, False, False),
        (A5, B3, True, True),
        (A0, B3, True, True),
        (A5, A5, False, True),
        (A5, Resource({"a": 4}), True, True),
        (A5, Resource({"a": 6}), False, False),
        (A5, Resource({"a": 5, "b": 9}), False, True),
        (A5_B3, Resource({"a": 5, "c": 1}), False, True),
        (Resource({"a": 6, "b": 2}), A5_B3, False, False),
    ],
)
def test_greater_among_existing_types(
    larger: Resource | None,
    smaller: Resource | None,
    greater: bool,  # noqa: FBT001 - a column of the table
    or_equal: bool,  # noqa: FBT001 - a column of the table
) -> None:
    """Common types decide; without one, two named sides are disjoint and an empty one must be exceeded."""
    assert greater == strictly_greater_only_existing(larger, smaller)
    assert or_equal == strictly_greater_or_equal_only_existing(larger, smaller)


@pytest.mark.parametrize(
    ("available", "wanted", "expected"),
    [
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
)
def test_the_score_adds_the_missing_fractions(
    available: Resource | None, wanted: Resource | None, expected: float
) -> None:
    """Zero is a fit; a type of which nothing is left costs one."""
    assert expected == fit_score(available, wanted)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (None, A5, 0),
        (A5, None, 0),
        (EMPTY, A5, 0),
        (A5, EMPTY, 0),
        (A5, A0, 100),
        (A5_B3, A5, 50),
        (Resource({"a": 1, "b": 1, "c": 1}), A5_B3, 66),
        (A5, A5_B3, 100),
    ],
)
def test_the_match_of_types_is_a_whole_percentage_of_the_left_side(
    left: Resource | None, right: Resource | None, expected: int
) -> None:
    """Fractions are cut off, and an empty left side matches nothing."""
    assert expected == type_match_percent(left, right)


@settings(deadline=None)
@given(resources_or_none, resources_or_none)
def test_greater_or_equal_both_ways_is_equality(left: Resource | None, right: Resource | None) -> None:
    """The partial order is antisymmetric up to the forms of nothing."""
    both_ways = strictly_greater_or_equal(left, right) and strictly_greater_or_equal(right, left)

    assert equals_or_empty(left, right) == both_ways
    assert strictly_greater(left, right) == (
        strictly_greater_or_equal(left, right) and not equals_or_empty(left, right)
    )


@settings(deadline=None)
@given(resources, resources_or_none)
def test_a_score_of_zero_is_a_fit(available: Resource, wanted: Resource | None) -> None:
    """Scoring and fitting agree on what fits, and no score exceeds the number of types."""
    score = fit_score(available, wanted)

    assert fits(available, wanted) == (score == 0)
    assert 0 <= score <= len(wanted or ())


@settings(deadline=None)
@given(resources)
def test_the_exact_comparison_implies_the_lenient_ones(resource: Resource) -> None:
    """A resource equals its twin in every sense and is not greater than it."""
    twin = Resource(resource.as_dict())

    assert equals(resource, twin)
    assert strictly_greater_or_equal(resource, twin)
    assert not strictly_greater(resource, twin)
    assert not strictly_greater_only_existing(resource, twin) or is_empty(twin)
