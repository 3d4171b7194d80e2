"""The passes before the regular one: asks that have a reservation, and members that replace placeholders.

An ask is tried on the node that is reserved for it, and then on every other node; the first with room is
taken. A reservation is dropped whose ask is gone, or is forbidden by a queue or by a limit of its user; it is
made anew when that is over. Unless it is of a required node, an hour in a full cluster ends it too.

Most reserved asks lack room, and nothing has changed for them. Only those that `_WorthTrying` finds are
tried.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, final

from ..applications.effects import ApplicationState
from ..applications.gang import SwapOffer, SwapWalk
from ..applications.pending_asks import AskRecord, Reservation
from ..nodes.entry import NodeEntry
from ..planning.planned_jobs import backfilling_queue
from ..predicates.deferred_checks import NODES_PER_STEP
from ..predicates.node_checks import NodeChecks, NodeSearch, Pending
from ..preemption.required_node import preempt_for_required_node, room_on_node
from ..queues import quota as queue_quota
from ..queues.application_entry import ApplicationEntry
from ..queues.queue import Queue
from ..queues.sleep import Sleep, Wake
from ..resources.resource import Resource, describe, fits, fits_undefined_unlimited
from ..state.applying import apply
from ..state.charges import drop_reservations, held_by_policy, leave_node, may_start, user_headroom
from ..state.gang_domains import outside_of_slice
from ..state.partition_state import PartitionState
from ..state.placing import unreserve
from ..state.rates import report_refusals
from ..values.allocation import Allocation, Ask
from ..values.events import ChangeDetail, ChangeType, EventType
from ..values.messages import AllocationsReleased, Release, TerminationType
from .giving import must_wait, room_beside_kept, try_place

_RETRY_INTERVAL_NS: Final = 1_000_000_000
"""How long a reserved ask that the RM's predicates refused waits for the next try, if nothing changes."""
RESERVATION_TIMEOUT_NS: Final = 60 * 60 * 1_000_000_000
"""How long a reservation is kept while all nodes together have no room for its ask. The recorded core added
its hour twice, which its version 1.9.0 corrected."""


def place_reserved(state: PartitionState) -> bool:
    """Try the reserved asks, leaf by leaf; return whether one was placed.

    A pass without result is not repeated before something changes that it depended on.
    """
    sleep, stamp = state.reserved_sleep, state.stamp
    if sleep is not None and sleep.holds(stamp, state.now_ns()):
        placements = state.placed.allocations
        if placements == sleep.placed or not _is_any_forbidden(state):
            sleep.placed = placements
            return False
    visit = _ReservedVisit(state)
    notes_before = state.notes.taken
    placed = visit.run()
    if visit.waits:
        state.notes.drop_beyond(notes_before)
    state.reserved_sleep = None
    if not placed and stamp == state.stamp:  # A dropped one may have freed a node for those before it.
        wakes = Wake.IN_EACH_CYCLE if visit.always_retry else Wake.BY_ANY_CHANGE
        state.reserved_sleep = Sleep(stamp, visit.retry_ns, wakes, placed=state.placed.allocations)
    return placed


def _is_any_forbidden(state: PartitionState) -> bool:
    """Return whether a queue or a limit forbids a reserved ask now: what was placed has used the room."""
    for leaf, sizes in state.reserved.sizes_by_leaf():
        room = queue_quota.headroom_without_root(leaf)
        if not all(fits_undefined_unlimited(room, size) for size in sizes):
            return True
    return state.limits.is_limited and any(
        not fits_undefined_unlimited(user_headroom(state, entry), ask.resource)
        for entry, _, ask in state.reserved.all()
    )


