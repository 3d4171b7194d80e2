"""What is asked of an RM that answers later, and how long its answers are kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from support.model.builders import FakeChannel, a_node, a_resource, an_ask

from licorne.model.nodes.entry import NodeEntry
from licorne.model.nodes.node_orders import NODE_ORDERS
from licorne.model.nodes.order import NodeOrder
from licorne.model.predicates.deferred_checks import (
    ASKS_KEPT_MAX,
    FRESH_NS,
    NODES_PER_STEP,
    ROUNDS_MAX,
    DeferredChecks,
)
from licorne.model.predicates.kept_answers import AGAIN_MAX
from licorne.model.predicates.node_checks import QUESTIONS_MAX, Pending, many_questions, one_question
from licorne.model.values.messages import NodesAnswer, PredicateQuestion

ONE = a_resource(memory=1)


class Checks:
    """Checks on nodes, and the RM that is asked; each `cycle` takes what was answered and sends the rest."""

    def __init__(self, nodes: int = 4, *, open_max: Callable[[], int] = many_questions) -> None:
        self.channel = FakeChannel()
        self.checks = DeferredChecks(self.channel, 2_000_000_000, open_max=open_max)
        self.nodes = NodeOrder(NODE_ORDERS["fair"], {})
        for number in range(nodes):
            self.add(f"n{number:03}")
        self.checks.begin(0)

    def add(self, node_id: str) -> None:
        capacity = a_resource(memory=100)
        node = a_node(node_id, capacity=capacity)
        self.nodes.add(NodeEntry(node, node_id, "", capacity, schedulable=True, attributes={}))

    def cycle(self, now_ns: int = 0, *, answers: bool = True) -> None:
        self.checks.end(changed=True)
        if answers:
            self.channel.answer()
        self.checks.begin(now_ns)

    def search(self, key: str) -> str | None:
        """Return the node that is found, the empty text if all are refused, `None` if that is pending."""
        search = self.checks.first_allowed(an_ask(key, resource=ONE), self.nodes)
        if search.pending:
            return None
        return "" if search.node is None else search.node.node_id

    def walk(self, keys: Sequence[str]) -> list[str]:
        """Search for asks in order, as a cycle does; return those that it came to."""
        skipped, reached = self.checks.keys_to_skip(), []
        for key in keys:
            if key not in skipped:
                reached.append(key)
                if self.search(key) is None and self.checks.ends_cycle:
                    break
        return reached

    def refuse_everywhere(self, keys: Sequence[str]) -> None:
        self.channel.predicates.refused.update(
            {(key, node.node_id): "it has a taint" for key in keys for node in self.nodes}
        )

    def learn(self, keys: Sequence[str], now_ns: int = 0) -> int:
        """Walk until nothing is pending; return how many cycles that took."""
        for cycle in range(10_000):
            self.walk(keys)
            if not self.checks.keys_to_skip():
                return cycle
            self.cycle(now_ns)
        raise AssertionError("the RM is asked for ever")

    def learn_by_batches(self, keys: Sequence[str]) -> None:
        """Have asks refused, as many at a time as may be asked about, without coming back to earlier ones."""
        for start in range(0, len(keys), QUESTIONS_MAX):
            batch = keys[start : start + QUESTIONS_MAX]
            for key in batch:
                self.search(key)
            self.cycle()
            for key in batch:
                assert "" == self.search(key)

    def asked(self, number: int = -1) -> list[tuple[str, int]]:
        """Return the asks of a batch, and about how many nodes each question is."""
        questions = [each.question for each in self.channel.batches[number]]
        return [(q.allocation_key, len(q.node_ids)) for q in questions if isinstance(q, PredicateQuestion)]


def test_later_questions_of_a_cycle_are_about_more_nodes() -> None:
    """Those before may take the first ones; and questions share their lists of nodes."""
    scene = Checks(100)
    for number in range(40):
        assert scene.search(f"a{number}") is None
    scene.cycle()

    assert [32] * 17 + [64] * 23 == [count for _, count in scene.asked()]
    questions = [each.question for each in scene.channel.batches[0]]
    assert 2 == len({id(each.node_ids) for each in questions if isinstance(each, PredicateQuestion)})


def test_questions_are_about_more_nodes_where_more_were_refused() -> None:
    """As many as the last search passed, which is forgotten little by little."""
    scene = Checks(200)
    scene.channel.predicates.refused.update({("a", f"n{number:03}"): "no" for number in range(50)})
    scene.search("a")
    scene.cycle()
    assert scene.search("a") is None
    scene.cycle()
    assert "n050" == scene.search("a")
    scene.search("b")
    scene.cycle()

    assert [("b", -(-66 // NODES_PER_STEP) * NODES_PER_STEP)] == scene.asked()
    for _ in range(60):
        assert "n000" == scene.search("b")
    scene.search("c")
    scene.cycle()
    assert [("c", NODES_PER_STEP)] == scene.asked()


def test_an_answer_that_was_taken_is_dropped_with_its_node() -> None:
    """As soon as one of its name is created."""
    scene = Checks()
    scene.search("a")
    scene.cycle()
    assert "n000" == scene.search("a")
    scene.checks.forget(node_ids={"n003"})

    assert scene.search("a") is None


def test_an_answer_that_was_taken_is_dropped_with_its_ask() -> None:
    """Those about others are kept."""
    scene = Checks()
    scene.search("a")
    scene.search("b")
    scene.cycle()
    scene.checks.forget(keys=["a"])

    assert (None, "n000") == (scene.search("a"), scene.search("b"))


def test_an_ask_that_was_refused_everywhere_is_searched_for_again_when_a_node_may_have_room() -> None:
    """Not before that, which would take time for nothing."""
    scene = Checks(2)
    scene.channel.predicates.refused.update({("a", name): f"no {name}" for name in ("n000", "n001")})
    scene.search("a")
    scene.cycle()
    first = scene.checks.first_allowed(an_ask("a", resource=ONE), scene.nodes)
    assert ({"no n000": 1, "no n001": 1}, "no n001") == (first.refusals, first.denied)
    assert first is scene.checks.first_allowed(an_ask("a", resource=ONE), scene.nodes)
    scene.add("n002")

    assert scene.search("a") is None


def test_a_search_without_a_node_says_nothing_of_one_with_it() -> None:
    """That node may be allowed; and while it is left out nothing is said of it."""
    scene = Checks(3)
    scene.channel.predicates.refused.update({("a", name): f"no {name}" for name in ("n000", "n002")})
    scene.search("a")
    scene.cycle()
    found = scene.checks.first_allowed(an_ask("a", resource=ONE), scene.nodes, without={"n000", "n001"})

    assert (None, {"no n002": 1}, "no n002") == (found.node, found.refusals, found.denied)
    assert "n001" == scene.search("a")


def test_the_answers_for_so_many_asks_are_kept() -> None:
    """Those of the first ones go to make room."""
    scene = Checks(1)
    for number in range(ASKS_KEPT_MAX + 3):
        scene.checks.ask_about(an_ask(f"a{number}"), ["n000"], allocate=True)
        if number % 100 == 99:
            scene.cycle()
    scene.cycle()
    known = [
        number
        for number in range(ASKS_KEPT_MAX + 3)
        if scene.checks.refuse(an_ask(f"a{number}"), "n000", allocate=True) is None
    ]

    assert list(range(3, ASKS_KEPT_MAX + 3)) == known


def test_a_reservation_is_another_question_than_a_placement() -> None:
    """An answer to one says nothing of the other."""
    scene = Checks()
    scene.channel.predicates.unreservable["a", "n000"] = "full"
    scene.checks.ask_about(an_ask("a"), ["n000"], allocate=False)
    scene.cycle()

    assert "full" == scene.checks.refuse(an_ask("a"), "n000", allocate=False)
    assert Pending.PENDING is scene.checks.refuse(an_ask("a"), "n000", allocate=True)


def test_victims_that_change_faster_than_the_rm_answers_are_given_up() -> None:
    """Otherwise the partition would decide about them for ever."""
    scene = Checks()
    outcomes = []
    for number in range(ROUNDS_MAX + 3):
        outcomes.append(scene.checks.preemption_index(an_ask("a"), "n000", (f"v{number}",), 0))
        scene.cycle()

    assert [Pending.PENDING] * (ROUNDS_MAX + 1) + [None, None] == outcomes
    assert 0 == scene.checks.preemption_index(an_ask("a"), "n000", ("v0",), 0)


def test_questions_about_victims_in_one_cycle_are_one_round() -> None:
    """However many nodes they are about."""
    scene = Checks()
    for cycle in range(ROUNDS_MAX):
        for number in range(5):
            index = scene.checks.preemption_index(an_ask("a"), "n000", (f"v{cycle}-{number}",), 0)
            assert Pending.PENDING is index
        scene.cycle()


def test_an_ask_without_an_answer_is_refused_everything_for_a_second() -> None:
    """Nodes, reservations and victims; then it is asked again."""
    scene = Checks()
    scene.search("a")
    scene.cycle(answers=False)
    scene.checks.begin(2_000_000_000)
    reason = "the resource manager gave no answer within 2 s"
    assert "" == scene.search("a")
    assert reason == scene.checks.refuse(an_ask("a"), "n003", allocate=False)
    assert scene.checks.preemption_index(an_ask("a"), "n000", ("v",), 0) is None
    scene.checks.begin(2_999_999_999)
    assert "" == scene.search("a")
    scene.checks.begin(3_000_000_000)

    assert scene.search("a") is None


def names(count: int) -> list[str]:
    return [f"a{number:04}" for number in range(count)]


def test_asks_that_are_refused_everywhere_do_not_keep_those_behind_them_from_being_asked_about() -> None:
    """However many there are, and however often they are asked about again."""
    scene = Checks()
    refused = names(3 * QUESTIONS_MAX)
    scene.refuse_everywhere(refused)
    scene.learn(refused)
    for number in range(1, 20):
        scene.cycle(number * FRESH_NS)
        reached = scene.walk([*refused, f"new{number}"])
        assert f"new{number}" == reached[-1]
        assert f"new{number}" in scene.checks.keys_to_skip()
        assert len(scene.checks.keys_to_skip()) <= AGAIN_MAX + 1


def test_refused_asks_are_asked_about_again_in_turn() -> None:
    """Also the last one, where the first ones are too old again before its turn has come."""
    scene = Checks()
    refused = names(3 * QUESTIONS_MAX)
    scene.refuse_everywhere(refused)
    scene.learn(refused)
    first = len(scene.channel.batches)
    for number in range(1, 2 + len(refused) // AGAIN_MAX):
        scene.cycle(number * FRESH_NS)
        scene.walk(refused)
    scene.cycle()

    again = [key for number in range(first, len(scene.channel.batches)) for key, _ in scene.asked(number)]
    assert set(refused) == set(again)
    assert max(again.count(key) for key in again) <= 2


@pytest.mark.parametrize("open_max", [one_question, many_questions])
def test_the_refusals_of_more_asks_hold_than_answers_are_kept_for(*, open_max: Callable[[], int]) -> None:
    """Otherwise the first ones would be asked about for ever, and the last ones never."""
    scene = Checks(1, open_max=open_max)
    refused = names(ASKS_KEPT_MAX + 2 * QUESTIONS_MAX)
    scene.refuse_everywhere(refused)
    scene.learn_by_batches(refused[:ASKS_KEPT_MAX])

    scene.learn(refused)

    assert len(refused) == sum(len(batch) for batch in scene.channel.batches)


def test_the_refusals_of_more_asks_than_answers_are_kept_for_get_old_as_others() -> None:
    """Also where the partition is never idle, and no node gains room."""
    scene = Checks(1)
    refused = names(ASKS_KEPT_MAX + 1)
    scene.refuse_everywhere(refused)
    scene.learn_by_batches(refused)
    scene.cycle(FRESH_NS - 1)
    assert "" == scene.search(refused[0])
    scene.cycle(FRESH_NS)

    assert scene.search(refused[0]) is None


def test_the_refusals_for_one_node_hold_as_well() -> None:
    """Of asks that can run on one node only."""
    scene = Checks(1)
    keys = names(ASKS_KEPT_MAX + 10)
    scene.refuse_everywhere(keys)
    for number, key in enumerate(keys):
        scene.checks.ask_about(an_ask(key), ["n000"], allocate=True)
        if number % 100 == 99:
            scene.cycle()
    scene.cycle()

    assert {"it has a taint"} == {scene.checks.refuse(an_ask(key), "n000", allocate=True) for key in keys}


@pytest.mark.parametrize("open_max", [one_question, many_questions])
def test_an_idle_partition_asks_about_refused_asks_again(*, open_max: Callable[[], int]) -> None:
    """The RM may have changed its mind."""
    scene = Checks(open_max=open_max)
    scene.refuse_everywhere(["a"])
    scene.learn(["a"])
    assert "" == scene.search("a")
    scene.checks.end(changed=False)
    scene.channel.predicates.refused.clear()
    scene.checks.begin(0)
    assert scene.search("a") is None
    scene.cycle()

    assert "n000" == scene.search("a")


def test_an_ask_that_has_changed_is_not_refused_from_memory() -> None:
    """It is another one."""
    scene = Checks()
    refused = names(2 * AGAIN_MAX)
    scene.refuse_everywhere(refused)
    scene.learn(refused)
    scene.cycle(FRESH_NS)
    scene.walk(refused)
    assert "" == scene.search(refused[-1])
    scene.checks.forget(keys=[refused[-1]])

    assert scene.search(refused[-1]) is None


def test_a_node_that_may_have_room_has_refused_asks_asked_about_again() -> None:
    """Those whose answers are kept no longer, as the others."""
    scene = Checks(1)
    refused = names(ASKS_KEPT_MAX + 1)
    scene.refuse_everywhere(refused)
    scene.learn_by_batches(refused)
    assert "" == scene.search(refused[0])
    scene.add("n001")

    assert scene.search(refused[0]) is None


def test_an_answer_may_be_about_the_first_nodes_of_its_question() -> None:
    """If one of those takes the ask no more, the RM is asked about the ones behind them."""
    scene = Checks()
    assert scene.search("a") is None
    scene.cycle(answers=False)
    scene.channel.add(NodesAnswer(scene.channel.open[0].number, {"n000": "it has a taint"}, 2))
    scene.cycle(answers=False)
    assert "n001" == scene.search("a")

    node = scene.nodes.get("n001")
    assert node is not None
    scene.nodes.set_schedulable(node, schedulable=False)
    assert scene.search("a") is None
    scene.cycle(answers=False)
    assert PredicateQuestion("a", ("n002", "n003"), allocate=True) == scene.channel.batches[-1][0].question
