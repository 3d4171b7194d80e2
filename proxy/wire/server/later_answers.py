"""Questions to a resource manager (RM) that it answers later, and who waits for the answers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Final, NoReturn, Protocol, TypeAlias, final

from google.protobuf.message import Message

from ....model.errors import LicorneError
from ....model.values.messages import PredicateQuestion, PreemptionQuestion
from ...si import licorne_v1_pb2 as v1
from .calls import node_questions, preemption_questions, read_node_answers, read_preemption_answers

Questions: TypeAlias = "v1.PredicateQuestions | v1.PreemptionQuestions | v1.StateDumpQuestion"
"""A batch of questions; the one for a state dump is a batch of one."""

_FORGOTTEN_SECONDS: Final = 10.0
"""After this time the scheduler has long taken the missing answer for a refusal."""


_ANSWERS: Final = frozenset({"predicate_answers", "preemption_answers", "state_dump"})


def batch_of(message: v1.ManagerMessage) -> int:
    """Return the number of the batch that a message answers, 0 if it answers none."""
    body = message.WhichOneof("body")
    return getattr(message, body).batch if body in _ANSWERS else 0


class QuestionSender(Protocol):
    """The sender of questions to an RM: a session."""

    def ask_later(
        self,
        rm_id: str,
        name: str,
        questions: Questions,
        on_answer: Callable[[v1.ManagerMessage | None], None],
    ) -> None:
        """Send a batch of questions; `on_answer` gets the message with the answers, `None` if none comes."""


class AnswersLater:
    """The predicates of an RM in another process: its partition does not wait for them."""

    rm_id: str
    sender: QuestionSender

    def ask_predicates(
        self,
        questions: Sequence[PredicateQuestion],
        answer: Callable[[Mapping[int, Mapping[str, str] | None]], None],
    ) -> None:
        """Ask on which nodes asks may run; see `DeferredPredicates`."""

        def on_answer(message: v1.ManagerMessage | None) -> None:
            if message is None:
                answer(dict.fromkeys(range(len(questions))))
            else:
                answer(read_node_answers(questions, message.predicate_answers))

        self.sender.ask_later(self.rm_id, "predicates", node_questions(questions), on_answer)

    def ask_preemption_predicates(
        self,
        questions: Sequence[PreemptionQuestion],
        answer: Callable[[Mapping[int, int | None]], None],
    ) -> None:
        """Ask which victims must end; see `DeferredPredicates`."""

        def on_answer(message: v1.ManagerMessage | None) -> None:
            if message is None:
                answer(dict.fromkeys(range(len(questions))))
            else:
                answer(read_preemption_answers(questions, message.preemption_answers))

        self.sender.ask_later(self.rm_id, "preemption_predicates", preemption_questions(questions), on_answer)


@final
@dataclass(slots=True)
class _OpenBatch:
    """A batch that is open."""

    since: float
    on_answer: Callable[[v1.ManagerMessage | None], None]
    left: int
    """How many of its questions have no answer yet."""


@final
class LaterAnswers:
    """The batches of one session that are open.

    Answers are taken on a separate thread: on the engine `threads` their partition works there.

    Args:
        send: Sends a batch of questions, without waiting; returns whether it will be sent.
        on_bad_answer: Gets the error of an answer that does not belong to its questions.
    """

    def __init__(
        self, send: Callable[[str, str, Message], bool], on_bad_answer: Callable[[Exception], None]
    ) -> None:
        self._send = send
        self._on_bad_answer = on_bad_answer
        self._lock = threading.Lock()
        self._open: dict[int, _OpenBatch] = {}
        self._count = 0
        self._answers: SimpleQueue[
            tuple[v1.ManagerMessage, Callable[[v1.ManagerMessage | None], None]] | None
        ] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def ask(
        self,
        rm_id: str,
        name: str,
        questions: Questions,
        on_answer: Callable[[v1.ManagerMessage | None], None],
    ) -> None:
        """Send a batch of questions; see `QuestionSender`."""
        now = time.monotonic()
        with self._lock:
            self._count += 1
            questions.batch = number = self._count
            self._forget_old(now)
            count = len(getattr(questions, "questions", (None,)))
            self._open[number] = _OpenBatch(now, on_answer, count)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="licorne-answers", daemon=True)
                self._thread.start()
        if not self._send(rm_id, name, questions):
            with self._lock:
                found = self._open.pop(number, None)
            if found is not None:
                on_answer(None)

    def _forget_old(self, now: float) -> None:
        """Forget batches without an answer, so that their number is bounded; the caller has the lock."""
        while self._open:
            number, batch = next(iter(self._open.items()))
            if now - batch.since < _FORGOTTEN_SECONDS:
                return
            del self._open[number]

    def take(self, message: v1.ManagerMessage) -> bool:
        """Return whether a message answers a batch; it is taken then, and the caller does not wait.

        One that comes too late, or answers what was never asked, is dropped.
        """
        number = batch_of(message)
        if not number:
            return False
        answered = len(message.predicate_answers.answers) + len(message.preemption_answers.answers)
        with self._lock:
            batch = self._open.get(number)
            if batch is None:
                return True
            batch.left -= max(1, answered)
            if batch.left <= 0:
                del self._open[number]
        self._answers.put((message, batch.on_answer))
        return True

    def close(self) -> None:
        """Answer all open batches with nothing, and end the thread."""
        self._answers.put(None)
        with self._lock:
            waiting, self._open = list(self._open.values()), {}
        for batch in waiting:
            batch.on_answer(None)

    def _run(self) -> None:
        while (answered := self._answers.get()) is not None:
            message, on_answer = answered
            try:
                on_answer(message)
            except Exception as error:  # noqa: BLE001 - the session ends with it, this thread does not
                self._on_bad_answer(error)


ANSWER_SECONDS: Final = 2.0
"""How long the thread that makes a state dump waits for an RM."""


def ask_state_dump(sender: QuestionSender, rm_id: str) -> str:
    """Return an RM's part of a state dump, on a thread that may wait.

    Raises:
        LicorneError: The RM refuses, does not answer in time, or its connection is lost.
    """
    answers: SimpleQueue[v1.ManagerMessage | None] = SimpleQueue()
    sender.ask_later(rm_id, "state_dump", v1.StateDumpQuestion(), answers.put)
    try:
        message = answers.get(timeout=ANSWER_SECONDS)
    except Empty:
        text = f"RM {rm_id!r} gave no answer within {ANSWER_SECONDS:g} s"
        raise LicorneError(text) from None
    if message is None:
        raise LicorneError(f"the connection of RM {rm_id!r} is lost, or it does not read what is sent")
    match message.state_dump.WhichOneof("said"):
        case "json":
            return message.state_dump.json
        case "error":
            raise LicorneError(message.state_dump.error)
        case _:
            raise LicorneError(f"RM {rm_id!r} gave an answer without json and without error")


def refuse_state_dump(_: QuestionSender, rm_id: str) -> NoReturn:
    """Ask nothing: the RM of a stepped scheduler listens only inside of its calls.

    Raises:
        LicorneError: Always.
    """
    raise LicorneError(f"RM {rm_id!r} is not asked over its connection, since the scheduler is stepped")
