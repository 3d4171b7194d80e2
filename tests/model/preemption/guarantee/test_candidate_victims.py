"""Who may become a victim: the fence, and the pool inside it."""

from __future__ import annotations

from support.model.builders import TEN, a_resource, an_ask
from support.model.preemption_scenes import Scene

from licorne.model.preemption.guarantee.candidate_victims import collect_victims, fence_root
from licorne.model.preemption.guarantee.ledger import QueueFactsOf
from licorne.model.values.allocation import Ask

QUEUES = """
    - name: p
      properties: {preemption.policy: fence, priority.offset: "-5"}
      queues:
      - name: a
        properties: {priority.offset: "100"}
        resources: {guaranteed: {memory: 50}}
      - name: b
      - name: low
        properties: {priority.offset: "-7"}
    - name: q
      queues:
      - name: c
        resources: {guaranteed: {memory: 10}}
      - name: disabled
        properties: {preemption.policy: disabled}
      - name: fenced
        properties: {priority.policy: fence, priority.offset: "3"}
    - name: e
      resources: {guaranteed: {memory: 50}}
      properties: {preemption.delay: 10s}
"""


def a_scene(queues: str = QUEUES) -> Scene:
    scene = Scene(queues)
    scene.nodes("n1", capacity=a_resource(memory=1000, vcore=1000))
    return scene


def found(scene: Scene, queue: str, ask: Ask) -> list[str]:
    leaf = scene.queue(queue)
    return [victim.key for victim in collect_victims(leaf, ask, QueueFactsOf(leaf), {}).victims]


def root_of(scene: Scene, queue: str, ask: Ask | None = None) -> str:
    return fence_root(scene.queue(queue), ask or an_ask())[0].path


def test_without_a_fence_the_root_is_the_bound() -> None:
    """Every queue of the partition may have to give."""
    assert root_of(a_scene(), "root.e") == "root"


def test_a_fence_keeps_an_ask_inside() -> None:
    """Nothing outside gives."""
    scene = a_scene()
    scene.runs("inside", queue="root.p.b")
    scene.runs("outside", queue="root.q.c", resource=a_resource(memory=100))

    assert root_of(scene, "root.p.a") == "root.p"
    assert ["inside"] == found(scene, "root.p.a", an_ask())


def test_a_fence_does_not_protect_what_is_inside() -> None:
    """It binds the asks behind it, not those in front of it."""
    scene = a_scene()
    scene.runs("inside", queue="root.p.b")

    assert ["inside"] == found(scene, "root.e", an_ask())


def test_a_queue_without_room_is_the_bound() -> None:
    """What is outside it would not help: its own maximum is in the way."""
    scene = a_scene("""
        - name: p
          resources: {max: {memory: 20}}
          queues: [{name: a}, {name: b}]
        - name: o
    """)
    scene.runs("b1", "b2", queue="root.p.b")
    scene.runs("o1", queue="root.o")

    assert root_of(scene, "root.p.a") == "root.p"
    assert ["b2", "b1"] == found(scene, "root.p.a", an_ask())
    assert root_of(scene, "root.p.a", an_ask(resource=a_resource(vcore=1))) == "root"


def test_a_full_leaf_has_no_candidates() -> None:
    """Never from inside one leaf."""
    scene = a_scene("""
        - name: a
          resources: {max: {memory: 10}}
        - name: b
    """)
    scene.runs("a1", queue="root.a")
    scene.runs("b1", queue="root.b")

    assert [] == found(scene, "root.a", an_ask())


def test_the_own_leaf_never_gives() -> None:
    """Nor, therefore, the ask's own application."""
    scene = a_scene()
    scene.runs("own", queue="root.e", resource=a_resource(memory=100))

    assert [] == found(scene, "root.e", an_ask())


def test_a_leaf_within_its_guarantee_gives_nothing() -> None:
    """Above it all of its allocations are possible victims."""
    scene = a_scene()
    scene.runs("c1", queue="root.q.c")
    assert [] == found(scene, "root.e", an_ask())
    scene.runs("c2", queue="root.q.c")

    assert ["c2", "c1"] == found(scene, "root.e", an_ask())


def test_a_leaf_with_preemption_disabled_gives_nothing() -> None:
    """That is what the policy is for."""
    scene = a_scene()
    scene.runs("d1", queue="root.q.disabled")

    assert [] == found(scene, "root.e", an_ask())


def test_a_higher_priority_does_not_give() -> None:
    """An equal one does."""
    scene = a_scene()
    scene.runs("equal", queue="root.p.b", priority=5)
    scene.runs("higher", queue="root.p.b", priority=6)

    assert ["equal"] == found(scene, "root.e", an_ask())


def test_offsets_translate_priorities_on_the_way_down() -> None:
    """What counts as twelve in root.p.low counts as five in root.p, and as nothing at the root."""
    scene = a_scene()
    scene.runs("equal", queue="root.p.low", priority=12)
    scene.runs("higher", queue="root.p.low", priority=13)

    assert ["equal"] == found(scene, "root.e", an_ask())


def test_offsets_translate_priorities_on_the_way_up() -> None:
    """What an ask of root.p.a counts as: a hundred more there, five less than that at its parent."""
    root, priorities = fence_root(a_scene().queue("root.p.a"), an_ask(priority=1))

    assert root.path == "root.p"
    assert {"root.p.a": 101, "root.p": 96} == priorities


def test_a_priority_fence_on_the_way_up_hides_the_priority() -> None:
    """Outside, everything behind the fence has the priority of the fence."""
    _, priorities = fence_root(a_scene().queue("root.q.fenced"), an_ask(priority=50))

    assert {"root.q.fenced": 3, "root.q": 3, "root": 3} == priorities


def test_a_priority_fence_on_the_way_down_decides_for_all_behind_it() -> None:
    """If the fence's priority is no higher everything behind it may go, else nothing."""
    scene = a_scene()
    scene.runs("urgent", queue="root.q.fenced", priority=99)

    assert ["urgent"] == found(scene, "root.e", an_ask(priority=3))
    assert [] == found(scene, "root.e", an_ask(priority=2))


def test_what_shares_no_type_with_the_ask_is_no_victim() -> None:
    """Nor what is bound to a node, or on its way out."""
    scene = a_scene()
    scene.runs("vcore", queue="root.p.b", resource=a_resource(vcore=1))
    scene.runs("bound", queue="root.p.b", required_node="n1")
    scene.runs("going", "v1", queue="root.p.b")
    scene.application("root.p.b").allocations.mark_released("going")

    assert ["v1"] == found(scene, "root.e", an_ask(resource=TEN))


def test_the_pool_is_in_order_over_all_queues() -> None:
    """The willing first, the youngest of them before all."""
    scene = a_scene()
    scene.runs("old", queue="root.p.b")
    scene.runs("opted-out", queue="root.p.b", willing=False)
    scene.runs("c1", "young", queue="root.q.c", resource=a_resource(memory=20))

    assert ["young", "c1", "old", "opted-out"] == found(scene, "root.e", an_ask())
