"""Preemption below queues with backfilling, in one walk: by the rules of all asks, and beside promises.

A job may end work for its queue's guarantee, or inside its queue, where no promise to another job is later
for it. The node, or each node of a gang, is reserved for as long as its claim lasts.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import final

from ..applications.ask_walk import Candidate, CandidateKind
from ..planning.kept_plan import KeptPlan
from ..planning.plan import Promise
from ..planning.planned_jobs import JobOwner, gang_members, job_of, running_work
from ..planning.preempted_work import JobBesidePromises
from ..preemption.guarantee.attempt import Asking, preempt_for_queue
from ..preemption.guarantee.attempt_budget import AttemptBudget, RefusedAttempt
from ..preemption.guarantee.limited import lets_end_inside
from ..queues import quota as queue_quota
from ..queues.application_entry import ApplicationEntry
from ..queues.queue import Queue
from ..resources.resource import Resource, fits_undefined_unlimited
from ..state.charges import user_headroom
from ..state.counters import TimedPart
from ..state.partition_state import PartitionState
from ..state.placing import count_accepted, reserve
from ..values.allocation import Ask
from .gang_pass import GangPreemption, GangTry, preempt_for_gang
from .giving import must_wait
from .planned_scope import PlannedScope


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
