"""How even the decayed use of queues is over time, where their parents have a half-life.

Of the queues below such a parent that use or want something in an interval, each has its mean use, where
what is past counts half after each half-life, as the largest share of the cluster and divided by its weight.
Jain's index of these is 100 % where all have used as much by weight.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .....model.resources.decayed_use import DecayedUse, decayed_means, decayed_share, no_use, raised_to
from .....model.resources.resource import Resource


class FairTerms(NamedTuple):
    """What a queue says about fair share."""

    half_life_ns: int | None = None
    """Of the use of the queues below it; `None` where their past does not count."""
    counts_all: bool = False
    """Whether all that the queues below use counts, and not only what is above their guarantees."""
    weight: int = 1
    """Its own among its siblings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WeighedQueue:
    """A queue among its siblings: mean amounts of each interval, by resource type."""

    weight: int
    guaranteed: Mapping[str, int]
    used: Mapping[str, Sequence[int]]
    pending: Mapping[str, Sequence[int]]

    def is_active(self, at: int) -> bool:
        """Return whether it uses or wants something in an interval."""
        return any(means[at] for amounts in (self.used, self.pending) for means in amounts.values())

    def counted(self, at: int, *, counts_all: bool) -> dict[str, int]:
        """Return what counts of what it uses in an interval."""
        free = {} if counts_all else self.guaranteed
        return {name: max(means[at] - free.get(name, 0), 0) for name, means in self.used.items()}


class DecayedSeries(NamedTuple):
    """The index of the queues below one parent, in thousandths; `None` where none has used anything."""

    parent: str
    half_life_ns: int
    values: tuple[int | None, ...]


def decayed_fairness(
    queues: Mapping[str, WeighedQueue],
    terms: Mapping[str, FairTerms],
    capacity: Mapping[str, Sequence[int]],
    borders_ns: Sequence[int],
) -> Iterator[DecayedSeries]:
    """Yield the index of each parent with a half-life, by its path.

    Args:
        queues: All queues, by path.
        terms: What queues say about fair share, by path.
        capacity: What the cluster has in each interval, by resource type.
        borders_ns: Where the intervals begin, and the end of the last one.
    """
    for parent in sorted(queues):
        own = terms.get(parent, FairTerms())
        children = [queue for path, queue in sorted(queues.items()) if path.rpartition(".")[0] == parent]
        if own.half_life_ns is not None and children:
            index = _index_of(children, own.half_life_ns, capacity, borders_ns, counts_all=own.counts_all)
            yield DecayedSeries(parent, own.half_life_ns, tuple(index))


def _index_of(
    children: Sequence[WeighedQueue],
    half_life_ns: int,
    capacity: Mapping[str, Sequence[int]],
    borders_ns: Sequence[int],
    *,
    counts_all: bool,
) -> Iterator[int | None]:
    """Yield the index at the end of each interval."""
    uses = [no_use(half_life_ns, borders_ns[0])] * len(children)
    for at, end_ns in enumerate(borders_ns[1:]):
        amounts = [child.counted(at, counts_all=counts_all) for child in children]
        uses = [raised_to(use, used, borders_ns[at]) for use, used in zip(uses, amounts, strict=True)]
        limits = Resource({name: means[at] for name, means in capacity.items()})
        yield jain_permille(
            [
                _share(use, limits, child.weight, end_ns)
                for use, child in zip(uses, children, strict=True)
                if child.is_active(at)
            ]
        )


def _share(use: DecayedUse, limits: Resource, weight: int, now_ns: int) -> float:
    return decayed_share(decayed_means(use, now_ns), limits, weight)


def jain_permille(shares: Sequence[float]) -> int | None:
    """Return Jain's index in thousandths; `None` where all shares are nothing."""
    squares = sum(share * share for share in shares)
    return round(1000 * sum(shares) ** 2 / (len(shares) * squares)) if squares else None
