"""Shares: the fraction of a total that a resource is, and the orders of fairness that follow from it.

A share is a float per resource type. Shares are used for ordering alone; no quantity is computed from one,
so that their rounding cannot get into the accounts. Quantities are converted to floats before the division,
as in the recorded core: dividing the integers would round differently beyond 2**53.
"""
# ruff: noqa: SLF001 - each placement asks for the share of each of its queues; the dicts are only read.

from __future__ import annotations

from typing import Final

from .resource import EMPTY, Resource

_PERCENT_MAX: Final = 2**31 - 1
_NONE: Final[dict[str, int]] = {}


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
    """Return the share of one type, or the raw quantity when there is no total to share."""
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
