"""Applications that found no room rest: no decision changes, and a walk costs the same whatever waits."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

import pytest
from support.model.builders import TEN, FakePredicates, a_resource
from support.model.entries import a_leaf, an_entry
from support.model.harness import Harness

from licorne.model.queues.application_entry import ApplicationEntry
from licorne.model.queues.waiting import RestKind, WaitingApplications
from licorne.model.scheduling import cycle, leaf_visit, resting
from licorne.model.scheduling.timer_actions import next_retry_ns
from licorne.model.state.partition_state import PartitionState
from licorne.model.values.messages import AllocationPlaced, Announcement, NodeAction

QUEUES = """
    - {name: fifo, resources: {max: {memory: 60}}}
    - name: tight
      parent: true
      resources: {max: {memory: 20}}
      queues: [{name: one}, {name: two, resources: {max: {memory: 13}}}]
    - name: fair
      properties: {application.sort.policy: fair}
      limits: [{users: [eve], maxresources: {memory: 15}}]
    - name: few
      maxapplications: 3
      limits: [{users: [eve], maxapplications: 1, maxresources: {memory: 30}}]
    - name: owed
      resources: {guaranteed: {memory: 30}}
      properties: {preemption.delay: 4s}
      limits: [{groups: [dev], maxresources: {memory: 12}}, {users: [eve], maxapplications: 2}]
"""
NODES = ("n0", "n1", "n2")
STEPS = 60


def lived(seed: int, *, reservations_on: bool) -> list[object]:
    """Return what an RM hears while applications of some asks come, wait, change and go."""
    rng = random.Random(seed)  # noqa: S311 - a reproducible draw
    h = Harness(QUEUES, reservations_on=reservations_on)
    for name in NODES:
        h.nodes(name, capacity=a_resource(memory=rng.randint(10, 30)))
    steps: list[Callable[[int], object]] = [
        lambda step: arrives(h, rng, step),
        lambda step: arrives(h, rng, step),
        lambda _: ends(h, rng),
        lambda _: h.confirm(),
        lambda _: h.advance(seconds=rng.choice([1, 2, 3, 31])),
        lambda _: node_changes(h, rng),
        lambda _: ask_changes(h, rng),
        lambda _: foreign_comes(h, rng),
        lambda _: h.reload(QUEUES.replace("60", str(rng.choice([20, 60, 90])))),
    ]
    for step in range(STEPS):
        rng.choice(steps)(step)
        h.run_until_idle()
    return [told(entry) for entry in h.announcements] + [h.state.reservations]


def told(announcement: Announcement) -> object:
    """Return an announcement as a value: allocations have none of their own."""
    if not isinstance(announcement, AllocationPlaced):
        return announcement
    allocation = announcement.allocation
    return (allocation.ask.allocation_key, allocation.node_id, allocation.bound_at_ns)


def arrives(h: Harness, rng: random.Random, step: int) -> None:
    name = f"app{step}"
    queue = rng.choice(["fifo", "fair", "few", "tight.one", "tight.two", "owed", "owed"])
    user, groups = rng.choice(["bob", "eve"]), rng.choice([("dev",), ("ops",)])
    if h.submit(name, f"root.{queue}", user=user, groups=groups) is None:
        for number in range(rng.choice([1, 1, 1, 2, 3])):
            size = a_resource(memory=rng.choice([5, 9, 12, 28]))
            priority, preemption = rng.choice([0, 0, 1]), rng.random() < 0.8
            h.ask(
                f"{name}-{number}",
                application_id=name,
                resource=size,
                priority=priority,
                preemption=preemption,
            )


def ask_changes(h: Harness, rng: random.Random) -> None:
    """Give an ask that waits another size, or have the RM place it by itself."""
    waiting = [
        (name, record.ask.allocation_key)
        for name, entry in h.state.entries.items()
        for record in entry.application.asks.waiting()
    ]
    if waiting:
        name, key = rng.choice(waiting)
        size = a_resource(memory=rng.choice([5, 9, 12]))
        h.ask(key, application_id=name, resource=size, node_id=rng.choice(["", "", NODES[0]]))


def foreign_comes(h: Harness, rng: random.Random) -> None:
    size = a_resource(memory=rng.choice([0, 3, 10]))
    h.ask("foreign", application_id="", node_id=NODES[1], resource=size, tags={"foreign": "default"})


def ends(h: Harness, rng: random.Random) -> None:
    entries = list(h.state.entries.values())
    if entries:
        h.release("", application_id=rng.choice(entries).application_id)


def node_changes(h: Harness, rng: random.Random) -> None:
    name, memory = rng.choice(NODES), a_resource(memory=rng.randint(10, 40))
    action = rng.choice([NodeAction.DRAIN_NODE, NodeAction.DRAIN_TO_SCHEDULABLE, NodeAction.UPDATE])
    h.update_node(name, action, memory if action is NodeAction.UPDATE else None)


@pytest.mark.parametrize("reservations_on", [True, False])
@pytest.mark.parametrize("seed", range(12))
def test_applications_that_rest_are_placed_as_if_each_were_tried_each_time(
    seed: int, monkeypatch: pytest.MonkeyPatch, *, reservations_on: bool
) -> None:
    """Compared with the same scheduler where none rests and each leaf is visited."""
    rested = lived(seed, reservations_on=reservations_on)
    monkeypatch.setattr(WaitingApplications, "rest", lambda *_: None)
    monkeypatch.setattr(cycle, "may_skip", lambda *_: False)

    assert lived(seed, reservations_on=reservations_on) == rested


def note_visits(patched: pytest.MonkeyPatch) -> list[str]:
    """Return a list that gets each application that is tried."""
    tried: list[str] = []
    visit = leaf_visit.visit_application

    def noted(visit_of_leaf: Any, entry: ApplicationEntry, *rest: Any) -> bool | None:
        tried.append(entry.application_id)
        return visit(visit_of_leaf, entry, *rest)

    patched.setattr(leaf_visit, "visit_application", noted)
    return tried


def visits_for_one_more(h: Harness, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how many applications are tried for one that fits, and is placed."""
    with monkeypatch.context() as patched:
        tried = note_visits(patched)
        h.submit("fits")
        h.ask_and_run("fits", application_id="fits", resource=a_resource(memory=1))
    assert "fits" in h.placements
    return len(tried)


