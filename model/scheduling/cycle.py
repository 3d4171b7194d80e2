"""The scheduling cycle of a partition: at most one result, or one in each of several threads.

Three passes, the first that gives a result ends the cycle: asks with a reservation, members that replace
placeholders, and the regular pass. The regular pass walks the leaves in their order, in each the
applications in theirs, in each the asks in theirs, and for each the nodes in theirs.

Cycles that share a partition do only what most cycles do: place the first ask in a leaf where
nothing blocks it. Each cycle claims its leaf, with the applications in it. The common parts of leaves
are changed in small atomic steps of one object each: the limits of users check and count, a queue of the path
checks its maximum and charges, the node order finds room and takes it. When a later step declines, the steps
before it are undone.

A step may decline because of what another thread is about to undo. So nothing is concluded here from a
declined step: no leaf is skipped afterwards, no application backs off, no ask is refused. That, and all that
concerns more than one leaf (reservations, swaps, preemption, lending, maxima of applications), is left to a
cycle that has the partition alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from enum import Enum
from typing import TypeVar

from ..applications.effects import ApplicationState
from ..nodes.order import forget_closed
from ..predicates.avoided_nodes import AvoidedNodes
from ..queues import quota as queue_quota
from ..queues.application_entry import ApplicationEntry
from ..queues.queue import Queue
from ..queues.sleep import Sleep, Wake
from ..queues.tree import awake_in_order
from ..resources.resource import fits_undefined_unlimited, is_any_positive
from ..state.counters import TimedPart
from ..state.partition_state import PartitionState
from ..state.placing import count_accepted, drop_left_reserved, finish_placing, set_runnable
from ..values.allocation import Allocation, Ask
from ..values.states import ObjectState
from .barring import doubt_freed, is_barred
from .giving import must_wait
from .leaf_visit import place_first, visit_leaf
from .planned_walk import PlannedWalk
from .reserved_pass import place_reserved, replace_placeholder
from .resting import conditions_in, may_hold_starts, retries_of_resting

T = TypeVar("T")


class CycleOutcome(Enum):
    """The result of one cycle."""

    NOTHING = "nothing changed"
    PREPARED = "a node was reserved, or releases were asked for"
    RESULT = "something was placed or replaced"


def run_cycle(state: PartitionState) -> CycleOutcome:
    """Run one cycle."""
    checks = state.node_checks
    if checks is None:
        return _run_passes(state)
    checks.begin(state.now_ns())
    if isinstance(checks, AvoidedNodes):
        state.changes += checks.ended
        checks.ended = 0
        if checks.are_none:
            state.node_checks = checks.checks
    state.notes.begin()
    outcome = _run_passes(state)
    changed = outcome is not CycleOutcome.NOTHING
    state.notes.count(repeats=not changed and bool(checks.keys_to_skip()))
    checks.end(changed=changed)
    return outcome


def _run_passes(state: PartitionState) -> CycleOutcome:
    if is_idle(state):
        return CycleOutcome.NOTHING
    times = state.times
    began_ns = times.begin()
    outcome = _first_result(state)
    times.add(TimedPart.CYCLE, began_ns)
    return outcome


def _first_result(state: PartitionState) -> CycleOutcome:
    if state.claims.by_key and state.claims.end_due(state.now_ns()):
        state.changes += 1
    if state.claims.left_reserved:
        drop_left_reserved(state)
    if len(state.reserved.by_key) and _timed(state, TimedPart.RESERVED, place_reserved):
        return CycleOutcome.RESULT
    if must_wait(state):  # Also where questions of cycles before this one are open.
        return CycleOutcome.NOTHING
    if state.placed.placeholders:
        if _timed(state, TimedPart.PLACEHOLDER, replace_placeholder):
            return CycleOutcome.RESULT
        if must_wait(state):
            return CycleOutcome.NOTHING
    return _timed(state, TimedPart.REGULAR, _regular)


def _timed(state: PartitionState, part: TimedPart, run: Callable[[PartitionState], T]) -> T:
    """Run a part of the cycle; time it if the parts of this cycle are timed."""
    times = state.times
    if not times.detailed:
        return run(state)
    began_ns = times.stopwatch_ns()
    result = run(state)
    times.add(part, began_ns)
    return result


def is_idle(state: PartitionState) -> bool:
    """Return whether there is nothing to place, nowhere to place it, or the RM takes nothing new."""
    root = state.tree.root
    if root.maximum is None or state.state is ObjectState.STOPPED:
        return True
    return not is_any_positive(root.pending) or state.host.placement_halt() is not None


def _regular(state: PartitionState) -> CycleOutcome:
    now_ns = state.host.now_ns()
    if len(state.nodes.closed) > state.nodes.closed_max:
        forget_closed(state.nodes, {size for queue in state.tree for size in queue.entries.sizes})
    order_began_ns = state.times.stopwatch_ns() if state.times.detailed else None
    skipped: list[Queue] = []
    stamp = None
    outcome = CycleOutcome.NOTHING
    planned = PlannedWalk(state, now_ns) if state.ends.is_on else None
    for leaf in _leaves(state, now_ns):
        if order_began_ns is not None:
            state.times.add(TimedPart.QUEUE_ORDER, order_began_ns)
            order_began_ns = None
        if planned is not None and planned.visits(leaf):
            if planned.is_over:
                break
            continue
        if leaf.entries.sleep is not None and may_skip(state, leaf, leaf.entries.sleep, now_ns):
            stamp = stamp or state.stamp
            skipped.append(leaf)
            continue
        tried = _outcome_of(state, leaf, now_ns)
        if tried is not None:
            outcome = tried
            break
    if planned is not None and outcome is CycleOutcome.NOTHING and planned.finish():
        outcome = CycleOutcome.RESULT
    if stamp is not None and stamp == state.stamp:  # Nothing has changed since the first was skipped.
        state.tree.root.awake.sleep(skipped, stamp)
    return outcome


def _outcome_of(state: PartitionState, leaf: Queue, now_ns: int) -> CycleOutcome | None:
    """Try a leaf; return how that ends the cycle, `None` if it does not end it."""
    placed = place_first(state, leaf, now_ns)
    if placed or must_wait(state):
        leaf.entries.end_visit(is_pending=not placed)
        return CycleOutcome.RESULT if placed else CycleOutcome.NOTHING
    result = visit_leaf(state, leaf, now_ns)
    if result is not None:
        return CycleOutcome.RESULT if result else CycleOutcome.PREPARED
    return CycleOutcome.NOTHING if must_wait(state) else None


def _leaves(state: PartitionState, now_ns: int) -> Iterator[Queue]:
    """Walk the leaves that do not sleep, in the order of visits."""
    if state.tree.bars.freed or state.tree.bars.open or state.tree.bars.gone or state.nodes.opened:
        doubt_freed(state)
    awake = state.tree.root.awake
    if awake.asleep:
        awake.look(state.stamp, now_ns)
        if awake.asleep:
            return awake_in_order(state.tree)
    return state.tree.leaves_in_order()


def _may_preempt_now(state: PartitionState, leaf: Queue, sleep: Sleep, now_ns: int) -> bool:
    """Return whether an attempt to preempt may be repeated, since something was placed: it may be a victim.

    If none may be yet, it is noted when time lets one.
    """
    headroom = queue_quota.headroom(leaf)
    retries = retries_of_resting(state, leaf, headroom, now_ns, sleep.failed_attempts)
    retry_ns = min(retries, default=None)
    sleep.placed = state.placed.allocations
    if retry_ns is None:
        return False
    if sleep.until_ns is None or retry_ns < sleep.until_ns:
        sleep.until_ns = retry_ns
    return retry_ns <= now_ns


def may_skip(state: PartitionState, leaf: Queue, sleep: Sleep, now_ns: int) -> bool:
    """Return whether nothing has changed for a leaf whose last walk was without result."""
    stamp, before = state.stamp, sleep.stamp
    if stamp[1] != before[1] or sleep.ends(now_ns):
        return False
    if sleep.wakes is Wake.BY_BAR:
        return is_barred(state, leaf, sleep, stamp)
    if sleep.wakes is Wake.BY_ANY_CHANGE:
        if sleep.stamp != state.stamp:
            return False
        return sleep.placed in {None, state.placed.allocations} or not _may_preempt_now(
            state, leaf, sleep, now_ns
        )
    sizes, barred = leaf.entries.sizes, sleep.barred
    if barred and stamp[:3] != before[:3]:  # Otherwise no headroom has grown.
        room = queue_quota.headroom(leaf)
        for size in sizes:
            if size in barred and fits_undefined_unlimited(room, size):
                return False
        sleep.stamp = state.stamp
    closed = state.nodes.closed
    for size in sizes:  # noqa: SIM110 - a generator takes three times as long, and each cycle asks
        if size not in barred and size not in closed:
            return False
    return True


class ConcurrentOutcome(Enum):
    """The result of an attempt at concurrent placement."""

    PLACED = "an ask was placed"
    TAKEN = "whatever may be placed is in leaves that other threads have"
    ALONE = "to say more takes a cycle that has the partition alone"


def place_concurrently(state: PartitionState) -> ConcurrentOutcome:
    """Place the first ask of the first leaf that no other thread has claimed."""
    if is_idle(state) or state.node_checks is not None or state.class_orders is not None:
        return ConcurrentOutcome.ALONE
    if (
        state.reservations
        or state.claims.by_key
        or state.placed.placeholders
        or state.ends.is_on
        or state.tree.root.lending
        or state.tree.bars.freed
        or state.nodes.opened
    ):
        return ConcurrentOutcome.ALONE
    now_ns = state.now_ns()
    awake, stamp = state.tree.root.awake, state.stamp
    taken = skipped = False
    for leaf in state.tree.leaves_snapshot():
        if not leaf.try_claim():
            taken = True
            continue
        try:
            if not awake.sleeps_on(leaf, stamp, now_ns):
                return _place_first(state, leaf)
            skipped = True
        finally:
            leaf.unclaim()
    # Two threads that have each tried a leaf may each have skipped that of the other: then both go on.
    return ConcurrentOutcome.TAKEN if taken and not skipped else ConcurrentOutcome.ALONE


def _place_first(state: PartitionState, leaf: Queue) -> ConcurrentOutcome:
    """Place the first ask in a leaf."""
    entry = _first(state, leaf)
    placed = entry is not None and _place(state, entry)
    return ConcurrentOutcome.PLACED if placed else ConcurrentOutcome.ALONE


def _first(state: PartitionState, leaf: Queue) -> ApplicationEntry | None:
    """Return the first application, `None` if only a whole cycle can decide about it."""
    # Without the room of the queues: other threads change it, and a placement charges them anyway.
    entry = next(leaf.entries.waiting.to_try(conditions_in(state, leaf, None, state.now_ns())), None)
    if entry is None or entry.backoff_until_ns is not None or entry.held is not None:
        return None
    if entry.facts.state is ApplicationState.ACCEPTED:
        if may_hold_starts(state, leaf):
            return None
        set_runnable(state, entry, in_queue=True, by_user=True)
    return entry


def _place(state: PartitionState, entry: ApplicationEntry) -> bool:
    """Place the first ask of an application; all or nothing."""
    ask = entry.facts.first
    if ask is None or not _commit(state, entry, ask):
        return False
    count_accepted(entry)
    return True


def _commit(state: PartitionState, entry: ApplicationEntry, ask: Ask) -> bool:
    resource, queue, limits = ask.resource, entry.queue, state.limits
    of_user = (queue.path, entry.application_id, entry.user, resource)
    with ExitStack() as undo:
        counted = limits.try_increase(*of_user)
        if counted is None:
            return False
        starts, group = counted
        undo.callback(limits.take_back, *of_user, starts=starts)
        undo.callback(state.tree.refresh, queue)  # Others may have ordered the queues by what is undone.
        if queue_quota.try_charge(queue, resource) is not None:
            return False
        undo.callback(queue_quota.release_charge, queue, resource)
        node = state.nodes.take_first_fit(resource)
        if node is None:
            return False
        undo.callback(state.nodes.give_back, node, resource)
        now_ns = state.now_ns()
        allocation = Allocation(ask, node.node_id, now_ns, node.instance_type)
        if node.node.try_add(allocation) is None:
            return False
        undo.callback(node.node.remove, ask.allocation_key)
        answer = entry.application.allocations.try_place(allocation, now_ns)
        if answer is None:
            return False
        undo.pop_all()
    assert not answer.reservations, f"{ask.allocation_key} is reserved, and nothing is: please report"
    finish_placing(state, entry, allocation, answer, group)
    return True
