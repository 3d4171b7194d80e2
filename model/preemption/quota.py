"""Enforcing a lowered maximum: use above it ends, as far as it is above the guarantees.

The rules are in `docs/preemption.md` ("For a quota").
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import final

from ..queues.queue import Queue
from ..queues.quota import is_over_maximum
from ..resources.comparisons import matches_any
from ..resources.resource import (
    EMPTY,
    Resource,
    add,
    describe,
    fits_undefined_unlimited,
    resource_text,
    subtract,
    subtract_only_existing,
    total_of,
)
from ..state.claims import EndingVictim
from ..state.partition_state import PartitionState
from ..state.preemption_log import (
    Justification,
    PreemptionCause,
    PreemptionRecord,
    VictimNeed,
    VictimRecord,
    justify,
)
from ..values.events import ChangeDetail, ChangeType
from .acts import ending_of, mark_all, release_by_application, remember, report_preempted, victim_record
from .losses import by_whole_jobs, described_at
from .protection import Protected, Protection, sparing
from .victim_orders import measure_in
from .victims import Victim, quota_order, victims_of


def preempt_over_quota(state: PartitionState) -> None:
    """Enforce every maximum whose time is due; called every second.

    A queue below one whose maximum is enforced is skipped until the next call. While placement for the RM is
    halted, nothing is preempted for it either.
    """
    if state.quota_preemption_enabled and state.host.placement_halt() is None:
        _visit(state, state.tree.root, state.now_ns())


def _visit(state: PartitionState, queue: Queue, now_ns: int) -> None:
    due_ns = queue.quota_preemption_due_ns
    if due_ns is not None and (due_ns <= now_ns or not is_over_maximum(queue)):
        queue.quota_preemption_due_ns = None
        if is_over_maximum(queue):
            _enforce(state, queue, now_ns)
            return
    for name in sorted(queue.children):
        _visit(state, queue.children[name], now_ns)


def _enforce(state: PartitionState, queue: Queue, now_ns: int) -> None:
    enforced = _Enforcement(state, queue, now_ns)
    # Shares are rounded down: the remainder is shared again, then required of one leaf after the other.
    while enforced.end_shares(shared_out(queue, over_maximum(queue))):
        pass
    while any(enforced.end_shares([share]) for share in _undivided(queue, over_maximum(queue))):
        pass
    gone = enforced.gone
    claimed = describe(total_of(victim.resource for victim in gone))
    summary = (
        f"Quota Preemption results summary: preemptable resources: {describe(enforced.over)}, "
        f"claimed resources: {claimed}, selected victims: {enforced.selected}, preempted victims: {len(gone)}"
    )
    state.events.note(
        *(ChangeType.SET, ChangeDetail.QUEUE_PREEMPTION, queue.path), message=summary, resource=queue.maximum
    )
    if gone:
        remember(state, _record(queue, enforced.over, gone, now_ns, enforced.justification()))
    protected = enforced.still_wanted()
    if protected:  # The rest follows when the first of them has run long enough.
        queue.quota_preemption_due_ns = min(each.until_ns for each in protected)


@final
class _Enforcement:
    """The victims of one maximum at one moment."""

    def __init__(self, state: PartitionState, queue: Queue, now_ns: int) -> None:
        self._state = state
        self._queue = queue
        self._now_ns = now_ns
        self._protection = Protection(queue, now_ns, for_guarantee=False, policies=sparing(state))
        self._measure = measure_in(state)
        self._protected: dict[str, list[Protected]] = {}
        """The protected victims by the path of their leaf."""
        self.over = over_maximum(queue)
        """The amount that the queue has to give back, which is a limit for each type."""
        self.selected = 0
        self.gone: list[VictimRecord] = []
        self._ending: list[EndingVictim] = []

    def end_shares(self, shares: Sequence[tuple[Queue, Resource]]) -> bool:
        """End allocations for the shares of some leaves, as far as possible; return whether any ended."""
        before = len(self.gone)
        for leaf, target in shares:
            self._end_share(leaf, target)
        return len(self.gone) > before

    def _end_share(self, leaf: Queue, target: Resource) -> None:
        state, queue = self._state, self._queue
        everything = [victim for entry in leaf.entries.by_id.values() for victim in victims_of(entry)]
        if self._measure is not None:
            everything = [self._measure.measured(victim) for victim in everything]
        candidates, self._protected[leaf.path] = self._protection.divide(leaf, everything)
        if state.whole_jobs_first:
            candidates = by_whole_jobs(candidates, target)
        above = _above_guarantees(leaf)
        excess = _excess(queue)
        spare = Resource({name: quantity for name, quantity in above.items() if excess.has(name)})
        owed = Resource({name: target.get(name) for name in self.over})
        victims = choose_for_quota(candidates, owed, queue.maximum or EMPTY, spare)
        self.selected += len(victims)
        marked = [victim for victim in victims if mark_all((victim,)) is None]
        text = f"preempting allocations to enforce new max quota for queue : {leaf.path}"
        release_by_application(state, marked, text)
        ending = ending_of(marked)
        state.claims.note_unclaimed(ending, self._now_ns)
        self._ending += ending
        report_preempted(state, marked, f"Quota change enforcement process in {queue.path}")
        self.gone += [
            victim_record(victim, _why(victim, target, self._now_ns), VictimNeed.MAXIMUM) for victim in marked
        ]

    def justification(self) -> Justification:
        """Return the figures of all victims; the queues do not count them as used any longer."""

        def used(queue: Queue) -> Resource:
            ending = (each.resource for each in self._ending if queue in each.queue.above)
            return add(_used(queue), total_of(ending))

        return justify((), self._ending, used, {})

    def still_wanted(self) -> list[Protected]:
        """Return the protected victims with a type of which the queue still uses more than its maximum."""
        left = over_maximum(self._queue)
        everything = (each for protected in self._protected.values() for each in protected)
        return [each for each in everything if matches_any(each.victim.resource, left)]


# --------------------------------------------------------------------------------------- amounts


def _used(queue: Queue) -> Resource:
    """Return the use of a queue, less the resources that are being preempted already."""
    return subtract_only_existing(queue.allocated, queue.preempting)


def _positive(resource: Resource) -> Resource:
    return Resource({name: quantity for name, quantity in resource.items() if quantity > 0})


def over_maximum(queue: Queue) -> Resource:
    """Return the use of a queue above its own maximum and above every guarantee that covers it."""
    return _capped(_excess(queue), _above_guarantees(queue))


def _excess(queue: Queue) -> Resource:
    """Return the use of a queue above its own maximum."""
    if queue.maximum is None:
        return EMPTY
    over = subtract(_used(queue), queue.maximum)
    return _positive(Resource({name: over[name] for name in queue.maximum}))


def _above_guarantees(queue: Queue) -> Resource:
    """Return how much may end before this queue or one above it falls below its guarantee, for its types."""
    above: dict[str, int] = {}
    for level in queue.above:
        used = _used(level)
        for name, quantity in (level.guaranteed or EMPTY).items():
            left = max(0, used.get(name) - quantity)
            above[name] = min(left, above.get(name, left))
    return Resource(above)


def _capped(resource: Resource, cap: Resource) -> Resource:
    """Return the positive quantities of a resource, each at most the quantity of the cap."""
    return _positive(
        Resource({name: min(quantity, cap.get(name, quantity)) for name, quantity in resource.items()})
    )


def shared_out(queue: Queue, target: Resource) -> list[tuple[Queue, Resource]]:
    """Divide the amount that a queue has to give back; return the part of each leaf below it."""
    if not target:
        return []
    if queue.is_leaf:
        return [(queue, target)]
    children = [queue.children[name] for name in sorted(queue.children)]
    above = {child.path: _above_own_guarantee(child) for child in children}
    total = total_of(above.values())
    shares: list[tuple[Queue, Resource]] = []
    for child in children:
        own = above[child.path]
        part = {name: own[name] * wanted // total[name] for name, wanted in target.items() if own.has(name)}
        shares += shared_out(child, _capped(Resource(part), own))
    return shares


def _undivided(queue: Queue, target: Resource) -> Iterator[tuple[Queue, Resource]]:
    """Walk the leaves below a queue, each with the part of a target that it may give."""
    if queue.is_leaf:
        if target:
            yield queue, target
        return
    for name in sorted(queue.children):
        child = queue.children[name]
        yield from _undivided(child, _capped(target, _above_own_guarantee(child)))


def _above_own_guarantee(queue: Queue) -> Resource:
    return _positive(subtract(_used(queue), queue.guaranteed))


# ------------------------------------------------------------------------------ choice of victims


def choose_for_quota(
    candidates: Sequence[Victim],
    target: Resource,
    maximum: Resource,
    above_guarantees: Resource,
) -> tuple[Victim, ...]:
    """Choose the victims of a leaf.

    Args:
        candidates: The possible victims.
        target: The amount that the leaf has to give back, which is a limit for each type. A quantity may
            be zero.
        maximum: The maximum that is enforced; the unit of sizes.
        above_guarantees: The amount that may end, for the types above the maximum that have a guarantee.
    """
    chosen: list[Victim] = []
    left = target
    spare = above_guarantees
    wanted = _positive(target)
    matching = [victim for victim in candidates if matches_any(victim.resource, wanted)]
    for victim in sorted(matching, key=lambda victim: quota_order(victim, wanted, maximum)):
        resource = victim.resource
        helps = any(resource.get(name) > 0 and quantity > 0 for name, quantity in left.items())
        if helps and fits_undefined_unlimited(left, resource) and fits_undefined_unlimited(spare, resource):
            chosen.append(victim)
            left = subtract_only_existing(left, resource)
            spare = subtract_only_existing(spare, resource)
    return tuple(chosen)


def _record(
    queue: Queue,
    over: Resource,
    victims: Sequence[VictimRecord],
    now_ns: int,
    justification: Justification,
) -> PreemptionRecord:
    return PreemptionRecord(
        time_ns=now_ns,
        cause=PreemptionCause.QUOTA,
        queue_path=queue.path,
        wanted=over,
        reason=(
            f"{queue.path} uses {resource_text(queue.allocated)}, more than its maximum of "
            f"{resource_text(queue.maximum)}, and is to give back {resource_text(over)}"
        ),
        victims=tuple(victims),
        justification=justification,
    )


def _why(victim: Victim, target: Resource, now_ns: int) -> str:
    return (
        f"{described_at(victim, now_ns)}; next in the order of {victim.queue.path}, "
        f"and no more than the {resource_text(target)} that it has to give back"
    )
