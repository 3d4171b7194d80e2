"""Combinations of resources off the hot path: type-wise bounds, merges and pruning."""

from __future__ import annotations

from typing import overload

from .resource import EMPTY, Resource


@overload
def prune(resource: Resource) -> Resource: ...
@overload
def prune(resource: None) -> None: ...
def prune(resource: Resource | None) -> Resource | None:
    """Remove the types whose quantity is zero."""
    if resource is None or all(resource.values()):
        return resource
    return Resource({name: quantity for name, quantity in resource.items() if quantity})


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
    return Resource(dict(left.items()) | {name: right[name] for name in right if not left.has(name)})
