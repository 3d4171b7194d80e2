"""The counters of a partition: placements and their waits, the times of cycles, and the newest ends."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import reduce
from typing import Final, Generic, NamedTuple, TypeVar, final

from ..applications.effects import ApplicationState
from ..marks import Marks
from ..values.allocation import Ask
from ..values.messages import User

T = TypeVar("T")
BOUNDS_NS: Final = tuple(10**power for power in range(5, 13))
"""The upper bounds of the buckets: 0.1 ms, 1 ms, ... to 1,000 s; a last bucket has what took longer."""
WAIT_BOUNDS_NS: Final = tuple(
    seconds * 10**9 for seconds in (1, 10, 60, 600, 3_600, 6 * 3_600, 86_400, 7 * 86_400)
)
"""Those of the waits in a queue: 1 s to 7 days."""
_ALL_BOUNDS_NS: Final = tuple(sorted({*BOUNDS_NS, *WAIT_BOUNDS_NS}))


class HistogramFigures(NamedTuple):
    """The counts of a histogram at one moment."""

    counts: Sequence[int]
    """How many durations fell into each bucket, and at the end how many into none."""
    total_ns: int

    @property
    def durations(self) -> int:
        """How many durations there were."""
        return sum(self.counts)

    def plus(self, other: HistogramFigures) -> HistogramFigures:
        """Return the sum with the figures of another histogram of the same buckets."""
        counts = tuple(map(sum, zip(self.counts, other.counts, strict=True)))
        return HistogramFigures(counts, self.total_ns + other.total_ns)

    def coarser(self, bounds_ns: Sequence[int]) -> HistogramFigures:
        """Return figures with all bounds in the buckets of some of them."""
        counts = [0] * (len(bounds_ns) + 1)
        for bound_ns, count in zip(_ALL_BOUNDS_NS, self.counts, strict=False):
            counts[bisect_left(bounds_ns, bound_ns)] += count
        counts[-1] += self.counts[-1]
        return HistogramFigures(tuple(counts), self.total_ns)

    def since(self, before: HistogramFigures | None) -> HistogramFigures:
        """Return what was counted after earlier figures; all, if the histogram was made anew since."""
        if before is None or before.durations > self.durations:
            return self
        counts = tuple(one - other for one, other in zip(self.counts, before.counts, strict=True))
        return HistogramFigures(counts, self.total_ns - before.total_ns)


@final
class Histogram:
    """Counts durations by the bucket that each falls into."""

    __slots__ = ("_bounds_ns", "counts", "total_ns")

    def __init__(self, bounds_ns: tuple[int, ...] = BOUNDS_NS) -> None:
        self._bounds_ns = bounds_ns
        self.counts = [0] * (len(bounds_ns) + 1)
        self.total_ns = 0

    def add(self, duration_ns: int) -> None:
        """Count a duration; one below zero, as clocks that differ give it, counts as none."""
        if duration_ns < 0:  # noqa: PLR1730 - `max` takes longer, and each cycle comes here
            duration_ns = 0
        self.counts[bisect_left(self._bounds_ns, duration_ns)] += 1
        self.total_ns += duration_ns

    def figures(self) -> HistogramFigures:
        """Return what was counted."""
        return HistogramFigures(tuple(self.counts), self.total_ns)


def merged(histograms: Iterable[HistogramFigures]) -> HistogramFigures:
    """Return the sum of histograms; of none, an empty one."""
    return reduce(HistogramFigures.plus, histograms, Histogram().figures())


@final
class PlacedCounts:
    """The allocations of a partition, and how many of them are placeholders."""

    MARKS: Final = Marks(writes=("count", "count_existing", "uncount", "exchange", "forget_queue"))

    def __init__(self) -> None:
        self.allocations = 0
        self.placeholders = 0
        self._waits_in: defaultdict[str, Histogram] = defaultdict(_new_waits)
        """From the creation of an ask to its placement, by leaf; until the leaf is removed."""
        self._waits_elsewhere = Histogram().figures()
        """The same of leaves that were removed."""
        self.placed_in: dict[str, int] = {}
        """How many allocations have come to a leaf, by its path; until the leaf is removed."""
        self.ended_in: dict[str, int] = {}
        """How many have ended there."""

    def count(self, ask: Ask, queue_path: str, waited_ns: int | None = None) -> None:
        """Count an ask that was placed in a leaf; one that the RM has placed did not wait."""
        self.allocations += 1
        self.placeholders += ask.placeholder
        if waited_ns is not None:
            self._waits_in[queue_path].add(waited_ns)
        self.placed_in[queue_path] = self.placed_in.get(queue_path, 0) + 1

    def count_existing(self, number: int, queue_path: str, *, placeholders: int) -> None:
        """Count allocations of a leaf that were recovered: nothing waited for them."""
        self.allocations += number
        self.placeholders += placeholders
        self.placed_in[queue_path] = self.placed_in.get(queue_path, 0) + number

    def uncount(self, ask: Ask, queue_path: str) -> None:
        """Count an ask no longer whose allocation has ended."""
        self.allocations -= 1
        self.placeholders -= ask.placeholder
        self.ended_in[queue_path] = self.ended_in.get(queue_path, 0) + 1

    def exchange(self) -> None:
        """Count a placeholder as what has taken its place."""
        self.placeholders -= 1

    def forget_queue(self, queue_path: str) -> None:
        """Forget what was counted for a leaf that is removed."""
        self.placed_in.pop(queue_path, None)
        self.ended_in.pop(queue_path, None)
        waits = self._waits_in.pop(queue_path, None)
        if waits is not None:
            self._waits_elsewhere = self._waits_elsewhere.plus(waits.figures().coarser(BOUNDS_NS))

    def waits(self) -> HistogramFigures:
        """Return how long asks have waited from their creation to their placement."""
        here = [waits.figures().coarser(BOUNDS_NS) for waits in self._waits_in.values()]
        return merged([self._waits_elsewhere, *here])

    def waits_in(self) -> dict[str, HistogramFigures]:
        """Return the same by leaf, in longer buckets, without leaves that were removed."""
        return {path: waits.figures().coarser(WAIT_BOUNDS_NS) for path, waits in self._waits_in.items()}


def _new_waits() -> Histogram:
    return Histogram(_ALL_BOUNDS_NS)


@final
class RecentLog(Generic[T]):
    """The newest entries of a kind, and how many there have been: a reader asks for those since a number."""

    def __init__(self, kept_max: int) -> None:
        self._entries: deque[T] = deque(maxlen=kept_max)
        self.added = 0
        """How many were added, forgotten ones included."""

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[T]:
        """Walk the entries, the oldest first."""
        return iter(tuple(self._entries))

    def add(self, entry: T) -> None:
        """Add an entry; at the bound the oldest is forgotten."""
        self._entries.append(entry)
        self.added += 1

    def since(self, added: int) -> tuple[T, ...]:
        """Return those that were added after a number of them."""
        return tuple(self._entries)[max(0, len(self._entries) - (self.added - added)) :]


ENDINGS_MAX: Final = 4_096
"""How many applications that ended are kept for a history."""


class EndedApplication(NamedTuple):
    """An application that has ended, was rejected or removed, as of its end."""

    application_id: str
    user: User
    tags: Mapping[str, str]
    queue_path: str
    """Empty for one that was rejected."""
    state: str
    submitted_at_ns: int
    time_ns: int
    reason: str


@final
class Endings:
    """The applications of a partition that have ended."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, ApplicationState]] = Counter()
        """How many there were, by their queue and the state that they ended in."""
        self.recent: RecentLog[EndedApplication] = RecentLog(ENDINGS_MAX)


