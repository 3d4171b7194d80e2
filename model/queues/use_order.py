"""The order of sibling queues where their past or their weights count: `fair.half-life` and `fair.weight`.

A queue below its guarantee goes before all others, whatever it has used. Of the others the one goes first
whose mean use above its guarantee (all of it by `fair.count: all`), as a share of what the parent could have
and divided by its weight, is smaller. Without a half-life what counts is what is in use now. A parent without
a half-life, and without weights below it, orders its queues by their shares alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, final

from ..configuration.queue_properties import FAIR_WEIGHT
from ..resources.comparisons import fair_share
from ..resources.decayed_use import (
    DecayedUse,
    above,
    decayed_means,
    decayed_share,
    grown_share,
    no_use,
    raised_to,
    with_half_life,
    with_past,
)
from ..resources.resource import Resource, add, subtract, total_of

if TYPE_CHECKING:
    from .queue import Queue

DEPARTED_MAX: Final = 10_000
"""Of how many queues and users that are gone the use is kept; the smallest means are dropped first."""


class UseRank(NamedTuple):
    """The place of a queue among its siblings by its use; the smallest goes first."""

    value: float
    moves: bool
    """Time alone changes it, within one span of the half-life."""


_BELOW_GUARANTEE: Final = UseRank(-1.0, moves=False)


def use_rank(child: Queue, limits: Resource | None, now_ns: int) -> UseRank:
    """Return the place of a child by its use.

    Args:
        child: The queue.
        limits: The most that its parent could have.
        now_ns: The moment of the order, the same for all siblings.
    """
    if is_below_guarantee(child):
        return _BELOW_GUARANTEE
    if child.decayed is None:
        return UseRank(mean_share(child, limits, now_ns), moves=False)
    share, moves = grown_share(child.decayed, limits, now_ns)
    return UseRank(share / weight_of(child), moves)


def mean_share(queue: Queue, limits: Resource | None, now_ns: int) -> float:
    """Return the share of the limits that a queue uses, as far as it counts, divided by its weight."""
    return decayed_share(mean_use(queue, now_ns), limits, weight_of(queue))


def is_below_guarantee(queue: Queue) -> bool:
    """Return whether a queue has a guarantee, and uses less of each type of it."""
    return queue.guaranteed is not None and fair_share(queue.allocated, queue.guaranteed, None) < 1.0


def counted_use(queue: Queue) -> dict[str, int]:
    """Return what counts of what a queue uses now: what is above its guarantee, or all of it."""
    return _counted_of(queue, queue.allocated)


def _counted_of(queue: Queue, allocated: Resource) -> dict[str, int]:
    """Return what counts of an amount that a queue uses."""
    parent = queue.parent
    if parent is not None and parent.settings.fair_count.counts_all:
        return allocated.as_dict()
    return above(allocated, queue.guaranteed)


def mean_use(queue: Queue, now_ns: int) -> dict[str, float]:
    """Return what a queue uses, as far as it counts: the mean with a half-life, else what it is now."""
    use = queue.decayed
    if use is None:
        return {name: float(amount) for name, amount in counted_use(queue).items()}
    return decayed_means(use, now_ns)


def weight_of(queue: Queue) -> int:
    """Return the weight of a queue among its siblings, 1 unless it is configured."""
    return queue.settings.fair_weight or 1


def take_up_use(queue: Queue, departed: DecayedUse | None = None) -> None:
    """Bring what is kept of a queue's use, and how it orders its children, up to date with its settings.

    Past use is not changed: another half-life or guarantee counts from now on.

    Args:
        queue: The queue, with its own settings, those of its parent, and its children.
        departed: The kept use of a queue of the same path, which was removed.
    """
    half_life_ns = None if queue.parent is None else queue.parent.settings.fair_half_life_ns
    if half_life_ns is None:
        queue.decayed = None
    else:
        now_ns = queue.now_ns()
        before = queue.decayed or departed or no_use(half_life_ns, now_ns)
        use = with_half_life(before, half_life_ns, now_ns)
        queue.decayed = raised_to(use, counted_use(queue), now_ns)
    weighted = any(child.settings.fair_weight for child in queue.children.values() if child.managed)
    by_template = queue.template is not None and FAIR_WEIGHT in queue.template.properties
    queue.weighs_use = weighted or by_template or queue.settings.fair_half_life_ns is not None


def count_past(queue: Queue, runs: Sequence[tuple[int, Resource]], now_ns: int) -> None:
    """Let what a queue was just charged for count since it began to run.

    Use that began first takes the guarantee first, as far as others leave it.

    Args:
        queue: The queue; what it is charged for counts from now on, if its parent has a half-life.
        runs: Since when each of them runs, nanoseconds since 1970, and what it uses.
        now_ns: The moment of the charge.
    """
    use = queue.decayed
    if use is None:
        return
    used = subtract(queue.allocated, total_of([resource for _, resource in runs]))
    counted = _counted_of(queue, used)
    for since_ns, resource in sorted(runs, key=lambda run: run[0]):
        used = add(used, resource)
        before, counted = counted, _counted_of(queue, used)
        more = {name: amount - before.get(name, 0) for name, amount in counted.items()}
        use = with_past(use, more, since_ns, now_ns)
    queue.decayed = use


@dataclass(frozen=True, slots=True)
class KeptUse:
    """The use of the queues and users of a partition at one moment, to continue from later."""

    at_ns: int = 0
    """The moment, nanoseconds since 1970; 0 where nothing is kept."""
    uses: Mapping[str, DecayedUse] = field(default_factory=dict)
    """By the path of the queue; of a user in a leaf, by its path, `|` and the name."""


NO_KEPT_USE: Final = KeptUse()


@final
class DepartedUse:
    """The use of queues that were removed, and of users who left: one that comes again goes on from it.

    Args:
        most: Of how many at most.
    """

    def __init__(self, most: int = DEPARTED_MAX) -> None:
        self._most = most
        self._uses: dict[str, DecayedUse] = {}

    def __len__(self) -> int:
        return len(self._uses)

    def items(self) -> list[tuple[str, DecayedUse]]:
        """Return all that is kept, by its path."""
        return list(self._uses.items())

    def begin_with(self, kept: KeptUse) -> None:
        """Keep the use before a restart, all of which has ended then, of any number of queues and users."""
        self._uses.update((path, raised_to(use, {}, kept.at_ns)) for path, use in kept.uses.items())

    def keep(self, path: str, use: DecayedUse, now_ns: int) -> None:
        """Keep the use of one that is gone, unless less than one unit of each type is left of it."""
        use = raised_to(use, {}, now_ns)
        if _largest(use, now_ns) < 1.0:
            return
        if len(self._uses) >= self._most:
            self._drop_smallest(now_ns)
        self._uses[path] = use

    def find(self, path: str) -> DecayedUse | None:
        """Return the kept use, if any."""
        return self._uses.get(path)

    def take(self, path: str) -> DecayedUse | None:
        """Return the use of one that comes again, and keep it no longer; `None` without one."""
        return self._uses.pop(path, None)

    def _drop_smallest(self, now_ns: int) -> None:
        """Drop a tenth of all, so that this is seldom done, and what has become less than a unit."""
        ranked = sorted((-_largest(use, now_ns), path) for path, use in self._uses.items())
        kept = [path for mean, path in ranked[: self._most * 9 // 10] if mean <= -1.0]
        self._uses = {path: self._uses[path] for path in kept}


def _largest(use: DecayedUse, now_ns: int) -> float:
    return max(decayed_means(use, now_ns).values(), default=0.0)
