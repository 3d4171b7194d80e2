"""Explanations as lines."""

from __future__ import annotations

from dataclasses import replace

from support.model.builders import a_resource
from support.model.explained import explained, place_in_file
from support.model.harness import Harness
from support.model.preemption_scenes import TWO_QUEUES, Scene

from licorne import explanation_line
from licorne.proxy.core.explanation.documents import document_of
from licorne.proxy.core.explanation.text import lines_of


def lines(harness: Harness, application_id: str = "app") -> list[str]:
    return [line.text for line in lines_of(explained(harness, application_id), place_in_file)]


def test_asks_with_one_answer_share_it() -> None:
    """The first ones are named, the notes are those of the one that was tried."""
    h = Harness()
    h.nodes("n1")
    h.submit()
    h.ask(*[f"k{number}" for number in range(8)])
    h.run_until_idle()

    text = lines(h)

    assert "k1, k2, k3, k4, k5 and 2 more wait for 0s: memory 10; priority 0; place 1 to 7 of 7" in text
    assert "noted on k1 once, last 0s ago: Not enough queue quota" in text
    assert "runs: k0 on n1" in text


def test_an_ask_that_nothing_stands_in_the_way_of_has_its_turn_to_come() -> None:
    """No cycle has run."""
    h = Harness()
    h.nodes("n1")
    h.submit()
    h.ask("ask", required_node="n1", priority=3)

    text = lines(h)

    assert "ask waits for 0s: memory 10; priority 3; for node n1 only; place 1 of 1" in text
    assert "nothing blocks it: it is placed when its turn comes" in text


def test_a_gang_is_written_with_its_task_groups() -> None:
    """What was announced, what is placed, and where the members are."""
    h = Harness()
    h.nodes("n1")
    h.submit(placeholder_ask=a_resource(memory=20), style="Hard")
    h.ask("ph1", "ph2", task_group_name="g", placeholder=True)
    h.ask("member", task_group_name="g")
    h.run_until_idle()

    text = lines(h)

    assert "gang (Hard): memory 10 placed of memory 20 announced" in text
    assert "task group g: 2 placeholders, 1 waiting, 1 placed, 0 replaced, 0 ended" in text
    assert any(line.startswith("ph2 waits for 0s: memory 10; priority 0; placeholder") for line in text)
    assert any(line.endswith("has confirmed its end: member on n1") for line in text)
    gang = document_of(explained(h), place_in_file)["gang"]
    assert isinstance(gang, dict)
    assert ({"memory": 20}, "Hard") == (gang["announced"], gang["style"])


def test_a_reservation_and_a_draining_queue_are_written() -> None:
    """Neither is a blocker."""
    h = Harness("- name: leaf\n- name: other")
    h.nodes("n1", "n2")
    h.submit()
    h.ask("a", "b", resource=a_resource(memory=6))
    h.run_until_idle()
    h.ask("ask", resource=a_resource(memory=7))
    h.advance(3)
    h.run_until_idle()
    h.reload("- name: other")

    text = lines(h)

    assert "queue root.leaf is draining: what it has goes on, nothing new comes in" in text
    assert any(line.endswith("is reserved for it") for line in text)


def test_loops_are_counted() -> None:
    """With the preemption that repeats another one."""
    scene = Scene(TWO_QUEUES)
    scene.nodes("n1", capacity=a_resource(memory=30))
    scene.runs("b1", "b2", "b3")
    scene.asks("a1")
    scene.advance(10)
    scene.cycle()
    (record,) = scene.state.preemptions
    scene.state.preemptions.add(replace(record, loop="the same as before"), lambda _: True)

    text = lines(scene, "root.a")

    assert "preemptions that repeat one without result: 1" in text
    assert "loop: the same as before" in text
    assert 2 == sum(line.startswith("preemption 0s ago, as preemptor") for line in text)


def test_an_ask_that_has_preempted_says_for_whom_it_waits_and_since_when() -> None:
    """As long as they have not ended; no attempt to preempt is noted as failed meanwhile."""
    scene = Scene("- {name: a, resources: {guaranteed: {memory: 50}}}\n- {name: b}")
    scene.nodes("n1", capacity=a_resource(memory=20))
    scene.runs("v1", "v2")
    scene.asks("p", resource=a_resource(memory=20))
    scene.wait(31)
    scene.wait(3 * 3600)
    waits = "it preempted 3h ago, and waits until the resource manager confirms the end of"

    assert f"{waits} v2 of root.b on n1, v1 of root.b on n1" in lines(scene, "root.a")
    assert "node n1 is reserved for it" in lines(scene, "root.a")
    assert not [line for line in lines(scene, "root.a") if "does not help" in line or "failed" in line]
    (ask,) = document_of(explained(scene, "root.a"), place_in_file)["asks"]
    (preemption,) = scene.state.preemptions
    assert (["v2", "v1"], preemption.time_ns) == (
        [victim["allocationKey"] for victim in ask["ending"]],
        ask["endingSince"],
    )
    assert explanation_line(explained(scene, "root.a")).startswith("it has preempted, and waits until")

    scene.end("v2")

    assert f"{waits} v1 of root.b on n1" in lines(scene, "root.a")


def test_a_node_that_is_full_of_foreign_work_says_so() -> None:
    h = Harness()
    h.nodes("n1")
    h.ask("f", resource=a_resource(memory=8), node_id="n1", tags={"foreign": "x"})
    h.submit()
    h.ask_and_run("ask", resource=a_resource(memory=6))

    text = lines(h)

    full = "nodes: 1 of 1 without enough room left, short of memory on 1 (n1)"
    assert f"{full}, but for other schedulers with room: n1" in text
    assert "nearest: n1 lacks memory 4; other schedulers use memory 8 there" in text
