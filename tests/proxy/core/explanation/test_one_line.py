"""Explanations in one line."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.model.builders import FakePredicates, a_resource
from support.model.explained import explained
from support.model.harness import Harness

from licorne import explanation_line
from licorne.proxy.core.explanation.one_line import LINE_CHARACTERS_MAX


def waiting(
    queues: str = "- name: leaf", *, predicates: FakePredicates | None = None, memory: int = 20
) -> Harness:
    """Return a partition with one node of ten and one ask, `ask`, which has been tried."""
    h = Harness(queues, predicates=predicates)
    h.nodes("n1")
    h.submit()
    h.ask("ask", resource=a_resource(memory=memory))
    h.run_until_idle()
    return h


@pytest.mark.parametrize(
    ("harness", "line"),
    [
        pytest.param(
            waiting("- {name: leaf, resources: {max: {memory: 15}}}"),
            "0/1 nodes are available: 1 Insufficient memory; queue root.leaf: 15 of 15 memory left",
            id="quotas and nodes",
        ),
        pytest.param(
            waiting(predicates=FakePredicates(refused={("ask", "n1"): "it has\na taint"}), memory=5),
            "0/1 nodes are available: 1 refused: it has a taint",
            id="what the RM says, without its line breaks",
        ),
        pytest.param(waiting(memory=5), "it runs on n1", id="an ask that runs"),
    ],
)
def test_everything_that_blocks_is_in_it(harness: Harness, line: str) -> None:
    """The nodes with their numbers, and what is left of quotas."""
    assert line == explanation_line(explained(harness))


def test_an_ask_that_nothing_blocks_has_its_turn_to_come() -> None:
    """No cycle has run."""
    h = Harness()
    h.nodes("n1")
    h.submit()
    h.ask("ask")

    assert "it is placed when its turn comes" == explanation_line(explained(h))


def test_it_stays_as_it_is_while_time_alone_passes() -> None:
    """It contains no times."""
    h = waiting("- {name: leaf, resources: {max: {memory: 15}}}")
    before = explanation_line(explained(h))

    h.advance(3600)
    h.run_until_idle()

    assert before == explanation_line(explained(h))


def test_a_user_quota_names_the_queue_of_the_limit() -> None:
    """Nodes with room are not named."""
    h = waiting("- {name: leaf, limits: [{users: ['*'], maxresources: {memory: 5}}]}", memory=8)

    assert "user bob in root.leaf: 5 of 5 memory left" == explanation_line(explained(h))


def test_a_long_one_is_cut() -> None:
    """It ends with an ellipsis, at exactly as many characters as a condition may have."""
    explanation = replace(explained(waiting()), rejection="a" * 2_000)

    line = explanation_line(explanation)

    assert LINE_CHARACTERS_MAX == len(line)
    assert line.endswith("a...")


def test_a_rejection_is_its_own_reason() -> None:
    """Nothing else blocks an application that was rejected."""
    h = Harness()
    h.submit(queue_name="root.nowhere")

    line = explanation_line(explained(h))

    assert "failed to place application app: application rejected: no placement rule matched" == line
