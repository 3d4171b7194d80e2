"""Whole jobs before parts of many: of several gangs one ends, rather than a member of each.

A gang that has lost a member makes no progress, so that the rest of what it holds is lost as well. Where
the partition says so, what is of no gang, and of gangs that have lost a member already, goes before all
others. Of the others one gang goes after the other: first those that can end whole and give enough, the
smallest of them first; then those that can end whole and give too little, the largest first; then the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..queues.application_entry import ApplicationEntry
from ..resources.resource import Resource, fits, total_of
from .victims import Victim, is_of_gang


def by_whole_jobs(victims: Sequence[Victim], wanted: Resource) -> list[Victim]:
    """Return possible victims with their places by gangs.

    Args:
        victims: All that may be chosen, in any order.
        wanted: What they are to give back together.
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
    """Return the place of a gang and how many it is, `None` for one that has lost a member already."""
    size = _intact_size(members[0].entry)
    if size is None:
        return None
    if len(members) < size:
        return (2, size, name, size)  # Some members may not end: they are protected, or too important.
    gives_enough = fits(total_of(member.resource for member in members), wanted)
    return (0, size, name, size) if gives_enough else (1, -size, name, size)


def _intact_size(entry: ApplicationEntry) -> int | None:
    """Return how many members and placeholders a gang has, `None` if one of them is ending."""
    placed = [each for each in entry.application.allocations.all() if is_of_gang(each.allocation)]
    return None if any(each.is_leaving for each in placed) else len(placed)


def those_begun_first(victims: Sequence[Victim], chosen: Iterable[Victim]) -> Sequence[Victim]:
    """Return possible victims with the rest of gangs that are cut already before all equally willing ones."""
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
