"""Checks by predicates that the RM answers later, while the partition goes on.

Missing answers are asked for: a question for an ask is about the nodes that the search is likely to reach.
The questions of a cycle are sent at its end, in one batch. Until the answer has come the ask is passed over,
in all passes of the cycle, and at most `QUESTIONS_MAX` questions are open.

An ask is placed on the node on which predicates that answer at once would have it: the search walks the nodes
in the order of now, and where it comes to one that it has not asked about, it asks once more, about more
nodes. An answer is the RM's decision at one moment, so it is kept for a short time:

* until the ask is placed, ends, is submitted again or is changed, or a node in it is created again;
* until the partition is idle: a cycle changes nothing, and no question is open. Refused nodes are asked about
  again from the next cycle on, whatever the cause of that is;
* for `FRESH_NS`: as long as an ask waits that was refused everywhere, so that no refusal is repeated from
  memory when its time to be tried again has come.

Where many asks are refused everywhere, each waits for its turn to be asked about again, and the refusal holds
until then (`KeptRefusals`): cycles go on to the asks behind it.

A question that is not answered in time counts as a refusal of everything for as long.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import islice
from typing import Final, final

from ..nodes.class_orders import OrderedNodes
from ..resources.resource import Resource
from ..values.allocation import Ask
from ..values.messages import (
    NoAnswer,
    NodesAnswer,
    PredicateAnswer,
    PredicateQuestion,
    PreemptionQuestion,
    VictimsAnswer,
)
from .kept_answers import KeptAnswers, KeptRefusals, OpenQuestions, refused_by
from .node_checks import CLASSES_MAX, PENDING_SEARCH, NodeSearch, Pending, QuestionChannel, many_questions

FRESH_NS: Final = 1_000_000_000
"""How long an answer is used."""
ASKS_KEPT_MAX: Final = 4_096
"""For how many asks answers are kept; those of the first one are dropped to take in another one. How an
ask was refused everywhere is kept."""
NODES_PER_STEP: Final = 32
"""Questions are about multiples of this number of nodes: those of one cycle share few lists of nodes."""
WIDENING: Final = 8
"""How many times more nodes than it knows the next question for an ask is about."""
ROUNDS_MAX: Final = 16
"""How often the RM is asked about victims for one ask while its answers are kept. Where the victims change
faster than it answers, the attempt fails, and is repeated as after any refusal."""


@final
class DeferredChecks:
    """The checks of one partition, with the questions that are open and the answers that are kept.

    Args:
        channel: The way to the RM.
        timeout_ns: How long the RM has for an answer.
        open_max: Returns with how many open questions a cycle goes no further. With more than one an ask may
            be placed while the answer about one that goes before it is pending.
    """

    answers_later: Final = True

    def __init__(
        self, channel: QuestionChannel, timeout_ns: int, open_max: Callable[[], int] = many_questions
    ) -> None:
        self._channel = channel
        self._open_max = open_max
        self._timeout_ns = timeout_ns
        self._no_answer = f"the resource manager gave no answer within {timeout_ns / 1e9:g} s"
        self._now_ns = 0
        self._cycle = 0
        self._open = OpenQuestions()
        self._answers: dict[str, KeptAnswers] = {}
        """By the key of the ask, the one with the first answer at the front."""
        self._by_class: dict[str, KeptAnswers] = {}
        """The answers for classes of asks, which stay until the RM reports that they change."""
        self._refusals = KeptRefusals()
        self._windows: dict[tuple[str, Resource, int], tuple[tuple[str, ...], frozenset[str]]] = {}
        """The first nodes with room for a resource, as of this cycle."""
        self._passed_nodes = 0
        """How many refused nodes recent searches passed before the one that was allowed."""

    # ------------------------------------------------------------------------------------- a cycle

    @property
    def ends_cycle(self) -> bool:
        """Whether the cycle goes no further."""
        return len(self._open) >= self._open_max()

    @property
    def may_overtake(self) -> bool:
        """Whether an ask may be placed while the answer about one that goes before it is pending."""
        return self._open_max() > 1

    def begin(self, now_ns: int) -> None:
        """Take the answers that have come, and drop what is too old."""
        self._now_ns = now_ns
        self._cycle += 1
        self._windows.clear()
        for answer in self._channel.take():
            self._take(answer)
        while (first := self._open.first) is not None and first.asked_ns + self._timeout_ns <= now_ns:
            self._fail(first.number)
        while self._answers:
            key, oldest = next(iter(self._answers.items()))
            if len(self._answers) <= ASKS_KEPT_MAX and oldest.since_ns + FRESH_NS > now_ns:
                break
            self._retire(key)
        self._refusals.begin(now_ns - FRESH_NS)

    def end(self, *, changed: bool) -> None:
        """Send the questions of the cycle."""
        if not changed and not len(self._open):
            for key in list(self._answers):
                self._retire(key)
            self._refusals.note_idle()
        questions = self._open.take_unsent()
        if questions:
            self._channel.ask(questions)

    def _retire(self, key: str) -> None:
        """Stop using the answers about an ask; if they refuse it everywhere, keep that."""
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
        return self._open.keys

    # ---------------------------------------------------------------------------------- the checks

    def first_allowed(self, ask: Ask, nodes: OrderedNodes, *, without: Collection[str] = ()) -> NodeSearch:
        """Search by what is known; ask if it is not enough."""
        answers = self._known(ask)
        if answers is None:
            kept = self._refusals.find(ask, nodes.gains, len(self._open))
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
        return answers.conclude(ask, nodes, without)

    def refuse(self, ask: Ask, node_id: str, *, allocate: bool) -> str | Pending | None:
        """Return what is known; it does not ask."""
        answers = self._known(ask)
        if answers is None:
            kept = self._refusals.find(ask, None, len(self._open))
            return Pending.PENDING if kept is None else kept.denied
        return self._no_answer if answers.unanswered else answers.find(node_id, allocate=allocate)

    def ask_about(self, ask: Ask, node_ids: Sequence[str], *, allocate: bool) -> None:
        """Ask about nodes."""
        if not self._must_not_ask(ask):
            names = tuple(node_ids)
            question = PredicateQuestion(ask.allocation_key, names, allocate)
            self._open.add(question, frozenset(names), self._now_ns, ask.predicate_class)

    def _known(self, ask: Ask) -> KeptAnswers | None:
        """Return what is known about an ask, or about its class."""
        answers = self._answers.get(ask.allocation_key)
        if ask.predicate_class and (answers is None or not answers.unanswered):
            return self._by_class.get(ask.predicate_class)
        return answers

    def _must_not_ask(self, ask: Ask) -> bool:
        """Return whether too many questions are open, or another one about the class of the ask."""
        return self._open.are_full or self._open.are_about_class(ask.predicate_class)

    def preemption_index(
        self, ask: Ask, node_id: str, victim_keys: tuple[str, ...], start_index: int
    ) -> int | Pending | None:
        """Return what is known, or ask."""
        allocation_key = ask.allocation_key
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
        if not self._open.are_full:
            self._open.add(question, frozenset((node_id,)), self._now_ns, "")
        return Pending.PENDING

    # ------------------------------------------------------------------------------------- changes

    def forget(
        self, *, keys: Iterable[str] = (), node_ids: Collection[str] = (), gone: Collection[str] = ()
    ) -> None:
        """Drop the answers and the open questions about asks and nodes."""
        asked = set()
        for key in keys:
            self._answers.pop(key, None)
            self._refusals.drop(key)
            if key in self._open.keys:
                asked.add(key)
        if asked:
            self._open.close_where(lambda each: each.question.allocation_key in asked)
        if node_ids:
            for key in [key for key, answers in self._answers.items() if answers.is_about(node_ids)]:
                del self._answers[key]
            self._open.close_where(lambda each: not each.node_ids.isdisjoint(node_ids))
        if node_ids or gone:
            for answers in self._by_class.values():
                answers.drop({*node_ids, *gone})

    def reconsider(
        self, *, keys: Collection[str], node_ids: Collection[str], classes: Collection[str]
    ) -> None:
        """Drop answers and open questions about asks, nodes and classes; by default all of them."""
        if not (keys or node_ids or classes):
            self._answers.clear()
            self._by_class.clear()
            self._open.close_where(lambda _: True)
        self.forget(keys=keys, node_ids=node_ids)
        for name in classes:
            self._by_class.pop(name, None)
        self._open.close_where(lambda each: each.predicate_class in classes)
        if not keys and not classes:  # A node that was refused may be allowed now.
            self._refusals = KeptRefusals()

    def next_due_ns(self) -> int | None:
        """Return when the first open question counts as refused."""
        first = self._open.first
        return None if first is None else first.asked_ns + self._timeout_ns

    # ------------------------------------------------------------------------ questions and answers

    def _ask_about_first(
        self, ask: Ask, nodes: OrderedNodes, answers: KeptAnswers | None, passed: int
    ) -> None:
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
        self._open.add(question, as_set, self._now_ns, ask.predicate_class)

    def _window(
        self, resource: Resource, nodes: OrderedNodes, count: int
    ) -> tuple[tuple[str, ...], frozenset[str]]:
        size = -(-count // NODES_PER_STEP) * NODES_PER_STEP
        window = self._windows.get((nodes.ask_class, resource, size))
        if window is None:
            names = tuple(node.node_id for node in islice(nodes.fitting(resource), size))
            window = self._windows[nodes.ask_class, resource, size] = names, frozenset(names)
        return window

    def _take(self, answer: PredicateAnswer) -> None:
        """Keep an answer; one to a question that is no longer open is dropped."""
        if isinstance(answer, NoAnswer):
            self._fail(answer.number)
            return
        asked = self._open.close(answer.number)
        if asked is None:
            return
        question = asked.question
        store, key = self._answers, question.allocation_key
        if asked.predicate_class:
            store, key = self._by_class, asked.predicate_class
            if key not in store and len(store) >= CLASSES_MAX:
                del store[next(iter(store))]
        answers = store.get(key)
        if answers is None:
            self._refusals.drop(question.allocation_key)
            answers = store[key] = KeptAnswers(self._now_ns)
        if isinstance(question, PreemptionQuestion):
            assert isinstance(answer, VictimsAnswer), f"{question} got {answer}: please report"
            answers.victims[question] = answer.index
        else:
            assert isinstance(answer, NodesAnswer), f"{question} got {answer}: please report"
            node_ids = asked.node_ids
            if answer.asked is not None:
                node_ids = frozenset(question.node_ids[: answer.asked])
            answers.add(node_ids, answer.refused, allocate=question.allocate)

    def _fail(self, number: int) -> None:
        """Close a question without an answer: all that is asked about the ask counts as refused."""
        asked = self._open.close(number)
        if asked is None:
            return
        key = asked.question.allocation_key
        self._answers.pop(key, None)
        self._refusals.drop(key)
        failed = self._answers[key] = KeptAnswers(self._now_ns)
        failed.unanswered = True
