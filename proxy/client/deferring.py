"""Resource managers (RMs) that answer their predicates later: questions and answers as messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...model.values.predicate_questions import PredicateQuestion, PreemptionQuestion
from ..scheduler.callback_failures import text_of
from ..si import licorne_v1_pb2 as v1
from ..si import si_pb2 as si

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..si.api import DeferredPredicates

__all__ = ["ask_nodes", "ask_victims"]


def ask_nodes(
    predicates: DeferredPredicates,
    message: v1.PredicateQuestions,
    reply: Callable[[v1.ManagerMessage], None],
) -> None:
    """Ask an RM about nodes; each answer is sent when it comes."""
    lists = [tuple(each.node_ids) for each in message.node_lists]
    questions = [
        PredicateQuestion(each.allocation_key, lists[each.node_list], each.allocate)
        for each in message.questions
    ]

    def answer(answers: Mapping[int, Mapping[str, str] | None]) -> None:
        for position, value in answers.items():
            written = v1.PredicateAnswers(batch=message.batch, first=position)
            _write(written, questions[position], value)
            reply(v1.ManagerMessage(predicate_answers=written))

    try:
        predicates.ask_predicates(questions, answer)
    except BaseException as error:  # noqa: BLE001 - any error that the RM raises is its answer
        reason = text_of(error)
        answer({index: dict.fromkeys(each.node_ids, reason) for index, each in enumerate(questions)})


def _write(
    written: v1.PredicateAnswers, question: PredicateQuestion, value: Mapping[str, str] | None
) -> None:
    entry = written.answers.add()
    if value is None:
        entry.unanswered = True
        return
    reasons: dict[str, int] = {}
    for position, node_id in enumerate(question.node_ids):
        if node_id in value:
            entry.refused.append(position)
            entry.reasons.append(reasons.setdefault(value[node_id], len(reasons)))
    written.reasons.extend(reasons)


def ask_victims(
    predicates: DeferredPredicates,
    message: v1.PreemptionQuestions,
    reply: Callable[[v1.ManagerMessage], None],
) -> None:
    """Ask an RM about victims; the answers are sent when all have come."""
    questions = [
        PreemptionQuestion(
            each.allocationKey, each.nodeID, tuple(each.preemptAllocationKeys), each.startIndex
        )
        for each in message.questions
    ]
    found: dict[int, int | None] = {}

    def answer(answers: Mapping[int, int | None]) -> None:
        before = len(found)
        found.update(answers)
        if before < len(questions) <= len(found):
            entries = [
                si.PreemptionPredicatesResponse(success=index is not None, index=index or 0)
                for index in (found[position] for position in range(len(questions)))
            ]
            reply(
                v1.ManagerMessage(
                    preemption_answers=v1.PreemptionAnswers(batch=message.batch, answers=entries)
                )
            )

    try:
        predicates.ask_preemption_predicates(questions, answer)
    except BaseException:  # noqa: BLE001 - an RM whose predicate fails does not agree
        answer(dict.fromkeys(range(len(questions))))
