"""Resource managers that answer their predicates later, made of those that answer at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from support.proxy.listening import Listener
from support.waiting import WAIT_SECONDS

from licorne.model.errors import error_text
from licorne.model.values.messages import PredicateQuestion, PreemptionQuestion
from licorne.proxy.si import si_pb2 as si


class DeferringListener(Listener):
    """A listener whose predicates are answered when the test says so, and on the thread of the test.

    Attributes:
        refused: (allocation key, node) -> why the node is refused.
        asked: all questions about nodes, in order.
    """

    def __init__(self) -> None:
        super().__init__()
        self.refused: dict[tuple[str, str], str] = {}
        self.asked: list[PredicateQuestion] = []
        self._open: list[tuple[PredicateQuestion, Callable[[Mapping[str, str] | None], None]]] = []
        self._asked = threading.Condition()

    def ask_predicates(self, questions: Sequence[PredicateQuestion], answer: Callable[[Any], None]) -> None:
        """Keep the questions."""
        with self._asked:
            self.asked += questions
            for position, question in enumerate(questions):
                self._open.append((question, lambda refused, at=position: answer({at: refused})))  # type: ignore[misc]
            self._asked.notify_all()

    def ask_preemption_predicates(
        self, questions: Sequence[PreemptionQuestion], answer: Callable[[Any], None]
    ) -> None:
        """Agree to the first victims at once."""
        answer({position: question.start_index for position, question in enumerate(questions)})

    def wait_for_questions(self, count: int) -> None:
        """Wait until so many questions about nodes are open."""
        with self._asked:
            assert self._asked.wait_for(lambda: len(self._open) >= count, WAIT_SECONDS), len(self._open)

    def answer(self, *allocation_keys: str) -> int:
        """Answer open questions, those about some asks or all; return how many there were."""
        with self._asked:
            chosen: list[Any] = []
            left: list[Any] = []
            for each in self._open:
                is_chosen = not allocation_keys or each[0].allocation_key in allocation_keys
                (chosen if is_chosen else left).append(each)
            self._open = left
        for question, answer in chosen:
            pairs = ((name, self.refused.get((question.allocation_key, name))) for name in question.node_ids)
            answer({name: reason for name, reason in pairs if reason is not None})
        return len(chosen)


class KnowingListener(DeferringListener):
    """A listener that allows every node inside of the call that asks."""

    def ask_predicates(self, questions: Sequence[PredicateQuestion], answer: Callable[[Any], None]) -> None:
        """Answer at once."""
        answer({position: {} for position in range(len(questions))})


def refused_by(callback: Any, question: PredicateQuestion) -> Mapping[str, str]:
    """Return the nodes of a question that the `predicates` of a callback refuse, with the reasons."""
    refused = {}
    for node_id in question.node_ids:
        key, allocate = question.allocation_key, question.allocate
        args = si.PredicatesArgs(allocationKey=key, nodeID=node_id, allocate=allocate)
        try:
            callback.predicates(args)
        except Exception as error:  # noqa: BLE001 - the answer
            refused[node_id] = error_text(error)
    return refused


def refusals_of(callback: Any, questions: Sequence[PredicateQuestion]) -> dict[int, Mapping[str, str]]:
    """Return what a callback refuses, by the positions of the questions."""
    return {position: refused_by(callback, question) for position, question in enumerate(questions)}


def indexes_for(callback: Any, questions: Sequence[PreemptionQuestion]) -> dict[int, int | None]:
    """Return what the `preemption_predicates` of a callback answer, by the positions of the questions."""
    indexes: dict[int, int | None] = {}
    for position, question in enumerate(questions):
        answer = callback.preemption_predicates(
            si.PreemptionPredicatesArgs(
                allocationKey=question.allocation_key,
                nodeID=question.node_id,
                preemptAllocationKeys=question.victim_keys,
                startIndex=question.start_index,
            )
        )
        indexes[position] = answer.index if answer.success else None
    return indexes
