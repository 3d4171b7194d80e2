"""Which asks of an application are first, and in which pass of a cycle each is tried."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from heapq import merge
from itertools import islice
from operator import attrgetter
from typing import NamedTuple

from ..values.allocation import Ask
from .holdings import Placed
from .pending_asks import AskGroup, AskRecord, PendingAsks
from .reservations import Reservations
from .task_groups import TaskGroups


class TryingPass(Enum):
    """The pass of a cycle that tries an ask, in the order of the passes."""

    RESERVED = "a node is reserved for it"
    PLACEHOLDER = "it is to take the place of a placeholder"
    REGULAR = "any node with room"


class NextTry(NamedTuple):
    """An ask that is to be tried."""

    ask: Ask
    trying_pass: TryingPass
    reserved_node: str
    """The node that is reserved for it, or the empty text."""


def first_waiting(
    asks: PendingAsks,
    task_groups: TaskGroups,
    reservations: Reservations,
    placed: Mapping[str, Placed],
    count: int,
) -> tuple[NextTry, ...]:
    """Return the first waiting asks, `count` at most, in the order of the asks.

    Members of a gang that wait for placeholders of which none is placed are left out: no pass tries them.
    """
    members = {
        entry.allocation.ask.task_group_name
        for entry in placed.values()
        if entry.allocation.ask.placeholder and not entry.is_leaving
    }

    def walk(group: AskGroup) -> Iterator[AskRecord]:
        shape = group.shape
        is_left_out = task_groups.makes_wait(shape) and shape.task_group_name not in members
        return iter(()) if is_left_out else iter(group)

    found = merge(*(walk(group) for group in asks.groups.values()), key=attrgetter("order"))
    return tuple(_next_try(record, task_groups, reservations) for record in islice(found, count))


def _next_try(record: AskRecord, task_groups: TaskGroups, reservations: Reservations) -> NextTry:
    ask = record.ask
    node_id = reservations.node_of(ask.allocation_key)
    group = record.group
    if node_id:
        return NextTry(ask, TryingPass.RESERVED, node_id)
    if group is not None and task_groups.makes_wait(group.shape):
        return NextTry(ask, TryingPass.PLACEHOLDER, "")
    return NextTry(ask, TryingPass.REGULAR, "")
