"""Gangs that are placed whole preempt for all of their members at once, or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pytest
from support.model.builders import TEN, FakePredicates, memory
from support.model.explained import ask_of
from support.model.preemption_scenes import Scene

from licorne.model.explanation.dry_run import prospects
from licorne.model.preemption.guarantee import decision
from licorne.model.state.claims import CLAIM_GRACE_NS
from licorne.model.values.messages import NodeAction, TerminationType

TWENTY = memory(20)
QUEUES = """
- {name: a, properties: {preemption.delay: 10s}, resources: {guaranteed: {memory: 50}}}
- {name: b}
"""
GRACE_S = CLAIM_GRACE_NS // 1_000_000_000
NODES = ("n1", "n2")


def a_scene(*nodes: str, capacity: int = 20, queues: str = QUEUES, **settings: Any) -> Scene:
    """Return nodes that are full of allocations of ten: `n1a`, `n1b` and so on, in `root.b`."""
    scene = Scene(queues, **settings)
    scene.nodes(*nodes, capacity=memory(capacity))
    for node in nodes:
        scene.runs(*[f"{node}{letter}" for letter in "abcdefgh"[: capacity // 10]], node=node)
    return scene


def gang(
    scene: Scene,
    sizes: Sequence[int],
    *,
    queue: str = "root.a",
    name: str = "g",
    may_preempt: bool = True,
    tags: Mapping[str, str] | None = None,
    **options: Any,
) -> None:
    """Have a gang whose members are called by its name and a number."""
    assert scene.submit(name, queue, tags={"gangSize": str(len(sizes)), **(tags or {})}) is None
    for number, size in enumerate(sizes, 1):
        scene.ask(
            f"{name}{number}", application_id=name, resource=memory(size), preemption=may_preempt, **options
        )


def members(scene: Scene, name: str = "g") -> dict[str, str]:
    """Return the nodes of the members that are placed."""
    return {key: node for key, node in scene.placements.items() if key.startswith(name)}


class Case(NamedTuple):
    """What runs, by node, what the members ask for, and what ends."""

    runs: Mapping[str, Sequence[int]]
    asked: Sequence[int]
    ends: Sequence[str]


CASES = {
    "one node": Case({"n1": [10, 10, 10]}, [10, 10], ["n1c", "n1b"]),
    "a node each": Case({"n1": [20], "n2": [20]}, [20, 20], ["n1a", "n2a"]),
    "one large allocation rather than two small ones": Case({"n1": [10, 10], "n2": [20]}, [10, 10], ["n2a"]),
    "no more than is needed": Case({"n1": [10, 10], "n2": [10, 10]}, [10, 10, 10], ["n2b", "n2a", "n1b"]),
    "two sizes": Case({"n1": [10, 10], "n2": [10, 10]}, [20, 10], ["n2b", "n2a", "n1b"]),
    "not all of them": Case({"n1": [10, 10], "n2": [10]}, [20, 20], []),
}


@pytest.mark.parametrize("exact_max", [10, 0], ids=["all sets", "one after the other"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_fewest_end_that_give_all_members_nodes_or_none(
    case: Case, exact_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both searches end as few; once all have ended the gang is placed whole."""
    monkeypatch.setattr(decision, "SETS_OF_MAX", exact_max)
    scene = Scene(QUEUES)
    for node, sizes in case.runs.items():
        scene.nodes(node, capacity=memory(sum(sizes)))
        for letter, size in zip("abc", sizes, strict=False):
            scene.runs(f"{node}{letter}", node=node, resource=memory(size))
    gang(scene, case.asked)
    scene.wait(11)
    assert len(case.ends) == len(scene.preempted)
    if exact_max:
        assert sorted(case.ends) == sorted(scene.preempted)
    for key in scene.preempted:
        assert not members(scene)
        scene.end(key)

    assert len(members(scene)) == (len(case.asked) if case.ends else 0)
    assert not scene.state.claims.by_key


def test_nothing_ends_for_a_gang_of_which_a_part_is_owed() -> None:
    """The queue has fifty of its guarantee left, and its gang asks for sixty."""
    scene = a_scene("n1", capacity=80)
    gang(scene, [30, 30])
    scene.wait(60)

    assert [] == scene.preempted


