"""The choices among which properties of queues choose, and what each of them decides.

Each question is answered for each value, so that a value that is added cannot do what another one does.
"""

from __future__ import annotations

from enum import Enum
from typing import assert_never


class SortPolicy(Enum):
    """In which order the applications of a leaf, or the queues of a parent, are served."""

    FIFO = "fifo"
    FAIR = "fair"
    USERS = "users"
    """The user first who has used less, then in the order of submission; of leaves alone."""

    @property
    def takes_turns(self) -> bool:
        """Whether users take turns by what they have used."""
        match self:
            case SortPolicy.FIFO | SortPolicy.FAIR:
                return False
            case SortPolicy.USERS:
                return True
            case _:
                assert_never(self)

    @property
    def takes_placeholders(self) -> bool:
        """Whether a gang may announce placeholders: its members then stay together."""
        match self:
            case SortPolicy.FAIR | SortPolicy.USERS:
                return False
            case SortPolicy.FIFO:
                return True
            case _:
                assert_never(self)


class FairCount(Enum):
    """What of a queue's use orders it among its siblings: what is above its guarantee, or all of it."""

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
    """How the priorities below a queue count outside it: as they are, or not at all behind a fence."""

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
    """Which preemptions wait until an allocation has run long enough: all, or those for a guarantee alone."""

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
    """What asks may preempt in their own leaf: nothing, or what has a lower priority."""

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
    """What happens to work that has run for its walltime: nothing, or the scheduler has it ended."""

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
