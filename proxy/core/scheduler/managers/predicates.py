"""The RM's predicates as the model asks them.

The answers of all resource managers are kept back until all open questions are answered, and are then handed
out in the order of the questions. So the outcome of a step does not depend on which thread answers when.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from time import perf_counter_ns
from typing import Final, NamedTuple, TypeAlias, final

from .....lockcheck import Condition, excludes
from .....model.errors import RequestError, error_text
from .....model.explanation.asks import RefusedNodes
from .....model.state.counters import Histogram
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
from ....si import si_pb2 as si
from ....si.api import DeferredPredicates, ExplainsRefusals, ResourceManager, ResourceManagerCallback
from ....si.arguments import ask_predicate, ask_preemption_predicate
from ....si.older_generation import Generation
from .callbacks import CallbackThreads, is_fault

_NO_REASON: Final = "the resource manager gave no reason"
_Reader: TypeAlias = "Callable[[int, object, dict[int, Mapping[str, str]]], PredicateAnswer]"
"""Makes an answer of the number of a question and of the RM's result."""


@final
class CallbackPredicates:
    """Predicates that call the RM's callback; its answer or error is the result."""

    def __init__(
        self,
        callback: ResourceManagerCallback,
        blocking: Callable[[], AbstractContextManager[None]],
        callback_threads: CallbackThreads,
        note: Callable[[str, BaseException], None],
        generation: Generation,
        *,
        times: Histogram,
    ) -> None:
        self._callback = callback
        self._times = times
        self._generation = generation
        self._callback_threads = callback_threads
        self._note = note
        """Called with the name of a predicate that failed, and its error."""
        self._blocking = blocking
        """While the RM's predicate runs, another thread works for the other partitions."""

    def refuse(self, allocation_key: str, node_id: str, *, allocate: bool) -> str | None:
        """Return the type and text of what the callback raises, `None` if it returns."""
        if self._generation.is_older:
            allocation_key = ask_key_of(allocation_key)
        args = si.PredicatesArgs(allocationKey=allocation_key, nodeID=node_id, allocate=allocate)
        with self._blocking(), self._callback_threads.predicate():
            began_ns = perf_counter_ns()
            try:
                ask_predicate(self._callback, args)
            except BaseException as error:  # noqa: BLE001 - any error that the RM raises is its answer
                if is_fault(error):
                    self._note("predicates", error)
                return error_text(error)
            finally:
                self._times.add(perf_counter_ns() - began_ns)
        return None

    def preemption_index(
        self,
        allocation_key: str,
        node_id: str,
        victim_keys: tuple[str, ...],
        start_index: int,
    ) -> int | None:
        """Return the index that the callback answers, `None` if it refuses or fails."""
        if self._generation.is_older:
            allocation_key = ask_key_of(allocation_key)
            victim_keys = tuple(ask_key_of(key) for key in victim_keys)
        args = si.PreemptionPredicatesArgs(
            allocationKey=allocation_key,
            nodeID=node_id,
            preemptAllocationKeys=victim_keys,
            startIndex=start_index,
        )
        with self._blocking(), self._callback_threads.predicate():
            try:
                answer = ask_preemption_predicate(self._callback, args)
            except BaseException as error:  # noqa: BLE001 - an RM whose predicate fails does not agree
                self._note("preemption_predicates", error)
                return None
        return answer.index if answer is not None and answer.success else None


def predicates_of(
    callback: ResourceManagerCallback,
    blocking: Callable[[], AbstractContextManager[None]],
    callback_threads: CallbackThreads,
    note: Callable[[str, BaseException], None],
    generation: Generation,
    *,
    times: Histogram,
) -> CallbackPredicates | None:
    """Return the predicates of a callback, `None` for one that agrees to everything; `times` gets each call.

    A callback that inherits the predicate of `ResourceManager` unchanged need not be asked.
    """
    own = getattr(type(callback), "predicates", None)
    if own is ResourceManager.predicates:
        return None
    return CallbackPredicates(callback, blocking, callback_threads, note, generation, times=times)


def refused_nodes(
    callback: ExplainsRefusals,
    keys: Sequence[str],
    callback_threads: CallbackThreads,
    note: Callable[[str, BaseException], None],
    generation: Generation,
) -> RefusedNodes:
    """Return the nodes that a callback refuses to asks, for explanations; nothing if it fails."""
    is_older = generation.is_older
    try:
        with callback_threads.predicate():
            found = {key: callback.refused_nodes(ask_key_of(key) if is_older else key) for key in keys}
            return {key: _refusals(refused) for key, refused in found.items()}
    except BaseException as error:  # noqa: BLE001 - it is reported, and the explanation is made without it
        note("refused_nodes", error)
        return {}


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
        answer_wait: Keeps the answers back until a stepped scheduler waits for them, instead of `wake`.
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
        """Take answers, and make the partition work."""
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
        """Drop all answers from now on: the partition has ended. A step that waits for them continues."""
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
                return error_text(error)
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
            raise RequestError(f"the answers {answers!r:.200} are not a mapping from positions of questions")
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
        raise RequestError(f"the answer {value!r:.200} is not a mapping from refused nodes to reasons")
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
        """Stop waiting for the answers to a partition, and drop later ones; a second call does nothing."""
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