@final
class Setbacks:
    """The counts of what makes asks wait longer."""

    def __init__(self) -> None:
        self.backoffs: Counter[str] = Counter()
        """How often an application backed off, by its leaf."""
        self.promises_moved: Counter[str] = Counter()
        """How many promised starts have moved back, by the queue that backfills."""


DETAILED_EVERY: Final = 32
"""The parts of one in this many cycles are timed: to time them takes as long as a tenth of a short cycle."""


class TimedPart(Enum):
    """The timed parts."""

    __hash__ = object.__hash__  # That of `Enum` is written in Python, and each cycle asks for it.

    CYCLE = "the cycle"
    RESERVED = "asks with a reservation"
    PLACEHOLDER = "members that replace placeholders"
    REGULAR = "everything else"
    QUEUE_ORDER = "finding the first leaf"
    APPLICATION_ORDER = "finding the first application of a leaf"
    NODE_SEARCH = "finding a node for an ask, and placing it there"
    PREEMPTION = "looking for victims"


@final
class CycleTimes:
    """The histograms of the cycles of one partition.

    Args:
        stopwatch_ns: Returns nanoseconds since any moment; differences decide nothing.
    """

    def __init__(self, stopwatch_ns: Callable[[], int]) -> None:
        self.stopwatch_ns = stopwatch_ns
        self.histograms: Final = {part: Histogram() for part in TimedPart}
        self._until_detailed = 1
        self.detailed = False
        """Whether the parts of the cycle that runs are timed."""

    def begin(self) -> int:
        """Begin a cycle; return the time."""
        self._until_detailed -= 1
        self.detailed = not self._until_detailed
        if self.detailed:
            self._until_detailed = DETAILED_EVERY
        return self.stopwatch_ns()

    def add(self, part: TimedPart, began_ns: int) -> None:
        """Count what began then and ends now."""
        self.histograms[part].add(self.stopwatch_ns() - began_ns)

    def figures(self) -> Mapping[TimedPart, HistogramFigures]:
        """Return what was counted."""
        return {part: histogram.figures() for part, histogram in self.histograms.items()}
