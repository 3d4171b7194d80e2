"""The visit of one leaf in one cycle, from the leaf down to the ask.

`place_first` comes first: most cycles end with the first ask of the first leaf. `visit_leaf` walks the
applications of a leaf in their order until one gives a result, and otherwise notes the reasons: the
visits of applications are joined to the blockers of the leaf (`licorne.model.scheduling.resting`), which tell
when the leaf is worth another visit.

This is orchestration: unmarked code that calls marked steps. Each step checks again what it relies on and
may decline: quota is checked and charged in one step, room on the node is checked and taken in one step,
and the ask is checked and placed in one step. When a step declines, the steps before it are undone.
The RM's predicates are asked between the steps, never inside one. Where they answer later, the ask is passed
over (`licorne.model.predicates.deferred_checks`).
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from ..applications.ask_walk import RESERVATION_DELAY_NS, AskWalk, Candidate, CandidateKind, FailedTry
from ..applications.effects import ApplicationFacts, ApplicationState
from ..nodes.order import first_to_reserve
from ..predicates.node_checks import NodeSearch, Pending
from ..preemption.guarantee.attempt import Asking, preempt_for_queue
from ..preemption.guarantee.attempt_budget import AttemptBudget, RefusedAttempt
from ..preemption.guarantee.limited import lets_end_inside
from ..queues import quota as queue_quota
from ..queues.application_entry import ApplicationEntry, HeldStart
from ..queues.queue import Queue
from ..queues.sleep import Sleep, Wake
from ..queues.waiting import RestKind, WaitingApplications
from ..resources.resource import Resource, fits_undefined_unlimited
from ..state.charges import held_by_policy, holder_of, user_headroom
from ..state.counters import TimedPart
from ..state.node_windows import window_on_node
from ..state.partition_state import PartitionState
from ..state.placing import count_accepted, report_checks, reserve, unreserve
from ..state.rates import report_refusals
from ..values.allocation import RefusalReason, refused
from .barring import find_bars
from .gang_pass import GangPreemption, GangRefused, GangTry, place_gang
from .giving import PASSED_OVER, must_wait, refusal_of, refusal_of_search, try_place, try_required_node
from .resting import (
    Blocked,
    Rest,
    barred_sizes,
    conditions_in,
    may_run,
    refused_preemption,
    rest_after,
    rest_of_held,
    retries_of_resting,
    starts_or_runs,
    with_limits,
)

_FAILED: Final = FailedTry()
"""A failed try that means nothing for other asks."""

_Rests: TypeAlias = "list[tuple[ApplicationEntry, ApplicationFacts, Rest | None]]"
"""Applications that were tried without result, with their state then, and the changes that may help."""


class _Visit(NamedTuple):
    """The inputs of a visit of a leaf."""

    state: PartitionState
    leaf: Queue
    waiting: WaitingApplications
    now_ns: int
    headroom: Resource | None
    headroom_below_root: Resource | None
    may_preempt: bool
    """Without a guarantee on the path no ask here is entitled to preemption: see `docs/preemption.md`."""
    attempts: AttemptBudget


# --------------------------------------------------------------------------------------- the first ask


def place_first(state: PartitionState, leaf: Queue, now_ns: int) -> bool:
    """Place the first ask in a leaf, if nothing blocks it; otherwise change nothing.

    A visit would choose the same ask. Most visits would end so, and this costs a fraction of one.
    """
    if state.times.detailed:
        return False  # Its parts are timed in a visit.
    changes = state.changes, state.node_changes
    entry = leaf.entries.waiting.first_to_place(state.nodes.closed, changes, now_ns)
    if entry is None or entry.backoff_until_ns is not None:
        return False
    starts = entry.facts.state is ApplicationState.ACCEPTED
    if starts and not (entry.runnable_in_queue and entry.runnable_by_user and all(may_run(state, entry))):
        return False  # A visit reports what has changed about that.
    if (starts or entry.held is not None) and held_by_policy(state, entry) is not None:
        return False
    placed = _place_first_of(state, entry, user_headroom(state, entry))
    if placed and starts:
        count_accepted(entry)
    return placed


def _place_first_of(state: PartitionState, entry: ApplicationEntry, user_room: Resource | None) -> bool:
    """Place the first ask in an application, if neither quotas, nodes nor predicates prevent it.

    Where the RM answers later it is asked; predicates that answer at once are called in a visit alone.
    """
    ask = entry.facts.first
    if ask is None or not fits_undefined_unlimited(user_room, ask.resource):
        return False
    checks = state.node_checks
    if checks is None:
        return try_place(state, entry, ask) is None
    if not checks.answers_later or ask.allocation_key in checks.keys_to_skip():
        return False
    taken = state.notes.taken
    if try_place(state, entry, ask) is None:
        return True
    state.notes.drop_beyond(taken)  # A visit notes the same.
    return False


# --------------------------------------------------------------------------------------------- a leaf


def visit_leaf(state: PartitionState, leaf: Queue, now_ns: int) -> bool | None:
    """Return whether the visit ended the cycle with a result, `None` if it gave none."""
    headroom, below_root = queue_quota.headrooms(leaf)
    may_preempt = state.preemption_enabled and queue_quota.may_preempt(leaf)
    times = state.times
    order_began_ns = times.stopwatch_ns() if times.detailed else None
    waiting = leaf.entries.waiting  # This finds the places of those that have changed.
    if order_began_ns is not None:
        times.add(TimedPart.APPLICATION_ORDER, order_began_ns)
    visit = _Visit(state, leaf, waiting, now_ns, headroom, below_root, may_preempt, AttemptBudget())
    blocked = Blocked(state.notes.taken)
    rests: _Rests = []
    outcome = _visit_applications(visit, blocked, rests)
    waiting = leaf.entries.waiting  # Those that changed get their places.
    if not blocked.is_pending:  # Otherwise the visit is repeated, and notes the same.
        for entry, facts, rest in rests:
            if entry.facts is not facts:
                continue
            if rest is None:
                waiting.wake(entry)
            else:
                waiting.rest(entry, rest.kind, rest.until_ns)
    leaf.entries.end_visit(is_pending=outcome is None and blocked.is_pending)
    if outcome is not None:
        return outcome
    if blocked.is_pending:
        state.notes.drop_beyond(blocked.notes_before)
    else:
        _let_sleep(visit, blocked)
    return None


def _let_sleep(visit: _Visit, blocked: Blocked) -> None:
    """Note after a visit without result until when the leaf may be skipped."""
    state, leaf, waiting = visit.state, visit.leaf, visit.leaf.entries.waiting
    find_bars(state, leaf)
    for retry_ns in retries_of_resting(state, leaf, visit.headroom, visit.now_ns):
        blocked.wake_at(retry_ns)
    failed = tuple(visit.attempts.failed)
    if waiting.waits_for_any_change():
        blocked.wake(Wake.BY_ANY_CHANGE)
    if waiting.is_barred:  # Then nothing that has stopped an application wakes it but its bars and time.
        leaf.entries.sleep = Sleep(state.stamp, blocked.until_ns, Wake.BY_BAR)
        return
    leaf.entries.sleep = Sleep(
        state.stamp,
        blocked.until_ns,
        blocked.wakes,
        placed=state.placed.allocations if waiting.preempting() or failed else None,
        barred=barred_sizes(leaf, visit.headroom),
        failed_attempts=failed,
    )


def _visit_applications(visit: _Visit, blocked: Blocked, rests: _Rests) -> bool | None:
    state, now_ns = visit.state, visit.now_ns
    conditions = conditions_in(state, visit.leaf, visit.headroom, now_ns, visit.attempts)
    for entry in visit.waiting.to_try(with_limits(state, conditions)):
        if not starts_or_runs(state, entry):
            blocked.wake(Wake.BY_ANY_CHANGE)
            rests.append((entry, entry.facts, rest_of_held(state, entry)))
            continue
        if entry.facts.state is ApplicationState.ACCEPTED or entry.held is not None:
            held = held_by_policy(state, entry)
            if held is not None:
                rests.append((entry, entry.facts, _rest_of(held, blocked)))
                continue
        if entry.backoff_until_ns is not None:
            if entry.backoff_until_ns > now_ns:
                blocked.wake_at(entry.backoff_until_ns)
                continue
            entry.backoff_until_ns = None
        tried = Blocked(blocked.notes_before)
        outcome = visit_application(visit, entry, tried, rests)
        if outcome is not None:
            count_accepted(entry)
            return outcome
        blocked.join(tried)
        if must_wait(state):
            break
    return None


def _rest_of(held: HeldStart, blocked: Blocked) -> Rest | None:
    """Return how an application rests that a policy holds: until the time that it has named, or not."""
    if held.wait.until_ns is None:
        blocked.wake(Wake.BY_ANY_CHANGE)
        return None
    return Rest(RestKind((), may_reserve=False), held.wait.until_ns)


# ------------------------------------------------------------------------------------- an application


def visit_application(visit: _Visit, entry: ApplicationEntry, tried: Blocked, rests: _Rests) -> bool | None:
    """Try the asks of an application in their order; return as `visit_leaf` does.

    Args:
        visit: The visit of its leaf.
        entry: The application.
        tried: Gets what stopped it.
        rests: Gets the application with what it rests for, if it has no result.
    """
    state = visit.state
    user_room = user_headroom(state, entry)
    if _place_first(visit, entry, user_room):
        return True
    if must_wait(state):
        tried.is_pending = True
        return None
    visit.leaf.entries.unreported[entry.application_id] = entry
    if entry.facts.gang_waits:
        return _visit_gang(visit, entry, user_room, tried, rests)
    walk = _walk_of(visit, entry, user_room)
    outcome = _try_asks(visit, entry, walk, tried)
    if outcome is not None:
        return outcome
    if walk.backoff_due:
        entry.backoff_until_ns = visit.now_ns + visit.leaf.settings.backoff_delay_ns
        entry.application.asks.back_off(entry.backoff_until_ns)
        state.setbacks.backoffs[visit.leaf.path] += 1
        tried.wake_at(entry.backoff_until_ns)
        tried.notes_before = state.notes.taken  # The application is not visited again until then.
    tried.is_pending = tried.is_pending or walk.passed_over
    tried.wake_at(walk.retry_ns)
    for refusal in walk.refusals:
        tried.note(refusal)
    if walk.bars_required:
        tried.wake(Wake.BY_ANY_CHANGE)
    rest = None
    if not (tried.is_own or walk.passed_over or walk.backoff_count):
        rest = rest_after(
            walk,
            state.nodes.closed,
            sought_node=tried.may_reserve,
            preemption=tried.preemption,
            holder=None if walk.user_headroom is None else holder_of(state, entry),
        )
    if rest is not None or entry.rests_for is not None:
        rests.append((entry, entry.facts, rest))
    return None


def _place_first(visit: _Visit, entry: ApplicationEntry, user_room: Resource | None) -> bool:
    """Place the first ask if nothing blocks it: most visits end so.

    The walk would choose the same ask; this spares the question to the application.
    """
    ask = entry.facts.first
    if ask is None or not fits_undefined_unlimited(visit.headroom, ask.resource):
        return False
    times = visit.state.times
    began_ns = times.stopwatch_ns() if times.detailed else None
    placed = _place_first_of(visit.state, entry, user_room)
    if began_ns is not None:
        times.add(TimedPart.NODE_SEARCH, began_ns)
    return placed


def _walk_of(visit: _Visit, entry: ApplicationEntry, user_room: Resource | None) -> AskWalk:
    state, leaf, checks = visit.state, visit.leaf, visit.state.node_checks
    return AskWalk(
        now_ns=visit.now_ns,
        queue_path=leaf.path,
        queue_headroom=visit.headroom,
        headroom_below_root=visit.headroom_below_root,
        user_name=entry.user.name,
        user_headroom=user_room,
        preemption=visit.may_preempt,
        backoff_count=leaf.settings.backoff_count,
        reservations_on=state.host.reservations_on,
        keys_to_skip=() if checks is None else checks.keys_to_skip(),
        keeps_notes=state.notes.kept,
        preempts_at_limits=visit.may_preempt and lets_end_inside(leaf),
    )


def _visit_gang(
    visit: _Visit, entry: ApplicationEntry, user_room: Resource | None, tried: Blocked, rests: _Rests
) -> bool | None:
    """Place a whole gang in one result, or note what refuses it."""
    may = visit.may_preempt
    preempting = GangPreemption(visit.attempts, may, at_limits=may and lets_end_inside(visit.leaf))
    placed = place_gang(visit.state, entry, visit.headroom, user_room, preempting=preempting)
    if placed is GangTry.PLACED or placed is GangTry.PREPARED:
        return placed is GangTry.PLACED
    if placed is GangTry.LATER:
        tried.is_pending = True
        return None
    assert isinstance(placed, GangRefused), "the other outcomes are above"
    if placed.rest is None or placed.retry_ns is not None:  # It has preempted, or may when it is time.
        tried.wake(Wake.BY_ANY_CHANGE)
    tried.wake_at(placed.retry_ns)
    entry.application.asks.refuse_gang(placed.refusal)
    tried.note(placed.refusal)
    rests.append((entry, entry.facts, placed.rest))
    return None


# --------------------------------------------------------------------------------------------- an ask


def _try_asks(visit: _Visit, entry: ApplicationEntry, walk: AskWalk, tried: Blocked) -> bool | None:
    """Try one ask after the other until one ends the cycle."""
    failed: FailedTry | None = None
    while (candidate := _next(visit.state, entry, walk, failed)) is not None:
        outcome = _try(visit, entry, candidate, tried)
        waits = isinstance(outcome, FailedTry) and outcome.passed_over and must_wait(visit.state)
        if waits or not isinstance(outcome, FailedTry):
            if walk.skipped:
                entry.application.asks.end_walk(walk, candidate.ask.allocation_key)
            tried.is_pending = tried.is_pending or waits
            return None if isinstance(outcome, FailedTry) else outcome
        failed = outcome
    return None


def _next(
    state: PartitionState, entry: ApplicationEntry, walk: AskWalk, failed: FailedTry | None
) -> Candidate | None:
    candidate = entry.application.asks.next_candidate(walk, failed)
    if walk.notes:
        state.notes.take(entry.application, walk)
    if walk.checks:
        report_checks(state, walk)
    return candidate


def _try(visit: _Visit, entry: ApplicationEntry, candidate: Candidate, tried: Blocked) -> bool | FailedTry:
    """Return whether the try ended the cycle with a result, or why it did not end it."""
    kind = candidate.kind
    if kind is CandidateKind.NODES:
        return _try_nodes(visit, entry, candidate, tried)
    if kind is CandidateKind.REQUIRED_NODE:
        return try_required_node(visit.state, entry, candidate, visit.now_ns)
    if kind is CandidateKind.RESERVATION:
        return _try_reservation(visit, entry, candidate, tried)
    return _preempt(visit, entry, candidate, tried, nodes_tried=False)


def _try_nodes(
    visit: _Visit, entry: ApplicationEntry, candidate: Candidate, tried: Blocked
) -> bool | FailedTry:
    times = visit.state.times
    if not times.detailed:
        outcome = _search_nodes(visit.state, entry, candidate)
    else:
        began_ns = times.stopwatch_ns()
        outcome = _search_nodes(visit.state, entry, candidate)
        times.add(TimedPart.NODE_SEARCH, began_ns)
    return _make_room(visit, entry, candidate, outcome, tried) if isinstance(outcome, NodeSearch) else outcome


def _search_nodes(
    state: PartitionState, entry: ApplicationEntry, candidate: Candidate
) -> bool | FailedTry | NodeSearch:
    """Return the outcome; if no node takes the ask, what the search found."""
    search = try_place(state, entry, candidate.ask)
    if search is None:
        return True
    if search.pending:
        return PASSED_OVER
    if search.node is None:
        report_refusals(state, entry.application, candidate.ask, search.refusals)
    return search


def _make_room(
    visit: _Visit, entry: ApplicationEntry, candidate: Candidate, search: NodeSearch, tried: Blocked
) -> bool | FailedTry:
    """Reserve a node, or preempt, for an ask that no node takes."""
    ask, denied = candidate.ask, search.denied
    holds_for_shape = search.for_class if denied else ask.resource in visit.state.nodes.closed
    failed = _try_reservation(visit, entry, candidate, tried)
    if not isinstance(failed, FailedTry) or failed.passed_over:
        return failed
    refused_to_ns = None
    if visit.may_preempt and ask.allow_preempt_other:
        preempted = _preempt(visit, entry, candidate, tried, nodes_tried=True)
        if not isinstance(preempted, FailedTry) or preempted.passed_over:
            return preempted
        refused_to_ns = preempted.preemption_refused_to_ns
    if denied:
        refusal = refusal_of_search(ask, search, visit.now_ns)
    else:
        until_ns = _reservation_due(visit, candidate)
        refusal = refused(RefusalReason.NO_NODE_FITS, "", ask, None, until_ns=until_ns)
    return FailedTry((refusal,), holds_for_shape, failed.reservation_refused, refused_to_ns)


def _reservation_due(visit: _Visit, candidate: Candidate) -> int | None:
    due_ns = candidate.ask.created_at_ns + RESERVATION_DELAY_NS + 1
    return due_ns if visit.state.host.reservations_on and due_ns > visit.now_ns else None


# ------------------------------------------------------------------------- reservations and preemption


def _try_reservation(
    visit: _Visit, entry: ApplicationEntry, candidate: Candidate, tried: Blocked
) -> bool | FailedTry:
    """Reserve the node that lacks least; a reservation ends the cycle without a result."""
    ask, state, waiting = candidate.ask, visit.state, visit.waiting
    if not state.host.reservations_on or candidate.reserved_node:
        return _FAILED
    if visit.now_ns - ask.created_at_ns <= RESERVATION_DELAY_NS:
        return _FAILED
    tried.may_reserve = True
    if waiting.is_unreservable(ask.resource, state.node_changes):
        return _FAILED
    node = first_to_reserve(state.nodes, ask.resource)
    if node is None:
        waiting.note_unreservable(ask.resource, state.node_changes)
        return _FAILED
    if state.windows.all and window_on_node(state, ask, node) is not None:
        tried.is_own = True
        tried.wake(Wake.BY_ANY_CHANGE)
        return FailedTry(reservation_refused=True)
    reason = refusal_of(state, ask, node, allocate=False)
    if isinstance(reason, Pending):
        return PASSED_OVER
    if reason is not None:
        tried.is_own = True  # With a class the RM reports when it may be allowed.
        tried.wake(Wake.BY_ANY_CHANGE if ask.predicate_class else Wake.IN_EACH_CYCLE)
        return FailedTry(reservation_refused=True)
    return False if reserve(state, entry, ask, node, required=False) else _FAILED


def _preempt(
    visit: _Visit, entry: ApplicationEntry, candidate: Candidate, tried: Blocked, *, nodes_tried: bool
) -> bool | FailedTry:
    """Preempt for a guarantee or by priority, and reserve the room for the ask."""
    state = visit.state
    began_ns = state.times.stopwatch_ns()
    node = preempt_for_queue(Asking(state, entry, candidate, nodes_tried), visit.attempts)
    state.times.add(TimedPart.PREEMPTION, began_ns)
    refused_attempt = node if isinstance(node, RefusedAttempt) else None
    if refused_attempt is not None and refused_attempt.is_pending:
        return PASSED_OVER
    if candidate.triggered_preemption:
        tried.is_own = True
    elif refused_attempt is not None:
        tried.preemption.append(refused_preemption(state, entry, candidate, refused_attempt))
    if refused_attempt is None or refused_attempt.is_made:
        tried.notes_before = state.notes.taken  # The attempt is not repeated in the next visit.
    if isinstance(node, RefusedAttempt):
        tried.wake(Wake.BY_ANY_CHANGE)
        tried.wake_at(node.retry_ns)
        return FailedTry(preemption_refused_to_ns=node.refused_to_ns)
    if candidate.reserved_node != node.node_id:
        if candidate.reserved_node:
            unreserve(state, entry, candidate.ask.allocation_key)
        reserve(state, entry, candidate.ask, node, required=False)
    return False
