"""Asks of one class, about which the RM is asked once a node until it says that its answers change."""

from __future__ import annotations

from typing import Any, Final

import pytest
from support.model.builders import SECOND_NS, FakeChannel, FakePredicates, a_resource
from support.model.harness import Harness

from licorne.model.predicates import deferred_checks, node_checks
from licorne.model.predicates.avoided_nodes import AVOIDANCE_NS
from licorne.model.values.allocation import PREDICATE_CLASS_TAG, RefusalReason
from licorne.model.values.messages import NodeAction, TerminationType

NODES: Final = ("n1", "n2", "n3")
BOTH: Final = pytest.mark.parametrize(
    "later", [pytest.param(False, id="at once"), pytest.param(True, id="later")]
)
ONE: Final = a_resource(memory=1)


class OfClass(FakePredicates):
    """Predicates that refuse by node alone, whatever the ask is."""

    def refuse(self, allocation_key: str, node_id: str, *, allocate: bool) -> str | None:
        super().refuse(allocation_key, node_id, allocate=allocate)
        return self.refused.get(("", node_id))


class ClassScene:
    """A partition with three nodes, and an RM that answers at once or later."""

    def __init__(self, *refused: str, later: bool) -> None:
        self.predicates = OfClass(refused={("", node): "it has a taint" for node in refused})
        self.channel = FakeChannel(self.predicates) if later else None
        given = None if later else self.predicates
        self.h = Harness(predicates=given, question_channel=self.channel)
        self.h.nodes(*NODES)
        self.h.submit()

    def asks(self, *keys: str, name: str = "executor") -> None:
        self.h.ask(*keys, resource=ONE, tags={PREDICATE_CLASS_TAG: name})
        self.settle()

    def settle(self) -> None:
        """Run until nothing is placed and no question is open."""
        for _ in range(20):
            self.h.run_until_idle()
            if self.channel is not None:
                self.channel.answer()

    def allow(self, node: str) -> None:
        del self.predicates.refused["", node]

    def reconsider(
        self, *, keys: tuple[str, ...] = (), nodes: tuple[str, ...] = (), classes: tuple[str, ...] = ()
    ) -> None:
        self.h.partition.reconsider(keys, nodes, classes)
        self.settle()

    @property
    def asked(self) -> list[str]:
        """The nodes about which the RM was asked since the last time."""
        nodes = [node for _, node, _ in self.predicates.asked]
        self.predicates.asked.clear()
        return nodes


@BOTH
def test_all_of_a_class_share_the_answers(*, later: bool) -> None:
    """A hundred asks, and one question a node that the search comes to."""
    scene = ClassScene("n1", "n2", later=later)

    scene.asks(*[f"a{number}" for number in range(5)])
    scene.asks("b")

    assert {"n3"} == set(scene.h.placements.values())
    assert ["n1", "n2", "n3"] == sorted(scene.asked)


@BOTH
def test_another_class_is_asked_about_by_itself(*, later: bool) -> None:
    """And so is an ask without a class."""
    scene = ClassScene("n1", later=later)
    scene.asks("a")
    assert "n1" in scene.asked

    scene.asks("b", name="driver")
    assert "n1" in scene.asked


@BOTH
def test_what_is_refused_is_not_asked_again_by_time(*, later: bool) -> None:
    """The RM says when its answers change: nothing is asked each second."""
    scene = ClassScene(*NODES, later=later)
    scene.asks("a", "b")
    (refusal,) = {(each.reason, each.detail) for each in scene.h.application().asks.refusals()}
    assert (RefusalReason.PREDICATES, "it has a taint") == refusal
    assert sorted(NODES) == sorted(scene.asked)
    scene.h.advance(3)
    scene.settle()
    assert ["n1"] == scene.asked  # Whether it may be reserved.

    for _ in range(5):
        scene.h.advance(1)
        scene.settle()

    assert [] == scene.asked
    due_ns = scene.h.partition.next_retry_ns()
    assert due_ns is None or due_ns > scene.h.clock.now_ns() + SECOND_NS


