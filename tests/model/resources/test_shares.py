"""Shares order resources by how large a part of a total they take."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from licorne.model.resources.resource import EMPTY, Resource
from licorne.model.resources.shares import (
    absolute_used_capacity,
    compare_shares,
    compare_usage_ratio,
    compare_usage_ratio_for_types,
    dominant_resource_type,
    fair_share,
    fairness_ratio,
    shares,
)

resources = st.dictionaries(st.sampled_from("abcd"), st.integers(-9, 9), max_size=4).map(Resource)
resources_or_none = st.none() | resources
share_lists = st.lists(st.sampled_from([-1.0, 0.0, 0.5, 1.0]), max_size=4).map(sorted)

TOTAL = Resource({"a": 10, "b": 100})


@pytest.mark.parametrize(
    ("resource", "total", "expected"),
    [
        (None, TOTAL, ()),
        (EMPTY, TOTAL, ()),
        (Resource({"a": 5, "b": 10}), TOTAL, (0.1, 0.5)),
        (Resource({"a": 0, "b": 10}), TOTAL, (0.0, 0.1)),
        (Resource({"a": 5}), None, (5.0,)),
        (Resource({"a": 5, "c": 7}), TOTAL, (0.5, 7.0)),
        (Resource({"a": 5}), Resource({"a": 0}), (5.0,)),
        (Resource({"a": -5}), TOTAL, (-0.5,)),
        (Resource({"a": 5}), Resource({"a": -10}), (-0.5,)),
        (Resource({"a": 0}), None, (0.0,)),
    ],
)
def test_a_share_is_the_part_of_the_total(
    resource: Resource | None, total: Resource | None, expected: tuple[float, ...]
) -> None:
    """Shares ascend; without a total to share, the raw quantity stands in."""
    assert expected == shares(resource, total)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ((), (), 0),
        ((), (0.0,), 0),
        ((0.0, 0.0), (0.0,), 0),
        ((0.5,), (0.5,), 0),
        ((0.1, 0.5), (0.2, 0.5), -1),
        ((0.9, 0.9), (0.0, 1.0), -1),
        ((0.1,), (), 1),
        ((-0.1,), (), -1),
        ((0.1, 0.5), (0.5,), 1),
        ((-0.1, 0.5), (0.5,), -1),
        ((-0.1, 0.0, 0.5), (0.5,), -1),
        ((-0.1, 0.2, 0.5), (0.5,), 1),
    ],
)
def test_the_largest_share_decides_first(
    left: tuple[float, ...], right: tuple[float, ...], expected: int
) -> None:
    """Pairs are compared downwards; then the first leftover that is not zero decides."""
    assert expected == compare_shares(left, right)
    assert -expected == compare_shares(right, left)


@pytest.mark.parametrize(
    ("left", "right", "total", "expected"),
    [
        (None, None, TOTAL, 0),
        (None, Resource({"a": 0}), TOTAL, 0),
        (Resource({"a": 5}), Resource({"b": 40}), TOTAL, 1),
        (Resource({"a": 5}), Resource({"b": 50}), TOTAL, 0),
        (Resource({"a": 5}), Resource({"b": 60}), TOTAL, -1),
        (Resource({"a": 5}), Resource({"b": 40}), None, -1),
        (Resource({"a": 5, "b": 1}), Resource({"a": 5}), TOTAL, 1),
    ],
)
def test_usage_is_compared_by_its_shares_of_the_same_total(
    left: Resource | None, right: Resource | None, total: Resource | None, expected: int
) -> None:
    """Different types compare through the part that they take."""
    assert expected == compare_usage_ratio(left, right, total)


@pytest.mark.parametrize(
    ("types", "expected"),
    [(None, -1), (("a", "b"), -1), (("a",), 1), (Resource({"a": 1}), 1), (("c",), 0), ((), 0)],
)
def test_usage_can_be_compared_for_some_types(types: tuple[str, ...] | None, expected: int) -> None:
    """Only the types asked for count; asking for none in particular compares all of them."""
    left, right = Resource({"a": 5, "b": 10}), Resource({"a": 4, "b": 90})

    assert expected == compare_usage_ratio_for_types(left, right, TOTAL, types)


def test_unused_types_are_left_out_of_the_comparison_for_types() -> None:
    """A zero beside a negative share does not stand before it."""
    left, right = Resource({"a": 0, "b": -10}), Resource({"b": -10})

    assert 0 == compare_usage_ratio_for_types(left, right, TOTAL, ("a", "b"))
    assert 1 == compare_usage_ratio(left, right, TOTAL)
    assert 0 == compare_usage_ratio_for_types(None, Resource({"a": 0}), TOTAL, ("a",))


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (None, None, 1.0),
        (Resource({"a": 0}), Resource({"b": 0}), 1.0),
        (Resource({"a": 5}), Resource({"a": 10}), 0.5),
        (Resource({"a": 5, "b": 100}), Resource({"a": 5}), 2.0),
        (Resource({"a": 5}), None, math.inf),
        (Resource({"a": -5}), Resource({"a": 0}), -math.inf),
        (None, Resource({"a": 5}), 0.0),
    ],
)
def test_fairness_is_the_ratio_of_the_largest_shares(
    left: Resource | None, right: Resource | None, expected: float
) -> None:
    """Nothing against nothing is fair, something against nothing is infinitely unfair."""
    assert expected == fairness_ratio(left, right, TOTAL)


@pytest.mark.parametrize(
    ("allocated", "guaranteed", "fair_max", "expected"),
    [
        (None, TOTAL, TOTAL, 0.0),
        (EMPTY, TOTAL, TOTAL, 0.0),
        (Resource({"a": 5}), None, None, 0.0),
        (Resource({"a": 5}), TOTAL, None, 0.5),
        (Resource({"a": 5}), None, TOTAL, 0.5),
        (Resource({"a": 5}), Resource({"a": 20}), TOTAL, 0.25),
        (Resource({"a": 5, "b": 80}), Resource({"a": 10}), TOTAL, 0.8),
        (Resource({"a": 5, "c": 80}), TOTAL, TOTAL, 0.5),
        (Resource({"a": 5}), Resource({"a": 0}), TOTAL, 1.0),
        (Resource({"a": 0}), Resource({"a": 0}), TOTAL, 0.0),
        (Resource({"a": 5}), None, Resource({"a": -1}), 1.0),
        (Resource({"a": -5, "b": 10}), TOTAL, TOTAL, 0.1),
        (Resource({"a": 20}), TOTAL, TOTAL, 2.0),
    ],
)
def test_the_fair_share_of_a_queue_is_its_largest_use_of_a_guarantee(
    allocated: Resource | None, guaranteed: Resource | None, fair_max: Resource | None, expected: float
) -> None:
    """The fair maximum stands in for a missing guarantee; a limit of nothing is full at once."""
    assert expected == fair_share(allocated, guaranteed, fair_max)


@pytest.mark.parametrize(
    ("capacity", "used", "expected"),
    [
        (None, TOTAL, {}),
        (TOTAL, None, {}),
        (TOTAL, EMPTY, {}),
        (TOTAL, Resource({"a": 5}), {"a": 50}),
        (Resource({"a": 3}), Resource({"a": 2, "b": 9}), {"a": 66}),
        (TOTAL, Resource({"a": 0, "b": -5}), {"a": 0, "b": 0}),
        (Resource({"a": 0, "b": -1}), Resource({"a": 1, "b": 1}), {"a": 100, "b": 100}),
        (Resource({"a": 0}), Resource({"a": 0}), {"a": 0}),
        (TOTAL, Resource({"a": 25}), {"a": 250}),
        (Resource({"a": 1}), Resource({"a": 2**40}), {"a": 2147483647}),
    ],
)
def test_the_used_capacity_is_a_percentage(
    capacity: Resource | None, used: Resource | None, expected: dict[str, int]
) -> None:
    """Percentages are truncated and go beyond 100, up to the largest 32-bit number."""
    assert Resource(expected) == absolute_used_capacity(capacity, used)


@pytest.mark.parametrize(
    ("used", "capacity", "expected"),
    [
        (None, TOTAL, ""),
        (TOTAL, None, ""),
        (EMPTY, TOTAL, ""),
        (Resource({"c": 5}), TOTAL, ""),
        (Resource({"a": 5, "b": 60}), TOTAL, "b"),
        (Resource({"a": 5, "b": 40}), TOTAL, "a"),
        (Resource({"b": 50, "a": 5}), TOTAL, "a"),
        (Resource({"b": 0, "a": 0}), TOTAL, "a"),
        (Resource({"a": 1, "b": 99}), Resource({"a": 0, "b": 100}), "a"),
        (Resource({"a": 0, "b": 1}), Resource({"a": 0, "b": 100}), "b"),
        (Resource({"a": -5}), TOTAL, ""),
    ],
)
def test_the_dominant_type_has_the_largest_part_of_its_capacity(
    used: Resource | None, capacity: Resource | None, expected: str
) -> None:
    """Among equals the lowest name wins; types without a capacity do not take part."""
    assert expected == dominant_resource_type(used, capacity)


@settings(deadline=None)
@given(share_lists, share_lists, share_lists)
def test_shares_are_ordered_transitively(left: list[float], middle: list[float], right: list[float]) -> None:
    """Swapping the sides turns the answer around; among used shares lower stays lower down a chain."""
    assert compare_shares(left, right) == -compare_shares(right, left)
    lists = [[share for share in side if share >= 0] for side in (left, middle, right)]
    if compare_shares(lists[0], lists[1]) <= 0 and compare_shares(lists[1], lists[2]) <= 0:
        assert compare_shares(lists[0], lists[2]) <= 0


@settings(deadline=None)
@given(resources_or_none, resources_or_none)
def test_all_types_without_zeros_compare_as_usage_does(left: Resource | None, right: Resource | None) -> None:
    """Where every quantity is positive, asking for all types changes nothing."""
    ours = Resource({name: abs(quantity) for name, quantity in (left or EMPTY).items()})
    theirs = Resource({name: abs(quantity) for name, quantity in (right or EMPTY).items()})

    expected = compare_usage_ratio(ours, theirs, TOTAL)
    assert expected == compare_usage_ratio_for_types(ours, theirs, TOTAL, "abcd")
