"""Resource managers (RMs) that have registered in a session of `licorne.v1`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, final

from google.protobuf.message import Message

from ....model.errors import LicorneError
from ....model.values.messages import PredicateQuestion
from ...si import licorne_v1_pb2 as v1
from ...si import si_pb2 as si
from .later_answers import AnswersLater, QuestionSender
from .messages import node_questions, read_node_answers
from .remote_managers import RemoteManager
from .statuses import StatusError


class ManagedSession(QuestionSender, Protocol):
    """A session, as its RMs use it."""

    def call_back(self, rm_id: str, name: str, message: Message) -> None:
        """Send a callback; a stepped scheduler waits until it has returned."""

    def ask_now(
        self, rm_id: str, name: str, questions: v1.PredicateQuestions | v1.PreemptionQuestions
    ) -> v1.ManagerMessage:
        """Ask an RM of a stepped scheduler a batch of questions, and wait for the answers."""

    def set_bounded(self, bounded: bool) -> None:  # noqa: FBT001 - it is the verb's object
        """Have callbacks wait while too many messages are waiting, or not."""

    def forget(self, manager: SessionManager, status: StatusError) -> None:
        """Forget an RM that is connected elsewhere now; on the event loop."""

    def drop(self) -> None:
        """Drop what waits to be written."""


class SessionManager(RemoteManager):
    """An RM that has registered in a session."""

    get_state_dump: Callable[[], str]
    """Asks for its part of a state dump; set only if the RM has one, which `StateDumpPlugin` looks for."""

    def __init__(
        self, session: ManagedSession, rm_id: str, extra: dict[str, str], *, uses_file: bool
    ) -> None:
        super().__init__(rm_id, extra, uses_file=uses_file)
        self._session = session
        self.speaks_for = session

    def send(self, callback: str, message: Message) -> None:
        """Send a callback's message; wait while too many are waiting to be sent."""
        self._session.call_back(self.rm_id, callback, message)
        self.delivered.set()

    def set_bounded(self, bounded: bool) -> None:  # noqa: FBT001 - it is the verb's object
        """Have `send` wait, or not."""
        self._session.set_bounded(bounded)

    def end(self, status: StatusError) -> None:
        """Leave the session, since the RM has registered again elsewhere, or the server stops."""
        self._session.forget(self, status)

    def drop(self) -> None:
        """Drop what waits to be written."""
        self._session.drop()

    def is_of(self, session: ManagedSession) -> bool:
        """Return whether it has registered in a session."""
        return self._session is session

    def send_event(self, events: Sequence[si.EventRecord]) -> None:
        """Send events."""
        self.send("send_event", v1.Events(events=events))


@final
class DeferringManager(AnswersLater, SessionManager):
    """An RM that answers questions about nodes."""

    @property
    def sender(self) -> ManagedSession:  # type: ignore[override] # it never changes
        """The session that sends the questions."""
        return self._session


@final
class SteppedManager(SessionManager):
    """An RM that answers questions about nodes inside the calls of a stepped scheduler."""

    def predicates(self, args: si.PredicatesArgs) -> None:
        """Refuse a node by raising, as the RM does."""
        question = PredicateQuestion(args.allocationKey, (args.nodeID,), args.allocate)
        message = self._session.ask_now(self.rm_id, "predicates", node_questions([question]))
        for answer in read_node_answers([question], message.predicate_answers).values():
            for reason in answer.values() if answer is not None else ("no answer",):
                raise LicorneError(reason)

    def preemption_predicates(
        self, args: si.PreemptionPredicatesArgs
    ) -> si.PreemptionPredicatesResponse | None:
        """Return what the RM answers."""
        questions = v1.PreemptionQuestions(questions=[args])
        message = self._session.ask_now(self.rm_id, "preemption_predicates", questions)
        return next(iter(message.preemption_answers.answers), None)