@final
class _WorthTrying:
    """The applications whose reserved asks are worth a try now; for all others a try would do nothing.

    A reserved ask lacks room, on its own node and on all others, or its quotas bar it. So it is tried
    again where this may be over:

    * Its own node may have gained room since it was last tried there, and has enough.
    * A node that is not reserved has room for its size.
    * Its quotas bar it: its reservation has to be dropped, perhaps later.
    * It can run on its own node alone, where it may preempt.
    * The RM is being asked about it: the pass is repeated then.
    """

    __slots__ = ("_applications", "_keys", "_leaves", "_stamp", "_state")

    def __init__(self, state: PartitionState) -> None:
        self._state = state
        self._find()

    def __bool__(self) -> bool:
        return bool(self._leaves or self._applications or self._keys)

    def has(self, leaf: Queue, entry: ApplicationEntry) -> bool:
        """Return whether an application is one of them; the pass itself may change the answer."""
        if self._stamp != self._state.stamp:
            self._find()
        return leaf in self._leaves or entry in self._applications or entry in self._keys

    def only_key(self, leaf: Queue, entry: ApplicationEntry) -> str:
        """Return the key of the ask if it is the only one of an application, otherwise the empty text."""
        keys = self._keys.get(entry, ())
        return (
            keys[0] if len(keys) == 1 and leaf not in self._leaves and entry not in self._applications else ""
        )

    def _find(self) -> None:
        state = self._state
        self._stamp = state.stamp
        self._leaves: set[Queue] = set()
        self._applications: set[ApplicationEntry] = set()
        self._keys: dict[ApplicationEntry, list[str]] = {}
        """Asks that may run on their own nodes now, or preempt there."""
        self._find_by_quota()
        self._find_by_node()
        checks = state.node_checks
        for key in () if checks is None else checks.keys_to_skip():
            reserved = state.reserved.get(key)
            if reserved is not None:
                self._applications.add(reserved.entry)

    def _find_by_quota(self) -> None:
        """Find the leaves with sizes that their queues bar or other nodes have room for, and barred users."""
        state = self._state
        for leaf, sizes in state.reserved.sizes_by_leaf():
            room = queue_quota.headroom(leaf)
            for size in sizes:
                if not fits_undefined_unlimited(room, size) or state.nodes.first_fit(size) is not None:
                    self._leaves.add(leaf)
                    break
        if state.limits.is_limited:
            for entry, _, ask in state.reserved.all():
                if not fits_undefined_unlimited(user_headroom(state, entry), ask.resource):
                    self._applications.add(entry)

    def _find_by_node(self) -> None:
        """Find those whose own nodes have room now; forget the nodes that have not."""
        state = self._state
        for node in list(state.nodes.reserved_gains.values()):
            worth = False
            for entry, _, ask in state.reserved.on_node(node.node_id):
                if ask.required_node or (node.schedulable and _has_room(node, ask)):
                    self._keys.setdefault(entry, []).append(ask.allocation_key)
                    worth = True
            if not worth:
                del state.nodes.reserved_gains[node.node_id]


