"""The predicates of a resource manager (RM) that answers them later, as a partition asks them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Final, NamedTuple, TypeAlias, final

from .....model.errors import RequestError
from .....model.values.allocation import ask_key_of
from .....model.values.messages import (
    NoAnswer,
    NodesAnswer,
    NumberedQuestion,
    PredicateAnswer,
    PredicateQuestion,
    PreemptionQuestion,
    VictimsAnswer,
)
from ....si.api import DeferredPredicates
from ....si.older_answers import Generation
from .answer_wait import AnswerWait
from .callback_failures import text_of
from .callback_threads import CallbackThreads

_NO_REASON: Final = "the resource manager gave no reason"
_Reader: TypeAlias = "Callable[[int, object, dict[int, Mapping[str, str]]], PredicateAnswer]"
"""Makes an answer of the number of a question and of what the RM says."""


class DeferredCalls(NamedTuple):
    """The calls to an RM that answers its predicates later, with what is needed around each call."""

    predicates: DeferredPredicates
    blocking: Callable[[], AbstractContextManager[None]]
    """If the RM does not return soon, another thread works for the other partitions."""
    callback_threads: CallbackThreads
    note: Callable[[str, BaseException], None]
    """Called with the name of a call that failed, and its error."""
    generation: Generation
    """The generation of `si.v1` that the RM uses: one of the older one knows asks, not their parts."""


@final
class CallbackQuestions:
    """The questions of one partition to an RM, and the answers that have come; any thread may answer.

    Args:
        partition: Its name.
        calls: The calls to the RM.
        wake: Has the partition work, since an answer has come; called once between two calls of `take`.
        answer_wait: Keeps the answers back until a stepped scheduler waits for them, in place of `wake`.
    """

    def __init__(
        self,
        partition: str,
        calls: DeferredCalls,
        wake: Callable[[], None],
        answer_wait: AnswerWait | None = None,
    ) -> None:
        self._calls = calls
        self._wake = wake
        self._waking = False
        self._closed = False
        self._answers: deque[PredicateAnswer] = deque()
        self._answer_wait = answer_wait
        self._held = None if answer_wait is None else answer_wait.enter(partition, self._answers.extend)

    def ask(self, questions: Sequence[NumberedQuestion]) -> None:
        """Send questions to the RM, each kind in one batch; if the call fails, that is its answer."""
        nodes = [each for each in questions if isinstance(each.question, PredicateQuestion)]
        victims = [each for each in questions if isinstance(each.question, PreemptionQuestion)]
        if self._answer_wait is not None and self._held is not None:
            self._answer_wait.expect(self._held, [each.number for each in questions])
        predicates, is_older = self._calls.predicates, self._calls.generation.is_older
        if nodes:
            batch = _Batch(self.add, nodes, _nodes_answer)
            asked = [each.question for each in nodes if isinstance(each.question, PredicateQuestion)]
            asked = [_in_older_names(each) for each in asked] if is_older else asked
            failed = self._failure(lambda: predicates.ask_predicates(asked, batch.answer), "ask_predicates")
            if failed is not None:
                refused = [dict.fromkeys(question.node_ids, failed) for question in asked]
                batch.answer(dict(enumerate(refused)))
        if victims:
            batch = _Batch(self.add, victims, _victims_answer)
            preempting = [each.question for each in victims if isinstance(each.question, PreemptionQuestion)]
            preempting = [_with_older_victims(each) for each in preempting] if is_older else preempting
            name = "ask_preemption_predicates"
            failed = self._failure(
                lambda: predicates.ask_preemption_predicates(preempting, batch.answer), name
            )
            if failed is not None:
                batch.answer(dict.fromkeys(range(len(preempting))))

    def take(self) -> Sequence[PredicateAnswer]:
        """Return the answers that have come since the last call."""
        self._waking = False  # First: an answer that comes from now on wakes the partition again.
        if not self._answers:
            return ()
        answers = self._answers
        return [answers.popleft() for _ in range(len(answers))]

    def add(self, answers: Sequence[PredicateAnswer]) -> None:
        """Take answers, and have the partition work."""
        if self._closed or not answers:
            return
        if self._answer_wait is not None and self._held is not None:
            self._answer_wait.add(self._held, answers)
            return
        self._answers.extend(answers)
        if not self._waking:
            self._waking = True
            self._wake()

    def close(self) -> None:
        """Drop all answers from now on: the partition has ended. A step that waits for them goes on."""
        self._closed = True
        if self._answer_wait is not None and self._held is not None:
            self._answer_wait.leave(self._held)

    def _failure(self, call: Callable[[], object], name: str) -> str | None:
        """Call the RM; return the text of what it raises, `None` if it returns."""
        calls = self._calls
        with calls.blocking(), calls.callback_threads.predicate():
            try:
                call()
            except BaseException as error:  # noqa: BLE001 - any error that the RM raises is its answer
                calls.note(name, error)
                return text_of(error)
        return None


def _in_older_names(question: PredicateQuestion) -> PredicateQuestion:
    """Return a question with the RM's own key of the ask."""
    key = ask_key_of(question.allocation_key)
    return question if key == question.allocation_key else replace(question, allocation_key=key)


