"""The figures of a simulation, as strict models: they are written as JSON and read again to compare.

Times are whole nanoseconds of virtual time; shares are thousandths. A list with a value for each interval
begins at time 0; its last interval may be shorter than the others. Resource amounts are in the units of the
scheduler interface: thousandths of a core for `vcore`, bytes for `memory`, numbers for everything else.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from .interval_series import INTERVALS_MAX
from .node_packing import CLASSES

KIND: Final = "licorne simulation figures"
FORMAT: Final = 1

_SECOND: Final = 10**9
WAIT_BOUNDS_NS: Final = tuple(
    seconds * _SECOND for seconds in (0, 1, 10, 60, 600, 3_600, 21_600, 86_400, 604_800)
)
"""The longest wait of each class of the histogram; the last class has no bound."""

_Amounts = dict[str, int]
_Series = Annotated[tuple[int, ...], Field(min_length=1, max_length=INTERVALS_MAX)]
_Gaps = Annotated[tuple[int | None, ...], Field(min_length=1, max_length=INTERVALS_MAX)]
_Count = Annotated[int, Field(ge=0)]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class CountFigures(_Strict):
    """What became of tasks."""

    submitted: _Count
    placed: _Count
    waiting: _Count
    running: _Count
    completed: _Count
    rejected: _Count
    withdrawn: _Count
    preempted: _Count


class WaitFigures(_Strict):
    """How long tasks waited for their first node, by nearest rank; `classes` counts by `WAIT_BOUNDS_NS`."""

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
    """The bounded slowdown of what has completed, in thousandths, by nearest rank."""

    count: _Count
    mean: _Count
    p50: _Count
    p90: _Count
    max: _Count


class UserFigures(_Strict):
    """What became of the work of one user, and how long it waited."""

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
    """`None` also in files of before 0.1."""


class NodeFigures(_Strict):
    """How nodes are packed.

    `by_class` is the share of the nodes in each of `classes`. `fragmentation` is by resource type the
    share of the free amount that is on nodes which hold something, `null` where nothing is free.
    """

    classes: Annotated[tuple[str, ...], Field(min_length=len(CLASSES), max_length=len(CLASSES))]
    by_class: Annotated[tuple[_Series, ...], Field(min_length=len(CLASSES), max_length=len(CLASSES))]
    fragmentation: dict[str, _Gaps]


class PreemptionCount(_Strict):
    """How often work of one queue was preempted for one queue, and for what reason."""

    queue: str
    for_queue: str
    reason: str
    count: _Count


class PreemptionListed(_Strict):
    """One preemption: whose allocation left its node, for which ask, and why.

    `for_ask` and what follows is empty where it was for no ask, or that is not known any more.
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
    """How even the decayed use of the queues below one parent is at the end of each interval, by weight."""

    parent: str
    half_life_ns: Annotated[int, Field(ge=1)]
    index: _Gaps
    index_mean: Annotated[int, Field(ge=0, le=1000)] | None


class RunFigures(_Strict):
    """All figures of one simulation; `queues` are sorted by name, with those that are above others."""

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
    """From the first ask to the last completion; `None` where nothing completed."""
    users: tuple[UserFigures, ...] = ()
    """Sorted by name; those of files of before 0.1 are not known."""
    decayed_fairness: tuple[DecayedFairness, ...] = ()
    """Of each parent with a half-life, sorted by path; not written where there is none."""

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
        """Return the mean of a series over the whole time; of a simulation of no time, its one value."""
        if self.end_ns == 0:
            return values[0]
        total = sum(values) * self.interval_ns
        # The last interval may be shorter.
        total -= values[-1] * (len(values) * self.interval_ns - self.end_ns)
        return total // self.end_ns

    def mean_use_permille(self, resource: str) -> int | None:
        """Return the mean share of the cluster that is in use, `None` of what it does not have."""
        capacity = self.mean_of(self.cluster_capacity.get(resource, (0,) * len(self.fairness)))
        used = self.mean_of(self.total.used.get(resource, (0,) * len(self.fairness)))
        return 1000 * used // capacity if capacity > 0 else None