@final
class _ReservedVisit:
    """One pass over the reserved asks."""

    __slots__ = ("_now_ns", "_state", "_worth_trying", "always_retry", "retry_ns", "waits")

    def __init__(self, state: PartitionState) -> None:
        self._state = state
        self._now_ns = state.now_ns()
        self._worth_trying = _WorthTrying(state)
        self.always_retry = False
        """The next answer of the RM's predicates, or of preemption, may differ, or the RM is being asked."""
        self.retry_ns: int | None = None
        """When time alone may change the answer."""
        self.waits = False
        """The RM has not answered about some ask; the pass is repeated when it has."""

    def run(self) -> bool:
        """Try the applications in order until an ask is placed; return whether one was."""
        if not self._worth_trying:
            return False
        for leaf in self._state.tree.leaves_in_order():
            for entry in list(leaf.entries.reserved_entries.values()):
                if must_wait(self._state):
                    return False
                if entry.facts.gang_waits or not self._worth_trying.has(leaf, entry):
                    continue  # A gang that is placed whole is tried in the regular pass.
                if entry.facts.state is ApplicationState.ACCEPTED and not self._may_start(leaf, entry):
                    continue
                if entry.held is not None and held_by_policy(self._state, entry) is not None:
                    continue
                if self._try_application(leaf, entry):
                    return True
        return False

    def _may_start(self, leaf: Queue, entry: ApplicationEntry) -> bool:
        has_place = queue_quota.has_place_for(leaf, entry.application_id) is None
        return has_place and may_start(self._state, entry) and held_by_policy(self._state, entry) is None

    def _try_application(self, leaf: Queue, entry: ApplicationEntry) -> bool:
        state = self._state
        queue_rooms = queue_quota.headrooms(leaf)
        user_room = user_headroom(state, entry)
        elsewhere: list[Ask] = []
        keys_to_skip = () if state.node_checks is None else state.node_checks.keys_to_skip()
        only_key = self._worth_trying.only_key(leaf, entry)
        for reservation, record in entry.application.reservations.with_asks(only_key):
            if must_wait(self._state):
                return False
            if record is None:
                unreserve(state, entry, reservation.allocation_key)
                continue
            ask = record.ask
            if keys_to_skip and ask.allocation_key in keys_to_skip:
                self.always_retry = self.waits = True
                continue
            if state.claims.find(ask.allocation_key) is None:
                placed = self._try_own_node(entry, reservation, record, queue_rooms, user_room)
            else:
                with state.claims.lifted(ask.allocation_key):
                    rooms = queue_quota.headrooms(leaf)
                own_room = user_headroom(state, entry, ask.allocation_key)
                placed = self._try_own_node(entry, reservation, record, rooms, own_room)
            if placed:
                return True
            if placed is None and backfilling_queue(leaf) is None:  # Promises bind other nodes.
                elsewhere.append(ask)
        return any(not must_wait(self._state) and self._place_elsewhere(entry, ask) for ask in elsewhere)

    def _try_own_node(
        self,
        entry: ApplicationEntry,
        reservation: Reservation,
        record: AskRecord,
        queue_rooms: tuple[Resource | None, Resource | None],
        user_room: Resource | None,
    ) -> bool | None:
        """Return whether an ask was placed on its node; `None` if it was not, and may run elsewhere.

        `queue_rooms` is what the queues have room for, then without the root: what the nodes have together is
        no quota of an ask that needs its node.
        """
        state = self._state
        ask = record.ask
        queue_room = queue_rooms[bool(ask.required_node)]
        if not _within(queue_room, user_room, ask.resource):
            if _within(queue_rooms[1], user_room, ask.resource) or state.claims.find(ask.allocation_key):
                self._expire(entry, reservation)
            else:  # Its queue or its user may not have the node anyway: others may, until that has changed.
                unreserve(state, entry, ask.allocation_key)
            return False
        node = state.nodes.get(reservation.node_id)
        if node is not None and ask.required_node:
            if not fits(room_on_node(state, ask, node), ask.resource):
                self.always_retry = True
                until_ns = preempt_for_required_node(state, entry, record, node)
                if until_ns is not None:
                    self._retry_at(until_ns)
                return False
            with state.claims.lifted(ask.allocation_key):
                others_keep = room_beside_kept(entry, ask) is not None
            if others_keep:
                unreserve(state, entry, ask.allocation_key)
                return False
        is_pending = False
        if node is not None and (node.schedulable or ask.required_node):
            search = try_place(state, entry, ask, only=node)
            if search is None:
                return True
            is_pending = self._is_pending(entry, ask, search)
        return False if ask.required_node or is_pending else None

    def _is_pending(self, entry: ApplicationEntry, ask: Ask, search: NodeSearch) -> bool:
        """Return whether the RM has not answered about an ask; what it has refused is tried again later."""
        if search.pending:
            self.always_retry = self.waits = True
        elif search.refusals and search.keeping is None:
            self.always_retry = True
            self._retry_at(self._now_ns + _RETRY_INTERVAL_NS)
            if search.node is None:
                report_refusals(self._state, entry.application, ask, search.refusals)
        return search.pending

    def _expire(self, entry: ApplicationEntry, reservation: Reservation) -> None:
        """Drop a reservation for which there has been no room for too long, or retry when that is so.

        While an ask waits for its victims its node is kept: how long they take is up to the RM.
        """
        if reservation.required or self._state.claims.find(reservation.allocation_key) is not None:
            return
        due_ns = reservation.created_at_ns + RESERVATION_TIMEOUT_NS + 1
        if due_ns <= self._now_ns:
            unreserve(self._state, entry, reservation.allocation_key)
        else:
            self._retry_at(due_ns)

    def _retry_at(self, time_ns: int) -> None:
        if self.retry_ns is None or time_ns < self.retry_ns:
            self.retry_ns = time_ns

    def _place_elsewhere(self, entry: ApplicationEntry, ask: Ask) -> bool:
        search = try_place(self._state, entry, ask)
        if search is not None:
            self._is_pending(entry, ask, search)
        return search is None


def _has_room(node: NodeEntry, ask: Ask) -> bool:
    return fits(node.available, ask.resource) and fits(node.capacity, ask.resource)


def _within(queue_room: Resource | None, user_room: Resource | None, resource: Resource) -> bool:
    return fits_undefined_unlimited(queue_room, resource) and fits_undefined_unlimited(user_room, resource)


def replace_placeholder(state: PartitionState) -> bool:
    """Start one swap if any member can replace a placeholder; return whether one was started."""
    for leaf in state.tree.leaves_in_order():
        holders = leaf.entries.placeholder_entries
        if not holders:
            continue
        for entry in leaf.entries.in_order(holders):
            if _try_application(state, entry):
                return True
            if must_wait(state):
                return False
    return False


def _try_application(state: PartitionState, entry: ApplicationEntry) -> bool:
    walk = SwapWalk()
    first: SwapOffer | None = None
    checks = state.node_checks
    keys_to_skip = () if checks is None else checks.keys_to_skip()
    unknown: dict[str, tuple[Ask, list[str]]] = {}
    waits = False
    while (offer := entry.application.swaps.next(walk)) is not None:
        key = offer.ask.allocation_key
        if keys_to_skip and key in keys_to_skip:
            waits = True
            continue
        if not offer.fits:
            if not unknown and not waits:  # Otherwise a member that goes first may take the placeholder.
                _cancel(state, entry, offer)
            continue
        first = first or offer
        node = state.nodes.get(offer.placeholder.node_id)
        if node is None:
            continue
        refusal = None if checks is None else checks.refuse(offer.ask, node.node_id, allocate=False)
        if isinstance(refusal, Pending):
            unknown.setdefault(key, (offer.ask, []))[1].append(node.node_id)
        elif refusal is None and not _must_wait(key, unknown, checks) and _swap(state, entry, offer, node):
            return True
    for ask, node_ids in unknown.values():
        _ask_about(checks, ask, node_ids)
    # The first member goes elsewhere if no placeholder will do: which one that is may not be known yet.
    if first is None or waits or first.ask.allocation_key in unknown:
        return False
    return _swap_elsewhere(state, entry, first)


