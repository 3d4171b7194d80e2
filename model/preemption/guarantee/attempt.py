"""Preemption for a guarantee, or inside a leaf: the attempt, from the first check to the last act.

The parts are in modules by subject: `model.state.rates` (the rate of attempts), `candidate_victims` (the
possible victims), `ledger` (the arithmetic), `candidate_nodes` and `nodes` (the nodes) and `decision`. They
decide without changing anything; this module carries out a decision as a whole, or not at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, final

from ...applications.ask_walk import Candidate, CandidateKind
from ...applications.pending_asks import CHECK_INTERVAL_NS, EVER_NS
from ...nodes.entry import NodeEntry
from ...nodes.topology import Domains
from ...predicates.node_checks import NodeChecks
from ...queues.application_entry import ApplicationEntry
from ...resources.resource import Resource, fits, total_of
from ...state.partition_state import PartitionState
from ...state.placing import unreserve
from ...state.preemption_log import Overdraft, PreemptionRecord
from ...state.rates import AttemptShape, change_stamp, due_ns
from ...values.allocation import Ask
from ..acts import FOR_ASK, by_ask, ending_of, mark_all, release_all, remember, repeats, report_preempted
from ..protection import Protected, ProtectedVictims, Protection, sparing
from ..victim_orders import measure_in
from ..victims import Victim, orders_to_try, queue_order
from .attempt_budget import AttemptBudget, NoPreemption, RefusedAttempt, preempting_ask
from .candidate_nodes import find_candidate_nodes, yielding_nodes, yielding_nodes_inside
from .candidate_victims import CandidateVictims, collect_victims
from .decision import (
    PreemptionPlan,
    PreemptionView,
    PromisesOfOthers,
    decide,
    lack_of_queues,
    may_be_entitled,
)
from .ledger import QueueFactsOf, committed_resources, unbound_facts
from .limited import (
    coming_to,
    lets_end_inside,
    limited_holder,
    limits_without_room,
    of_holders,
    within_limits_if_ended,
)
from .records import record_of

NO_HELP: Final = NoPreemption.NO_NODE.text
PRECONDITIONS: Final = "Preemption preconditions failed"
EXHAUSTED: Final = "Preemption max attempts exhausted"


class Asking(NamedTuple):
    """An ask that may preempt."""

    state: PartitionState
    entry: ApplicationEntry
    candidate: Candidate
    """No room has been found for it and, with `nodes_tried`, no node to reserve."""
    nodes_tried: bool
    """The queues have room for the ask, and every node has been tried without result."""
    members: tuple[Ask, ...] = ()
    """The members of a gang that is placed as a whole; the candidate is their sum (`as_one`)."""
    promises: PromisesOfOthers | None = None
    """The promises that it may not delay, below a queue with backfilling; reservations end with claims."""


def preempt_for_queue(asking: Asking, attempts: AttemptBudget) -> NodeEntry | RefusedAttempt:
    """Ask the RM to end allocations for an ask whose queue is entitled to more, or prefers the ask.

    Args:
        asking: The ask.
        attempts: The remaining budget of this visit of the leaf.

    Returns:
        The node to reserve for the ask, which may be a node that it has preempted on and lost; or why nothing
        was preempted. The claim of a gang has its nodes.
    """
    state, entry, candidate = asking.state, asking.entry, asking.candidate
    now_ns = state.now_ns()
    lost = _lost_node(asking)
    if lost is not None:
        return lost
    refused = _refusal(asking, attempts, now_ns)
    if refused is not None:
        _note(state, entry, candidate, refused.text)
        return refused
    attempts.left -= 1
    found = _attempt(asking, attempts.victims)
    if isinstance(found, NodeEntry):
        return found
    reason = NoPreemption.PROTECTED if isinstance(found, ProtectedVictims) else found
    if reason is NoPreemption.PENDING:
        return RefusedAttempt(reason.text, is_made=True, is_pending=True)
    if reason is NoPreemption.TOO_LATE:
        attempts.victims.clear()  # Another thread has ended some of them.
    holds_ns = _holds_until_ns(state, found, now_ns)
    retry_ns = min(holds_ns, now_ns + CHECK_INTERVAL_NS)
    refused_to_ns = None
    if reason.holds_for_shape and not asking.members:
        shape = _shape(asking)
        state.failed_preemptions.note(shape, now_ns, change_stamp(state), holds_ns)
        attempts.failed[preempting_ask(candidate, shape.holder)] = None
        refused_to_ns = _tried_for_ns(entry, candidate, now_ns)
    checked_ns = retry_ns - CHECK_INTERVAL_NS
    entry.application.asks.note_preemption(candidate.ask.allocation_key, checked_ns, triggered=False)
    _note(state, entry, candidate, reason.text)
    return RefusedAttempt(reason.text, retry_ns, refused_to_ns, is_made=True)


def _holds_until_ns(state: PartitionState, found: NoPreemption | ProtectedVictims, now_ns: int) -> int:
    """Return the time until which a failed attempt stays valid if nothing changes.

    That is the end of a protection, unless time may change something else earlier: reservations and claims
    also end after a time.
    """
    if not isinstance(found, ProtectedVictims):
        return now_ns + CHECK_INTERVAL_NS
    until_ns = found.first.until_ns
    if state.reservations or state.claims.by_key:
        return min(until_ns, now_ns + CHECK_INTERVAL_NS)
    return until_ns


def _refusal(asking: Asking, attempts: AttemptBudget, now_ns: int) -> RefusedAttempt | None:
    """Return why no attempt is made now, `None` if one is due. This is cheap: most asks end here."""
    state, entry, candidate = asking.state, asking.entry, asking.candidate
    ask = candidate.ask
    if not ask.allow_preempt_other or ask.required_node:
        return RefusedAttempt(PRECONDITIONS, refused_to_ns=EVER_NS)
    if candidate.triggered_preemption and not _may_try_again(asking):
        return RefusedAttempt(PRECONDITIONS)
    due = due_ns(candidate, entry.queue.settings.preemption_delay_ns)
    if now_ns < due:
        # The following ones are younger.
        refused_to_ns = EVER_NS if candidate.preemption_checked_ns is None else None
        return RefusedAttempt(PRECONDITIONS, due, refused_to_ns)
    if attempts.left <= 0:
        return RefusedAttempt(EXHAUSTED, now_ns, EVER_NS, is_due=True)
    shape = _shape(asking)
    retry_ns = None
    if not asking.members:
        retry_ns = state.failed_preemptions.until_ns(shape, now_ns, change_stamp(state))
    if retry_ns is None:
        return None
    attempts.failed[preempting_ask(candidate, shape.holder)] = None
    return RefusedAttempt(NO_HELP, retry_ns, _tried_for_ns(entry, candidate, now_ns), is_due=True)


def _tried_for_ns(entry: ApplicationEntry, candidate: Candidate, now_ns: int) -> int | None:
    """Return the creation time up to which a failed attempt holds for other asks that are due as well."""
    if candidate.reserved_node:
        return None
    return now_ns - entry.queue.settings.preemption_delay_ns


def _may_try_again(asking: Asking) -> bool:
    """Return whether an ask may preempt a second time.

    Its claim must be over, and the room that its victims gave back must be used by others: the node that they
    were to free for it, or the room of a queue that had enough at the time. If it has both, the ask only
    waits for the agreement of the RM's predicates.
    """
    state, entry, candidate = asking.state, asking.entry, asking.candidate
    ask = candidate.ask
    if state.claims.find(ask.allocation_key) is not None:
        return False
    before = state.preemptions.last_for(ask.allocation_key, entry.application_id)
    if before is None or not asking.nodes_tried or candidate.reserved_node != before.node_id:
        return True
    node = state.nodes.get(before.node_id)
    return node is None or not fits(node.available, ask.resource)


def _lost_node(asking: Asking) -> NodeEntry | None:
    """Return the node that victims of the ask free for it, `None` if that node is reserved or does not exist.

    An ask that needs the node takes the reservation, and may be placed or withdrawn while they end.
    """
    state, entry, candidate = asking.state, asking.entry, asking.candidate
    ask = candidate.ask
    if not candidate.triggered_preemption or candidate.reserved_node:
        return None
    before = state.preemptions.last_for(ask.allocation_key, entry.application_id)
    if before is None or state.claims.find(ask.allocation_key) is None:
        return None
    node = state.nodes.get(before.node_id)
    usable = node is not None and node.schedulable and not node.reserved and fits(node.capacity, ask.resource)
    return node if usable else None


def _shape(asking: Asking) -> AttemptShape:
    state, entry, candidate = asking.state, asking.entry, asking.candidate
    ask, holder = candidate.ask, limited_holder(state, entry, candidate)
    path, node_id = entry.queue.path, candidate.reserved_node
    return AttemptShape(path, ask.resource, ask.priority, asking.nodes_tried, node_id, holder)


def _note(state: PartitionState, entry: ApplicationEntry, candidate: Candidate, text: str) -> None:
    """Note why no attempt is made, unless the ask has preempted and waits for its victims."""
    key = candidate.ask.allocation_key
    if state.claims.find(key) is not None:
        return
    for each in (NO_HELP,) if text == NO_HELP else (text, NO_HELP):
        state.notes.note(entry.application, key, each, state.now_ns(), of_attempt=True)


# ------------------------------------------------------------------------------------- the attempt


def _attempt(
    asking: Asking, victims: dict[str, tuple[Victim, ...]]
) -> NodeEntry | NoPreemption | ProtectedVictims:
    """Decide, and carry out the decision; return the node to reserve, or why nothing was preempted."""
    state = asking.state
    decided = _decide(asking, victims, state.node_checks)
    if not isinstance(decided, _Decided):
        return decided
    plan = decided.plan
    node = state.nodes.get(plan.node_id)
    if node is None or mark_all(plan.victims) is not None:
        return NoPreemption.TOO_LATE
    _carry_out(asking, decided)
    for node_id in decided.yielding.intersection(plan.node_ids):
        for reserved in list(state.reserved.on_node(node_id)):
            unreserve(state, reserved.entry, reserved.ask.allocation_key)
    return node


def plan_now(asking: Asking) -> PreemptionRecord | NoPreemption | ProtectedVictims:
    """Return the record that a preemption decided now would leave, or why nothing would be preempted.

    Nothing is changed, and the RM's predicates are not asked.
    """
    decided = _decide(asking, {}, None)
    return decided.record if isinstance(decided, _Decided) else decided


class _Decided(NamedTuple):
    """A decision that is ready to be carried out."""

    view: PreemptionView
    plan: PreemptionPlan
    record: PreemptionRecord
    yielding: frozenset[str]


def _decide(
    asking: Asking, victims: dict[str, tuple[Victim, ...]], checks: NodeChecks | None
) -> _Decided | NoPreemption | ProtectedVictims:
    """Decide for the guarantee, then inside the leaf if that has no result and the leaf allows it.

    A guarantee does not serve an ask above the limits of its user or group.
    """
    state, entry, candidate = asking.state, asking.entry, asking.candidate
    queue, ask = entry.queue, candidate.ask
    is_limited = candidate.kind is CandidateKind.LIMIT
    facts_of = None if is_limited else _facts_if_entitled(state, entry, ask)
    found: _Decided | NoPreemption | ProtectedVictims = NoPreemption.GUARANTEE
    if facts_of is not None:
        found = _Moment(asking, facts_of).decided(victims, checks)
    if not lets_end_inside(queue) or isinstance(found, _Decided) or found is NoPreemption.PENDING:
        return found
    if facts_of is None:
        facts_of = QueueFactsOf(queue, committed_resources(state, queue, ask.allocation_key))
    inside = _Moment(asking, facts_of, is_inside=True).decided(victims, checks)
    return inside if isinstance(inside, _Decided) else _what_to_wait_for(found, inside)


def _what_to_wait_for(
    found: NoPreemption | ProtectedVictims, inside: NoPreemption | ProtectedVictims
) -> NoPreemption | ProtectedVictims:
    """Return the refusal that determines the next attempt; time alone ends protection and repetition."""
    if isinstance(found, ProtectedVictims) and isinstance(inside, ProtectedVictims):
        return min(found, inside, key=lambda each: each.first.until_ns)
    for one, other in ((found, inside), (inside, found)):
        if isinstance(one, NoPreemption) and isinstance(other, ProtectedVictims):
            return other if one.holds_for_shape and one is not NoPreemption.REPEATS else one
    return inside if found is NoPreemption.GUARANTEE or inside is NoPreemption.PENDING else found


def _must_pause(state: PartitionState, record: PreemptionRecord) -> bool:
    repetition = repeats(state, record)
    return repetition is not None and repetition.until_ns > record.time_ns


def _facts_if_entitled(state: PartitionState, entry: ApplicationEntry, ask: Ask) -> QueueFactsOf | None:
    """Return the facts of the queues, `None` if the queue of the ask cannot be entitled to it.

    Commitments to other asks only raise the use of its queue. Adding them up takes most of the time, and most
    asks fail without it.
    """
    queue = entry.queue
    if not may_be_entitled(QueueFactsOf(queue)(queue), ask):
        return None
    facts_of = QueueFactsOf(queue, committed_resources(state, queue, ask.allocation_key))
    return facts_of if may_be_entitled(facts_of(queue), ask) else None


@final
class _Moment:
    """An ask and the partition at the moment of an attempt."""

    def __init__(self, asking: Asking, facts_of: QueueFactsOf, *, is_inside: bool = False) -> None:
        state, entry, candidate, self._nodes_tried, self._members, self._promises = asking
        self._state = state
        self._entry = entry
        self._candidate = candidate
        self._facts_of = facts_of
        self._is_inside = is_inside
        is_limited = candidate.kind is CandidateKind.LIMIT
        self._limits = limits_without_room(state, entry, candidate.ask) if is_limited else ()
        self._yielding = (
            yielding_nodes_inside(state, entry.queue, candidate.ask)
            if is_inside
            else yielding_nodes(state, candidate.ask, facts_of.committed)
        )

    def decided(
        self, victims: dict[str, tuple[Victim, ...]], checks: NodeChecks | None
    ) -> _Decided | NoPreemption | ProtectedVictims:
        """Return a decision with its record, or why nothing is preempted; for `victims` see `view`."""
        if not within_limits_if_ended(self._limits):
            return NoPreemption.NO_LOWER
        view = self.view(victims)
        plan = self.decide(view, checks)
        if plan is NoPreemption.NO_LOWER and self._limits:
            return NoPreemption.NO_LOWER_OF_HOLDER
        if not isinstance(plan, PreemptionPlan):
            return plan
        record = record_of(view, plan, self._entry, self._state.now_ns(), self._facts_of)
        if _must_pause(self._state, record):
            return NoPreemption.REPEATS
        return _Decided(view, plan, record, self._yielding)

    def view(self, victims: dict[str, tuple[Victim, ...]]) -> PreemptionView:
        """Return all that the decision depends on; `victims` has the known victims of leaves, and grows."""
        queue, ask = self._entry.queue, self._candidate.ask
        candidates = collect_victims(
            queue,
            ask,
            self._facts_of,
            victims,
            is_inside=self._is_inside,
            protection=Protection(
                queue,
                self._state.now_ns(),
                for_guarantee=True,
                disruption=self._state.disruption,
                policies=sparing(self._state),
            ),
            measure=measure_in(self._state),
        )
        return self._view_of(of_holders(self._state, candidates, self._limits))

    def decide(
        self, view: PreemptionView, checks: NodeChecks | None
    ) -> PreemptionPlan | NoPreemption | ProtectedVictims:
        """Decide; if only protection prevents a preemption, the answer is that it does."""
        plan = decide(view, checks)
        if plan is NoPreemption.WOULD_DELAY and self._promises is not None:
            others = self._view_of(view.candidates.without(self._promises.awaited()))
            found = decide(others, checks)
            if isinstance(found, PreemptionPlan) or found is NoPreemption.PENDING:
                view, plan = others, found
        protected = view.candidates.protected
        if isinstance(plan, PreemptionPlan):
            return self._within_budgets(plan, view, checks)
        if plan is NoPreemption.PENDING or not protected:
            return plan
        later = decide(self._view_of(view.candidates.without_protection()), None)
        if isinstance(later, NoPreemption):
            return plan
        return ProtectedVictims.of(protected, len(view.candidates.victims))

    def _within_budgets(
        self, plan: PreemptionPlan, view: PreemptionView, checks: NodeChecks | None
    ) -> PreemptionPlan | NoPreemption | ProtectedVictims:
        """Return a plan, one that takes less from queues at their budgets, or why nothing is preempted."""
        overdraft = self._overdraft(plan.victims)
        if overdraft is None:
            return plan
        possible = view.candidates.victims
        for ordered in orders_to_try(possible, view.ask.resource):
            kept = self._as_many_as_may_end(ordered)
            other = decide(self._view_of(view.candidates._replace(victims=kept)), checks)
            if other is NoPreemption.PENDING or isinstance(other, PreemptionPlan):
                return other
        if overdraft.until_ns is None:
            return NoPreemption.TOO_MANY
        queue, until_ns = overdraft.queue, overdraft.until_ns
        inside = [
            Protected(victim, queue, until_ns, is_budget=True)
            for victim in possible
            if queue in victim.queue.above
        ]
        return ProtectedVictims.of(inside, len(possible) - len(inside))

    def _as_many_as_may_end(self, victims: Sequence[Victim]) -> tuple[Victim, ...]:
        """Return the first victims that their queues may lose together, in the order of queues."""
        kept: list[Victim] = []
        counted: list[Victim] = []
        for victim in victims:
            if all(level.settings.victims_max is None for level in victim.queue.above):
                kept.append(victim)
            elif self._overdraft((*counted, victim)) is None:
                counted.append(victim)
        return tuple(sorted((*kept, *counted), key=queue_order))

    def _overdraft(self, victims: Sequence[Victim]) -> Overdraft | None:
        return self._state.disruption.overdraft((each.queue for each in victims), self._state.now_ns())

    def _view_of(self, candidates: CandidateVictims) -> PreemptionView:
        state, queue, ask, facts_of = self._state, self._entry.queue, self._candidate.ask, self._facts_of
        if state.whole_jobs_first:
            candidates = candidates.by_whole_jobs(ask.resource)
        candidate_nodes = find_candidate_nodes(
            state,
            ask,
            candidates,
            reserved_node=self._candidate.reserved_node,
            nodes_tried=self._nodes_tried,
            yielding=self._yielding,
            members=self._members,
        )
        levels: list[tuple[Resource | None, Resource]]
        levels = [(limit.limit, limit.used) for limit in self._limits]
        levels += [(level.maximum, facts_of.committed.most_of(level)) for level in queue.above]
        lack = lack_of_queues(ask, levels)
        unclaimed = state.claims.unclaimed() if lack else ()
        if unclaimed:
            coming = [coming_to(state, limit, unclaimed) for limit in self._limits]
            coming += [
                total_of(each.resource for each in unclaimed if level in each.queue.above)
                for level in queue.above
            ]
            less = lack_of_queues(ask, levels, coming)
            unclaimed = () if less == lack else unclaimed
            lack = less
        return PreemptionView(
            ask=ask,
            leaf=unbound_facts(queue) if self._is_inside else facts_of(queue),
            lack=lack,
            candidates=candidates,
            candidate_nodes=candidate_nodes,
            nodes_tried=self._nodes_tried,
            inside=queue if self._is_inside else None,
            limits=self._limits,
            unclaimed=unclaimed,
            members=self._members,
            promises=self._promises,
            domains=_needed_domains(state, self._entry) if self._members else None,
        )


def _needed_domains(state: PartitionState, entry: ApplicationEntry) -> Domains | None:
    """Return the domains of nodes that a gang needs; those that it prefers do not count."""
    terms = entry.application.gang_settings.domains
    if terms is None or not terms.needed:
        return None
    return state.topology.domains(terms._replace(preferred="", balanced=False))


def _carry_out(asking: Asking, decided: _Decided) -> None:
    state, entry = asking.state, asking.entry
    view, plan, record = decided.view, decided.plan, decided.record
    key, now_ns = view.ask.allocation_key, record.time_ns
    release_all(state, plan.victims, f"{FOR_ASK}{key}")
    report_preempted(state, plan.victims, by_ask(view.ask, entry))
    for ask in view.asks:
        entry.application.asks.note_preemption(ask.allocation_key, now_ns, triggered=True)
    node_of = {ask.allocation_key: node_id for ask, node_id in zip(view.asks, plan.node_ids, strict=True)}
    ending = [*ending_of(plan.victims), *plan.taken_over]
    ends_reservations = bool(asking.members) or asking.promises is not None
    state.claims.begin(entry, view.asks, ending, now_ns, node_of, ends_reservations=ends_reservations)
    remember(state, record)
    state.disruption.note((victim.queue for victim in plan.victims), now_ns)
