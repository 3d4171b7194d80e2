"""The series that a simulation records for its figures: work by queue, nodes, and preemptions.

An ask counts from the start to the end of its wait or run, for the present queue of its application. Memory
is bounded by the number of queues, nodes and open asks, not by the duration.

If a parent has a half-life, the series has the evenness of the decayed use below it. Of the queues there that
use or need something in an interval, each has its mean use, where past use counts half after each half-life,
as the largest share of the cluster and divided by its weight. Jain's index of these is 100 % if all have used
the same by weight.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, final

from .....model.resources.decayed_use import DecayedUse, decayed_means, decayed_share, no_use, raised_to
from .....model.resources.resource import Resource
from .figures import Intervals, IntervalSeries, NodePacking, PreemptionListed

if TYPE_CHECKING:
    from ..record import AskEntry

PREEMPTIONS_LISTED_MAX: Final = 500
"""All preemptions are counted; for the first ones the details are recorded as well."""
_REASONS: Final = (
    ("preempting allocations to free up resources to run daemon set ask: ", "required node"),
    ("preempting allocations to free up resources to run ask: ", "guarantee"),
    ("preempting allocations to enforce new max quota for queue : ", "lowered maximum"),
)


class FairTerms(NamedTuple):
    """The fair-share settings of a queue."""

    half_life_ns: int | None = None
    """The half-life of the use of the queues below it; `None` if their past does not count."""
    counts_all: bool = False
    """Whether the whole use of the queues below counts, and not only the use above their guarantees."""
    weight: int = 1
    """The weight of the queue among its siblings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WeighedQueue:
    """A queue among its siblings: mean amounts of each interval, by resource type."""

    weight: int
    guaranteed: Mapping[str, int]
    used: Mapping[str, Sequence[int]]
    pending: Mapping[str, Sequence[int]]

    def is_active(self, at: int) -> bool:
        """Return whether it uses or needs something in an interval."""
        return any(means[at] for amounts in (self.used, self.pending) for means in amounts.values())

    def counted(self, at: int, *, counts_all: bool) -> dict[str, int]:
        """Return the counted part of its use in an interval."""
        free = {} if counts_all else self.guaranteed
        return {name: max(means[at] - free.get(name, 0), 0) for name, means in self.used.items()}


class DecayedSeries(NamedTuple):
    """The index of the queues below one parent, in thousandths; `None` without any use."""

    parent: str
    half_life_ns: int
    values: tuple[int | None, ...]


def decayed_fairness(
    queues: Mapping[str, WeighedQueue],
    terms: Mapping[str, FairTerms],
    capacity: Mapping[str, Sequence[int]],
    borders_ns: Sequence[int],
) -> Iterator[DecayedSeries]:
    """Yield the index of each parent with a half-life, by its path.

    Args:
        queues: All queues, by path.
        terms: The fair-share settings of queues, by path.
        capacity: The capacity of the cluster in each interval, by resource type.
        borders_ns: The starts of the intervals, and the end of the last one.
    """
    for parent in sorted(queues):
        own = terms.get(parent, FairTerms())
        children = [queue for path, queue in sorted(queues.items()) if path.rpartition(".")[0] == parent]
        if own.half_life_ns is not None and children:
            index = _index_of(children, own.half_life_ns, capacity, borders_ns, counts_all=own.counts_all)
            yield DecayedSeries(parent, own.half_life_ns, tuple(index))


def _index_of(
    children: Sequence[WeighedQueue],
    half_life_ns: int,
    capacity: Mapping[str, Sequence[int]],
    borders_ns: Sequence[int],
    *,
    counts_all: bool,
) -> Iterator[int | None]:
    """Yield the index at the end of each interval."""
    uses = [no_use(half_life_ns, borders_ns[0])] * len(children)
    for at, end_ns in enumerate(borders_ns[1:]):
        amounts = [child.counted(at, counts_all=counts_all) for child in children]
        uses = [raised_to(use, used, borders_ns[at]) for use, used in zip(uses, amounts, strict=True)]
        limits = Resource({name: means[at] for name, means in capacity.items()})
        yield jain_permille(
            [
                _share(use, limits, child.weight, end_ns)
                for use, child in zip(uses, children, strict=True)
                if child.is_active(at)
            ]
        )


def _share(use: DecayedUse, limits: Resource, weight: int, now_ns: int) -> float:
    return decayed_share(decayed_means(use, now_ns), limits, weight)


def jain_permille(shares: Sequence[float]) -> int | None:
    """Return Jain's index in thousandths; `None` if all shares are zero."""
    squares = sum(share * share for share in shares)
    return round(1000 * sum(shares) ** 2 / (len(shares) * squares)) if squares else None


class QueueBounds(NamedTuple):
    """The guarantee and the maximum of a queue, by resource type; a missing type has no limit."""

    guaranteed: Mapping[str, int]
    maximum: Mapping[str, int]
    fair: FairTerms = FairTerms()


class PreemptionGroup(NamedTuple):
    """Preemptions that are counted together: the queues of the victim and of the cause, and the reason."""

    queue: str
    for_queue: str
    reason: str


