"""The one step by which an ask gets a node, whatever has chosen the ask, and for any nodes in question.

The order is the same for all: room on a node, the RM's predicates, what has to yield, and the placement
itself (`licorne.model.state.placing.commit`). Each step checks again what it relies on and may decline; then
nothing has changed. Quotas are not looked at before: the placement charges them, and is refused there.

Three ways do not come here, since their placements are something else: whole gangs (`commit_all`), members
that replace placeholders, which charge nothing, and threads that place in one partition at once.

Steps are checked and undone as in `licorne.model.scheduling.leaf_visit`, which calls this.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from ..applications.ask_walk import Candidate, FailedTry
from ..nodes.entry import NodeEntry
from ..nodes.windows import KeepingWindows
from ..predicates.node_checks import NO_ROOM, PENDING_SEARCH, NodeSearch, Pending, refuse_or_ask
from ..preemption.required_node import can_be_served, room_on_node
from ..queues.application_entry import ApplicationEntry
from ..queues.quota import kept_beside
from ..resources.resource import Resource, fits, fits_undefined_unlimited
from ..state.node_windows import window_on_node
from ..state.partition_state import PartitionState
from ..state.placing import commit, ordinary_reservations, reserve, unreserve_all
from ..state.rates import report_refusals
from ..values.allocation import Ask, Refusal, RefusalReason, refused

PASSED_OVER: Final = FailedTry(passed_over=True)
"""A try that did not take place, since the RM has not answered yet."""
_WAITS_FOR_TIME_NS: Final = 1_000_000_000
"""How long an ask that the RM's predicates refused everywhere waits for the next try, if nothing changes."""


def try_place(
    state: PartitionState,
    entry: ApplicationEntry,
    ask: Ask,
    *,
    only: NodeEntry | None = None,
    without: Collection[str] = (),
    instead_of: Sequence[tuple[ApplicationEntry, str]] = (),
) -> NodeSearch | None:
    """Place an ask on the first node that has room and that the RM allows.

    Nodes that the RM refused before an allowed one are reported here. Where it refused all of them the caller
    reports it: it alone knows whether the search is repeated.

    Args:
        state: The partition.
        entry: The application of the ask.
        ask: The ask; the RM is not being asked about it.
        only: The one node in question; otherwise all that are usable.
        without: The ids of nodes that are not in question.
        instead_of: Reservations of that one node that a placement ends: an application and the key of its
            ask each.

    Returns:
        `None` if the ask was placed, otherwise what the search found.
    """
    checks, search = state.node_checks, NO_ROOM
    node: NodeEntry | None
    if only is not None:
        if not (fits(only.available, ask.resource) and fits(only.capacity, ask.resource)):
            return search
        kept = window_on_node(state, ask, only) if state.windows.all else None
        if kept is not None:
            return NodeSearch(None, dict.fromkeys(kept.by_text, 1), kept.text, keeping=kept)
        reason = refusal_of(state, ask, only, allocate=True)
        if reason is not None:
            return PENDING_SEARCH if isinstance(reason, Pending) else NodeSearch(None, {reason: 1}, reason)
        unreserve_all(state, instead_of)
        node = only
    elif checks is None and not without and state.class_orders is None:
        node = state.nodes.first_fit(ask.resource)
    elif checks is None:
        node = _first_fit(state, ask, without)
    elif state.nodes.first_fit(ask.resource) is None:
        return search
    else:
        search = checks.first_allowed(ask, state.nodes_for(ask), without=without)
        node = search.node
        if node is not None:
            report_refusals(state, entry.application, ask, search.refusals)
    return search if node is None or not commit(state, entry, ask, node) else None


def _first_fit(state: PartitionState, ask: Ask, without: Collection[str]) -> NodeEntry | None:
    if state.nodes.first_fit(ask.resource) is None:
        return None
    fitting = state.nodes_for(ask).fitting(ask.resource)
    return next((node for node in fitting if node.node_id not in without), None)


def refusal_of(state: PartitionState, ask: Ask, node: NodeEntry, *, allocate: bool) -> str | Pending | None:
    """Return why the RM refuses a node, `None` if it does not; if that is pending, it is asked.

    Args:
        state: The partition.
        ask: The ask.
        node: The node.
        allocate: It is for a placement; otherwise for a reservation.
    """
    checks = state.node_checks
    return None if checks is None else refuse_or_ask(checks, ask, node.node_id, allocate=allocate)


def must_wait(state: PartitionState) -> bool:
    """Return whether the RM has been asked, and all that comes behind has to wait for its answer."""
    return state.node_checks is not None and state.node_checks.ends_cycle


def try_required_node(
    state: PartitionState, entry: ApplicationEntry, candidate: Candidate, now_ns: int
) -> bool | FailedTry:
    """Place an ask on its node, or reserve the node for it.

    Returns:
        `True` if it was placed, `False` if the node was reserved, otherwise why neither was done.
    """
    ask = candidate.ask
    node = state.nodes.get(ask.required_node)
    kept = window_on_node(state, ask, node) if state.windows.all else None
    if node is None or kept is not None:
        unknown = _failed_for(RefusalReason.REQUIRED_NODE_UNKNOWN, ask.required_node, ask, None)
        return unknown if kept is None else FailedTry((refused_by_windows(ask, ask.required_node, kept),))
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


def refusal_of_search(ask: Ask, search: NodeSearch, now_ns: int) -> Refusal:
    """Return the refusal of an ask that a search has refused all nodes with room."""
    keeping = search.keeping
    if keeping is None:
        return denied_by_rm(ask, "", search.denied, now_ns, for_class=search.for_class)
    return refused_by_windows(ask, "", keeping)


def refused_by_windows(ask: Ask, node_id: str, kept: KeepingWindows) -> Refusal:
    """Return the refusal of an ask from which windows keep a node, or all with room without an id."""
    return refused(RefusalReason.WINDOW, node_id, ask, None, detail=kept.text, until_ns=kept.until_ns)


def denied_by_rm(ask: Ask, node_id: str, text: str, now_ns: int, *, for_class: bool = False) -> Refusal:
    """Return the refusal of an ask whose nodes the RM refused, in the words of the RM."""
    until_ns = None if for_class else now_ns + _WAITS_FOR_TIME_NS
    return refused(RefusalReason.PREDICATES, node_id, ask, None, detail=text, until_ns=until_ns)


def _failed_for(reason: RefusalReason, subject: str, ask: Ask, available: Resource | None) -> FailedTry:
    return FailedTry((refused(reason, subject, ask, available),))
