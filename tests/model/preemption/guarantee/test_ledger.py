"""The arithmetic of guarantees on a disposable account."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from support.model.builders import a_queue_tree, a_resource

from licorne.model.preemption.guarantee.ledger import (
    ProjectedUsage,
    QueueFacts,
    QueueFactsOf,
    covers,
    is_within,
)
from licorne.model.queues.tree import QueueTree
from licorne.model.resources.resource import Resource

QUEUES = """
    - name: p
      resources: {guaranteed: {memory: 100, vcore: 10m}}
      queues:
      - name: own
        resources: {guaranteed: {memory: 40}}
      - name: none
    - name: q
      resources: {guaranteed: {memory: 50}}
      queues:
      - name: c
        resources: {guaranteed: {memory: 20}}
      - name: d
    - name: free
    - name: pp
"""


def memory(quantity: int) -> Resource:
    return a_resource(memory=quantity)


def a_tree(**used: int) -> QueueTree:
    """Return the queues with what leaves use: `a_tree(own=10)`."""
    tree = a_queue_tree(QUEUES)
    for queue in tree:
        if queue.name in used:
            for level in queue.above:
                level.charge(memory(used[queue.name]))
    return tree


def facts(tree: QueueTree, ask_path: str, path: str) -> tuple[ProjectedUsage, QueueFacts]:
    """Return a fresh ledger for an ask in one leaf, and the facts of another queue."""
    ask_leaf, queue = tree.find(ask_path), tree.find(path)
    assert ask_leaf is not None
    assert queue is not None
    facts_of = QueueFactsOf(ask_leaf)
    return ProjectedUsage(facts_of(ask_leaf)), facts_of(queue)


def remaining(tree: QueueTree, ask_path: str, path: str) -> Resource | None:
    ledger, queue = facts(tree, ask_path, path)
    return ledger.remaining(queue)


def test_what_is_being_preempted_is_not_used() -> None:
    """It is as good as gone."""
    tree = a_tree(c=30)
    queue = tree.find("root.q.c")
    assert queue is not None
    queue.change_preempting(memory(5))
    _, c = facts(tree, "root.free", "root.q.c")

    assert memory(25) == c.used


def test_facts_are_taken_once() -> None:
    """The same object stands for a queue wherever it is met."""
    tree = a_tree()
    leaf = tree.find("root.p.own")
    assert leaf is not None
    facts_of = QueueFactsOf(leaf)

    assert facts_of(leaf) is facts_of(leaf)
    assert leaf.parent is not None
    assert facts_of(leaf).parent is facts_of(leaf.parent)


def test_without_a_guarantee_on_the_way_up_nothing_remains() -> None:
    """No guarantee is not a guarantee of nothing."""
    assert remaining(a_tree(free=10), "root.free", "root.free") is None


def test_the_asks_leaf_stands_for_itself() -> None:
    """Its own guarantee counts, and those above are for what is below it."""
    assert memory(30) == remaining(a_tree(own=10, none=500), "root.p.own", "root.p.own")


def test_an_ask_leaf_without_a_guarantee_shares_that_of_its_parent() -> None:
    """With everybody below the parent."""
    assert a_resource(memory=60, vcore=10) == remaining(a_tree(own=40), "root.p.none", "root.p.none")


def test_another_leaf_is_bound_by_every_guarantee_above_it() -> None:
    """The least of each type counts."""
    assert memory(10) == remaining(a_tree(c=10, d=30), "root.free", "root.q.c")
    assert memory(-30) == remaining(a_tree(c=50, d=30), "root.free", "root.q.c")


def test_queues_above_an_ask_with_a_guarantee_bind_no_queue() -> None:
    """Its sibling is judged by its own guarantee alone, and has none."""
    assert remaining(a_tree(none=10), "root.p.own", "root.p.none") is None


def test_queues_above_an_ask_without_a_guarantee_bind_its_siblings() -> None:
    """They share the same guarantee: none may take it from the other."""
    assert a_resource(memory=90, vcore=10) == remaining(a_tree(own=10), "root.p.none", "root.p")


def test_a_name_that_begins_like_another_is_not_above_it() -> None:
    """The recorded core takes root.p for an ancestor of root.pp."""
    tree = a_tree(none=10)
    _, p = facts(tree, "root.pp", "root.p")

    assert not p.above_ask


def test_a_ledger_moves_what_comes_and_goes_on_the_whole_way_up() -> None:
    """And leaves the facts as they are."""
    ledger, c = facts(a_tree(c=30), "root.free", "root.q.c")
    assert c.parent is not None
    ledger.take(c, memory(10))
    ledger.put(c, memory(3))

    assert [memory(23), memory(23)] == [ledger.used(c), ledger.used(c.parent)]
    assert memory(30) == c.used


def test_a_leaf_above_its_guarantee_may_lose() -> None:
    """Down to the guarantee and not below it."""
    ledger, c = facts(a_tree(c=30, d=30), "root.free", "root.q.c")

    assert ledger.may_lose(c, memory(10), memory(1))
    assert not ledger.may_lose(c, memory(11), memory(1))


def test_a_leaf_may_not_lose_what_its_parent_is_guaranteed() -> None:
    """The parent uses sixty of a guarantee of fifty: ten may go, wherever they are."""
    ledger, d = facts(a_tree(d=60), "root.free", "root.q.d")

    assert ledger.may_lose(d, memory(10), memory(1))
    assert not ledger.may_lose(d, memory(11), memory(1))


def test_a_leaf_loses_nothing_for_a_type_that_it_has_no_excess_of() -> None:
    """What it uses above its guarantee is of no use to the ask."""
    ledger, c = facts(a_tree(c=80), "root.free", "root.q.c")

    assert not ledger.may_lose(c, memory(1), a_resource(gpu=1))


def test_a_leaf_without_a_guarantee_may_lose_everything() -> None:
    """Nothing protects it."""
    ledger, free = facts(a_tree(free=10), "root.p.own", "root.free")

    assert ledger.may_lose(free, memory(10), memory(1))


BY_TYPE = """
    - name: a
    - name: b
      resources: {guaranteed: {memory: 50, vcore: 5m}}
    - name: p
      resources: {guaranteed: {memory: 50, vcore: 5m}}
      queues:
      - name: x
        resources: {guaranteed: {vcore: 4m}}
      - name: y
      - name: z
        resources: {guaranteed: {vcore: 1m}}
