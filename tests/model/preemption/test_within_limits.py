"""Preemption inside of a leaf for asks that the limits of their user or group have no room for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pytest
from support.model.builders import an_ask_submission, memory
from support.model.explained import ask_of
from support.model.preemption_scenes import Scene

from licorne.model.explanation.dry_run import prospects
from licorne.model.preemption.guarantee.attempt_budget import NoPreemption
from licorne.model.values.allocation import RefusalReason

LIMITS: Final = """
    - name: a
      properties: {preemption.delay: 10s, preemption.within: lower-priority}
      limits:
        - {limit: "", users: [ann, bob, cid], maxresources: {memory: 20}}
        - {limit: "", groups: [dev], maxresources: {memory: 30}}
    - name: b
      limits:
        - {limit: "", users: [ann], maxresources: {memory: 20}}
"""
USERS: Final = {"ann": (), "bob": ("dev",), "cid": ("dev",), "eve": ()}


@dataclass(frozen=True)
class Row:
    """What a user runs: keys, each with its size, priority and node."""

    user: str
    keys: str
    priority: int = 0
    size: int = 10
    node: str = "n1"
    queue: str = "root.a"


@dataclass(frozen=True)
class Case:
    """What runs when an ask of ten and of priority 5 comes for ann, and what ends for it."""

    running: Sequence[Row]
    preempted: Sequence[str] = ()
    user: str = "ann"
    queues: str = LIMITS
    nodes: Mapping[str, int] = field(default_factory=lambda: {"n1": 100})


CASES: Final = {
    "the youngest of the user ends where the limit has no room, though the node has": Case(
        [Row("ann", "v1 v2")], ["v2"]
    ),
    "what others run stays, whatever its priority": Case([Row("ann", "v1 v2", 4), Row("bob", "w1")], ["v2"]),
    "nothing of an equal priority ends": Case([Row("ann", "v1 v2", 5), Row("bob", "w1")]),
    "what the user runs in other queues stays": Case(
        [Row("ann", "x1", queue="root.b"), Row("ann", "v1 v2")], ["v2"]
    ),
    "a limit with some room gets back what the ask takes": Case(
        [Row("ann", "v1 v2 v3", size=5)], ["v3", "v2"]
    ),
    "where a node has no room either, what ends is of the user": Case(
        [Row("ann", "v1 v2"), Row("eve", "w1")], ["v2"], nodes={"n1": 30}
    ),
    "a node without work of the user is of no use": Case(
        [Row("ann", "v1", 5), Row("ann", "v2"), Row("eve", "w1 w2", 4, node="n2")],
        ["v2"],
        nodes={"n1": 20, "n2": 20},
    ),
    "a maximum of the leaf that is reached gets back as much, from the user": Case(
        [Row("ann", "v1 v2"), Row("eve", "w1")],
        ["v2"],
        queues=LIMITS.replace("      limits:", "      resources: {max: {memory: 30}}\n      limits:", 1),
    ),
    "the limit of a group gets room from any of its users": Case(
        [Row("bob", "v1", 5), Row("cid", "w1 w2"), Row("eve", "x1")], ["w2"], user="bob"
    ),
    "limits of the user and the group both get room, from the user": Case(
        [Row("bob", "v1 v2"), Row("cid", "w1")], ["v2"], user="bob"
    ),
    "without the property nothing ends": Case(
        [Row("ann", "v1 v2")], queues=LIMITS.replace("lower-priority", "never")
    ),
    "a guarantee does not help who is at a limit": Case(
        [Row("ann", "v1 v2", 5), Row("eve", "x1 x2", queue="root.b")],
        queues=LIMITS.replace(
            "      limits:", "      resources: {guaranteed: {memory: 90}}\n      limits:", 1
        ),
        nodes={"n1": 40},
    ),
}


def submit(scene: Scene, user: str, queue: str) -> str:
    """Have one application of a user in a queue, and return its name."""
    name = f"{user} in {queue}"
    if name not in scene.state.entries:
        assert scene.submit(name, queue, user=user, groups=USERS[user]) is None
    return name


def ask_for(scene: Scene, user: str, key: str = "p", *, priority: int = 5) -> None:
    """Have an ask of ten in root.a that may preempt."""
    application = submit(scene, user, "root.a")
    asked = an_ask_submission(key, application, priority=priority, may_preempt=True)
    scene.partition.update_allocations([asked], [])
    scene.advance(milliseconds=10)


def a_scene(case: Case) -> Scene:
    """Have what a case says run, and its ask wait."""
    scene = Scene(case.queues)
    for name, size in case.nodes.items():
        scene.nodes(name, capacity=memory(size))
    for row in case.running:
        application = submit(scene, row.user, row.queue)
        for key in row.keys.split():
            placed = an_ask_submission(
                key,
                application,
                resource=memory(row.size),
                priority=row.priority,
                node_id=row.node,
                willing=True,
            )
            scene.partition.update_allocations([placed], [])
            scene.advance(milliseconds=10)
    ask_for(scene, case.user)
    return scene


def settle(scene: Scene) -> None:
    """Confirm the end of every victim, run what can, and let time pass; three times."""
    for _ in range(3):
        scene.settle()
        scene.wait(16)


def runs(scene: Scene, user: str, key: str = "p") -> bool:
    """Return whether something of a user in root.a runs."""
    return scene.application(f"{user} in root.a").allocations.get(key) is not None


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_who_is_at_a_limit_ends_work_that_counts_for_it(case: Case) -> None:
    """Of strictly lower priority, and no more than is needed; then the ask runs."""
    scene = a_scene(case)
    scene.wait(11)
    assert sorted(case.preempted) == sorted(scene.preempted)
    settle(scene)

    assert sorted(case.preempted) == sorted(scene.preempted)
    assert bool(case.preempted) == runs(scene, case.user)


def test_the_room_is_kept_from_other_asks_of_the_user() -> None:
    """The victim asks again with its lower priority, and an ask that came later with the same one."""
    scene = a_scene(Case([Row("ann", "v1 v2", 4)]))
    scene.wait(11)
    ask_for(scene, "ann", "q", priority=4)
    settle(scene)

    assert (["v2"], True, False) == (scene.preempted, runs(scene, "ann"), runs(scene, "ann", "q"))


def test_users_of_a_leaf_have_answers_of_their_own() -> None:
    """The failed attempt of one user holds for none of another, who may end something."""
    scene = a_scene(Case([Row("ann", "v1 v2", 5), Row("bob", "w1 w2")]))
    scene.wait(11)
    assert [] == scene.preempted
    ask_for(scene, "bob", "q")
    scene.wait(11)

    assert ["w2"] == scene.preempted


def test_explanations_name_the_limit_and_its_line() -> None:
    """Before it is decided, and after."""
    scene = a_scene(Case([Row("ann", "v1 v2")]))
    (prospect,) = prospects(scene.state, "ann in root.a")
    assert prospect.record is not None

    scene.wait(11)
    record = scene.record
    (victim,) = record.victims
    assert prospect.record.reason == record.reason
    assert record.reason.startswith("p of ann in root.a asks for memory 10 in root.a: it has priority 5, ")
    assert "and the limit of user ann in root.a (" in record.reason
    assert record.reason.endswith(") has no room")
    assert (
        "priority 0, it allows preemption; of user ann the willing go first, then the lowest priority, then "
        "the youngest, and user ann would have no room without it"
    ) == victim.reason


def test_without_lower_priorities_of_the_user_the_refusal_says_so() -> None:
    """It is noted on the ask, and said in a prospect."""
    scene = a_scene(Case([Row("ann", "v1 v2", 5), Row("bob", "w1")]))
    scene.wait(11)
    (prospect,) = prospects(scene.state, "ann in root.a")

    assert (NoPreemption.NO_LOWER_OF_HOLDER.text, None) == (prospect.why_not, prospect.record)
    assert NoPreemption.NO_LOWER_OF_HOLDER.text in scene.waits_with("p", "ann in root.a")


def test_an_ask_at_a_limit_sleeps_between_its_attempts() -> None:
    """Its application rests, and the leaf wakes when a minimum run time has passed."""
    scene = a_scene(
        Case(
            [Row("ann", "v1 v2")],
            queues=LIMITS.replace("{preemption.delay", "{preemption.min-runtime: 10m, preemption.delay"),
        )
    )
    scene.wait(11)
    blocker = ask_of(scene, "p", "ann in root.a").blockers[-1]
    assert (RefusalReason.PROTECTED, "root.a") == (blocker.reason, blocker.subject)
    assert blocker.until_ns is not None
    scene.wait(16)
    leaf = scene.queue("root.a")
    assert leaf.entries.sleep is not None
    assert scene.entry("ann in root.a").rests_for is not None
    assert blocker.until_ns == leaf.entries.sleep.until_ns

    scene.clock.advance_to(blocker.until_ns - 1)
    scene.run_until_idle()
    assert [] == scene.preempted
    scene.clock.advance_to(blocker.until_ns)
    scene.run_until_idle()
    assert ["v1"] == scene.preempted
