"""What justifies a preemption: figures with which it can be checked.

They are taken once, when the decision is made. A preemption may make room for several asks,
each on its node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from ..queues.queue import Queue, priority_outside
from ..resources.resource import EMPTY, Resource, add, subtract, total_of
from .claims import EndingVictim


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
    """The path of the first queue that both are in; empty for priorities as they are written."""
    ask: int
    victim: int


@dataclass(frozen=True, slots=True)
class QueueBalance:
    """What a queue uses, and is guaranteed, before a preemption and after it.

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
    """What a node has left before a preemption, and after it: less than nothing if others use more."""

    node_id: str
    before: Resource
    after: Resource


@dataclass(frozen=True, slots=True, kw_only=True)
class Justification:
    """The figures of a preemption."""

    preemptors: tuple[Preemptor, ...] = ()
    """What it is for, empty where a maximum is enforced."""
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
        preemptors: What it is for, with the leaf of each.
        victims: What ends.
        used: Returns what a queue uses before.
        available: What the nodes of the preemptors have left before, by name.
        taken_over: What ends already, for no ask; the queues do not count it as used.
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
