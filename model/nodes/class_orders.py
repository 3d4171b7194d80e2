"""The orders of nodes by classes of asks: keys that a policy gives to nodes for a class.

An order is found again by each search: the policy is asked about nodes that have changed since the last one.
So no order follows the changes of nodes, and a search takes time in proportion to the number of nodes.
Whether any node has room is known from the order of the partition (`licorne.model.nodes.order`).
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Final, NamedTuple, Protocol, final

from ..policies.interface import AskView, NodeView
from ..policies.policies import GuardedPolicy, Policies, PolicyPoint, is_policy_word
from ..resources.resource import Resource
from .entry import NodeEntry
from .order import NodeOrder

CLASSES_MAX: Final = 16
_UNUSED_NS: Final = 60_000_000_000
"""After how long without a search a class gives its place to another one."""


class OrderedNodes(Protocol):
    """The nodes of a partition in the order for an ask."""

    @property
    def gains(self) -> int:
        """The count of the changes after which some node may have room that had none."""

    @property
    def ask_class(self) -> str:
        """The class of asks that the order is for; empty for the order of the partition."""

    def get(self, node_id: str) -> NodeEntry | None:
        """Return the entry of a node, if it is known."""

    def fitting(self, resource: Resource, unchecked: Container[str] = ()) -> Iterator[NodeEntry]:
        """Walk the usable nodes with room, in order; those `unchecked` may have none."""


class _Keyed(NamedTuple):
    """The key of a node, and what the policy was shown."""

    key: tuple[float, str]
    entry: NodeEntry
    capacity: Resource
    available: Resource

    def is_current(self, entry: NodeEntry) -> bool:
        """Return whether the policy would be shown the same."""
        same_room = entry.available is self.available and entry.capacity is self.capacity
        return same_room and entry is self.entry


@final
class ClassOrder:
    """The nodes in the order of one class.

    Args:
        nodes: The nodes of the partition.
        policy: The policy that orders them.
        ask_class: The class.
    """

    def __init__(self, nodes: NodeOrder, policy: GuardedPolicy, ask_class: str) -> None:
        self.ask_class = ask_class
        self.used_ns = 0
        """When it was last searched, nanoseconds since 1970."""
        self._nodes = nodes
        self._policy = policy
        self._version = ""
        """The answer of the policy with which the keys were asked for."""
        self._keyed: dict[str, _Keyed] = {}
        self._ordered: list[_Keyed] = []

    @property
    def gains(self) -> int:
        """The count of the changes after which some node may have room that had none."""
        return self._nodes.gains

    def get(self, node_id: str) -> NodeEntry | None:
        """Return the entry of a node, if it is known."""
        return self._nodes.get(node_id)

    def fitting(self, resource: Resource, unchecked: Container[str] = ()) -> Iterator[NodeEntry]:
        """Walk the usable nodes with room, in order; those `unchecked` may have none."""
        self._find()
        for _, entry, _, _ in self._ordered:
            if entry.node_id in unchecked or entry.has_room(resource):
                yield entry

    def _find(self) -> None:
        """Ask the policy about each node that has changed, or about all in a new version, and order all."""
        version = self._policy.class_version(self.ask_class)
        before, self._keyed = self._keyed if version == self._version else {}, {}
        self._version = version
        is_changed = len(before) != len(self._nodes)
        for entry in self._nodes:
            keyed = before.get(entry.node_id)
            if keyed is None or not keyed.is_current(entry):
                view = NodeView(entry.node_id, entry.attributes, entry.capacity, entry.available)
                key = self._policy.node_key_for(self.ask_class, view), entry.node_id
                keyed = _Keyed(key, entry, entry.capacity, entry.available)
                is_changed = True
            self._keyed[entry.node_id] = keyed
        if is_changed:
            self._ordered = sorted(self._keyed.values(), key=_key_of)


def _key_of(keyed: _Keyed) -> tuple[float, str]:
    return keyed.key


@final
class ClassOrders:
    """The orders of a partition whose policy of nodes knows classes of asks."""

    def __init__(self, nodes: NodeOrder, policy: GuardedPolicy) -> None:
        self._nodes = nodes
        self._policy = policy
        self._by_class: dict[str, ClassOrder] = {}

    def order_for(self, ask: AskView, now_ns: int) -> OrderedNodes:
        """Return the nodes in the order for an ask.

        It is the order of the partition for an ask without a class, and while as many classes as may be have
        orders: that is counted.
        """
        name = self._policy.ask_class(ask)
        if not name:
            return self._nodes
        order = self._by_class.get(name)
        if order is None:
            if len(self._by_class) >= CLASSES_MAX and not self._drop_unused(now_ns):
                self._policy.counts.without_class += 1
                return self._nodes
            order = self._by_class[name] = ClassOrder(self._nodes, self._policy, name)
        order.used_ns = now_ns
        return order

    def note_placed(self, ask: AskView, node_id: str) -> None:
        """Report a placement to the policy."""
        self._policy.placed(ask, node_id)

    def _drop_unused(self, now_ns: int) -> bool:
        """Drop the class that was used the longest ago; return `False` if all are in use."""
        oldest = min(self._by_class.values(), key=_used_at)
        if oldest.used_ns + _UNUSED_NS > now_ns:
            return False
        del self._by_class[oldest.ask_class]
        return True


def _used_at(order: ClassOrder) -> int:
    return order.used_ns


def class_orders(nodes: NodeOrder, word: str, policies: Policies) -> ClassOrders | None:
    """Return the orders by class if the policy of nodes that a partition names has them."""
    policy = policies.named(word) if is_policy_word(word) else None
    if policy is None or PolicyPoint.CLASS_NODE_ORDER not in policy.points:
        return None
    return ClassOrders(nodes, policy)
