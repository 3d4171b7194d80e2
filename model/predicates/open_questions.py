"""The questions to an RM that answers later which are open, by number, by ask and by class of asks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import TypeAlias, final

from ..values.predicate_questions import NumberedQuestion, PredicateQuestion, PreemptionQuestion
from .interfaces import QUESTIONS_MAX

Question: TypeAlias = PredicateQuestion | PreemptionQuestion


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
        """Whether no more may be opened."""
        return len(self._by_number) >= QUESTIONS_MAX

    @property
    def first(self) -> OpenQuestion | None:
        """The one that was asked first, `None` if none is open."""
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
        """Close a question and return it, `None` if it is not open any more."""
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
