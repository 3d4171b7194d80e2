"""Comparisons of resources off the hot path.

Resources are only partly ordered: two of them may each have more of some type. Each function says which
types it compares and what a missing type counts as.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from .resource import Resource


def is_zero(resource: Resource | None) -> bool:
    """Return whether there is no resource, it names no type, or every quantity is zero."""
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
    """Measure how badly the wanted resource misses what is available: 0.0 fits, lower is better.

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
