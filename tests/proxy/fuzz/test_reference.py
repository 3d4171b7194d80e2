"""The second scheduler by itself: what it decides by the written rules, in the smallest worlds."""

from __future__ import annotations

from typing import Any

import pytest

from licorne.proxy.fuzz.reference.plan import Submission, queue_for
from licorne.proxy.fuzz.reference.queues import (
    ReferenceApplication,
    ReferenceAsk,
    ReferenceDecision,
    ReferenceQueue,
)
from licorne.proxy.fuzz.reference.scheduler import ReferenceScheduler

SECOND_NS = 1_000_000_000
SIZE = {"memory": 10}


def partition(**leaf: Any) -> dict[str, Any]:
    """Return a partition with one leaf."""
    return {"queues": [{"name": "root", "submitacl": "*", "queues": [{"name": "a", **leaf}]}]}


def a_scheduler(document: dict[str, Any], *nodes: int, reserves: bool = False) -> ReferenceScheduler:
    """Return a second scheduler with nodes of some memory, and an application `app` of ada's."""
    scheduler = ReferenceScheduler(document, reserves=reserves)
    for number, memory in enumerate(nodes):
        scheduler.add_node(f"n{number}", {"memory": memory})
    submit(scheduler, "app", "ada")
    return scheduler


def submit(scheduler: ReferenceScheduler, name: str, user: str) -> ReferenceApplication:
    """Submit an application to the leaf."""
    (leaf,) = (queue for queue in scheduler.root.tree() if queue.path == "root.a")
    application = ReferenceApplication(name, leaf, 0, user)
    scheduler.submit(application)
    return application


def ask(scheduler: ReferenceScheduler, key: str, memory: int = 10, priority: int = 0, **more: Any) -> None:
    """Ask for something of `app`."""
    asked = ReferenceAsk(key, {"memory": memory}, priority, 0)
    for name, value in more.items():
        setattr(asked, name, value)
    scheduler.ask("app", asked)


def test_a_visit_of_a_leaf_makes_ten_attempts_to_preempt() -> None:
    """Seed 5114: the eleventh ask could preempt, and the scheduler went on to another leaf meanwhile."""
    properties = {"preemption.within": "lower-priority", "application.sort.priority": "disabled"}
    scheduler = a_scheduler(partition(properties=properties), 10)
    scheduler.advance(1)
    submit(scheduler, "later", "bob")
    ask(scheduler, "runs", priority=20)
    assert scheduler.step() == ReferenceDecision("runs", "n0")
    for priority in range(10, 0, -1):
        ask(scheduler, f"k{priority}", priority=priority, preempts=True)
    scheduler.ask("later", ReferenceAsk("urgent", SIZE, 30, 0, preempts=True))

    assert scheduler.step() is None
    assert scheduler.is_exhausted
    assert scheduler.step() == ReferenceDecision("urgent", "n0", "runs", "preempt")


def test_what_waits_for_more_than_two_seconds_gets_a_node_reserved() -> None:
    """Of two that are of no use for others it is the emptier one, and others go elsewhere."""
    scheduler = a_scheduler(partition(), 40, 40, reserves=True)
    ask(scheduler, "k1", 25)
    ask(scheduler, "k2", 20)
    assert [scheduler.step(), scheduler.step()] == [
        ReferenceDecision("k1", "n0"),
        ReferenceDecision("k2", "n1"),
    ]
    ask(scheduler, "large", 30)
    assert scheduler.step() is None

    scheduler.advance(3 * SECOND_NS)

    assert scheduler.step() == ReferenceDecision("large", "n1", kind="reserve")
    ask(scheduler, "small", 5)
    assert scheduler.step() == ReferenceDecision("small", "n0")


def test_a_job_that_would_delay_a_promise_waits() -> None:
    """Where it ends in time it starts, and on a node of which nothing is promised."""
    document = partition()
    document["queues"][0]["properties"] = {"backfill.reservations": "1"}
    scheduler = a_scheduler(document, 100, 20)
    ask(scheduler, "runs", 60, walltime_ns=60 * SECOND_NS)
    assert scheduler.step() == ReferenceDecision("runs", "n0")
    ask(scheduler, "big", 90, walltime_ns=60 * SECOND_NS)
    ask(scheduler, "long", 30, walltime_ns=61 * SECOND_NS)
    assert scheduler.step() is None
    ask(scheduler, "short", 30, walltime_ns=60 * SECOND_NS)
    ask(scheduler, "small", 20, walltime_ns=61 * SECOND_NS)

    assert scheduler.step() == ReferenceDecision("short", "n0")
    assert scheduler.step() == ReferenceDecision("small", "n1")


def test_a_member_takes_the_place_of_a_placeholder_that_is_large_enough() -> None:
    """A smaller one is cancelled."""
    scheduler = a_scheduler(partition(), 100)
    ask(scheduler, "p1", 5, group="g", placeholder=True)
    ask(scheduler, "p2", 10, group="g", placeholder=True)
    ask(scheduler, "k1", 10, group="g")
    scheduler.place("p1", "n0")
    scheduler.place("p2", "n0")

    assert scheduler.step() == ReferenceDecision("k1", "n0", "p2", "replace")
    assert [("p1", "cancelled")] == scheduler.to_end
    assert "k1" == scheduler.replace("p2")


@pytest.mark.parametrize(
    ("user", "expected"), [("ada", "root.a"), ("bob", None), ("kim", "root.people.kim"), ("tom", None)]
)
def test_where_an_application_goes(user: str, expected: str | None) -> None:
    """By rules in order, their filters, and who may submit."""
    document = {
        "name": "root",
        "queues": [
            {"name": "a", "submitacl": "ada cooks"},
            {"name": "people", "parent": True, "submitacl": " cooks"},
        ],
    }
    rules: list[dict[str, Any]] = [
        {"name": "provided", "filter": {"type": "deny", "groups": ["cooks"]}},
        {"name": "user", "create": True, "parent": {"name": "fixed", "value": "people"}},
    ]
    groups = {"kim": ["cooks"], "tom": ["^cook"]}.get(user, [])
    placed = queue_for(ReferenceQueue(document, None), rules, Submission("root.a", user, groups, {}, {}))

    assert expected == (None if placed is None else placed.path)


def test_an_application_ends_thirty_seconds_after_its_last_work() -> None:
    """Not one that has begun again in time."""
    scheduler = a_scheduler(partition(), 100)
    ask(scheduler, "k1")
    scheduler.step()
    scheduler.end("k1")
    assert scheduler.applications["app"].state == "Completing"
    scheduler.advance(29 * SECOND_NS)
    ask(scheduler, "k2")
    scheduler.advance(31 * SECOND_NS)
    assert scheduler.applications["app"].state == "Running"
    scheduler.step()
    scheduler.end("k2")
    scheduler.advance(61 * SECOND_NS)

    assert ({}, "Completed") == (scheduler.applications, scheduler.ended["app"][0])
