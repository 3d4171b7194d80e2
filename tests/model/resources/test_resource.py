"""Resources are immutable values, and the arithmetic of the hot path follows its tables."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Final, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from licorne.model.resources.quantities import INT64_MAX, INT64_MIN, QuantityError
from licorne.model.resources.resource import (
    EMPTY,
    Resource,
    add,
    component_wise_min,
    fits,
    fits_undefined_unlimited,
    is_any_positive,
    strictly_greater_than_zero,
    subtract,
    subtract_eliminating_negative,
    subtract_only_existing,
    subtract_reporting_negative,
    total_of,
)

quantities = st.one_of(
    st.integers(-3, 3), st.integers(INT64_MIN, INT64_MAX), st.sampled_from([INT64_MIN, INT64_MAX])
)
resources = st.dictionaries(st.sampled_from("abcd"), quantities, max_size=4).map(Resource)
resources_or_none = st.none() | resources

Operation: TypeAlias = Callable[[Resource | None, Resource | None], Resource | None]

A5 = Resource({"a": 5})
B3 = Resource({"b": 3})


def names(*sides: Resource | None) -> list[str]:
    return sorted({name for side in sides if side is not None for name in side})


def amount(resource: Resource | None, name: str) -> int:
    return 0 if resource is None else resource.get(name)


def test_a_resource_keeps_explicit_zeros() -> None:
    """A type named with zero is present, a type not named is not."""
    resource = Resource({"a": 0, "b": 3})

    assert {"a": 0, "b": 3} == resource.as_dict()
    assert "a" in resource
    assert "c" not in resource
    assert 2 == len(resource)


def test_a_missing_type_reads_as_the_default() -> None:
    """`get` answers zero, or the given default, where the index raises."""
    assert 5 == A5.get("a")
    assert 5 == A5["a"]
    assert 0 == A5.get("b")
    assert -1 == A5.get("b", -1)
    with pytest.raises(KeyError):
        A5["b"]


def test_iteration_follows_the_order_of_naming_and_the_dict_is_sorted() -> None:
    """Both orders are determined by the input, so they may reach an output."""
    resource = Resource({"b": 2, "a": 1})

    assert ["b", "a"] == list(resource)
    assert [("b", 2), ("a", 1)] == list(resource.items())
    assert [2, 1] == list(resource.values())
    assert ["a", "b"] == list(resource.as_dict())


def test_a_resource_is_cut_off_from_the_dicts_around_it() -> None:
    """Neither the mapping it came from nor the dict it gives out can change it."""
    source = {"a": 1}
    resource = Resource(source)
    source["a"] = 2
    resource.as_dict()["a"] = 3

    assert Resource({"a": 1}) == resource


def test_equality_is_exact() -> None:
    """Same types and same values; a zero is not an absence, and another kind of object is never equal."""
    assert Resource({"a": 1, "b": 0}) == Resource({"b": 0, "a": 1})
    assert Resource({"a": 1, "b": 0}) != Resource({"a": 1})
    assert Resource({"a": 0}) != Resource({"b": 0})
    assert EMPTY == Resource({})
    assert Resource({"a": 1}) != {"a": 1}


def test_equal_resources_are_one_key() -> None:
    """The hash ignores the order of naming and stays the same when it is asked for again."""
    first = Resource({"a": 1, "b": 2})
    second = Resource({"b": 2, "a": 1})

    assert hash(first) == hash(second)
    assert hash(first) == hash(first)
    assert 1 == len({first, second})


def test_copies_and_pickles_are_equal_to_the_original() -> None:
    """A resource whose hash is known can travel; the hash does not travel with it."""
    resource = Resource({"b": 2, "a": 1})
    hash(resource)

    for twin in (copy.deepcopy(resource), pickle.loads(pickle.dumps(resource))):  # noqa: S301 - our own bytes
        assert resource == twin
        assert not hasattr(twin, "_hash")


def test_the_representation_makes_the_value_again() -> None:
    """A resource shows itself as the expression that makes it, types sorted."""
    assert "Resource({'a': 1, 'b': 2})" == repr(Resource({"b": 2, "a": 1}))


@pytest.mark.parametrize("quantity", [1.0, True, "1", None])
def test_what_is_no_quantity_is_refused_with_its_type(quantity: int) -> None:
    """Floats, booleans and texts name themselves in the error."""
    with pytest.raises(QuantityError, match="'memory'") as caught:
        Resource({"vcore": 1, "memory": quantity})

    assert repr(quantity) in str(caught.value)


def test_a_type_name_is_a_text() -> None:
    """A number as the name of a type is refused."""
    with pytest.raises(QuantityError, match="the resource type 7 is not a text"):
        Resource({7: 1})  # type: ignore[dict-item] # the misuse under test


OPERATIONS: Final[dict[Operation, list[tuple[Resource | None, Resource | None, Resource | None]]]] = {
    # No resource counts as empty, explicit zeros stay, and sums are exact beyond 64 bits.
    add: [
        (None, None, EMPTY),
        (None, A5, Resource({"a": 5})),
        (A5, None, Resource({"a": 5})),
        (A5, EMPTY, Resource({"a": 5})),
        (A5, B3, Resource({"a": 5, "b": 3})),
        (A5, A5, Resource({"a": 10})),
        (EMPTY, Resource({"a": 0}), Resource({"a": 0})),
        (A5, Resource({"a": -5}), Resource({"a": 0})),
        (Resource({"a": INT64_MAX}), A5, Resource({"a": INT64_MAX + 5})),
        (Resource({"a": INT64_MIN}), Resource({"a": -1}), Resource({"a": INT64_MIN - 1})),
    ],
    # Likewise; results go below zero.
    subtract: [
        (None, None, EMPTY),
        (None, A5, Resource({"a": -5})),
        (A5, None, Resource({"a": 5})),
        (A5, EMPTY, Resource({"a": 5})),
        (A5, B3, Resource({"a": 5, "b": -3})),
        (A5, A5, Resource({"a": 0})),
        (EMPTY, Resource({"a": 0}), Resource({"a": 0})),
        (Resource({"a": INT64_MIN}), A5, Resource({"a": INT64_MIN - 5})),
        (None, Resource({"a": INT64_MIN}), Resource({"a": INT64_MAX + 1})),
    ],
    # The result has exactly the types of the left side; no left side gives no result.
    subtract_only_existing: [
        (None, A5, None),
        (None, None, None),
        (A5, None, A5),
        (EMPTY, A5, EMPTY),
        (A5, B3, A5),
        (A5, Resource({"a": 7, "b": 1}), Resource({"a": -2})),
        (Resource({"a": 0}), A5, Resource({"a": -5})),
        (Resource({"a": INT64_MAX}), A5, Resource({"a": INT64_MAX - 5})),
        (Resource({"a": INT64_MIN}), A5, Resource({"a": INT64_MIN - 5})),
    ],
    # A type that only one side names is unlimited on the other; so is everything without a side.
    component_wise_min: [
        (None, None, None),
        (A5, None, A5),
        (None, A5, A5),
        (A5, EMPTY, A5),
        (A5, B3, Resource({"a": 5, "b": 3})),
        (A5, Resource({"a": 4}), Resource({"a": 4})),
        (A5, Resource({"a": 6, "b": -1}), Resource({"a": 5, "b": -1})),
        (Resource({"a": 0}), A5, Resource({"a": 0})),
    ],
}


@pytest.mark.parametrize(
    ("operation", "left", "right", "expected"),
    [(operation, *row) for operation, rows in OPERATIONS.items() for row in rows],
)
def test_an_operation_on_two_resources_follows_its_table(
    operation: Operation, left: Resource | None, right: Resource | None, expected: Resource | None
) -> None:
    """Each says what a missing type and a missing resource mean."""
    assert expected == operation(left, right)


@pytest.mark.parametrize("operation", [add, subtract])
@pytest.mark.parametrize("nothing", [None, EMPTY])
def test_an_operand_of_nothing_gives_back_the_same_object(
    operation: Operation, nothing: Resource | None
) -> None:
    """A resource cannot change, so an unchanged result needs no copy."""
    assert A5 is operation(A5, nothing)


@pytest.mark.parametrize(
    ("left", "right", "expected", "clamped"),
    [
        (None, None, {}, ()),
        (A5, None, {"a": 5}, ()),
        (None, A5, {"a": 0}, ("a",)),
        (A5, Resource({"a": 2}), {"a": 3}, ()),
        (A5, Resource({"a": 6}), {"a": 0}, ("a",)),
        (A5, Resource({"c": 1, "b": 1, "a": 1}), {"a": 4, "b": 0, "c": 0}, ("b", "c")),
        (Resource({"a": -5}), B3, {"a": -5, "b": 0}, ("b",)),
        (Resource({"a": -5}), Resource({"a": 0}), {"a": 0}, ("a",)),
        (Resource({"a": -5}), EMPTY, {"a": -5}, ()),
    ],
)
def test_negative_results_of_the_right_types_become_zero(
    left: Resource | None, right: Resource | None, expected: dict[str, int], clamped: tuple[str, ...]
) -> None:
    """The raised types are reported, sorted; an older negative that the right side does not name stays."""
    assert (Resource(expected), clamped) == subtract_reporting_negative(left, right)
    assert Resource(expected) == subtract_eliminating_negative(left, right)


@pytest.mark.parametrize(
    ("limit", "wanted", "zero_if_missing", "unlimited_if_missing"),
    [
        (None, None, True, True),
        (None, A5, False, True),
        (None, Resource({"a": 0}), True, True),
        (None, Resource({"a": -1}), True, True),
        (A5, None, True, True),
        (EMPTY, A5, False, True),
        (EMPTY, EMPTY, True, True),
        (A5, A5, True, True),
        (A5, Resource({"a": 6}), False, False),
        (A5, Resource({"a": 5, "b": 1}), False, True),
        (A5, Resource({"a": 5, "b": 0}), True, True),
        (A5, Resource({"a": 6, "b": 1}), False, False),
        (Resource({"a": -1}), Resource({"a": 0}), True, True),
        (Resource({"a": -1}), Resource({"a": -1}), True, True),
        (Resource({"a": -1}), Resource({"a": 1}), False, False),
        (Resource({"a": -5}), Resource({"a": -1}), True, True),
        (Resource({"a": 0}), Resource({"a": 1}), False, False),
    ],
)
def test_fitting_depends_on_what_a_missing_or_negative_limit_means(
    limit: Resource | None,
    wanted: Resource | None,
    *,
    zero_if_missing: bool,
    unlimited_if_missing: bool,
) -> None:
    """A missing limit is zero or unlimited; a negative limit is zero."""
    assert zero_if_missing == fits(limit, wanted)
    assert unlimited_if_missing == fits_undefined_unlimited(limit, wanted)


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        (None, False),
        (EMPTY, False),
        (Resource({"a": 0}), False),
        (A5, True),
        (Resource({"a": 5, "b": 0}), True),
        (Resource({"a": 5, "b": -1}), False),
        (Resource({"a": -1, "b": 5}), False),
    ],
)
def test_more_than_zero_needs_a_positive_and_no_negative(
    resource: Resource | None, *, expected: bool
) -> None:
    """Zeros are allowed beside a positive quantity; nothing at all is not more than zero."""
    assert expected == strictly_greater_than_zero(resource)


@given(resources)
def test_any_quantity_above_zero_is_found(resource: Resource) -> None:
    """Whatever the others are."""
    assert is_any_positive(resource) == (max(resource.values(), default=0) > 0)


@given(st.lists(st.sampled_from([A5, EMPTY, Resource({"a": 5}), Resource({"b": -2, "a": 0})]), max_size=8))
def test_a_total_counts_each_resource_as_often_as_it_comes(parts: list[Resource]) -> None:
    """Also the same object several times in a row."""
    total: Resource | None = None
    for part in parts:
        total = add(total, part)

    assert (total or EMPTY) == total_of(parts)


@given(resources_or_none, resources_or_none)
def test_sums_and_differences_agree_with_the_quantities(
    left: Resource | None, right: Resource | None
) -> None:
    """Type by type they are exact, whatever the size."""
    types = names(left, right)

    assert Resource({n: amount(left, n) + amount(right, n) for n in types}) == add(left, right)
    assert Resource({n: amount(left, n) - amount(right, n) for n in types}) == subtract(left, right)


@given(resources, resources_or_none)
def test_existing_only_is_the_full_operation_cut_to_the_base(base: Resource, delta: Resource | None) -> None:
    """It differs from the difference only in the types that it drops."""
    rest = subtract(base, delta)

    assert Resource({name: rest[name] for name in base}) == subtract_only_existing(base, delta)


@given(resources, resources)
def test_subtracting_what_was_added_restores_the_quantities(left: Resource, right: Resource) -> None:
    """Difference undoes sum, whatever the size, but for types that are left with zero."""
    restored = subtract(add(left, right), right)

    assert left == Resource({name: quantity for name, quantity in restored.items() if name in left})
    assert not any(quantity for name, quantity in restored.items() if name not in left)


@given(resources_or_none, resources_or_none, resources_or_none)
def test_the_minimum_is_commutative_and_associative(
    left: Resource | None, middle: Resource | None, right: Resource | None
) -> None:
    """Limits along a path of queues combine to the same whatever the order."""
    assert component_wise_min(left, right) == component_wise_min(right, left)
    inner_first = component_wise_min(left, component_wise_min(middle, right))
    assert inner_first == component_wise_min(component_wise_min(left, middle), right)


@given(resources_or_none, resources_or_none)
def test_fitting_agrees_with_its_definition(limit: Resource | None, wanted: Resource | None) -> None:
    """Each variant is one inequality over the wanted types."""
    types = names(wanted)
    known = [name for name in types if limit is not None and name in limit]

    assert fits(limit, wanted) == all(amount(wanted, n) <= max(0, amount(limit, n)) for n in types)
    undefined = all(amount(wanted, n) <= max(0, amount(limit, n)) for n in known)
    assert fits_undefined_unlimited(limit, wanted) == undefined


@given(resources, resources)
def test_operations_leave_their_operands_alone(left: Resource, right: Resource) -> None:
    """No operation writes into a dict that it did not make."""
    before = left.as_dict(), right.as_dict()
    for operation in (add, subtract, subtract_only_existing, component_wise_min):
        operation(left, right)
    subtract_reporting_negative(left, right)

    assert before == (left.as_dict(), right.as_dict())
