"""Who may pass the promise of a start that was made to another job, and how often: the bound on starvation.

A later job, which was promised a start later or not at all, *passes* a promise if it is started or planned
before it for its share, not by its priority, and so delays it. After `backfill.passes` such jobs, or one
half-life after the first of them, a promise *stands*: its job is tried and planned before all later jobs
except those that go first by their priority, whatever the shares of queues, users and applications are. The
partition keeps the counts (`licorne.model.state.expected_ends`), as long as the job waits.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, final

from ..queues.application_entry import ApplicationEntry
from ..queues.queue import Queue, exposed_priority
from ..queues.tree import QueueTree
from ..state.expected_ends import NEVER_PASSED, PassCount
from ..state.partition_state import PartitionState
from ..values.allocation import Ask
from .plan import JobInPlan, NoPlan, Promise, StartPlan
from .planned_jobs import JobOwner, backfilling_queue, bare_plan, gang_members, job_of


def passes_left(state: PartitionState, queue: Queue, key: str, count: PassCount) -> int:
    """Return how many more jobs may pass the promise of a job; 0 for one that stands."""
    settings, ends_ns = queue.settings.backfill, _stands_from_ns(state, key, count)
    if settings is None or (ends_ns is not None and ends_ns <= state.now_ns()):
        return 0
    return max(0, settings.passes - len(count.keys))


def next_standing_ns(state: PartitionState, queue: Queue) -> int | None:
    """Return when time alone makes the promise of a job below a queue stand, `None` if it makes none."""
    counts, now_ns = state.ends.passed.get(queue.path, {}), state.now_ns()
    moments = [_stands_from_ns(state, key, count) for key, count in counts.items()]
    return min((at_ns for at_ns in moments if at_ns is not None and at_ns > now_ns), default=None)


def _stands_from_ns(state: PartitionState, key: str, count: PassCount) -> int | None:
    """Return one half-life after a promise was first passed, `None` if it never was, or does not exist."""
    if count.since_ns is None:
        return None
    entry = state.entries.get(state.keys.owner_of(key))
    half_life_ns = None if entry is None else entry.queue.settings.fair_half_life_ns
    return None if half_life_ns is None else count.since_ns + half_life_ns


def outranks(tree: QueueTree, one: JobInPlan, other: JobInPlan) -> bool:
    """Return whether a job goes before another one by its priority, if the queue around both sorts by it."""
    if one.application_id == other.application_id:
        return one.priority > other.priority
    shared = next(path for path in one.levels if path in other.levels)
    queue = tree.find(shared)
    if queue is None or not queue.settings.priority_sorting:
        return False
    return _priority_in(tree, one, shared) > _priority_in(tree, other, shared)


def _priority_in(tree: QueueTree, job: JobInPlan, path: str) -> int:
    """Return the priority of a job as a queue above it sees it, after the offsets and fences below."""
    priority = job.priority
    for below in job.levels[: job.levels.index(path)]:
        queue = tree.find(below)
        if queue is not None:
            priority = exposed_priority(queue.settings, priority)
    return priority


_NEW: Final = 1 << 62
"""The place of a job without a promise behind those that have one."""


@final
class PassOrder:
    """The order in which jobs are planned, so that no promise is passed more often than it may be.

    Args:
        state: The partition.
        queue: The queue that promises starts.
        serials: The places of jobs in the order in which they were promised a start, by key.
        counts: The jobs that have passed their promises.
    """

    def __init__(
        self,
        state: PartitionState,
        queue: Queue,
        serials: Mapping[str, int],
        counts: Mapping[str, PassCount],
    ) -> None:
        self._state = state
        self._queue = queue
        self._serials = serials
        self._counts = counts
        self.is_mixed = False
        """Later comers may be before jobs with promises, by their place among all."""

    def ordered(self, jobs: Sequence[JobInPlan]) -> list[JobInPlan]:
        """Return jobs in their order, those with promises before later comers who may not pass them.

        Args:
            jobs: The jobs, in the order of their queues, users and applications.
        """
        ordered: list[JobInPlan] = []
        serials: list[int] = []  # Of each of them.
        known: list[int] = []  # Of those that have a promise, sorted.
        last = -1
        for job in jobs:
            serial = self._serials.get(job.key, _NEW)
            place = len(ordered)
            if serial < last:
                self.is_mixed = True
                if len(ordered) > (before := bisect_right(known, serial)):
                    place = self._place(job, serial, ordered, serials, len(ordered) - before)
            ordered.insert(place, job)
            serials.insert(place, serial)
            if serial != _NEW:
                insort(known, serial)
            last = max(last, serial)
        return ordered

    def _place(
        self, job: JobInPlan, own: int, ordered: Sequence[JobInPlan], serials: Sequence[int], later: int
    ) -> int:
        """Return the place of a job, of which so many later comers are among those before it."""
        count = self._counts.get(job.key, NEVER_PASSED)
        left = passes_left(self._state, self._queue, job.key, count)
        if later <= left:
            return len(ordered)
        for index, serial in enumerate(serials):
            if serial <= own or outranks(self._state.tree, ordered[index], job):
                continue
            if left == 0:
                return index
            left -= ordered[index].key not in count.keys
        return len(ordered)

    def passing(self, job: JobInPlan, promises: Mapping[str, Promise]) -> list[Promise]:
        """Return those of the promises of others, by their keys, that pass that of a job for their shares."""
        serials, own = self._serials, self._serials[job.key]
        later = [promise for key, promise in promises.items() if serials.get(key, _NEW) > own]
        return [promise for promise in later if not outranks(self._state.tree, promise.job, job)]


class PromisedJob(NamedTuple):
    """A job that waits and has been promised a start, by this walk or one before."""

    entry: ApplicationEntry
    asks: tuple[Ask, ...]

    def job(self, state: PartitionState) -> JobInPlan:
        """Return the job as a plan sees it now."""
        return job_of(state, JobOwner.of(self.entry), *self.asks)


def promised_jobs(state: PartitionState, queue: Queue, keys: Iterable[str]) -> dict[str, PromisedJob]:
    """Return those of some jobs with promises below a queue that wait still, by key."""
    found = ((key, _promised_job(state, queue, key)) for key in keys)
    return {key: job for key, job in found if job is not None}


def _promised_job(state: PartitionState, queue: Queue, key: str) -> PromisedJob | None:
    entry = state.entries.get(state.keys.owner_of(key))
    record = None if entry is None else entry.application.asks.record(key)
    if entry is None or record is None or record.placed or backfilling_queue(entry.queue) is not queue:
        return None
    asks = gang_members(entry) if entry.facts.gang_waits else (record.ask,)
    return PromisedJob(entry, asks) if asks and asks[0].allocation_key == key else None


@final
class PassWatch:
    """The state of one walk that counts which promises a start passes: those of walks before.

    Args:
        state: The partition, before anything is placed by the walk.
        queue: The queue.
        jobs: The jobs with promises.
    """

    def __init__(self, state: PartitionState, queue: Queue, jobs: Mapping[str, PromisedJob]) -> None:
        self._state = state
        self._queue = queue
        self._jobs = jobs
        self._plan = bare_plan(state)
        self._before = {key: promised.job(state) for key, promised in jobs.items()}

    def note_start(self, started: JobInPlan) -> None:
        """Count the promises that a job delays, which has just been placed."""
        state = self._state
        others = {key: job for key, job in self._before.items() if key != started.key}
        before = _starts(self._plan, others)
        after = _starts(bare_plan(state), {key: self._jobs[key].job(state) for key in others})
        counts = state.ends.passed[self._queue.path]
        for key, job in self._before.items():
            if key == started.key:
                break  # Those behind it were promised a start later than it was.
            was_ns, is_ns = before[key], after[key]
            delayed = was_ns is not None and (is_ns is None or is_ns > was_ns)
            if delayed and not outranks(state.tree, started, job):
                counts[key] = counts[key].passed_by((started.key,), state.now_ns())


def _starts(plan: StartPlan, jobs: Mapping[str, JobInPlan]) -> dict[str, int | None]:
    """Return when each job can start if those before it start as soon as they can; `None` for never."""
    plan = plan.copy()
    starts: dict[str, int | None] = {}
    for key, job in jobs.items():
        found = plan.earliest(job)
        if isinstance(found, NoPlan):
            starts[key] = None
        else:
            plan.take(found)
            starts[key] = found.start_ns
    return starts
