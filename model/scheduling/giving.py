"""The one step by which an ask gets a node, whatever has chosen the ask, and for any nodes in question.

The order is the same for all: room on a node, the RM's predicates, what has to yield, and the placement
itself (`licorne.model.state.placing.commit`). Each step checks again what it relies on and may decline; then
nothing has changed. Quotas are not looked at before: the placement charges them, and is refused there.

Three ways do not come here, since their placements are something else: whole gangs (`commit_all`), members
that replace placeholders, which charge nothing, and threads that place in one partition at once.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..nodes.order import NodeEntry
from ..predicates.node_checks import NO_ROOM, PENDING_SEARCH, NodeSearch, Pending, refuse_or_ask
from ..queues.application_entry import ApplicationEntry
from ..resources.resource import fits
from ..state.event_rates import report_refusals
from ..state.partition_state import PartitionState
from ..state.placing import commit, unreserve_all
from ..values.allocation import Ask


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
        reason = refusal_of(state, ask, only, allocate=True)
        if reason is not None:
            return PENDING_SEARCH if isinstance(reason, Pending) else NodeSearch(None, {reason: 1}, reason)
        unreserve_all(state, instead_of)
        node = only
    elif checks is None:
        node = state.nodes.first_fit(ask.resource) if not without else _first_fit(state, ask, without)
    elif state.nodes.first_fit(ask.resource) is None:
        return search
    else:
        search = checks.first_allowed(ask, state.nodes, without=without)
        node = search.node
        if node is not None:
            report_refusals(state, entry.application, ask, search.refusals)
    return search if node is None or not commit(state, entry, ask, node) else None


def _first_fit(state: PartitionState, ask: Ask, without: Collection[str]) -> NodeEntry | None:
    fitting = state.nodes.fitting(ask.resource)
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
