"""The entry of a node in the orders of its partition: the handle, and what is needed to order it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import final

from ..resources.resource import Resource, fits
from .handle import NodeHandle


@final
class NodeEntry:
    """The facts of one node that the partition knows, from the answers of the node."""

    __slots__ = (
        "attributes",
        "available",
        "capacity",
        "cordoned",
        "instance_type",
        "key",
        "node",
        "node_id",
        "out",
        "reserved",
        "schedulable",
    )

    def __init__(
        self,
        node: NodeHandle,
        node_id: str,
        instance_type: str,
        capacity: Resource,
        *,
        schedulable: bool,
        attributes: Mapping[str, str],
    ) -> None:
        self.node = node
        """The handle: in the actors engine each call is an ask."""
        self.node_id = node_id
        self.instance_type = instance_type
        self.attributes: Mapping[str, str] = MappingProxyType(attributes)
        """Those that the RM has given it; they never change."""
        self.capacity = capacity
        self.available = capacity
        self.schedulable = schedulable
        self.cordoned = False
        """Whether it is shown as not schedulable; this decides nothing."""
        self.out: tuple[int, str, str] | None = None
        """While it takes no work: since when, why, and who has drained it, by the tags of its RM."""
        self.reserved = False
        self.key: tuple[float, str] = (0.0, node_id)

    @property
    def usable(self) -> bool:
        """Whether asks without a reservation here may be placed here."""
        return self.schedulable and not self.reserved

    def has_room(self, resource: Resource) -> bool:
        """Return whether an ask of that size without a reservation here may be placed here."""
        return self.usable and fits(self.available, resource) and fits(self.capacity, resource)
