"""The orders of nodes: each with its word in the configuration, and its key.

A further order of ours is a class here and its word in `licorne.model.configuration.policies`; one that a
program gives is asked by `_NodesByPolicy`. The smallest key goes first, and of equal ones the first node id.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Final, final

from ..configuration.policies import NODE_ORDER_WORDS
from ..policies.interface import NodeView
from ..policies.policies import GuardedPolicy, Policies, by_word
from ..resources.resource import Resource, weighted_usage
from .entry import NodeEntry

Weights = Sequence[tuple[str, float]]
"""Resource types with their weights, those without one left out."""


class NodeOrderRule(ABC):
    """How the nodes of a partition are ordered.

    Args:
        word: The word in the configuration.
    """

    def __init__(self, word: str) -> None:
        self.word = word

    @abstractmethod
    def key(self, entry: NodeEntry, available: Resource, weights: Weights) -> float:
        """Return the place of a node with this available room."""


@final
class _EmptiestFirst(NodeOrderRule):
    """The emptier node first, by the weights of resource types."""

    def key(self, entry: NodeEntry, available: Resource, weights: Weights) -> float:
        return weighted_usage(entry.capacity, available, weights)


@final
class _FullestFirst(NodeOrderRule):
    """The fuller node first, by the weights of resource types."""

    def key(self, entry: NodeEntry, available: Resource, weights: Weights) -> float:
        return 1.0 - weighted_usage(entry.capacity, available, weights)


@final
class _NodesByPolicy(NodeOrderRule):
    """The smaller key of a policy first."""

    def __init__(self, word: str, policy: GuardedPolicy) -> None:
        super().__init__(word)
        self._policy = policy

    def key(self, entry: NodeEntry, available: Resource, _: Weights) -> float:
        return self._policy.node_key(NodeView(entry.node_id, entry.attributes, entry.capacity, available))


NODE_ORDERS: Final[Mapping[str, NodeOrderRule]] = by_word(
    NODE_ORDER_WORDS, _EmptiestFirst("fair"), _FullestFirst("binpacking")
)
"""The built-in orders, by their words."""


def node_order(word: str, policies: Policies) -> NodeOrderRule:
    """Return the order that a partition names.

    Args:
        word: One of ours, or a policy with its prefix; that there is one was checked with the configuration.
        policies: Those of the partition.
    """
    return policies.rule(word, NODE_ORDERS, _NodesByPolicy)
