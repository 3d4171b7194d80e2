"""The arithmetic of guarantees on a disposable account."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.model.builders import a_queue_tree, a_resource, memory

from licorne.model.preemption.guarantee.ledger import (
    ProjectedUsage,
    QueueFacts,
    QueueFactsOf,
)
from licorne.model.queues.tree import QueueTree
from licorne.model.resources.resource import Resource

QUEUES = """
    - name: p
      resources: {guaranteed: {memory: 100, vcore: 10m}}
      queues:
      - {name: own, resources: {guaranteed: {memory: 40}}}
      - name: none
      - name: other
    - name: q
      resources: {guaranteed: {memory: 50}}
      queues:
      - {name: c, resources: {guaranteed: {memory: 20}}}
      - name: d
    - name: free
    - {name: pp, resources: {guaranteed: {memory: 1000, vcore: 1000m}}}
    - {name: b, resources: {guaranteed: {memory: 50, vcore: 5m}}}
    - name: r
      resources: {guaranteed: {memory: 50, vcore: 5m}}
      queues:
      - {name: x, resources: {guaranteed: {vcore: 4m}}}
      - name: y
      - {name: z, resources: {guaranteed: {vcore: 1m}}}
"""
ONE_EACH = a_resource(memory=1, vcore=1)


def both(memory: int, vcore: int) -> Resource:
    return a_resource(memory=memory, vcore=vcore)


THREE_SIBLINGS = {"x": both(5, 4), "y": a_resource(vcore=6), "z": a_resource(vcore=2)}


def a_tree(**used: Resource) -> QueueTree:
    """Return the queues with what leaves use: `a_tree(own=memory(10))`."""
    tree = a_queue_tree(QUEUES)
    for queue in tree:
        if queue.name in used:
            for level in queue.above:
                level.charge(used[queue.name])
    return tree


def facts(
    tree: QueueTree, ask_path: str, path: str, asked: Resource = ONE_EACH
) -> tuple[ProjectedUsage, QueueFacts]:
    """Return a fresh ledger for an ask in one leaf, and the facts of another queue."""
    ask_leaf, queue = tree.find(ask_path), tree.find(path)
    assert ask_leaf is not None
    assert queue is not None
    facts_of = QueueFactsOf(ask_leaf)
    return ProjectedUsage(facts_of(ask_leaf), asked), facts_of(queue)


def test_what_is_being_preempted_is_not_used() -> None:
    """It is as good as gone."""
    tree = a_tree(c=memory(30))
    queue = tree.find("root.q.c")
    assert queue is not None
    queue.change_preempting(memory(5))
    _, c = facts(tree, "root.free", "root.q.c")

    assert memory(25) == c.used


def test_facts_are_taken_once() -> None:
    """The same object stands for a queue wherever it is met."""
    leaf = a_tree().find("root.p.own")
    assert leaf is not None
    facts_of = QueueFactsOf(leaf)

    assert facts_of(leaf) is facts_of(leaf)
    assert leaf.parent is not None
    assert facts_of(leaf).parent is facts_of(leaf.parent)


@dataclass(frozen=True)
class Guarantee:
    """What leaves use, and what is owed to a leaf of some memory, vcores and gpus that are requested."""

    used: dict[str, Resource]
    ask_leaf: str
    owed: tuple[int | None, int | None, int | None]


GUARANTEES = {
    "nothing is owed without a guarantee, which is no guarantee of nothing": Guarantee(
        {"free": memory(10)}, "root.free", (None, None, None)
    ),
    "the nearest guarantee that names a type serves it, whatever those above have left": Guarantee(
        {"own": memory(10), "none": both(500, 2)}, "root.p.own", (30, 8, None)
    ),
    "a leaf without a guarantee shares that of its parent": Guarantee(
        {"own": memory(40)}, "root.p.none", (60, 10, None)
    ),
    "what is used above a guarantee is owed to others": Guarantee(
        {"c": memory(50), "d": memory(30)}, "root.q.d", (-30, None, None)
    ),
}


@pytest.mark.parametrize("case", GUARANTEES.values(), ids=GUARANTEES)
def test_what_is_owed(case: Guarantee) -> None:
    """Type by type."""
    asked = a_resource(memory=1, vcore=1, gpu=1)
    ledger, _ = facts(a_tree(**case.used), case.ask_leaf, case.ask_leaf, asked)

    assert case.owed == tuple(ledger.owed(name) for name in ("memory", "vcore", "gpu"))


def test_a_name_that_begins_like_another_is_not_above_it() -> None:
    """The recorded core takes root.p for an ancestor of root.pp."""
    _, p = facts(a_tree(none=memory(10)), "root.pp", "root.p")

    assert not p.above_ask


def test_a_ledger_moves_what_comes_and_goes_on_the_whole_way_up() -> None:
    """And leaves the facts as they are."""
    ledger, c = facts(a_tree(c=memory(30)), "root.free", "root.q.c")
    assert c.parent is not None
    ledger.take(c, memory(10))
    ledger.put(c, memory(3))

    assert [memory(23), memory(23)] == [ledger.used(c), ledger.used(c.parent)]
    assert memory(30) == c.used


@dataclass(frozen=True)
class Loss:
    """What leaves use; what of the types that are asked for a queue gives, may lose, and may not."""

    used: dict[str, Resource]
    queue: str
    asked: Resource
    gives: set[str]
    may_lose: list[Resource]
    may_not_lose: list[Resource]
    ask_leaf: str = "root.pp"


LOSSES = {
    "a leaf loses what is above its guarantee and no more": Loss(
        {"c": memory(30), "d": memory(30)}, "root.q.c", memory(1), {"memory"}, [memory(10)], [memory(11)]
    ),
    "a leaf loses what is above the guarantee of its parent and no more": Loss(
        {"d": memory(60)}, "root.q.d", memory(1), {"memory"}, [memory(10)], [memory(11)]
    ),
    "a type that no guarantee of the ask names entitles it to nothing": Loss(
        {"c": memory(80)}, "root.q.c", a_resource(gpu=1), set(), [], [a_resource(gpu=1)]
    ),
    "all that is used of a type that the guarantees of a leaf do not name is above them": Loss(
        {"c": both(10, 3)}, "root.q.c", a_resource(vcore=1), {"vcore"}, [both(10, 3)], [memory(1)]
    ),
    "a type that the ask is not entitled to is lost with another one while it is above a guarantee": Loss(
        {"b": both(60, 10)}, "root.b", ONE_EACH, {"memory"}, [both(10, 5)], [both(1, 6)], "root.q.c"
    ),
    "and not where no more of it is used than is guaranteed": Loss(
        {"b": both(60, 5)}, "root.b", ONE_EACH, {"memory"}, [memory(10)], [both(1, 1)], "root.q.c"
    ),
    "what both are owed by the same queue, neither gives to the other": Loss(
        {"none": memory(500)}, "root.p.none", memory(1), set(), [], [memory(1)], "root.p.other"
    ),
    "a leaf that is served by a queue of its own takes what others have of a common guarantee": Loss(
        {"none": memory(500)}, "root.p.none", memory(1), {"memory"}, [memory(500)], [], "root.p.own"
    ),
    "a leaf without a guarantee may lose everything": Loss(
        {"free": memory(10)}, "root.free", memory(1), {"memory"}, [memory(10)], []
    ),
    "a type within its guarantee gives nothing, and is lost with one that gives": Loss(
        {"b": both(10, 10)}, "root.b", ONE_EACH, {"vcore"}, [ONE_EACH, both(9, 5)], [memory(1)]
    ),
    "a type of which nothing or zero is asked for is not checked": Loss(
        {"b": both(60, 10)}, "root.b", both(0, 1), {"vcore"}, [both(60, 1)], []
    ),
    "a type that is asked for is checked": Loss(
        {"b": both(60, 10)}, "root.b", ONE_EACH, {"memory", "vcore"}, [both(10, 1)], [both(11, 1)]
    ),
    "what would fall from above a guarantee to below it stays, whatever else there is too much of": Loss(
        {"b": both(90, 7)}, "root.b", ONE_EACH, {"memory", "vcore"}, [both(1, 2)], [both(1, 3)]
    ),
    "a leaf within its own guarantee does not pay for the excess of a sibling": Loss(
        THREE_SIBLINGS, "root.r.x", ONE_EACH, set(), [], []
    ),
    "a leaf without a guarantee gives a type of which its parent has an excess": Loss(
        THREE_SIBLINGS, "root.r.y", ONE_EACH, {"vcore"}, [], []
    ),
    "a leaf gives a type of which it has an excess like its parent": Loss(
        THREE_SIBLINGS, "root.r.z", ONE_EACH, {"vcore"}, [], []
    ),
    "a leaf above its own guarantee keeps what its parent would lack": Loss(
        {"z": both(60, 4)}, "root.r.z", ONE_EACH, {"memory"}, [ONE_EACH], [a_resource(vcore=1)]
    ),
}


@pytest.mark.parametrize("case", LOSSES.values(), ids=LOSSES)
def test_what_a_queue_gives_and_may_lose(case: Loss) -> None:
    """For an ask of a leaf elsewhere, type by type."""
    ledger, queue = facts(a_tree(**case.used), case.ask_leaf, case.queue, case.asked)
    losses = case.may_lose + case.may_not_lose

    assert case.gives == ledger.gives(queue)
    assert case.may_lose == [lost for lost in losses if ledger.may_lose(queue, lost)]


def test_several_that_go_for_one_ask_do_not_pass_through_a_guarantee() -> None:
    """The first would bring the queue down to it, the second below it: together they are like one."""
    ledger, b = facts(a_tree(b=both(90, 6)), "root.pp", "root.b")
    ledger.take(b, ONE_EACH)

    assert not ledger.may_lose(b, ONE_EACH)
    assert ledger.may_lose(b, memory(1))


def test_an_ask_is_entitled_to_what_is_owed_of_each_type_that_is_served() -> None:
    """Nothing is owed without a guarantee; and one of memory alone is no licence for vcores alone."""
    tree = a_tree(own=both(10, 8))
    ledger, own = facts(tree, "root.p.own", "root.p.own")

    assert ledger.covers(both(30, 2))
    assert not ledger.covers(both(31, 0))
    assert not ledger.covers(both(1, 3))
    assert not facts(tree, "root.free", "root.free")[0].covers(ONE_EACH)
    assert not facts(tree, "root.q.c", "root.q.c", a_resource(vcore=1))[0].covers(a_resource(vcore=1))
    ledger.put(own, both(30, 2))
    assert ledger.is_entitled()
    ledger.put(own, memory(1))
    assert not ledger.is_entitled()


@settings(max_examples=60)
@given(
    used=st.integers(0, 60),
    losses=st.lists(st.integers(1, 20), max_size=6),
)
def test_losing_one_after_the_other_never_breaks_a_guarantee(used: int, losses: list[int]) -> None:
    """However the losses are chosen, as long as each may be lost when its turn comes."""
    ledger, c = facts(a_tree(c=memory(used), d=memory(40)), "root.pp", "root.q.c")
    for quantity in losses:
        if ledger.may_lose(c, memory(quantity)):
            ledger.take(c, memory(quantity))

    assert ledger.used(c).get("memory") >= min(used, 20)
