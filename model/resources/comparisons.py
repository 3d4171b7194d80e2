"""Comparisons, combinations and shares of resources, off the hot path.

Resources are only partly ordered: two of them may each have more of some type. Each function documents which
types it compares and what a missing type counts as.

A share is a float per resource type. Shares are used for ordering alone; no quantity is computed from one,
so that their rounding cannot get into the accounts. Quantities are converted to floats before the division,
as in the recorded core: dividing the integers would round differently beyond 2**53.
"""

from __future__ import annotations

# ruff: noqa: SLF001 - each placement asks for the share of each of its queues; the dicts are only read.
import math
from collections.abc import Iterator
from typing import Final, overload

from .resource import EMPTY, Resource

_PERCENT_MAX: Final = 2**31 - 1
_NONE: Final[dict[str, int]] = {}


def is_zero(resource: Resource | None) -> bool:
    """Return whether the resource is missing, names no type, or has only zeros."""
    return resource is None or not any(resource.values())


def has_negative(resource: Resource | None) -> bool:
    """Return whether any quantity is below zero."""
    return resource is not None and any(quantity < 0 for quantity in resource.values())


def equals(left: Resource | None, right: Resource | None) -> bool:
    """Return whether both sides have the same quantities, a missing type being zero.

    No resource at all equals only itself, not the empty resource. ``==`` is the exact comparison.
    """
    if left is None or right is None:
        return left is right
    return left == right or all(ours == theirs for ours, theirs in _all_pairs(left, right))


def equals_or_empty(left: Resource | None, right: Resource | None) -> bool:
    """Return whether both sides are equal, all forms of nothing being equal to each other."""
    return (is_zero(left) and is_zero(right)) or equals(left, right)


def matches_any(left: Resource | None, right: Resource | None) -> bool:
    """Return whether both sides name at least one common type, whatever its quantities."""
    return left is not None and right is not None and any(right.has(name) for name in left)


def fit_score(available: Resource | None, wanted: Resource | None) -> float:
    """Measure by how much the request exceeds the available resource: 0.0 fits, lower is better.

    Each type that is short adds its missing fraction, 1.0 when none of it is left.
    """
    if wanted is None:
        return 0.0
    if available is None:
        return float(len(wanted))
    # `fsum` rounds once, so the score does not depend on the order in which types were named.
    return math.fsum(_missing_fraction(available.get(name), quantity) for name, quantity in wanted.items())


def type_match_percent(left: Resource | None, right: Resource | None) -> int:
    """Return the whole percentage of the left side's types that the right side names too.

    An empty left side matches nothing: 0, where the recorded core divides by zero.
    """
    if left is None or right is None or len(left) == 0:
        return 0
    return sum(right.has(name) for name in left) * 100 // len(left)


def _missing_fraction(available: int, wanted: int) -> float:
    if wanted <= 0 or available >= wanted:
        return 0.0
    if available <= 0:
        return 1.0
    return float(wanted - available) / float(wanted)


def _all_pairs(left: Resource, right: Resource) -> Iterator[tuple[int, int]]:
    """Pair the quantities of every type of both sides, a missing type being zero."""
    for name, quantity in left.items():
        yield quantity, right.get(name)
    for name, quantity in right.items():
        if not left.has(name):
            yield 0, quantity


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


def shares(resource: Resource | None, total: Resource | None) -> tuple[float, ...]:
    """Return the share of each type of the resource, lowest first.

    A type of which the total has nothing counts with its raw quantity, which places it above any real
    share. Negative quantities give negative shares.
    """
    if resource is None:
        return ()
    return tuple(sorted([_share(name, quantity, total) for name, quantity in resource.items()]))


def fair_share(allocated: Resource | None, guaranteed: Resource | None, fair_max: Resource | None) -> float:
    """Return the largest part that a queue uses of its guarantee, type by type.

    Where nothing is guaranteed the fair maximum takes its place; a type in neither, or with a negative
    usage, is ignored. Without any type to look at the share is 0.0.
    """
    highest = 0.0  # No ratio of a negative usage rises above it.
    if allocated is None:
        return highest
    promised = _NONE if guaranteed is None else guaranteed._quantities
    possible = _NONE if fair_max is None else fair_max._quantities
    for name, quantity in allocated._quantities.items():
        if name in promised:
            limit = promised[name]
        elif name in possible:
            limit = possible[name]
        else:
            continue
        # A limit of nothing is fully used by any usage.
        ratio = float(quantity) / float(limit) if limit > 0 else float(quantity > 0)
        if ratio > highest:  # noqa: PLR1730 - `max` takes three times as long, for each queue after each placement
            highest = ratio
    return highest


def absolute_used_capacity(capacity: Resource | None, used: Resource | None) -> Resource:
    """Return the used percentage, truncated, of each type that both sides name.

    The percentage may exceed 100; it stops at the largest 32-bit number. Using something of a capacity of
    nothing is 100.
    """
    if capacity is None or used is None:
        return EMPTY
    return Resource({name: _percent(used[name], limit) for name, limit in capacity.items() if used.has(name)})


def _share(name: str, quantity: int, total: Resource | None) -> float:
    """Return the share of one type, or the raw quantity without a total to share."""
    whole = 0 if total is None else total.get(name)
    if quantity == 0:
        return 0.0  # Not -0.0, which a negative total would give.
    return float(quantity) / float(whole) if whole else float(quantity)


def _percent(quantity: int, limit: int) -> int:
    if quantity <= 0:
        return 0
    if limit <= 0:
        return 100
    return min(int(float(quantity) / float(limit) * 100), _PERCENT_MAX)
