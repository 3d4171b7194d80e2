"""The steps of a placement and of a reservation: all or nothing each."""

from __future__ import annotations

from support.model.builders import SECOND_NS, START_NS, TEN, a_resource
from support.model.harness import Harness, a_running_partition

from licorne.model.nodes.entry import NodeEntry
from licorne.model.resources.resource import EMPTY
from licorne.model.state import placing
from licorne.model.values.allocation import Ask
from licorne.model.values.messages import AllocationPlaced

LIMITED = "- name: leaf\n  resources: {max: {memory: 5}}"


def waiting(*keys: str, queues: str = "- name: leaf") -> Harness:
    """Return a partition with the nodes `one` and `two` of ten and an application whose asks wait."""
    h = a_running_partition(queues=queues)
    h.ask(*keys)
    h.forget()
    return h


def ask_of(h: Harness, key: str) -> Ask:
    record = h.application().asks.record(key)
    assert record is not None
    return record.ask


def node_of(h: Harness, node_id: str) -> NodeEntry:
    entry = h.state.nodes.get(node_id)
    assert entry is not None
    return entry


def commit(h: Harness, key: str, node_id: str) -> bool:
    done = placing.commit(h.state, h.entry(), ask_of(h, key), node_of(h, node_id))
    h.validate()
    return done


def reserve(h: Harness, key: str, node_id: str, *, required: bool = False) -> bool:
    done = placing.reserve(h.state, h.entry(), ask_of(h, key), node_of(h, node_id), required=required)
    h.validate()
    return done


def traces(h: Harness) -> tuple[object, ...]:
    """Return everything that a placement leaves a trace in."""
    nodes = [(node.allocated, node.reservations) for node in (h.node("one"), h.node("two"))]
    leaf = h.queue()
    return (
        nodes,
        leaf.allocated,
        leaf.pending,
        h.user_usage(),
        h.state.placed.allocations,
        h.state.reservations,
    )


# ---------------------------------------------------------------------------------------- placements


def test_a_placement_is_counted_everywhere() -> None:
    """On the node, in the queues, for the user, in the application, and the RM gets a message."""
    h = waiting("a", "b")
    h.advance(5)

    assert commit(h, "a", "one")

    assert (TEN, EMPTY) == (h.node("one").allocated, h.node("one").available)
    assert {TEN} == {level.allocated for level in h.queue().above}
    assert {TEN} == {level.pending for level in h.queue().above}
    assert (TEN, 1, 0) == (h.user_usage(), h.state.placed.allocations, h.state.placed.placeholders)
    assert {"a": "one"} == h.placements


def test_an_allocation_says_where_and_when_it_was_bound() -> None:
    """Node, instance type of the node, and the time of the placement."""
    h = Harness()
    h.nodes("node", attributes={"si/instance-type": "m5"})
    h.submit()
    h.ask("a")
    h.advance(5)

    commit(h, "a", "node")

    (placed,) = h.heard(AllocationPlaced)
    allocation = placed.allocation
    assert ("node", "m5", START_NS + 5 * SECOND_NS, None) == (
        allocation.node_id,
        allocation.instance_type,
        allocation.bound_at_ns,
        allocation.placeholder_created_at_ns,
    )


def test_placeholders_are_counted_apart() -> None:
    """As allocations and as placeholders."""
    h = waiting()
    h.ask("p", placeholder=True, task_group_name="g")

    commit(h, "p", "one")

    assert (1, 1) == (h.state.placed.allocations, h.state.placed.placeholders)


def test_a_queue_without_room_declines() -> None:
    """And nothing has happened."""
    h = waiting("a", queues=LIMITED)
    before = traces(h)

    assert not commit(h, "a", "one")
    assert (before, []) == (traces(h), h.announcements)


def test_a_node_without_room_declines() -> None:
    """And nothing has happened."""
    h = waiting("a", "b")
    commit(h, "a", "one")
    before = traces(h)

    assert not commit(h, "b", "one")
    assert before == traces(h)


