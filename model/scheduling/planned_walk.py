"""The walk of the leaves below queues with backfilling, in the regular pass of a cycle.

The leaves, applications and asks are walked in the order of all walks, and none of them rests by itself: what
may start depends on the jobs before it. Instead all that is below one queue with backfilling rests together,
after a walk without result, until something is placed or gains room, an ask comes, or work is expected to end
that does not.

Where all jobs are promised a start, the walk only collects them, and `finish` starts those whose moment has
come (`licorne.model.planning.kept_plan`).

Nodes are reserved here only for asks that have preempted (`licorne.model.scheduling.planned_scope`): a
promise takes its place. An ask that needs its node is tried as everywhere
(`licorne.model.scheduling.giving`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cache
from operator import itemgetter
from typing import final

from ..applications.ask_walk import Candidate, CandidateKind, FailedTry, TryingPass
from ..applications.effects import ApplicationFacts, ApplicationState
from ..planning.kept_plan import KeptPlan, next_plan
from ..planning.planned_jobs import (
    GangStart,
    JobOwner,
    backfilling_queue,
    find_run_times,
    gang_members,
    job_of,
    key_behind_promises,
    may_be_promised,
    orders_by_key,
)
from ..queues import quota as queue_quota
from ..queues.application_entry import ApplicationEntry, HeldStart
from ..queues.queue import Queue
from ..queues.quota import is_reached
from ..queues.sleep import Sleep, Wake
from ..resources.resource import fits_undefined_unlimited
from ..state.charges import held_by_policy, user_headroom
from ..state.expected_ends import WalkedQueue
from ..state.partition_state import PartitionState
from ..state.placing import count_accepted
from ..state.rates import report_refusals
from ..values.allocation import NO_GANG_ROOM, Ask, RefusalReason
from .gang_pass import GangRefused, GangTry, place_gang
from .giving import denied_by_rm, must_wait, try_place, try_required_node
from .planned_scope import JobsOf, PlannedPreemption, PlannedScope, WaitingJob, has_room_for
from .resting import all_rest, earlier, may_hold_starts, starts_or_runs

_ASKS_MAX = 1 << 40
_PROMISED = NO_GANG_ROOM | {
    RefusalReason.USER_QUOTA,
    RefusalReason.QUEUE_QUOTA,
    RefusalReason.WOULD_DELAY,
    RefusalReason.WINDOW,
}
"""The refusals of a gang that is promised a start."""
_LATER_NS = 1_000_000_000
"""How long what the RM's predicates refused waits for the next try."""


