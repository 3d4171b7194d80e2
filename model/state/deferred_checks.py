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
from collections.abc import Collection, Iterable, Mapping, Sequence
from heapq import nsmallest
from itertools import islice
from typing import Final, NamedTuple, final

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
from .node_checks import PENDING_SEARCH, NodeSearch, Pending

__all__ = [
    "AGAIN_MAX",
    "ASKS_KEPT_MAX",
    "FRESH_NS",
    "NODES_PER_STEP",
    "QUESTIONS_MAX",
    "ROUNDS_MAX",
    "DeferredChecks",
]

AGAIN_MAX: Final = 32
"""How many questions are open at most when one is asked again: the others are for asks that are new."""


class _Refusal(NamedTuple):
    """How an ask was refused everywhere."""

    search: NodeSearch
    since_ns: int
    gains: int
    """Those of the node order at that time: with more of them another node may have room."""
    idle_count: int
    """How often the partition had been idle at that time."""


@final
class KeptRefusals:
    """The refusals of one partition."""

    def __init__(self) -> None:
        self._by_key: dict[str, _Refusal] = {}
        self._idle_count = 0
        self._old_ns = 0
        """Refusals up to then are too old."""
        self._missed: dict[str, int] = {}
        """The asks that this cycle came to and did not ask about, with the times of their refusals."""
        self._chosen: Collection[str] | None = None
        """Those whose turn it is in this cycle, `None` if it is any that comes first."""

    def begin(self, old_ns: int) -> None:
        """Begin a cycle, in which refusals up to `old_ns` are too old: choose whom to ask about again."""
        self._old_ns = old_ns
        missed, self._missed = self._missed, {}
        self._chosen = frozenset(nsmallest(AGAIN_MAX, missed, key=missed.__getitem__)) if missed else None

    def note_idle(self) -> None:
        """Note that the partition is idle: all are to be asked about again."""
        self._idle_count += 1

    def keep(self, key: str, search: NodeSearch, since_ns: int, gains: int) -> None:
        """Keep how an ask was refused."""
        self._by_key[key] = _Refusal(search, since_ns, gains, self._idle_count)

    def drop(self, key: str) -> None:
        """Forget an ask: the RM has answered about it, or it has changed."""
        self._by_key.pop(key, None)

    def find(self, key: str, gains: int | None, open_count: int) -> NodeSearch | None:
        """Return how an ask is refused for now, `None` if the RM is to be asked.

        Args:
            key: The key of the ask.
            gains: Those of the node order now; `None` if one node alone is meant.
            open_count: How many questions are open.
        """
        refusal = self._by_key.get(key)
        if refusal is None:
            return None
        is_old = refusal.since_ns <= self._old_ns or refusal.idle_count != self._idle_count
        if not is_old and gains in (None, refusal.gains):
            return refusal.search
        if open_count < AGAIN_MAX and (self._chosen is None or key in self._chosen):
            return None
        self._missed[key] = refusal.since_ns
        return refusal.search


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


_NONE: Final[tuple[frozenset[str], Mapping[str, str]]] = (frozenset(), {})


@final
class _Answers:
    """What the RM has answered about one ask."""

    __slots__ = (
        *("concluded_at", "conclusion", "last_round", "nodes", "rounds", "since_ns", "unanswered", "victims"),
    )

    def __init__(self, since_ns: int) -> None:
        self.since_ns = since_ns
        self.nodes: dict[bool, tuple[frozenset[str], Mapping[str, str]]] = {True: _NONE, False: _NONE}
        """For a placement, and for a reservation: the nodes that were asked about, and those refused."""
        self.victims: dict[PreemptionQuestion, int | None] = {}
        self.rounds = 0
        """In how many cycles questions about victims followed these answers."""
        self.last_round = 0
        """The number of the last such cycle."""
        self.unanswered = False
        """The RM did not answer in time."""
        self.conclusion: NodeSearch | None = None
        """The result of a search that found every node refused."""
        self.concluded_at = 0
        """The gains of the node order at that time: until there are more, the result is the same."""

    def add(self, asked: frozenset[str], refused: Mapping[str, str], *, allocate: bool) -> None:
        """Take an answer."""
        known, known_refused = self.nodes[allocate]
        if known:
            asked, refused = known | asked, {**known_refused, **refused}
        self.nodes[allocate] = (asked, refused)

    def find(self, node_id: str, *, allocate: bool) -> str | Pending | None:
        """Return why a node is refused, `None` if it is not."""
        asked, refused = self.nodes[allocate]
        return refused.get(node_id) if node_id in asked else Pending.PENDING

    def conclude(self, ask: Ask, nodes: NodeOrder) -> NodeSearch:
        """Return that all nodes with room are refused, and keep that until another one may have room."""
        _, refused = self.nodes[True]
        found = [refused.get(node.node_id) for node in nodes.fitting(ask.resource)]
        self.concluded_at = nodes.gains
        self.conclusion = _refused_by([reason for reason in found if reason is not None])
        return self.conclusion

    def is_about(self, node_ids: Collection[str]) -> bool:
        """Return whether any answer is about one of these nodes."""
        if any(question.node_id in node_ids for question in self.victims):
            return True
        return any(not asked.isdisjoint(node_ids) for asked, _ in self.nodes.values())


