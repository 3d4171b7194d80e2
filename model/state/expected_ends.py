"""When the allocations of a partition are expected to end: what starts are planned by.

An allocation is expected to end when it has run for its walltime. One that runs longer is expected to end a
little later, by steps that grow, each time that it has not: the correction of Tsafrir, Etsion and Feitelson
(2007). One without a walltime never ends in a plan.

A leaf may name a policy that says how long its work runs (`RunTimes`).

Nothing is kept while no queue backfills. Where a queue promises all jobs a start, the promises are kept here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from heapq import heapify, heappop, heappush
from typing import Final, NamedTuple, TypeAlias, final

from ..applications.life import view_of_ask, walltime_of
from ..policies.policies import Policies, PolicyPoint
from ..queues.application_entry import ApplicationEntry
from ..queues.child_orders import view_of
from ..queues.queue import Queue
from ..queues.sleep import Sleep
from ..resources.resource import Resource
from ..values.allocation import Allocation, Ask, Refusal

HeldRows: TypeAlias = "Callable[[], Iterator[tuple[ApplicationEntry, Allocation, str | None]]]"
"""Walks over the allocations that run, each with the group that it counts against."""
_MINUTE_NS: Final = 60 * 1_000_000_000
_CORRECTIONS_NS: Final = tuple(
    minutes * _MINUTE_NS for minutes in (1, 5, 15, 30, 60, 120, 300, 600, 1200, 3000, 6000)
)
"""How much longer than its walltime an allocation is expected to run, step by step."""
_COMPACT_MIN: Final = 1024
"""With fewer asks it is not looked up which of them still rest."""


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
class RunTimes:
    """How long work runs in plans: for its walltime, or as the policy of its leaf expects.

    Only walks and placements call a policy, once for each ask, and again after `ask_anew`. Readers get the
    last answer: a question of theirs would be missing in a recording.
    """

    def __init__(self, policies: Policies) -> None:
        self.is_used = policies.decide(PolicyPoint.RUN_TIME)
        """Whether a leaf can name a policy."""
        self._policies = policies
        self._answers: dict[str, int | None] = {}
        """By the keys of asks that wait or run; `None` for the walltime."""
        self._current: set[str] = set()
        """The keys of the answers that are up to date."""

    def of(self, ask: Ask, tags: Mapping[str, str], leaf: Queue) -> int | None:
        """Return how long an ask runs in a plan, in nanoseconds; `None` for ever.

        Args:
            ask: The ask.
            tags: The tags of its application.
            leaf: Its leaf.
        """
        if leaf.settings.runtime.expected_word:
            expected_ns = self._answers.get(ask.allocation_key)
            if expected_ns is not None:
                return expected_ns
        return assumed_walltime_ns(ask, tags, leaf)

    def find(self, entry: ApplicationEntry, ask: Ask) -> None:
        """Ask the policy of a leaf about an ask, unless its answer is up to date."""
        word, key = entry.queue.settings.runtime.expected_word, ask.allocation_key
        if word and key not in self._current:
            policy = self._policies.named(word)
            self._answers[key] = policy.expected_run_time_ns(view_of_ask(ask), view_of(entry))
            self._current.add(key)

    def grows(self, entry: ApplicationEntry, ask: Ask) -> bool:
        """Ask again about an ask whose answer is out of date; return whether it is expected to run longer."""
        if ask.allocation_key not in self._answers:
            return False
        before_ns = self.of(ask, entry.tags, entry.queue)
        self.find(entry, ask)
        after_ns = self.of(ask, entry.tags, entry.queue)
        return before_ns is not None and (after_ns is None or after_ns > before_ns)

    def ask_anew(self, *keys: str) -> None:
        """Forget the answers about some asks, without keys those about all, so that they are found again."""
        if keys:
            self._current.difference_update(keys)
        else:
            self._current.clear()

    def forget(self, key: str) -> None:
        """Forget the answer about an ask that is gone."""
        self._current.discard(key)
        self._answers.pop(key, None)

    def forget_all(self) -> None:
        """Forget all answers: no queue backfills."""
        self._current.clear()
        self._answers.clear()

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of the asks with answers."""
        return tuple(self._answers)


class WalkedQueue(NamedTuple):
    """A queue with backfilling that was walked without result."""

    sleep: Sleep
    pending: Resource
    """What waited below it: the same object until an ask comes or goes."""
    by_ends: bool
    """The end of an application may help, although it had nothing that gives a node room."""


class Delays(NamedTuple):
    """The asks that have room and would delay the one promise below a queue."""

    beside: tuple[object, ...]
    """The promise, and the counts of what may let one of them start beside it."""
    from_ns: dict[str, dict[Resource, int]]
    """By the path of a leaf, and the size of an ask: the shortest walltime of those that were refused."""