@final
class PlannedWalk:
    """One walk where a queue backfills: `visits` for each leaf in order, then `finish`."""

    def __init__(self, state: PartitionState, now_ns: int) -> None:
        self._state = state
        self._now_ns = now_ns
        self._scopes: dict[Queue, PlannedScope | None] = {}
        """`None` for a queue all of whose leaves rest."""
        self._preemption = PlannedPreemption(state)
        self.has_result = False
        """Something was placed, or a node reserved."""
        self._run_times = state.ends.run_times
        if self._run_times.is_used:
            find_run_times(state)

    @property
    def is_over(self) -> bool:
        """Whether nothing more is visited in this cycle."""
        return self.has_result or must_wait(self._state)

    def visits(self, leaf: Queue) -> bool:
        """Visit a leaf if it is below a queue with backfilling; return whether it is."""
        queue = backfilling_queue(leaf)
        if queue is None:
            return False
        if queue not in self._scopes:
            self._scopes[queue] = (
                None if _rests(self._state, queue, self._now_ns) else PlannedScope(self._state, queue)
            )
        scope = self._scopes[queue]
        if scope is not None:
            self._visit(scope, leaf)
        return True

    def _visit(self, scope: PlannedScope, leaf: Queue) -> None:
        scope.visited.append(leaf)
        if scope.keeps:
            self._collect(scope, leaf)
            return
        may_pass_by = scope.may_pass_by(leaf, may_preempt=self._preemption.may(leaf))
        lacking: list[tuple[ApplicationEntry, ApplicationFacts, list[Ask]]] = []
        for entry in scope.to_try(leaf, self._now_ns) if may_pass_by else list(leaf.entries.waiting):
            scope.tried_applications.add(entry)
            asks = self._try_application(scope, entry)
            if self.is_over:
                break
            may_rest = asks and may_pass_by and entry.rests_for is None and not entry.facts.gang_waits
            if asks and may_rest and all(scope.lacks_room(entry, ask) for ask in asks):
                lacking.append((entry, entry.facts, asks))
        waiting = leaf.entries.waiting  # Those that changed get their places.
        for entry, facts, asks in lacking:
            if entry.facts is facts:
                scope.rest(waiting, entry, asks)

    def _collect(self, scope: PlannedScope, leaf: Queue) -> None:
        """Collect the jobs of a leaf; those of an application that has not changed are known."""
        (before, after), later = scope.leaf_jobs(leaf), scope.later
        unlisted: dict[str, ApplicationEntry] = {}
        for entry in list(leaf.entries.waiting):
            known = before.of.get(entry)
            if known is None or known.facts is not entry.facts:
                begin, facts = len(later), entry.facts
                asks = self._try_application(scope, entry)
                if self.is_over:
                    return
                known = JobsOf(facts, tuple(later[begin:]))
                scope.has_gangs = scope.has_gangs or facts.gang_waits
                if asks is None or len(known.jobs) != len(asks) or facts.gang_waits:
                    continue  # Others are tried in each walk.
            else:
                later += known.jobs
                if not entry.user_is_listed:
                    unlisted.setdefault(entry.user.name, entry)
            after.of[entry] = known
        for entry in unlisted.values():
            starts_or_runs(self._state, entry)  # It lists the user where the user's last work has ended.
        self._state.ends.collected[leaf.path] = after

    def _try_application(self, scope: PlannedScope, entry: ApplicationEntry) -> list[Ask] | None:
        """Try the asks of an application; return them, or `None` if it may not start or the walk is over."""
        if not starts_or_runs(self._state, entry):
            return None
        held = _held(self._state, entry)
        if held is not None:
            scope.held_until_ns = earlier(scope.held_until_ns, held.wait.until_ns)
            return None
        asks: list[Ask] = []
        for ask in _asks(entry):
            if self._run_times.is_used:
                for each in gang_members(entry) if entry.facts.gang_waits else (ask,):
                    self._run_times.find(entry, each)
            if scope.standing:
                self._try_standing(scope, entry, ask)
            if not self.is_over and ask.allocation_key not in scope.tried:
                self.has_result = self._try(scope, entry, ask)
            if self.is_over:
                return None
            asks.append(ask)
        return asks

    def _try_standing(self, scope: PlannedScope, entry: ApplicationEntry, ask: Ask) -> None:
        """Try the jobs whose promises stand before this ask, which is a later comer."""
        for key, promised in scope.standing_before(job_of(self._state, JobOwner.of(entry), ask)):
            del scope.standing[key]
            starts = (
                starts_or_runs(self._state, promised.entry) and _held(self._state, promised.entry) is None
            )
            if starts and is_reached(promised.entry.queue):
                scope.tried.add(key)
                self.has_result = self._try_behind(scope, promised.entry, promised.asks[0])
            if self.is_over:
                return

    def finish(self) -> bool:
        """Try the jobs that are tried by their walltimes; return whether the cycle has a result."""
        if self.is_over:
            return self.has_result
        scopes = [scope for scope in self._scopes.values() if scope is not None]
        for scope in scopes:
            if scope.keeps:
                self.has_result = self._start_promised(scope)
                if self.is_over:
                    return self.has_result
                continue
            scope.later.sort(key=itemgetter(0))
            for waiting in scope.later:
                self.has_result = self._try_behind(scope, waiting.entry, waiting.ask)
                if self.is_over:
                    return self.has_result
            scope.end_without_result()
        for scope in scopes:
            self._rest(scope)
        return False

    # ------------------------------------------------------------------------------------ resting

    def _rest(self, scope: PlannedScope) -> None:
        """Have what is below a queue rest until the result may be another one."""
        state = self._state
        state.ends.denied[scope.queue.path] = scope.denied
        retry_ns, wakes = self._preemption.retry_ns, Wake.BY_ANY_CHANGE
        until_ns = scope.until_ns if retry_ns is None else min(retry_ns, scope.until_ns or retry_ns)
        if scope.is_unclear:
            until_ns, wakes = self._now_ns + _LATER_NS, Wake.IN_EACH_CYCLE
        until_ns = earlier(until_ns, scope.held_until_ns)
        by_ends = any(self._preemption.may(leaf) or may_hold_starts(state, leaf) for leaf in scope.visited)
        sleep = Sleep(state.stamp, until_ns, wakes, placed=state.placed.allocations)
        state.ends.rests[scope.queue.path] = WalkedQueue(sleep, scope.queue.pending, by_ends)
        for leaf in scope.visited:
            leaf.entries.sleep = sleep

    # --------------------------------------------------------------------------------------- asks

    def _try(self, scope: PlannedScope, entry: ApplicationEntry, ask: Ask) -> bool:
        """Place an ask, promise it a start or leave it for later; return whether the cycle has a result."""
        if self._preemption.awaits_victims(entry, ask):
            if entry.facts.gang_waits:
                return self._place_gang(scope, entry, None) is GangTry.PLACED
            return self._preemption.preempts(scope, entry, ask, ())
        if ask.required_node and not entry.facts.gang_waits:
            return self._try_required(scope, entry, ask)
        if scope.keeps or (scope.is_full and orders_by_key(scope.settings)):
            asks = (entry.facts.gang_waits and gang_members(entry)) or (ask,)
            job = job_of(self._state, JobOwner.of(entry), *asks)
            key = 0.0 if scope.keeps else key_behind_promises(self._state, scope.settings, entry, job)
            rank = (key, ask.created_at_ns, len(scope.later))
            scope.later.append(WaitingJob(rank, entry, ask, job))
            return False
        return self._try_behind(scope, entry, ask)

    def _start_promised(self, scope: PlannedScope) -> bool:
        """Start the first job whose promised start has come; return whether the cycle has a result.

        One that does not start then, as the RM refuses its nodes, loses its promise, and the others are
        planned without it.
        """
        if self._starts_at_once(scope):
            return True
        may_be_unplanned = scope.later if scope.has_gangs or scope.settings.promises_word else ()
        unplanned = {each.job.key for each in may_be_unplanned if _is_unplanned(self._state, scope, each)}
        without = unplanned.copy()
        while not must_wait(self._state):  # It may end with the first job.
            kept = next_plan(self._state, scope.queue, [each.job for each in scope.later], without)
            refused = self._try_promised(scope, kept, unplanned)
            if refused is None:
                return True
            if must_wait(self._state):
                break  # No promise is kept that may be another one when the RM has answered.
            if refused <= without:
                if self._preemption.preempts_beside(scope, kept):
                    return True
                if must_wait(self._state):
                    break
                _keep(self._state, scope, kept)
                break
            without |= refused
        return False

    def _try_promised(
        self, scope: PlannedScope, kept: KeptPlan, unplanned: Collection[str]
    ) -> set[str] | None:
        """Start one of the jobs; return the keys of those that could not start, `None` if one has started."""
        refused: set[str] = set()
        due = kept.due().union(unplanned)
        for waiting in scope.later if due else ():
            key = waiting.job.key
            if key not in due:
                continue
            if self._starts(scope, kept, waiting):
                kept.keep(started=key)
                return None
            if must_wait(self._state):
                break
            if not scope.awaits_answer:
                refused.add(key)
        return refused

    def _starts_at_once(self, scope: PlannedScope) -> bool:
        """Place the first job if nothing is promised: then it needs no plan, as work that runs only ends."""
        kept = self._state.ends.kept.get(scope.queue.path)
        if not scope.later or (kept is not None and kept.by_key):
            return False
        entry, ask = scope.later[0].entry, scope.later[0].ask
        if entry.facts.gang_waits or not has_room_for(self._state, entry, ask):
            return False
        return self._place(scope, entry, ask, frozenset())

    def _starts(self, scope: PlannedScope, kept: KeptPlan, waiting: WaitingJob) -> bool:
        """Place a job where it does not change the promises of others."""
        entry, ask, job = waiting.entry, waiting.ask, waiting.job
        scope.awaits_answer = False
        kept.set_aside(job)
        try:
            if entry.facts.gang_waits:
                tried = self._place_gang(scope, entry, GangStart(kept, lambda: job))
                scope.awaits_answer = tried is GangTry.LATER
                return tried is GangTry.PLACED
            if not has_room_for(self._state, entry, ask) or kept.plan.exceeded_limit(job) is not None:
                return False
            fitting = [node.node_id for node in self._state.nodes.fitting(ask.resource)]
            without = frozenset(node_id for node_id in fitting if not kept.plan.fits_on(job, (node_id,)))
            return self._place(scope, entry, ask, without)
        finally:
            kept.put_back(job)

    def _try_behind(self, scope: PlannedScope, entry: ApplicationEntry, ask: Ask) -> bool:
        """Place an ask that delays no promise; otherwise promise it a start if it may have one.

        If it is placed, whom it passes is counted.
        """
        scope.note_try(ask.allocation_key)
        has_room = not entry.facts.gang_waits and has_room_for(self._state, entry, ask)
        if has_room and scope.delays.holds(entry, ask):
            return False
        may_start = has_room or entry.facts.gang_waits or self._preemption.may(entry.queue)
        watch = scope.watch() if may_start else None
        placed = self._place_or_promise(scope, entry, ask, has_room=has_room)
        if placed and watch is not None:
            watch.note_start(job_of(self._state, JobOwner.of(entry), ask))
        if placed:
            scope.note_start(ask.allocation_key)
        return placed

    def _place_or_promise(
        self, scope: PlannedScope, entry: ApplicationEntry, ask: Ask, *, has_room: bool
    ) -> bool:
        if entry.facts.gang_waits:
            return self._try_gang(scope, entry)
        state = self._state
        promised = scope.jobs.promises if scope.has_promises else ()
        if not has_room and self._preemption.preempts(scope, entry, ask, promised):
            return True
        if must_wait(self._state):
            return False
        if scope.is_full and not has_room:
            scope.note_waiting(entry, ask)
            return False
        if has_room and not scope.has_promises:
            return self._place(scope, entry, ask, frozenset())
        jobs = scope.jobs
        job = job_of(state, JobOwner.of(entry), ask)
        shape = entry.application_id, ask.resource, job.walltime_ns
        if shape in scope.refused:
            return False
        if has_room:
            standing = jobs.standing(job)
            if standing.may_start:
                return self._place(scope, entry, ask, standing.without)
            _note_delay(self._state, entry, ask.allocation_key)
            scope.delays.note(entry.queue, job)
        is_same_for_all = scope.is_full or not scope.settings.promises_word
        if scope.promise(job) is None and is_same_for_all:
            scope.refused.add(shape)
        return False

    def _try_gang(self, scope: PlannedScope, entry: ApplicationEntry) -> bool:
        """Place a gang whole where it delays no promise; otherwise promise it a start if it may have one."""
        job = cache(lambda: job_of(self._state, JobOwner.of(entry), *gang_members(entry)))
        tried = self._place_gang(scope, entry, GangStart(scope.jobs, job) if scope.has_promises else None)
        if not isinstance(tried, GangRefused):
            return tried is not GangTry.LATER
        reason = tried.refusal.reason
        if reason is RefusalReason.WOULD_DELAY:
            _note_delay(self._state, entry, job().key)
        may_have = reason in _PROMISED and not scope.is_full
        if may_have and not any(ask.required_node for ask in gang_members(entry)):
            scope.promise(job())
        return False

    def _place_gang(
        self, scope: PlannedScope, entry: ApplicationEntry, start: GangStart | None
    ) -> GangTry | GangRefused:
        """Place a gang whole where it delays no promise; its application keeps why it was refused."""
        state, preempting = self._state, None
        if start is None or not scope.keeps:
            promised = scope.jobs.promises if scope.has_promises else ()
            preempting = self._preemption.of_gang(entry, promised)
        queue_room, user_room = queue_quota.headroom(entry.queue), user_headroom(state, entry)
        tried = place_gang(state, entry, queue_room, user_room, start=start, preempting=preempting)
        if isinstance(tried, GangRefused):
            self._preemption.note_retry(tried.retry_ns)
            scope.is_unclear = scope.is_unclear or tried.refusal.reason is RefusalReason.PREDICATES
            entry.application.asks.refuse_gang(tried.refusal)
            if tried.refusal.reason is RefusalReason.PREDICATES:
                scope.denied[tried.refusal.allocation_key] = tried.refusal
        elif tried is not GangTry.LATER:
            count_accepted(entry)
        else:
            scope.is_unclear = True
        return tried

    def _place(self, scope: PlannedScope, entry: ApplicationEntry, ask: Ask, without: frozenset[str]) -> bool:
        """Place an ask on the first node that the RM allows and where it delays no promise."""
        state, checks = self._state, self._state.node_checks
        if checks is not None and ask.allocation_key in checks.keys_to_skip():
            scope.is_unclear = scope.awaits_answer = True
            return False
        search = try_place(state, entry, ask, without=without)
        if search is None:
            count_accepted(entry)
            return True
        scope.awaits_answer = search.pending
        if checks is not None and search.node is None:
            scope.is_unclear = scope.is_unclear or search.keeping is None
            report_refusals(state, entry.application, ask, search.refusals)
            if search.denied and search.keeping is None:
                scope.denied[ask.allocation_key] = denied_by_rm(ask, "", search.denied, self._now_ns)
        return False

    def _try_required(self, scope: PlannedScope, entry: ApplicationEntry, ask: Ask) -> bool:
        """Try an ask that needs its node; it may be reserved for it."""
        state = self._state
        room = queue_quota.headroom_without_root(entry.queue)
        within = fits_undefined_unlimited(room, ask.resource) and fits_undefined_unlimited(
            user_headroom(state, entry), ask.resource
        )
        if not within:
            return False
        candidate = Candidate(
            ask, CandidateKind.REQUIRED_NODE, "", triggered_preemption=False, preemption_checked_ns=None
        )
        outcome = try_required_node(state, entry, candidate, self._now_ns)
        if not isinstance(outcome, FailedTry):
            count_accepted(entry)
            return True
        scope.is_unclear = scope.is_unclear or outcome.passed_over
        return False


