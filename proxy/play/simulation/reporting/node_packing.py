"""How nodes are packed over time: how full they are, and how their free room is split up.

The use of a node is its largest share of one resource type. A node changes class when that share enters
another tenth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, final

from .interval_series import Gauge, Intervals

CLASSES: Final = ("empty", *(f"{low}-{low + 10} %" for low in range(0, 100, 10)))
"""Nothing in use; then more than the first number, and at most the second."""


@dataclass(slots=True)
class _PackedNode:
    """What a node has, and what of it is in use."""

    capacity: dict[str, int]
    used: dict[str, int] = field(default_factory=dict)
    is_there: bool = True

    def use_class(self) -> int:
        """Return the index of its class."""
        if not any(self.used.values()):
            return 0
        tenths = [-(-10 * self.used.get(name, 0) // has) for name, has in self.capacity.items() if has > 0]
        return min(max(tenths, default=0), 10) or 1

    def free(self, name: str) -> int:
        """Return what is free of a resource type; nothing where more is in use than there is."""
        return max(self.capacity.get(name, 0) - self.used.get(name, 0), 0)


@final
class NodePacking:
    """The packing of all nodes of one simulation.

    Attributes:
        by_class: How many nodes are in each of `CLASSES`.
        free: What is free on all nodes, by resource type.
        free_on_used: What of it is on nodes that hold something.
    """

    def __init__(self, intervals: Intervals) -> None:
        self._intervals = intervals
        self._nodes: dict[str, _PackedNode] = {}
        self.by_class = [Gauge(intervals.series()) for _ in CLASSES]
        self.free: dict[str, Gauge] = {}
        self.free_on_used: dict[str, Gauge] = {}

    def node_came(self, node_id: str, resources: Mapping[str, int], at_ns: int) -> None:
        """Count a new node; one that was gone and comes back may still hold something."""
        held = self._nodes.get(node_id)
        node = _PackedNode(dict(resources), {} if held is None else held.used)
        self._nodes[node_id] = node
        for name in resources:
            for gauges in (self.free, self.free_on_used):
                if name not in gauges:
                    gauges[name] = Gauge(self._intervals.series())
        self._count(node, at_ns, 1)

    def node_left(self, node_id: str, at_ns: int) -> None:
        """Count a node no longer."""
        node = self._nodes[node_id]
        self._count(node, at_ns, -1)
        node.is_there = False
        self._forget_if_done(node_id, node)

    def used(self, node_id: str, resources: Mapping[str, int], at_ns: int, sign: int) -> None:
        """Note that resources of a node come into use (sign 1) or are given back (sign -1)."""
        node = self._nodes.get(node_id)
        if node is None:
            # Recovered allocations are written before the node that they are on.
            node = self._nodes[node_id] = _PackedNode({}, is_there=False)
        if node.is_there:
            self._count(node, at_ns, -1)
        for name, quantity in resources.items():
            node.used[name] = node.used.get(name, 0) + sign * quantity
        if node.is_there:
            self._count(node, at_ns, 1)
        else:
            self._forget_if_done(node_id, node)

    def _forget_if_done(self, node_id: str, node: _PackedNode) -> None:
        """Forget a node that is gone and holds nothing."""
        if not any(node.used.values()):
            del self._nodes[node_id]

    def _count(self, node: _PackedNode, at_ns: int, sign: int) -> None:
        """Count a node in its class, and its free room."""
        use_class = node.use_class()
        self.by_class[use_class].change(at_ns, sign)
        for name in node.capacity:
            free = sign * node.free(name)
            self.free[name].change(at_ns, free)
            if use_class:
                self.free_on_used[name].change(at_ns, free)
