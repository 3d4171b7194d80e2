"""The visit of a gang that is placed whole: all of its members get nodes in one result, or nothing changes.

Until then it holds nothing: no quota, no node, no reservation; unless it has preempted, as one ask for the
sum of its members. Then its claim holds what they need, and the nodes of the decision are reserved, each for
one member. Members are given nodes by `licorne.model.nodes.gang_room`, and placed by
`licorne.model.state.placing.commit_all`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import Final, NamedTuple, final

from ..applications.ask_walk import Candidate, CandidateKind
from ..nodes.gang_room import plan_on
from ..nodes.topology import Domains
from ..nodes.windows import KeepingWindows, WindowRefusal
from ..planning.planned_jobs import GangStart, gang_members
from ..predicates.node_checks import Pending
from ..preemption.guarantee.attempt import Asking, preempt_for_queue
from ..preemption.guarantee.attempt_budget import AttemptBudget, RefusedAttempt
from ..preemption.guarantee.decision import PromisesOfOthers
from ..preemption.guarantee.gang_nodes import as_one
from ..queues import quota as queue_quota
from ..queues.application_entry import ApplicationEntry
from ..queues.waiting import NO_GANG, GangSizes, RestKind
from ..resources.resource import EMPTY, Resource, fits_undefined_unlimited
from ..state.charges import end_claim, holder_of, user_headroom
from ..state.claims import PreemptionClaim
from ..state.counters import TimedPart
from ..state.node_windows import window_refusal
from ..state.partition_state import PartitionState
from ..state.placing import commit_all, reserve
from ..values.allocation import NO_GANG_ROOM, Ask, Refusal, RefusalReason
from .giving import denied_by_rm, refused_by_windows
from .resting import Rest

PLANS_MAX: Final = 8
"""How often a plan is made anew in one cycle that a node or the application has refused."""


class GangTry(Enum):
    """The result for a gang that was not refused."""

    PLACED = "all of it was placed"
    PREPARED = "work ends for it"
    LATER = "it is tried again in the next cycle: the RM has not answered, or a node had less than was known"


class GangRefused(NamedTuple):
    """Why a gang was refused, and what may change that; without a rest it is tried in the next visit."""

    refusal: Refusal
    rest: Rest | None
    retry_ns: int | None = None
    """When time alone may let it preempt."""


class GangPreemption(NamedTuple):
    """The budget of attempts to preempt for a gang, and the promises that they may not delay."""

    attempts: AttemptBudget
    is_allowed: bool
    at_limits: bool
    """Also where the limits of the user or group have no room."""
    promises: PromisesOfOthers | None = None
    """`None` where there can be none: no queue above it backfills."""


_HELPED: Final = NO_GANG_ROOM | {RefusalReason.QUEUE_QUOTA, RefusalReason.USER_QUOTA}
"""Refusals of a gang that preemption may remove."""


def place_gang(
    state: PartitionState,
    entry: ApplicationEntry,
    queue_room: Resource | None,
    user_room: Resource | None,
    *,
    start: GangStart | None = None,
    preempting: GangPreemption | None = None,
) -> GangTry | GangRefused:
    """Place a whole gang, or nothing of it; where it is refused, end work for it if it may.

    Args:
        state: The partition.
        entry: Its application.
        queue_room: The room of the queues.
        user_room: The room in the limits of the user and the group.
        start: Finds where it may start beside promises; `None` without promises.
        preempting: The budget of attempts to preempt; without it no attempt is made. A gang that has
            preempted beside promises is placed on its own nodes alone.
    """
    members = gang_members(entry)
    domains = state.topology.domains(entry.application.gang_settings.domains)
    claim = _claim_of(state, entry, members)
    if not members:
        refusal = Refusal(reason=RefusalReason.GANG_INCOMPLETE, subject=entry.application_id)
        return GangRefused(refusal, _rest(gang=NO_GANG))
    keys_to_skip = () if state.node_checks is None else state.node_checks.keys_to_skip()
    if any(ask.allocation_key in keys_to_skip for ask in members):
        return GangTry.LATER
    if claim is not None:
        key = claim.ask.allocation_key
        with state.claims.lifted(key):
            queue_room = queue_quota.headroom(entry.queue)
        user_room = user_headroom(state, entry, key)
        hold_nodes(state, claim)
        only_own = preempting is not None and preempting.promises is not None
        search = _MemberSearch(state, members, domains, start, claim, only_own=only_own)
        tried = _place(entry, queue_room, user_room, search)
        return tried._replace(rest=None) if isinstance(tried, GangRefused) else tried
    tried = _place(entry, queue_room, user_room, _MemberSearch(state, members, domains, start))
    if preempting is None or not isinstance(tried, GangRefused) or tried.refusal.reason not in _HELPED:
        return tried
    found = preempt_for_gang(state, entry, members, preempting, queue_room=queue_room, user_room=user_room)
    if not isinstance(found, RefusedAttempt):
        return found
    if found.retry_ns is None or tried.rest is None:
        return tried
    is_due = found.retry_ns <= state.now_ns()
    rest = None if is_due else tried.rest._replace(until_ns=found.retry_ns)
    return GangRefused(tried.refusal, rest, found.retry_ns)


def preempt_for_gang(
    state: PartitionState,
    entry: ApplicationEntry,
    members: tuple[Ask, ...],
    preempting: GangPreemption,
    *,
    queue_room: Resource | None,
    user_room: Resource | None,
) -> GangTry | RefusedAttempt:
    """End work for all members of a gang that has no room, and reserve the nodes; or return why not."""
    whole = as_one(members)
    kind = CandidateKind.NODES
    if not fits_undefined_unlimited(user_room, whole.resource):
        kind = CandidateKind.LIMIT
    elif not fits_undefined_unlimited(queue_room, whole.resource):
        kind = CandidateKind.PREEMPTION
    if not (preempting.at_limits if kind is CandidateKind.LIMIT else preempting.is_allowed):
        return RefusedAttempt("")
    first = entry.application.asks.record(members[0].allocation_key)
    candidate = Candidate(whole, kind, "", False, None if first is None else first.preemption_checked_ns)
    began_ns = state.times.stopwatch_ns()
    nodes_tried = kind is CandidateKind.NODES
    asking = Asking(state, entry, candidate, nodes_tried, members, preempting.promises)
    found = preempt_for_queue(asking, preempting.attempts)
    state.times.add(TimedPart.PREEMPTION, began_ns)
    if isinstance(found, RefusedAttempt):
        return GangTry.LATER if found.is_pending else found
    claim = state.claims.find(members[0].allocation_key)
    assert claim is not None, "a gang that has preempted has a claim: please report"
    hold_nodes(state, claim)
    return GangTry.PREPARED


def _claim_of(
    state: PartitionState, entry: ApplicationEntry, members: Sequence[Ask]
) -> PreemptionClaim | None:
    """Return the claim of a gang; that of other members ends, as it does not fit their needs."""
    if not state.claims.by_key:
        return None
    for claim in state.claims:
        if claim.entry is entry and claim.ends_reservations:
            if [*claim.asks] == [ask.allocation_key for ask in members]:
                return claim
            end_claim(state, claim.ask.allocation_key)
    return None


def hold_nodes(state: PartitionState, claim: PreemptionClaim) -> None:
    """Reserve the nodes of a gang that has preempted: at once, and again where another ask needed one."""
    for key, node_id in claim.reserving.items():
        node = state.nodes.get(node_id)
        if state.reserved.get(key) is None and node is not None and node.usable:
            reserve(state, claim.entry, claim.asks[key], node, required=False)


def _place(
    entry: ApplicationEntry, queue_room: Resource | None, user_room: Resource | None, search: _MemberSearch
) -> GangTry | GangRefused:
    state, members = search.state, search.members
    sizes = GangSizes.of(members, entry.application.gang_settings.domains)
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
    return _place_on_nodes(state, entry, search, sizes)


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
    level = entry.application.gang_settings.needed_level
    reason = RefusalReason.DOMAIN_ROOM if level else RefusalReason.GANG_ROOM
    refusal = _refusal(reason, level, members[0].allocation_key, sizes.total, None)
    refused = GangRefused(refusal, _rest(gang=sizes))
    key = members[0].allocation_key
    if not search.own and state.closed_gangs.has(sizes, state.nodes.gains):
        return refused
    for _ in range(PLANS_MAX):
        plan = search.plan()
        if search.asks():
            return GangTry.LATER
        if plan is None and search.would_delay:
            return GangRefused(replace(refusal, reason=RefusalReason.WOULD_DELAY), refused.rest)
        if plan is None and search.kept is not None and not search.denied:
            return GangRefused(refused_by_windows(members[0], "", search.kept), None)
        if plan is None and not search.denied:
            if not search.own:
                state.closed_gangs.note(sizes, state.nodes.gains)
            return refused
        if plan is None:
            for_class = all(ask.predicate_class for ask in members)
            denied = denied_by_rm(members[0], "", search.denied, state.now_ns(), for_class=for_class)
            return GangRefused(denied, None)
        nodes = [state.nodes.get(node_id) for node_id in plan]
        placements = [(ask, node) for ask, node in zip(members, nodes, strict=True) if node is not None]
        with state.claims.lifted(key):
            if commit_all(state, entry, placements):
                return GangTry.PLACED
    return GangTry.LATER


def _reserved_for(state: PartitionState, claim: PreemptionClaim) -> Collection[str]:
    """Return the nodes that are reserved for a gang."""
    reserved = (state.reserved.get(key) for key in claim.reserving)
    return frozenset(each.node_id for each in reserved if each is not None)


@final
class _MemberSearch:
    """The search for the nodes of all members, with the answers of the RM's predicates.

    They are asked about a pair when the search comes to it, and only if there is room for all: a plan that
    is made first and asked about as a whole comes to the same first nodes in each cycle, and where they are
    refused never beyond them. A pair that the RM has not answered counts as allowed, but nothing is decided
    before it has: refusing a pair may also let the search find room, or less of what promises leave.
    """

    def __init__(
        self,
        state: PartitionState,
        members: Sequence[Ask],
        domains: Domains | None,
        start: GangStart | None,
        claim: PreemptionClaim | None = None,
        *,
        only_own: bool = False,
    ) -> None:
        self.state = state
        self._only_own = only_own
        self.own: Collection[str] = () if claim is None else _reserved_for(state, claim)
        """The nodes that are reserved for the gang."""
        self.members = members
        self._domains = domains
        self._start = start
        self._sizes = [ask.resource for ask in members]
        self._pending: dict[tuple[int, str], None] = {}
        """Members and nodes that the last search came to, and the RM has not answered about."""
        self.denied = ""
        """Why the RM refused the last pair that it did, the empty text if it refused none."""
        self.kept: KeepingWindows | None = None
        """What windows keep from a member, the last that was found; `None` for nothing."""
        self._windows: dict[int, WindowRefusal | None] = {}

    @property
    def would_delay(self) -> bool:
        """Whether room was found, and promises keep the gang from using it."""
        return self._start is not None and self._start.delays is not None

    def plan(self) -> tuple[str, ...] | None:
        """Return a node for each member, `None` if no room was found."""
        self._pending.clear()
        self.denied, self.kept = "", None
        return self._plan({}) if self._start is None else self._start.plan(self._plan)

    def _plan(self, left: Mapping[str, Resource]) -> tuple[str, ...] | None:
        nodes = self.state.nodes
        if self._only_own:
            left = {node.node_id: EMPTY for node in nodes if node.node_id not in self.own}
        needs_node = any(ask.required_node for ask in self.members)
        may_run = self._needs if needs_node else None
        plan = plan_on(nodes, self._sizes, may_run, left, own=self.own, domains=self._domains)
        if plan is None or self.state.node_checks is None:
            return plan
        return plan_on(nodes, self._sizes, self._is_allowed, left, own=self.own, domains=self._domains)

    def asks(self) -> bool:
        """Ask the RM about the pairs of the last search that it has not answered; return if there are any.

        One question is asked for an ask, or for all of a class.
        """
        checks = self.state.node_checks
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
        checks = self.state.node_checks
        if checks is None or not self._needs(member, node_id):
            return checks is None
        if self.state.windows.all and self._is_kept(member, node_id):
            return False
        refusal = checks.refuse(self.members[member], node_id, allocate=True)
        if isinstance(refusal, Pending):
            self._pending[member, node_id] = None
        elif refusal is not None:
            self.denied = refusal
        return refusal is None or isinstance(refusal, Pending)

    def _is_kept(self, member: int, node_id: str) -> bool:
        """Return whether a window keeps a node from a member."""
        if member not in self._windows:
            self._windows[member] = window_refusal(self.state, self.members[member])
        refusal, node = self._windows[member], self.state.nodes.get(node_id)
        kept = None if refusal is None or node is None else refusal.on((node,))
        self.kept = kept or self.kept
        return kept is not None
