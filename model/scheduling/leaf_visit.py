"""The visit of one leaf in the regular pass of a cycle: its applications in order, until one gives a result.

This is orchestration: unmarked code that calls marked steps. Each step checks again what it relies on and
may decline: quota is checked and charged in one step, room on the node is checked and taken in one step,
and the ask is checked and placed in one step. When a step declines, the steps before it are undone.
The RM's predicates are asked between the steps, never inside one. Where they answer later, the ask is passed
over (`licorne.model.predicates.deferred_checks`).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, final

from ..applications.ask_walk import RESERVATION_DELAY_NS, AskWalk, Candidate, CandidateKind, FailedTry
from ..applications.effects import ApplicationFacts
from ..applications.state import ApplicationState
from ..nodes.order import first_to_reserve
from ..predicates.node_checks import NO_ROOM, NodeSearch, Pending
from ..preemption.guarantee.attempt import preempt_for_queue
from ..preemption.guarantee.attempt_budget import AttemptBudget, RefusedAttempt
from ..preemption.guarantee.limited import lets_end_inside
from ..queues import quota as queue_quota
from ..queues.application_entry import ApplicationEntry, SkipUntil
from ..queues.queue import Queue
from ..resources.resource import Resource, fits_undefined_unlimited
from ..state.charges import holder_of, user_headroom
from ..state.cycle_times import TimedPart
from ..state.event_rates import report_refusals
from ..state.headroom_reports import report_checks, set_runnable
from ..state.partition_state import PartitionState
from ..state.placing import commit, count_accepted, reserve, unreserve
from ..values.refusals import RefusalReason, refused
from .first_ask import place_first_of
from .gang_pass import GangPreemption, GangRefused, GangTry, place_gang
from .required_node import PASSED_OVER, denied_by_rm, refusal_of, try_required_node
from .resting import (
    LACKS_ROOM,
    PreemptionRefused,
    Rest,
    barred_sizes,
    conditions_in,
    may_run,
    refused_preemption,
    rest_after,
    rest_of_held,
    retries_of_resting,
    with_limits,
)

__all__ = ["LeafVisit"]

_FAILED: Final = FailedTry()
"""A failed try that means nothing for other asks."""


@final
class LeafVisit:
    """One visit of a leaf: its applications in order, until one gives a result."""

    __slots__ = (
        "attempts",
        "checks",
        "denied",
        "ends_cycle",
        "has_own_answer",
        "headroom",
        "headroom_below_root",
        "keys_to_skip",
        "leaf",
        "may_preempt",
        "mixed",
        "notes_before",
        "now_ns",
        "passed_over",
        "preemption",
        "rests",
        "sought_node",
        "state",
        "until_ns",
        "waiting",
    )

    def __init__(self, state: PartitionState, leaf: Queue, now_ns: int) -> None:
        self.state = state
        self.leaf = leaf
        self.now_ns = now_ns
        self.headroom, self.headroom_below_root = queue_quota.headrooms(leaf)
        self.attempts = AttemptBudget()
        self.may_preempt = state.preemption_enabled and queue_quota.may_preempt(leaf)
        """Without a guarantee on the path no ask here is entitled to preemption: see `docs/preemption.md`."""
        self.checks = checks = state.node_checks
        self.keys_to_skip: Collection[str] = () if checks is None else checks.keys_to_skip()
        self.ends_cycle = False
        """The RM has been asked, and what comes behind has to wait for the answer."""
        self.notes_before = 0 if checks is None else state.notes.taken
        self.passed_over = False
        """The RM is being asked about an ask; the result is not known yet."""
        self.denied = False
        """The RM's predicates refused an ask."""
        self.mixed = False
        """An ask was refused for another reason than a lack of room."""
        self.until_ns: int | None = None
        """When time alone may change the answer."""
        self.rests: list[tuple[ApplicationEntry, ApplicationFacts, Rest | None]] = []
        """Applications that were tried without result, as they were then, and what may change that."""
        self.sought_node = False
        """A node to reserve was sought for the application being tried."""
        self.has_own_answer = False
        """What stops it may not stop others: the RM judged it, or it has preempted before."""
        self.preemption: list[PreemptionRefused] = []
        """To which of its asks preemption was refused."""

    def run(self) -> bool | None:
        """Return whether the visit ended the cycle with a result, `None` if it did not end it."""
        outcome = self._run()
        waiting = self.leaf.entries.waiting  # Those that changed get their places.
        if not self.passed_over:  # Otherwise the visit is repeated, and notes the same.
            for entry, facts, rest in self.rests:
                if entry.facts is not facts:
                    continue
                if rest is None:
                    waiting.wake(entry)
                else:
                    waiting.rest(entry, rest.kind, rest.until_ns)
        entries = self.leaf.entries
        entries.end_visit(is_pending=outcome is None and self.passed_over)
        if outcome is not None:
            return outcome
        for retry_ns in retries_of_resting(self.state, self.leaf, self.headroom, self.now_ns):
            self._wake_at(retry_ns)
        if self.passed_over:
            self.state.notes.drop_beyond(self.notes_before)
            return None
        failed = tuple(self.attempts.failed)
        self.mixed = self.mixed or waiting.waits_for_any_change()
        entries.skip_until = SkipUntil(
            until_ns=self.until_ns,
            mixed=self.mixed,
            denied=self.denied,
            barred=barred_sizes(self.leaf, self.headroom),
            changes=self.state.changes,
            node_changes=self.state.node_changes,
            gains=self.state.nodes.gains,
            placed=self.state.placed.allocations if waiting.preempting() or failed else None,
            failed_attempts=failed,
        )
        return None

    def _run(self) -> bool | None:
        state = self.state
        times = state.times
        order_began_ns = times.stopwatch_ns() if times.detailed else None
        self.waiting = self.leaf.entries.waiting  # This finds the places of those that have changed.
        if order_began_ns is not None:
            times.add(TimedPart.APPLICATION_ORDER, order_began_ns)
        conditions = conditions_in(state, self.leaf, self.headroom, self.now_ns, self.attempts)
        conditions = with_limits(state, conditions)
        for entry in self.waiting.to_try(conditions):
            if not self._may_run(entry):
                self.mixed = True
                self.rests.append((entry, entry.facts, rest_of_held(state, entry)))
                continue
            if entry.backoff_until_ns is not None:
                if entry.backoff_until_ns > self.now_ns:
                    self._wake_at(entry.backoff_until_ns)
                    continue
                entry.backoff_until_ns = None
            outcome = self._visit(entry)
            if outcome is not None:
                count_accepted(entry)
                return outcome
            if self.ends_cycle:
                break
        return None

    def _wake_at(self, time_ns: int) -> None:
        if self.until_ns is None or time_ns < self.until_ns:
            self.until_ns = time_ns

    def _may_run(self, entry: ApplicationEntry) -> bool:
        """Return whether the application may start to run, or runs already."""
        if entry.facts.state is not ApplicationState.ACCEPTED:
            return True
        in_queue, by_user = may_run(self.state, entry)
        set_runnable(self.state, entry, in_queue=in_queue, by_user=by_user)
        return entry.runnable_in_queue and entry.runnable_by_user

    # ----------------------------------------------------------------------------- an application

    def _visit(self, entry: ApplicationEntry) -> bool | None:
        state = self.state
        user_room = user_headroom(state, entry)
        if self._place_first(entry, user_room):
            return True
        if self.checks is not None and self.checks.ends_cycle:
            self.passed_over = self.ends_cycle = True
            return None
        settings = self.leaf.settings
        walk = AskWalk(
            now_ns=self.now_ns,
            queue_path=self.leaf.path,
            queue_headroom=self.headroom,
            headroom_below_root=self.headroom_below_root,
            user_name=entry.user.name,
            user_headroom=user_room,
            preemption=self.may_preempt,
            backoff_count=settings.backoff_count,
            reservations_on=state.host.reservations_on,
            keys_to_skip=self.keys_to_skip,
            keeps_notes=state.notes.kept,
            preempts_at_limits=self.may_preempt and lets_end_inside(self.leaf),
        )
        self.sought_node = self.has_own_answer = False
        self.preemption = []
        self.leaf.entries.unreported[entry.application_id] = entry
        if entry.facts.gang_waits:
            return self._visit_gang(entry, walk)
        failed: FailedTry | None = None
        while (candidate := self._next(entry, walk, failed)) is not None:
            outcome = self._try(entry, candidate)
            if not isinstance(outcome, FailedTry):
                if walk.skipped:
                    entry.application.asks.end_walk(walk, candidate.ask.allocation_key)
                return outcome
            failed = outcome
            if failed.passed_over and self.checks is not None and self.checks.ends_cycle:
                self.passed_over = self.ends_cycle = True
                if walk.skipped:
                    entry.application.asks.end_walk(walk, candidate.ask.allocation_key)
                break
        if walk.backoff_due:
            entry.backoff_until_ns = self.now_ns + settings.backoff_delay_ns
            entry.application.asks.back_off(entry.backoff_until_ns)
            self._wake_at(entry.backoff_until_ns)
            self.notes_before = state.notes.taken  # The application is not visited again until then.
        self._note_walk(walk)
        self._note_rest(entry, walk)
        return None

    def _visit_gang(self, entry: ApplicationEntry, walk: AskWalk) -> bool | None:
        """Place a whole gang in one result, or note what refuses it."""
        tried = place_gang(self.state, entry, walk, preempting=GangPreemption(self.attempts))
        if tried is GangTry.PLACED or tried is GangTry.PREPARED:
            return tried is GangTry.PLACED
        if tried is GangTry.LATER:
            self.passed_over = True
            self.ends_cycle = self.checks is not None and self.checks.ends_cycle
            return None
        assert isinstance(tried, GangRefused), "the other outcomes are above"
        if tried.rest is None or tried.retry_ns is not None:  # It has preempted, or may when it is time.
            self.mixed = True
        if tried.retry_ns is not None:
            self._wake_at(tried.retry_ns)
        walk.refusals.append(tried.refusal)
        self._next(entry, walk, None)
        self._note_walk(walk)
        self.rests.append((entry, entry.facts, tried.rest))
        return None

    def _next(self, entry: ApplicationEntry, walk: AskWalk, failed: FailedTry | None) -> Candidate | None:
        candidate = entry.application.asks.next_candidate(walk, failed)
        if walk.notes:
            self.state.notes.take(entry.application, walk)
        if walk.checks:
            report_checks(self.state, walk)
        return candidate

    def _place_first(self, entry: ApplicationEntry, user_room: Resource | None) -> bool:
        """Place the first ask if nothing blocks it: most visits end so.

        The walk would choose the same ask; this spares the question to the application.
        """
        ask = entry.facts.first
        if ask is None or not fits_undefined_unlimited(self.headroom, ask.resource):
            return False
        times = self.state.times
        began_ns = times.stopwatch_ns() if times.detailed else None
        placed = place_first_of(self.state, entry, user_room)
        if began_ns is not None:
            times.add(TimedPart.NODE_SEARCH, began_ns)
        return placed

    def _note_walk(self, walk: AskWalk) -> None:
        """Note from the walk when a retry is worthwhile, and what refused the asks."""
        self.passed_over = self.passed_over or walk.passed_over
        if walk.retry_ns is not None:
            self._wake_at(walk.retry_ns)
        for refusal in walk.refusals:
            if refusal.reason is RefusalReason.PREDICATES and refusal.until_ns is not None:
                self.denied = True  # Otherwise the RM says when it may be allowed.
            elif refusal.reason not in LACKS_ROOM:
                self.mixed = True
            if refusal.until_ns is not None:
                self._wake_at(refusal.until_ns)

    def _note_rest(self, entry: ApplicationEntry, walk: AskWalk) -> None:
        """Let an application rest if its asks fail for a lack of room alone, and not rest otherwise."""
        rest = None
        if not (self.has_own_answer or walk.passed_over or walk.backoff_count):
            rest = rest_after(
                walk,
                self.state.nodes.closed,
                sought_node=self.sought_node,
                preemption=self.preemption,
                holder=None if walk.user_headroom is None else holder_of(self.state, entry),
            )
        if rest is not None or entry.rests_for is not None:
            self.rests.append((entry, entry.facts, rest))

    def _try(self, entry: ApplicationEntry, candidate: Candidate) -> bool | FailedTry:
        """Return whether the try ended the cycle with a result, or why it did not end it."""
        kind = candidate.kind
        if kind is CandidateKind.NODES:
            return self._try_nodes(entry, candidate)
        if kind is CandidateKind.REQUIRED_NODE:
            return try_required_node(self.state, entry, candidate, self.now_ns)
        if kind is CandidateKind.RESERVATION:
            return self._try_reservation(entry, candidate)
        return self._preempt(entry, candidate, nodes_tried=False)

    def _try_nodes(self, entry: ApplicationEntry, candidate: Candidate) -> bool | FailedTry:
        times = self.state.times
        if not times.detailed:
            outcome = self._search_nodes(entry, candidate)
        else:
            began_ns = times.stopwatch_ns()
            outcome = self._search_nodes(entry, candidate)
            times.add(TimedPart.NODE_SEARCH, began_ns)
        return self._make_room(entry, candidate, outcome) if isinstance(outcome, NodeSearch) else outcome

    def _search_nodes(self, entry: ApplicationEntry, candidate: Candidate) -> bool | FailedTry | NodeSearch:
        """Return the outcome; if no node takes the ask, what the search found."""
        ask = candidate.ask
        nodes = self.state.nodes
        search = NO_ROOM
        if self.checks is None:
            node = nodes.first_fit(ask.resource)
            if node is not None and commit(self.state, entry, ask, node):
                return True
        elif nodes.first_fit(ask.resource) is not None:
            search = self.checks.first_allowed(ask, nodes)
            if search.pending:
                return PASSED_OVER
            report_refusals(self.state, entry.application, ask, search.refusals)
            if search.node is not None and commit(self.state, entry, ask, search.node):
                return True
        return search

    def _make_room(
        self, entry: ApplicationEntry, candidate: Candidate, search: NodeSearch
    ) -> bool | FailedTry:
        """Reserve a node, or preempt, for an ask that no node takes."""
        ask, denied = candidate.ask, search.denied
        holds_for_shape = search.for_class if denied else ask.resource in self.state.nodes.closed
        failed = self._try_reservation(entry, candidate)
        if not isinstance(failed, FailedTry) or failed.passed_over:
            return failed
        refused_to_ns = None
        if self.may_preempt and ask.allow_preempt_other:
            preempted = self._preempt(entry, candidate, nodes_tried=True)
            if not isinstance(preempted, FailedTry) or preempted.passed_over:
                return preempted
            refused_to_ns = preempted.preemption_refused_to_ns
        if denied:
            refusal = denied_by_rm(ask, "", denied, self.now_ns, for_class=search.for_class)
        else:
            until_ns = self._reservation_due(candidate)
            refusal = refused(RefusalReason.NO_NODE_FITS, "", ask, None, until_ns=until_ns)
        return FailedTry((refusal,), holds_for_shape, failed.reservation_refused, refused_to_ns)

    def _reservation_due(self, candidate: Candidate) -> int | None:
        due_ns = candidate.ask.created_at_ns + RESERVATION_DELAY_NS + 1
        return due_ns if self.state.host.reservations_on and due_ns > self.now_ns else None

    # -------------------------------------------------------------------------------- reservations

    def _try_reservation(self, entry: ApplicationEntry, candidate: Candidate) -> bool | FailedTry:
        """Reserve the node that lacks least; a reservation ends the cycle without a result."""
        ask = candidate.ask
        if not self.state.host.reservations_on or candidate.reserved_node:
            return _FAILED
        if self.now_ns - ask.created_at_ns <= RESERVATION_DELAY_NS:
            return _FAILED
        self.sought_node = True
        if self.waiting.is_unreservable(ask.resource, self.state.node_changes):
            return _FAILED
        node = first_to_reserve(self.state.nodes, ask.resource)
        if node is None:
            self.waiting.note_unreservable(ask.resource, self.state.node_changes)
            return _FAILED
        reason = refusal_of(self.checks, ask, node, allocate=False)
        if isinstance(reason, Pending):
            return PASSED_OVER
        if reason is not None:
            self.has_own_answer = True
            if ask.predicate_class:
                self.mixed = True  # The RM says when it may be allowed.
            else:
                self.denied = True
            return FailedTry(reservation_refused=True)
        return False if reserve(self.state, entry, ask, node, required=False) else _FAILED

    def _preempt(
        self, entry: ApplicationEntry, candidate: Candidate, *, nodes_tried: bool
    ) -> bool | FailedTry:
        """Preempt for a guarantee or by priority, and reserve the room for the ask."""
        state = self.state
        began_ns = state.times.stopwatch_ns()
        node = preempt_for_queue(state, entry, candidate, nodes_tried=nodes_tried, attempts=self.attempts)
        state.times.add(TimedPart.PREEMPTION, began_ns)
        refused_attempt = node if isinstance(node, RefusedAttempt) else None
        if refused_attempt is not None and refused_attempt.is_pending:
            return PASSED_OVER
        if candidate.triggered_preemption:
            self.has_own_answer = True
        elif refused_attempt is not None:
            self.preemption.append(refused_preemption(state, entry, candidate, refused_attempt))
        if refused_attempt is None or refused_attempt.is_made:
            self.notes_before = state.notes.taken  # The attempt is not repeated in the next visit.
        if isinstance(node, RefusedAttempt):
            self.mixed = True
            if node.retry_ns is not None:
                self._wake_at(node.retry_ns)
            return FailedTry(preemption_refused_to_ns=node.refused_to_ns)
        if candidate.reserved_node != node.node_id:
            if candidate.reserved_node:
                unreserve(state, entry, candidate.ask.allocation_key)
            reserve(state, entry, candidate.ask, node, required=False)
        return False