"""
ONE_EACH = a_resource(memory=1, vcore=1)


def using(**used: Resource) -> QueueTree:
    """Return the queues above with what leaves use: `using(b=a_resource(memory=10, vcore=10))`."""
    tree = a_queue_tree(BY_TYPE)
    for queue in tree:
        if queue.name in used:
            for level in queue.above:
                level.charge(used[queue.name])
    return tree


def test_a_type_within_its_guarantee_gives_nothing_and_forbids_nothing() -> None:
    """Far above in vcores, far below in memory: what has vcores may go, and its memory with it."""
    ledger, b = facts(using(b=a_resource(memory=10, vcore=10)), "root.a", "root.b")

    assert {"vcore"} == ledger.gives(b, ONE_EACH)
    assert ledger.may_lose(b, ONE_EACH, ONE_EACH)
    assert ledger.may_lose(b, a_resource(memory=9, vcore=5), ONE_EACH)
    assert not ledger.may_lose(b, memory(1), ONE_EACH)


def test_a_type_that_is_not_asked_for_is_not_checked() -> None:
    """Neither its excess gives, nor its guarantee forbids; and zero of it asks for nothing."""
    ledger, b = facts(using(b=a_resource(memory=60, vcore=10)), "root.a", "root.b")
    asked = a_resource(memory=0, vcore=1)

    assert {"vcore"} == ledger.gives(b, asked)
    assert ledger.may_lose(b, a_resource(memory=60, vcore=1), asked)
    assert not ledger.may_lose(b, a_resource(memory=11, vcore=1), ONE_EACH)


def test_what_would_fall_from_above_a_guarantee_to_below_it_stays() -> None:
    """In a type that is asked for, whatever else there is too much of."""
    ledger, b = facts(using(b=a_resource(memory=90, vcore=7)), "root.a", "root.b")

    assert ledger.may_lose(b, a_resource(memory=1, vcore=2), ONE_EACH)
    assert not ledger.may_lose(b, a_resource(memory=1, vcore=3), ONE_EACH)


def test_several_that_go_for_one_ask_do_not_pass_through_a_guarantee() -> None:
    """The first would bring the queue down to it, the second below it: together they are like one."""
    ledger, b = facts(using(b=a_resource(memory=90, vcore=6)), "root.a", "root.b")
    ledger.take(b, ONE_EACH)

    assert not ledger.may_lose(b, ONE_EACH, ONE_EACH)
    assert ledger.may_lose(b, memory(1), ONE_EACH)


def test_a_type_gives_where_every_guarantee_of_it_is_exceeded() -> None:
    """The leaf's, and those above it: who is within its own does not pay for the excess of a sibling."""
    tree = using(x=a_resource(memory=5, vcore=4), y=a_resource(vcore=6), z=a_resource(vcore=2))
    for leaf, expected in (("x", set()), ("y", {"vcore"}), ("z", {"vcore"})):
        ledger, queue = facts(tree, "root.a", f"root.p.{leaf}")

        assert expected == ledger.gives(queue, ONE_EACH), leaf


def test_a_leaf_above_its_own_guarantee_keeps_what_its_parent_lacks() -> None:
    """The parent uses four of five vcores: what goes from below it would be missing there."""
    ledger, z = facts(using(z=a_resource(memory=60, vcore=4)), "root.a", "root.p.z")

    assert {"memory"} == ledger.gives(z, ONE_EACH)
    assert not ledger.may_lose(z, a_resource(vcore=1), ONE_EACH)
    assert ledger.may_lose(z, ONE_EACH, ONE_EACH)


def test_a_guarantee_covers_what_it_has_left_of_the_types_asked_for() -> None:
    """Nothing is covered without a guarantee, and nothing limits a type that it does not name."""
    left = a_resource(memory=-1, vcore=5)

    assert covers(left, a_resource(vcore=5, gpu=9), a_resource(vcore=1, gpu=1))
    assert covers(left, a_resource(memory=1, vcore=5), a_resource(memory=0, vcore=1))
    assert not covers(left, a_resource(vcore=6), a_resource(vcore=1))
    assert not covers(left, ONE_EACH, ONE_EACH)
    assert not covers(None, ONE_EACH, ONE_EACH)


def test_within_a_guarantee_means_within_every_type() -> None:
    """And a queue without one is within none."""
    assert is_within(memory(0))
    assert not is_within(a_resource(memory=1, vcore=-1))
    assert not is_within(None)


@settings(deadline=None, max_examples=60)
@given(
    used=st.integers(0, 60),
    losses=st.lists(st.integers(1, 20), max_size=6),
)
def test_losing_one_after_the_other_never_breaks_a_guarantee(used: int, losses: list[int]) -> None:
    """However the losses are chosen, as long as each may be lost when its turn comes."""
    ledger, c = facts(a_tree(c=used, d=40), "root.free", "root.q.c")
    for quantity in losses:
        if ledger.may_lose(c, memory(quantity), memory(1)):
            ledger.take(c, memory(quantity))

    assert ledger.used(c).get("memory") >= min(used, 20)
