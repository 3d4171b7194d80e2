"""The order of nodes by policy, and the search for room in it; beside a plain list."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from support.model.builders import TEN, a_node_entry, a_resource, memory

from licorne.model.nodes.entry import NodeEntry
from licorne.model.nodes.node_orders import NODE_ORDERS, NodeOrderRule
from licorne.model.nodes.order import DEFAULT_WEIGHTS, NodeOrder, first_to_reserve, forget_closed
from licorne.model.resources.comparisons import fit_score
from licorne.model.resources.resource import EMPTY, Resource, fits

FAIR = NODE_ORDERS["fair"]
BINPACKING = NODE_ORDERS["binpacking"]


def an_order(
    *entries: NodeEntry, policy: NodeOrderRule = FAIR, weights: Mapping[str, float] | None = None
) -> NodeOrder:
    order = NodeOrder(policy, weights or {})
    for entry in entries:
        order.add(entry)
    return order


def names(order: NodeOrder) -> list[str]:
    order.validate()
    return [entry.node_id for entry in order]


def used(node_id: str, quantity: int) -> NodeEntry:
    """Return the entry of a node of ten of which so much is used."""
    return a_node_entry(node_id, available=memory(10 - quantity))


def first_fit(order: NodeOrder, resource: Resource) -> str | None:
    entry = order.first_fit(resource)
    order.validate()
    return None if entry is None else entry.node_id


# ------------------------------------------------------------------------------------------- the order


@pytest.mark.parametrize(
    ("policy", "expected"), [(FAIR, ["idle", "half", "busy"]), (BINPACKING, ["busy", "half", "idle"])]
)
def test_the_policy_decides_which_usage_goes_first(policy: NodeOrderRule, expected: list[str]) -> None:
    """Fair starts with the emptiest node, binpacking with the fullest."""
    order = an_order(used("half", 5), used("busy", 9), used("idle", 0), policy=policy)

    assert expected == names(order)


@pytest.mark.parametrize("policy", list(NODE_ORDERS.values()))
def test_nodes_of_equal_usage_are_ordered_by_id(policy: NodeOrderRule) -> None:
    """The lower id goes first under both policies."""
    order = an_order(*(used(name, 5) for name in ("c", "a", "d", "b")), policy=policy)

    assert ["a", "b", "c", "d"] == names(order)


def test_usage_is_a_share_of_the_node() -> None:
    """A large node with more in use goes before a small one with a larger part in use."""
    large = a_node_entry("large", capacity=memory(100), available=memory(60))
    small = a_node_entry("small", capacity=memory(10), available=memory(5))

    assert ["large", "small"] == names(an_order(small, large))


def test_without_weights_memory_and_cores_count_the_same() -> None:
    """The default weights know two types; what else is used does not matter."""
    size = a_resource(memory=10, vcore=10, gpu=10)
    cores = a_node_entry("cores", capacity=size, available=a_resource(memory=10, vcore=4, gpu=10))
    both = a_node_entry("both", capacity=size, available=a_resource(memory=8, vcore=8, gpu=10))
    gpus = a_node_entry("gpus", capacity=size, available=a_resource(memory=10, vcore=10, gpu=0))

    assert {"vcore": 1.0, "memory": 1.0} == DEFAULT_WEIGHTS
    assert ["gpus", "both", "cores"] == names(an_order(cores, both, gpus))


def test_configured_weights_replace_the_default_ones_completely() -> None:
    """With a weight for one type alone no other type counts."""
    size = a_resource(memory=10, gpu=10)
    memory_used = a_node_entry("memory", capacity=size, available=a_resource(memory=1, gpu=10))
    gpu_used = a_node_entry("gpu", capacity=size, available=a_resource(memory=10, gpu=9))

    assert ["memory", "gpu"] == names(an_order(memory_used, gpu_used, weights={"gpu": 1.0}))


def test_usage_is_the_weighted_mean() -> None:
    """Three parts memory, one part cores: 0.75 x 0.4 is more than 0.25 x 1.0."""
    size = a_resource(memory=10, vcore=10)
    memory_used = a_node_entry("memory", capacity=size, available=a_resource(memory=6, vcore=10))
    cores_used = a_node_entry("cores", capacity=size, available=a_resource(memory=10))

    order = an_order(memory_used, cores_used, weights={"memory": 3.0, "vcore": 1.0})

    assert ["cores", "memory"] == names(order)
    assert pytest.approx(0.25) == cores_used.key[0]
    assert pytest.approx(0.3) == memory_used.key[0]


@pytest.mark.parametrize(
    ("weights", "score"), [({"memory": 0.0}, 0.0), ({"disk": 1.0}, 0.0), ({"memory": 1.0, "disk": 1.0}, 0.9)]
)
def test_types_without_weight_or_that_a_node_lacks_do_not_count(
    weights: dict[str, float], score: float
) -> None:
    """Only types with a weight that the node has go into the mean; without any the node counts as idle."""
    entry = used("node", 9)

    an_order(entry, weights=weights)

    assert pytest.approx(score) == entry.key[0]


def test_the_order_follows_every_change() -> None:
    """What a node gives away or gets back moves it; the others stay."""
    entries = {name: used(name, 0) for name in ("a", "b", "c")}
    order = an_order(*entries.values())

    order.take(entries["a"], memory(4))
    after_a = names(order)
    order.take(entries["b"], memory(8))
    after_b = names(order)
    order.give(entries["a"], memory(10))

    assert (["b", "c", "a"], ["c", "b", "a"]) == (after_a, after_b)
    assert ["a", "c", "b"] == names(order)


def test_another_policy_orders_anew() -> None:
    """Policy and weights change together, and what had no room is searched for again."""
    order = an_order(used("half", 5), used("busy", 9))
    order.first_fit(memory(11))

    order.set_rule(BINPACKING, {})

    assert (["busy", "half"], {}) == (names(order), order.closed)


def test_nodes_are_also_listed_by_name() -> None:
    """All of them, whatever their usage."""
    order = an_order(used("b", 0), used("c", 5), used("a", 9))

    assert ["a", "b", "c"] == [entry.node_id for entry in order.by_name()]
    assert 3 == len(order)


def test_a_node_that_is_taken_out_is_gone() -> None:
    """It is in no order any more; the answer is its entry."""
    order = an_order(used("a", 0), used("b", 0))

    assert "a" == order.remove("a").node_id
    assert (["b"], None, 1) == (names(order), order.get("a"), len(order))


def test_a_node_is_taken_in_once() -> None:
    """To add a known node is a mistake of ours."""
    order = an_order(used("a", 0))

    with pytest.raises(AssertionError, match="node a is known"):
        order.add(used("a", 0))


# ------------------------------------------------------------------------------------------- searching


def test_the_first_node_with_room_is_found() -> None:
    """Nodes in order; full ones are passed over."""
    order = an_order(used("half", 5), used("busy", 9), used("idle", 0), policy=BINPACKING)

    assert ["busy", "half", "idle", None] == [first_fit(order, memory(n)) for n in (1, 5, 6, 11)]


def test_every_type_must_fit() -> None:
    """A type that a node does not have is none of it."""
    order = an_order(a_node_entry("plain"), a_node_entry("gpu", capacity=a_resource(memory=5, gpu=1)))

    assert "gpu" == first_fit(order, a_resource(memory=5, gpu=1))
    assert first_fit(order, a_resource(memory=6, gpu=1)) is None


def test_cordoned_and_reserved_nodes_are_passed_over() -> None:
    """They are in the order, but nothing is placed on them by the way."""
    order = an_order(a_node_entry("a", schedulable=False), a_node_entry("b"), a_node_entry("c"))
    entry = order.get("b")
    assert entry is not None

    order.set_reserved(entry, reserved=True)

    assert (["a", "b", "c"], "c") == (names(order), first_fit(order, TEN))


def test_all_fitting_nodes_are_walked_in_order() -> None:
    """The walk gives those with room, and only those."""
    order = an_order(used("c", 2), used("b", 9), used("a", 4), a_node_entry("d", schedulable=False))

    assert ["c", "a"] == [entry.node_id for entry in order.fitting(memory(5))]


def test_a_size_without_room_is_remembered_until_a_node_gains_room() -> None:
    """It is closed at once for the next one who asks, and opened by room for it, not by less."""
    entry = used("a", 8)
    order = an_order(entry)
    order.first_fit(memory(5))

    order.give(entry, memory(4))
    still = memory(5) in order.closed
    order.give(entry, memory(5))

    assert still
    assert {} == order.closed
    assert "a" == first_fit(order, memory(5))


@pytest.mark.parametrize("by", ["add", "give", "give_unscored", "unreserve", "uncordon", "grow"])
def test_whatever_makes_room_opens_a_closed_size(by: str) -> None:
    """A new node, room on a known one, the end of a reservation, a node that may be used again."""
    entry = a_node_entry("a", available=memory(0))
    order = an_order(entry)
    if by in ("unreserve", "uncordon"):
        order.give(entry, TEN)
        order.set_reserved(entry, reserved=by == "unreserve")
        order.set_schedulable(entry, schedulable=by != "uncordon")
    assert first_fit(order, TEN) is None

    match by:
        case "add":
            order.add(a_node_entry("b"))
        case "give":
            order.give(entry, TEN)
        case "give_unscored":
            order.give_unscored(entry, TEN)
        case "grow":
            entry.capacity = memory(20)
            order.give(entry, TEN)
        case "unreserve":
            order.set_reserved(entry, reserved=False)
        case _:
            order.set_schedulable(entry, schedulable=True)

    assert first_fit(order, TEN) is not None


def test_all_sizes_that_wait_are_remembered_and_others_are_forgotten() -> None:
    """However many: they are tried in turns, and a bound would forget the one that is tried next."""
    order = an_order(used("a", 9))
    for quantity in range(2, 602):
        order.first_fit(memory(quantity))
    assert (600, True) == (len(order.closed), len(order.closed) > order.closed_max)
    forget_closed(order, {memory(quantity) for quantity in range(2, 402)})

    assert (400, 800) == (len(order.closed), order.closed_max)
    assert (True, False) == (memory(401) in order.closed, memory(402) in order.closed)


# ---------------------------------------------------------------------------------- more than one block


@pytest.mark.parametrize("policy", list(NODE_ORDERS.values()))
def test_many_nodes_are_in_order_however_they_come(policy: NodeOrderRule) -> None:
    """Seven hundred nodes split the order into blocks; it stays one order."""
    order = an_order(policy=policy)
    entries = [used(f"n{number:03}", number * 7 % 10) for number in range(700)]

    for entry in entries:
        order.add(entry)

    sign = 1 if policy is FAIR else -1
    expected = sorted(entries, key=lambda entry: (-sign * entry.available.get("memory"), entry.node_id))
    assert [entry.node_id for entry in expected] == names(order)


def test_room_is_found_in_the_last_block() -> None:
    """One free node among seven hundred full ones is found, and given up when it is full too."""
    order = an_order(*(used(f"n{number:03}", 10) for number in range(700)), policy=BINPACKING)
    entry = order.get("n400")
    assert entry is not None

    order.give(entry, memory(3))
    found = first_fit(order, memory(3))
    order.take(entry, EMPTY)

    assert ("n400", None) == (found, first_fit(order, memory(3)))


def test_a_block_that_is_emptied_leaves_no_gap() -> None:
    """Nodes can all be taken out, in any order, and come again."""
    order = an_order(*(used(f"n{number:03}", number % 10) for number in range(500)))
    for number in range(0, 500, 2):
        order.remove(f"n{number:03}")
    half = names(order)
    for number in range(1, 500, 2):
        order.remove(f"n{number:03}")

    assert 250 == len(half)
    assert [] == names(order)
    assert first_fit(order, memory(1)) is None

    order.add(used("again", 0))

    assert "again" == first_fit(order, TEN)


# ---------------------------------------------------------------------------------- beside a plain list


class _PlainNode:
    """What a node is in the list that is searched from its start each time."""

    def __init__(self, entry: NodeEntry) -> None:
        self.entry = entry
        self.scored = entry.available

    def key(self, policy: NodeOrderRule) -> tuple[float, str]:
        """Return (score, id), by the room at the time of the last scoring."""
        usage = 1.0 - self.scored.get("memory") / self.entry.capacity.get("memory")
        return (usage if policy is FAIR else 1.0 - usage, self.entry.node_id)

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
        policy=st.sampled_from(list(NODE_ORDERS.values())),
        count=st.sampled_from([0, 3, 190, 500]),
        used=quantities,
    )
    def begin(self, policy: NodeOrderRule, count: int, used: int) -> None:
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

    @rule(policy=st.sampled_from(list(NODE_ORDERS.values())))
    def reload(self, policy: NodeOrderRule) -> None:
        """Order by a policy, which scores every node."""
        self.policy = policy
        self.order.set_rule(policy, {})
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
TestOrderIsThatOfAPlainList.settings = settings(max_examples=30, stateful_step_count=25)
