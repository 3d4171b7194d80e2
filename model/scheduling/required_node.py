"""The try of an ask on the one node that it may run on.

Steps are checked and undone as in `licorne.model.scheduling.leaf_visit`, which calls this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..applications.ask_walk import Candidate, FailedTry
from ..nodes.order import NodeEntry
from ..predicates.node_checks import NO_ROOM, NodeSearch
from ..preemption.required_node import can_be_served, room_on_node
from ..queues.application_entry import ApplicationEntry
from ..queues.lending import kept_beside
from ..resources.resource import Resource, fits, fits_undefined_unlimited
from ..state.partition_state import PartitionState
from ..state.placing import ordinary_reservations, reserve, unreserve_all
from ..values.allocation import Ask
from ..values.refusals import Refusal, RefusalReason, refused
from .giving import try_place

PASSED_OVER: Final = FailedTry(passed_over=True)
"""A try that did not take place, since the RM has not answered yet."""
_WAITS_FOR_TIME_NS: Final = 1_000_000_000
"""How long an ask that the RM's predicates refused everywhere waits for the next try, if nothing changes."""


def try_required_node(
    state: PartitionState, entry: ApplicationEntry, candidate: Candidate, now_ns: int
) -> bool | FailedTry:
    """Place an ask on its node, or reserve the node for it.

    Returns:
        `True` if it was placed, `False` if the node was reserved, otherwise why neither was done.
    """
    ask = candidate.ask
    node = state.nodes.get(ask.required_node)
    if node is None:
        return _failed_for(RefusalReason.REQUIRED_NODE_UNKNOWN, ask.required_node, ask, None)
    room = room_on_node(state, ask, node)
    has_room = fits(room, ask.resource)
    yielding = ordinary_reservations(state, node)
    if not has_room and _gives_way(state, entry, ask, node, yielding):
        return _failed_for(RefusalReason.REQUIRED_NODE_FULL, node.node_id, ask, room)
    held_for_others = node.reserved and not yielding and candidate.reserved_node != node.node_id
    beside = room_beside_kept(entry, ask) if has_room else None
    if beside is not None:
        # A reservation would keep the node from those for whom the room is kept back: the reserved pass gives
        # it up, whatever else refuses the ask.
        due_ns = now_ns + _WAITS_FOR_TIME_NS  # The node may be full then, and have a victim.
        root = entry.queue.above[-1].path
        return FailedTry((refused(RefusalReason.QUEUE_QUOTA, root, ask, beside, until_ns=due_ns),))
    search: NodeSearch | None = NO_ROOM
    if has_room and not held_for_others:
        search = try_place(state, entry, ask, only=node, instead_of=yielding)
    if search is None:
        return True
    if search.pending:
        return PASSED_OVER  # The reservations stay: until there is an answer nothing changes.
    unreserve_all(state, yielding)
    if search.refusals:
        state.notes.note(entry.application, ask.allocation_key, search.denied, now_ns)
    if not candidate.reserved_node and reserve(state, entry, ask, node, required=True):
        return False
    if search.denied:
        return FailedTry((denied_by_rm(ask, node.node_id, search.denied, now_ns),))
    return _failed_for(RefusalReason.REQUIRED_NODE_FULL, node.node_id, ask, room)


def _gives_way(
    state: PartitionState,
    entry: ApplicationEntry,
    ask: Ask,
    node: NodeEntry,
    yielding: Sequence[tuple[ApplicationEntry, str]],
) -> bool:
    """Return whether an ask without room on its node leaves it to others.

    It does where it can never run there, and where nothing may end for it, but something ends there for
    another ask.
    """
    if not fits(node.capacity, ask.resource):
        return True
    is_claimed = any(state.claims.find(key) is not None for _, key in yielding)
    return is_claimed and not can_be_served(state, entry, ask, node)


def room_beside_kept(entry: ApplicationEntry, ask: Ask) -> Resource | None:
    """Return what the root has for an ask if that is too little since others keep guarantees back.

    It counts only where the node has room: otherwise there may be victims on the node.
    """
    root = entry.queue.above[-1]
    beside = kept_beside(entry.queue).get(root)
    if beside is None or not len(beside):
        return None
    room = root.room(beside)
    return None if fits_undefined_unlimited(room, ask.resource) else room


def denied_by_rm(ask: Ask, node_id: str, text: str, now_ns: int, *, for_class: bool = False) -> Refusal:
    """Return the refusal of an ask whose nodes the RM refused, in the words of the RM."""
    until_ns = None if for_class else now_ns + _WAITS_FOR_TIME_NS
    return refused(RefusalReason.PREDICATES, node_id, ask, None, detail=text, until_ns=until_ns)


def _failed_for(reason: RefusalReason, subject: str, ask: Ask, available: Resource | None) -> FailedTry:
    return FailedTry((refused(reason, subject, ask, available),))
