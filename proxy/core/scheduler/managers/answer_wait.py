"""The wait of a stepped scheduler for predicates that are answered later.

The answers of all resource managers are kept back until all open questions are answered, and are then handed
out in the order of the questions. So the outcome of a step does not depend on which thread answers when.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import final

from .....lockcheck import Condition, excludes
from .....model.values.messages import NoAnswer, PredicateAnswer


@final
class HeldAnswers:
    """The open questions of one partition, and the answers that are kept back. Only `AnswerWait` uses it."""

    def __init__(self, partition: str, deliver: Callable[[Sequence[PredicateAnswer]], None]) -> None:
        self.partition = partition
        self.deliver = deliver
        self.open: set[int] = set()
        self.answers: dict[int, PredicateAnswer] = {}


@final
class AnswerWait:
    """A way to wait for the answers to all questions of a scheduler that are open.

    Args:
        timeout_seconds: How long a wait lasts at most, on the real clock.
    """

    def __init__(self, timeout_seconds: float) -> None:
        self._timeout_seconds = timeout_seconds
        self._changed = Condition(name="questions")
        self._partitions: list[HeldAnswers] = []

    def enter(self, partition: str, deliver: Callable[[Sequence[PredicateAnswer]], None]) -> HeldAnswers:
        """Return the place for the answers to a partition; `deliver` gets them after a wait."""
        held = HeldAnswers(partition, deliver)
        self._partitions.append(held)  # Without the lock: a registration holds others now.
        return held

    def leave(self, held: HeldAnswers) -> None:
        """Wait no more for the answers to a partition, and drop what comes; a second call does nothing."""
        with self._changed:
            if held in self._partitions:
                self._partitions.remove(held)
                self._changed.notify_all()

    def expect(self, held: HeldAnswers, numbers: Iterable[int]) -> None:
        """Take the numbers of questions that are about to be asked."""
        with self._changed:
            held.open.update(numbers)

    def add(self, held: HeldAnswers, answers: Iterable[PredicateAnswer]) -> None:
        """Keep answers back; those to questions that are not open are dropped."""
        with self._changed:
            for answer in answers:
                if answer.number in held.open:
                    held.open.remove(answer.number)
                    held.answers[answer.number] = answer
            if not held.open:
                self._changed.notify_all()

    @excludes()
    def wait(self) -> Collection[str]:
        """Wait until all open questions are answered, and hand out the answers.

        Questions that are not answered in time count as unanswered.

        Returns:
            The names of the partitions that got any.
        """
        with self._changed:
            if self._partitions:
                self._changed.wait_for(self._all_answered, self._timeout_seconds)
            batches = [(held, _taken(held)) for held in list(self._partitions)]
        for held, answers in batches:
            held.deliver(answers)
        return {held.partition for held, answers in batches if answers}

    def _all_answered(self) -> bool:
        return not any(held.open for held in list(self._partitions))


def _taken(held: HeldAnswers) -> list[PredicateAnswer]:
    """Take the answers in the order of the questions; those that are open are given up."""
    held.answers.update((number, NoAnswer(number)) for number in held.open)
    taken = [held.answers[number] for number in sorted(held.answers)]
    held.open.clear()
    held.answers.clear()
    return taken
