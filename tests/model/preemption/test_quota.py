"""Enforcing a maximum that was lowered."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.model.builders import TEN, a_resource, memory
from support.model.preemption_scenes import Running, Scene

from licorne.model.preemption.quota import over_maximum, shared_out
from licorne.model.queues.quota import quota_settings, quotas_changed
from licorne.model.resources.resource import Resource
from licorne.model.state.preemption_log import PreemptionCause
from licorne.model.values.messages import TerminationType

ONE_EACH = a_resource(memory=1, vcore=1)
ON = "preemption: {quotapreemptionenabled: true}"
QUEUES = """
    - name: p
      properties: {quota.preemption.delay: 10s}
      resources: {max: {memory: 200}}
      queues:
      - name: x
        resources: {guaranteed: {memory: 40}}
      - name: y
"""


def both(memory: int, vcore: int) -> Resource:
    return a_resource(memory=memory, vcore=vcore)


def a_scene(queues: str = QUEUES, *, partition: str = ON) -> Scene:
    scene = Scene(queues, partition=partition)
    scene.nodes("n1", capacity=a_resource(memory=1000, vcore=1000))
    return scene


def lower(scene: Scene, path: str, maximum: Resource) -> None:
    """Lower the maximum of a queue, as a configuration does."""
    before = quota_settings(scene.state.tree)
    queue = scene.queue(path)
    queue.set_quota(queue.guaranteed, maximum)
    scene.state.tree.limits_changed()
    quotas_changed(scene.state.tree, before, scene.clock.now_ns())


def wait(scene: Scene, seconds: int) -> None:
    for _ in range(seconds):
        scene.advance(1)
        scene.partition.preempt_over_quota()
        scene.validate()


def test_what_is_above_a_lowered_maximum_is_preempted_once_after_the_delay() -> None:
    """Not before, never more than is above it, and once for a change: what is left above it stays."""
    scene = a_scene()
    scene.runs("v1", "v2", "v3", "v4", queue="root.p.y")
    lower(scene, "root.p", memory(25))
    wait(scene, 9)
    assert [] == scene.preempted
    wait(scene, 1)
    assert ["v4"] == scene.preempted
    wait(scene, 50)
    scene.confirm()
    wait(scene, 60)

    assert ["v4"] == scene.preempted


def test_a_partition_enforces_nothing_unless_it_is_configured_to() -> None:
    """The switch is off by default."""
    scene = a_scene(partition="")
    scene.runs("v1", "v2", queue="root.p.y")
    lower(scene, "root.p", TEN)
    wait(scene, 60)

    assert [] == scene.preempted


def test_a_queue_that_is_within_its_maximum_in_time_loses_nothing() -> None:
    """Its work ended by itself; the next change has a delay of its own."""
    scene = a_scene()
    scene.runs("v1", "v2", queue="root.p.y")
    lower(scene, "root.p", TEN)
    wait(scene, 5)
    scene.release("v1", application_id="root.p.y")
    wait(scene, 10)

    assert [] == scene.preempted
    assert scene.queue("root.p").quota_preemption_due_ns is None


def test_a_queue_that_exceeds_its_maximum_again_has_the_whole_delay_again() -> None:
    """In between it was within it: the time was off."""
    scene = a_scene()
    scene.runs("v1", "v2", "v3", "v4", queue="root.p.y")
    lower(scene, "root.p", memory(20))
    wait(scene, 5)
    scene.release("v3", "v4", application_id="root.p.y")
    wait(scene, 1)
    scene.runs("v5", queue="root.p.y")
    wait(scene, 9)
    assert [] == scene.preempted
    wait(scene, 1)

    assert ["v5"] == scene.preempted


def test_the_willing_and_the_youngest_go_first_and_originators_last() -> None:
    """The order of the design; the recorded core has it the other way round."""
    scene = a_scene()
    scene.runs("originator", queue="root.p.y", originator=True)
    scene.runs("opted-out", queue="root.p.y", willing=False)
    scene.runs("old", queue="root.p.y")
    scene.advance(3600)
    scene.runs("young", queue="root.p.y")
    gone = []
    for limit in (30, 20, 10, 1):
        lower(scene, "root.p", memory(limit))
        wait(scene, 10)
        scene.confirm()
        gone = scene.preempted

    assert ["young", "old", "opted-out"] == gone


@dataclass(frozen=True)
class Lowered:
    """What runs, the maximum to which a queue is lowered, and what is preempted for that, in order."""

    running: list[Running]
    maximum: Resource
    preempted: list[str]
    queues: str = QUEUES
    path: str = "root.p"


LOWERED = {
    # The other child gives what it can.
    "nothing that is guaranteed, only what is above it": Lowered(
        [Running("x0 x1 x2 x3 x4", "root.p.x"), Running("y0 y1 y2 y3 y4", "root.p.y")],
        memory(40),
        ["x4", "y4", "y3", "y2", "y1", "y0"],
    ),
    # Ten tasks use ten of fifty guaranteed memory; of their ten vcores four are above the maximum.
    "what is above the maximum in one type, although the other one is within its guarantee": Lowered(
        [Running("v0 v1 v2 v3 v4 v5 v6 v7 v8 v9", "root.p", resource=ONE_EACH)],
        a_resource(vcore=6),
        ["v9", "v8", "v7", "v6"],
        """
        - name: p
          properties: {quota.preemption.delay: 10s}
          resources: {guaranteed: {memory: 50}, max: {vcore: 100m}}
        """,
    ),
    # Both types are above the maximum. The parent is guaranteed the memory, so what has some stays.
    "a type above its maximum as far as it is above the guarantees": Lowered(
        [
            Running("vcores", "root.q.p", resource=a_resource(vcore=1)),
            Running("both too", "root.q.p", resource=a_resource(memory=10, vcore=1)),
        ],
        ONE_EACH,
        ["vcores"],
        """
        - name: q
          resources: {guaranteed: {memory: 50}}
          queues:
          - name: p
            properties: {quota.preemption.delay: 10s}
            resources: {max: {memory: 100, vcore: 100m}}
        """,
        "root.q.p",
    ),
    # Shares of a half each are rounded down to nothing.
    "what is left over by rounding, from one leaf after the other": Lowered(
        [
            Running("x0 x1", "root.p.x", resource=a_resource(vcore=1)),
            Running("y0 y1", "root.p.y", resource=a_resource(vcore=1)),
        ],
        a_resource(vcore=3),
        ["x1"],
        """
        - name: p
          properties: {quota.preemption.delay: 10s}
          resources: {max: {vcore: 100m}}
          queues: [{name: x}, {name: y}]
        """,
    ),
    # One vcore is above the maximum: of that x has to give none, since its share is rounded down.
    "no more of a type than is above its maximum": Lowered(
        [
            Running("memory", "root.p.x", resource=memory(3)),
            Running("both", "root.p.x", resource=both(3, 3)),
            Running("y0 y1 y2 y3", "root.p.y", resource=a_resource(vcore=1)),
        ],
        both(3, 6),
        ["memory", "y3"],
        """
        - name: p
          properties: {quota.preemption.delay: 10s}
          resources: {max: {memory: 100, vcore: 100m}}
          queues: [{name: x}, {name: y}]
        """,
    ),
    # Each leaf by its share of what is above the guarantees of that type.
    "a type in leaves that are short of another one": Lowered(
        [
            Running("x0 x1 x2 x3 x4 x5", "root.p.x", resource=ONE_EACH),
            Running("y0 y1 y2 y3", "root.p.y", resource=ONE_EACH),
        ],
        a_resource(vcore=6),
        ["x5", "x4", "y3", "y2"],
        """
        - name: p
          properties: {quota.preemption.delay: 10s}
          resources: {max: {vcore: 100m}}
          queues:
          - {name: x, resources: {guaranteed: {memory: 40, vcore: 2m}}}
          - {name: y, resources: {guaranteed: {memory: 50}}}
        """,
    ),
}


@pytest.mark.parametrize("case", LOWERED.values(), ids=LOWERED)
def test_a_lowered_maximum_preempts(case: Lowered) -> None:
    """Type by type, within the guarantees."""
    scene = a_scene(case.queues)
    scene.start(case.running)
    lower(scene, case.path, case.maximum)
    wait(scene, 10)

    assert case.preempted == scene.preempted


@pytest.mark.parametrize(
    ("used", "back", "shares"),
    [
        # Ten and thirty-eight are above the guarantees: five and twenty-two of twenty-eight, rounded down.
        pytest.param({"x": 50, "y": 38}, 28, {"x": 5, "y": 22}, id="by what is above the guarantees"),
        # The recorded core counts less than the guarantee as an excess.
        pytest.param({"x": 10, "y": 30}, 20, {"y": 20}, id="by nothing of what is below a guarantee"),
    ],
)
def test_what_a_parent_has_to_give_is_shared_out(
    used: dict[str, int], back: int, shares: dict[str, int]
) -> None:
    """Among the leaves below it."""
    scene = a_scene()
    for leaf, quantity in used.items():
        scene.runs(f"{leaf}1", queue=f"root.p.{leaf}", resource=memory(quantity))
    found = shared_out(scene.queue("root.p"), memory(back))

    assert {f"root.p.{leaf}": memory(share) for leaf, share in shares.items()} == {
        leaf.path: share for leaf, share in found
    }


def test_what_is_being_preempted_is_as_good_as_gone() -> None:
    """It is not asked for twice."""
    scene = a_scene()
    scene.runs("y1", "y2", "y3", queue="root.p.y")
    scene.queue("root.p").set_quota(None, TEN)
    scene.queue("root.p").change_preempting(TEN)

    assert memory(10) == over_maximum(scene.queue("root.p"))


def test_a_queue_that_is_enforced_leaves_those_below_for_the_next_second() -> None:
    """So that nothing is taken twice for two maxima."""
    scene = a_scene("""
        - name: p
          properties: {quota.preemption.delay: 10s}
          resources: {max: {memory: 100}}
          queues:
          - name: y
            resources: {max: {memory: 100}}
    """)
    scene.runs("y1", "y2", "y3", queue="root.p.y")
    lower(scene, "root.p", memory(20))
    lower(scene, "root.p.y", TEN)
    wait(scene, 10)
    assert ["y3"] == scene.preempted
    wait(scene, 1)

    assert ["y3", "y2"] == scene.preempted


def test_the_rm_gets_a_message_for_each_application() -> None:
    """One message each, with the leaf in its text."""
    scene = a_scene()
    scene.runs("x1", queue="root.p.x", resource=memory(60))
    scene.runs("y1", "y2", queue="root.p.y")
    lower(scene, "root.p", memory(40))
    wait(scene, 10)
    messages = scene.preemption_messages

    assert [["preempting allocations to enforce new max quota for queue : root.p.y"] * 2] == [
        [release.message for release in message] for message in messages
    ]
    assert all(
        release.termination is TerminationType.PREEMPTED_BY_SCHEDULER
        for message in messages
        for release in message
    )


def test_an_enforced_maximum_is_explained() -> None:
    """The record names the queue, its maximum, and each victim with the reason."""
    scene = a_scene()
    scene.runs("y1", "y2", queue="root.p.y")
    lower(scene, "root.p", TEN)
    wait(scene, 10)
    record = scene.record

    assert (PreemptionCause.QUOTA, "root.p", "") == (record.cause, record.queue_path, record.allocation_key)
    assert (TEN, "", "") == (record.wanted, record.ask_queue_path, record.node_id)
    assert record.reason == (
        "root.p uses memory 20, more than its maximum of memory 10, and is to give back memory 10"
    )
    assert record.victims[0].reason == (
        "priority 0, it allows preemption; next in the order of root.p.y, "
        "and no more than the memory 10 that it has to give back"
    )


@settings(max_examples=40)
@given(
    sizes=st.lists(st.tuples(st.sampled_from(("x", "y")), st.integers(1, 20)), min_size=1, max_size=12),
    maximum=st.integers(1, 60),
)
def test_no_more_goes_than_is_above_maximum_and_guarantees(
    sizes: list[tuple[str, int]], maximum: int
) -> None:
    """The queue does not fall below its maximum, and none of them below its guarantee."""
    scene = a_scene()
    for number, (leaf, size) in enumerate(sizes):
        scene.runs(f"v{number}", queue=f"root.p.{leaf}", resource=memory(size))
    before = {queue.path: queue.allocated.get("memory") for queue in scene.state.tree}
    lower(scene, "root.p", memory(maximum))
    wait(scene, 10)
    scene.confirm()
    after = {queue.path: queue.allocated.get("memory") for queue in scene.state.tree}

    assert after["root.p"] >= min(before["root.p"], maximum)
    assert after["root.p.x"] >= min(before["root.p.x"], 40)
