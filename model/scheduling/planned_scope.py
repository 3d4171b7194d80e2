"""One queue with backfilling in one walk: its plan, what was tried, promises, and preemption beside them.

A job may end work for its queue's guarantee, or inside its queue, where no promise to another job is later
for it. The node, or each node of a gang, is reserved for as long as its claim lasts.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple, final

from ..applications.ask_walk import Candidate, CandidateKind
from ..planning.kept_plan import (
    KeptPlan,
    PassWatch,
    PromisedJob,
    next_standing_ns,
    outranks,
    passes_left,
    promised_jobs,
)
from ..planning.plan import JobInPlan, NoPlan, Promise
from ..planning.planned_jobs import (
    JobBesidePromises,
    JobOwner,
    PlannedJobs,
    gang_members,
    job_of,
    next_correction_ns,
    running_work,
)
from ..preemption.guarantee.attempt import Asking, preempt_for_queue
from ..preemption.guarantee.attempt_budget import AttemptBudget, RefusedAttempt
from ..preemption.guarantee.limited import lets_end_inside
from ..queues import quota as queue_quota
from ..queues.application_entry import ApplicationEntry
from ..queues.queue import Queue
from ..resources.resource import Resource, fits_undefined_unlimited
from ..state.charges import user_headroom
from ..state.counters import TimedPart
from ..state.expected_ends import NEVER_PASSED
from ..state.partition_state import PartitionState, promises_all
from ..state.placing import count_accepted, reserve
from ..values.allocation import Ask, Refusal
from .gang_pass import GangPreemption, GangTry, preempt_for_gang
from .giving import must_wait


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
        """The refusals since the last promise: an application, a size, and a walltime."""
        self.denied: dict[str, Refusal] = {}
        """The refusals of the RM's predicates, by the key of the ask."""
        self.is_unclear = False
        """The RM's predicates have refused an ask, or are being asked: nothing rests."""
        self.awaits_answer = False
        """The last ask was not placed since the RM has not answered about it."""
        self.keeps = promises_all(queue)
        """All jobs are promised a start when they come."""
        self.until_ns: int | None = None
        self.held_until_ns: int | None = None
        """When the first job may start that a policy holds."""
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


