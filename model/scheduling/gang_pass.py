"""The visit of a gang that is placed whole: all of its members get nodes in one result, or nothing changes.

Until then it holds nothing: no quota, no node, no reservation, and it preempts nothing. Members are given
nodes by `licorne.model.nodes.gang_room`, and placed by `licorne.model.state.placing.commit_all`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import Final, NamedTuple, final

from ..applications.gang import whole_members
from ..nodes.gang_room import plan_on
from ..planning.planned_jobs import GangStart
from ..predicates.node_checks import Pending
from ..queues.application_entry import ApplicationEntry
from ..queues.gang_sizes import NO_GANG, GangSizes
from ..queues.waiting import RestKind
from ..resources.resource import Resource, fits_undefined_unlimited
from ..state.charges import holder_of
from ..state.partition_state import PartitionState
from ..state.placing import commit_all
from ..values.allocation import Ask
from ..values.refusals import Refusal, RefusalReason
from .required_node import denied_by_rm
from .resting import Rest

__all__ = ["PLANS_MAX", "GangRefused", "GangTry", "place_gang"]

PLANS_MAX: Final = 8
"""How often a plan is made anew in one cycle that a node or the application has refused."""


class GangTry(Enum):
    """What became of a gang that was not refused."""

    PLACED = "all of it was placed"
    LATER = "it is tried again in the next cycle: the RM has not answered, or a node had less than was known"


class GangRefused(NamedTuple):
    """Why a gang was refused, and what may change that; without a rest it is tried in the next visit."""

    refusal: Refusal
    rest: Rest | None


def place_gang(
    state: PartitionState,
    entry: ApplicationEntry,
    queue_room: Resource | None,
    user_room: Resource | None,
    start: GangStart | None = None,
) -> GangTry | GangRefused:
    """Place a whole gang, or nothing of it.

    Args:
        state: The partition.
        entry: Its application.
        queue_room: What the queues have room for.
        user_room: What the limits of the user and his group have room for.
        start: Says where it may start beside promises; without it there are none.
    """
    records = entry.application.asks.waiting()
    members = whole_members(entry.application.gang_settings, [record.ask for record in records])
    if not members:
        refusal = Refusal(reason=RefusalReason.GANG_INCOMPLETE, subject=entry.application_id)
        return GangRefused(refusal, _rest(gang=NO_GANG))
    keys_to_skip = () if state.node_checks is None else state.node_checks.keys_to_skip()
    if any(ask.allocation_key in keys_to_skip for ask in members):
        return GangTry.LATER
    sizes = GangSizes.of(members)
    total, first = sizes.total, members[0].allocation_key
    if not fits_undefined_unlimited(user_room, total):
        rest = Rest(
            RestKind((), may_reserve=False, over_limit=(total,), holder=holder_of(state, entry)), None
        )
        reason, user = RefusalReason.USER_QUOTA, entry.user.name
        return GangRefused(_refusal(reason, user, first, total, user_room), rest)
    if not fits_undefined_unlimited(queue_room, total):
        reason, path = RefusalReason.QUEUE_QUOTA, entry.queue.path
        return GangRefused(_refusal(reason, path, first, total, queue_room), _rest(gang=sizes))
    return _place_on_nodes(state, entry, _MemberSearch(state, members, start), sizes)


def _rest(gang: GangSizes) -> Rest:
    return Rest(RestKind((), may_reserve=False, gang=gang), None)


def _refusal(
    reason: RefusalReason, subject: str, key: str, asked: Resource, available: Resource | None
) -> Refusal:
    return Refusal(reason=reason, subject=subject, allocation_key=key, asked=asked, available=available)


def _place_on_nodes(
    state: PartitionState, entry: ApplicationEntry, search: _MemberSearch, sizes: GangSizes
) -> GangTry | GangRefused:
    members = search.members
    refusal = _refusal(RefusalReason.GANG_ROOM, "", members[0].allocation_key, sizes.total, None)
    refused = GangRefused(refusal, _rest(gang=sizes))
    if state.closed_gangs.has(sizes, state.nodes.gains):
        return refused
    for _ in range(PLANS_MAX):
        plan = search.plan()
        if search.asks():
            return GangTry.LATER
        if plan is None and search.would_delay:
            return GangRefused(replace(refusal, reason=RefusalReason.WOULD_DELAY), refused.rest)
        if plan is None and not search.denied:
            state.closed_gangs.note(sizes, state.nodes.gains)
            return refused
        if plan is None:
            for_class = all(ask.predicate_class for ask in members)
            denied = denied_by_rm(members[0], "", search.denied, state.now_ns(), for_class=for_class)
            return GangRefused(denied, None)
        nodes = [state.nodes.get(node_id) for node_id in plan]
        placements = [(ask, node) for ask, node in zip(members, nodes, strict=True) if node is not None]
        if commit_all(state, entry, placements):
            return GangTry.PLACED
    return GangTry.LATER


@final
class _MemberSearch:
    """The search for the nodes of all members, with what the RM's predicates say of it.

    They are asked about a pair when the search comes to it, and only if there is room for all: a plan that
    is made first and asked about as a whole comes to the same first nodes in each cycle, and where they are
    refused never beyond them. A pair that the RM has not answered counts as allowed, but nothing is decided
    before it has: refusing a pair may also let the search find room, or less of what promises leave.
    """

    def __init__(self, state: PartitionState, members: Sequence[Ask], start: GangStart | None) -> None:
        self._state = state
        self.members = members
        self._start = start
        self._sizes = [ask.resource for ask in members]
        self._pending: dict[tuple[int, str], None] = {}
        """Members and nodes that the last search came to, and the RM has not answered about."""
        self.denied = ""
        """Why the RM refused the last pair that it did, the empty text if it refused none."""

    @property
    def would_delay(self) -> bool:
        """Whether room was found, and promises keep the gang from using it."""
        return self._start is not None and self._start.delays is not None

    def plan(self) -> tuple[str, ...] | None:
        """Return a node for each member, `None` if no room was found."""
        self._pending.clear()
        self.denied = ""
        return self._plan({}) if self._start is None else self._start.plan(self._plan)

    def _plan(self, left: Mapping[str, Resource]) -> tuple[str, ...] | None:
        nodes = self._state.nodes
        needs_node = any(ask.required_node for ask in self.members)
        plan = plan_on(nodes, self._sizes, self._needs if needs_node else None, left)
        if plan is None or self._state.node_checks is None:
            return plan
        return plan_on(nodes, self._sizes, self._is_allowed, left)

    def asks(self) -> bool:
        """Ask the RM about the pairs of the last search that it has not answered; return if there are any.

        One question is asked for an ask, or for all of a class.
        """
        checks = self._state.node_checks
        if checks is None:
            return False
        unknown: dict[str, tuple[Ask, dict[str, None]]] = {}
        for member, node_id in self._pending:
            ask = self.members[member]
            about = unknown.setdefault(ask.predicate_class or ask.allocation_key, (ask, {}))
            about[1][node_id] = None
        for ask, node_ids in unknown.values():
            checks.ask_about(ask, tuple(node_ids), allocate=True)
        return bool(unknown)

    def _needs(self, member: int, node_id: str) -> bool:
        """Return whether a member may run on a node, as far as its ask names the one it needs."""
        return self.members[member].required_node in {"", node_id}

    def _is_allowed(self, member: int, node_id: str) -> bool:
        """Return whether the RM allows a pair, or has not answered yet."""
        checks = self._state.node_checks
        if checks is None or not self._needs(member, node_id):
            return checks is None
        refusal = checks.refuse(self.members[member], node_id, allocate=True)
        if isinstance(refusal, Pending):
            self._pending[member, node_id] = None
        elif refusal is not None:
            self.denied = refusal
        return refusal is None or isinstance(refusal, Pending)
