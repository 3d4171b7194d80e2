"""The orders of nodes: each with its word in the configuration, its key, and its sentence.

A further order of ours is a class here and its word in `licorne.model.configuration.policies`; one that a
program gives is asked by `_NodesByPolicy`. The smallest key goes first, and of equal ones the first node id.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, final

from ..configuration.policies import NODE_ORDER_WORDS
from ..policies.interface import NodeView
from ..policies.policies import POLICY_PREFIX, GuardedPolicy, Policies
from ..resources.resource import Resource, weighted_usage
from .order import NodeEntry

Weights = Sequence[tuple[str, float]]
"""Resource types with their weights, those without one left out."""


class NodeOrderRule:
    """How the nodes of a partition are ordered.

    Args:
        word: What the configuration says.
        sentence: The rule in words, for explanations.
        policy: The policy of the program that decides.
    """

    def __init__(self, word: str, sentence: str, policy: GuardedPolicy | None = None) -> None:
        self.word = word
        self.sentence = sentence
        self.policy = policy

    def key(self, entry: NodeEntry, available: Resource, weights: Weights) -> float:
        """Return the place of a node if it has so much available."""
        raise NotImplementedError


@final
class _Fair(NodeOrderRule):
    def key(self, entry: NodeEntry, available: Resource, weights: Weights) -> float:
        return weighted_usage(entry.capacity, available, weights)


@final
class _Binpacking(NodeOrderRule):
    def key(self, entry: NodeEntry, available: Resource, weights: Weights) -> float:
        return 1.0 - weighted_usage(entry.capacity, available, weights)


@final
class _NodesByPolicy(NodeOrderRule):
    def __init__(self, word: str, policy: GuardedPolicy) -> None:
        super().__init__(word, f"the smaller key of policy {policy.name}", policy)
        self._policy = policy

    def key(self, entry: NodeEntry, available: Resource, _: Weights) -> float:
        return self._policy.node_key(NodeView(entry.node_id, entry.attributes, entry.capacity, available))


NODE_ORDERS: Final[Mapping[str, NodeOrderRule]] = {
    rule.word: rule
    for rule in (
        _Fair("fair", "the emptier node, by the weights of resource types"),
        _Binpacking("binpacking", "the fuller node, by the weights of resource types"),
    )
}
"""The orders of ours, by their words."""

assert tuple(NODE_ORDERS) == NODE_ORDER_WORDS, "an order without a word, or a word without an order"


def node_order(word: str, policies: Policies) -> NodeOrderRule:
    """Return the order that a partition names.

    Args:
        word: One of ours, or a policy with its prefix; that there is one was checked with the configuration.
        policies: Those of the partition.
    """
    if word.startswith(POLICY_PREFIX):
        return _NodesByPolicy(word, policies.named(word))
    return NODE_ORDERS[word]