def _must_wait(key: str, unknown: Collection[str], checks: NodeChecks | None) -> bool:
    """Return whether an answer is pending that goes first: for another placeholder, or for another member."""
    return key in unknown or (bool(unknown) and checks is not None and not checks.may_overtake)


def _ask_about(checks: NodeChecks | None, ask: Ask, node_ids: list[str]) -> None:
    """Ask about the placeholders that go first; some may be on one node."""
    assert checks is not None, "without predicates nothing is unknown: please report"
    checks.ask_about(ask, list(dict.fromkeys(node_ids))[:NODES_PER_STEP], allocate=False)


def _real(state: PartitionState, offer: SwapOffer, node: NodeEntry) -> Allocation:
    return Allocation(offer.ask, node.node_id, state.now_ns(), node.instance_type)


def _swap(state: PartitionState, entry: ApplicationEntry, offer: SwapOffer, node: NodeEntry) -> bool:
    """Swap on the placeholder's own node: it holds the room until the RM has confirmed its end."""
    return _begin(state, entry, offer, _real(state, offer, node))


def _swap_elsewhere(state: PartitionState, entry: ApplicationEntry, offer: SwapOffer) -> bool:
    """Swap to another node: it holds the room, and the placeholder its own, until the RM has confirmed."""
    own = offer.placeholder.node_id  # It has been tried, and needs no second room.
    node = _first_allowed(state, offer.ask, without=(own, *outside_of_slice(state, entry, own)))
    if node is None:
        return False
    real = _real(state, offer, node)
    available = node.node.try_add(real)
    if available is None:
        return False
    state.nodes.take(node, available)
    if _begin(state, entry, offer, real):
        state.events.note_on_node(ChangeType.ADD, real)
        return True
    leave_node(state, real)
    return False


def _first_allowed(state: PartitionState, ask: Ask, *, without: Collection[str]) -> NodeEntry | None:
    if state.node_checks is not None:
        return state.node_checks.first_allowed(ask, state.nodes_for(ask), without=without).node
    fitting = state.nodes_for(ask).fitting(ask.resource)
    return next((node for node in fitting if node.node_id not in without), None)


def _begin(state: PartitionState, entry: ApplicationEntry, offer: SwapOffer, real: Allocation) -> bool:
    key = offer.placeholder.ask.allocation_key
    answer = entry.application.swaps.begin(real, key)
    if answer is None:
        return False
    entry.remove_pending(offer.ask)
    if state.node_checks is not None:
        state.node_checks.forget(keys=(offer.ask.allocation_key,))
    drop_reservations(state, answer.reservations)
    apply(state, entry, answer)
    text = f"replacing allocationKey: {offer.ask.allocation_key}"
    _announce(state, entry, key, TerminationType.PLACEHOLDER_REPLACED, text)
    return True


def _cancel(state: PartitionState, entry: ApplicationEntry, offer: SwapOffer) -> None:
    """Have a placeholder ended that is smaller than the member it was kept for."""
    key = offer.placeholder.ask.allocation_key
    if entry.application.allocations.mark_released(key):
        ask, placeholder = offer.ask, offer.placeholder.ask
        state.events.note(
            *(ChangeType.NONE, ChangeDetail.NONE, key),
            of=EventType.REQUEST,
            reference_id=entry.application_id,
            message=(
                f"Task group '{placeholder.task_group_name}' in application '{entry.application_id}': "
                f"allocation resources '{describe(ask.resource)}' are not matching placeholder "
                f"'{describe(placeholder.resource)}' allocation with ID '{key}'"
            ),
            resource=ask.resource,
        )
        _announce(state, entry, key, TerminationType.TIMEOUT, "cancel placeholder: resource incompatible")


def _announce(
    state: PartitionState,
    entry: ApplicationEntry,
    key: str,
    termination: TerminationType,
    text: str,
) -> None:
    release = Release(
        partition=state.name,
        application_id=entry.application_id,
        allocation_key=key,
        termination=termination,
        message=text,
    )
    state.host.announce(AllocationsReleased((release,)))
