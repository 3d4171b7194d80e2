"""The first ask: it is placed without a walk where nothing blocks it, as most are.

A visit (`licorne.model.scheduling.leaf_visit`) would choose the same ask, at several times the cost.
"""

from __future__ import annotations

from ..applications.state import ApplicationState
from ..queues.application_entry import ApplicationEntry
from ..queues.queue import Queue
from ..resources.resource import Resource, fits_undefined_unlimited
from ..state.charges import user_headroom
from ..state.partition_state import PartitionState
from ..state.placing import count_accepted
from .giving import try_place
from .resting import may_run

__all__ = ["place_first", "place_first_of"]


def place_first(state: PartitionState, leaf: Queue, now_ns: int) -> bool:
    """Place the first ask in a leaf, if nothing blocks it; otherwise change nothing.

    A visit would choose the same ask. Most visits would end so, and this costs a fraction of one.
    """
    if state.times.detailed:
        return False  # Its parts are timed in a visit.
    entry = leaf.entries.waiting.first_to_place(state.nodes.closed, state.node_changes, now_ns)
    if entry is None or entry.backoff_until_ns is not None:
        return False
    starts = entry.facts.state is ApplicationState.ACCEPTED
    if starts and not (entry.runnable_in_queue and entry.runnable_by_user and all(may_run(state, entry))):
        return False  # A visit reports what has changed about that.
    placed = place_first_of(state, entry, user_headroom(state, entry))
    if placed and starts:
        count_accepted(entry)
    return placed


def place_first_of(state: PartitionState, entry: ApplicationEntry, user_room: Resource | None) -> bool:
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