def test_an_application_whose_ask_is_placed_declines() -> None:
    """What was taken on the other node and in the queues is given back."""
    h = waiting("a")
    commit(h, "a", "one")
    before = traces(h)

    assert not commit(h, "a", "two")
    assert before == traces(h)


def test_a_placed_ask_lets_its_reservation_go() -> None:
    """On the reserved node as on any other."""
    h = waiting("a")
    reserve(h, "a", "one")

    commit(h, "a", "two")

    assert ((), 0, False) == (h.node("one").reservations, h.state.reservations, node_of(h, "one").reserved)


def test_what_the_claim_of_an_ask_holds_is_for_that_ask_alone() -> None:
    """In a queue without any other room; the claim ends with the placement."""
    h = waiting("a", "b", queues="- name: leaf\n  resources: {max: {memory: 10}}")
    h.state.claims.begin(h.entry(), [ask_of(h, "a")], (), h.clock.now_ns())

    assert not commit(h, "b", "one")
    assert commit(h, "a", "one")

    assert not h.state.claims.by_key
    assert EMPTY == h.queue().held


# -------------------------------------------------------------------------------------- reservations


def test_a_reservation_is_known_to_node_application_and_partition() -> None:
    """And nothing else has changed; there is no message."""
    h = waiting("a")

    assert reserve(h, "a", "one")

    assert (("a",), 1, 1) == (h.node("one").reservations, h.entry().facts.reserved, h.state.reservations)
    assert (True, False) == (node_of(h, "one").reserved, node_of(h, "two").reserved)
    assert (EMPTY, []) == (h.queue().allocated, h.announcements)


def test_a_node_that_is_reserved_declines() -> None:
    """The ask has no reservation then."""
    h = waiting("a", "b")
    reserve(h, "a", "one")

    assert not reserve(h, "b", "one")
    assert (1, "") == (h.state.reservations, h.application()._core.reservations.node_of("b"))


def test_a_node_that_is_too_small_declines() -> None:
    """Its capacity counts, not what is free."""
    h = waiting()
    h.ask("big", resource=a_resource(memory=11))

    assert not reserve(h, "big", "one", required=True)
    assert 0 == h.state.reservations


def test_an_ask_that_is_placed_or_reserved_declines() -> None:
    """The node is free again."""
    h = waiting("a", "b")
    commit(h, "a", "one")
    reserve(h, "b", "one")

    assert [False, False] == [reserve(h, key, "two") for key in ("a", "b")]
    assert ((), 1) == (h.node("two").reservations, h.state.reservations)


def test_a_dropped_reservation_frees_its_node() -> None:
    """To drop one that is not there is no matter."""
    h = waiting("a")
    reserve(h, "a", "one")

    for _ in range(2):
        placing.unreserve(h.state, h.entry(), "a")
        h.validate()

    assert ((), 0, False) == (h.node("one").reservations, h.state.reservations, node_of(h, "one").reserved)


def test_ordinary_reservations_yield_to_a_required_node() -> None:
    """Those of any application on that node; not those of other nodes."""
    h = waiting("a", "b")
    h.submit("other")
    h.ask("c", application_id="other")
    reserve(h, "b", "two")
    entry = h.entry("other")
    record = entry.application.asks.record("c")
    assert record is not None
    placing.reserve(h.state, entry, record.ask, node_of(h, "one"), required=False)

    found = placing.ordinary_reservations(h.state, node_of(h, "one"))

    assert [(entry, "c")] == found


def test_required_reservations_do_not_yield() -> None:
    """There may be several of one node."""
    h = waiting()
    h.ask("a", "b", required_node="one")
    reserve(h, "a", "one", required=True)
    reserve(h, "b", "one", required=True)

    assert [] == placing.ordinary_reservations(h.state, node_of(h, "one"))
