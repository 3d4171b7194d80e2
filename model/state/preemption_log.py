"""The log of preemptions with their reasons and costs for queues: for explanations and budgets.

They are taken once, when the decision is made. A preemption may make room for several asks,
each on its node.

A queue counts what ends in it and below it when that is decided, and forgets it after its window: so what is
kept is bounded by the budgets.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple, final

from ..queues.queue import Queue, priority_outside
from ..resources.resource import EMPTY, Resource, add, subtract, total_of
from .claims import EndingVictim
from .counters import RecentLog

RECORDS_MAX: Final = 256
"""Preemptions remembered for explanations; at the bound the oldest is forgotten."""


class Preemptor(NamedTuple):
    """An ask that a preemption makes room for, and its node."""

    allocation_key: str
    application_id: str
    queue_path: str
    node_id: str
    resource: Resource


class FramePriorities(NamedTuple):
    """The priorities of an ask and of a victim where they are compared: as the frame sees them."""

    frame: str
    """The path of the first queue that both are in; empty for priorities without offsets."""
    ask: int
    victim: int


@dataclass(frozen=True, slots=True)
class QueueBalance:
    """The use and the guarantee of a queue, before a preemption and after it.

    *Before* is what counts as used when it is decided: what is allocated, less what is being preempted,
    and above the ask with what other asks have preempted for. *After* it the victims have ended, and the
    asks run.
    """

    path: str
    guaranteed: Resource | None
    before: Resource
    after: Resource

    def owed(self, used: Resource) -> Resource:
        """Return what is guaranteed and not used, of the types that the guarantee names."""
        promised = (self.guaranteed or EMPTY).items()
        return Resource({name: more for name, one in promised if (more := one - used.get(name)) > 0})

    def above(self, used: Resource) -> Resource:
        """Return what is used and not guaranteed, of all types."""
        promised = self.guaranteed or EMPTY
        return Resource({name: more for name, one in used.items() if (more := one - promised.get(name)) > 0})


class NodeBalance(NamedTuple):
    """The free room of a node before a preemption, and after it: negative if others use more."""

    node_id: str
    before: Resource
    after: Resource


@dataclass(frozen=True, slots=True, kw_only=True)
class Justification:
    """The figures of a preemption."""

    preemptors: tuple[Preemptor, ...] = ()
    """The asks that it is for, empty where a maximum is enforced."""
    queues: tuple[QueueBalance, ...] = ()
    """Each queue that an ask or a victim is in, by path."""
    nodes: tuple[NodeBalance, ...] = ()
    """The nodes of the preemptors."""
    taken_over: tuple[str, ...] = ()
    """The keys of what ended already for no ask, and ends for this one from now on."""


NO_FIGURES: Final = Justification()


def justify(
    preemptors: Sequence[tuple[Preemptor, Queue]],
    victims: Sequence[EndingVictim],
    used: Callable[[Queue], Resource],
    available: Mapping[str, Resource],
    taken_over: Sequence[EndingVictim] = (),
) -> Justification:
    """Return the figures of a preemption.

    Args:
        preemptors: The asks that it is for, with the leaf of each.
        victims: The allocations that end.
        used: Returns what a queue uses before.
        available: The free room on the nodes of the preemptors before, by name.
        taken_over: Allocations that end already, for no ask; the queues do not count them as used.
    """
    leaves = (*(leaf for _, leaf in preemptors), *(victim.queue for victim in victims))
    queues = {level.path: level for leaf in leaves for level in leaf.above}

    def balance(queue: Queue) -> QueueBalance:
        before = used(queue)
        more = total_of(preemptor.resource for preemptor, leaf in preemptors if queue in leaf.above)
        less = total_of(victim.resource for victim in victims if queue in victim.queue.above)
        return QueueBalance(queue.path, queue.guaranteed, before, subtract(add(before, more), less))

    def room(node_id: str) -> NodeBalance:
        less = total_of(preemptor.resource for preemptor, _ in preemptors if preemptor.node_id == node_id)
        ending = (each for each in (*victims, *taken_over) if each.node_id == node_id)
        more = total_of(each.resource for each in ending)
        before = available[node_id]
        return NodeBalance(node_id, before, subtract(add(before, more), less))

    return Justification(
        preemptors=tuple(preemptor for preemptor, _ in preemptors),
        queues=tuple(balance(queues[path]) for path in sorted(queues)),
        nodes=tuple(map(room, dict.fromkeys(preemptor.node_id for preemptor, _ in preemptors))),
        taken_over=tuple(each.allocation_key for each in taken_over),
    )


def priority_among(leaf: Queue, priority: int, frame: Queue) -> int:
    """Return what a priority in a leaf counts as among the children of a queue above the leaf."""
    for level in leaf.above:
        if level is frame:
            break
        priority = priority_outside(level.settings, priority)
    return priority


class PreemptionCause(Enum):
    """The reasons for the end of victims."""

    GUARANTEE = "a queue is owed its guarantee"
    PRIORITY = "an ask has a higher priority in its queue"
    REQUIRED_NODE = "an ask can run on one node only"
    QUOTA = "a queue uses more than its maximum, which was lowered"


class VictimNeed(Enum):
    """The asks that would lack room without a victim."""

    NODE = "the node"
    PREDICATES = "nothing: the predicates of the RM demand its end"
    QUEUE = "a queue of the ask"
    LIMIT = "the limit of a user or a group"
    MAXIMUM = "nothing: a queue is above its maximum"


@dataclass(frozen=True, slots=True, kw_only=True)
class VictimRecord:
    """One victim, and why that one."""

    allocation_key: str
    application_id: str
    queue_path: str
    node_id: str
    resource: Resource
    reason: str
    need: VictimNeed = VictimNeed.NODE
    priorities: FramePriorities | None = None
    """`None` where a maximum is enforced: that compares none."""
    gives: tuple[str, ...] = ()
    """The types that it gives to the guarantee of a queue; empty without one."""
    user: str = ""
    begun_ns: int | None = None
    """Since when its work is lost: its start, or its last checkpoint; `None` if that is not known."""

    def lost_ns(self, now_ns: int) -> int:
        """Return how much work is lost if it ends now."""
        return 0 if self.begun_ns is None else max(0, now_ns - self.begun_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class PreemptionRecord:
    """One preemption: a decision that was carried out as a whole.

    `allocation_key`, `application_id` and `ask_queue_path` are those of the ask, empty where a maximum is
    enforced. `queue_path` is the queue whose guarantee is served: the ask's leaf or one above it; where
    no guarantee plays a part, the queue whose maximum is enforced, or the ask's leaf.
    """

    time_ns: int
    cause: PreemptionCause
    queue_path: str
    ask_queue_path: str = ""
    allocation_key: str = ""
    application_id: str = ""
    node_id: str = ""
    """The node that the ask is to have, empty where a maximum is enforced."""
    wanted: Resource = EMPTY
    """The request of the ask; where a maximum is enforced, the amount that the queue is to give back."""
    reason: str
    victims: tuple[VictimRecord, ...]
    justification: Justification = NO_FIGURES
    loop: str = ""
    """Why this preemption repeats one without result; empty for all others."""

    def explain(self) -> tuple[str, ...]:
        """Return the explanation, a sentence a line: first the ask and its claim, then each victim."""
        lines = [self.reason]
        lines += [
            f"{victim.allocation_key} of {victim.application_id} in {victim.queue_path} on {victim.node_id}: "
            f"{victim.reason}"
            for victim in self.victims
        ]
        if self.loop:
            lines.append(f"loop: {self.loop}")
        return tuple(lines)


@final
class PreemptionLog:
    """The preemptions of a partition: the last `RECORDS_MAX`, and the last one for each ask that waits.

    Explanations are made of the former. The latter decide: an ask whose victims have not ended yet is to have
    their room, however many have preempted since.
    """

    def __init__(self) -> None:
        self._records: RecentLog[PreemptionRecord] = RecentLog(RECORDS_MAX)
        self._last_of_asks: dict[tuple[str, str], PreemptionRecord] = {}
        """By application and key; some asks may be in it that wait no longer."""
        self._asks_max = RECORDS_MAX
        """With more of them those that wait no longer are forgotten."""
        self.loops = 0
        """Preemptions that repeated one without result, forgotten ones included."""
        self.victims: Counter[tuple[str, str, str]] = Counter()
        """How many allocations ended, by the queue of the ask (or the one whose maximum is enforced), that of
        the victim, and the name of the cause."""
        self.lost_ns: Counter[tuple[str, str, str]] = Counter()
        """How much work was lost with them."""

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[PreemptionRecord]:
        """Walk the preemptions, the oldest first."""
        return iter(self._records)

    @property
    def added(self) -> int:
        """Preemptions that were remembered, forgotten ones included."""
        return self._records.added

    def add(self, record: PreemptionRecord, waits: Callable[[PreemptionRecord], bool]) -> None:
        """Remember a preemption; `waits` tells whether the ask of one waits still."""
        self._records.add(record)
        self.loops += bool(record.loop)
        for victim in record.victims:
            sides = (record.ask_queue_path or record.queue_path, victim.queue_path, record.cause.name)
            self.victims[sides] += 1
            self.lost_ns[sides] += victim.lost_ns(record.time_ns)
        if not record.allocation_key:
            return
        self._last_of_asks[record.application_id, record.allocation_key] = record
        if len(self._last_of_asks) > self._asks_max:
            self._last_of_asks = {name: last for name, last in self._last_of_asks.items() if waits(last)}
            self._asks_max = max(RECORDS_MAX, 2 * len(self._last_of_asks))

    def since(self, added: int) -> tuple[PreemptionRecord, ...]:
        """Return those that were remembered after a number of them."""
        return self._records.since(added)

    def last_for(self, allocation_key: str, application_id: str) -> PreemptionRecord | None:
        """Return the last preemption for an ask that waits, `None` without one."""
        return self._last_of_asks.get((application_id, allocation_key))

    def explain(self, allocation_key: str) -> tuple[str, ...]:
        """Explain every remembered preemption that an allocation key took part in, as ask or as victim."""
        return tuple(
            line
            for record in self._records
            if record.allocation_key == allocation_key
            or any(victim.allocation_key == allocation_key for victim in record.victims)
            for line in record.explain()
        )


class Overdraft(NamedTuple):
    """A queue that may not lose this many allocations now."""

    queue: Queue
    until_ns: int | None
    """When it may, `None` if it may never lose this many at a time."""


@final
class DisruptionLog:
    """Until when victims of queues with a budget count."""

    def __init__(self) -> None:
        self._until_ns: dict[str, list[int]] = {}
        """By path, in order of time."""

    def note(self, leaves: Iterable[Queue], now_ns: int) -> None:
        """Note that one allocation of each of these leaves ends; a leaf may be there several times."""
        for path in list(self._until_ns):
            self._counting(path, now_ns)
        for leaf in leaves:
            for level in leaf.above:
                budget = level.settings.victims_max
                if budget is not None:
                    insort(self._until_ns.setdefault(level.path, []), now_ns + budget.within_ns)

    def overdraft(self, leaves: Iterable[Queue], now_ns: int) -> Overdraft | None:
        """Return which queue may not lose one allocation of each of these leaves, `None` if all may.

        Of several it is the one that may last; of these the first by its path.
        """
        wanted: dict[str, int] = {}
        queues: dict[str, Queue] = {}
        for leaf in leaves:
            for level in leaf.above:
                if level.settings.victims_max is not None:
                    queues[level.path] = level
                    wanted[level.path] = wanted.get(level.path, 0) + 1
        last: Overdraft | None = None
        for path in sorted(queues):
            found = self._overdraft_of(queues[path], wanted[path], now_ns)
            if found is not None and (last is None or _is_later(found, last)):
                last = found
        return last

    def _overdraft_of(self, queue: Queue, wanted: int, now_ns: int) -> Overdraft | None:
        budget = queue.settings.victims_max
        assert budget is not None, "the caller has looked"
        if wanted > budget.victims:
            return Overdraft(queue, None)
        counting = self._counting(queue.path, now_ns)
        too_many = len(counting) + wanted - budget.victims
        return Overdraft(queue, counting[too_many - 1]) if too_many > 0 else None

    def _counting(self, path: str, now_ns: int) -> list[int]:
        """Return until when the victims of a queue count that do so still; the others are forgotten."""
        counting = self._until_ns.get(path)
        if counting is None:
            return []
        del counting[: bisect_right(counting, now_ns)]
        if not counting:
            del self._until_ns[path]
        return counting


def _is_later(one: Overdraft, other: Overdraft) -> bool:
    if one.until_ns is None or other.until_ns is None:
        return one.until_ns is None and other.until_ns is not None
    return one.until_ns > other.until_ns