@BOTH
@pytest.mark.parametrize(
    "named",
    [
        pytest.param({}, id="everything"),
        pytest.param({"nodes": ("n2",)}, id="the node"),
        pytest.param({"classes": ("executor",)}, id="the class"),
    ],
)
def test_it_is_asked_again_when_the_rm_says_so(named: dict[str, tuple[str, ...]], *, later: bool) -> None:
    """At once, without time."""
    scene = ClassScene(*NODES, later=later)
    scene.asks("a", "b")
    scene.allow("n2")
    scene.settle()
    assert {} == scene.h.placements

    scene.reconsider(**named)

    assert {"a": "n2", "b": "n2"} == scene.h.placements


@BOTH
@pytest.mark.parametrize(
    "named",
    [
        pytest.param({"nodes": ("n1",)}, id="another node"),
        pytest.param({"classes": ("driver",)}, id="another class"),
    ],
)
def test_what_is_not_named_stays_as_it_was_answered(
    named: dict[str, tuple[str, ...]], *, later: bool
) -> None:
    """Only what has changed is asked about."""
    scene = ClassScene(*NODES, later=later)
    scene.asks("a")
    scene.allow("n2")

    scene.reconsider(**named)

    assert {} == scene.h.placements


@BOTH
def test_a_node_that_comes_is_asked_about(*, later: bool) -> None:
    """It has room, and nothing is known of it; so it is when it comes again."""
    scene = ClassScene(*NODES, later=later)
    scene.asks("a")

    scene.h.nodes("n4")
    scene.settle()

    assert {"a": "n4"} == scene.h.placements


@BOTH
def test_what_one_ask_avoids_is_no_answer_for_its_class(*, later: bool) -> None:
    """The RM could not start it on the only node that it allows: the others are placed there all the same."""
    scene = ClassScene("n1", "n2", later=later)
    scene.asks("a")
    scene.h.release("a", termination=TerminationType.SCHEDULING_FAILED_ON_RM)
    scene.settle()
    scene.h.forget()

    scene.asks("b")
    assert {"b": "n3"} == scene.h.placements

    scene.h.advance(AVOIDANCE_NS // SECOND_NS + 1)
    scene.settle()
    assert {"b": "n3", "a": "n3"} == scene.h.placements
    assert ["n1", "n2", "n3"] == sorted({*scene.asked})


@BOTH
def test_nothing_stays_of_a_node_that_goes(*, later: bool) -> None:
    """In a cluster whose nodes come and go under ever new names, what is kept does not grow."""
    scene = ClassScene(*NODES, later=later)
    scene.asks("a")

    scene.h.update_node("n1", NodeAction.DECOMISSION)

    kept: Any = scene.h.state.node_checks
    (answers,) = kept._by_class.values()
    known = (
        {node for asked, _ in answers.nodes.values() for node in asked}
        if later
        else {n for n, _ in answers.reasons}
    )
    assert {"n2", "n3"} == known


@BOTH
def test_an_ask_without_a_class_is_tried_again_at_once(*, later: bool) -> None:
    """Otherwise it waits for its second."""
    scene = ClassScene(*NODES, later=later)
    scene.h.ask("a", resource=ONE)
    scene.settle()
    scene.allow("n2")

    scene.reconsider(keys=("a",))

    assert {"a": "n2"} == scene.h.placements


def test_an_answer_from_before_does_not_count() -> None:
    """The RM has said that it changed before the answer was taken."""
    scene = ClassScene(*NODES, later=True)
    assert scene.channel is not None
    scene.h.ask("a", resource=ONE, tags={PREDICATE_CLASS_TAG: "executor"})
    scene.h.cycle()
    scene.channel.answer()
    scene.allow("n2")

    scene.h.partition.reconsider((), ("n2",), ())
    scene.settle()

    assert {"a": "n2"} == scene.h.placements


@BOTH
def test_so_many_classes_are_kept_at_most(monkeypatch: pytest.MonkeyPatch, *, later: bool) -> None:
    """The first one is asked about again."""
    monkeypatch.setattr(deferred_checks if later else node_checks, "CLASSES_MAX", 2)
    scene = ClassScene("n1", later=later)
    for name in ("one", "two", "three"):
        scene.asks(name, name=name)
    assert 3 == scene.asked.count("n1")

    scene.asks("again", name="two")
    assert [] == scene.asked
    scene.asks("again, too", name="one")
    assert 1 == scene.asked.count("n1")
