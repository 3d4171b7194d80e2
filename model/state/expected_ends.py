"""When the allocations of a partition are expected to end: what starts are planned by.

An allocation is expected to end when it has run for its walltime. One that runs longer is expected to end a
little later, by steps that grow, each time that it has not: the correction of Tsafrir, Etsion and Feitelson
(2007). One without a walltime never ends in a plan.

Nothing is kept while no queue backfills. Where a queue promises all jobs a start, the promises are kept here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final, NamedTuple, final

from ..applications.life import walltime_of
from ..queues.application_entry import ApplicationEntry
from ..queues.queue import Queue
from ..queues.sleep import Sleep
from ..resources.resource import Resource
from ..values.allocation import Allocation, Ask, Refusal

_MINUTE_NS: Final = 60 * 1_000_000_000
_CORRECTIONS_NS: Final = tuple(
    minutes * _MINUTE_NS for minutes in (1, 5, 15, 30, 60, 120, 300, 600, 1200, 3000, 6000)
)
"""How much longer than its walltime an allocation is expected to run, step by step."""


class RunningWork(NamedTuple):
    """An allocation that runs: what it gives back when it ends, and to whom."""

    allocation_key: str
    resource: Resource
    node_id: str
    levels: tuple[str, ...]
    """The paths of its queue and of those above."""
    user: str
    group: str | None
    """The group that it counts against."""
    begun_ns: int
    walltime_ns: int | None


class KeptPromise(NamedTuple):
    """When a job is to start, and on which nodes, one for each of its sizes."""

    start_ns: int
    node_ids: tuple[str, ...]
    serial: int
    """It rises from promise to promise, in the order in which jobs were promised a start first."""


class KeptPromises(NamedTuple):
    """The promises below one queue, as the last walk has left them."""

    by_key: Mapping[str, KeptPromise]
    """By the key of the job's first ask."""
    stamp: tuple[int, ...]
    """The counts of what gives room sooner than was planned."""


class PassCount(NamedTuple):
    """The later jobs that have passed the promise of a waiting job, for the sake of shares."""

    keys: tuple[str, ...]
    since_ns: int | None
    """When the first of them did."""

    def passed_by(self, keys: Iterable[str], now_ns: int) -> PassCount:
        """Return the count with those of these jobs that have not passed it before."""
        more = tuple(key for key in keys if key not in self.keys)
        if not more:
            return self
        return PassCount(self.keys + more, now_ns if self.since_ns is None else self.since_ns)


NEVER_PASSED: Final = PassCount((), None)


@final
class ExpectedEnds:
    """The allocations that run in a partition, with their walltimes. Owned by the partition."""

    def __init__(self, *, is_on: bool) -> None:
        self.is_on = is_on
        """Some queue backfills."""
        self.rests: dict[str, Sleep] = {}
        """Queues with backfilling, by path, that were walked without result."""
        self.kept: dict[str, KeptPromises] = {}
        """Of the queues that promise all jobs a start, by path."""
        self.promised = 0
        """How many jobs have been promised a start where all are."""
        self.passed: dict[str, dict[str, PassCount]] = {}
        """By the path of a queue that promises starts: the jobs that had a promise and wait still, by key."""
        self.unplanned = 0
        """Counts what gives room at another time than was planned: work that ends early or late, a reload."""
        self.denied: dict[str, Mapping[str, Refusal]] = {}
        """By the path of such a queue, what the RM's predicates refused in its last walk without result: by
        the key of the ask, or of the first member of a gang."""
        self._running: dict[str, RunningWork] = {}
        self._is_stale = True

    def switch(self, *, backfilling: Collection[str], keeping: Collection[str]) -> None:
        """Begin or cease to keep what runs: the configuration is another one.

        Args:
            backfilling: The paths of the queues that promise starts.
            keeping: The paths of those that promise all jobs a start.
        """
        self.is_on = bool(backfilling)
        self.rests.clear()
        self.kept = {path: kept for path, kept in self.kept.items() if path in keeping}
        self.passed = {path: counts for path, counts in self.passed.items() if path in backfilling}
        self.unplanned += 1
        self.denied.clear()
        self.forget()

    def forget(self) -> None:
        """Find all that runs anew before it is used next."""
        self._running.clear()
        self._is_stale = True

    def forget_promises(self, keys: Collection[str]) -> None:
        """Forget the promises of jobs: they are promised a start anew, as jobs that come now."""
        for path, kept in self.kept.items():
            by_key = {key: promise for key, promise in kept.by_key.items() if key not in keys}
            self.kept[path] = kept._replace(by_key=by_key)
        for counts in self.passed.values():
            for key in keys:
                counts.pop(key, None)

    def add(self, entry: ApplicationEntry, allocation: Allocation, group: str | None) -> None:
        """Note an allocation that runs from now on."""
        if not self._is_stale:
            self._running[allocation.ask.allocation_key] = _work(entry, allocation, group)

    def remove(self, ask: Ask, now_ns: int) -> None:
        """Note that an allocation has ended; after a placeholder another one may run in its place."""
        work = self._running.pop(ask.allocation_key, None)
        if work is None or work.walltime_ns is None or work.begun_ns + work.walltime_ns != now_ns:
            self.unplanned += 1
        if ask.placeholder:
            self.forget()

    def running(
        self, held: Callable[[], Iterator[tuple[ApplicationEntry, Allocation, str | None]]]
    ) -> tuple[RunningWork, ...]:
        """Return all that runs; `held` walks over it if it has to be found anew."""
        if self._is_stale:
            works = [_work(*row) for row in held()]
            self._running = {work.allocation_key: work for work in works}
            self._is_stale = False
        return tuple(self._running.values())

    def validate(self, keys: Collection[str]) -> None:
        """Assert that what is kept are the allocations that run, given by their keys."""
        if not self._is_stale:
            assert self._running.keys() == {*keys}, (
                f"run or are expected to end, and not both: {sorted(self._running.keys() ^ {*keys})}"
            )


def _work(entry: ApplicationEntry, allocation: Allocation, group: str | None) -> RunningWork:
    return RunningWork(
        allocation.ask.allocation_key,
        allocation.ask.resource,
        allocation.node_id,
        tuple(level.path for level in entry.queue.above),
        entry.user.name,
        group,
        allocation.bound_at_ns,
        assumed_walltime_ns(allocation.ask, entry.tags, entry.queue),
    )


def assumed_walltime_ns(ask: Ask, tags: Mapping[str, str], leaf: Queue) -> int | None:
    """Return the walltime of an ask: its own, that of its application's tags, or what its queue assumes."""
    own = walltime_of(ask.tags)
    if own is None:
        own = walltime_of(tags)
    return leaf.settings.runtime.assumed_ns if own is None else own


def corrected_end_ns(begun_ns: int, walltime_ns: int | None, now_ns: int) -> int | None:
    """Return when work is expected to end that has not ended yet: a time after now.

    Args:
        begun_ns: When it has begun.
        walltime_ns: Its walltime; without one it never ends.
        now_ns: The time.
    """
    if walltime_ns is None:
        return None
    end_ns = begun_ns + walltime_ns
    if end_ns > now_ns:
        return end_ns
    for more_ns in _CORRECTIONS_NS:
        if end_ns + more_ns > now_ns:
            return end_ns + more_ns
    last_ns = _CORRECTIONS_NS[-1]
    return end_ns + ((now_ns - end_ns) // last_ns + 1) * last_ns
