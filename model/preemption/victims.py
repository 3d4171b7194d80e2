"""Victims: allocations that may have to end for other work, and the orders in which they are chosen.

All orders are total: if the rules leave a tie, the allocation key decides, so that the same state gives the
same victims. Willing allocations (their policy allows it) end before those that opted out, and originators,
with which their whole application ends, are the last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias, TypeVar

from ..applications.life import view_of_ask
from ..policies.interface import VictimView
from ..queues.application_entry import ApplicationEntry
from ..queues.queue import Queue
from ..resources.comparisons import shares, type_match_percent
from ..resources.resource import Resource, add, fits, subtract, total_of
from ..values.allocation import Allocation

_HOUR_NS: Final = 3600 * 1_000_000_000
_HUNDRED_PERCENT: Final = 1_000_000

T = TypeVar("T")

VictimOrder: TypeAlias = "tuple[int | str | tuple[float, ...] | tuple[int, int, str], ...]"
"""A place in an order; the smallest ends first."""


class Reluctance(IntEnum):
    """The objection to an allocation as a victim; the lowest ends first."""

    WILLING = 0
    OPTED_OUT = 1
    ORIGINATOR = 2


class Victim(NamedTuple):
    """An allocation that may have to end, at the moment when the candidates were collected: a value."""

    allocation: Allocation
    entry: ApplicationEntry
    preempted: bool = False
    """Whether it has been chosen before, for another preemption."""
    released: bool = False
    """Whether the RM has been asked to end it already."""
    checkpoint_ns: int | None = None
    """When the RM last reported its work as saved, `None` if it never has."""
    lost: int | None = None
    """The work lost with it, or its cost by a policy; `None`: the youngest end first."""
    gang: tuple[int, int, str] = (-1, 0, "")
    """Its place by the gang that its end would cut; the lowest if no gang is cut or gangs do not decide."""
    gang_size: int = 0
    """The size of the gang that its end would cut; 0 if no gang is cut or gangs do not decide."""
    rank: int = 0
    """The number of lower priorities of possible victims; 0 if priorities do not order them."""
    policy: str = ""
    """The policy that gives its cost, the empty text without one."""

    @property
    def key(self) -> str:
        """The allocation key."""
        return self.allocation.ask.allocation_key

    @property
    def resource(self) -> Resource:
        """The resources that its end gives back."""
        return self.allocation.ask.resource

    @property
    def queue(self) -> Queue:
        """The leaf that counts it."""
        return self.entry.queue

    @property
    def begun_ns(self) -> int:
        """The time since which its work is lost if it ends."""
        bound_ns = self.allocation.bound_at_ns
        return bound_ns if self.checkpoint_ns is None else max(bound_ns, self.checkpoint_ns)

    @property
    def is_free(self) -> bool:
        """Whether it may still be chosen: it is not ending, and is not bound to its node."""
        return not (self.preempted or self.released or self.allocation.ask.required_node)

    @property
    def reluctance(self) -> Reluctance:
        """The objection to it; being an originator counts more than opting out."""
        ask = self.allocation.ask
        if ask.originator:
            return Reluctance.ORIGINATOR
        return Reluctance.WILLING if ask.allow_preempt_self else Reluctance.OPTED_OUT


def view_of_victim(victim: Victim) -> VictimView:
    """Return the view of a possible victim for a policy."""
    allocation, entry = victim.allocation, victim.entry
    return VictimView(
        view_of_ask(allocation.ask),
        allocation.node_id,
        entry.queue.path,
        entry.user.name,
        allocation.bound_at_ns,
        victim.checkpoint_ns,
    )


def is_of_gang(allocation: Allocation) -> bool:
    """Return whether an allocation is a placeholder, or has replaced one."""
    return allocation.ask.placeholder or allocation.placeholder_created_at_ns is not None


def victims_of(entry: ApplicationEntry) -> Iterator[Victim]:
    """Walk the possible victims of an application."""
    facts = entry.facts
    if not (facts.allocated or facts.placeholder_allocated):
        return  # Most waiting applications have no allocations.
    for placed in entry.application.allocations.all():
        victim = Victim(placed.allocation, entry, placed.preempted, placed.released, placed.checkpoint_ns)
        if victim.is_free:
            yield victim


def given_back(victims: Iterable[Victim]) -> Resource:
    """Return the sum of the resources of some victims."""
    return total_of(victim.resource for victim in victims)


class Need(NamedTuple):
    """A required amount of room."""

    given: Resource
    """The room without any of the victims."""
    wanted: Resource
    node_id: str = ""
    """The node on which victims give room back; empty: on all nodes."""

    def room_with(self, have: Resource, victim: Victim, *, gone: bool) -> Resource:
        """Return the room after a victim has ended, or after it is spared."""
        if self.node_id and victim.allocation.node_id != self.node_id:
            return have
        return add(have, victim.resource) if gone else subtract(have, victim.resource)


def needed_only(
    victims: Sequence[Victim], *needs: Need, fits_all: Callable[[Sequence[Victim]], bool] | None = None
) -> tuple[Victim, ...]:
    """Leave out every victim without which the others are enough; the last in the order is left out first.

    Args:
        victims: Victims that are enough for all needs, in the order they were chosen in.
        needs: All required rooms.
        fits_all: Returns whether all members of a gang have nodes once some victims have ended.

    Returns:
        Victims that are enough, while no smaller part of them is: more victims never give less.
    """
    rooms = [need.given for need in needs]
    for victim in victims:
        rooms = [need.room_with(room, victim, gone=True) for need, room in zip(needs, rooms, strict=True)]
    kept: list[Victim] = []
    for position, victim in reversed(list(enumerate(victims))):
        without = [need.room_with(room, victim, gone=False) for need, room in zip(needs, rooms, strict=True)]
        is_spared = all(fits(room, need.wanted) for need, room in zip(needs, without, strict=True))
        if is_spared and (fits_all is None or fits_all([*victims[:position], *kept])):
            rooms = without
        else:
            kept.append(victim)
    kept.reverse()
    return tuple(kept)


# --------------------------------------------------------------------------------------- the orders


def required_node_order(victim: Victim) -> VictimOrder:
    """Return the place by reluctance, then the lowest priority, the youngest age, the smallest size.

    If lost work decides, the least lost work replaces the youngest age; this holds in all orders.
    """
    ask = victim.allocation.ask
    size = sum(ask.resource.values())
    return (victim.reluctance, ask.priority, victim.gang, _age_or_lost(victim), size, ask.allocation_key)


def queue_order(victim: Victim) -> VictimOrder:
    """Return the place for an ask on any node: willing ones, then non-originators, then the youngest.

    Inside a leaf the lowest priority comes before the youngest.
    """
    ask = victim.allocation.ask
    return (
        *(not ask.allow_preempt_self, ask.originator),
        *(victim.rank, victim.gang, _age_or_lost(victim), ask.allocation_key),
    )


def orders_to_try(
    victims: Sequence[Victim], asked: Resource, relieves: Callable[[Victim], bool] | None = None
) -> Iterator[Sequence[Victim]]:
    """Yield victims in their order; if sizes differ, then the largest of equally willing ones, then of all.

    A small victim may use up what a guarantee or a budget leaves for a large one that is enough. Sizes are
    measured in the requested types. The last orders begin with victims that relieve the guarantee of the ask.
    """
    yield victims
    if all(victim.resource == victims[0].resource for victim in victims):
        return

    def size(victim: Victim) -> int:
        parts = (victim.resource.get(name) * _HUNDRED_PERCENT // one for name, one in asked.items() if one)
        return -sum(parts)

    def order(victim: Victim) -> VictimOrder:
        usual = queue_order(victim)
        return (*usual[:3], first(victim), *usual[3:])

    for first in (size,) if relieves is None else (size, lambda victim: not relieves(victim)):
        ordered = sorted(victims, key=order)
        yield ordered
        if len({order(victim)[:3] for victim in ordered}) > 1:
            yield sorted(ordered, key=first)


def first_enough(
    victims: Sequence[Victim],
    asked: Resource,
    choose: Callable[[Sequence[Victim]], T | None],
    relieves: Callable[[Victim], bool] | None = None,
) -> T | None:
    """Return the choice by the first order of victims that is enough, `None` if no order is."""
    chosen = (choose(order) for order in orders_to_try(victims, asked, relieves))
    return next((each for each in chosen if each is not None), None)


def _age_or_lost(victim: Victim) -> int:
    """Return the number that is lowest for the first victim: its age, or the work lost with it."""
    return -victim.allocation.ask.created_at_ns if victim.lost is None else victim.lost


def gangs_cut_by(victims: Iterable[Victim]) -> int:
    """Return the number of gangs that would lose some of their members to these victims, and keep others."""
    left: dict[str, int] = {}
    for victim in victims:
        if victim.gang_size:
            name = victim.entry.application_id
            left[name] = left.get(name, victim.gang_size) - 1
    return sum(1 for members in left.values() if members > 0)


def cost_of(victims: Iterable[Victim]) -> int:
    """Return the cost of ending some victims: their number, or the work lost with all of them."""
    return sum(1 if victim.lost is None else victim.lost for victim in victims)


def quota_order(victim: Victim, target: Resource, maximum: Resource) -> VictimOrder:
    """Return the place for a queue above its maximum: by reluctance, then by how well it serves the target.

    Args:
        victim: The allocation.
        target: The amount to give back.
        maximum: The maximum of the queue: the unit of shares.
    """
    ask = victim.allocation.ask
    wanted = Resource(
        {name: quantity for name, quantity in ask.resource.items() if quantity and target.has(name)}
    )
    return (
        victim.reluctance,
        -type_match_percent(ask.resource, target),
        ask.priority,
        victim.gang,
        -(ask.created_at_ns // _HOUR_NS) if victim.lost is None else victim.lost,
        tuple(reversed(shares(wanted, maximum))),
        -ask.created_at_ns,
        ask.allocation_key,
    )


def described(victim: Victim) -> str:
    """Return in words the facts that orders depend on."""
    ask = victim.allocation.ask
    words = {
        Reluctance.WILLING: "it allows preemption",
        Reluctance.OPTED_OUT: "it opted out of preemption, but nothing willing was enough",
        Reluctance.ORIGINATOR: "it is an originator, but nothing else was enough",
    }
    return f"priority {ask.priority}, {words[victim.reluctance]}"
