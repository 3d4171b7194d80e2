"""Checks by predicates that the RM answers later, while the partition goes on.

What is not known is asked: a question for an ask is about the nodes that the search is likely to come to. The
questions of a cycle are sent at its end, in one batch. Until the answer has come the ask is passed over, in
all passes of the cycle, and at most `QUESTIONS_MAX` questions are open.

An ask is placed on the node on which predicates that answer at once would have it: the search walks the nodes
in the order of now, and where it comes to one that it has not asked about, it asks once more, about more
nodes. An answer says what the RM thought at one moment, so that it is kept for a short time:

* until the ask is placed, ends, is submitted again or is changed, or a node in it is created again;
* until the partition is idle: a cycle changes nothing, and no question is open. What was refused is asked
  again from the next cycle on, whatever the cause of that is;
* for `FRESH_NS`: as long as an ask waits that was refused everywhere, so that no refusal is repeated from
  memory when its time to be tried again has come.

Where many asks are refused everywhere, each waits for its turn to be asked about again, and the refusal holds
until then (`KeptRefusals`): cycles go on to the asks behind it.

A question that is not answered in time counts as a refusal of everything for as long.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from typing import Final, final

from ..nodes.order import NodeOrder
from ..resources.resource import Resource
from ..values.allocation import Ask
from ..values.predicate_questions import (
    NoAnswer,
    NodesAnswer,
    NumberedQuestion,
    PredicateAnswer,
    PredicateQuestion,
    PreemptionQuestion,
    VictimsAnswer,
)
from .host import QuestionChannel
from .kept_answers import Answers, KeptRefusals, refused_by
from .node_checks import CLASSES_MAX, PENDING_SEARCH, NodeSearch, Pending

__all__ = [
    "ASKS_KEPT_MAX",
    "FRESH_NS",
    "NODES_PER_STEP",
    "QUESTIONS_MAX",
    "ROUNDS_MAX",
    "DeferredChecks",
]

FRESH_NS: Final = 1_000_000_000
"""How long an answer is used."""
QUESTIONS_MAX: Final = 128
"""How many questions of a partition are open at most: then a cycle walks no further."""
ASKS_KEPT_MAX: Final = 4_096
"""For how many asks answers are kept; those of the first one are dropped to take in another one. How an
ask was refused everywhere is kept."""
NODES_PER_STEP: Final = 32
"""Questions are about multiples of so many nodes: those of one cycle share few lists of nodes."""
WIDENING: Final = 8
"""How many times more nodes than it knows the next question for an ask is about."""
ROUNDS_MAX: Final = 16
"""How often the RM is asked about victims for one ask while its answers are kept. Where the victims change
faster than it answers, the attempt fails, and is repeated as after any refusal."""


@final
class _Open:
    """A question that is open."""

    __slots__ = ("asked_ns", "node_ids", "predicate_class", "question")

    def __init__(
        self,
        question: PredicateQuestion | PreemptionQuestion,
        node_ids: frozenset[str],
        asked_ns: int,
        predicate_class: str,
    ) -> None:
        self.question = question
        self.node_ids = node_ids
        self.asked_ns = asked_ns
        self.predicate_class = predicate_class
        """The answer is for all asks of this class; the empty text: for the one ask."""


@final
class DeferredChecks:
    """The checks of one partition, with the questions that are open and the answers that are kept.

    Args:
        channel: The way to the RM.
        timeout_ns: How long the RM has for an answer.
        may_overtake: Whether an ask is placed while the answer about one that goes before it is pending.
            Otherwise the first answer that is pending ends the cycle.
    """

    def __init__(self, channel: QuestionChannel, timeout_ns: int, *, may_overtake: bool) -> None:
        self._channel = channel
        self.may_overtake: Final = may_overtake
        self._timeout_ns = timeout_ns
        self._no_answer = f"the resource manager gave no answer within {timeout_ns / 1e9:g} s"
        self._now_ns = 0
        self._cycle = 0
        self._number = 0
        self._open: dict[int, _Open] = {}
        """By number, the one that was asked first at the front."""
        self._open_by_key: dict[str, int] = {}
        """How many questions are open about an ask, if any."""
        self._unsent: list[NumberedQuestion] = []
        self._answers: dict[str, Answers] = {}
        """By the key of the ask, the one with the first answer at the front."""
        self._by_class: dict[str, Answers] = {}
        """The answers for classes of asks, which stay until the RM says that they change."""
        self._open_classes: Counter[str] = Counter()
        """How many questions are open about a class, if any."""
        self._refusals = KeptRefusals()
        self._windows: dict[tuple[Resource, int], tuple[tuple[str, ...], frozenset[str]]] = {}
        """The first nodes with room for a resource, as of this cycle."""
        self._passed_nodes = 0
        """How many refused nodes recent searches passed before the one that was allowed."""

    # ------------------------------------------------------------------------------------- a cycle

    @property
    def ends_cycle(self) -> bool:
        """Whether the cycle goes no further."""
        return self._is_full if self.may_overtake else bool(self._open)

    @property
    def _is_full(self) -> bool:
        return len(self._open) >= QUESTIONS_MAX

    def begin(self, now_ns: int) -> None:
        """Take the answers that have come, and drop what is too old."""
        self._now_ns = now_ns
        self._cycle += 1
        self._windows.clear()
        for answer in self._channel.take():
            self._take(answer)
        while self._open:
            number, first = next(iter(self._open.items()))
            if first.asked_ns + self._timeout_ns > now_ns:
                break
            self._fail(number)
        while self._answers:
            key, oldest = next(iter(self._answers.items()))
            if len(self._answers) <= ASKS_KEPT_MAX and oldest.since_ns + FRESH_NS > now_ns:
                break
            self._retire(key)
        self._refusals.begin(now_ns - FRESH_NS)

    def end(self, *, changed: bool) -> None:
        """Send the questions of the cycle."""
        if not changed and not self._open:
            for key in list(self._answers):
                self._retire(key)
            self._refusals.note_idle()
        if self._unsent:
            questions, self._unsent = self._unsent, []
            self._channel.ask(questions)

    def _retire(self, key: str) -> None:
        """Use the answers about an ask no more; where they refuse it everywhere, keep that."""
        answers = self._answers.pop(key)
        search, gains = answers.conclusion, answers.concluded_at
        if answers.unanswered:
            search = NodeSearch(None, {self._no_answer: 1}, self._no_answer)
        elif search is None:
            asked, refused = answers.nodes[True]
            if len(refused) == len(asked) > 0:
                search, gains = refused_by(list(refused.values())), -1  # Other nodes may have room already.
        if search is not None:
            self._refusals.keep(key, search, answers.since_ns, gains)

    def keys_to_skip(self) -> Collection[str]:
        """Return the keys of asks about which a question is open."""
        return self._open_by_key

    # ---------------------------------------------------------------------------------- the checks

    def first_allowed(self, ask: Ask, nodes: NodeOrder, *, without: Collection[str] = ()) -> NodeSearch:
        """Search by what is known; ask if it is not enough."""
        answers = self._known(ask)
        if answers is None:
            kept = self._kept(ask, nodes.gains)
            if kept is not None:
                return kept
            self._ask_about_first(ask, nodes, None, 0)
            return PENDING_SEARCH
        if answers.unanswered:
            return NodeSearch(None, {self._no_answer: 1}, self._no_answer)
        concluded = answers.concluded(ask, nodes)
        if concluded is not None:
            return concluded
        asked, refused = answers.nodes[True]
        passed = 0
        for node in nodes.fitting(ask.resource, refused):
            if node.node_id in refused:
                passed += 1
            elif node.node_id not in asked:
                self._ask_about_first(ask, nodes, answers, passed)
                return PENDING_SEARCH
            elif node.node_id not in without:
                self._passed_nodes = max(passed, self._passed_nodes * 7 // 8)
                refusals = Counter(refused.values())
                return NodeSearch(node, refusals, next(reversed(refusals), ""))
        return answers.conclude(ask, nodes)

    def refuse(self, ask: Ask, node_id: str, *, allocate: bool) -> str | Pending | None:
        """Return what is known; it does not ask."""
        answers = self._known(ask)
        if answers is None:
            kept = self._kept(ask, None)
            return Pending.PENDING if kept is None else kept.denied
        return self._no_answer if answers.unanswered else answers.find(node_id, allocate=allocate)

    def ask_about(self, ask: Ask, node_ids: Sequence[str], *, allocate: bool) -> None:
        """Ask about nodes."""
        if not self._must_not_ask(ask):
            names = tuple(node_ids)
            question = PredicateQuestion(ask.allocation_key, names, allocate)
            self._ask(question, frozenset(names), ask.predicate_class)

    def _known(self, ask: Ask) -> Answers | None:
        """Return what is known about an ask, or about its class."""
        answers = self._answers.get(ask.allocation_key)
        if ask.predicate_class and (answers is None or not answers.unanswered):
            return self._by_class.get(ask.predicate_class)
        return answers

    def _kept(self, ask: Ask, gains: int | None) -> NodeSearch | None:
        """Return how an ask without a class is refused for now."""
        return (
            None if ask.predicate_class else self._refusals.find(ask.allocation_key, gains, len(self._open))
        )

    def _must_not_ask(self, ask: Ask) -> bool:
        """Return whether too many questions are open, or another one about the class of the ask."""
        return self._is_full or ask.predicate_class in self._open_classes

    def preemption_index(
        self, allocation_key: str, node_id: str, victim_keys: tuple[str, ...], start_index: int
    ) -> int | Pending | None:
        """Return what is known, or ask."""
        question = PreemptionQuestion(allocation_key, node_id, victim_keys, start_index)
        answers = self._answers.get(allocation_key)
        if answers is not None:
            if answers.unanswered:
                return None
            if question in answers.victims:
                return answers.victims[question]
            if answers.last_round != self._cycle:
                answers.last_round = self._cycle
                answers.rounds += 1
            if answers.rounds > ROUNDS_MAX:
                return None
        if not self._is_full:
            self._ask(question, frozenset((node_id,)))
        return Pending.PENDING

    # ------------------------------------------------------------------------------------- changes

    def forget(self, *, keys: Iterable[str] = (), node_ids: Collection[str] = ()) -> None:
        """Drop the answers and the open questions about asks and nodes."""
        for key in keys:
            self._answers.pop(key, None)
            self._refusals.drop(key)
            if key in self._open_by_key:
                self._close_all(n for n, each in self._open.items() if each.question.allocation_key == key)
        if node_ids:
            for key in [key for key, answers in self._answers.items() if answers.is_about(node_ids)]:
                del self._answers[key]
            for answers in self._by_class.values():
                answers.drop(node_ids)
            self._close_all(n for n, each in self._open.items() if not each.node_ids.isdisjoint(node_ids))

    def reconsider(
        self, *, keys: Collection[str], node_ids: Collection[str], classes: Collection[str]
    ) -> None:
        """Drop answers and open questions about asks, nodes and classes; all of them if none is named."""
        if not (keys or node_ids or classes):
            self._answers.clear()
            self._by_class.clear()
            self._close_all([*self._open])
        self.forget(keys=keys, node_ids=node_ids)
        for name in classes:
            self._by_class.pop(name, None)
        self._close_all(n for n, each in self._open.items() if each.predicate_class in classes)
        if not keys and not classes:  # A node that was refused may be allowed now.
            self._refusals = KeptRefusals()

    def next_due_ns(self) -> int | None:
        """Return when the first open question counts as refused."""
        for first in self._open.values():
            return first.asked_ns + self._timeout_ns
        return None

    # ------------------------------------------------------------------------ questions and answers

    def _ask_about_first(self, ask: Ask, nodes: NodeOrder, answers: Answers | None, passed: int) -> None:
        """Ask about the first nodes with room, more the more asks will be placed before this one."""
        if self._must_not_ask(ask):
            return
        count = NODES_PER_STEP // 2 + self._passed_nodes + len(self._open)
        if answers is not None:
            count = max(count, WIDENING * (passed + 1))
        names, as_set = self._window(ask.resource, nodes, count)
        if answers is not None:
            asked, _ = answers.nodes[True]
            names = tuple(name for name in names if name not in asked)
            as_set = frozenset(names)
        question = PredicateQuestion(ask.allocation_key, names, allocate=True)
        self._ask(question, as_set, ask.predicate_class)

    def _window(
        self, resource: Resource, nodes: NodeOrder, count: int
    ) -> tuple[tuple[str, ...], frozenset[str]]:
        size = -(-count // NODES_PER_STEP) * NODES_PER_STEP
        window = self._windows.get((resource, size))
        if window is None:
            names = tuple(node.node_id for node in islice(nodes.fitting(resource), size))
            window = self._windows[resource, size] = names, frozenset(names)
        return window

    def _ask(
        self,
        question: PredicateQuestion | PreemptionQuestion,
        node_ids: frozenset[str],
        predicate_class: str = "",
    ) -> None:
        self._number += 1
        key = question.allocation_key
        self._open[self._number] = _Open(question, node_ids, self._now_ns, predicate_class)
        if predicate_class:
            self._open_classes[predicate_class] += 1
        self._open_by_key[key] = self._open_by_key.get(key, 0) + 1
        self._unsent.append(NumberedQuestion(self._number, question))

    def _take(self, answer: PredicateAnswer) -> None:
        """Keep an answer; one to a question that is not open any more is dropped."""
        asked = self._open.get(answer.number)
        if asked is None:
            return
        question = asked.question
        if isinstance(answer, NoAnswer):
            self._fail(answer.number)
            return
        self._close(answer.number)
        store, key = self._answers, question.allocation_key
        if asked.predicate_class:
            store, key = self._by_class, asked.predicate_class
            if key not in store and len(store) >= CLASSES_MAX:
                del store[next(iter(store))]
        answers = store.get(key)
        if answers is None:
            self._refusals.drop(question.allocation_key)
            answers = store[key] = Answers(self._now_ns)
        if isinstance(question, PreemptionQuestion):
            assert isinstance(answer, VictimsAnswer), f"{question} got {answer}: please report"
            answers.victims[question] = answer.index
        else:
            assert isinstance(answer, NodesAnswer), f"{question} got {answer}: please report"
            answers.add(asked.node_ids, answer.refused, allocate=question.allocate)

    def _fail(self, number: int) -> None:
        """Close a question without an answer: all that is asked about the ask counts as refused."""
        key = self._close(number).question.allocation_key
        self._answers.pop(key, None)
        self._refusals.drop(key)
        failed = self._answers[key] = Answers(self._now_ns)
        failed.unanswered = True

    def _close(self, number: int) -> _Open:
        closed = self._open.pop(number)
        key = closed.question.allocation_key
        self._open_by_key[key] -= 1
        if not self._open_by_key[key]:
            del self._open_by_key[key]
        if closed.predicate_class:
            self._open_classes[closed.predicate_class] -= 1
            self._open_classes += Counter()  # Without those that have none left.
        return closed

    def _close_all(self, numbers: Iterable[int]) -> None:
        closed = set(numbers)
        for number in closed:
            self._close(number)
        self._unsent = [each for each in self._unsent if each.number not in closed]
