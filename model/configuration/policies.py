"""The choices among which properties of queues choose, and what each of them decides.

Each question is answered for each value, so that a value that is added cannot do what another one does.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, assert_never

APPLICATION_ORDER_WORDS: Final = ("fifo", "fair", "users")
"""The built-in orders of applications; `licorne.model.queues.child_orders` defines them."""
QUEUE_ORDER_WORDS: Final = ("fair",)
"""The built-in orders of sibling queues; `licorne.model.queues.child_orders` defines them."""
NODE_ORDER_WORDS: Final = ("fair", "binpacking", "domainpacking")
"""The built-in orders of nodes; `licorne.model.nodes.node_orders` defines them."""

VICTIM_ORDER_WORDS: Final = ("youngest", "least-work")
"""The orders of victims of ours; `licorne.model.preemption.victim_orders` has what each does."""


class FairCount(Enum):
    """The use by which a queue is ordered among its siblings: the part above its guarantee, or all of it."""

    ABOVE_GUARANTEE = "above-guarantee"
    ALL = "all"

    @property
    def counts_all(self) -> bool:
        """Whether what a queue is guaranteed counts as well."""
        match self:
            case FairCount.ABOVE_GUARANTEE:
                return False
            case FairCount.ALL:
                return True
            case _:
                assert_never(self)


class PriorityPolicy(Enum):
    """How the priorities below a queue count outside it: directly, or not at all behind a fence."""

    DEFAULT = "default"
    FENCE = "fence"

    @property
    def is_fence(self) -> bool:
        """Whether all below a queue has the priority of the queue outside it."""
        match self:
            case PriorityPolicy.DEFAULT:
                return False
            case PriorityPolicy.FENCE:
                return True
            case _:
                assert_never(self)


class PreemptionPolicy(Enum):
    """Whether preemption passes a queue, stays inside it, or leaves its allocations alone."""

    DEFAULT = "default"
    FENCE = "fence"
    DISABLED = "disabled"

    @property
    def is_fence(self) -> bool:
        """Whether asks below a queue preempt nothing outside it."""
        match self:
            case PreemptionPolicy.DEFAULT | PreemptionPolicy.DISABLED:
                return False
            case PreemptionPolicy.FENCE:
                return True
            case _:
                assert_never(self)

    @property
    def is_disabled(self) -> bool:
        """Whether nothing in a queue is preempted."""
        match self:
            case PreemptionPolicy.DEFAULT | PreemptionPolicy.FENCE:
                return False
            case PreemptionPolicy.DISABLED:
                return True
            case _:
                assert_never(self)


class MinRuntimeScope(Enum):
    """The preemptions that wait until an allocation has run long enough: all, or those for a guarantee."""

    ALL = "all"
    GUARANTEE = "guarantee"

    @property
    def is_for_guarantees(self) -> bool:
        """Whether preemptions for anything else than a guarantee do not wait."""
        match self:
            case MinRuntimeScope.ALL:
                return False
            case MinRuntimeScope.GUARANTEE:
                return True
            case _:
                assert_never(self)


class PreemptionWithin(Enum):
    """The allocations that asks may preempt in their own leaf: none, or those of a lower priority."""

    NEVER = "never"
    LOWER_PRIORITY = "lower-priority"

    @property
    def ends_lower_priorities(self) -> bool:
        """Whether asks may end what has a lower priority in their leaf."""
        match self:
            case PreemptionWithin.NEVER:
                return False
            case PreemptionWithin.LOWER_PRIORITY:
                return True
            case _:
                assert_never(self)


class GangPlacing(Enum):
    """How a gang gets its room: all of it in one result, or placeholder by placeholder."""

    WHOLE = "whole"
    STEPWISE = "stepwise"

    @property
    def is_whole(self) -> bool:
        """Whether a gang gets all of its room in one result."""
        match self:
            case GangPlacing.STEPWISE:
                return False
            case GangPlacing.WHOLE:
                return True
            case _:
                assert_never(self)


class BackfillOrder(Enum):
    """In which order jobs are tried that may start before others: as they wait, or the shortest first."""

    QUEUE = "queue"
    SHORTEST = "shortest"

    @property
    def is_shortest_first(self) -> bool:
        """Whether jobs are tried by their walltimes."""
        match self:
            case BackfillOrder.QUEUE:
                return False
            case BackfillOrder.SHORTEST:
                return True
            case _:
                assert_never(self)


class Overrun(Enum):
    """The fate of work that has run for its walltime: nothing happens, or the scheduler asks for its end."""

    EXTEND = "extend"
    END = "end"

    @property
    def is_ended(self) -> bool:
        """Whether the scheduler has the work ended."""
        match self:
            case Overrun.EXTEND:
                return False
            case Overrun.END:
                return True
            case _:
                assert_never(self)
