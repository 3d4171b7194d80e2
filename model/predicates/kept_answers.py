"""Answers of predicates that are kept, and questions that are open."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from heapq import nsmallest
from typing import Final, NamedTuple, TypeAlias, final

from ..nodes.class_orders import OrderedNodes
from ..resources.resource import Resource
from ..values.allocation import Ask
from ..values.messages import NumberedQuestion, PredicateQuestion, PreemptionQuestion
from .node_checks import QUESTIONS_MAX, NodeSearch, Pending

AGAIN_MAX: Final = 32
"""How many questions are open at most when one is asked again: the others are for asks that are new."""
Question: TypeAlias = PredicateQuestion | PreemptionQuestion


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

    def find(self, ask: Ask, gains: int | None, open_count: int) -> NodeSearch | None:
        """Return how an ask is refused for now, `None` if the RM is to be asked.

        Args:
            ask: The ask; the answers about one with a class are kept with those of its class.
            gains: Those of the node order now; `None` if one node alone is meant.
            open_count: How many questions are open.
        """
        key = ask.allocation_key
        refusal = self._by_key.get(key)
        if refusal is None or ask.predicate_class:
            return None
        is_old = refusal.since_ns <= self._old_ns or refusal.idle_count != self._idle_count
        if not is_old and gains in (None, refusal.gains):
            return refusal.search
        if open_count < AGAIN_MAX and (self._chosen is None or key in self._chosen):
            return None
        self._missed[key] = refusal.since_ns
        return refusal.search


_NONE: Final[tuple[frozenset[str], Mapping[str, str]]] = (frozenset(), {})


@final
class KeptAnswers:
    """The answers of the RM about one ask."""

    __slots__ = (
        *("concluded_at", "concluded_for", "conclusion", "last_round", "nodes", "rounds", "since_ns"),
        *("unanswered", "victims"),
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
        self.concluded_for: Resource | None = None
        """The size of the ask that it was a search for."""

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

    def conclude(self, ask: Ask, nodes: OrderedNodes, without: Collection[str]) -> NodeSearch:
        """Return that all nodes with room are refused, except those with the ids `without`.

        Where there are no such nodes it is kept until another one may have room.
        """
        _, refused = self.nodes[True]
        fitting = nodes.fitting(ask.resource)
        found = [refused.get(node.node_id) for node in fitting if node.node_id not in without]
        reasons = [reason for reason in found if reason is not None]
        conclusion = refused_by(reasons, for_class=bool(ask.predicate_class))
        if not without:
            self.conclusion = conclusion
            self.concluded_at, self.concluded_for = nodes.gains, ask.resource
        return conclusion

    def concluded(self, ask: Ask, nodes: OrderedNodes) -> NodeSearch | None:
        """Return the refusal of all nodes for an ask of this size, `None` if it has to be searched."""
        is_valid = (self.concluded_at, self.concluded_for) == (nodes.gains, ask.resource)
        return self.conclusion if is_valid else None

    def drop(self, node_ids: Collection[str]) -> None:
        """Drop what is known of nodes."""
        self.conclusion = None
        for allocate, (asked, refused) in self.nodes.items():
            kept = {node: reason for node, reason in refused.items() if node not in node_ids}
            self.nodes[allocate] = asked.difference(node_ids), kept

    def is_about(self, node_ids: Collection[str]) -> bool:
        """Return whether any answer is about one of these nodes."""
        if any(question.node_id in node_ids for question in self.victims):
            return True
        return any(not asked.isdisjoint(node_ids) for asked, _ in self.nodes.values())


def refused_by(reasons: Sequence[str], *, for_class: bool = False) -> NodeSearch:
    """Return the result of a search in which every node was refused, with these reasons."""
    return NodeSearch(None, Counter(reasons), reasons[-1] if reasons else "", for_class=for_class)


@final
class OpenQuestion:
    """A question that is open."""

    __slots__ = ("asked_ns", "node_ids", "number", "predicate_class", "question")

    def __init__(
        self,
        number: int,
        question: Question,
        node_ids: frozenset[str],
        asked_ns: int,
        predicate_class: str,
    ) -> None:
        self.number = number
        self.question = question
        self.node_ids = node_ids
        self.asked_ns = asked_ns
        self.predicate_class = predicate_class
        """The answer is for all asks of this class; the empty text: for the one ask."""


@final
class OpenQuestions:
    """The open questions of one partition."""

    def __init__(self) -> None:
        self._last_number = 0
        self._by_number: dict[int, OpenQuestion] = {}
        """The one that was asked first at the front."""
        self._by_key: Counter[str] = Counter()
        self._by_class: Counter[str] = Counter()
        self._unsent: list[NumberedQuestion] = []

    def __len__(self) -> int:
        """Return how many are open."""
        return len(self._by_number)

    @property
    def are_full(self) -> bool:
        """Whether the maximum is open."""
        return len(self._by_number) >= QUESTIONS_MAX

    @property
    def first(self) -> OpenQuestion | None:
        """The oldest open one, `None` without one."""
        return next(iter(self._by_number.values()), None)

    @property
    def keys(self) -> Collection[str]:
        """The keys of the asks that questions are about; they may become more."""
        return self._by_key

    def are_about_class(self, name: str) -> bool:
        """Return whether a question is about a class of asks."""
        return name in self._by_class

    def add(self, question: Question, node_ids: frozenset[str], now_ns: int, predicate_class: str) -> None:
        """Open a question; it is sent with the next batch."""
        self._last_number += 1
        opened = OpenQuestion(self._last_number, question, node_ids, now_ns, predicate_class)
        self._by_number[opened.number] = opened
        self._by_key[question.allocation_key] += 1
        if predicate_class:
            self._by_class[predicate_class] += 1
        self._unsent.append(NumberedQuestion(opened.number, question))

    def take_unsent(self) -> Sequence[NumberedQuestion]:
        """Return the questions that have not been sent; they count as sent from now on."""
        unsent, self._unsent = self._unsent, []
        return unsent

    def close(self, number: int) -> OpenQuestion | None:
        """Close a question and return it, `None` if it is no longer open."""
        closed = self._by_number.pop(number, None)
        if closed is not None:
            _count_down(self._by_key, closed.question.allocation_key)
            if closed.predicate_class:
                _count_down(self._by_class, closed.predicate_class)
        return closed

    def close_where(self, is_meant: Callable[[OpenQuestion], bool]) -> None:
        """Close questions without their answers; those that were not sent never are."""
        numbers = {each.number for each in self._by_number.values() if is_meant(each)}
        for number in numbers:
            self.close(number)
        self._unsent = [each for each in self._unsent if each.number not in numbers]


def _count_down(counts: Counter[str], key: str) -> None:
    counts[key] -= 1
    if not counts[key]:
        del counts[key]
