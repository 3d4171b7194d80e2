"""How fairly a cluster is shared: Jain's index over the queues that want something.

The share of a queue is the largest of its shares of one resource type (its dominant share). What it wants is
its share plus that of what waits in it, at most its maximum. Its fair share is its part of what all queues
together have: first everybody gets what they want up to their guarantee, then the rest goes in equal parts to
those that want more, until nothing is left (max-min fairness). Of x = share / fair share, Jain's index is
(sum of x)² / (n * sum of x²): 1 when every queue has its fair share, 1/n when one has everything.

All numbers are whole, in millionths: the result is the same on every machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["WHOLE", "Claim", "fair_shares", "fairness_permille"]

WHOLE: Final = 1_000_000
"""A share of everything."""


class Claim(NamedTuple):
    """What a queue has, wants (at least what it has) and is guaranteed, as shares in millionths."""

    share: int
    wanted: int
    guaranteed: int


def fair_shares(claims: Sequence[Claim]) -> list[int]:
    """Return what each queue would have if what all have now were shared fairly."""
    left = sum(claim.share for claim in claims)
    sure = [min(claim.wanted, claim.guaranteed) for claim in claims]
    if sum(sure) > left:
        return [left * part // sum(sure) for part in sure]
    shares = sure
    left -= sum(sure)
    # In the order of what is missing, one that wants less than an equal part leaves the rest to the others.
    missing = [claim.wanted - part for claim, part in zip(claims, shares, strict=True)]
    order = sorted(range(len(claims)), key=lambda at: (missing[at], at))
    for place, at in enumerate(order):
        part = min(missing[at], left // (len(order) - place))
        shares[at] += part
        left -= part
    return shares


def fairness_permille(claims: Sequence[Claim]) -> int | None:
    """Return Jain's index in thousandths; `None` where no queue wants or none has anything."""
    active = [claim for claim in claims if claim.wanted > 0]
    if not any(claim.share for claim in active):
        return None
    fair = fair_shares(active)
    # A queue without a fair share has nothing to be compared with: it waits for the guarantees of others.
    ratios = [claim.share * WHOLE // part for claim, part in zip(active, fair, strict=True) if part > 0]
    squares = len(ratios) * sum(ratio * ratio for ratio in ratios)
    return (2000 * sum(ratios) ** 2 + squares) // (2 * squares) if squares else None
