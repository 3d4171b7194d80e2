"""Which node it is to be: the mildest that the RM agrees to."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from support.model.builders import an_ask
from support.model.preemption_scenes import a_victim

from licorne.model.predicates.node_checks import ImmediateChecks
from licorne.model.preemption.guarantee.attempt_budget import NoPreemption
from licorne.model.preemption.guarantee.nodes import (
    SOLUTIONS_PER_BATCH,
    NodeChoice,
    NodeSolution,
    choose_node,
)
from licorne.model.preemption.victims import Victim


@dataclass
class NodePredicates:
    """An RM that answers as the test says, and remembers what it was asked."""

    indexes: dict[str, int | None] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)

    def refuse(self, allocation_key: str, node_id: str, *, allocate: bool) -> str | None:
        assert allocation_key
        assert allocate
        self.asked.append(node_id)
        return "no" if node_id in self.refused else None

    def preemption_index(
        self, allocation_key: str, node_id: str, victim_keys: tuple[str, ...], start_index: int
    ) -> int | None:
        assert allocation_key
        assert victim_keys
        self.asked.append(node_id)
        return self.indexes.get(node_id, start_index)


def a_solution(node_id: str, *victims: Victim, needed: int | None = None) -> NodeSolution:
    return NodeSolution(len(victims) if needed is None else needed, node_id, victims)


ONE = a_solution("one", a_victim("v1"))
ANOTHER = a_solution("another", a_victim("v2"))
TWO = a_solution("two", a_victim("v3"), a_victim("v4"))
ONE_OF_THREE = a_solution("one of three", a_victim("v5"), a_victim("v6"), a_victim("v7"), needed=1)
ORIGINATOR = a_solution("originator", a_victim("v8", originator=True))
OPTED_OUT = a_solution("opted out", a_victim("v9", willing=False))
SPARE_ORIGINATOR = a_solution("spare", a_victim("v10"), a_victim("v11", originator=True), needed=1)
EMPTY, EMPTY_TOO = a_solution("empty"), a_solution("empty too")


@dataclass(frozen=True)
class Choice:
    """Solutions, what is chosen of them, what the RM says, and which nodes it is asked about."""

    solutions: list[NodeSolution]
    chosen: str | NoPreemption
    predicates: NodePredicates | None = None
    asked: list[str] = field(default_factory=list)


CHOICES = {
    "without a say of the RM the first mild solution is chosen": Choice([ANOTHER, TWO], "another"),
    "a mild solution with more victims is better than one that opted out or an originator": Choice(
        [ORIGINATOR, OPTED_OUT, TWO], "two"
    ),
    "an originator is better than one that opted out": Choice([OPTED_OUT, ORIGINATOR], "originator"),
    "one that opted out is better than nothing": Choice([OPTED_OUT], "opted out"),
    "an originator that is only spare does not count": Choice([SPARE_ORIGINATOR, TWO], "spare"),
    "a node that the RM refuses is passed over": Choice(
        [ONE, ANOTHER], "another", NodePredicates(indexes={"one": None}), ["one", "another"]
    ),
    "a node where the RM demands more victims may lose to another": Choice(
        [ONE_OF_THREE, TWO], "two", NodePredicates(indexes={"one of three": 2}), ["one of three", "two"]
    ),
    # There is no victim to judge with.
    "a node that needs no victims is checked like any allocation": Choice(
        [EMPTY, EMPTY_TOO], "empty too", NodePredicates(refused={"empty"}), ["empty", "empty too"]
    ),
    "no later solution is asked about once it cannot be milder": Choice(
        [ONE, ANOTHER], "one", NodePredicates(), ["one"]
    ),
    "without a mild solution in the first batch the next one is looked at": Choice(
        [ORIGINATOR] * SOLUTIONS_PER_BATCH + [TWO], "two"
    ),
    "without a solution there is no room": Choice([], NoPreemption.NO_NODE),
    "where the RM refuses all, they are refused": Choice(
        [ONE], NoPreemption.REFUSED, NodePredicates(indexes={"one": None}), ["one"]
    ),
    "an answer beyond the list is a refusal": Choice(
        [ONE], NoPreemption.REFUSED, NodePredicates(indexes={"one": 1}), ["one"]
    ),
}


@pytest.mark.parametrize("case", CHOICES.values(), ids=CHOICES)
def test_the_mildest_solution_is_chosen(case: Choice) -> None:
    """Solutions come with the fewest victims first; they are compared batch by batch."""
    predicates = None if case.predicates is None else replace(case.predicates, asked=[])
    checks = None if predicates is None else ImmediateChecks(predicates)
    node = choose_node(an_ask("ask"), iter(case.solutions), checks)

    assert case.chosen == (node.node_id if isinstance(node, NodeChoice) else node)
    assert case.asked == ([] if predicates is None else predicates.asked)


def test_the_rm_may_want_more_gone() -> None:
    """Those are distinguished from the ones that are needed for room."""
    checks = ImmediateChecks(NodePredicates(indexes={"one of three": 1}))
    node = choose_node(an_ask("ask"), iter([ONE_OF_THREE]), checks)

    assert isinstance(node, NodeChoice)
    assert (["v5"], ["v6"]) == ([v.key for v in node.needed], [v.key for v in node.demanded])
