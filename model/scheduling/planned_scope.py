"""One queue with backfilling in one walk: its plan, what was tried, and who has been promised a start."""

from __future__ import annotations

from typing import NamedTuple, final

from ..planning.passes import PassWatch, PromisedJob, next_standing_ns, outranks, passes_left, promised_jobs
from ..planning.plan import JobInPlan, NoPlan, Promise
from ..planning.planned_jobs import PlannedJobs, next_correction_ns
from ..queues.application_entry import ApplicationEntry
from ..queues.queue import Queue
from ..resources.resource import Resource
from ..state.expected_ends import NEVER_PASSED
from ..state.partition_state import PartitionState, promises_all
from ..values.allocation import Ask
from ..values.refusals import Refusal


class WaitingJob(NamedTuple):
    """An ask that is tried when all have been walked: by its walltime, or by its promise."""

    rank: tuple[float, int, int]
    entry: ApplicationEntry
    ask: Ask
    job: JobInPlan


@final
class PlannedScope:
    """One queue with backfilling, in one walk."""

    def __init__(self, state: PartitionState, queue: Queue) -> None:
        self.queue = queue
        self._state = state
        self._jobs: PlannedJobs | None = None
        self.visited: list[Queue] = []
        self.later: list[WaitingJob] = []
        self.refused: set[tuple[str, Resource, int | None]] = set()
        """What has been refused since the last promise: an application, a size, and a walltime."""
        self.denied: dict[str, Refusal] = {}
        """What the RM's predicates have refused, by the key of the ask."""
        self.is_unclear = False
        """The RM's predicates have refused an ask, or are being asked: there is no rest."""
        self.awaits_answer = False
        """The last ask was not placed since the RM has not answered about it."""
        self.keeps = promises_all(queue)
        """All jobs are promised a start when they come."""
        self.until_ns: int | None = None
        """When time alone changes something."""
        self.tried: set[str] = set()
        """The keys of jobs that were tried before their turn, as their promises stand."""
        counts = {} if self.keeps else state.ends.passed.get(queue.path, {})
        self._promised = dict.fromkeys(counts)
        """The keys of the jobs that walks before have promised a start, and this one has not yet."""
        standing = [key for key, count in counts.items() if not passes_left(state, queue, key, count)]
        self.standing = promised_jobs(state, queue, standing)
        """Those whose promises stand and that were not tried yet."""
        self._serials = {key: serial for serial, key in enumerate(self._promised)}
        self._watch: PassWatch | None = None
        self._oldest: Ask | None = None
        """Of the asks that wait behind as many promises as there may be, the one that waits longest."""

    @property
    def has_promises(self) -> bool:
        """Whether a job was refused that others may not delay."""
        return self._jobs is not None and bool(self._jobs.promises)

    @property
    def is_full(self) -> bool:
        """Whether as many jobs have promises as are to have one."""
        return self._jobs is not None and self._jobs.is_full

    @property
    def jobs(self) -> PlannedJobs:
        """The plan; it is made when a job is refused, as most walks end before."""
        if self._jobs is None:
            settings = self.queue.settings.backfill
            assert settings is not None, "the caller has looked"
            self._jobs = PlannedJobs(self._state, settings)
        return self._jobs

    def promise(self, job: JobInPlan) -> Promise | NoPlan | None:
        """Promise a refused job a start, if it may have a promise; see `PlannedJobs.promise`."""
        found = self.jobs.promise(job)
        if isinstance(found, Promise):
            self._promised.pop(job.key, None)
        return found

    def standing_before(self, job: JobInPlan) -> list[tuple[str, PromisedJob]]:
        """Return the jobs with promises that stand, and for which another job is a later comer."""
        serial = self._serials.get(job.key, len(self._serials))
        return [
            (key, promised)
            for key, promised in self.standing.items()
            if self._serials[key] < serial and not outranks(self._state.tree, job, promised.job(self._state))
        ]

    def note_waiting(self, ask: Ask) -> None:
        """Note an ask that would be promised a start if more jobs could have a promise."""
        oldest = self._oldest
        if oldest is None or (ask.created_at_ns, ask.allocation_key) < (
            oldest.created_at_ns,
            oldest.allocation_key,
        ):
            self._oldest = ask

    def watch(self, key: str) -> PassWatch | None:
        """Return what counts whom a job passes if it is started now, `None` if it cannot pass any.

        It is made before anything is placed in this walk, and only if a job is tried before one with a
        promise of walks before: most come in the order of their promises.
        """
        if self._watch is None and next(iter(self._promised), key) != key:
            promised = promised_jobs(self._state, self.queue, self._promised)
            self._watch = PassWatch(self._state, self.queue, promised)
        return self._watch

    def end_without_result(self) -> None:
        """Keep who has had a promise and waits still, and note when time alone changes something.

        The job that waits longest counts as one that has had a promise: in the end each job is that one.
        """
        state, path = self._state, self.queue.path
        counts = state.ends.passed.get(path, {})
        promises = self._jobs.promises if self._jobs is not None else []
        oldest = [] if self._oldest is None else [self._oldest.allocation_key]
        had = promised_jobs(state, self.queue, counts)
        keys = [*had, *(promise.job.key for promise in promises), *oldest]
        state.ends.passed[path] = {key: counts.get(key, NEVER_PASSED) for key in keys}
        moments = next_correction_ns(state) if promises else None, next_standing_ns(state, self.queue)
        self.until_ns = min((at_ns for at_ns in moments if at_ns is not None), default=None)

    def note_start(self, key: str) -> None:
        """Note that a job has started: it waits for no promise."""
        self._state.ends.passed.get(self.queue.path, {}).pop(key, None)
