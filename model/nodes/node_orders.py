"""The orders of nodes: each with its word in the configuration, and its key.

A further order of ours is a class here and its word in `licorne.model.configuration.policies`; one that a
program gives is asked by `_NodesByPolicy`. The smallest key goes first, and of equal ones the first node id.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, final

from ..configuration.policies import NODE_ORDER_WORDS
from ..policies.interface import NodeView
from ..policies.policies import GuardedPolicy, Policies, by_word
from ..resources.comparisons import equals
from ..resources.resource import Resource, weighted_usage
from .entry import NodeEntry
from .order import NodeOrder, find_places
from .topology import Path, path_of

_OF_WHOLE: Final = 2.0
"""Added to the keys of the nodes of domains without work; other keys of these orders are at most 1."""
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

    def score(self, order: NodeOrder, entry: NodeEntry) -> float:
        """Return the place of a node in an order, now; others may move because of it."""
        return self.key(entry, entry.available, order.weighted)

    def removed(self, order: NodeOrder, entry: NodeEntry) -> None:  # noqa: B027 - most keys need no others
        """Note that a node has left the order; others may move because of it."""

    def begun(self, _: Iterable[NodeEntry]) -> NodeOrderRule:
        """Return the rule for an order that begins with some nodes."""
        return self


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
class _DomainsInUseFirst(NodeOrderRule):
    """The fuller node first; nodes of domains without any work last, so that these stay whole for gangs.

    Args:
        word: The word in the configuration.
        levels: The attributes of nodes that name their domains; those of the last level count.
    """

    def __init__(self, word: str, levels: Sequence[str] = ()) -> None:
        super().__init__(word)
        self._levels = tuple(levels)
        self._nodes: dict[Path, dict[str, NodeEntry]] = {}
        """The nodes of each domain."""
        self._used: dict[Path, set[str]] = {}
        """Those of them that have less available than their capacity."""

    def begun(self, entries: Iterable[NodeEntry]) -> NodeOrderRule:
        rule = _DomainsInUseFirst(self.word, self._levels)
        for entry in entries:
            rule._note(entry)
        return rule

    def key(self, entry: NodeEntry, available: Resource, weights: Weights) -> float:
        fullest_first = 1.0 - weighted_usage(entry.capacity, available, weights)
        domain = self._domain(entry)
        is_whole = domain is not None and not self._used.get(domain) and equals(available, entry.capacity)
        return fullest_first + _OF_WHOLE if is_whole else fullest_first

    def score(self, order: NodeOrder, entry: NodeEntry) -> float:
        domain = self._note(entry)
        if domain is not None:
            find_places(order, [each for each in self._nodes[domain].values() if each is not entry])
        return self.key(entry, entry.available, order.weighted)

    def removed(self, order: NodeOrder, entry: NodeEntry) -> None:
        domain = self._domain(entry)
        if domain is not None:
            del self._nodes[domain][entry.node_id]
            used = self._used[domain]
            if entry.node_id in used:
                used.remove(entry.node_id)
                find_places(order, [] if used else self._nodes[domain].values())

    def _note(self, entry: NodeEntry) -> Path | None:
        """Note whether a node is in use; return its domain if that is used, or no longer, because of it."""
        domain = self._domain(entry)
        if domain is None:
            return None
        self._nodes.setdefault(domain, {})[entry.node_id] = entry
        used = self._used.setdefault(domain, set())
        before = len(used)
        if equals(entry.available, entry.capacity):
            used.discard(entry.node_id)
        else:
            used.add(entry.node_id)
        return domain if (before > 0) != (len(used) > 0) else None

    def _domain(self, entry: NodeEntry) -> Path | None:
        """Return the domain of a node, `None` if it is in none: it is never kept for gangs."""
        path = path_of(self._levels, entry.attributes)
        return path if path and path[-1] else None


@final
class _NodesByPolicy(NodeOrderRule):
    """The smaller key of a policy first."""

    def __init__(self, word: str, policy: GuardedPolicy) -> None:
        super().__init__(word)
        self._policy = policy

    def key(self, entry: NodeEntry, available: Resource, _: Weights) -> float:
        return self._policy.node_key(NodeView(entry.node_id, entry.attributes, entry.capacity, available))


_BY_DOMAINS: Final = "domainpacking"
NODE_ORDERS: Final[Mapping[str, NodeOrderRule]] = by_word(
    NODE_ORDER_WORDS, _EmptiestFirst("fair"), _FullestFirst("binpacking"), _DomainsInUseFirst(_BY_DOMAINS)
)
"""The built-in orders, by their words."""


def node_order(word: str, policies: Policies, levels: Sequence[str]) -> NodeOrderRule:
    """Return the order that a partition names.

    Args:
        word: One of ours, or a policy with its prefix; that there is one was checked with the configuration.
        policies: Those of the partition.
        levels: The levels of its topology.
    """
    if word == _BY_DOMAINS:
        return _DomainsInUseFirst(word, levels)
    return policies.rule(word, NODE_ORDERS, _NodesByPolicy)
