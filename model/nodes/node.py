"""A node: what it has, what runs on it, and who has reserved it.

Conserved at all times: available = capacity - allocated - occupied, where `occupied` is what others use:
foreign allocations, and what the RM reports as one amount in addition. `try_add` never commits more than
is available; `add` accepts existing allocations of an RM, and may make `available` negative.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final

from ..marks import Marks
from ..resources.comparisons import equals, prune
from ..resources.resource import EMPTY, Resource, add, fits, subtract, take_away
from ..values.allocation import UNKNOWN_INSTANCE_TYPE, Allocation

HOSTNAME: Final = "si/hostname"
RACKNAME: Final = "si/rackname"
INSTANCE_TYPE: Final = "si/instance-type"
CORDONED: Final = "licorne/cordoned"
"""The attribute of a node that is shown as not schedulable: predicates decide which asks it takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """All that a node knows of itself, as values."""

    node_id: str
    attributes: Mapping[str, str]
    schedulable: bool
    """Whether it is neither drained nor cordoned."""
    capacity: Resource
    allocated: Resource
    occupied: Resource
    available: Resource
    allocations: tuple[Allocation, ...]
    foreign: tuple[Allocation, ...]
    reservations: tuple[str, ...]


@final
class Node:
    """One node. `node_id` and `attributes` never change and may be read by any thread."""

    MARKS: Final = Marks(
        reads=("facts", "validate"),
        writes=(
            "try_add",
            "add",
            "remove",
            "replace",
            "put_foreign",
            "remove_foreign",
            "set_used_by_others",
            "set_capacity",
            "set_schedulable",
            "set_cordoned",
            "try_reserve",
            "unreserve",
        ),
    )

    def __init__(
        self,
        node_id: str,
        attributes: Mapping[str, str],
        capacity: Resource,
        *,
        schedulable: bool,
    ) -> None:
        self.node_id = node_id
        self.attributes = {name: text for name, text in attributes.items() if name != CORDONED}
        self._is_cordoned = attributes.get(CORDONED) == "true"
        self.instance_type = attributes.get(INSTANCE_TYPE) or UNKNOWN_INSTANCE_TYPE
        self._capacity = prune(capacity)
        self._allocated: dict[str, int] = {}
        """The sum of the allocations; it changes in place, since a node is rarely asked for it."""
        self._occupied = EMPTY
        self._available = self._capacity
        self._schedulable = schedulable
        self._allocations: dict[str, Allocation] = {}
        self._foreign: dict[str, Allocation] = {}
        self._used_by_others = EMPTY
        """The usage by others besides foreign allocations."""
        self._reservations: dict[str, bool] = {}
        """Allocation key -> whether it is a required-node reservation."""

    # ------------------------------------------------------------------------------ allocations

    def try_add(self, allocation: Allocation) -> Resource | None:
        """Place the allocation if it fits and its key is free; return what is available then, or `None`."""
        ask = allocation.ask
        if ask.allocation_key in self._allocations:
            return None
        available = take_away(self._available, ask.resource)
        if available is None:
            return None
        self._allocations[ask.allocation_key] = allocation
        self._count(ask.resource)
        self._available = available
        return available

    def add(self, allocation: Allocation) -> Resource:
        """Place the allocation whether or not it fits; return what is available afterwards."""
        ask = allocation.ask
        key = ask.allocation_key
        assert key not in self._allocations, f"{key} is already on node {self.node_id}: please report"
        self._allocations[key] = allocation
        self._count(ask.resource)
        available = take_away(self._available, ask.resource)
        self._available = prune(subtract(self._available, ask.resource)) if available is None else available
        return self._available

    def remove(self, allocation_key: str) -> Resource:
        """Remove an allocation from the node, if it is there; return what is available afterwards."""
        allocation = self._allocations.pop(allocation_key, None)
        if allocation is not None:
            resource = allocation.ask.resource
            allocated = self._allocated
            for name, quantity in resource.items():
                allocated[name] = allocated.get(name, 0) - quantity
            if not all(allocated.values()):
                self._allocated = {name: quantity for name, quantity in allocated.items() if quantity}
            self._available = prune(add(self._available, resource))
        return self._available

    def _count(self, resource: Resource) -> None:
        allocated = self._allocated
        for name, quantity in resource.items():
            allocated[name] = allocated[name] + quantity if name in allocated else quantity

    def replace(self, allocation_key: str, allocation: Allocation) -> Resource:
        """Replace an allocation by another one, whatever their sizes."""
        self.remove(allocation_key)
        return self.add(allocation)

    # ---------------------------------------------------------------------------------- foreign

    def put_foreign(self, allocation: Allocation) -> Resource:
        """Place or resize a foreign allocation; return what is available afterwards."""
        self._foreign[allocation.ask.allocation_key] = allocation
        return self._count_foreign()

    def remove_foreign(self, allocation_key: str) -> Resource:
        """Remove a foreign allocation from the node; return what is available afterwards."""
        self._foreign.pop(allocation_key, None)
        return self._count_foreign()

    def set_used_by_others(self, resource: Resource) -> Resource:
        """Set what others use besides foreign allocations; return what is available afterwards."""
        self._used_by_others = resource
        return self._count_foreign()

    def _count_foreign(self) -> Resource:
        occupied = self._used_by_others
        for allocation in self._foreign.values():
            occupied = add(occupied, allocation.ask.resource)
        self._occupied = prune(occupied)
        self._refresh()
        return self._available

    # --------------------------------------------------------------------------------- capacity

    def set_capacity(self, capacity: Resource) -> Resource | None:
        """Set the capacity; return what is available afterwards, `None` if nothing changed."""
        pruned = prune(capacity)
        if equals(pruned, self._capacity):
            return None
        self._capacity = pruned
        self._refresh()
        return self._available

    def set_schedulable(self, *, schedulable: bool) -> bool:
        """Cordon or uncordon the node; return whether that changed anything."""
        changed = self._schedulable != schedulable
        self._schedulable = schedulable
        return changed

    def set_cordoned(self, *, cordoned: bool) -> bool:
        """Show the node as not schedulable, or end that; return whether that changed anything."""
        changed = self._is_cordoned != cordoned
        self._is_cordoned = cordoned
        return changed

    def _refresh(self) -> None:
        free = subtract(subtract(self._capacity, Resource(self._allocated)), self._occupied)
        self._available = prune(free)

    # ----------------------------------------------------------------------------- reservations

    def try_reserve(self, allocation_key: str, resource: Resource, *, required: bool) -> bool:
        """Reserve the node for an ask.

        A node has one reservation, or any number of reservations of required-node asks.
        """
        if not fits(self._capacity, resource):
            return False
        if self._reservations and not (required and all(self._reservations.values())):
            return False
        self._reservations[allocation_key] = required
        return True

    def unreserve(self, allocation_key: str) -> bool:
        """Drop a reservation; return whether the node is free of reservations."""
        self._reservations.pop(allocation_key, None)
        return not self._reservations

    # ------------------------------------------------------------------------------------ views

    def facts(self) -> NodeFacts:
        """Return all that the node knows of itself."""
        return NodeFacts(
            node_id=self.node_id,
            attributes=self.attributes,
            schedulable=self._schedulable and not self._is_cordoned,
            capacity=self._capacity,
            allocated=Resource(self._allocated),
            occupied=self._occupied,
            available=self._available,
            allocations=tuple(self._allocations.values()),
            foreign=tuple(self._foreign.values()),
            reservations=tuple(self._reservations),
        )

    def validate(self) -> None:
        """Assert that nothing is lost: the sums agree with the allocations, and with the capacity."""
        allocated = EMPTY
        for allocation in self._allocations.values():
            assert allocation.node_id == self.node_id, f"{allocation!r} is on node {self.node_id}"
            allocated = add(allocated, allocation.ask.resource)
        counted = Resource(self._allocated)
        assert equals(allocated, counted), (
            f"node {self.node_id}: allocated {counted!r} is not the sum {allocated!r}"
        )
        occupied = self._used_by_others
        for allocation in self._foreign.values():
            occupied = add(occupied, allocation.ask.resource)
        assert equals(occupied, self._occupied), (
            f"node {self.node_id}: occupied {self._occupied!r} is not the sum {occupied!r}"
        )
        free = subtract(subtract(self._capacity, counted), self._occupied)
        assert equals(free, self._available), (
            f"node {self.node_id}: available {self._available!r} is not what is left, {free!r}"
        )
        required = list(self._reservations.values())
        assert len(required) < 2 or all(required), f"node {self.node_id}: reserved twice"
