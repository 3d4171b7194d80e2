"""When asks below a queue with backfilling are expected to start, and which of them wait for a promise.

The jobs before an ask are planned one after the other, each for its whole walltime: the queue sets
how many have promises; the others are planned to tell when an ask is expected to start, and may vary.
An ask that does not exist yet is planned behind all that waits. Where all jobs are promised a start, the
answer is the promise that was kept, or that a walk would make now.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, final

from ..applications.ask_walk import TryingPass
from ..applications.effects import ApplicationState
from ..configuration.durations import short_duration_text
from ..configuration.queue_properties import BACKFILL_RESERVATIONS, BackfillSettings
from ..nodes.gang_room import plan_on
from ..planning.kept_plan import PROMISES_MAX, KeptPlan
from ..planning.passing import PassOrder, passes_left
from ..planning.plan import JobInPlan, NoPlan, Promise, StartPlan
from ..planning.planned_jobs import (
    GangStart,
    JobBesidePromises,
    JobOwner,
    PlannedJobs,
    Standing,
    backfilling_queue,
    gang_members,
    job_of,
    may_be_promised,
    running_work,
)
from ..policies.policies import POLICY_PREFIX
from ..queues.queue import Queue
from ..queues.quota import ranked_leaves
from ..resources.resource import Resource, fits_undefined_unlimited, resource_text
from ..state.expected_ends import NEVER_PASSED
from ..state.partition_state import PartitionState
from ..values.allocation import Ask, RefusalReason
from .blockers import Blocker, SubjectKind, application_count_blockers

_JOBS_MAX: Final = 500
"""How many jobs are planned for an answer: behind them starts are unknown."""
_DEEP: Final = f"{_JOBS_MAX} jobs or more wait before it"
_BEHIND_KEPT: Final = f"{PROMISES_MAX} jobs or more wait before it"
_DENIED: Final = "the RM's predicates refuse the nodes with room"
_HELD: Final = "its application may not start yet"
_ASKS_MAX: Final = 1 << 40


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStart:
    """When a waiting ask is expected to start, if all that runs ends when it is expected to.

    `start_ns` is `None` if it is unknown: `reason` has the cause. `is_promised` means that no job behind it
    may start if it would delay it. Of later comers that go first for the sake of shares `passed` have delayed
    it, and `passes_left` more may; 0 means that the promise stands, `None` that there is none.
    """

    start_ns: int | None = None
    node_id: str = ""
    is_promised: bool = False
    reason: str = ""
    passed: int = 0
    passes_left: int | None = None


class _StartAnswer(NamedTuple):
    blocker: Blocker | None
    planned_start: PlannedStart


def _is_held(state: PartitionState, owner: JobOwner) -> bool:
    """Return whether an application may not start, as its queues, its user or its group run too many."""
    found = application_count_blockers(state, owner.leaf, owner.application_id, owner.user)
    return next(iter(found), None) is not None


@final
class StartChecker:
    """Answers for the asks of one application.

    Args:
        state: The partition; nothing of it is changed.
        owner: The application; its queue may be a preview of one that does not exist.
    """

    def __init__(self, state: PartitionState, owner: JobOwner) -> None:
        self._state = state
        self._owner = owner
        self._queue = backfilling_queue(owner.leaf)
        entry = state.entries.get(owner.application_id)
        self._gang_waits = entry is not None and entry.facts.gang_waits
        starts = entry is None or entry.facts.state is ApplicationState.ACCEPTED
        is_kept_back = entry is not None and (entry.held is not None or entry.waits is not None)
        self._is_held = is_kept_back or (starts and _is_held(state, owner))
        self._answers: dict[str, _StartAnswer] | None = None
        self._before: dict[str, list[Promise]] = {}
        """The promises to those before each job, by its key."""
        self._waiting_kept: list[tuple[tuple[Ask, ...], JobInPlan]] | None = None
        """The waiting jobs where all are promised a start; then there is the plan `_kept` as well."""

    def beside(self, asks: Sequence[Ask]) -> JobBesidePromises | None:
        """Return the job of asks beside the promises that it may not delay, `None` without backfilling."""
        queue = self._queue
        if queue is None or queue.settings.backfill is None:
            return None
        self.check(asks[0])
        job = job_of(self._state, self._owner, *asks)
        if queue.settings.backfill.keeps:
            kept = {} if self._waiting_kept is None else self._kept.promises
            promises = [promise for key, promise in kept.items() if key != job.key]
        else:
            promises = self._before.get(job.key, [])
        return JobBesidePromises(self._state, lambda: job, promises, lambda: running_work(self._state))

    def check(self, ask: Ask) -> tuple[Blocker | None, PlannedStart | None]:
        """Return what an ask that fits now would delay, and when it is expected to start.

        Both are `None` where the queues do not backfill, for an ask that needs its node, for one that waits
        for its victims, and for one outside of the whole gang that its application waits for.
        """
        queue = self._queue
        settings = None if queue is None else queue.settings.backfill
        has_claim = self._state.claims.find(ask.allocation_key) is not None
        if queue is None or settings is None or ask.required_node or has_claim:
            return None, None
        if self._is_held:
            return None, PlannedStart(reason=_HELD)
        if settings.keeps:
            return self._check_kept(ask, queue, settings)
        if self._answers is None:
            self._answers = {}
            self._jobs = PlannedJobs(self._state, settings)
            self._planned_starts = self._jobs.plan.copy()
            self._planned = 0
            self._walk(queue)
        answer = self._answers.get(ask.allocation_key)
        if answer is None and self._gang_waits:
            return None, None
        if answer is None:
            answer = self._answer(self._owner, (ask,), queue)[0]
        return answer.blocker, answer.planned_start

    def _check_kept(
        self, ask: Ask, queue: Queue, settings: BackfillSettings
    ) -> tuple[Blocker | None, PlannedStart | None]:
        """Answer by the promise of the job that an ask is, or is a member of."""
        if self._waiting_kept is None:
            self._waiting_kept = [
                (asks, job_of(self._state, owner, *asks)) for owner, asks in self._waiting(queue)
            ]
            self._kept = self._keep(queue, settings, [job for _, job in self._waiting_kept])
        found = next((each for each in self._waiting_kept if ask in each[0]), None)
        if found is None and self._gang_waits:
            return None, None
        kept = self._kept
        if found is None:
            found = (ask,), job_of(self._state, self._owner, ask)
            kept = self._keep(queue, settings, [*(job for _, job in self._waiting_kept), found[1]])
        asks, job = found
        promise = kept.promises.get(job.key)
        if promise is None:
            if job.key in self._state.ends.denied.get(queue.path, ()):
                return None, PlannedStart(reason=_DENIED)
            if job.key in kept.without:
                reason = f"policy {settings.promises_word.removeprefix(POLICY_PREFIX)} promises it no start"
                return self._delayed_by(job, kept, queue), PlannedStart(reason=reason)
            reason = kept.reasons[job.key].reason if job.key in kept.reasons else _BEHIND_KEPT
            return None, PlannedStart(reason=reason)
        node_id = promise.node_ids[asks.index(ask)]
        count = kept.counts.get(job.key, NEVER_PASSED)
        planned_start = PlannedStart(
            start_ns=promise.start_ns,
            node_id=node_id,
            is_promised=True,
            passed=len(count.keys),
            passes_left=passes_left(self._state, queue, job.key, count),
        )
        blocker = None if kept.starts_now(job.key) else self._delayed_by(job, kept, queue)
        return blocker, planned_start

    def _delayed_by(self, job: JobInPlan, kept: KeptPlan, queue: Queue) -> Blocker | None:
        """Return which promise a job would delay if it started now, `None` if none, or if it does not fit."""
        kept.set_aside(job)
        standing = self._standing(job, kept)
        kept.put_back(job)
        if standing is None or standing.delays is None:
            return None
        return self._delays(job, standing, standing.delays, queue, kept.plan)

    def _keep(self, queue: Queue, settings: BackfillSettings, jobs: Sequence[JobInPlan]) -> KeptPlan:
        state = self._state
        unpromised = {job.key for job in jobs if not may_be_promised(state, settings, job)}
        return KeptPlan(state, queue, jobs, {*state.ends.denied.get(queue.path, ()), *unpromised})

    def _walk(self, queue: Queue) -> None:
        """StartPlan what waits, in order, and keep the answers for the asks of the application."""
        assert self._answers is not None, "the caller has made them"
        own = self._owner.application_id
        for owner, asks in self._in_order(queue):
            if self._planned >= _JOBS_MAX and owner.application_id != own:
                continue
            answers = self._answer(owner, asks, queue)
            if owner.application_id == own:
                for ask, answer in zip(asks, answers, strict=True):
                    self._answers[ask.allocation_key] = answer

    def _in_order(self, queue: Queue) -> Iterable[tuple[JobOwner, tuple[Ask, ...]]]:
        """Walk the jobs that wait as they are tried: those whose promises stand before others."""
        counts = self._state.ends.passed.get(queue.path, {})
        serials = {key: serial for serial, key in enumerate(counts)}
        if not any(count.keys for count in counts.values()):
            return self._waiting(queue)
        waiting = {asks[0].allocation_key: (owner, asks) for owner, asks in self._waiting(queue)}
        jobs = [job_of(self._state, owner, *asks) for owner, asks in waiting.values()]
        order = PassOrder(self._state, queue, serials, counts)
        return [waiting[job.key] for job in order.ordered(jobs)]

    def _waiting(self, queue: Queue) -> Iterator[tuple[JobOwner, tuple[Ask, ...]]]:
        """Walk the jobs that wait: single asks, and the members of whole gangs."""
        for leaf in ranked_leaves(self._state.tree, queue):
            for entry in leaf.entries.ranked(leaf):
                owner = JobOwner.of(entry)
                starts = entry.facts.state is ApplicationState.ACCEPTED
                if entry.held is not None or (starts and _is_held(self._state, owner)):
                    continue
                if entry.facts.gang_waits:
                    members = gang_members(entry)
                    has_claim = bool(members) and self._state.claims.find(members[0].allocation_key)
                    if members and not has_claim and not any(ask.required_node for ask in members):
                        yield owner, members
                    continue
                for tried in entry.application.asks.first_waiting(_ASKS_MAX):
                    if tried.trying_pass is TryingPass.REGULAR and not tried.ask.required_node:
                        yield owner, (tried.ask,)

    def _answer(self, owner: JobOwner, asks: tuple[Ask, ...], queue: Queue) -> list[_StartAnswer]:
        """Plan a job behind those before it, and return the expected start of each of its asks."""
        if self._planned >= _JOBS_MAX:
            return [_StartAnswer(None, PlannedStart(reason=_DEEP))] * len(asks)
        job = job_of(self._state, owner, *asks)
        self._planned += 1
        if job.key in self._state.ends.denied.get(queue.path, ()):
            return [_StartAnswer(None, PlannedStart(reason=_DENIED))] * len(asks)
        blocker = None
        standing = self._standing(job, self._jobs)
        if standing is not None and standing.delays is not None:
            blocker = self._delays(job, standing, standing.delays, queue, self._jobs.plan)
        self._before[job.key] = [*self._jobs.promises]
        promised = isinstance(self._jobs.promise(job), Promise)
        found = self._planned_starts.earliest(job)
        if isinstance(found, NoPlan):
            return [_StartAnswer(blocker, PlannedStart(reason=found.reason))] * len(asks)
        self._planned_starts.take(found)
        count = self._state.ends.passed.get(queue.path, {}).get(job.key, NEVER_PASSED)
        left = passes_left(self._state, queue, job.key, count) if promised else None
        return [
            _StartAnswer(
                blocker,
                PlannedStart(
                    start_ns=found.start_ns,
                    node_id=node_id,
                    is_promised=promised,
                    passed=len(count.keys) if promised else 0,
                    passes_left=left,
                ),
            )
            for node_id in found.node_ids
        ]

    def _standing(self, job: JobInPlan, jobs: PlannedJobs | KeptPlan) -> Standing | None:
        """Return whether a job that fits now may start, `None` for one that does not fit, or may."""
        nodes = self._state.nodes
        if not all(fits_undefined_unlimited(room, job.total) for room in job.limits.values()):
            return None
        if len(job.sizes) > 1:
            start = GangStart(jobs, lambda: job)
            start.plan(lambda left: plan_on(nodes, job.sizes, None, left, domains=job.domains))
            return start.delays
        return jobs.standing(job) if any(node.has_room(job.total) for node in nodes) else None

    def _delays(
        self, job: JobInPlan, standing: Standing, promise: Promise, queue: Queue, plan: StartPlan
    ) -> Blocker:
        """Return that a job which fits now would delay another one."""
        now_ns, other = self._state.now_ns(), promise.job
        left_ns = promise.start_ns - now_ns
        others = len(set(promise.node_ids)) - 1
        place = f"{promise.node_ids[0]} and {others} more" if others else promise.node_ids[0]
        if job.walltime_ns is None:
            ends = "it has no walltime, so that it may run when"
        else:
            over_ns = job.walltime_ns - left_ns
            word = self._owner.leaf.settings.runtime.expected_word
            by = f"by policy {word.removeprefix(POLICY_PREFIX)} " if word else ""
            ends = (
                f"{by}it would end in {short_duration_text(job.walltime_ns)}, "
                f"{short_duration_text(over_ns)} after"
            )
        limit = standing.limit
        both = ""
        if limit is not None:
            holder = limit.path if limit.kind == "queue" else f"{limit.kind} {limit.holder} in {limit.path}"
            both = f"; the limit of {holder} does not hold both"
        return Blocker(
            reason=RefusalReason.WOULD_DELAY,
            kind=SubjectKind.APPLICATION,
            subject=other.application_id,
            detail=(f"{ends} {other.key} is to get {place} in {short_duration_text(left_ns)}{both}"),
            position=queue.positions.get(f"properties.{BACKFILL_RESERVATIONS}"),
            change=self._change(job, promise, plan, limited=limit is not None),
        )

    def _change(self, job: JobInPlan, promise: Promise, plan: StartPlan, *, limited: bool) -> str:
        """Return what would let a job start before the promise."""
        longest = short_duration_text(promise.start_ns - self._state.now_ns())
        instead = "" if job.walltime_ns is None else f" instead of {short_duration_text(job.walltime_ns)}"
        is_expected = self._owner.leaf.settings.runtime.expected_word
        change = f"{'an expected run time' if is_expected else 'a walltime'} of at most {longest}{instead}"
        if limited or len(job.sizes) > 1 or len(set(promise.node_ids)) > 1:
            return change
        left = plan.room_at(promise.node_ids[0], promise.start_ns)
        rest = Resource({name: min(asked, left.get(name)) for name, asked in job.total.items()})
        if any(quantity <= 0 for quantity in rest.values()):
            return change
        return f"{change}, or at most {resource_text(rest)}"
