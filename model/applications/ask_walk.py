"""The walk of one application's waiting asks in one cycle: which one to try next.

The partition starts a walk for an application and passes it with each question; the application answers
with a candidate, or with `None` at the end. Between the questions the partition searches a node, asks the
RM's predicates and commits: none of that happens inside the application. The next question carries why the
candidate was not placed, as one `FailedTry`: only the application changes the walk. Asks of one shape share
one answer, see `licorne.model.applications.pending_asks`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from enum import Enum
from heapq import heappop, heappush, merge
from itertools import islice
from operator import attrgetter
from typing import Final, NamedTuple, TypeAlias, final

from ..resources.resource import Resource, fits_undefined_unlimited
from ..values.allocation import Ask, Refusal, RefusalReason, refused
from .gang import TaskGroups
from .holdings import HeldAllocation
from .pending_asks import (
    EVER_NS,
    QUEUE_CHECK,
    USER_CHECK,
    AskGroup,
    AskOrder,
    AskRecord,
    PendingAsks,
    Reservations,
    has_own_answer,
)

RESERVATION_DELAY_NS: Final = 2_000_000_000
"""How old an ask must be before a node is reserved for it."""


class CandidateKind(Enum):
    """The attempt that the partition is to make for an ask."""

    NODES = "any node with room"
    REQUIRED_NODE = "the one node it may run on"
    RESERVATION = "a reservation: an equal ask found no room already"
    PREEMPTION = "preemption: the queue has no room"
    LIMIT = "preemption: the limits of its user or group have no room"


class Candidate(NamedTuple):
    """An ask to try, and how."""

    ask: Ask
    kind: CandidateKind
    reserved_node: str
    """The node that is reserved for the ask, or the empty text."""
    triggered_preemption: bool
    preemption_checked_ns: int | None


class FailedTry(NamedTuple):
    """Why the partition could not place the last candidate."""

    refusals: tuple[Refusal, ...] = ()
    holds_for_shape: bool = False
    """No node has room for it, nor for an equal one."""
    reservation_refused: bool = False
    """The RM refused a node to be reserved for it, and may not refuse it for an equal one."""
    preemption_refused_to_ns: int | None = None
    """Preemption was refused to it, and is refused to those of its shape that were created up to then."""
    passed_over: bool = False
    """The RM has been asked about it and has not answered: nothing is known of it, nor of others."""


_new: Final = tuple.__new__
_Entry: TypeAlias = "tuple[AskOrder, CandidateKind | None, AskGroup, int | None]"
"""One a group at most: an ask to be checked, or with a kind one that shares the answer of others. After the
group, up to which creation time preemption is refused to all that share an answer."""


@final
class AskWalk:
    """The arguments of the partition at the start of the walk, and the progress of the application."""

    __slots__ = (
        "backoff_count",
        "backoff_due",
        "bars_required",
        "checks",
        "current",
        "entries",
        "first",
        "headroom_below_root",
        "is_first_try",
        "is_whole",
        "keys_to_skip",
        "notes",
        "now_ns",
        "passed_over",
        "preemption",
        "preempts_at_limits",
        "queue_headroom",
        "queue_path",
        "refusals",
        "reservations_on",
        "retry_ns",
        "skipped",
        "unschedulable",
        "user_headroom",
        "user_name",
    )

    def __init__(
        self,
        *,
        now_ns: int,
        queue_path: str,
        queue_headroom: Resource | None,
        headroom_below_root: Resource | None,
        user_name: str,
        user_headroom: Resource | None,
        preemption: bool,
        backoff_count: int,
        reservations_on: bool = True,
        keys_to_skip: Collection[str] = (),
        keeps_notes: bool = False,
        preempts_at_limits: bool = False,
    ) -> None:
        self.now_ns = now_ns
        self.queue_path = queue_path
        self.queue_headroom = queue_headroom
        self.headroom_below_root = headroom_below_root
        """For an ask that needs its node: the capacity of all nodes together is not a quota."""
        self.user_name = user_name
        self.user_headroom = user_headroom
        self.preemption = preemption
        self.preempts_at_limits = preempts_at_limits
        """Asks that the limits of the user or the group have no room for may preempt."""
        self.backoff_count = backoff_count
        self.reservations_on = reservations_on
        self.keys_to_skip = keys_to_skip
        """The keys of asks about which the RM is being asked: they are skipped. They may become more."""
        self.passed_over = False
        self.notes: list[tuple[str, str]] | None = [] if keeps_notes else None
        """Keys and why the last question refused them; `None` if the logs of the asks take them at once."""
        self.entries: list[_Entry] | None = None
        self.first: AskGroup | None = None
        self.is_whole = False
        """All groups take part, not only the first one."""
        self.current: tuple[AskRecord, AskGroup, CandidateKind, int | None] | None = None
        """The candidate that the partition got last."""
        self.is_first_try = False
        """The last candidate had never been attempted before."""
        self.retry_ns: int | None = None
        """When the next ask is old enough for a reservation."""
        self.unschedulable = 0
        self.backoff_due = False
        self.skipped: list[AskGroup] = []
        self.refusals: list[Refusal] = []
        self.bars_required = False
        """The queues have no room for an ask that needs its node: once they have, it reserves the node, full
        or not, so that other changes matter to it than to others of its size."""
        self.checks: list[tuple[Ask, int, Resource | None]] = []
        """Asks that fit a headroom no longer, with what is available, or again, with `None`."""

    def check(self, record: AskRecord, check: int, available: Resource | None, *, fits: bool) -> None:
        """Note whether an ask fits a headroom, if that has changed."""
        if fits is bool(record.failed_checks & check):
            record.failed_checks ^= check
            self.checks.append((record.ask, check, None if fits else available))

    def note(self, record: AskRecord, reason: RefusalReason) -> None:
        """Count a refusal in the log of an ask."""
        if self.notes is None:
            record.note(reason.value, self.now_ns)
        else:
            self.notes.append((record.ask.allocation_key, reason.value))

    def mark_attempted(self, until: AskOrder | None) -> None:
        """Count the asks that shared an answer as attempted: all, or those before a place in the order."""
        for group in self.skipped:
            group.mark_attempted(until)
        self.skipped.clear()


def next_candidate(
    walk: AskWalk,
    failed: FailedTry | None,
    asks: PendingAsks,
    task_groups: TaskGroups,
    reservations: Reservations,
) -> Candidate | None:
    """Return the next ask to try, `None` when no further one is worth trying.

    `failed` is why the one that was returned last was not placed, `None` for the first question of a walk.
    """
    if walk.notes:
        walk.notes = []
    if walk.entries is None:
        first = asks.first_group()
        walk.first = first
        walk.entries = [] if first is None else [(first.order, None, first, None)]
        if walk.keys_to_skip:
            _add_other_groups(walk, asks)
    elif walk.current is not None:
        if not walk.is_whole:
            _add_other_groups(walk, asks)
        assert failed is not None, "the walk goes on without a word on its last candidate: please report"
        walk.refusals += failed.refusals
        _leave(walk, failed, asks, reservations)
        if walk.backoff_due:
            return None
    while True:
        candidate = _next_entry(walk, task_groups, reservations)
        if candidate is not None:
            return candidate
        if walk.is_whole:
            break
        _add_other_groups(walk, asks)
    walk.mark_attempted(None)
    return None


def _add_other_groups(walk: AskWalk, asks: PendingAsks) -> None:
    """Add all other groups, which most walks do not need: they end with the first ask of the first group."""
    assert walk.entries is not None, "the walk has begun"
    walk.is_whole = True
    for order, group in asks.walk():
        if group is not walk.first:
            heappush(walk.entries, (order, None, group, None))


def _next_entry(walk: AskWalk, task_groups: TaskGroups, reservations: Reservations) -> Candidate | None:
    """Check the entries in order until one is worth a try."""
    entries = walk.entries
    while entries:
        order, kind, group, refused_to_ns = heappop(entries)
        record = group.find(order)
        if record is None:
            continue
        if walk.keys_to_skip and record.ask.allocation_key in walk.keys_to_skip:
            _pass_over(walk, record, group, kind, refused_to_ns)
            continue
        if kind is None:
            kind = _kind_to_try(walk, record, group, task_groups)
        if kind is not None:
            walk.current = (record, group, kind, refused_to_ns)
            ask = record.ask
            reserved_node = reservations.node_of(ask.allocation_key) if reservations else ""
            # Not by its constructor, which is slower: a function in Python that calls this one.
            return _new(
                Candidate,
                (ask, kind, reserved_node, record.preemption_triggered, record.preemption_checked_ns),
            )
    return None


def _pass_over(
    walk: AskWalk, record: AskRecord, group: AskGroup, kind: CandidateKind | None, refused_to_ns: int | None
) -> None:
    """Skip an ask about which the RM is being asked; with a class, all of its shape are skipped."""
    walk.passed_over = True
    if group.shape.predicate_class:
        return
    following = group.first_after(record.order)
    if following is not None and kind is None:
        _push(walk, (following.order, None, group, refused_to_ns))


def _kind_to_try(
    walk: AskWalk,
    record: AskRecord,
    group: AskGroup,
    task_groups: TaskGroups,
) -> CandidateKind | None:
    """Decide what to try for an ask; `None` skips all of its shape."""
    shape = group.shape
    ask = record.ask
    if task_groups.makes_wait(shape):
        walk.refusals.append(refused(RefusalReason.WAITS_FOR_PLACEHOLDER, shape.task_group_name, ask, None))
        return None
    if not fits_undefined_unlimited(walk.user_headroom, shape.resource):
        walk.check(record, USER_CHECK, walk.user_headroom, fits=False)
        walk.note(record, RefusalReason.USER_QUOTA)
        walk.refusals.append(refused(RefusalReason.USER_QUOTA, walk.user_name, ask, walk.user_headroom))
        walk.is_first_try = False
        tries = walk.preempts_at_limits and shape.allow_preempt_other and not shape.required_node
        return CandidateKind.LIMIT if tries else None
    walk.is_first_try = not record.attempted
    record.attempted = True
    headroom = walk.headroom_below_root if shape.required_node else walk.queue_headroom
    if not fits_undefined_unlimited(headroom, shape.resource):
        if record.failed_checks & USER_CHECK:
            walk.check(record, USER_CHECK, None, fits=True)
        walk.check(record, QUEUE_CHECK, headroom, fits=False)
        walk.note(record, RefusalReason.QUEUE_QUOTA)
        walk.refusals.append(refused(RefusalReason.QUEUE_QUOTA, walk.queue_path, ask, headroom))
        if shape.required_node:
            walk.bars_required = True
        if walk.preemption and shape.allow_preempt_other:
            return CandidateKind.PREEMPTION
        walk.skipped.append(group)
        return None
    if record.failed_checks:
        walk.check(record, USER_CHECK, None, fits=True)
        walk.check(record, QUEUE_CHECK, None, fits=True)
    if shape.required_node:
        return CandidateKind.REQUIRED_NODE
    return CandidateKind.NODES


def _leave(walk: AskWalk, failed: FailedTry, asks: PendingAsks, reservations: Reservations) -> None:
    if failed.passed_over:
        _leave_pending(walk)
    else:
        _leave_failed(walk, failed, asks, reservations)


def _leave_pending(walk: AskWalk) -> None:
    """Continue after an ask about which the RM is being asked now, as if it had not been tried."""
    assert walk.current is not None
    record, group, kind, refused_to_ns = walk.current
    walk.current = None
    is_shared = kind is CandidateKind.RESERVATION
    if walk.is_first_try and not is_shared:
        record.attempted = False
    _pass_over(walk, record, group, kind if is_shared else None, refused_to_ns)


def _leave_failed(walk: AskWalk, failed: FailedTry, asks: PendingAsks, reservations: Reservations) -> None:
    """Continue after an ask that could not be placed."""
    assert walk.current is not None
    record, group, kind, refused_to_ns = walk.current
    if failed.preemption_refused_to_ns is not None:
        refused_to_ns = failed.preemption_refused_to_ns
    shared = failed.holds_for_shape
    walk.current = None
    if kind is not CandidateKind.LIMIT:
        walk.skipped.append(group)
    if kind is CandidateKind.NODES:
        if _backs_off(walk, record, asks):
            return
        shared = shared and not walk.backoff_count
    elif kind is not CandidateKind.REQUIRED_NODE:
        shared = True
    preempts = walk.preemption and group.shape.allow_preempt_other
    if shared and not (preempts and refused_to_ns is None):
        own = _next_own(walk, record, group, reservations, refused_to_ns) if preempts else None
        # After a reservation the next one is tried only if the RM may take the same node for another ask.
        reserves = kind is CandidateKind.NODES or failed.reservation_refused
        reservable = _next_reservable(walk, record, group, reservations, own) if reserves else None
        if reservable is not None:
            _push(walk, (reservable.order, CandidateKind.RESERVATION, group, refused_to_ns))
        elif own is not None:
            _push(walk, (own.order, None, group, refused_to_ns))
        return
    for other in group.after(record.order):
        _push(walk, (other.order, None, group, refused_to_ns))
        return


def _next_own(
    walk: AskWalk,
    record: AskRecord,
    group: AskGroup,
    reservations: Reservations,
    refused_to_ns: int | None,
) -> AskRecord | None:
    """Return the next ask of a shape to which preemption may not be refused as to the ones before it."""
    shared = []
    found: AskRecord | None = None
    for other in group.apart.after(record.order):
        if has_own_answer(other, reservations.node_of(other.ask.allocation_key), walk.now_ns):
            found = other
            break
        shared.append(other)
    for other in shared:
        group.share(other)
    if refused_to_ns is not None:
        younger = group.first_after(max(record.order, (record.order[0], refused_to_ns, EVER_NS)))
        if younger is not None:
            return younger if found is None else min(found, younger, key=_order_of)
    return found


def _order_of(record: AskRecord) -> AskOrder:
    return record.order


def _backs_off(walk: AskWalk, record: AskRecord, asks: PendingAsks) -> bool:
    """Count an ask that found no node; return whether that was one too many."""
    walk.unschedulable += 1
    if not walk.backoff_count or walk.unschedulable < walk.backoff_count:
        return False
    walk.backoff_due = any(other.order > record.order for other in asks.records.values())
    if walk.backoff_due:
        walk.mark_attempted(record.order)
    return walk.backoff_due


def _next_reservable(
    walk: AskWalk,
    record: AskRecord,
    group: AskGroup,
    reservations: Reservations,
    before: AskRecord | None,
) -> AskRecord | None:
    """Return the next ask of a shape to be tried for a reservation: it is old enough and has no reservation.

    The search ends at `before`, which is checked by itself.
    """
    if not walk.reservations_on:
        return None
    begin = known_to = record.order
    if group.reserved is not None and before is None and group.reserved[0] <= begin <= group.reserved[1]:
        begin, known_to = group.reserved
    for other in group.after(known_to):
        if other is before:
            return None
        due_ns = other.ask.created_at_ns + RESERVATION_DELAY_NS + 1
        if due_ns > walk.now_ns:  # The following ones are even younger.
            walk.retry_ns = due_ns if walk.retry_ns is None else min(walk.retry_ns, due_ns)
            return None
        if not reservations.node_of(other.ask.allocation_key):
            return other
        group.reserved = begin, other.order
    return None


def _push(walk: AskWalk, entry: _Entry) -> None:
    assert walk.entries is not None
    heappush(walk.entries, entry)


class TryingPass(Enum):
    """The pass of a cycle that tries an ask, in the order of the passes."""

    RESERVED = "a node is reserved for it"
    PLACEHOLDER = "it is to take the place of a placeholder"
    REGULAR = "any node with room"


class NextTry(NamedTuple):
    """An ask that is to be tried."""

    ask: Ask
    trying_pass: TryingPass
    reserved_node: str
    """The node that is reserved for it, or the empty text."""


def first_waiting(
    asks: PendingAsks,
    task_groups: TaskGroups,
    reservations: Reservations,
    placed: Mapping[str, HeldAllocation],
    count: int,
) -> tuple[NextTry, ...]:
    """Return the first waiting asks, `count` at most, in the order of the asks.

    Members of a gang that wait for placeholders, before one is placed, are left out: no pass tries them.
    """
    members = {
        entry.allocation.ask.task_group_name
        for entry in placed.values()
        if entry.allocation.ask.placeholder and not entry.is_leaving
    }

    def walk(group: AskGroup) -> Iterator[AskRecord]:
        shape = group.shape
        is_left_out = task_groups.makes_wait(shape) and shape.task_group_name not in members
        return iter(()) if is_left_out else iter(group)

    found = merge(*(walk(group) for group in asks.groups.values()), key=attrgetter("order"))
    return tuple(_next_try(record, task_groups, reservations) for record in islice(found, count))


def _next_try(record: AskRecord, task_groups: TaskGroups, reservations: Reservations) -> NextTry:
    ask = record.ask
    node_id = reservations.node_of(ask.allocation_key)
    group = record.group
    if node_id:
        return NextTry(ask, TryingPass.RESERVED, node_id)
    if group is not None and task_groups.makes_wait(group.shape):
        return NextTry(ask, TryingPass.PLACEHOLDER, "")
    return NextTry(ask, TryingPass.REGULAR, "")
