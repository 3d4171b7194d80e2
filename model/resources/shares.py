"""Shares: how large a part of a total a resource takes, and the orders of fairness built on it.

A share is a float per resource type. Shares only ever order things; no quantity is computed from one,
so their rounding cannot leak into the accounts. Quantities are turned into floats before the division,
as the recorded core does it: dividing the integers would round differently beyond 2**53.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from .resource import EMPTY, Resource

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

__all__ = [
    "absolute_used_capacity",
    "compare_shares",
    "compare_usage_ratio",
    "compare_usage_ratio_for_types",
    "dominant_resource_type",
    "fair_share",
    "fairness_ratio",
    "shares",
]

_PERCENT_MAX: Final = 2**31 - 1


def shares(resource: Resource | None, total: Resource | None) -> tuple[float, ...]:
    """Return the share of each type of the resource, lowest first.

    A type of which the total has nothing counts with its raw quantity, which places it above any real
    share. Negative quantities give negative shares.
    """
    if resource is None:
        return ()
    return tuple(sorted([_share(name, quantity, total) for name, quantity in resource.items()]))


def compare_shares(left: Sequence[float], right: Sequence[float]) -> int:
    """Compare two ascending sequences of shares from their largest share downwards.

    When one side runs out, the first share other than zero that is left on the other side decides, so
    having no share at all equals having shares of zero.

    Returns:
        -1 when the left side is lower, 1 when it is higher, otherwise 0.
    """
    for ours, theirs in zip(reversed(left), reversed(right), strict=False):
        if ours != theirs:
            return 1 if ours > theirs else -1
    extra = len(left) - len(right)
    if extra >= 0:
        return _first_sign(left[:extra])
    return -_first_sign(right[:-extra])


def compare_usage_ratio(left: Resource | None, right: Resource | None, total: Resource | None) -> int:
    """Compare the shares that two resources take of the same total: -1, 0 or 1."""
    return compare_shares(shares(left, total), shares(right, total))


def compare_usage_ratio_for_types(
    left: Resource | None,
    right: Resource | None,
    total: Resource | None,
    types: Collection[str] | None,
) -> int:
    """Compare the shares of the given types only: -1, 0 or 1.

    Args:
        left: The resource on the left side.
        right: The resource on the right side.
        total: What both are shares of.
        types: The types to look at, a resource standing for its types; ``None`` for all of them.
    """
    if types is None:
        return compare_usage_ratio(left, right, total)
    return compare_shares(_shares_of_types(left, total, types), _shares_of_types(right, total, types))


def fairness_ratio(left: Resource | None, right: Resource | None, total: Resource | None) -> float:
    """Divide the largest share of the left side by the largest share of the right side.

    Two shares of zero are equally fair: 1.0. A share over nothing is infinite, with the sign of the share.
    """
    ours = _largest_share(left, total)
    theirs = _largest_share(right, total)
    if theirs == 0:
        return 1.0 if ours == 0 else math.copysign(math.inf, ours)
    return ours / theirs


def fair_share(allocated: Resource | None, guaranteed: Resource | None, fair_max: Resource | None) -> float:
    """Return the largest part that a queue uses of its guarantee, type by type.

    Where nothing is guaranteed the fair maximum takes its place; a type in neither, or with a negative
    usage, is ignored. Without any type to look at the share is 0.0.
    """
    highest = 0.0  # No ratio of a negative usage rises above it.
    for name, quantity in (allocated or EMPTY).items():
        if guaranteed is not None and name in guaranteed:
            limit = guaranteed[name]
        elif fair_max is not None and name in fair_max:
            limit = fair_max[name]
        else:
            continue
        ratio = _usage_ratio(quantity, limit)
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
    return Resource({name: _percent(used[name], limit) for name, limit in capacity.items() if name in used})


def dominant_resource_type(used: Resource | None, capacity: Resource | None) -> str:
    """Return the type of which the largest part of the capacity is used, ``""`` if there is none.

    Types that the capacity does not name are skipped. Among equals the lowest name wins, where the
    recorded core leaves the choice to the order of its map.
    """
    if used is None or capacity is None:
        return ""
    ratios = [(_dominance(used[name], capacity[name]), name) for name in sorted(used) if name in capacity]
    # Only ratios from zero upwards can dominate; `max` keeps the first of equals.
    return max((pair for pair in ratios if pair[0] >= 0), key=lambda pair: pair[0], default=(0.0, ""))[1]


def _share(name: str, quantity: int, total: Resource | None) -> float:
    """Return the share of one type, or the raw quantity when there is no total to share."""
    whole = 0 if total is None else total.get(name)
    if quantity == 0:
        return 0.0  # Not -0.0, which a negative total would give.
    return float(quantity) / float(whole) if whole else float(quantity)


def _shares_of_types(
    resource: Resource | None, total: Resource | None, types: Collection[str]
) -> tuple[float, ...]:
    """Return the shares of the used types among the given ones, lowest first; unused types are left out."""
    if resource is None:
        return ()
    used = ((name, quantity) for name, quantity in resource.items() if quantity and name in types)
    return tuple(sorted(_share(name, quantity, total) for name, quantity in used))


def _largest_share(resource: Resource | None, total: Resource | None) -> float:
    return max(shares(resource, total), default=0.0)


def _first_sign(leftover: Sequence[float]) -> int:
    """Return the sign of the first share other than zero, seen from the largest downwards."""
    decisive = next((share for share in reversed(leftover) if share), 0.0)
    return (decisive > 0) - (decisive < 0)


def _usage_ratio(quantity: int, limit: int) -> float:
    """Divide usage by its limit; a limit of nothing is fully used by any usage."""
    if limit > 0:
        return float(quantity) / float(limit)
    return 1.0 if quantity > 0 else 0.0


def _dominance(quantity: int, limit: int) -> float:
    """Divide usage by its capacity; a capacity of zero is fully used by anything but zero."""
    if limit:
        return float(quantity) / float(limit)
    return 1.0 if quantity else 0.0


def _percent(quantity: int, limit: int) -> int:
    if quantity <= 0:
        return 0
    if limit <= 0:
        return 100
    return min(int(float(quantity) / float(limit) * 100), _PERCENT_MAX)
