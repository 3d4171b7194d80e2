"""The first blocker of an application in few words is that of its explanation."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.model.builders import TEN, a_resource
from support.model.explained import explained
from support.model.harness import Harness, a_partition

from licorne.model.explanation.first_blockers import first_blockers, waiting_sums
from licorne.model.values.allocation import PlacementHalt, RefusalReason
from licorne.model.values.messages import NodeAction


def _texts(h: Harness, *application_ids: str) -> list[str]:
    found = h.partition.read(first_blockers, application_ids or ("app",))
    return [each.text() for each in found]


def _full() -> Harness:
    """A node is full; another type of resource is left."""
    h = a_partition("n1", "n2", capacity=a_resource(memory=10, vcore=9000))
    h.ask_and_run("first", resource=a_resource(memory=8))
    h.ask_and_run("second", resource=a_resource(memory=8))
    h.ask_and_run("ask", resource=a_resource(memory=3, vcore=1))
    return h


def _cluster_full() -> Harness:
    h = a_partition("n1")
    h.ask_and_run("ask", resource=a_resource(memory=11))
    return h


def _too_large() -> Harness:
    h = a_partition("n1", "n2")
    h.ask_and_run("ask", resource=a_resource(memory=11))
    return h


def _drained() -> Harness:
    h = a_partition("n1")
    h.update_node("n1", NodeAction.DRAIN_NODE)
    h.ask_and_run("ask", resource=a_resource(memory=1))
    return h


def _queue_max() -> Harness:
    h = a_partition("n1", queues="- {name: leaf, resources: {max: {memory: 5}}}")
    h.ask_and_run("first", resource=a_resource(memory=5))
    h.ask_and_run("ask", resource=a_resource(memory=1))
    return h


def _limited(holder: str) -> Harness:
    limits = f"limits: [{{limit: x, {holder}, maxresources: {{memory: 5}}}}]"
    h = a_partition("n1", queues=f"- {{name: leaf, {limits}}}")
    h.ask_and_run("first", resource=a_resource(memory=5))
    h.ask_and_run("ask", resource=a_resource(memory=1))
    return h


def _applications() -> Harness:
    h = Harness("- {name: leaf, maxapplications: 1}")
    h.nodes("n1")
    h.submit("other")
    h.ask("first", application_id="other", resource=a_resource(memory=1))
    h.run_until_idle()
    h.submit("app")
    h.ask_and_run("ask", resource=a_resource(memory=1))
    return h


def _required(node_id: str) -> Harness:
    h = a_partition("n1", "n2")
    h.ask_and_run("first", required_node="n1")
    h.ask_and_run("ask", required_node=node_id)
    return h


def _halted() -> Harness:
    h = a_partition("n1")
    h.halt = PlacementHalt(reason=RefusalReason.MANAGER_PAUSED)
    h.ask("ask")
    return h


def _gang(queues: str = "- {name: leaf, properties: {gang.placing: whole}}", count: int = 4) -> Harness:
    h = Harness(queues)
    h.nodes("n1", "n2", capacity=a_resource(memory=25))
    h.submit("app", placeholder_ask=a_resource(memory=10 * count))
    return h


def _whole_gang() -> Harness:
    h = _gang(count=5)
    h.ask_and_run("a", "b", "c", "d", "e", task_group_name="g", placeholder=True)
    return h


def _incomplete_gang() -> Harness:
    h = _gang()
    h.ask_and_run("a", "b", task_group_name="g", placeholder=True)
    return h


def _gang_step_by_step() -> Harness:
    h = _gang("- name: leaf", count=5)
    h.ask_and_run("a", "b", "c", "d", "e", task_group_name="g", placeholder=True)
    return h


def _next() -> Harness:
    h = a_partition("n1")
    h.ask("ask")
    return h


CASES: dict[str, tuple[Callable[[], Harness], str]] = {
    "the nearest node lacks a type": (_full, "no room: memory"),
    "the nodes together have too little": (_cluster_full, "no room: memory"),
    "no node is as large": (_too_large, "no node so large"),
    "the only node is drained": (_drained, "no node takes work"),
    "the maximum of a queue": (_queue_max, "queue max"),
    "the limit of a user": (lambda: _limited("users: [bob]"), "user limit"),
    "the limit of a group": (lambda: _limited("groups: [dev]"), "group limit"),
    "the number of applications": (_applications, "queue max: applications"),
    "a node that is full": (lambda: _required("n1"), "node full"),
    "a node that is unknown": (lambda: _required("n9"), "node unknown"),
    "a manager that is away": (_halted, "manager lost"),
    "a gang": (_whole_gang, "gang 4 of 5"),
    "a gang of which a part is missing": (_incomplete_gang, "gang incomplete"),
    "a gang that is placed step by step": (_gang_step_by_step, "gang 4 of 5"),
    "nothing": (_next, "its turn"),
}


@pytest.mark.parametrize(("scene", "text"), CASES.values(), ids=CASES)
def test_the_first_blocker_is_told_in_few_words(scene: Callable[[], Harness], text: str) -> None:
    """The sum has the same words, without the counts of gangs; so has the explanation a reason."""
    h = scene()

    assert [text] == _texts(h)
    words = text.partition(" 4 of")[0]
    assert 1 == h.partition.read(waiting_sums).counts["root.leaf", words]
    explanation = explained(h)
    blocked = bool(explanation.blockers) or any(ask.blockers for ask in explanation.waiting)
    assert blocked == (text != "its turn")


def test_a_note_that_was_made_often_is_not_the_reason() -> None:
    """The room of the nodes was refused ten times; then the queue got a maximum that blocks first."""
    h = _full()
    for _ in range(10):
        h.cycle()
    h.reload("- {name: leaf, resources: {max: {memory: 17}}}")

    assert ["queue max"] == _texts(h)


def test_applications_that_do_not_wait_have_no_reason() -> None:
    """Nor have those that are unknown; sums add up over applications."""
    h = a_partition("n1")
    h.ask_and_run("runs")
    assert [] == _texts(h, "app", "never")

    for name in ("b", "c"):
        h.submit(name)
        h.ask(f"{name}-ask", application_id=name, resource=TEN)
    h.run_until_idle()

    assert {("root.leaf", "no room: memory"): 2} == h.partition.read(waiting_sums).counts