@pytest.mark.parametrize("exact_max", [10, 0], ids=["all sets", "one after the other"])
@pytest.mark.parametrize(("guaranteed", "runs"), [(40, "n1a n1b n2a n2b"), (30, "n1a n1b n2a")])
def test_a_gang_takes_back_what_a_sibling_has_borrowed_of_their_parent(
    guaranteed: int, runs: str, exact_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What ends there leaves the parent as it is with the gang; none ends that only the parent would need."""
    monkeypatch.setattr(decision, "SETS_OF_MAX", exact_max)
    scene = Scene(
        f"""
        - name: p
          resources: {{guaranteed: {{memory: {guaranteed}}}}}
          properties: {{preemption.delay: 10s}}
          queues: [{{name: a}}, {{name: b, resources: {{guaranteed: {{memory: 10}}}}}}]
        """
    )
    scene.nodes("n1", "n2", capacity=memory(20))
    for key in runs.split():
        scene.runs(key, queue="root.p.b", node=key[:2])
    gang(scene, [10, 10], queue="root.p.a")
    scene.wait(11)

    assert (2 if guaranteed == 40 else 0) == len(scene.preempted)


def test_a_gang_preempts_no_sooner_than_its_youngest_member_may() -> None:
    """And not if one of its members does not allow that."""
    scene = a_scene("n1", capacity=80)
    scene.submit("g", "root.a", tags={"gangSize": "2"})
    scene.ask("g1", application_id="g", preemption=True)
    scene.wait(9)
    scene.ask("g2", application_id="g", preemption=True)
    scene.wait(9)
    assert [] == scene.preempted
    scene.wait(2)
    assert 2 == len(scene.preempted)

    unwilling = a_scene("n1", capacity=80)
    unwilling.submit("g", "root.a", tags={"gangSize": "2"})
    unwilling.ask("g1", application_id="g", preemption=True)
    unwilling.ask("g2", application_id="g")
    unwilling.wait(60)
    assert [] == unwilling.preempted


def test_what_ends_is_held_on_all_nodes_until_the_last_victim_has_ended() -> None:
    """The job of the victims asks for it again, and so does another job of the gang's own queue."""
    scene = a_scene(*NODES)
    gang(scene, [20, 20])
    scene.wait(11)
    assert {"n1", "n2"} == {each.node_id for each in scene.state.reserved.all()}
    first, *others = scene.preempted
    scene.end(first, again=True)
    scene.asks("other", queue="root.a", priority=9, may_preempt=False)
    scene.wait(600)
    assert not {f"{first}'", "other", *members(scene)} & set(scene.placements)
    for key in others:
        scene.end(key, again=True)

    assert {"g1", "g2"} == set(members(scene))
    assert not {each.ask.allocation_key for each in scene.state.reserved.all()} & {"g1", "g2"}
    scene.wait(300)
    assert 4 == len(scene.preempted)


def test_a_queue_that_is_full_gets_back_what_the_whole_gang_needs() -> None:
    """The node has room for it."""
    scene = Scene("""
    - name: p
      resources: {max: {memory: 40}}
      queues:
      - {name: a, properties: {preemption.delay: 10s}, resources: {guaranteed: {memory: 20}}}
      - {name: b}
""")
    scene.nodes("n1", capacity=memory(100))
    scene.runs("v1", "v2", "v3", "v4", queue="root.p.b")
    gang(scene, [10, 10], queue="root.p.a")
    scene.wait(11)
    assert ["v4", "v3"] == scene.preempted
    scene.end("v4", "root.p.b", again=True)
    assert "v4'" not in scene.placements
    scene.end("v3", "root.p.b", again=True)

    assert {"g1": "n1", "g2": "n1"} == members(scene)


def test_a_gang_ends_lower_priorities_inside_of_its_queue() -> None:
    """As a single ask does; of its members the lowest priority counts."""
    queues = "- {name: a, properties: {preemption.delay: 10s, preemption.within: lower-priority}}"
    scene = Scene(queues)
    scene.nodes("n1", capacity=memory(30))
    scene.runs("v1", "v2", queue="root.a")
    scene.runs("v3", queue="root.a", priority=5)
    gang(scene, [10, 10], priority=5)
    scene.wait(11)

    assert {"v1", "v2"} == set(scene.preempted)


@pytest.mark.parametrize("what", ["member", "application"])
def test_what_ends_for_a_gang_that_is_withdrawn_is_for_all(what: str) -> None:
    """Its nodes are free again as well, and another ask takes over what still ends."""
    scene = a_scene(*NODES)
    gang(scene, [20, 20])
    scene.wait(11)
    scene.end(scene.preempted[0], again=True)
    if what == "member":
        scene.release("g2", application_id="g")
    else:
        scene.withdraw("g")
    scene.run_until_idle()
    assert not scene.state.claims.by_key
    assert f"{scene.preempted[0]}'" in scene.placements
    assert not len(scene.state.reserved)
    scene.asks("single", resource=TWENTY)
    scene.wait(11)
    assert 4 + 1 >= len(scene.preempted)
    for key in scene.preempted[1:]:
        if scene.application("root.b").allocations.get(key) is not None:
            scene.end(key)

    assert "single" in scene.placements


def test_other_members_begin_anew_with_what_ends_already() -> None:
    """An ask of a higher priority comes, and is one of the first two."""
    scene = a_scene(*NODES)
    gang(scene, [20, 20])
    scene.wait(11)
    scene.ask("g0", application_id="g", resource=TWENTY, preemption=True, priority=5)
    scene.wait(30)
    assert 4 == len(scene.preempted)
    for key in scene.preempted:
        scene.end(key)

    assert {"g0", "g1"} == set(members(scene))


def test_a_gang_whose_node_is_lost_keeps_no_room_once_its_victims_have_ended() -> None:
    """The reservation of its other node ends with the claim."""
    scene = a_scene(*NODES)
    gang(scene, [20, 20])
    scene.wait(11)
    scene.update_node("n2", NodeAction.DECOMISSION)
    for key in ("n1a", "n1b"):
        scene.end(key)
    scene.wait(1)

    assert not scene.state.claims.by_key
    assert not len(scene.state.reserved)


def test_a_claim_ends_where_the_rm_refuses_the_nodes_after_all() -> None:
    """Then the nodes are for others, and the gang tries again later."""
    predicates = FakePredicates()
    scene = a_scene(*NODES, predicates=predicates)
    gang(scene, [20, 20])
    scene.wait(11)
    assert 4 == len(scene.preempted)
    predicates.refused.update({("g1", node): "not after all" for node in NODES})
    again = {f"{key}'" for key in scene.preempted}
    for key in scene.preempted:
        scene.end(key, again=True)
    scene.wait(GRACE_S - 2)
    assert not again & set(scene.placements)
    scene.wait(3)

    assert again & set(scene.placements)


def test_a_claim_lasts_until_cycles_run() -> None:
    """None runs for longer than a claim lasts after its victims have ended: others get no node meanwhile."""
    scene = a_scene(*NODES)
    gang(scene, [20, 20])
    scene.wait(11)
    for key in scene.preempted:
        scene.release(key, application_id="root.b", termination=TerminationType.PREEMPTED_BY_SCHEDULER)
    scene.asks("urgent", queue="root.b", priority=9, may_preempt=False)
    scene.advance(GRACE_S + 1)
    scene.run_until_idle()

    assert {"g1", "g2"} == set(members(scene))
    assert "urgent" not in scene.placements


def test_an_ask_that_needs_a_node_goes_first_and_the_gang_gets_the_node_back() -> None:
    """The daemon is small enough for what is left beside the gang."""
    scene = a_scene(*NODES, capacity=30)
    gang(scene, [20, 20])
    scene.wait(11)
    chosen = scene.preempted
    scene.end(chosen[0])
    scene.submit("daemon", "root.b")
    scene.ask("d1", application_id="daemon", resource=TEN, required_node="n1")
    scene.wait(1)
    for key in chosen[1:]:
        if scene.application("root.b").allocations.get(key) is not None:
            scene.end(key)
    scene.wait(60)
    for key in scene.preempted:
        if scene.application("root.b").allocations.get(key) is not None:
            scene.end(key)
    scene.wait(60)

    assert "d1" in scene.placements
    assert {"g1", "g2"} == set(members(scene))


def test_two_gangs_of_one_queue_get_what_it_is_owed_once() -> None:
    """What the first has preempted for counts against the second."""
    scene = a_scene("n1", "n2", "n3", "n4")
    gang(scene, [20, 10])
    gang(scene, [20, 10], name="h")
    scene.wait(60)
    for key in list(scene.preempted):
        scene.end(key, again=True)
        scene.wait(60)

    assert 3 == len(scene.preempted)
    assert {"g1", "g2"} == set(members(scene))


def test_no_member_is_placed_by_itself_in_room_that_ends() -> None:
    """Room for one of them comes in each cycle, on a node that is reserved for it."""
    scene = a_scene(*NODES)
    gang(scene, [10, 10, 10])
    scene.wait(11)
    for key in scene.preempted[:-1]:
        scene.end(key)
        assert {} == members(scene)
    scene.end(scene.preempted[-1])

    assert 3 == len(members(scene))


def test_victims_of_protected_queues_are_waited_for() -> None:
    """The explanation says until when, as that of a single ask does."""
    scene = Scene("""
    - {name: a, properties: {preemption.delay: 1s}, resources: {guaranteed: {memory: 50}}}
    - {name: b, properties: {preemption.min-runtime: 60s}}
""")
    scene.nodes("n1", capacity=TWENTY)
    scene.runs("v1", "v2")
    gang(scene, [10, 10])
    scene.wait(50)
    assert [] == scene.preempted
    scene.wait(11)

    assert {"v1", "v2"} == set(scene.preempted)


def test_why_victims_of_a_gang_end_and_whom_it_waits_for() -> None:
    """Each member names all victims; no blocker says that preemption does not help."""
    scene = a_scene(*NODES)
    gang(scene, [20, 20])
    scene.wait(11)
    first, *victims = scene.record.explain()
    assert first == (
        "the gang of 2 of g asks at once for memory 40 in root.a: root.a uses nothing of a guarantee of "
        "memory 50, and neither its queues nor n1, n2 have room"
    )
    assert all("n1, n2 would not fit all of the gang without it" in line for line in victims)

    assert 4 == len(ask_of(scene, "g2", "g").ending)


def test_what_would_end_for_a_gang_is_one_prospect() -> None:
    """It is the decision of the cycle; a gang of which its queue is owed a part is told so."""
    scene = a_scene(*NODES)
    gang(scene, [20, 20])
    gang(scene, [30, 30], name="h")
    (prospect,) = prospects(scene.state, "g")
    (refused,) = prospects(scene.state, "h")
    scene.wait(11)

    assert prospect.record is not None
    assert scene.record.victims == prospect.record.victims
    assert "it asks for memory 60, and root.a has memory 50 left of its guarantee" in refused.why_not
