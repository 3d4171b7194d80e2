"""The calls that are under way: how each is answered, its messages, and the statuses of errors.

A call that no resource manager (RM) has claimed yet is a *stranger*. Strangers cannot keep RMs out: when
there are too many, the oldest ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar, final

import grpc
from google.protobuf.message import DecodeError, Message

from ....actors.runtime.errors import ActorEndedError
from ....model.errors import LicorneError, ReplacedError, RequestError
from ....model.values.messages import PredicateQuestion, PreemptionQuestion
from ...core.scheduler.answering.questions import UnavailableError
from ...si import licorne_v1_pb2 as v1
from ...si import si_pb2 as si
from ...si.messages import merged

STRANGERS_MAX: Final = 500
"""How many streams without an RM are open at once."""
LAST_SECONDS: Final = 5.0
"""How long a stream that ends may take to deliver what is queued, and its status."""
T = TypeVar("T")
_DETAILS_BYTES_MAX: Final = 4_000
"""A status travels in headers, which peers bound to 8 KiB or so, with another status in its place."""
M = TypeVar("M", bound=Message)


@final
class Calls:
    """The calls of a server; it belongs to the event loop.

    Args:
        silence_seconds: How long a session may be open without its first message.
        strangers_max: How many streams without an RM are open at once.
    """

    def __init__(self, silence_seconds: float, strangers_max: int = STRANGERS_MAX) -> None:
        self.silence_seconds: Final = silence_seconds
        self._strangers_max = strangers_max
        self._strangers: dict[asyncio.Task[Any], None] = {}
        """The oldest is the first."""
        self._endings: dict[asyncio.Task[Any], StatusError] = {}
        """The calls that are being ended from here."""

    async def answer(
        self, context: grpc.aio.ServicerContext[Any, Any], answer: Callable[[], Awaitable[T]]
    ) -> T:
        """Answer a call; an error becomes its status."""
        task = asyncio.current_task()
        assert task is not None, "a call is answered by a task: please report"
        try:
            return await answer()
        except asyncio.CancelledError:
            status = self._endings.get(task)
            if status is None:
                raise
            task.uncancel()
            code, text = status_of(status)
        except Exception as error:  # noqa: BLE001 - it is the answer
            code, text = status_of(error)
        finally:
            self._endings.pop(task, None)
        try:
            async with asyncio.timeout(LAST_SECONDS):
                await context.abort(code, text)
        except TimeoutError:  # The peer does not read; gRPC keeps the status for it.
            raise asyncio.CancelledError from None
        raise AssertionError("a call that is aborted has ended: please report")

    def end(self, task: asyncio.Task[Any], status: StatusError) -> None:
        """End a call, whatever it waits for."""
        if not task.done():
            self._endings.setdefault(task, status)
            task.cancel()

    @contextmanager
    def stranger(self) -> Iterator[asyncio.Task[Any]]:
        """Count this call as one without an RM, until it is claimed or ends."""
        task = asyncio.current_task()
        assert task is not None, "a call is answered by a task: please report"
        self._strangers[task] = None
        if len(self._strangers) > self._strangers_max:
            oldest = next(iter(self._strangers))
            self.claim(oldest)
            text = f"more than {self._strangers_max} streams have no resource manager: this one is the oldest"
            self.end(oldest, StatusError(grpc.StatusCode.RESOURCE_EXHAUSTED, text))
        try:
            yield task
        finally:
            self.claim(task)

    def claim(self, task: asyncio.Task[Any]) -> None:
        """Note that a call is that of an RM."""
        self._strangers.pop(task, None)

    def end_strangers(self, status: StatusError) -> None:
        """End all calls without an RM."""
        for task in list(self._strangers):
            self.end(task, status)

    async def first_message(self, context: grpc.aio.ServicerContext[Any, Any]) -> Any:
        """Return the first message of a stream that begins with a greeting, `EOF` if there is none.

        Raises:
            StatusError: It did not come in time (DEADLINE_EXCEEDED).
        """
        try:
            async with asyncio.timeout(self.silence_seconds):
                return await context.read()
        except TimeoutError as error:
            text = f"no first message came within {self.silence_seconds:g} s"
            raise StatusError(grpc.StatusCode.DEADLINE_EXCEEDED, text) from error


class StatusError(LicorneError):
    """A call is refused with a status of gRPC."""

    def __init__(self, code: grpc.StatusCode, text: str) -> None:
        super().__init__(text)
        self.code = code


class NotRegisteredError(StatusError):
    """The RM has not registered, or has to register again."""

    def __init__(self, text: str) -> None:
        super().__init__(grpc.StatusCode.FAILED_PRECONDITION, text)


def status_of(error: BaseException) -> tuple[grpc.StatusCode, str]:
    """Return the code and the text for an error; one that is not a refusal is a bug of ours."""
    if isinstance(error, StatusError):
        code = error.code
    elif isinstance(error, UnavailableError | ActorEndedError):
        code = grpc.StatusCode.UNAVAILABLE
    elif isinstance(error, ReplacedError):
        code = grpc.StatusCode.ABORTED
    elif isinstance(error, RequestError):
        code = grpc.StatusCode.INVALID_ARGUMENT
    else:
        code = grpc.StatusCode.INTERNAL
    text = str(error) if isinstance(error, LicorneError) else f"a bug of Licorne, please report: {error!r}"
    return code, _shortened(text)


def _shortened(text: str) -> str:
    """Return as much of a text as a status takes: all but the plain characters travel as three a byte."""
    size_bytes = 0
    for position, character in enumerate(text):
        is_plain = " " <= character <= "~" and character != "%"
        size_bytes += 1 if is_plain else 3 * len(character.encode(errors="replace"))
        if size_bytes > _DETAILS_BYTES_MAX:
            return f"{text[:position]} ..."
    return text


def parsed(kind: type[M], data: bytes) -> M:
    """Read a message.

    Raises:
        StatusError: The bytes are not one (INVALID_ARGUMENT).
    """
    try:
        return kind.FromString(data)
    except DecodeError as error:
        text = f"{len(data)} bytes that are not a {kind.DESCRIPTOR.full_name}: {data[:16].hex(' ')}"
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
