"""The plan of all jobs below a queue that promises each a start when it comes: conservative backfilling.

A promise is kept: a later job starts no sooner than leaves it unchanged. It moves in three cases alone.

* *Room comes sooner than planned*: work ends before its walltime, a node comes, a job is withdrawn or planned
  elsewhere. Then each job in order is taken out of the plan and put in again at the first moment at which it
  fits beside all others. So none moves back.
* *It cannot be kept*: a node goes, work does not end when it was expected to, a limit is lowered.
* *A job comes that goes first*, by its priority or its queue's share.

In the last two cases the jobs are planned in order: each keeps its promise if it fits beside those before it,
and has the first moment at which it does otherwise.

**The bound on starvation.** A later job, which was promised a start later or not at all, *passes* a promise
if it is started or planned before it for its share, not by its priority, and so delays it. After
`backfill.passes` such jobs, or one half-life after the first of them, a promise *stands*: its job is tried
and planned before all later jobs except those that go first by their priority, whatever the shares of queues,
users and applications are. The partition keeps the counts (`licorne.model.state.expected_ends`), as long as
the job waits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias, final

from ..configuration.durations import short_duration_text
from ..nodes.windows import Window
from ..queues.application_entry import ApplicationEntry
from ..queues.queue import Queue, exposed_priority
from ..queues.tree import QueueTree
from ..resources.resource import Resource
from ..state.expected_ends import NEVER_PASSED, KeptPromise, KeptPromises, PassCount
from ..state.partition_state import PartitionState
from ..state.rates import report_of_ask
from ..values.allocation import Ask
from .plan import JobInPlan, NoPlan, Promise, StartPlan, has_room_now
from .planned_jobs import (
    JobOwner,
    Standing,
    backfilling_queue,
    bare_plan,
    gang_members,
    job_of,
    next_correction_ns,
)


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
        last: float = -1
        for job in jobs:
            serial = self._serials.get(job.key)
            if serial is not None and serial < last:
                self.is_mixed = True
                ordered.insert(self._place(job, ordered), job)
            else:
                ordered.append(job)
            last = max(last, float("inf") if serial is None else serial)
        return ordered

    def _place(self, job: JobInPlan, ordered: Sequence[JobInPlan]) -> int:
        count = self._counts.get(job.key, NEVER_PASSED)
        left = passes_left(self._state, self._queue, job.key, count)
        for index, other in enumerate(ordered):
            if self.is_passed(job, other) and (left == 0 or other.key not in count.keys):
                if left == 0:
                    return index
                left -= 1
        return len(ordered)

    def is_passed(self, job: JobInPlan, other: JobInPlan) -> bool:
        """Return whether another job comes before one with a promise for its share alone: it came later."""
        serial = self._serials.get(other.key)
        if serial is not None and serial <= self._serials[job.key]:
            return False
        return not outranks(self._state.tree, other, job)


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


PROMISES_MAX: Final = 1000
"""How many jobs have promises, whosever they are; those behind them wait until they are among them."""
_FURTHER_MAX: Final = 1000
"""How many more have, of users who have few in their leaf."""
_FEW: Final = 10
"""Up to how many promises a user has few in a leaf."""
_FURTHER_OF_ONE_MAX: Final = 100
"""How many of the further promises one user may have, and one leaf."""
_NOTHING_KEPT: Final = KeptPromises({}, ())
_NO_ROOM: Final = Standing(may_start=False)
_Shape: TypeAlias = (
    "tuple[tuple[str, ...], str, str | None, tuple[Resource, ...], int | None, tuple[Window, ...]]"
)


class MovedPromise(NamedTuple):
    """A promise that is later than it was."""

    job: JobInPlan
    before_ns: int
    after_ns: int | None
    """`None` if it no longer exists."""
    newcomer: str
    """The first application before it that had no promise, the empty text without one."""


@final
class KeptPlan:
    """The promises to all jobs below a queue, found from those that were kept.

    Args:
        state: The partition; nothing of it is changed but by `keep`.
        queue: The queue.
        jobs: The waiting jobs below it, in order.
        without: The keys of jobs that get no promise.
    """

    def __init__(
        self,
        state: PartitionState,
        queue: Queue,
        jobs: Sequence[JobInPlan],
        without: Collection[str] = (),
    ) -> None:
        self._state = state
        self._queue = queue
        self._path = queue.path
        self.without = without
        self._bare = bare_plan(state)
        self.plan = self._bare.copy()
        """The expected ends of running and promised work."""
        self.promises: dict[str, Promise] = {}
        """By the key of their job; in order, except those that have moved."""
        self.reasons: dict[str, NoPlan] = {}
        """Why jobs have no promise, by their key."""
        self._moved: list[MovedPromise] = []
        self._kept = 0
        """How many promises are kept unchanged."""
        self._stamp = (state.ends.unplanned, state.node_changes)
        self._held: Counter[tuple[str, str]] = Counter()
        """How many promises a user has in a leaf."""
        self._further: Counter[str] = Counter()
        """How many of the further promises a user has, or a leaf."""
        self._unplannable: dict[_Shape, NoPlan] = {}
        """Why jobs of a shape have no start: other promises leave no further room."""
        kept, counts = state.ends.kept.get(self._path, _NOTHING_KEPT), state.ends.passed.get(self._path, {})
        self.counts = {job.key: counts[job.key] for job in jobs if job.key in counts}
        """How often the promises of jobs that wait were passed, by key."""

        serials = {key: promise.serial for key, promise in kept.by_key.items()}
        self._order = PassOrder(state, queue, serials, self.counts)
        self._jobs = self._order.ordered([job for job in jobs if job.key not in without])
        self._passing: dict[str, list[str]] = {}
        """The jobs that are planned before others for the sake of shares, and delay them, by their keys."""
        self._make(self._jobs, kept)

    def _make(self, jobs: Sequence[JobInPlan], kept: KeptPromises) -> None:
        known = [index for index, job in enumerate(jobs) if job.key in kept.by_key]
        old = known[-1] + 1 if known else 0
        for job in jobs[:old]:
            self._promise(job, kept.by_key.get(job.key))
        lost = len(kept.by_key) - self._kept
        if kept.stamp != self._stamp or lost:
            self._unplannable.clear()
            for job in jobs[:old]:
                self._move_up(job)
        self._note_moved(jobs[:old], kept.by_key)
        for job in jobs[old:]:
            self._promise(job)

    def _note_moved(self, jobs: Iterable[JobInPlan], kept: Mapping[str, KeptPromise]) -> None:
        """Note which promises are later than they were, and who goes first now."""
        newcomer = ""
        for job in jobs:
            before, after = kept.get(job.key), self.promises.get(job.key)
            if before is None:
                newcomer = newcomer or job.application_id
            elif after is None or after.start_ns > max(before.start_ns, self.plan.now_ns):
                start_ns = None if after is None else after.start_ns
                self._moved.append(MovedPromise(job, before.start_ns, start_ns, newcomer))
                count = self.counts.get(job.key, NEVER_PASSED)
                self.counts[job.key] = count.passed_by(self._passing.get(job.key, ()), self.plan.now_ns)

    def _find_passing(self, job: JobInPlan, found: Promise | NoPlan) -> None:
        """Find the later comers before a job without which it would start sooner, if there are any."""
        passing = [
            promise
            for promise in self.promises.values()
            if self._order.is_passed(job, promise.job) and promise.job.key != job.key
        ]
        for promise in passing:
            self.plan.give_back(promise)
        without = self.plan.earliest(job) if passing else found
        for promise in passing:
            self.plan.take(promise)
        is_sooner = isinstance(found, NoPlan) or (
            isinstance(without, Promise) and without.start_ns < found.start_ns
        )
        if passing and isinstance(without, Promise) and is_sooner:
            self._passing[job.key] = [promise.job.key for promise in passing]

    def _promise(self, job: JobInPlan, kept: KeptPromise | None = None) -> None:
        """Promise a job what it was promised, or else the first moment at which it fits."""
        if not self._has_place(job):
            return
        if kept is not None and len(kept.node_ids) == len(job.sizes):
            promise = Promise(job, max(kept.start_ns, self.plan.now_ns), kept.node_ids)
            if self.plan.fits(promise):
                self._take(promise)
                self._kept += 1
                return
        shape = job.levels, job.user, job.group, job.sizes, job.walltime_ns, job.windows
        found = self._unplannable.get(shape) or self.plan.earliest(job)
        if kept is not None and self._order.is_mixed:
            self._find_passing(job, found)
        if isinstance(found, NoPlan):
            self.reasons[job.key] = self._unplannable[shape] = found
        else:
            self._take(found)

    def _has_place(self, job: JobInPlan) -> bool:
        """Return whether a job may have a promise beside those that there are.

        Those without one, as they can be planned nowhere, take no place. Beyond the first promises neither a
        leaf nor a user takes all places.
        """
        if len(self.promises) < PROMISES_MAX:
            return True
        further, leaf = self._further, job.levels[0]
        return (
            self._held[leaf, job.user] < _FEW
            and len(self.promises) < PROMISES_MAX + _FURTHER_MAX
            and max(further[f"leaf {leaf}"], further[f"user {job.user}"]) < _FURTHER_OF_ONE_MAX
        )

    def _take(self, promise: Promise) -> None:
        job = promise.job
        if job.key not in self.promises:
            self._held[job.levels[0], job.user] += 1
            if len(self.promises) >= PROMISES_MAX:
                self._further.update((f"leaf {job.levels[0]}", f"user {job.user}"))
        self.plan.take(promise)
        self.promises[job.key] = promise

    def _move_up(self, job: JobInPlan) -> None:
        """Put a job in again where it starts sooner."""
        promise = self.promises.get(job.key)
        if promise is None or promise.start_ns <= self.plan.now_ns:
            return
        self.plan.give_back(promise)
        found = self.plan.earliest(job)
        sooner = isinstance(found, Promise) and found.start_ns < promise.start_ns
        self._take(found if isinstance(found, Promise) and sooner else promise)

    def keep(self, started: str = "") -> None:
        """Keep the promises for the next walk, except that of a job that has started; report moved ones."""
        self._state.setbacks.promises_moved[self._path] += len(self._moved)
        for moved in self._moved:
            _report(self._state, moved)
        ends = self._state.ends
        before = ends.kept.get(self._path, _NOTHING_KEPT).by_key
        promises: dict[str, KeptPromise] = {}
        for key, promise in self.promises.items():
            if key == started:
                continue
            known = before.get(key)
            ends.promised += known is None
            serial = ends.promised if known is None else known.serial
            promises[key] = KeptPromise(promise.start_ns, promise.node_ids, serial)
        ends.kept[self._path] = KeptPromises(promises, self._stamp)
        counts = self.counts.items()
        ends.passed[self._path] = {key: count for key, count in counts if count.keys and key != started}

    def starts_now(self, key: str) -> bool:
        """Return whether the promised start of a job has come."""
        promise = self.promises.get(key)
        return promise is not None and promise.start_ns <= self.plan.now_ns

    def next_change_ns(self) -> int | None:
        """Return when time alone changes something: a promised start, or work that has not ended by then."""
        starts = (promise.start_ns for promise in self.promises.values())
        moments = [start_ns for start_ns in starts if start_ns > self.plan.now_ns]
        others = next_correction_ns(self._state), next_standing_ns(self._state, self._queue)
        return min([*moments, *(at_ns for at_ns in others if at_ns is not None)], default=None)

    # ----------------------------------------------------------------- one job beside all others

    def set_aside(self, job: JobInPlan) -> None:
        """Take the promise of a job out of the plan, until `put_back`: what is asked then is about others."""
        promise = self.promises.get(job.key)
        if promise is not None:
            self.plan.give_back(promise)

    def put_back(self, job: JobInPlan) -> None:
        """Take the promise of a job into the plan again."""
        promise = self.promises.get(job.key)
        if promise is not None:
            self.plan.take(promise)

    def standing_on(self, job: JobInPlan, node_ids: Sequence[str]) -> Standing:
        """Return whether a job that is set aside may start now on nodes, one for each of its sizes."""
        limit = self.plan.exceeded_limit(job)
        if limit is None and self.plan.fits_on(job, node_ids):
            return Standing(may_start=True)
        return Standing(may_start=False, delays=self._delayed_by(job, node_ids), limit=limit)

    def standing(self, job: JobInPlan) -> Standing:
        """Return whether a job of one size that is set aside may start now on a node that has room for it."""
        usable = [node.node_id for node in self._state.nodes if node.usable]
        found = [
            self.standing_on(job, (node_id,)) for node_id in usable if has_room_now(self._bare, job, node_id)
        ]
        return next((each for each in found if each.may_start), found[0] if found else _NO_ROOM)

    def left_beside(self, job: JobInPlan) -> Mapping[str, Resource]:
        """Return what promises leave a job for its walltime of the nodes that they are for."""
        return self.plan.left_beside(self.promises.values(), job)

    def _delayed_by(self, job: JobInPlan, node_ids: Sequence[str]) -> Promise | None:
        """Return the first promise that cannot be kept if a job starts on nodes now."""
        trial = self._bare.copy()
        trial.take(Promise(job, trial.now_ns, tuple(node_ids)))
        for promise in self.promises.values():
            if promise.job.key == job.key:
                continue
            if not trial.fits(promise):
                return promise
            trial.take(promise)
        return None


def _report(state: PartitionState, moved: MovedPromise) -> None:
    """Report that a promise has moved back, and why."""
    job = moved.job
    why = "work runs longer than it was to, or there is less room"
    if moved.newcomer:
        why = f"application {moved.newcomer} goes first"
    then = "no start is known"
    if moved.after_ns is not None:
        then = f"it is to start {short_duration_text(moved.after_ns - moved.before_ns)} later"
    message = f"The promised start of '{job.key}' has moved back: {why}; {then}"
    report_of_ask(state, "promise", (job.application_id, job.key), job.total, message)
