"""Outstanding asks: those that fit every quota and find no room in the cluster, for an autoscaler.

An application is looked at again when it has changed or has been tried, or has an ask that is still to be
reported and does not fit.
"""

from __future__ import annotations

from typing import Final

from ..queues.application_entry import ApplicationEntry
from ..queues.quota import headroom_without_root
from ..resources.resource import (
    Resource,
    component_wise_min,
    fits_undefined_unlimited,
    subtract,
    subtract_only_existing,
)
from ..state.charges import user_headroom
from ..state.partition_state import PartitionState
from ..values.messages import SchedulingStateChanged

_REASON: Final = "request is waiting for cluster resources become available"


def outstanding_asks(state: PartitionState) -> None:
    """Report to the RM each ask that more nodes would help, once, in the order of scheduling."""
    for leaf in state.tree.leaves_in_order():
        unreported = leaf.entries.unreported
        if not unreported:
            continue
        entries = leaf.entries.in_order(unreported)
        for name in unreported.keys() - {entry.application_id for entry in entries}:
            del unreported[name]  # Nothing of it waits until it changes.
        room = headroom_without_root(leaf)
        for entry in entries:
            room = _visit(state, entry, room)


def _visit(state: PartitionState, entry: ApplicationEntry, room: Resource | None) -> Resource | None:
    """Report the asks of one application that fit; return the room that is left in the queue."""
    user_room = user_headroom(state, entry)
    own_room = component_wise_min(room, user_room) if room is not None else user_room
    is_left = False
    for ask, tells in entry.application.asks.outstanding():
        resource = ask.resource
        claim = state.claims.find(ask.allocation_key)
        if claim is not None:  # What it holds is not in the room of the queues.
            resource = subtract(resource, claim.held_in_all(entry.queue.above[:-1]))
        if not fits_undefined_unlimited(own_room, resource):
            is_left = is_left or tells
            continue
        own_room = subtract_only_existing(own_room, resource)
        if not tells:
            continue
        room = subtract_only_existing(room, resource)
        entry.application.asks.note_scale_up(ask.allocation_key)
        changed = SchedulingStateChanged(entry.application_id, ask.allocation_key, _REASON)
        state.host.announce(changed)
    if not is_left:
        entry.queue.entries.unreported.pop(entry.application_id, None)
    return room
