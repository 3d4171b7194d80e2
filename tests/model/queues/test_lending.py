"""`resources.lend`: what others may use of a guarantee that its queue does not use."""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.model.builders import FakePredicates, a_configuration, a_resource, memory
from support.model.explained import only_blocker
from support.model.harness import Harness

from licorne.model.queues import quota
from licorne.model.queues.queue import Queue
from licorne.model.queues.quota import gives_room
from licorne.model.queues.tree import QueueTree
from licorne.model.scheduling.cycle import CycleOutcome
from licorne.model.values.allocation import RefusalReason
from licorne.model.values.messages import TerminationType


class TreeOf(NamedTuple):
    """The queues below the root, as YAML."""

    queues: str


def _with_names(children: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [child | {"name": f"q{number}"} for number, child in enumerate(children)]


def _highest(queue: dict[str, Any]) -> int:
    """Return the largest maximum of a queue and of those below it."""
    own = int(queue["resources"].get("max", {}).get("memory", 0))
    return max(own, *map(_highest, queue.get("queues", [])), 0)


@st.composite
def _queue(draw: st.DrawFn, levels: int) -> dict[str, Any]:
    """A queue is guaranteed at least what those below it are, and has a maximum of no less."""
    children = draw(st.lists(_queue(levels - 1), max_size=3)) if levels else []
    least = sum(int(child["resources"].get("guaranteed", {}).get("memory", 0)) for child in children)
    resources: dict[str, dict[str, str]] = {}
    guaranteed = least + draw(st.integers(0, 15))
    if guaranteed and (least or draw(st.booleans())):
        resources["guaranteed"] = {"memory": str(guaranteed)}
        if draw(st.booleans()):
            resources["lend"] = {"memory": str(draw(st.integers(0, guaranteed)))}
    highest = max(map(_highest, children), default=0)
    if draw(st.booleans()):
        resources["max"] = {"memory": str(max(guaranteed, highest) + draw(st.integers(1, 15)))}
    queue: dict[str, Any] = {"resources": resources}
    return queue | ({"parent": True, "queues": _with_names(children)} if children else {})


def _written(children: list[dict[str, Any]]) -> TreeOf:
    return TreeOf("\n".join(f"- {json.dumps(child)}" for child in _with_names(children)))


def trees() -> st.SearchStrategy[TreeOf]:
    """Return trees of up to three levels below the root."""
    queues = st.lists(_queue(2), min_size=1, max_size=3)
    return queues.map(_written)


A_AND_B: Final = """
- {name: a, resources: {guaranteed: {memory: 40}, lend: {memory: 10}}}
- {name: b, resources: {guaranteed: {memory: 30}}}
"""
BELOW: Final = """
- name: p
  parent: true
  resources: {guaranteed: {memory: 60}, lend: {memory: 10}}
  queues:
  - {name: a, resources: {guaranteed: {memory: 40}, lend: {memory: 10}}}
  - {name: b}
- {name: c}
"""


class Case(NamedTuple):
    """Queues of a cluster of 100, what their leaves use, and the room that they have."""

    queues: str
    used: dict[str, int]
    room: dict[str, int]


CASES: Final[dict[str, Case]] = {
    "what is kept back is no room for others, but for its queue": Case(
        A_AND_B, {"a": 5, "b": 50}, {"a": 45, "b": 20}
    ),
    "a queue that uses what it keeps back withholds nothing": Case(
        A_AND_B, {"a": 35, "b": 50}, {"a": 15, "b": 15}
    ),
    "without the setting all is lent": Case(
        A_AND_B.replace(", lend: {memory: 10}", ""), {"a": 5, "b": 50}, {"a": 45, "b": 45}
    ),
    "a type that is not named is lent": Case(
        A_AND_B.replace("lend: {memory: 10}", "lend: {vcore: 0}").replace(
            "{memory: 40}", "{memory: 40, vcore: 1}"
        ),
        {"a": 5, "b": 50},
        {"a": 45, "b": 45},
    ),
    "0 lends nothing": Case(
        A_AND_B.replace("lend: {memory: 10}", "lend: {memory: 0}"), {"a": 5, "b": 50}, {"a": 45, "b": 10}
    ),
    "a parent withholds the larger of its own and of what is below it": Case(
        BELOW, {"p.a": 5, "p.b": 10, "c": 10}, {"p.a": 75, "p.b": 50, "c": 40}
    ),
    "its own is for all below it": Case(
        BELOW, {"p.a": 0, "p.b": 50, "c": 10}, {"p.a": 40, "p.b": 10, "c": 10}
    ),
}


def a_tree(queues: str) -> QueueTree:
    tree = QueueTree(a_configuration(queues).root)
    tree.root.set_maximum_from_nodes(a_resource(memory=100, vcore=1000))
    return tree


def leaf_of(tree: QueueTree, path: str) -> Queue:
    leaf = tree.find(f"root.{path}")
    assert leaf is not None, f"there is no queue {path}"
    return leaf


def room(tree: QueueTree, path: str) -> int:
    headroom = quota.headroom(leaf_of(tree, path))
    assert headroom is not None, "the nodes are a maximum"
    return headroom["memory"]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_room_of_a_queue(case: Case) -> None:
    """The headroom says it, and a charge finds the same."""
    tree = a_tree(case.queues)
    for path, used in case.used.items():
        quota.charge(leaf_of(tree, path), memory(used))

    assert case.room == {path: room(tree, path) for path in case.room}
    for path, most in case.room.items():
        leaf = leaf_of(tree, path)
        assert leaf.above[-1] is quota.try_charge(leaf, memory(most + 1))
        assert None is quota.try_charge(leaf, memory(most))
        quota.release_charge(leaf, memory(most))
    tree.validate()


# ------------------------------------------------------------------------------------- by definition


def counted(queue: Queue, path: tuple[Queue, ...]) -> int:
    """Return what a queue counts as: the larger of its use and what it keeps back, outside of a path."""
    used = sum(counted(child, path) for child in queue.children.values())
    used = used if queue.children else queue.allocated.get("memory")
    if queue in path or queue.lend is None or queue.guaranteed is None:
        return used
    return max(used, queue.guaranteed.get("memory") - queue.lend["memory"])


def room_by_definition(leaf: Queue) -> int:
    """Return the least that is left at any queue above a leaf, or at the leaf, of its maximum."""
    return min(
        level.maximum["memory"] - counted(level, leaf.above)
        for level in leaf.above
        if level.maximum is not None
    )


@settings(max_examples=60)
@given(tree_of=trees(), steps=st.lists(st.tuples(st.integers(0, 99), st.integers(-12, 12)), max_size=25))
def test_rooms_are_those_of_the_definition(tree_of: TreeOf, steps: list[tuple[int, int]]) -> None:
    """For random trees and random charges and releases, at each leaf after each step."""
    tree = a_tree(tree_of.queues)
    leaves = tree.leaves()
    for number, change in steps:
        leaf = leaves[number % len(leaves)]
        if change > 0:
            fits = change <= room_by_definition(leaf)
            assert fits is (quota.try_charge(leaf, memory(change)) is None)
        else:
            less = min(-change, leaf.allocated.get("memory"))
            quota.release_charge(leaf, memory(less))
        tree.validate()
        assert [room_by_definition(each) for each in leaves] == [
            headroom["memory"] for each in leaves if (headroom := quota.headroom(each)) is not None
        ]


# ------------------------------------------------------------------------------- in the life of queues


def scene(queues: str = A_AND_B) -> Harness:
    """Return a cluster of 100 in which a uses 5 and b 50, and b wants 40 more."""
    h = Harness(queues)
    h.submit("a", "root.a")
    h.submit("b", "root.b")
    h.nodes("node", capacity=memory(100))
    h.ask_and_run("a1", application_id="a", resource=memory(5))
    h.ask_and_run("b1", application_id="b", resource=memory(50))
    h.ask("b2", application_id="b", resource=memory(40))
    h.run_until_idle()
    return h


def test_an_ask_waits_for_what_is_kept_back_although_nodes_have_room() -> None:
    """The explanation names the queue that keeps it, and its line."""
    h = scene()

    blocker = only_blocker(h, "b2", "b")

    assert ["a1", "b1"] == sorted(h.placements)
    assert [("root.a", "memory", 25, 30)] == [each[:4] for each in blocker.withheld]
    assert ["queues[0].queues[0].resources.lend.memory"] == [
        each.position.path.partition(".")[2] for each in blocker.withheld if each.position is not None
    ]
    assert [(40, 20)] == [(lack.asked, lack.available) for lack in blocker.lacks]


def test_a_smaller_ask_uses_what_is_lent() -> None:
    """And the owner has room for what it kept back."""
    h = scene()
    h.ask_and_run("b3", application_id="b", resource=memory(20))
    h.ask_and_run("a2", application_id="a", resource=memory(25))

    assert {"a1", "a2", "b1", "b3"} == set(h.placements)


@pytest.mark.parametrize("used", [0, 60], ids=["from the beginning", "once its node has room again"])
def test_an_ask_for_one_node_leaves_it_to_those_for_whom_room_is_kept_back(used: int) -> None:
    """A reservation of it would keep out those who are to come, and would never end."""
    h = Harness(A_AND_B.replace("lend: {memory: 10}", "lend: {memory: 0}"))
    h.nodes("n", capacity=memory(60))
    h.submit("app-a", "root.a")
    h.submit("app-b", "root.b")
    if used:
        h.ask("first", application_id="app-a", resource=memory(used))
    h.run_until_idle()
    h.ask("of b", application_id="app-b", resource=memory(30), required_node="n")
    h.run_until_idle()
    if used:
        h.release("first", application_id="app-a")
        h.run_until_idle()
    waits = only_blocker(h, "of b", "app-b")
    h.ask("of a", application_id="app-a", resource=memory(40))
    h.run_until_idle()

    assert RefusalReason.QUEUE_QUOTA is waits.reason
    assert ("n", False) == (h.placements.get("of a"), "of b" in h.placements)


def test_cycles_end_where_the_rm_refuses_the_node_as_well() -> None:
    """No cycle reserves the node for the next one to give the reservation up."""
    predicates = FakePredicates(refused={("of b", "n"): "taint"})
    h = Harness(A_AND_B.replace("lend: {memory: 10}", "lend: {memory: 0}"), predicates=predicates)
    h.nodes("n", capacity=memory(60))
    h.submit("app-b", "root.b")
    h.ask("of b", application_id="app-b", resource=memory(30), required_node="n")
    outcomes = [h.cycle() for _ in range(3)]

    assert [CycleOutcome.NOTHING] * 3 == outcomes


def test_a_reload_that_lends_more_wakes_those_that_wait() -> None:
    """One that lends less again takes nothing back."""
    h = scene()
    h.reload(A_AND_B.replace("lend: {memory: 10}", "lend: {memory: 30}"))
    h.run_until_idle()
    assert "b2" in h.placements

    h.reload(A_AND_B)
    h.ask_and_run("a2", application_id="a", resource=memory(5))

    assert "a2" in h.placements
    assert -20 == room_of(h, "root.b")


def room_of(h: Harness, path: str) -> int:
    headroom = quota.headroom(h.queue(path))
    assert headroom is not None, "the nodes are a maximum"
    return headroom["memory"]


DYNAMIC: Final = """
- {name: b}
- name: users
  parent: true
  childtemplate: {resources: {guaranteed: {memory: 40}, lend: {memory: 10}}}
"""


def test_a_dynamic_queue_keeps_back_what_its_template_says_until_it_is_removed() -> None:
    """Then those wake that wait for what it kept back."""
    h = Harness(DYNAMIC, partition="placementrules: [{name: provided, create: true}]")
    h.submit("b", "root.b")
    h.nodes("node", capacity=memory(100))
    h.submit("ada", "root.users.ada")
    h.ask("b1", application_id="b", resource=memory(80))
    h.run_until_idle()
    assert {} == h.placements
    assert [("root.users.ada", 30)] == [
        (each.path, each.quantity) for each in only_blocker(h, "b1", "b").withheld
    ]

    h.withdraw("ada")
    h.advance(30)
    h.run_until_idle()

    assert ["b1"] == [*h.placements]


def test_a_claim_counts_as_use_of_what_is_kept_back() -> None:
    """What is held for an ask of the lender is not withheld once more."""
    h = scene()
    leaf = h.queue("root.a")
    for level in leaf.above:
        level.change_held(memory(10))
    quota.charge(leaf, memory(0))

    assert 20 == room_of(h, "root.b")
    for level in leaf.above:
        level.change_held(memory(-10))
    quota.release_charge(leaf, memory(0))
    h.validate()


PREEMPTING: Final = """
- name: p
  parent: true
  resources: {max: {memory: 100}}
  queues:
  - {name: a, resources: {guaranteed: {memory: 40}, lend: {memory: 10}}}
  - {name: b, resources: {guaranteed: {memory: 30}}, properties: {preemption.delay: 1s}}
  - {name: c}
- {name: other}
"""


def test_victims_are_taken_where_room_is_withheld() -> None:
    """The parent has no room, so what ends outside of it would not help: a victim below it ends."""
    h = Harness(PREEMPTING)
    h.nodes("node", capacity=memory(200))
    for name, path in (("b", "root.p.b"), ("c", "root.p.c"), ("other", "root.other")):
        h.submit(name, path)
    for name, keys in (("other", [f"o{n}" for n in range(8)]), ("c", [f"c{n}" for n in range(7)])):
        for key in keys:
            h.ask_and_run(key, application_id=name, resource=memory(10), preemption=True)
    h.ask("b1", application_id="b", resource=memory(10), preemption=True)
    h.run_until_idle()
    h.advance(2)
    h.run_until_idle()

    assert [("c0", TerminationType.PREEMPTED_BY_SCHEDULER)] == h.releases


GIVES: Final[dict[str, tuple[str, str, bool]]] = {
    "a queue that uses no more than it keeps back": ("p.a", "c", False),
    "a queue without the setting": ("c", "p.a", True),
    "a queue that is on the path itself": ("p.b", "p.a", True),
}


@pytest.mark.parametrize("case", GIVES.values(), ids=GIVES)
def test_what_ends_gives_others_room_unless_it_is_kept_back(case: tuple[str, str, bool]) -> None:
    """An ask with a required node has nothing ended that would not help it."""
    queue, leaf, gives = case
    tree = a_tree(BELOW)
    for path in ("p.a", "p.b", "c"):
        quota.charge(leaf_of(tree, path), memory(20))

    before = room(tree, leaf)
    assert gives is gives_room(leaf_of(tree, queue), memory(10), leaf_of(tree, leaf))
    quota.release_charge(leaf_of(tree, queue), memory(10))

    assert (10 if gives else 0) == room(tree, leaf) - before
