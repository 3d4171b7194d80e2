"""Work lost: how much is undone if an allocation ends, as an integer that every machine computes alike.

It is the time since the allocation was bound, or since the last checkpoint that the RM has reported, times
the largest share of a resource type of the cluster that it uses. Only the order of such numbers matters.
"""

from __future__ import annotations

from typing import Final, final

from ..configuration.durations import short_duration_text
from ..resources.resource import EMPTY, Resource
from ..state.partition_state import PartitionState
from .victims import Victim, described

_PARTS: Final = 1_000_000_000
"""Shares are counted in so many parts of the cluster: in thousandths small ones would be nothing."""


@final
class WorkLost:
    """Measures what is lost at one moment.

    Args:
        cluster: What all nodes have together.
        now_ns: The time.
    """

    __slots__ = ("_cluster", "_now_ns", "_shares")

    def __init__(self, cluster: Resource, now_ns: int) -> None:
        self._cluster = cluster
        self._now_ns = now_ns
        self._shares: dict[Resource, int] = {}
        """By size; many allocations have the same."""

    @staticmethod
    def counted_in(state: PartitionState) -> WorkLost | None:
        """Return a measure where victims are chosen by what is lost, `None` where the youngest go first."""
        if not state.least_work_first:
            return None
        return WorkLost(state.tree.root.maximum or EMPTY, state.now_ns())

    def measured(self, victim: Victim) -> Victim:
        """Return a possible victim with what is lost with it, in nanoseconds times parts of the cluster."""
        return victim._replace(lost=_since_ns(victim, self._now_ns) * self._share(victim.resource))

    def _share(self, resource: Resource) -> int:
        share = self._shares.get(resource)
        if share is None:
            parts = [
                quantity * _PARTS // self._cluster[name]
                for name, quantity in resource.items()
                if self._cluster.get(name) > 0
            ]
            share = self._shares[resource] = max(parts, default=0)
        return share


def work_text(victim: Victim, now_ns: int) -> str:
    """Return in words what is lost with a victim; the empty text where that does not decide."""
    if victim.lost is None:
        return ""
    begun = "checkpoint" if _begun_ns(victim) > victim.allocation.bound_at_ns else "start"
    return f"{short_duration_text(_since_ns(victim, now_ns))} of work since its {begun}"


def described_at(victim: Victim, now_ns: int) -> str:
    """Return in words what the orders depend on, with the work that is lost where that decides."""
    work = work_text(victim, now_ns)
    return f"{described(victim)}, it loses {work}" if work else described(victim)


def _begun_ns(victim: Victim) -> int:
    """Return since when the work of an allocation is lost if it ends."""
    bound_ns = victim.allocation.bound_at_ns
    return bound_ns if victim.checkpoint_ns is None else max(bound_ns, victim.checkpoint_ns)


def _since_ns(victim: Victim, now_ns: int) -> int:
    return max(0, now_ns - _begun_ns(victim))
