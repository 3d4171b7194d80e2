"""Concurrent placement: several threads place asks in different leaves of one partition.

Cycles that share a partition do only what most cycles do: place the first ask in a leaf where
nothing blocks it. Each cycle claims its leaf, with the applications in it. What leaves have in common
is changed in small atomic steps of one object each: the limits of users check and count, a queue of the path
checks its maximum and charges, the node order finds room and takes it. When a later step declines, the steps
before it are undone.

A step may decline because of what another thread is about to undo. So nothing is concluded here from a
declined step: no leaf is skipped afterwards, no application backs off, no ask is refused. That, and all that
concerns more than one leaf (reservations, swaps, preemption, lending, maxima of applications), is left to a
cycle that has the partition alone (`licorne.model.scheduling.cycle`).
"""

from __future__ import annotations

from contextlib import ExitStack
from enum import Enum

from ..applications.state import ApplicationState
from ..queues import quota as queue_quota
from ..queues.application_entry import ApplicationEntry
from ..queues.queue import Queue
from ..state.headroom_reports import set_runnable
from ..state.partition_state import PartitionState
from ..state.placing import count_accepted, finish_placing
from ..values.allocation import Allocation, Ask
from .cycle import is_idle
from .resting import conditions_in


class ConcurrentOutcome(Enum):
    """The result of an attempt at concurrent placement."""

    PLACED = "an ask was placed"
    TAKEN = "whatever may be placed is in leaves that other threads have"
    ALONE = "to say more takes a cycle that has the partition alone"


def place_concurrently(state: PartitionState) -> ConcurrentOutcome:
    """Place the first ask of the first leaf that no other thread has claimed."""
    if is_idle(state) or state.node_checks is not None:
        return ConcurrentOutcome.ALONE
    if (
        state.reservations
        or state.claims.by_key
        or state.placed.placeholders
        or state.ends.is_on
        or state.tree.root.lending
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
    if entry is None or entry.backoff_until_ns is not None:
        return None
    if entry.facts.state is ApplicationState.ACCEPTED:
        if state.limits.is_limited or any(level.max_applications for level in leaf.above):
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