def _refused_by(reasons: Sequence[str]) -> NodeSearch:
    """Return the result of a search in which every node was refused, with these reasons."""
    return NodeSearch(None, Counter(reasons), reasons[-1] if reasons else "")


@final
class _Open:
    """A question that is open."""

    __slots__ = ("asked_ns", "node_ids", "question")

    def __init__(
        self, question: PredicateQuestion | PreemptionQuestion, node_ids: frozenset[str], asked_ns: int
    ) -> None:
        self.question = question
        self.node_ids = node_ids
        self.asked_ns = asked_ns


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
        self._answers: dict[str, _Answers] = {}
        """By the key of the ask, the one with the first answer at the front."""
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
                search, gains = _refused_by(list(refused.values())), -1  # Other nodes may have room already.
        if search is not None:
            self._refusals.keep(key, search, answers.since_ns, gains)

    def keys_to_skip(self) -> Collection[str]:
        """Return the keys of asks about which a question is open."""
        return self._open_by_key

    # ---------------------------------------------------------------------------------- the checks

    def first_allowed(self, ask: Ask, nodes: NodeOrder, *, without: Collection[str] = ()) -> NodeSearch:
        """Search by what is known; ask if it is not enough."""
        answers = self._answers.get(ask.allocation_key)
        if answers is None:
            kept = self._refusals.find(ask.allocation_key, nodes.gains, len(self._open))
            if kept is not None:
                return kept
            self._ask_about_first(ask, nodes, None, 0)
            return PENDING_SEARCH
        if answers.unanswered:
            return NodeSearch(None, {self._no_answer: 1}, self._no_answer)
        if answers.conclusion is not None and answers.concluded_at == nodes.gains:
            return answers.conclusion
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

    def refuse(self, allocation_key: str, node_id: str, *, allocate: bool) -> str | Pending | None:
        """Return what is known; it does not ask."""
        answers = self._answers.get(allocation_key)
        if answers is None:
            kept = self._refusals.find(allocation_key, None, len(self._open))
            return Pending.PENDING if kept is None else kept.denied
        return self._no_answer if answers.unanswered else answers.find(node_id, allocate=allocate)

    def ask_about(self, allocation_key: str, node_ids: Sequence[str], *, allocate: bool) -> None:
        """Ask about nodes."""
        if not self._is_full:
            names = tuple(node_ids)
            self._ask(PredicateQuestion(allocation_key, names, allocate), frozenset(names))

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
            self._close_all(n for n, each in self._open.items() if not each.node_ids.isdisjoint(node_ids))

    def next_due_ns(self) -> int | None:
        """Return when the first open question counts as refused."""
        for first in self._open.values():
            return first.asked_ns + self._timeout_ns
        return None

    # ------------------------------------------------------------------------ questions and answers

    def _ask_about_first(self, ask: Ask, nodes: NodeOrder, answers: _Answers | None, passed: int) -> None:
        """Ask about the first nodes with room, more the more asks will be placed before this one."""
        if self._is_full:
            return
        count = NODES_PER_STEP // 2 + self._passed_nodes + len(self._open)
        if answers is not None:
            count = max(count, WIDENING * (passed + 1))
        names, as_set = self._window(ask.resource, nodes, count)
        if answers is not None:
            asked, _ = answers.nodes[True]
            names = tuple(name for name in names if name not in asked)
            as_set = frozenset(names)
        self._ask(PredicateQuestion(ask.allocation_key, names, allocate=True), as_set)

    def _window(
        self, resource: Resource, nodes: NodeOrder, count: int
    ) -> tuple[tuple[str, ...], frozenset[str]]:
        size = -(-count // NODES_PER_STEP) * NODES_PER_STEP
        window = self._windows.get((resource, size))
        if window is None:
            names = tuple(node.node_id for node in islice(nodes.fitting(resource), size))
            window = self._windows[resource, size] = names, frozenset(names)
        return window

    def _ask(self, question: PredicateQuestion | PreemptionQuestion, node_ids: frozenset[str]) -> None:
        self._number += 1
        key = question.allocation_key
        self._open[self._number] = _Open(question, node_ids, self._now_ns)
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
        answers = self._answers.get(question.allocation_key)
        if answers is None:
            self._refusals.drop(question.allocation_key)
            answers = self._answers[question.allocation_key] = _Answers(self._now_ns)
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
        failed = self._answers[key] = _Answers(self._now_ns)
        failed.unanswered = True

    def _close(self, number: int) -> _Open:
        closed = self._open.pop(number)
        key = closed.question.allocation_key
        self._open_by_key[key] -= 1
        if not self._open_by_key[key]:
            del self._open_by_key[key]
        return closed

    def _close_all(self, numbers: Iterable[int]) -> None:
        closed = set(numbers)
        for number in closed:
            self._close(number)
        self._unsent = [each for each in self._unsent if each.number not in closed]
