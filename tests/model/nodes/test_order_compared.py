"""The order of nodes beside a plain list that does what the rules say, in the simplest way."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from support.model.builders import a_node_entry, a_resource

from licorne.model.configuration.schema import NodeSortPolicy
from licorne.model.nodes.block import NodeEntry
from licorne.model.nodes.order import NodeOrder, first_to_reserve
from licorne.model.resources.comparisons import fit_score
from licorne.model.resources.resource import Resource, fits


def memory(quantity: int) -> Resource:
    return a_resource(memory=quantity)


class _PlainNode:
    """What a node is in the list that is searched from its start each time."""

    def __init__(self, entry: NodeEntry) -> None:
        self.entry = entry
        self.scored = entry.available

    def key(self, policy: NodeSortPolicy) -> tuple[float, str]:
        """Return (score, id), by the room at the time of the last scoring."""
        usage = 1.0 - self.scored.get("memory") / self.entry.capacity.get("memory")
        return (usage if policy is NodeSortPolicy.FAIR else 1.0 - usage, self.entry.node_id)

    def has_room(self, quantity: int) -> bool:
        entry = self.entry
        usable = entry.schedulable and not entry.reserved
        return (
            usable and entry.available.get("memory") >= quantity and entry.capacity.get("memory") >= quantity
        )


class OrderMachine(RuleBasedStateMachine):
    """The order beside a list that does what the rules say, in the simplest way."""

    names = st.integers(0, 700).map(lambda number: f"n{number:03}")
    quantities = st.integers(-2, 10)

    @initialize(
        policy=st.sampled_from(NodeSortPolicy), count=st.sampled_from([0, 3, 190, 500]), used=quantities
    )
    def begin(self, policy: NodeSortPolicy, count: int, used: int) -> None:
        """Start with few nodes or many, all with the same room."""
        self.policy = policy
        self.order = NodeOrder(policy, {})
        self.plain: dict[str, _PlainNode] = {}
        for number in range(count):
            self.join(f"n{number:03}", used)

    @rule(name=names, quantity=quantities)
    def join(self, name: str, quantity: int) -> None:
        """Take a node in."""
        if name not in self.plain:
            entry = a_node_entry(name, available=memory(quantity))
            self.order.add(entry)
            self.plain[name] = _PlainNode(entry)

    def pick(self, place: int) -> _PlainNode | None:
        return list(self.plain.values())[place % len(self.plain)] if self.plain else None

    @rule(place=st.integers(0, 999))
    def leave(self, place: int) -> None:
        """Take a node out."""
        node = self.pick(place)
        if node is not None:
            self.order.remove(node.entry.node_id)
            del self.plain[node.entry.node_id]

    @rule(place=st.integers(0, 999), quantity=quantities, scored=st.booleans())
    def change_room(self, place: int, quantity: int, *, scored: bool) -> None:
        """Give or take room; some changes leave a node in its place."""
        node = self.pick(place)
        if node is None:
            return
        grows = quantity >= node.entry.available.get("memory")
        room = memory(quantity)
        if not scored:
            self.order.give_unscored(node.entry, room)
            return
        (self.order.give if grows else self.order.take)(node.entry, room)
        if node.entry.schedulable:
            node.scored = room

    @rule(place=st.integers(0, 999), value=st.booleans(), cordon=st.booleans())
    def change_use(self, place: int, *, value: bool, cordon: bool) -> None:
        """Cordon or reserve a node, or the opposite. A cordoned node keeps its place until it is opened."""
        node = self.pick(place)
        if node is None:
            return
        if cordon:
            self.order.set_schedulable(node.entry, schedulable=value)
            if value:
                node.scored = node.entry.available
        else:
            self.order.set_reserved(node.entry, reserved=value)

    @rule(quantity=st.integers(1, 11))
    def place(self, quantity: int) -> None:
        """Take room on the first node that fits, as the scheduler does."""
        entry = self.order.first_fit(memory(quantity))
        if entry is not None:
            room = memory(entry.available.get("memory") - quantity)
            self.order.take(entry, room)
            self.plain[entry.node_id].scored = room

    @rule(policy=st.sampled_from(NodeSortPolicy))
    def reload(self, policy: NodeSortPolicy) -> None:
        """Order by a policy, which scores every node."""
        self.policy = policy
        self.order.set_policy(policy, {})
        for node in self.plain.values():
            node.scored = node.entry.available

    @invariant()
    def the_first_fit_is_that_of_the_list(self) -> None:
        """For every size the order finds what the list finds, and walks in the same order."""
        if not hasattr(self, "order"):
            return
        self.order.validate()
        walk = sorted(self.plain.values(), key=lambda node: node.key(self.policy))
        assert [node.entry.node_id for node in walk] == [entry.node_id for entry in self.order]
        for quantity in (1, 4, 8, 10, 11):
            expected = next((node.entry for node in walk if node.has_room(quantity)), None)
            assert expected is self.order.first_fit(memory(quantity))
            assert self.to_reserve(walk, memory(quantity)) is first_to_reserve(self.order, memory(quantity))

    @staticmethod
    def to_reserve(walk: list[_PlainNode], resource: Resource) -> NodeEntry | None:
        """Return the usable node that is large enough and has the least beyond the resource."""
        large = [node.entry for node in walk if node.entry.usable and fits(node.entry.capacity, resource)]
        return min(large, key=lambda entry: fit_score(resource, entry.available), default=None)


TestOrderIsThatOfAPlainList = OrderMachine.TestCase
TestOrderIsThatOfAPlainList.settings = settings(deadline=None, max_examples=30, stateful_step_count=25)