def _rests(state: PartitionState, queue: Queue, now_ns: int) -> bool:
    """Return whether nothing below a queue may have another result than in the last walk."""
    walked = state.ends.rests.get(queue.path)
    if walked is None or walked.sleep.placed != state.placed.allocations:
        return False
    by_ends = walked.by_ends or walked.pending is not queue.pending
    changes, node_changes, local_changes, gains = state.stamp
    if not by_ends:
        local_changes = walked.sleep.stamp[2]
    if not walked.sleep.holds((changes, node_changes, local_changes, gains), now_ns):
        return False
    return all_rest(queue)


def _held(state: PartitionState, entry: ApplicationEntry) -> HeldStart | None:
    """Return the policy that keeps an application from starting, if any; `None` if it runs."""
    starts = entry.facts.state is ApplicationState.ACCEPTED or entry.held is not None
    return held_by_policy(state, entry) if starts else None


def _asks(entry: ApplicationEntry) -> Iterator[Ask]:
    """Walk the asks of an application that this pass may place; one alone is known without a question.

    Of a gang that is to be placed whole this is one ask: it stands for all.
    """
    if entry.facts.gang_waits:
        yield entry.application.asks.waiting()[0].ask
        return
    first = entry.facts.first
    if first is not None and first.resource == entry.facts.pending:
        yield first
        return
    for tried in entry.application.asks.first_waiting(_ASKS_MAX):
        if tried.trying_pass is TryingPass.REGULAR:
            yield tried.ask


def _is_unplanned(state: PartitionState, scope: PlannedScope, waiting: WaitingJob) -> bool:
    """Return whether a job is promised no start, and tried without one.

    A policy promises it none, or it is a gang that is not all there, or of which a member needs its node.
    """
    if waiting.entry.facts.gang_waits:
        members = gang_members(waiting.entry)
        if not members or any(ask.required_node for ask in members):
            return True
    return not may_be_promised(state, scope.settings, waiting.job)


def _keep(state: PartitionState, scope: PlannedScope, kept: KeptPlan) -> None:
    kept.keep()
    scope.until_ns = kept.next_change_ns()
    for _, entry, ask, job in scope.later:
        is_single = job.key in kept.promises and not entry.facts.gang_waits
        if is_single and has_room_for(state, entry, ask):
            _note_delay(state, entry, job.key)


def _note_delay(state: PartitionState, entry: ApplicationEntry, allocation_key: str) -> None:
    state.notes.note(entry.application, allocation_key, RefusalReason.WOULD_DELAY.value, state.now_ns())
