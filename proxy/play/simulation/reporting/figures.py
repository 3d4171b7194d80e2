"""The figures of a simulation, as strict models: they are written as JSON and read again to compare.

Times are whole nanoseconds of virtual time; shares are thousandths. A list with a value for each interval
begins at time 0; its last interval may be shorter than the others. Resource amounts are in the units of the
scheduler interface: thousandths of a core for `vcore`, bytes for `memory`, numbers for everything else.

The packing of nodes: the use of a node is its largest share of one resource type. A node changes class when
that share enters another tenth.

The duration of a simulation is not known before its end. The intervals are one second long at first; when
there would be more than `INTERVALS_MAX`, each two neighbours become one of twice the length. Sums stay exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal, Self, final

from pydantic import BaseModel, ConfigDict, Field, model_validator

KIND: Final = "licorne simulation figures"
FORMAT: Final = 1
_SECOND: Final = 10**9
WAIT_BOUNDS_NS: Final = tuple(
    seconds * _SECOND for seconds in (0, 1, 10, 60, 600, 3_600, 21_600, 86_400, 604_800)
)
"""The longest wait of each class of the histogram; the last class has no bound."""
_Amounts = dict[str, int]
_Count = Annotated[int, Field(ge=0)]
CLASSES: Final = ("empty", *(f"{low}-{low + 10} %" for low in range(0, 100, 10)))
"""Classes of nodes: unused; then more than the first number, and at most the second."""
INTERVALS_MAX: Final = 240
"""The largest number of intervals, which is even: pairs of neighbours become one."""
_FIRST_WIDTH_NS: Final = 10**9
_Series = Annotated[tuple[int, ...], Field(min_length=1, max_length=INTERVALS_MAX)]
_Gaps = Annotated[tuple[int | None, ...], Field(min_length=1, max_length=INTERVALS_MAX)]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class CountFigures(_Strict):
    """The counts of tasks by their state."""

    submitted: _Count
    placed: _Count
    waiting: _Count
    running: _Count
    completed: _Count
    rejected: _Count
    withdrawn: _Count
    preempted: _Count


class WaitFigures(_Strict):
    """The waits of tasks for their first node, by nearest rank; `classes` counts by `WAIT_BOUNDS_NS`."""

    count: _Count
    p50_ns: _Count
    p90_ns: _Count
    p99_ns: _Count
    max_ns: _Count
    classes: Annotated[
        tuple[_Count, ...],
        Field(min_length=len(WAIT_BOUNDS_NS) + 1, max_length=len(WAIT_BOUNDS_NS) + 1),
    ]


class SlowdownFigures(_Strict):
    """The bounded slowdown of completed work, in thousandths, by nearest rank."""

    count: _Count
    mean: _Count
    p50: _Count
    p90: _Count
    max: _Count


class UserFigures(_Strict):
    """The counts of the work of one user, and its waits."""

    user: str
    tasks: CountFigures
    waits: WaitFigures | None
    slowdown: SlowdownFigures | None


class QueueFigures(_Strict):
    """One queue with all below it: its limits, tasks, waits, and the mean use and need of each interval."""

    queue: str
    is_leaf: bool
    guaranteed: _Amounts
    maximum: _Amounts
    tasks: CountFigures
    waits: WaitFigures | None
    used: dict[str, _Series]
    pending: dict[str, _Series]
    slowdown: SlowdownFigures | None = None
    """`None` also in files of versions before 0.1."""


class NodeFigures(_Strict):
    """The packing of the nodes.

    `by_class` is the share of the nodes in each of `classes`. `fragmentation` is, by resource type, the share
    of the free amount that is on used nodes, `null` if nothing is free.
    """

    classes: Annotated[tuple[str, ...], Field(min_length=len(CLASSES), max_length=len(CLASSES))]
    by_class: Annotated[tuple[_Series, ...], Field(min_length=len(CLASSES), max_length=len(CLASSES))]
    fragmentation: dict[str, _Gaps]


class PreemptionCount(_Strict):
    """The number of preemptions of work of one queue for one queue, with the reason."""

    queue: str
    for_queue: str
    reason: str
    count: _Count


class PreemptionListed(_Strict):
    """One preemption: the allocation that left its node, the ask that it ended for, and the reason.

    `for_ask` and the following fields are empty if it was not for an ask, or if that is unknown.
    """

    at_ns: _Count
    allocation: str
    application: str
    queue: str
    user: str
    for_ask: str
    for_application: str
    for_queue: str
    reason: str


class PreemptionFigures(_Strict):
    """All preemptions counted, and the first ones listed."""

    count: _Count
    groups: tuple[PreemptionCount, ...]
    listed: tuple[PreemptionListed, ...]


class DecayedFairness(_Strict):
    """The evenness, by weight, of the decayed use of the queues below a parent, at the end of intervals."""

    parent: str
    half_life_ns: Annotated[int, Field(ge=1)]
    index: _Gaps
    index_mean: Annotated[int, Field(ge=0, le=1000)] | None


class RunFigures(_Strict):
    """All figures of one simulation; `queues` are sorted by name, and include parents."""

    kind: Literal["licorne simulation figures"]
    format: Literal[1]
    workload: str
    engine: str
    nodes: _Count
    capacity: _Amounts
    end_ns: _Count
    interrupted: bool
    interval_ns: Annotated[int, Field(ge=1)]
    cluster_capacity: dict[str, _Series]
    wait_bounds_ns: tuple[_Count, ...]
    total: QueueFigures
    queues: tuple[QueueFigures, ...]
    fairness: _Gaps
    fairness_mean: Annotated[int, Field(ge=0, le=1000)] | None
    packing: NodeFigures
    preemptions: PreemptionFigures
    makespan_ns: _Count | None = None
    """The time from the first ask to the last completion; `None` without a completion."""
    users: tuple[UserFigures, ...] = ()
    """The figures of users, sorted by name; files of versions before 0.1 do not have them."""
    decayed_fairness: tuple[DecayedFairness, ...] = ()
    """The figures of each parent with a half-life, sorted by path; an empty tuple is not written."""

    @model_validator(mode="after")
    def _check_lengths(self) -> Self:
        """Refuse series that do not have a value for each interval."""
        count = max(-(-self.end_ns // self.interval_ns), 1)
        lengths = {len(self.fairness), *map(len, self.cluster_capacity.values())}
        lengths |= {len(one.index) for one in self.decayed_fairness}
        lengths |= {len(series) for series in self.packing.by_class}
        lengths |= {len(series) for series in self.packing.fragmentation.values()}
        for queue in (self.total, *self.queues):
            lengths |= {len(series) for amounts in (queue.used, queue.pending) for series in amounts.values()}
        if lengths != {count}:
            raise ValueError(f"series have {sorted(lengths)} values, for {count} intervals")
        if self.wait_bounds_ns != WAIT_BOUNDS_NS:
            raise ValueError(f"the classes of waits are {self.wait_bounds_ns}, not {WAIT_BOUNDS_NS}")
        return self

    def mean_of(self, values: tuple[int, ...]) -> int:
        """Return the mean of a series over the whole time; without a duration, its one value."""
        if self.end_ns == 0:
            return values[0]
        total = sum(values) * self.interval_ns
        # The last interval may be shorter.
        total -= values[-1] * (len(values) * self.interval_ns - self.end_ns)
        return total // self.end_ns

    def mean_use_permille(self, resource: str) -> int | None:
        """Return the mean used share of the cluster, `None` if it does not have the resource."""
        capacity = self.mean_of(self.cluster_capacity.get(resource, (0,) * len(self.fairness)))
        used = self.mean_of(self.total.used.get(resource, (0,) * len(self.fairness)))
        return 1000 * used // capacity if capacity > 0 else None


@dataclass(slots=True)
class _PackedNode:
    """The resources of a node, and their use."""

    capacity: dict[str, int]
    used: dict[str, int] = field(default_factory=dict)
    is_there: bool = True

    def use_class(self) -> int:
        """Return the index of its class."""
        if not any(self.used.values()):
            return 0
        tenths = [-(-10 * self.used.get(name, 0) // has) for name, has in self.capacity.items() if has > 0]
        return min(max(tenths, default=0), 10) or 1

    def free(self, name: str) -> int:
        """Return the free amount of a resource type; 0 if the use exceeds the capacity."""
        return max(self.capacity.get(name, 0) - self.used.get(name, 0), 0)


@final
class NodePacking:
    """The packing of all nodes of one simulation.

    Attributes:
        by_class: The number of nodes in each of `CLASSES`.
        free: The free amounts on all nodes, by resource type.
        free_on_used: The free amounts on used nodes.
    """

    def __init__(self, intervals: Intervals) -> None:
        self._intervals = intervals
        self._nodes: dict[str, _PackedNode] = {}
        self.by_class = [Gauge(intervals.series()) for _ in CLASSES]
        self.free: dict[str, Gauge] = {}
        self.free_on_used: dict[str, Gauge] = {}

    def node_came(self, node_id: str, resources: Mapping[str, int], at_ns: int) -> None:
        """Count a new node; one that was removed and comes back may still have allocations."""
        held = self._nodes.get(node_id)
        node = _PackedNode(dict(resources), {} if held is None else held.used)
        self._nodes[node_id] = node
        for name in resources:
            for gauges in (self.free, self.free_on_used):
                if name not in gauges:
                    gauges[name] = Gauge(self._intervals.series())
        self._count(node, at_ns, 1)

    def node_left(self, node_id: str, at_ns: int) -> None:
        """Remove a node from the counts."""
        node = self._nodes[node_id]
        self._count(node, at_ns, -1)
        node.is_there = False
        self._forget_if_done(node_id, node)

    def used(self, node_id: str, resources: Mapping[str, int], at_ns: int, sign: int) -> None:
        """Note that resources of a node come into use (sign 1) or are given back (sign -1)."""
        node = self._nodes.get(node_id)
        if node is None:
            # Recovered allocations are recorded before their node.
            node = self._nodes[node_id] = _PackedNode({}, is_there=False)
        if node.is_there:
            self._count(node, at_ns, -1)
        for name, quantity in resources.items():
            node.used[name] = node.used.get(name, 0) + sign * quantity
        if node.is_there:
            self._count(node, at_ns, 1)
        else:
            self._forget_if_done(node_id, node)

    def _forget_if_done(self, node_id: str, node: _PackedNode) -> None:
        """Forget a removed node without allocations."""
        if not any(node.used.values()):
            del self._nodes[node_id]

    def _count(self, node: _PackedNode, at_ns: int, sign: int) -> None:
        """Count a node in its class, and its free room."""
        use_class = node.use_class()
        self.by_class[use_class].change(at_ns, sign)
        for name in node.capacity:
            free = sign * node.free(name)
            self.free[name].change(at_ns, free)
            if use_class:
                self.free_on_used[name].change(at_ns, free)


@final
class Intervals:
    """The common length of the intervals of all series of one simulation."""

    def __init__(self) -> None:
        self.width_ns = _FIRST_WIDTH_NS
        self._series: list[IntervalSeries] = []

    def series(self) -> IntervalSeries:
        """Return a new series with these intervals."""
        series = IntervalSeries(self)
        self._series.append(series)
        return series

    def reach(self, at_ns: int) -> None:
        """Extend the intervals until they reach a moment."""
        while at_ns > self.width_ns * INTERVALS_MAX:
            for series in self._series:
                series.join_neighbours()
            self.width_ns *= 2

    def borders_ns(self, end_ns: int) -> list[int]:
        """Return the borders of the intervals up to an end, the last of which may be shorter."""
        count = max(-(-end_ns // self.width_ns), 1)
        return [min(number * self.width_ns, end_ns) for number in range(count + 1)]


@final
class IntervalSeries:
    """One amount over time, as its integral over each interval: amount times nanoseconds."""

    __slots__ = ("_intervals", "_level_changes", "_parts")

    def __init__(self, intervals: Intervals) -> None:
        self._intervals = intervals
        self._parts = [0] * (INTERVALS_MAX + 1)
        # Whole intervals are noted by changes at their borders: long and short times cost the same.
        self._level_changes = [0] * (INTERVALS_MAX + 1)

    def add(self, amount: int, start_ns: int, end_ns: int) -> None:
        """Add an amount that was present from one moment to another; times may come in any order."""
        assert 0 <= start_ns <= end_ns, f"from {start_ns} to {end_ns} is not a time"
        if amount == 0 or start_ns == end_ns:
            return
        self._intervals.reach(end_ns)
        width_ns = self._intervals.width_ns
        first, last = start_ns // width_ns, end_ns // width_ns
        if first == last:
            self._parts[first] += amount * (end_ns - start_ns)
            return
        self._parts[first] += amount * ((first + 1) * width_ns - start_ns)
        self._level_changes[first + 1] += amount
        self._level_changes[last] -= amount
        self._parts[last] += amount * (end_ns - last * width_ns)

    def integrals(self) -> list[int]:
        """Return the integral over each interval, `INTERVALS_MAX` of them."""
        level = 0
        sums = []
        for part, change in zip(self._parts, self._level_changes, strict=True):
            level += change
            sums.append(part + level * self._intervals.width_ns)
        return sums[:INTERVALS_MAX]

    def join_neighbours(self) -> None:
        """Merge each two intervals into one; `Intervals.reach` does it for all series."""
        sums = self.integrals()
        joined = [sums[at] + sums[at + 1] for at in range(0, INTERVALS_MAX, 2)]
        self._parts = joined + [0] * (INTERVALS_MAX + 1 - len(joined))
        self._level_changes = [0] * (INTERVALS_MAX + 1)


@final
class Gauge:
    """An amount that changes at moments, written to a series."""

    __slots__ = ("_series", "_since_ns", "value")

    def __init__(self, series: IntervalSeries) -> None:
        self._series = series
        self._since_ns = 0
        self.value = 0

    def change(self, at_ns: int, delta: int) -> None:
        """Add a delta from a moment on; moments must not decrease."""
        self._series.add(self.value, self._since_ns, at_ns)
        self._since_ns = at_ns
        self.value += delta

    def integrals(self, end_ns: int) -> list[int]:
        """Return the integral over each interval; the amount stays constant to the end."""
        self.change(end_ns, 0)
        return self._series.integrals()