@final
class RunSeries:
    """The series of one simulation.

    Attributes:
        pending: The waiting amounts, by queue and resource type; without placeholders of gangs.
        used: The amounts on nodes, by queue and resource type.
        packing: The nodes.
        limits: The limits of queues at the time of their first work.
        unknown_queues: Queues with work whose limits are not known yet.
        preemption_counts: The number of preemptions of each group.
        preemptions: The first `PREEMPTIONS_LISTED_MAX` of them.
    """

    def __init__(self) -> None:
        self.intervals: Final = Intervals()
        self.packing: Final = NodePacking(self.intervals)
        self.pending: Final[dict[tuple[str, str], IntervalSeries]] = {}
        self.used: Final[dict[tuple[str, str], IntervalSeries]] = {}
        self.limits: Final[dict[str, QueueBounds]] = {}
        self.unknown_queues: Final[set[str]] = set()
        self.preemption_counts: Final[Counter[PreemptionGroup]] = Counter()
        self.preemptions: Final[list[PreemptionListed]] = []
        self._since_ns: dict[str, int] = {}
        self._known_queues: set[str] = set()

    def asked(self, key: str, entry: AskEntry, at_ns: int) -> None:
        """Note the start of the wait of an ask."""
        self._since_ns[key] = at_ns
        self._came_to(entry.account.owner.queue)

    def waited(self, key: str, entry: AskEntry, at_ns: int) -> None:
        """Count the wait of an ask, which ends."""
        since_ns = self._since_ns.pop(key)
        if not entry.is_placeholder:
            self._add(self.pending, entry, since_ns, at_ns)

    def placed(self, key: str, entry: AskEntry, at_ns: int) -> None:
        """Note the placement of an allocation."""
        self._since_ns[key] = at_ns
        self.packing.used(entry.node_id, entry.resources, at_ns, 1)
        self._came_to(entry.account.owner.queue)

    def left(self, key: str, entry: AskEntry, at_ns: int) -> None:
        """Count the time of an allocation on its node, which it leaves."""
        self._add(self.used, entry, self._since_ns.pop(key), at_ns)
        self.packing.used(entry.node_id, entry.resources, at_ns, -1)

    def resized(self, key: str, before: AskEntry, after: AskEntry, at_ns: int) -> None:
        """Note the new size of an ask or an allocation."""
        if after.node_id:
            self.left(key, before, at_ns)
            self.placed(key, after, at_ns)
        else:
            self.waited(key, before, at_ns)
            self.asked(key, after, at_ns)

    def preempted(
        self, key: str, entry: AskEntry, at_ns: int, message: str, waiting: Mapping[str, AskEntry]
    ) -> None:
        """Note a preemption.

        Args:
            key: The key of the allocation in the record.
            entry: The allocation.
            at_ns: The time when it left its node.
            message: The message of the scheduler.
            waiting: The waiting asks, one of which it ended for.
        """
        reason, subject = _reason_of(message)
        is_for_queue = reason == "lowered maximum"
        manager = key.partition("/")[0]
        asker = None if is_for_queue else waiting.get(subject) or waiting.get(f"{manager}/{subject}")
        for_queue = subject if is_for_queue else "" if asker is None else asker.account.owner.queue
        owner = entry.account.owner
        if asker is not None and reason == "guarantee" and for_queue == owner.queue:
            reason = "priority"  # A guarantee takes resources only of other queues.
        self.preemption_counts[PreemptionGroup(owner.queue, for_queue, reason)] += 1
        if len(self.preemptions) < PREEMPTIONS_LISTED_MAX:
            self.preemptions.append(
                PreemptionListed(
                    at_ns=at_ns,
                    allocation=key,
                    application=entry.application_id,
                    queue=owner.queue,
                    user=owner.user,
                    for_ask="" if is_for_queue else subject,
                    for_application="" if asker is None else asker.application_id,
                    for_queue=for_queue,
                    reason=reason,
                )
            )

    def finish(self, waiting: Mapping[str, AskEntry], running: Mapping[str, AskEntry], end_ns: int) -> None:
        """Count the waiting and running work at the end; nothing may be recorded afterwards."""
        for key, entry in waiting.items():
            self._came_to(entry.account.owner.queue)
            self.waited(key, entry, end_ns)
        for key, entry in running.items():
            self._add(self.used, entry, self._since_ns.pop(key), end_ns)
        self.intervals.reach(end_ns)  # This reaches the end even if nothing has waited or run for long.

    def note_bounds(self, limits: Mapping[str, QueueBounds]) -> None:
        """Keep the limits of queues with work, and of the queues above them."""
        for path in [above for queue in self.unknown_queues for above in with_parents(queue)]:
            if path in limits:
                self.limits.setdefault(path, limits[path])
        self.unknown_queues.clear()

    def _came_to(self, queue: str) -> None:
        """Note that work came to a queue."""
        if queue not in self._known_queues:
            self._known_queues.add(queue)
            self.unknown_queues.add(queue)

    def _add(
        self, series: dict[tuple[str, str], IntervalSeries], entry: AskEntry, start_ns: int, end_ns: int
    ) -> None:
        """Add the need or the use of an ask to the series of its queue."""
        queue = entry.account.owner.queue
        for name, quantity in entry.resources.items():
            if (queue, name) not in series:
                series[queue, name] = self.intervals.series()
            series[queue, name].add(quantity, start_ns, end_ns)


def _reason_of(message: str) -> tuple[str, str]:
    """Return the reason of a preemption, and the ask or queue that it was for."""
    for beginning, reason in _REASONS:
        if message.startswith(beginning):
            return reason, message.removeprefix(beginning)
    return message or "no reason was given", ""


def with_parents(queue: str) -> list[str]:
    """Return a queue and all above it."""
    parts = queue.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts) + 1)]