@final
class PlannedPreemption:
    """The attempts of one walk."""

    def __init__(self, state: PartitionState) -> None:
        self._state = state
        self._attempts: dict[Queue, AttemptBudget] = {}
        self.retry_ns: int | None = None
        """When time alone may let one of those preempt that were refused."""

    def may(self, leaf: Queue) -> bool:
        """Return whether asks of a leaf may preempt."""
        return self._state.preemption_enabled and queue_quota.may_preempt(leaf)

    def attempts(self, leaf: Queue) -> AttemptBudget:
        """Return what the walk may still spend in a leaf."""
        return self._attempts.setdefault(leaf, AttemptBudget())

    def beside(
        self, entry: ApplicationEntry, asks: Sequence[Ask], promises: Sequence[Promise]
    ) -> JobBesidePromises:
        """Return the job of some asks beside promises to others."""
        state = self._state
        job = cache(lambda: job_of(state, JobOwner.of(entry), *asks))
        return JobBesidePromises(state, job, promises, lambda: running_work(state))

    def of_gang(self, entry: ApplicationEntry, promises: Sequence[Promise]) -> GangPreemption:
        """Return what a gang may spend on attempts, beside promises to others."""
        may, leaf = self.may(entry.queue), entry.queue
        beside = self.beside(entry, gang_members(entry), promises)
        return GangPreemption(self.attempts(leaf), may, may and lets_end_inside(leaf), beside)

    def preempts_beside(self, scope: PlannedScope, kept: KeptPlan) -> bool:
        """End work for the first job that may preempt beside all promises; return whether that was done."""
        for entry, ask, key in ((each.entry, each.ask, each.job.key) for each in scope.later):
            if not self.may(entry.queue) or kept.starts_now(key):
                continue
            promises = [promise for name, promise in kept.promises.items() if name != key]
            if entry.facts.gang_waits:
                done = self._gang_preempts(scope, entry, promises)
            else:
                has_room = has_room_for(self._state, entry, ask.resource)
                done = not has_room and self.preempts(scope, entry, ask, promises)
            if done:
                kept.keep(started=key)
                return True
            if must_wait(self._state):
                break
        return False

    def _gang_preempts(
        self, scope: PlannedScope, entry: ApplicationEntry, promises: Sequence[Promise]
    ) -> bool:
        members = gang_members(entry)
        if not members:
            return False
        state = self._state
        found = preempt_for_gang(
            state,
            entry,
            members,
            self.of_gang(entry, promises),
            queue_room=queue_quota.headroom(entry.queue),
            user_room=user_headroom(state, entry),
        )
        if isinstance(found, RefusedAttempt):
            self.note_retry(found.retry_ns)
            return False
        if found is GangTry.LATER:
            scope.is_unclear = True
            return False
        count_accepted(entry)
        return True

    def awaits_victims(self, entry: ApplicationEntry, ask: Ask) -> bool:
        """Return whether an ask, or the gang of its application, has preempted, and its claim lasts."""
        claims = self._state.claims
        if not claims.by_key:
            return False
        if entry.facts.gang_waits:
            return any(claim.entry is entry for claim in claims)
        return claims.find(ask.allocation_key) is not None

    def preempts(
        self, scope: PlannedScope, entry: ApplicationEntry, ask: Ask, promises: Sequence[Promise]
    ) -> bool:
        """End work for a single ask that has no room, and reserve the node; return whether that was done.

        So is the node of an ask that has preempted, if an ask that needed it had taken the reservation.
        """
        state = self._state
        kind = self._kind(entry, ask.resource) if ask.allow_preempt_other else None
        record = None if kind is None else entry.application.asks.record(ask.allocation_key)
        if record is None or kind is None:
            return False
        triggered, checked_ns = record.preemption_triggered, record.preemption_checked_ns
        candidate = Candidate(ask, kind, "", triggered, checked_ns)
        began_ns = state.times.stopwatch_ns()
        beside = self.beside(entry, (ask,), promises)
        asking = Asking(state, entry, candidate, kind is CandidateKind.NODES, promises=beside)
        found = preempt_for_queue(asking, self.attempts(entry.queue))
        state.times.add(TimedPart.PREEMPTION, began_ns)
        if isinstance(found, RefusedAttempt):
            if found.is_pending:
                scope.is_unclear = True
            self.note_retry(found.retry_ns)
            return False
        reserve(state, entry, ask, found, required=False)
        count_accepted(entry)
        return True

    def _kind(self, entry: ApplicationEntry, size: Resource) -> CandidateKind | None:
        """Return what keeps an ask from being placed, `None` if preemption may not change that."""
        if not self.may(entry.queue):
            return None
        if not fits_undefined_unlimited(user_headroom(self._state, entry), size):
            return CandidateKind.LIMIT if lets_end_inside(entry.queue) else None
        if not fits_undefined_unlimited(queue_quota.headroom(entry.queue), size):
            return CandidateKind.PREEMPTION
        return CandidateKind.NODES

    def note_retry(self, retry_ns: int | None) -> None:
        """Note when time alone may let an ask preempt, `None` if it may not."""
        if retry_ns is not None and (self.retry_ns is None or retry_ns < self.retry_ns):
            self.retry_ns = retry_ns


def has_room_for(state: PartitionState, entry: ApplicationEntry, size: Resource) -> bool:
    """Return whether a size fits the queues of an application, the limits of its user and a node."""
    return (
        state.nodes.first_fit(size) is not None
        and fits_undefined_unlimited(queue_quota.headroom(entry.queue), size)
        and fits_undefined_unlimited(user_headroom(state, entry), size)
    )
