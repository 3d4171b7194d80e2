"""Calls of predicates that answer at once, for a partition with a lock: no lock is held during a call.

A partition that schedules by itself asks through a `QuestionChannel`, as where predicates answer later: a
cycle passes over the asks whose answers are pending. The thread that ran it then calls the RM, and runs the
next cycle with the answers. If the RM is slow, other threads make calls and run cycles meanwhile.

In a stepped scheduler one cycle runs at a time. It calls the RM between its steps, and goes on with the
answer; if others had the lock meanwhile, it is invalidated and begins again with the answers that it has.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Final, TypeAlias, cast, final

from ...model.predicates.node_checks import QUESTIONS_MAX, Predicates
from ...model.values.allocation import ask_key_of
from ...model.values.messages import (
    NodesAnswer,
    NumberedQuestion,
    PredicateAnswer,
    PredicateQuestion,
    PreemptionQuestion,
    VictimsAnswer,
)

SLOW_NS: Final = 200_000
"""After a call that took longer, another thread is called to make the next ones as well. A thread switch
takes about a tenth of this time: for quick calls it would cost more than it gains."""
CALL_TIMEOUT_NS: Final = 365 * 86_400 * 1_000_000_000
"""A partition waits a year for a call to return: whatever an RM takes for it, the answer counts."""

_Question: TypeAlias = "tuple[str, str, bool] | tuple[str, str, tuple[str, ...], int]"
"""A question to the RM; it begins with the key of an ask and the id of a node."""
_Answer: TypeAlias = "str | int | None"


@final
class PredicateCalls:
    """The questions of one partition, to be asked by calls, and the answers. Any thread may use it.

    Args:
        predicates: The RM's own; they do not raise.
        threads: How many calls may be made at once.
        clock_ns: Measures how long a call takes.
    """

    def __init__(self, predicates: Predicates, threads: int, clock_ns: Callable[[], int]) -> None:
        self._predicates = predicates
        self._threads = threads
        self._clock_ns = clock_ns
        self._questions: deque[NumberedQuestion] = deque()
        self._answers: deque[PredicateAnswer] = deque()
        self._called_ns: dict[int, int] = {}
        """When the calls that have not returned were made, by the number of the question."""
        self._ahead = 1
        """Twice as many after each question whose nodes were all refused, one after any other answer."""
        self.has_allowed = False
        """Whether the last answer is that a node is allowed, or about victims."""
        self.was_slow = True
        """Whether the last call was slow; true at first."""

    @property
    def is_slow(self) -> bool:
        """Whether a call has not returned, and it or the last one is slow. A hint: it may change at once."""
        called_ns = list(self._called_ns.values())
        return bool(called_ns) and (self.was_slow or self._clock_ns() - min(called_ns) > SLOW_NS)

    def open_max(self) -> int:
        """Return how many questions may be open: more than one if the RM is slow or refuses asks in a row.

        An ask that is placed changes what those behind it are to be asked; one that is refused does not.
        """
        return max(self._ahead, self._threads if self.was_slow or self.is_slow else 1)

    def ask(self, questions: Sequence[NumberedQuestion]) -> None:
        """Take questions; `call_next` makes the calls."""
        self._questions.extend(questions)

    def take(self) -> Sequence[PredicateAnswer]:
        """Return the answers that have come since the last call."""
        answers = self._answers
        return [answers.popleft() for _ in range(len(answers))]

    def call_next(self, call_for_help: Callable[[], None]) -> bool:
        """Ask the question that has waited longest, without a lock; return whether there was one.

        Args:
            call_for_help: Called before the RM is, if it is slow and there are more questions.
        """
        try:
            asked = self._questions.popleft()
        except IndexError:
            return False
        self._called_ns[asked.number] = began_ns = self._clock_ns()
        if self.was_slow and self._questions:
            call_for_help()
        try:
            answer = self._answer(asked.number, asked.question)
            self.has_allowed = not isinstance(answer, NodesAnswer) or answer.asked is not None
            self._ahead = 1 if self.has_allowed else min(2 * self._ahead, QUESTIONS_MAX)
            self._answers.append(answer)
        finally:
            del self._called_ns[asked.number]
            self.was_slow = self._clock_ns() - began_ns > SLOW_NS
        return True

    def _answer(self, number: int, question: PredicateQuestion | PreemptionQuestion) -> PredicateAnswer:
        """Ask about one node after the other until one is allowed, or about victims."""
        if isinstance(question, PreemptionQuestion):
            index = self._predicates.preemption_index(
                question.allocation_key, question.node_id, question.victim_keys, question.start_index
            )
            return VictimsAnswer(number, index)
        refused: dict[str, str] = {}
        for node_id in question.node_ids:
            reason = self._predicates.refuse(question.allocation_key, node_id, allocate=question.allocate)
            if reason is None:
                return NodesAnswer(number, refused, len(refused) + 1)
            refused[node_id] = reason
        return NodesAnswer(number, refused)


@final
class CycleInvalidatedError(BaseException):
    """Others had the partition while the RM was asked: the cycle must begin again.

    It is no `Exception`, so that handlers of errors between here and the engine do not catch it.
    """


@final
class UnlockedPredicates:
    """The predicates of a partition that is stepped, each called with the lock of the partition released.

    A cycle that begins again uses the answers that it has, so that it ends whatever a predicate does.

    Args:
        predicates: The RM's own.
    """

    def __init__(self, predicates: Predicates) -> None:
        self._predicates = predicates
        self.without_lock: Callable[[Callable[[], _Answer]], tuple[_Answer, bool]] = _undisturbed
        """Makes a call with the lock released, and returns whether others had it too; the guard sets it."""
        self._earlier: dict[_Question, _Answer] = {}
        """The answers before the cycle began again; in one run the RM may be asked a question twice."""
        self._answers: dict[_Question, _Answer] = {}
        self._pending: _Question | None = None

    def begin(self, *, again: bool) -> None:
        """Begin a cycle, or the same one again."""
        self._earlier = {**self._earlier, **self._answers} if again else {}
        self._answers = {}

    def forget(self, keys: Collection[str], node_ids: Collection[str]) -> None:
        """Drop the answers about asks that come or change, and nodes that come, also one under way."""

        def is_kept(question: _Question) -> bool:
            key, node_id = question[0], question[1]
            return key not in keys and ask_key_of(key) not in keys and node_id not in node_ids

        self._earlier = {each: answer for each, answer in self._earlier.items() if is_kept(each)}
        self._answers = {each: answer for each, answer in self._answers.items() if is_kept(each)}
        if self._pending is not None and not is_kept(self._pending):
            self._pending = None

    def forget_all(self) -> None:
        """Drop all answers, also one under way."""
        self._earlier, self._answers, self._pending = {}, {}, None

    def refuse(self, allocation_key: str, node_id: str, *, allocate: bool) -> str | None:
        """Return why the node is refused, `None` if it is not.

        Raises:
            CycleInvalidatedError: The cycle must begin again.
        """
        call = partial(self._predicates.refuse, allocation_key, node_id, allocate=allocate)
        return cast("str | None", self._ask((allocation_key, node_id, allocate), call))

    def preemption_index(
        self, allocation_key: str, node_id: str, victim_keys: tuple[str, ...], start_index: int
    ) -> int | None:
        """Return the index of the last victim that is needed, `None` if the victims do not help.

        Raises:
            CycleInvalidatedError: The cycle must begin again.
        """
        question = allocation_key, node_id, victim_keys, start_index
        return cast("int | None", self._ask(question, partial(self._predicates.preemption_index, *question)))

    def _ask(self, question: _Question, call: Callable[[], _Answer]) -> _Answer:
        if question in self._earlier:
            return self._earlier[question]
        self._pending = question
        answer, is_disturbed = self.without_lock(call)
        if self._pending == question:
            self._answers[question] = answer
        if is_disturbed:
            raise CycleInvalidatedError
        return answer


def _undisturbed(call: Callable[[], _Answer]) -> tuple[_Answer, bool]:
    return call(), False
