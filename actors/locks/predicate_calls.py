"""The calls of predicates that answer at once, for a partition with a lock: no lock is held during a call.

A cycle asks through a `QuestionChannel`, as where predicates answer later, and passes over the asks whose
answers are pending. The thread that ran it then calls the RM without the lock, and runs the next cycle with
the answers. If the RM is slow, other threads make calls and run cycles meanwhile.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, final

from ...model.predicates.interfaces import Predicates
from ...model.values.predicate_questions import (
    NodesAnswer,
    NumberedQuestion,
    PredicateAnswer,
    PredicateQuestion,
    PreemptionQuestion,
    VictimsAnswer,
)

__all__ = ["CALL_TIMEOUT_NS", "SLOW_NS", "PredicateCalls"]

SLOW_NS: Final = 200_000
"""After a call that took longer, another thread is called to make the next ones as well. A thread switch
takes about a tenth of this time: for quick calls it would cost more than it gains."""
CALL_TIMEOUT_NS: Final = 365 * 86_400 * 1_000_000_000
"""A partition waits a year for a call to return: whatever an RM takes for it, the answer counts."""


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
        self.was_slow = True
        """Whether the last call was slow; true at first."""

    @property
    def is_slow(self) -> bool:
        """Whether a call has not returned, and it or the last one is slow. A hint: it may change at once."""
        called_ns = list(self._called_ns.values())
        return bool(called_ns) and (self.was_slow or self._clock_ns() - min(called_ns) > SLOW_NS)

    def open_max(self) -> int:
        """Return how many questions may be open: one for each thread if the RM is slow, otherwise one."""
        return self._threads if self.was_slow or self.is_slow else 1

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
            self._answers.append(self._answer(asked.number, asked.question))
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
