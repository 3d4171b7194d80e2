"""The losses by victims: work that is undone, and gangs that are cut.

*Work lost* is the amount of work that is undone if an allocation ends, as an integer that is the same on
every machine: the time since it was bound, or since the last checkpoint that the RM has reported, times its
largest share of a resource type of the cluster. Only the order of such numbers matters.

If the partition ends *whole jobs* before parts of many, gangs have places in the order of victims:
`docs/preemption.md` ("Whole jobs before parts of many") has the rules.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Final, final

from ..configuration.durations import short_duration_text
from ..queues.application_entry import ApplicationEntry
from ..resources.resource import Resource, fits, total_of
from .victims import Victim, described, is_of_gang

_PARTS: Final = 1_000_000_000
"""Shares are integers in this unit of the cluster: in thousandths small shares would be 0."""


class VictimMeasure(ABC):
    """Measures possible victims at one moment: of equal ones the one with the smallest number ends first."""

    @abstractmethod
    def measured(self, victim: Victim) -> Victim:
        """Return a possible victim with its measure."""


@final
class WorkLost(VictimMeasure):
    """Measures the lost work at one moment.

    Args:
        cluster: The sum of all nodes.
        now_ns: The time.
    """

    __slots__ = ("_cluster", "_now_ns", "_shares")

    def __init__(self, cluster: Resource, now_ns: int) -> None:
        self._cluster = cluster
        self._now_ns = now_ns
        self._shares: dict[Resource, int] = {}
        """The shares by size; many allocations have the same size."""

    def measured(self, victim: Victim) -> Victim:
        """Return a possible victim with the work lost with it, in nanoseconds times parts of the cluster."""
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


def first_text(victim: Victim, now_ns: int) -> str:
    """Return in words which of equal victims ends first, with the number of a victim if numbers decide."""
    if victim.policy:
        return f"what costs least by policy {victim.policy} ({victim.lost})"
    work = work_text(victim, now_ns)
    return f"what loses the least ({work})" if work else "the youngest"


def work_text(victim: Victim, now_ns: int) -> str:
    """Return in words the work lost with a victim; the empty text if that does not decide."""
    if victim.lost is None or victim.policy:
        return ""
    begun = "checkpoint" if victim.begun_ns > victim.allocation.bound_at_ns else "start"
    return f"{short_duration_text(_since_ns(victim, now_ns))} of work since its {begun}"


def described_at(victim: Victim, now_ns: int) -> str:
    """Return in words the facts that orders depend on, with the lost work if that decides."""
    if victim.policy:
        return f"{described(victim)}, it costs {victim.lost} by policy {victim.policy}"
    work = work_text(victim, now_ns)
    return f"{described(victim)}, it loses {work}" if work else described(victim)


def _since_ns(victim: Victim, now_ns: int) -> int:
    return max(0, now_ns - victim.begun_ns)


# ------------------------------------------------------------------------------------- whole jobs


def by_whole_jobs(victims: Sequence[Victim], wanted: Resource) -> list[Victim]:
    """Return possible victims with their places by gangs.

    Args:
        victims: All possible victims, in any order.
        wanted: The amount that they must give back together.
    """
    gangs: dict[str, list[Victim]] = {}
    for victim in victims:
        if is_of_gang(victim.allocation):
            gangs.setdefault(victim.entry.application_id, []).append(victim)
    places = {name: _place(name, members, wanted) for name, members in gangs.items()}
    ranked = []
    for each in victims:
        victim = each
        place = places.get(victim.entry.application_id) if is_of_gang(victim.allocation) else None
        if place is not None:
            first, second, name, size = place
            victim = victim._replace(gang=(first, second, name), gang_size=size)
        ranked.append(victim)
    return ranked


def _place(name: str, members: Sequence[Victim], wanted: Resource) -> tuple[int, int, str, int] | None:
    """Return the place of a gang and its size, `None` for a gang that has lost a member already."""
    size = _intact_size(members[0].entry)
    if size is None:
        return None
    if len(members) < size:
        return (2, size, name, size)  # Some members may not end: they are protected, or too important.
    gives_enough = fits(total_of(member.resource for member in members), wanted)
    return (0, size, name, size) if gives_enough else (1, -size, name, size)


def _intact_size(entry: ApplicationEntry) -> int | None:
    """Return the number of members and placeholders of a gang, `None` if one of them is ending."""
    placed = [each for each in entry.application.allocations.all() if is_of_gang(each.allocation)]
    return None if any(each.is_leaving for each in placed) else len(placed)


def those_begun_first(victims: Sequence[Victim], chosen: Iterable[Victim]) -> Sequence[Victim]:
    """Return possible victims with the rest of the gangs that are cut already before equally willing ones."""
    begun = {victim.entry.application_id for victim in chosen if victim.gang_size}
    if not begun:
        return victims
    return sorted(
        victims,
        key=lambda victim: (
            *(not victim.allocation.ask.allow_preempt_self, victim.allocation.ask.originator),
            not (victim.gang_size and victim.entry.application_id in begun),
        ),
    )
