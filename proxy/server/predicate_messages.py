"""Questions about nodes as messages, and what a resource manager (RM) answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...model.errors import RequestError
from ..si import licorne_v1_pb2 as v1
from ..si import si_pb2 as si

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...model.values.predicate_questions import PredicateQuestion, PreemptionQuestion

__all__ = ["node_questions", "preemption_questions", "read_node_answers", "read_preemption_answers"]


def node_questions(questions: Sequence[PredicateQuestion]) -> v1.PredicateQuestions:
    """Write questions about nodes; each list of nodes is written once."""
    message = v1.PredicateQuestions()
    lists: dict[tuple[str, ...], int] = {}
    for question in questions:
        position = lists.get(question.node_ids)
        if position is None:
            position = lists[question.node_ids] = len(lists)
            message.node_lists.add(node_ids=question.node_ids)
        message.questions.add(
            allocation_key=question.allocation_key, allocate=question.allocate, node_list=position
        )
    return message


def read_node_answers(
    questions: Sequence[PredicateQuestion], answers: v1.PredicateAnswers
) -> Mapping[int, Mapping[str, str] | None]:
    """Read which nodes are refused, and why, by the position of the question; `None`: no answer will come.

    Raises:
        RequestError: The answers do not belong to the questions.
    """
    if answers.first + len(answers.answers) > len(questions):
        last = answers.first + len(answers.answers) - 1
        raise RequestError(f"an answer to question {last} of {len(questions)} about nodes")
    reasons = tuple(answers.reasons)
    found: dict[int, Mapping[str, str] | None] = {}
    for position, answer in enumerate(answers.answers, start=answers.first):
        question = questions[position]
        if answer.unanswered:
            found[position] = None
            continue
        if len(answer.refused) != len(answer.reasons):
            raise RequestError(f"{len(answer.refused)} refused nodes with {len(answer.reasons)} reasons")
        try:
            found[position] = {
                question.node_ids[node]: reasons[reason]
                for node, reason in zip(answer.refused, answer.reasons, strict=True)
            }
        except IndexError as error:
            text = f"an answer about ask {question.allocation_key!r} names a node or reason that is not there"
            raise RequestError(text) from error
    return found


def preemption_questions(questions: Sequence[PreemptionQuestion]) -> v1.PreemptionQuestions:
    """Write questions about victims."""
    return v1.PreemptionQuestions(
        questions=[
            si.PreemptionPredicatesArgs(
                allocationKey=each.allocation_key,
                nodeID=each.node_id,
                preemptAllocationKeys=each.victim_keys,
                startIndex=each.start_index,
            )
            for each in questions
        ]
    )


def read_preemption_answers(
    questions: Sequence[PreemptionQuestion], answers: v1.PreemptionAnswers
) -> Mapping[int, int | None]:
    """Read the index of the last victim for each question, `None` where the RM refuses.

    Raises:
        RequestError: The answers do not belong to the questions.
    """
    if len(answers.answers) != len(questions):
        raise RequestError(f"{len(answers.answers)} answers to {len(questions)} questions about victims")
    return {
        position: answer.index if answer.success else None for position, answer in enumerate(answers.answers)
    }
