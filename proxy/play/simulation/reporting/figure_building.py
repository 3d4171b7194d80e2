"""Build the figures of a simulation that has ended, from its record and its series."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, NamedTuple, final

from ..accounts import COUNTS, Tally, permille
from ..record import SimulationRecord
from ..report import nearest_rank
from .figures import (
    CLASSES,
    FORMAT,
    KIND,
    WAIT_BOUNDS_NS,
    CountFigures,
    DecayedFairness,
    NodeFigures,
    PreemptionCount,
    PreemptionFigures,
    QueueFigures,
    RunFigures,
    SlowdownFigures,
    UserFigures,
    WaitFigures,
)
from .run_series import QueueBounds, RunSeries, WeighedQueue, decayed_fairness, with_parents

_NO_QUEUE = "(no queue)"
_NO_LIMITS = QueueBounds({}, {})


@dataclass(slots=True)
class _QueueSums:
    """The sums for a queue and all queues below it: mean amounts for each interval, by resource type."""

    is_leaf: bool = False
    tallies: list[Tally] = field(default_factory=list)
    used: dict[str, list[int]] = field(default_factory=dict)
    pending: dict[str, list[int]] = field(default_factory=dict)


def build_figures(
    record: SimulationRecord, *, workload: str, engine: str, is_interrupted: bool
) -> RunFigures:
    """Return the figures of a simulation whose series are finished.

    Args:
        record: The record of the simulation, with series.
        workload: The name of the input.
        engine: The name of the engine.
        is_interrupted: Whether it was stopped before its end.
    """
    series = record.series
    assert series is not None, "the simulation wrote no series"
    builder = _Builder(record, series)
    queues = builder.queues()
    fairness = builder.fairness(queues)
    return RunFigures(
        kind=KIND,
        format=FORMAT,
        workload=workload,
        engine=engine,
        nodes=record.nodes,
        capacity={name: capacity.value for name, capacity in sorted(record.capacity.items())},
        end_ns=record.last_change_ns,
        interrupted=is_interrupted,
        interval_ns=series.intervals.width_ns,
        cluster_capacity={name: tuple(means) for name, means in builder.capacity.items()},
        wait_bounds_ns=WAIT_BOUNDS_NS,
        total=builder.figures_of("", builder.total(queues)),
        queues=tuple(builder.figures_of(name, queues[name]) for name in sorted(queues)),
        fairness=tuple(fairness),
        fairness_mean=builder.mean_of(fairness),
        packing=builder.packing(),
        preemptions=_preemptions(series),
        makespan_ns=_makespan(record),
        users=_users(record),
        decayed_fairness=builder.decayed_fairness(queues),
    )


def _makespan(record: SimulationRecord) -> int | None:
    if record.first_ask_ns is None or record.last_completion_ns is None:
        return None
    return record.last_completion_ns - record.first_ask_ns


def _users(record: SimulationRecord) -> tuple[UserFigures, ...]:
    """Return the figures of the work of each user."""
    tallies: dict[str, list[Tally]] = {}
    for owner, tally in record.accounts.tallies().items():
        tallies.setdefault(owner.user, []).append(tally)
    return tuple(
        UserFigures(user=user, tasks=_counts(of), waits=_waits(of), slowdown=_slowdown(of))
        for user, of in sorted(tallies.items())
    )


@final
class _Builder:
    """Means and shares of the intervals of one simulation."""

    def __init__(self, record: SimulationRecord, series: RunSeries) -> None:
        self._record = record
        self._series = series
        self._end_ns = record.last_change_ns
        self._borders_ns = series.intervals.borders_ns(self._end_ns)
        self._lengths_ns = [end - start for start, end in pairwise(self._borders_ns)]
        self.capacity = {
            name: self._means(capacity.integrals(self._borders_ns))
            for name, capacity in sorted(record.capacity.items())
        }

    def queues(self) -> dict[str, _QueueSums]:
        """Return all queues that had work, and those above them."""
        queues: dict[str, _QueueSums] = {}

        def each_of(path: str) -> Iterable[_QueueSums]:
            for above in with_parents(path or _NO_QUEUE):
                yield queues.setdefault(above, _QueueSums())

        for owner, tally in self._record.accounts.tallies().items():
            *_, leaf = each_of(owner.queue)
            leaf.is_leaf = True
            for queue in each_of(owner.queue):
                queue.tallies.append(tally)
        for kind, amounts in (("used", self._series.used), ("pending", self._series.pending)):
            for (path, name), series in sorted(amounts.items()):
                means = self._means(series.integrals())
                for queue in each_of(path):
                    _add(getattr(queue, kind), name, means)
        return queues

    def total(self, queues: Mapping[str, _QueueSums]) -> _QueueSums:
        """Return the sum of all queues."""
        tops = [queue for path, queue in sorted(queues.items()) if "." not in path]
        total = _QueueSums(tallies=[tally for queue in tops for tally in queue.tallies])
        for queue in tops:
            for name, means in queue.used.items():
                _add(total.used, name, means)
            for name, means in queue.pending.items():
                _add(total.pending, name, means)
        return total

    def figures_of(self, path: str, queue: _QueueSums) -> QueueFigures:
        """Return the figures of one queue, or of all without a path."""
        limits = self._series.limits.get(path, _NO_LIMITS)
        return QueueFigures(
            queue=path,
            is_leaf=queue.is_leaf,
            guaranteed=dict(sorted(limits.guaranteed.items())),
            maximum=dict(sorted(limits.maximum.items())),
            tasks=_counts(queue.tallies),
            waits=_waits(queue.tallies),
            used={name: tuple(means) for name, means in sorted(queue.used.items())},
            pending={name: tuple(means) for name, means in sorted(queue.pending.items())},
            slowdown=_slowdown(queue.tallies),
        )

    def fairness(self, queues: Mapping[str, _QueueSums]) -> list[int | None]:
        """Return the fairness among the leaves in each interval."""
        leaves = [(path, queue) for path, queue in sorted(queues.items()) if queue.is_leaf]
        return [
            fairness_permille([self._claim(path, queue, at) for path, queue in leaves])
            for at in range(len(self._lengths_ns))
        ]

    def decayed_fairness(self, queues: Mapping[str, _QueueSums]) -> tuple[DecayedFairness, ...]:
        """Return the fairness of the decayed use of queues below parents with a half-life."""
        bounds = {path: self._series.limits.get(path, _NO_LIMITS) for path in queues}
        weighed = {
            path: WeighedQueue(
                weight=bounds[path].fair.weight,
                guaranteed=bounds[path].guaranteed,
                used=queue.used,
                pending=queue.pending,
            )
            for path, queue in queues.items()
        }
        terms = {path: limits.fair for path, limits in bounds.items()}
        return tuple(
            DecayedFairness(
                parent=parent, half_life_ns=half_life_ns, index=values, index_mean=self.mean_of(values)
            )
            for parent, half_life_ns, values in decayed_fairness(
                weighed, terms, self.capacity, self._borders_ns
            )
        )

    def mean_of(self, values: Sequence[int | None]) -> int | None:
        """Return the mean over the time that has a value."""
        pairs = zip(values, self._lengths_ns, strict=True)
        known = [(value, length) for value, length in pairs if value is not None]
        time_ns = sum(length for _, length in known)
        return permille(sum(value * length for value, length in known), time_ns * 1000) if time_ns else None

    def packing(self) -> NodeFigures:
        """Return the packing of the nodes."""
        packing = self._series.packing
        by_class = [gauge.integrals(self._end_ns) for gauge in packing.by_class]
        nodes = [sum(column) for column in zip(*by_class, strict=True)]
        count = len(self._lengths_ns)
        fragmentation = {}
        for name in sorted(packing.free):
            pairs = zip(
                packing.free_on_used[name].integrals(self._end_ns),
                packing.free[name].integrals(self._end_ns),
                strict=True,
            )
            shares = [permille(part, whole) if whole else None for part, whole in pairs]
            fragmentation[name] = tuple(shares[:count])
        return NodeFigures(
            classes=CLASSES,
            by_class=tuple(
                tuple(permille(part, whole) for part, whole in list(zip(one, nodes, strict=True))[:count])
                for one in by_class
            ),
            fragmentation=fragmentation,
        )

    def _claim(self, path: str, queue: _QueueSums, at: int) -> Claim:
        """Return the use and the need of a leaf in an interval."""
        limits = self._series.limits.get(path, _NO_LIMITS)
        share = self._share({name: means[at] for name, means in queue.used.items()}, at)
        pending = self._share({name: means[at] for name, means in queue.pending.items()}, at)
        bounds = [
            limit * WHOLE // self.capacity[name][at]
            for name, limit in limits.maximum.items()
            if self.capacity.get(name, [0] * (at + 1))[at] > 0
        ]
        wanted = max(min(share + pending, *bounds, WHOLE), share)
        return Claim(share, wanted, self._share(limits.guaranteed, at))

    def _share(self, amounts: Mapping[str, int], at: int) -> int:
        """Return the largest share that amounts have of the cluster, in millionths."""
        return max(
            (
                amount * WHOLE // self.capacity[name][at]
                for name, amount in amounts.items()
                if name in self.capacity and self.capacity[name][at] > 0
            ),
            default=0,
        )

    def _means(self, integrals: Iterable[int]) -> list[int]:
        """Return the mean of each interval, rounded to the nearest; 0 for an interval without length."""
        pairs = zip(integrals, self._lengths_ns, strict=False)
        return [(2 * integral + length) // (2 * length) if length else 0 for integral, length in pairs]


def _add(sums: dict[str, list[int]], name: str, means: list[int]) -> None:
    """Add the means of a resource type."""
    before = sums.get(name)
    sums[name] = means if before is None else [a + b for a, b in zip(before, means, strict=True)]


def _counts(tallies: Iterable[Tally]) -> CountFigures:
    """Return the counts of all tasks."""
    together = list(tallies)
    return CountFigures(**{name: sum(getattr(tally, name) for tally in together) for name in COUNTS})


def _slowdown(tallies: Iterable[Tally]) -> SlowdownFigures | None:
    """Return the distribution of the bounded slowdowns."""
    ordered = sorted(one for tally in tallies for one in tally.slowdowns)
    if not ordered:
        return None
    p50, p90 = (nearest_rank(ordered, percent) for percent in (50, 90))
    mean = sum(ordered) // len(ordered)
    return SlowdownFigures(count=len(ordered), mean=mean, p50=p50, p90=p90, max=ordered[-1])


def _waits(tallies: Iterable[Tally]) -> WaitFigures | None:
    """Return the distribution of the waits."""
    waits_ns = sorted(wait for tally in tallies for wait in tally.waits_ns)
    if not waits_ns:
        return None
    classes = [0] * (len(WAIT_BOUNDS_NS) + 1)
    for wait_ns in waits_ns:
        classes[bisect_left(WAIT_BOUNDS_NS, wait_ns)] += 1
    p50, p90, p99 = (nearest_rank(waits_ns, percent) for percent in (50, 90, 99))
    return WaitFigures(
        count=len(waits_ns),
        p50_ns=p50,
        p90_ns=p90,
        p99_ns=p99,
        max_ns=waits_ns[-1],
        classes=tuple(classes),
    )


def _preemptions(series: RunSeries) -> PreemptionFigures:
    """Return the preemptions, the most frequent kind first."""
    ordered = sorted(series.preemption_counts.items(), key=lambda entry: (-entry[1], entry[0]))
    return PreemptionFigures(
        count=series.preemption_counts.total(),
        groups=tuple(PreemptionCount(**group._asdict(), count=count) for group, count in ordered),
        listed=tuple(series.preemptions),
    )


WHOLE: Final = 1_000_000
"""The share of the whole."""


class Claim(NamedTuple):
    """The use, the need (at least the use) and the guarantee of a queue, as shares in millionths."""

    share: int
    wanted: int
    guaranteed: int


def fair_shares(claims: Sequence[Claim]) -> list[int]:
    """Return the share of each queue if the present use of all were shared fairly."""
    left = sum(claim.share for claim in claims)
    sure = [min(claim.wanted, claim.guaranteed) for claim in claims]
    if sum(sure) > left:
        return [left * part // sum(sure) for part in sure]
    shares = sure
    left -= sum(sure)
    # In the order of missing shares, a queue that needs less than an equal part leaves the rest to others.
    missing = [claim.wanted - part for claim, part in zip(claims, shares, strict=True)]
    order = sorted(range(len(claims)), key=lambda at: (missing[at], at))
    for place, at in enumerate(order):
        part = min(missing[at], left // (len(order) - place))
        shares[at] += part
        left -= part
    return shares


def fairness_permille(claims: Sequence[Claim]) -> int | None:
    """Return Jain's index in thousandths; `None` if no queue needs, or none of these uses, anything."""
    active = [claim for claim in claims if claim.wanted > 0]
    if not any(claim.share for claim in active):
        return None
    fair = fair_shares(active)
    # A queue without a fair share cannot be compared: it waits for the guarantees of others.
    ratios = [claim.share * WHOLE // part for claim, part in zip(active, fair, strict=True) if part > 0]
    squares = len(ratios) * sum(ratio * ratio for ratio in ratios)
    return (2000 * sum(ratios) ** 2 + squares) // (2 * squares) if squares else None
