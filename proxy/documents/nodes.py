"""The documents of nodes: NodeInfo, and how many of them are how full."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...model.nodes.node import HOSTNAME, RACKNAME
from ...model.resources.shares import absolute_used_capacity
from ...model.values.documents import compact, quantities_shown
from .applications import allocation_document, foreign_document

if TYPE_CHECKING:
    from ...model.partition_views import ShownNode
    from ...model.values.documents import Document, Json

__all__ = ["node_document"]

_KEEP: Final = frozenset({"nodeID", "schedulable", "isReserved"})


def node_document(node: ShownNode) -> Document:
    """Return the NodeInfo document."""
    facts = node.facts
    attributes = dict(facts.attributes)
    keys = ((allocation, allocation.ask) for allocation in facts.allocations)
    allocations: list[Json] = [
        allocation_document(allocation, preempted=(ask.application_id, ask.allocation_key) in node.preempted)
        for allocation, ask in keys
    ]
    document: Document = {
        "nodeID": facts.node_id,
        "hostName": attributes.get(HOSTNAME),
        "rackName": attributes.get(RACKNAME),
        "attributes": dict(attributes.items()),
        "capacity": quantities_shown(facts.capacity),
        "allocated": quantities_shown(facts.allocated),
        "occupied": quantities_shown(facts.occupied),
        "available": quantities_shown(facts.available),
        "utilized": quantities_shown(absolute_used_capacity(facts.capacity, facts.allocated)),
        "allocations": allocations,
        "foreignAllocations": [foreign_document(allocation) for allocation in facts.foreign],
        "schedulable": facts.schedulable,
        "isReserved": bool(facts.reservations),
        "reservations": list(facts.reservations),
    }
    return compact(document, keep=_KEEP)
