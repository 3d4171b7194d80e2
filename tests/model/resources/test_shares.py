"""Shares order resources by how large a part of a total they take."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st

from licorne.model.resources.comparisons import (
    absolute_used_capacity,
    fair_share,
    shares,
)
from licorne.model.resources.resource import EMPTY, Resource

resources = st.dictionaries(st.sampled_from("abcd"), st.integers(-9, 9), max_size=4).map(Resource)
resources_or_none = st.none() | resources

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
