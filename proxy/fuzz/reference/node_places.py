"""In which order the second scheduler looks at nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

from .asked import AskedPolicies
from .queues import ReferenceNode


@final
class NodePlaces:
    """The order of all nodes.

    Args:
        nodes: All nodes by their names, as they are added and removed elsewhere.
        policies: The policies under test, which may give the keys.
    """

    def __init__(self, nodes: Mapping[str, ReferenceNode], policies: AskedPolicies) -> None:
        self._nodes = nodes
        self._policies = policies
        self._word = "fair"
        self._weights: dict[str, float] = {}

    def configure(self, partition: dict[str, Any]) -> None:
        """Apply the policy of a partition's configuration."""
        document = partition.get("nodesortpolicy", {})
        self._word, self._weights = document.get("type", "fair"), document.get("resourceweights", {})
        for node in self._nodes.values():
            node.in_use = node.is_used()
        for node in self._nodes.values():
            self.find(node)

    def in_order(self) -> list[ReferenceNode]:
        """Return all nodes in their order."""
        return sorted(self._nodes.values(), key=lambda node: (node.place, node.name))

    def find(self, node: ReferenceNode) -> None:
        """Find the place of a node, which is new or has changed."""
        key = self._policies.node_key(self._word, node)
        if key is not None:
            node.place = key
        elif self._word != "domainpacking":
            node.find_place(self._word, self._weights)
        else:
            before = self.is_broken(node)
            node.in_use = node.is_used()
            self.move_rack(node, before)
            node.find_place("binpacking", self._weights)
            node.place += 0.0 if self.is_broken(node) or node.is_used() else 2.0

    def is_broken(self, node: ReferenceNode) -> bool:
        """Return whether any node of the rack of a node is in use."""
        return any(each.in_use for each in self._rack_of(node))

    def move_rack(self, node: ReferenceNode, was_broken: bool) -> None:  # noqa: FBT001 - of two states
        """Find the places of the other nodes of a rack whose use has begun or ended with a node."""
        if self._word == "domainpacking" and was_broken != self.is_broken(node):
            for other in self._rack_of(node):
                if other is not node and not other.drained:
                    self.find(other)

    def _rack_of(self, node: ReferenceNode) -> list[ReferenceNode]:
        rack = node.attributes.get("rack")
        return [each for each in self._nodes.values() if each.attributes.get("rack") == rack]