@final
class PassedBy:
    """The asks of one size in one leaf that rest while enough others have promises, by their age."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, str]] = []
        """When an ask was created, and its key; some no longer rest."""
        self._compact_at = _COMPACT_MIN

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def bound(self) -> tuple[int, str]:
        """The first that `first` may return."""
        return self._heap[0]

    def add(self, ask: Ask, rests: Callable[[str], bool]) -> None:
        """Add the oldest such ask of an application; `rests` returns whether that of a key still does."""
        heappush(self._heap, (ask.created_at_ns, ask.allocation_key))
        if len(self._heap) > self._compact_at:
            self._heap = [each for each in {*self._heap} if rests(each[1])]
            heapify(self._heap)
            self._compact_at = max(_COMPACT_MIN, 2 * len(self._heap))

    def first(self, rests: Callable[[str], bool], tried: Callable[[str], bool]) -> tuple[int, str] | None:
        """Return the oldest of those that rest and were not tried, `None` without one."""
        heap, aside = self._heap, []
        while heap:
            key = heap[0][1]
            if rests(key):
                if not tried(key):
                    break
                aside.append(heap[0])
            heappop(heap)
        found = heap[0] if heap else None
        for each in aside:
            heappush(heap, each)
        return found


@final
class ExpectedEnds:
    """The allocations that run in a partition, with their walltimes. Owned by the partition."""

    def __init__(self, policies: Policies, *, is_on: bool) -> None:
        self.is_on = is_on
        """Some queue backfills."""
        self.run_times = RunTimes(policies)
        self.rests: dict[str, WalkedQueue] = {}
        """Queues with backfilling, by path, that were walked without result."""
        self.kept: dict[str, KeptPromises] = {}
        """Of the queues that promise all jobs a start, by path."""
        self.plans: dict[str, object] = {}
        """The plan of the last walk, by the path of a queue that promises all jobs a start, while the next
        walk may go on with it (`licorne.model.planning.kept_plan`)."""
        self.collected: dict[str, object] = {}
        """The jobs that the last walk found, by the path of a leaf below such a queue."""
        self.promised = 0
        """How many jobs have been promised a start where all are."""
        self.passed: dict[str, dict[str, PassCount]] = {}
        """By the path of a queue that promises starts: the jobs that had a promise and wait still, by key."""
        self.passed_by: dict[str, dict[tuple[str, Resource], PassedBy]] = {}
        """By the path of a queue that promises some jobs starts, and by the path of a leaf and a size."""
        self.delays: dict[str, Delays] = {}
        """By the path of a queue that promises one job a start: what would delay it."""
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
        self.passed_by.clear()
        self.delays.clear()
        self.unplanned += 1
        self.denied.clear()
        self.run_times.ask_anew()
        if not self.is_on:
            self.run_times.forget_all()
        self.forget()

    def forget(self) -> None:
        """Find all that runs anew before it is used next."""
        self._running.clear()
        self._is_stale = True
        self.plans.clear()
        self.collected.clear()

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
        self.run_times.find(entry, allocation.ask)
        if not self._is_stale:
            self._running[allocation.ask.allocation_key] = self._work(entry, allocation, group)

    def remove(self, ask: Ask, now_ns: int) -> None:
        """Note that an allocation has ended; after a placeholder another one may run in its place."""
        work = self._running.pop(ask.allocation_key, None)
        self.run_times.forget(ask.allocation_key)
        if work is None or work.walltime_ns is None or work.begun_ns + work.walltime_ns != now_ns:
            self.unplanned += 1
        if ask.placeholder:
            self.forget()

    def running(self, held: HeldRows) -> tuple[RunningWork, ...]:
        """Return all that runs; `held` walks over it if it has to be found anew."""
        if not self._is_stale:
            return tuple(self._running.values())
        works = tuple([self._work(*row) for row in held()])
        if not self.run_times.is_used:  # Otherwise it may be a reader, which does not call policies.
            self._keep(works)
        return works

    def find_run_times(self, held: HeldRows, waiting: Callable[[], Iterator[ApplicationEntry]]) -> None:
        """Call the policies about what runs, where that has to be found anew, and about outdated answers.

        A job that is expected to run longer than before is promised a start anew.

        Args:
            held: Walks over all that runs.
            waiting: Walks over the applications with waiting asks.
        """
        if not self._is_stale:
            return
        rows = [*held()]
        for entry, allocation, _ in rows:
            self.run_times.find(entry, allocation.ask)
        self._keep([self._work(*row) for row in rows])
        for entry in waiting():
            asks = [record.ask for record in entry.application.asks.waiting()]
            longer = {ask.allocation_key for ask in asks if self.run_times.grows(entry, ask)}
            if longer and entry.facts.gang_waits:
                longer = {ask.allocation_key for ask in asks}
            self.forget_promises(longer)

    def _keep(self, works: Iterable[RunningWork]) -> None:
        self._running = {work.allocation_key: work for work in works}
        self._is_stale = False

    def _work(self, entry: ApplicationEntry, allocation: Allocation, group: str | None) -> RunningWork:
        return RunningWork(
            allocation.ask.allocation_key,
            allocation.ask.resource,
            allocation.node_id,
            tuple(level.path for level in entry.queue.above),
            entry.user.name,
            group,
            allocation.bound_at_ns,
            self.run_times.of(allocation.ask, entry.tags, entry.queue),
        )

    def validate(self, keys: Collection[str]) -> None:
        """Assert that what is kept are the allocations that run, given by their keys."""
        if not self._is_stale:
            assert self._running.keys() == {*keys}, (
                f"run or are expected to end, and not both: {sorted(self._running.keys() ^ {*keys})}"
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