def _with_older_victims(question: PreemptionQuestion) -> PreemptionQuestion:
    """Return a question with the RM's own keys of the ask and of those that the victims belong to."""
    victims = tuple(map(ask_key_of, question.victim_keys))
    return replace(question, allocation_key=ask_key_of(question.allocation_key), victim_keys=victims)


@final
class _Batch:
    """Questions that were sent in one call, and which of them are open.

    Args:
        add: Takes the answers.
        questions: The questions, in the order in which the RM knows them.
        read: Makes an answer.
    """

    def __init__(
        self,
        add: Callable[[Sequence[PredicateAnswer]], None],
        questions: Sequence[NumberedQuestion],
        read: _Reader,
    ) -> None:
        self._add = add
        self._numbers = [each.number for each in questions]
        self._open = set(range(len(questions)))
        self._read = read

    def answer(self, answers: Mapping[int, object]) -> None:
        """Answer questions by their positions in the batch; the first answer to each one counts.

        Raises:
            RequestError: An answer is malformed, or is to no question of the batch; then nothing is answered.
        """
        if not isinstance(answers, Mapping):
            raise RequestError(f"the answers {answers!r:.200} are no mapping from positions of questions")
        copies: dict[int, Mapping[str, str]] = {}
        read = [
            (position, self._read(self._number(position), value, copies))
            for position, value in list(answers.items())
        ]
        new = [answer for position, answer in read if position in self._open]
        self._open.difference_update(answers)
        self._add(new)

    def _number(self, position: object) -> int:
        if type(position) is not int or not 0 <= position < len(self._numbers):
            last = len(self._numbers) - 1
            raise RequestError(f"an answer is to question {position!r:.200}: the questions are 0 to {last}")
        return self._numbers[position]


def _nodes_answer(number: int, value: object, copies: dict[int, Mapping[str, str]]) -> PredicateAnswer:
    """Read the refused nodes; a mapping that several answers share is copied once."""
    if value is None:
        return NoAnswer(number)
    refused = copies.get(id(value))
    if refused is None:
        refused = copies[id(value)] = _refusals(value)
    return NodesAnswer(number, refused)


def _refusals(value: object) -> Mapping[str, str]:
    if not isinstance(value, Mapping):
        raise RequestError(f"the answer {value!r:.200} is no mapping from refused nodes to reasons")
    refused = dict(value)
    if {*map(type, refused), *map(type, refused.values())} - {str}:
        for node_id, reason in refused.items():
            if not isinstance(node_id, str) or not isinstance(reason, str):
                raise RequestError(f"the refusal of node {node_id!r:.200}, {reason!r:.200}, is not in texts")
    if "" in refused.values():
        refused = {node_id: reason or _NO_REASON for node_id, reason in refused.items()}
    return refused


def _victims_answer(number: int, value: object, _: dict[int, Mapping[str, str]]) -> PredicateAnswer:
    if value is not None and (type(value) is not int or value < 0):
        raise RequestError(f"the answer {value!r:.200} is neither the index of a victim nor None")
    return VictimsAnswer(number, value)
