"""Tracked resources add up quantity times seconds for each instance type."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from licorne.model.resources.decayed_use import TrackedResource
from licorne.model.resources.quantities import INT64_MAX, INT64_MIN, QuantityError
from licorne.model.resources.resource import EMPTY, Resource

SUMS = {"large": {"vcore": 4, "memory": 8}, "": {"pods": 1}}


def test_a_new_object_has_no_sums() -> None:
    """An application starts without usage."""
    assert {} == TrackedResource().as_dict()
    assert TrackedResource() == TrackedResource({})


def test_usage_is_quantity_times_seconds() -> None:
    """Each release adds to the sums of its instance type."""
    tracked = TrackedResource()
    tracked.aggregate("large", Resource({"vcore": 2, "memory": 10}), 3)
    tracked.aggregate("large", Resource({"vcore": 1, "pods": 1}), 5)
    tracked.aggregate("small", Resource({"vcore": 1}), 7)

    expected = {"large": {"memory": 30, "pods": 5, "vcore": 11}, "small": {"vcore": 7}}
    assert expected == tracked.as_dict()


def test_no_resource_adds_nothing() -> None:
    """Without a resource not even the instance type appears."""
    tracked = TrackedResource()
    tracked.aggregate("large", None, 3)

    assert {} == tracked.as_dict()


def test_zero_seconds_name_the_types() -> None:
    """A release within its first second leaves explicit zeros, an empty resource an empty instance type."""
    tracked = TrackedResource()
    tracked.aggregate("large", Resource({"vcore": 2}), 0)
    tracked.aggregate("small", EMPTY, 9)

    assert {"large": {"vcore": 0}, "small": {}} == tracked.as_dict()


def test_sums_are_exact_beyond_64_bits() -> None:
    """Those of applications that run long neither wrap around nor stop."""
    tracked = TrackedResource({"large": {"memory": INT64_MAX - 1, "vcore": 0}})
    tracked.aggregate("large", Resource({"memory": 2, "vcore": INT64_MAX}), 2)

    assert {"large": {"memory": INT64_MAX + 3, "vcore": 2 * INT64_MAX}} == tracked.as_dict()
    assert tracked == tracked.copy()


def test_the_dicts_around_it_do_not_change_it() -> None:
    """Neither the sums it started from nor the dicts it gives out lead inside."""
    source = {"large": {"vcore": 1}}
    tracked = TrackedResource(source)
    source["large"]["vcore"] = 2
    tracked.as_dict()["large"]["vcore"] = 3

    assert {"large": {"vcore": 1}} == tracked.as_dict()


def test_a_copy_goes_its_own_way() -> None:
    """Aggregating into a copy leaves the original as it was."""
    tracked = TrackedResource(SUMS)
    twin = tracked.copy()
    assert tracked == twin
    twin.aggregate("large", Resource({"vcore": 1}), 1)

    assert TrackedResource(SUMS) == tracked
    assert tracked != twin


def test_equality_is_exact() -> None:
    """A zero is not an absence, and another kind of object is never equal."""
    assert TrackedResource({"a": {"b": 0}}) != TrackedResource({"a": {}})
    assert TrackedResource({"a": {}}) != TrackedResource()
    assert TrackedResource(SUMS) != SUMS


def test_it_cannot_be_a_key() -> None:
    """An object that changes has no hash."""
    with pytest.raises(TypeError, match="unhashable"):
        hash(TrackedResource())


def test_dicts_and_text_are_sorted() -> None:
    """Outputs do not depend on the order of the releases."""
    tracked = TrackedResource(SUMS)

    assert ["", "large"] == list(tracked.as_dict())
    assert ["memory", "vcore"] == list(tracked.as_dict()["large"])
    assert "TrackedResource{:pods=1,large:memory=8,large:vcore=4}" == str(tracked)
    assert "TrackedResource{}" == str(TrackedResource())


def test_a_sum_that_is_no_number_is_refused() -> None:
    """Sums from outside are checked like any quantity."""
    with pytest.raises(QuantityError, match="'vcore' is not an integer"):
        TrackedResource({"large": {"vcore": 1.5}})  # type: ignore[dict-item] # the misuse under test


@given(
    st.lists(
        st.tuples(st.sampled_from(["x", "y"]), st.integers(INT64_MIN, INT64_MAX), st.integers(0, 2**40)),
        max_size=6,
    )
)
def test_sums_do_not_depend_on_the_order_of_releases(releases: list[tuple[str, int, int]]) -> None:
    """Whatever is released: one that stopped at a border on its way would be another sum."""
    there, back = TrackedResource(), TrackedResource()
    for tracked, ordered in ((there, releases), (back, releases[::-1])):
        for instance_type, quantity, seconds in ordered:
            tracked.aggregate(instance_type, Resource({"memory": quantity}), seconds)

    assert there == back
