"""Which node to reserve for an ask that no node has room for."""

from __future__ import annotations

from typing import Final

from ..resources.comparisons import fit_score
from ..resources.resource import Resource, fits
from .block import NodeEntry
from .order import NodeOrder

__all__ = ["first_to_reserve"]

_SIZES_MAX: Final = 16
"""Sizes whose ranking is kept; at the bound the oldest is forgotten and made again."""


def first_to_reserve(order: NodeOrder, resource: Resource) -> NodeEntry | None:
    """Return the usable node with the least use for others that is large enough, `None` if there is none.

    What counts is how much a node has available in addition to what is asked, not how much it lacks: a
    nearly full node is reserved rather than one that smaller asks can still use.

    All nodes are ranked for one reservation, and the ranking is kept until a node that is not reserved
    changes: a thousand reservations in a row need one ranking.
    """
    ranking = order.ranked.get(resource)
    if ranking is None:
        ranking = [entry for entry in order if entry.usable and fits(entry.capacity, resource)]
        ranking.sort(key=lambda entry: fit_score(resource, entry.available))
        ranking.reverse()  # The best is last, where it is cheap to remove.
        if len(order.ranked) >= _SIZES_MAX:
            del order.ranked[next(iter(order.ranked))]
        order.ranked[resource] = ranking
    while ranking and not ranking[-1].usable:
        ranking.pop()
    return ranking[-1] if ranking else None