def visits_of_one_submission(
    waiting: int,
    monkeypatch: pytest.MonkeyPatch,
    *,
    queue_maximum: int = 100,
    asks: int = 1,
    predicates: FakePredicates | None = None,
) -> int:
    """Return how many applications are tried for one that fits, while others wait for room."""
    h = Harness(f"- {{name: leaf, resources: {{max: {{memory: {queue_maximum}}}}}}}", predicates=predicates)
    h.nodes("n1", "n2", capacity=a_resource(memory=10))
    for number in range(waiting):
        h.submit(f"w{number}")
        for each in range(asks):
            size = a_resource(memory=11 + (number + each) % 3)
            h.ask(f"w{number}-{each}", application_id=f"w{number}", resource=size)
    h.run_until_idle()
    return visits_for_one_more(h, monkeypatch)


@pytest.mark.parametrize(
    ("queue_maximum", "asks", "predicates"),
    [(100, 1, None), (9, 1, None), (100, 3, None), (9, 3, None), (100, 1, FakePredicates())],
    ids=[
        "no node",
        "quota",
        "no node, three asks each",
        "quota, three asks each",
        "nodes that the RM judges",
    ],
)
def test_a_submission_costs_the_same_whatever_waits(
    queue_maximum: int, asks: int, predicates: FakePredicates | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted in applications that are tried; the RM is not asked about what has room nowhere."""
    few, many = (
        visits_of_one_submission(
            waiting, monkeypatch, queue_maximum=queue_maximum, asks=asks, predicates=predicates
        )
        for waiting in (10, 60)
    )

    assert few == many <= 2


HELD = """
    - name: leaf
      limits: [{users: [room], maxresources: {memory: 1}}, {users: [count], maxapplications: 1}]
    - {name: full, maxapplications: 1}
"""


def held_tries(waiting: int, user: str, queue: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how many applications are asked whether they may run, or tried, when one ends and one comes."""
    h = Harness(HELD)
    h.nodes("n1", capacity=a_resource(memory=1_000))
    h.submit("other")
    h.submit("runs", queue, user=user)
    h.ask("runs", application_id="runs", resource=a_resource(memory=1))
    for number in range(waiting):
        h.submit(f"w{number:02}", queue, user=user)
        h.ask(f"w{number:02}", application_id=f"w{number:02}", resource=a_resource(memory=1))
    h.run_until_idle()
    tried = note_visits(monkeypatch)
    may_run = resting.may_run

    def asked(state: PartitionState, entry: ApplicationEntry) -> tuple[bool, bool]:
        tried.append(entry.application_id)
        return may_run(state, entry)

    monkeypatch.setattr(leaf_visit, "may_run", asked)
    h.ask_and_run("fits", application_id="other", resource=a_resource(memory=1))
    h.release("", application_id="runs")
    h.run_until_idle()
    assert ["runs", "fits", "w00"] == [*h.placements]
    return len(tried)


@pytest.mark.parametrize(
    ("user", "queue"),
    [("room", "root.leaf"), ("count", "root.leaf"), ("bob", "root.full")],
    ids=["room of a user", "applications of a user", "applications of a queue"],
)
def test_what_a_limit_holds_rests_until_the_limit_lets_one_more_have_something(
    user: str, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one gets it, whatever else waits for it."""
    few, many = (held_tries(waiting, user, queue, monkeypatch) for waiting in (10, 60))

    assert few == many


def test_a_group_that_has_room_again_wakes_what_counts_against_it() -> None:
    """An application of the same user that goes first counts against another group, which has none."""
    h = Harness("- {name: leaf, limits: [{groups: [dev, ops], maxresources: {memory: 2}}]}")
    h.nodes("n1", capacity=a_resource(memory=10))
    for name, groups, memory in [
        ("dev runs", ("dev",), 2),
        ("ops runs", ("ops",), 2),
        ("dev waits", ("dev",), 1),
        ("ops waits", ("ops",), 1),
    ]:
        h.submit(name, groups=groups)
        h.ask_and_run(name, application_id=name, resource=a_resource(memory=memory))

    h.release("", application_id="ops runs")
    h.run_until_idle()

    assert ["dev runs", "ops runs", "ops waits"] == [*h.placements]


OWED = "- {name: leaf, resources: {guaranteed: {memory: 99}}, properties: {preemption.delay: 1s}}"


def owed_tries(waiting: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how many applications are tried for one that fits, while others may preempt and cannot."""
    h = Harness(OWED)
    h.nodes("n1", capacity=a_resource(memory=10))
    for number in range(waiting):
        h.submit(f"w{number}")
        size = a_resource(memory=11 + number % 3)
        h.ask(f"w{number}", application_id=f"w{number}", resource=size, preemption=True)
    for _ in range(4):
        h.run_until_idle()
        h.advance(2)
    h.run_until_idle()
    return visits_for_one_more(h, monkeypatch)


def test_a_submission_costs_the_same_whatever_may_preempt(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed attempt for one application holds for all of its size and priority."""
    few, many = (owed_tries(waiting, monkeypatch) for waiting in (12, 60))

    assert few == many


def test_what_rests_may_preempt_once_its_queue_has_a_guarantee() -> None:
    """The tags of an application that comes later bring the guarantee."""
    tags = {"namespace.resourceguaranteed": '{"resources": {"memory": {"value": 10}}}'}
    h = Harness("- name: other", partition="placementrules: [{name: provided, create: true}]")
    h.nodes("n1", capacity=a_resource(memory=10))
    h.submit("victim", "root.other")
    h.ask_and_run("victim", application_id="victim", resource=TEN, preemption=True)
    h.submit("waits", "root.dynamic")
    h.ask_and_run("waits", application_id="waits", resource=TEN, preemption=True)
    h.advance(40)
    h.run_until_idle()
    assert not h.releases

    h.submit("later", "root.dynamic", tags=tags)
    h.run_until_idle()

    assert [key for key, _ in h.releases] == ["victim"]


def test_what_the_rm_refuses_to_one_application_is_tried_for_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both wait for room of one size; the node that gets room is judged for each by itself."""
    h = Harness(predicates=FakePredicates(refused={("first", "n1"): "no"}))
    h.nodes("n1", capacity=a_resource(memory=10))
    for name in ("runs", "first", "second"):
        h.submit(name)
        h.ask(name, application_id=name, resource=a_resource(memory=8))
    h.run_until_idle()
    tried = note_visits(monkeypatch)

    h.release("runs", application_id="runs")
    h.run_until_idle()

    assert [*h.placements] == ["runs", "second"]
    assert ["first", "second"] == tried[:2]


ROOM: Final = {
    "on one of three nodes: the lack of room that stops the second stops the others as well": (
        "- name: leaf",
        ("n1", "n2", "n3"),
        10,
        [6] * 50,
    ),
    "in the queue: the quota that the first uses up stops the others of its size, and the larger ones": (
        "- {name: leaf, resources: {max: {memory: 18}}}",
        ("n1",),
        40,
        [6] * 25 + [7] * 25,
    ),
}


@pytest.mark.parametrize(("queues", "nodes", "capacity", "sizes"), ROOM.values(), ids=ROOM)
def test_room_for_one_size_wakes_one_application_of_that_size(
    queues: str, nodes: tuple[str, ...], capacity: int, sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one gets it."""
    h = Harness(queues)
    h.nodes(*nodes, capacity=a_resource(memory=capacity))
    for number, size in enumerate(sizes):
        h.submit(f"w{number:02}")
        h.ask(f"w{number:02}", application_id=f"w{number:02}", resource=a_resource(memory=size))
    h.run_until_idle()
    running = [*h.placements]
    tried = note_visits(monkeypatch)

    h.release(running[0], application_id=running[0])
    h.run_until_idle()

    assert [*running, "w03"] == [*h.placements]
    assert len(tried) <= 3


def test_an_application_whose_member_waits_for_a_placeholder_is_tried_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only the application itself can change that, and then it is tried again."""
    h = Harness("- {name: leaf, resources: {max: {memory: 12}}}")
    h.nodes("n1", capacity=a_resource(memory=40))
    for name in ("other", "gang"):
        h.submit(name, placeholder_ask=a_resource(memory=10) if name == "gang" else None)
    h.ask("runs", application_id="other", resource=a_resource(memory=5))
    h.ask("p", application_id="gang", resource=a_resource(memory=10), task_group_name="g", placeholder=True)
    h.ask_and_run("m", application_id="gang", resource=a_resource(memory=5), task_group_name="g")
    tried = note_visits(monkeypatch)

    h.ask_and_run("fits", application_id="other", resource=a_resource(memory=1))
    assert "gang" not in tried
    h.release("p", application_id="gang")
    h.run_until_idle()

    assert "m" in h.placements


def test_an_application_that_comes_again_may_be_due_when_the_first_was() -> None:
    """Both are remembered beside each other until that time."""
    leaf, waiting = a_leaf(), WaitingApplications()
    first, again = an_entry(leaf, "app"), an_entry(leaf, "app")

    for entry in (first, again):
        waiting.add(entry)
        waiting.rest(entry, RestKind((TEN,), may_reserve=False), 7)
        if entry is first:
            waiting.remove(entry)

    assert 7 == waiting.next_due_ns()


def test_an_application_that_is_tried_and_does_not_rest_again_is_awake(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It rested on before: a leaf with an ask that may preempt was due again at the same moment, for ever."""
    h = Harness("- {name: leaf, resources: {guaranteed: {memory: 30}}, properties: {preemption.delay: 1s}}")
    h.nodes("n1", capacity=a_resource(memory=10))
    h.submit("app")
    h.ask_and_run("large", resource=a_resource(memory=20), preemption=True)
    h.advance(seconds=2)
    h.run_until_idle()
    entry = h.state.entries["app"]
    assert entry.rests_for is not None
    monkeypatch.setattr(leaf_visit, "rest_after", lambda *_, **__: None)
    h.nodes("n2", capacity=a_resource(memory=10))
    h.run_until_idle()

    assert entry.rests_for is None
    assert next_retry_ns(h.state) != h.state.now_ns()
