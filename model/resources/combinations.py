"""Combinations of resources off the hot path: products, type-wise bounds, merges and pruning."""

from __future__ import annotations

from typing import overload

from .quantities import multiply_quantity_by_ratio
from .resource import EMPTY, Resource

__all__ = [
    "component_wise_max",
    "component_wise_min_only_existing",
    "merge_if_not_present",
    "multiply",
    "multiply_by_ratio",
    "prune",
]


def multiply(base: Resource | None, factor: int) -> Resource:
    """Multiply every quantity by a whole number; a factor of zero drops the types as well."""
    if base is None or factor == 0:
        return EMPTY
    if factor == 1:
        return base
    return Resource({name: quantity * factor for name, quantity in base.items()})


def multiply_by_ratio(base: Resource | None, ratio: float) -> Resource:
    """Multiply every quantity by a ratio, truncating toward zero; a ratio of zero drops the types as well.

    Raises:
        QuantityError: The ratio is not a number.
    """
    if base is None or ratio == 0:
        return EMPTY
    return Resource({name: multiply_quantity_by_ratio(quantity, ratio) for name, quantity in base.items()})


@overload
def prune(resource: Resource) -> Resource: ...
@overload
def prune(resource: None) -> None: ...
def prune(resource: Resource | None) -> Resource | None:
    """Remove the types whose quantity is zero."""
    if resource is None or all(resource.values()):
        return resource
    return Resource({name: quantity for name, quantity in resource.items() if quantity})


@overload
def component_wise_min_only_existing(left: Resource, right: Resource | None) -> Resource: ...
@overload
def component_wise_min_only_existing(left: None, right: Resource | None) -> None: ...
def component_wise_min_only_existing(left: Resource | None, right: Resource | None) -> Resource | None:
    """Take the lower quantity for the types of the left side only."""
    if left is None or right is None:
        return left
    return Resource({name: min(quantity, right.get(name, quantity)) for name, quantity in left.items()})


def component_wise_max(left: Resource | None, right: Resource | None) -> Resource:
    """Take the higher quantity of each type; a type that one side does not name is zero there.

    A side that is missing altogether gives a resource without types, as in the recorded core.
    """
    if left is None or right is None:
        return EMPTY
    names = dict.fromkeys([*left, *right])
    return Resource({name: max(left.get(name), right.get(name)) for name in names})


@overload
def merge_if_not_present(left: Resource, right: Resource | None) -> Resource: ...
@overload
def merge_if_not_present(left: None, right: Resource) -> Resource: ...
@overload
def merge_if_not_present(left: None, right: None) -> None: ...
def merge_if_not_present(left: Resource | None, right: Resource | None) -> Resource | None:
    """Keep the left side and take over the types that only the right side names."""
    if right is None:
        return left
    if left is None:
        return right
    return Resource(dict(left.items()) | {name: right[name] for name in right if name not in left})
