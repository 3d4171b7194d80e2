"""The blockers of a walk that placed nothing, the changes that may help, and the applications that rest.

An application rests if each shape of its asks was refused for a lack of room, in the queues, within the
limits of its user or on the nodes: then the same changes give room to all that have asks of the same sizes
(`licorne.model.queues.waiting`). It does not if one of them needs its node. It rests as well if it may not
start.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Final, NamedTuple, final

from ..applications.ask_walk import AskWalk, Candidate
from ..applications.effects import ApplicationState
from ..preemption.guarantee.attempt_budget import AttemptBudget, RefusedAttempt, preempting_ask
from ..preemption.guarantee.limited import limited_holder
from ..queues import quota as queue_quota
from ..queues.application_entry import ApplicationEntry
from ..queues.queue import Queue
from ..queues.sleep import Wake
from ..queues.waiting import Conditions, GangSizes, PreemptingAsk, RestKind
from ..resources.resource import Resource, fits_undefined_unlimited
from ..state.charges import holder_of, may_start, user_headroom
from ..state.partition_state import PartitionState
from ..state.placing import set_runnable
from ..state.rates import AttemptShape, change_stamp
from ..values.allocation import Refusal, RefusalReason

LACKS_ROOM: Final = (RefusalReason.NO_NODE_FITS, RefusalReason.QUEUE_QUOTA)
"""Why an ask is refused that has no room."""


class PreemptionRefused(NamedTuple):
    """That preemption was refused to an ask, and to those that share its answer, and until when it is."""

    ask: PreemptingAsk | None
    """The ask, if it is due, and only has to wait for an attempt; `None` if it is not due."""
    until_ns: int | None
    """When it is due."""


class Rest(NamedTuple):
    """The changes that may give an application room, and when time alone may."""

    kind: RestKind
    until_ns: int | None


def conditions_in(
    state: PartitionState,
    leaf: Queue,
    headroom: Resource | None,
    now_ns: int,
    attempts: AttemptBudget | None = None,
) -> Conditions:
    """Return what decides which applications of a leaf are worth a try now.

    Args:
        state: The partition.
        leaf: The leaf.
        headroom: The room of the queues.
        now_ns: The time.
        attempts: The attempts to preempt that the walk may still make; `None` for as many as it wants.
    """

    def preemption_retry_ns(ask: PreemptingAsk) -> int | None:
        if attempts is not None and attempts.left <= 0:
            return now_ns  # The next walk may make some.
        fits = ask.holder is None and fits_undefined_unlimited(headroom, ask.size)
        shape = AttemptShape(leaf.path, ask.size, ask.priority, fits, ask.reserved_node, ask.holder)
        return state.failed_preemptions.until_ns(shape, now_ns, change_stamp(state))

    def is_gang_closed(gang: GangSizes) -> bool:
        return state.closed_gangs.has(gang, state.nodes.gains)

    closed = state.nodes.closed
    changes = state.changes, state.node_changes
    return Conditions(closed, headroom, changes, now_ns, preemption_retry_ns, None, is_gang_closed)


def with_limits(state: PartitionState, conditions: Conditions) -> Conditions:
    """Return the conditions with what limits on users and on running applications allow."""
    return conditions._replace(
        user_room=lambda entry: user_headroom(state, entry),
        may_run=lambda entry: may_run(state, entry),
    )


def may_run(state: PartitionState, entry: ApplicationEntry) -> tuple[bool, bool]:
    """Return whether the queues let an application run, and whether the limits of its user and group do."""
    in_queue = queue_quota.has_place_for(entry.queue, entry.application_id) is None
    return in_queue, may_start(state, entry)


def starts_or_runs(state: PartitionState, entry: ApplicationEntry) -> bool:
    """Return whether queues and limits let an application start, or it runs; report what has changed."""
    if entry.facts.state is not ApplicationState.ACCEPTED:
        return True
    in_queue, by_user = may_run(state, entry)
    set_runnable(state, entry, in_queue=in_queue, by_user=by_user)
    return entry.runnable_in_queue and entry.runnable_by_user


def may_hold_starts(state: PartitionState, leaf: Queue) -> bool:
    """Return whether limits, maxima of applications or policies may keep those of a leaf from starting."""
    is_limited = state.limits.is_limited or any(level.max_applications for level in leaf.above)
    return is_limited or bool(state.config.policies.admission)


def rest_of_held(state: PartitionState, entry: ApplicationEntry) -> Rest:
    """Return how an application rests that may not start, after both flags of it have been set."""
    flags = entry.runnable_in_queue, entry.runnable_by_user
    return Rest(RestKind((), may_reserve=False, may_run=flags, holder=holder_of(state, entry)), None)


def refused_preemption(
    state: PartitionState, entry: ApplicationEntry, candidate: Candidate, attempt: RefusedAttempt
) -> PreemptionRefused:
    """Return what may let an ask preempt to which it was refused, and those that share its answer.

    Args:
        state: The partition.
        entry: Its application.
        candidate: The ask; it has not preempted before.
        attempt: Why it was refused.
    """
    facts = entry.facts
    is_alone = facts.first is not None and facts.pending == facts.first.resource
    shares = attempt.is_made and attempt.refused_to_ns is not None and not is_alone
    if not (attempt.is_due or shares):
        return PreemptionRefused(None, attempt.retry_ns)
    ask = preempting_ask(candidate, limited_holder(state, entry, candidate))
    return PreemptionRefused(ask, None if attempt.is_due else attempt.retry_ns)


def rest_after(
    walk: AskWalk,
    closed: Container[Resource],
    *,
    sought_node: bool,
    preemption: Sequence[PreemptionRefused] = (),
    holder: tuple[str, str | None] | None = None,
) -> Rest | None:
    """Return how an application rests after a walk over all its asks, `None` if it does not.

    Args:
        walk: It ended without result: it has the refusal of each shape.
        closed: Sizes for which no node has room.
        sought_node: A node to reserve was sought for one of the asks.
        preemption: To which asks preemption was refused.
        holder: The user and the group, if they have limits.
    """
    sizes: dict[Resource, None] = {}
    over_limit: dict[Resource, None] = {}
    if walk.bars_required:
        return None
    until_ns = walk.retry_ns
    may_reserve = sought_node
    for refusal in walk.refusals:
        if refusal.reason is RefusalReason.WAITS_FOR_PLACEHOLDER:
            continue  # That changes with the application itself.
        size = refusal.asked
        if size is not None and refusal.reason is RefusalReason.USER_QUOTA:
            over_limit[size] = None
            continue
        if size is None or refusal.reason not in LACKS_ROOM:
            return None
        sizes[size] = None
        if refusal.reason is RefusalReason.QUEUE_QUOTA:
            may_reserve = walk.reservations_on  # It has not been tried for one.
        elif size not in closed:
            return None
        until_ns = earlier(until_ns, refusal.until_ns)
    preempting: dict[PreemptingAsk, None] = {}
    for refused in preemption:
        if refused.ask is not None:
            preempting[refused.ask] = None
        until_ns = earlier(until_ns, refused.until_ns)
    holds = holder if over_limit else None
    return Rest(
        RestKind(tuple(sizes), may_reserve, tuple(preempting), tuple(over_limit), None, holds), until_ns
    )


def earlier(one_ns: int | None, other_ns: int | None) -> int | None:
    """Return the earlier of two times; `None` means never."""
    if one_ns is None or other_ns is None:
        return other_ns if one_ns is None else one_ns
    return min(one_ns, other_ns)


def retries_of_resting(
    state: PartitionState,
    leaf: Queue,
    headroom: Resource | None,
    now_ns: int,
    others: tuple[PreemptingAsk, ...] = (),
) -> list[int]:
    """Return when time may give something to applications of a leaf that rest, or to others that preempt."""
    waiting = leaf.entries.waiting
    due_ns = waiting.next_due_ns()
    retries = [] if due_ns is None else [due_ns]
    conditions = conditions_in(state, leaf, headroom, now_ns)
    for ask in (*waiting.preempting(), *others):
        retry_ns = conditions.preemption_retry_ns(ask)
        retries.append(now_ns if retry_ns is None else retry_ns)
    return retries


def all_rest(queue: Queue) -> bool:
    """Return whether each leaf at or below a queue rests, of those in which something waits."""
    if not queue.pending:
        return True
    return queue.entries.sleep is not None if queue.is_leaf else all(map(all_rest, queue.children.values()))


def barred_sizes(leaf: Queue, headroom: Resource | None) -> frozenset[Resource]:
    """Return the sizes waiting in a leaf that do not fit its headroom."""
    if headroom is None:
        return frozenset()
    return frozenset(size for size in leaf.entries.sizes if not fits_undefined_unlimited(headroom, size))


@final
class Blocked:
    """The blockers of an application, or of all that were tried in a leaf.

    Args:
        notes_before: How many notes of refusals are kept if the visit is repeated.
    """

    __slots__ = (
        "is_own",
        "is_pending",
        "may_reserve",
        "notes_before",
        "preemption",
        "until_ns",
        "wakes",
    )

    def __init__(self, notes_before: int) -> None:
        self.wakes = Wake.BY_ROOM
        self.until_ns: int | None = None
        """When time alone may change the answer."""
        self.is_pending = False
        """The RM is being asked about an ask: the result is not known yet, and the visit is repeated."""
        self.notes_before = notes_before
        self.may_reserve = False
        """A node to reserve was sought for the application."""
        self.is_own = False
        """Others may not be blocked in the same way: the RM judged it, or it has preempted before."""
        self.preemption: list[PreemptionRefused] = []
        """To which asks of the application preemption was refused."""

    def wake(self, wakes: Wake) -> None:
        """Note what is worth another walk."""
        self.wakes = max(self.wakes, wakes)

    def wake_at(self, time_ns: int | None) -> None:
        """Note when time alone may change the answer; `None`: it does not."""
        if time_ns is not None and (self.until_ns is None or time_ns < self.until_ns):
            self.until_ns = time_ns

    def note(self, refusal: Refusal) -> None:
        """Note what may end a refusal."""
        if refusal.reason is RefusalReason.PREDICATES and refusal.until_ns is not None:
            self.wake(Wake.IN_EACH_CYCLE)  # Otherwise the RM reports when it may be allowed.
        elif refusal.reason not in LACKS_ROOM:
            self.wake(Wake.BY_ANY_CHANGE)
        self.wake_at(refusal.until_ns)

    def join(self, tried: Blocked) -> None:
        """Add what stopped one application to what stopped those before it."""
        self.wake(tried.wakes)
        self.wake_at(tried.until_ns)
        self.is_pending = self.is_pending or tried.is_pending
        self.notes_before = tried.notes_before
