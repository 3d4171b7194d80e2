"""Which node it is to be: the mildest that the RM agrees to."""

from __future__ import annotations

from dataclasses import dataclass, field

from support.model.builders import START_NS, TEN, an_ask
from support.model.preemption_scenes import TWO_QUEUES, Scene

from licorne.model.preemption.guarantee.node_choice import (
    SOLUTIONS_PER_BATCH,
    NodeChoice,
    NoNode,
    choose_node,
)
from licorne.model.preemption.guarantee.node_solver import NodeSolution
from licorne.model.preemption.victims import Victim
from licorne.model.state.node_checks import ImmediateChecks
from licorne.model.values.allocation import Allocation, Ask


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


def an_entry_of_b() -> Scene:
    scene = Scene(TWO_QUEUES)
    scene.submit("root.b", "root.b")
    return scene


ENTRY = an_entry_of_b().entry("root.b")


def a_victim(key: str, *, willing: bool = True, originator: bool = False) -> Victim:
    ask = Ask(
        allocation_key=key,
        application_id="root.b",
        resource=TEN,
        created_at_ns=START_NS,
        allow_preempt_self=willing,
        originator=originator,
    )
    return Victim(Allocation(ask, "n1", START_NS), ENTRY)


def a_solution(node_id: str, *victims: Victim, needed: int | None = None) -> NodeSolution:
    return NodeSolution(len(victims) if needed is None else needed, node_id, victims)


def chosen(*solutions: NodeSolution, predicates: NodePredicates | None = None) -> str:
    """Return the node that is chosen."""
    checks = None if predicates is None else ImmediateChecks(predicates)
    node = choose_node(an_ask("ask"), iter(solutions), checks)
    assert isinstance(node, NodeChoice)
    return node.node_id


def test_without_a_say_of_the_rm_the_first_mild_solution_is_taken() -> None:
    """The solutions come with the fewest victims first."""
    assert chosen(a_solution("n2", a_victim("v1")), a_solution("n1", a_victim("v2"), a_victim("v3"))) == "n2"


def test_a_mild_solution_with_more_victims_is_better_than_a_hard_one() -> None:
    """Neither an originator nor what opted out goes where willing ones are enough."""
    hard = a_solution("n1", a_victim("v1", originator=True))
    harder = a_solution("n2", a_victim("v2", willing=False))
    mild = a_solution("n3", a_victim("v3"), a_victim("v4"))

    assert chosen(hard, harder, mild) == "n3"
    assert chosen(harder, hard) == "n1"
    assert chosen(harder) == "n2"


def test_a_hard_victim_that_is_only_spare_does_not_count() -> None:
    """It would not go."""
    spare = a_solution("n1", a_victim("v1"), a_victim("v2", originator=True), needed=1)

    assert chosen(spare, a_solution("n2", a_victim("v3"), a_victim("v4"))) == "n1"


def test_the_rm_may_refuse_a_node() -> None:
    """The next one is asked about."""
    predicates = NodePredicates(indexes={"n1": None})

    assert (
        chosen(a_solution("n1", a_victim("v1")), a_solution("n2", a_victim("v2")), predicates=predicates)
        == "n2"
    )
    assert ["n1", "n2"] == predicates.asked


def test_the_rm_may_want_more_gone() -> None:
    """Those are distinguished from the ones that are needed for room."""
    solution = a_solution("n1", a_victim("v1"), a_victim("v2"), a_victim("v3"), needed=1)
    node = choose_node(an_ask("ask"), iter([solution]), ImmediateChecks(NodePredicates(indexes={"n1": 1})))

    assert isinstance(node, NodeChoice)
    assert (["v1"], ["v2"]) == ([v.key for v in node.needed], [v.key for v in node.demanded])


def test_a_node_where_the_rm_wants_more_gone_may_lose_to_another() -> None:
    """What counts is how many go in the end."""
    first = a_solution("n1", a_victim("v1"), a_victim("v2"), a_victim("v3"), needed=1)
    second = a_solution("n2", a_victim("v4"), a_victim("v5"))

    assert chosen(first, second, predicates=NodePredicates(indexes={"n1": 2})) == "n2"


def test_an_answer_beyond_the_list_is_a_refusal() -> None:
    """There are no such victims."""
    assert (
        choose_node(
            an_ask("ask"),
            iter([a_solution("n1", a_victim("v1"))]),
            ImmediateChecks(NodePredicates({"n1": 1})),
        )
        is NoNode.REFUSED
    )


def test_a_node_that_needs_no_victims_is_checked_like_any_allocation() -> None:
    """There is no victim to judge with."""
    predicates = NodePredicates(refused={"n1"})

    assert chosen(a_solution("n1"), a_solution("n2"), predicates=predicates) == "n2"


def test_no_later_solution_is_asked_about_once_it_cannot_be_milder() -> None:
    """The RM is spared the questions."""
    predicates = NodePredicates()
    chosen(a_solution("n1", a_victim("v1")), a_solution("n2", a_victim("v2")), predicates=predicates)

    assert ["n1"] == predicates.asked


def test_a_batch_with_a_mild_solution_is_the_last() -> None:
    """Ten are compared; without a mild one among them the next ten are looked at."""
    hard = [a_solution(f"n{number}", a_victim("v", originator=True)) for number in range(SOLUTIONS_PER_BATCH)]
    mild = a_solution("mild", a_victim("v1"), a_victim("v2"))

    assert chosen(*hard, mild) == "mild"


def test_why_there_is_no_node_is_reported() -> None:
    """No victim would help, or the RM has refused all: that holds for this ask only."""
    assert choose_node(an_ask("ask"), iter(()), None) is NoNode.NO_ROOM
    assert (
        choose_node(
            an_ask("ask"),
            iter([a_solution("n1", a_victim("v"))]),
            ImmediateChecks(NodePredicates({"n1": None})),
        )
        is NoNode.REFUSED
    )
