"""One queue with backfilling in one walk: its plan, what was tried, promises, and preemption beside them.

A job may end work for its queue's guarantee, or inside its queue, where no promise to another job is later
for it. The node, or each node of a gang, is reserved for as long as its claim lasts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple, final

from ..applications.ask_walk import Candidate, CandidateKind
from ..applications.effects import ApplicationFacts
from ..planning.kept_plan import KeptPlan
from ..planning.passing import (
    PassWatch,
    PromisedJob,
    next_standing_ns,
    outranks,
    passes_left,
    promised_jobs,
)
from ..planning.plan import JobInPlan, LimitKey, NoPlan, Promise
from ..planning.planned_jobs import (
    JobBesidePromises,
    JobOwner,
    PlannedJobs,
    backfilling_queue,
    gang_members,
    job_of,
    limits_of_queues,
    may_be_promised,
    next_correction_ns,
    running_work,
)
from ..policies.policies import PolicyKey
from ..preemption.guarantee.attempt import Asking, preempt_for_queue
from ..preemption.guarantee.attempt_budget import AttemptBudget, RefusedAttempt
from ..preemption.guarantee.limited import lets_end_inside
from ..queues import quota as queue_quota
from ..queues.application_entry import ApplicationEntry, EntryKey
from ..queues.queue import Queue
from ..queues.waiting import RestKind, WaitingApplications
from ..resources.resource import Resource, fits_undefined_unlimited
from ..state.charges import user_headroom
from ..state.counters import TimedPart
from ..state.expected_ends import NEVER_PASSED, Delays, PassedBy, assumed_walltime_ns
from ..state.node_windows import are_kept
from ..state.partition_state import PartitionState, promises_all
from ..state.placing import count_accepted, reserve
from ..values.allocation import Ask, Refusal
from .gang_pass import GangPreemption, GangTry, preempt_for_gang
from .giving import must_wait
from .resting import conditions_in, may_hold_starts

NEVER_NS: Final = 1 << 80
"""The walltime of an ask that never ends in a plan, where walltimes are compared."""


class WaitingJob(NamedTuple):
    """An ask that is tried when all have been walked: by its key behind promises, or by its promise."""

    rank: tuple[float | PolicyKey, int, int]
    entry: ApplicationEntry
    ask: Ask
    job: JobInPlan


class JobsOf(NamedTuple):
    """The jobs of an application, as one walk has found them."""

    facts: ApplicationFacts
    """It has no others as long as it has these."""
    jobs: tuple[WaitingJob, ...]


@final
class LeafJobs:
    """The jobs of a leaf by their applications: of those of which nothing else decides which they are.

    Args:
        limits: What the maxima of its queues leave.
    """

    def __init__(self, limits: Mapping[LimitKey, Resource]) -> None:
        self.limits = limits
        self.of: dict[ApplicationEntry, JobsOf] = {}


@final
class PlannedScope:
    """One queue with backfilling, in one walk."""

    def __init__(self, state: PartitionState, queue: Queue) -> None:
        self.queue = queue
        settings = queue.settings.backfill
        assert settings is not None, "the caller has looked"
        self.settings = settings
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
        self.has_gangs = False
        """Some of `later` are whole gangs."""
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
        self._watched: list[str] | None = None
        """Those of them that may be passed, once a job was tried before the first of them."""
        self._oldest: tuple[int, str] | None = None
        """Of the asks that wait behind as many promises as there may be, the one that waits longest: when it
        was created, and its key."""
        self.tried_applications: set[ApplicationEntry] = set()
        self._passes_by = False
        """Applications that rest were not tried."""
        self.delays = KnownDelays(state, queue)

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
            self._jobs = PlannedJobs(self._state, self.settings)
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

    def may_pass_by(self, leaf: Queue, *, may_preempt: bool) -> bool:
        """Return whether applications without room on a node need no look while enough others have promises.

        They do where they may preempt, and where policies or limits may keep them from starting.
        """
        state = self._state
        return not (
            may_preempt
            or may_hold_starts(state, leaf)
            or self.keeps
            or self.settings.promises_word
            or state.ends.run_times.is_used
            or state.claims.by_key
            or state.windows.all
        )

    def leaf_jobs(self, leaf: Queue) -> tuple[LeafJobs, LeafJobs]:
        """Return the jobs of a leaf that the walk before has found, and those that this one is to find.

        They are none where anything else may decide which are tried, or limits have other room.
        """
        state, found = self._state, LeafJobs(limits_of_queues(leaf))
        known = state.ends.collected.get(leaf.path)
        is_decided_anew = state.claims.by_key or state.ends.run_times.is_used or state.windows.all
        if is_decided_anew or may_hold_starts(state, leaf):
            return LeafJobs({}), found
        return known if isinstance(known, LeafJobs) and known.limits == found.limits else LeafJobs({}), found

    def to_try(self, leaf: Queue, now_ns: int) -> Iterator[ApplicationEntry]:
        """Walk the applications of a leaf; once enough have promises, only those that may have room."""
        state, waiting = self._state, leaf.entries.waiting
        order: EntryKey = ()
        if not self.is_full or self._drop_standing():
            for entry in waiting:
                yield entry
                if self.is_full and not self._drop_standing():
                    order = entry.order
                    break
            else:
                return
        self._passes_by = True
        delaying = self.delays.in_leaf(leaf, self.jobs.promises)
        conditions = conditions_in(state, leaf, queue_quota.headroom(leaf), now_ns)
        yield from waiting.to_try(conditions._replace(delaying=delaying), order)

    def lacks_room(self, entry: ApplicationEntry, ask: Ask) -> bool:
        """Return whether an ask has to wait until it has room, or a promise is another one."""
        if ask.required_node:
            return False
        return not _has_room(self._state, entry.queue, ask.resource) or self.delays.holds(entry, ask)

    def _drop_standing(self) -> bool:
        """Drop those whose promises stand and that no node has room for; return whether others are left."""
        closed = self._state.nodes.closed
        self.standing = {
            key: promised
            for key, promised in self.standing.items()
            if len(promised.asks) > 1 or promised.asks[0].resource not in closed
        }
        return bool(self.standing)

    def note_waiting(self, entry: ApplicationEntry, ask: Ask) -> None:
        """Note an ask that would be promised a start if more jobs could have a promise."""
        if self.settings.promises_word and not may_be_promised(
            self._state, self.settings, job_of(self._state, JobOwner.of(entry), ask)
        ):
            return
        rank = ask.created_at_ns, ask.allocation_key
        self._oldest = rank if self._oldest is None else min(self._oldest, rank)

    def rest(self, waiting: WaitingApplications, entry: ApplicationEntry, asks: Sequence[Ask]) -> None:
        """Have an application rest until a node has room for one of its asks and it delays no promise."""
        oldest: dict[Resource, Ask] = {}
        for ask in sorted(asks, key=lambda ask: (ask.created_at_ns, ask.allocation_key)):
            oldest.setdefault(ask.resource, ask)
        entry.shortest_ns = min(_walltime_ns(entry, ask) for ask in asks)
        waiting.rest(entry, RestKind(tuple(oldest), may_reserve=False), None)
        passed_by = self._state.ends.passed_by.setdefault(self.queue.path, {})
        for size, ask in oldest.items():
            passed_by.setdefault((entry.queue.path, size), PassedBy()).add(ask, self._rests)

    def _rests(self, key: str) -> bool:
        entry = self._state.entries.get(self._state.keys.owner_of(key))
        if entry is None or entry.rests_for is None or backfilling_queue(entry.queue) is not self.queue:
            return False
        record = entry.application.asks.record(key)
        return record is not None and not record.placed

    def _is_tried(self, key: str) -> bool:
        return self._state.entries.get(self._state.keys.owner_of(key)) in self.tried_applications

    def _longest_waiting(self) -> tuple[int, str] | None:
        """Return the ask without room that waits longest of those that were tried, and of those that rest."""
        passed_by = self._state.ends.passed_by.get(self.queue.path, {}) if self._passes_by else {}
        oldest = self._oldest
        for (path, size), asks in [*passed_by.items()]:
            leaf = self._state.tree.find(path)
            if not asks or leaf is None:
                del passed_by[path, size]
            elif (oldest is None or asks.bound < oldest) and not _has_room(self._state, leaf, size):
                first = asks.first(self._rests, self._is_tried)
                oldest = oldest if first is None else min(first, oldest or first)
        return oldest

    def note_try(self, key: str) -> None:
        """Note that a job is tried, which may be before one that walks before have promised a start."""
        if self._watched is None and next(iter(self._promised), key) != key:
            self._watched = [*self._promised]

    def watch(self) -> PassWatch | None:
        """Return what counts whom a job passes if it is started now, `None` if it cannot pass any.

        It is made before anything is placed in this walk.
        """
        keys = [*self._promised] if self._watched is None else self._watched
        promised = promised_jobs(self._state, self.queue, keys)
        return PassWatch(self._state, self.queue, promised) if promised else None

    def end_without_result(self) -> None:
        """Keep who has had a promise and waits still, and note when time alone changes something.

        The job that waits longest counts as one that has had a promise: in the end each job is that one.
        """
        state, path = self._state, self.queue.path
        counts = state.ends.passed.get(path, {})
        promises = self._jobs.promises if self._jobs is not None else []
        longest = self._longest_waiting()
        oldest = [] if longest is None else [longest[1]]
        had = promised_jobs(state, self.queue, counts)
        keys = [*had, *(promise.job.key for promise in promises), *oldest]
        state.ends.passed[path] = {key: counts.get(key, NEVER_PASSED) for key in keys}
        moments = next_correction_ns(state) if promises else None, next_standing_ns(state, self.queue)
        self.until_ns = min((at_ns for at_ns in moments if at_ns is not None), default=None)

    def note_start(self, key: str) -> None:
        """Note that a job has started: it waits for no promise."""
        self._state.ends.passed.get(self.queue.path, {}).pop(key, None)


@final
class KnownDelays:
    """The asks that have room and would delay the one promise below a queue, as far as walks have found.

    They would as long as the promise is the same and nothing has ended: time, placements and new jobs leave
    them no more room beside it.
    """

    def __init__(self, state: PartitionState, queue: Queue) -> None:
        self._state = state
        self._queue = queue
        self._from_ns: dict[str, dict[Resource, int]] = {}
        """By the path of a leaf whose applications may rest, see `Delays`."""

    def in_leaf(self, leaf: Queue, promises: Sequence[Promise]) -> Mapping[Resource, int]:
        """Return the walltimes from which on asks of each size in a leaf are known to delay the promise."""
        promise, ends = promises[0], self._state.ends
        job = promise.job
        if len(promises) > 1 or len(job.sizes) > 1:
            return {}  # What delays the first promise may let another one be earlier.
        beside = (*self._state.stamp, job.key, promise.start_ns, job.total, job.walltime_ns)
        known = ends.delays.get(self._queue.path)
        if known is None or known.beside != beside:
            known = ends.delays[self._queue.path] = Delays(beside, {})
        return self._from_ns.setdefault(leaf.path, known.from_ns.setdefault(leaf.path, {}))

    def note(self, leaf: Queue, job: JobInPlan) -> None:
        """Note that a job of one size would delay a promise: so does each longer one in its leaf."""
        delaying = self._from_ns.get(leaf.path)
        if delaying is not None:
            walltime_ns = NEVER_NS if job.walltime_ns is None else job.walltime_ns
            delaying[job.total] = min(walltime_ns, delaying.get(job.total, NEVER_NS))

    def holds(self, entry: ApplicationEntry, ask: Ask) -> bool:
        """Return whether it is known that an ask would delay a promise."""
        from_ns = self._from_ns.get(entry.queue.path, {}).get(ask.resource)
        return from_ns is not None and _walltime_ns(entry, ask) >= from_ns


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
        leaves = {leaf for leaf in scope.visited if self.may(leaf)}
        for each in scope.later if leaves else ():
            entry, ask, key = each.entry, each.ask, each.job.key
            if entry.queue not in leaves or kept.starts_now(key):
                continue
            promises = [promise for name, promise in kept.promises.items() if name != key]
            if entry.facts.gang_waits:
                done = self._gang_preempts(scope, entry, promises)
            else:
                has_room = has_room_for(self._state, entry, ask)
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
        reserved = state.reserved.get(ask.allocation_key)
        candidate = Candidate(ask, kind, reserved.node_id if reserved else "", triggered, checked_ns)
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
        if not reserve(state, entry, ask, found, required=False):
            return False
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


def _walltime_ns(entry: ApplicationEntry, ask: Ask) -> int:
    walltime_ns = assumed_walltime_ns(ask, entry.tags, entry.queue)
    return NEVER_NS if walltime_ns is None else walltime_ns


def has_room_for(state: PartitionState, entry: ApplicationEntry, ask: Ask) -> bool:
    """Return whether an ask fits its queues, the limits of its user and a node without a window now."""
    size = ask.resource
    return (
        _has_room(state, entry.queue, size)
        and fits_undefined_unlimited(user_headroom(state, entry), size)
        and not are_kept(state, ask)
    )


def _has_room(state: PartitionState, leaf: Queue, size: Resource) -> bool:
    return state.nodes.first_fit(size) is not None and fits_undefined_unlimited(
        queue_quota.headroom(leaf), size
    )
