"""Messages as they are read from the wire and written to it: callbacks, and questions with their answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias, TypeVar

import grpc
from google.protobuf.message import DecodeError, Message

from ....model.errors import RequestError
from ....model.values.predicate_questions import PredicateQuestion, PreemptionQuestion
from ...si import licorne_v1_pb2 as v1
from ...si import si_pb2 as si
from ...si.messages import merged
from .statuses import StatusError

M = TypeVar("M", bound=Message)


def parsed(kind: type[M], data: bytes) -> M:
    """Read a message.

    Raises:
        StatusError: The bytes are not one (INVALID_ARGUMENT).
    """
    try:
        return kind.FromString(data)
    except DecodeError as error:
        text = f"{len(data)} bytes that are no {kind.DESCRIPTOR.full_name}: {data[:16].hex(' ')}"
        raise StatusError(grpc.StatusCode.INVALID_ARGUMENT, f"{text} ({error})") from error


class Callback(NamedTuple):
    """A callback that waits to be written."""

    rm_id: str
    name: str
    message: Message
    number: int


class SessionEnd(NamedTuple):
    """The end of the session, in the place of a message."""

    status: StatusError


Written: TypeAlias = v1.SchedulerMessage | Callback | SessionEnd


def size_of(item: Written) -> int:
    """Return how many bytes an item has on the wire, without its frame."""
    if isinstance(item, SessionEnd):
        return 0
    return (item if isinstance(item, v1.SchedulerMessage) else item.message).ByteSize()


def merged_callbacks(items: Iterable[Written]) -> Iterator[Written]:
    """Yield items with neighbouring responses of one kind merged."""
    return merged(items, _message_of, _are_alike)


def _message_of(item: Written) -> Message:
    assert isinstance(item, Callback), "only callbacks are merged: please report"
    return item.message


def _are_alike(last: Written, item: Written) -> bool:
    """Return whether both are callbacks of one kind for one RM, whose returns are not waited for."""
    if not isinstance(last, Callback) or not isinstance(item, Callback):
        return False
    return not last.number and not item.number and last[:2] == item[:2]


def wrapped(item: v1.SchedulerMessage | Callback) -> v1.SchedulerMessage:
    """Return the message for an answer or a callback."""
    if isinstance(item, v1.SchedulerMessage):
        return item
    message = v1.SchedulerMessage(rm_id=item.rm_id, callback=item.number)
    getattr(message, item.name).CopyFrom(item.message)
    return message


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
