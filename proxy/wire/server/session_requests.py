"""The requests of a client in a session of `licorne.v1`, and the RMs that have registered in it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from enum import Enum
from functools import partial
from typing import Any, Final, Protocol, final

import grpc
from google.protobuf.message import Message

from ....model.configuration.problems import Position
from ....model.errors import LicorneError, RequestError
from ....model.values.documents import Json
from ....model.values.messages import PredicateQuestion
from ...base.files.json_text import JsonError, parse_json
from ...core.explanation.documents import document_of, dry_run_document, next_asks_document, prospect_document
from ...core.health import health_document
from ...core.scheduler.answering.questions import TITLES
from ...core.scheduler.answering.sent_values import VALUE_VERSION, value_to_json
from ...core.scheduler.prepared_configuration import PreparedConfiguration, commit_refused
from ...si import licorne_v1_pb2 as v1
from ...si import si_pb2 as si
from .access import Peer
from .buffers import call_soon
from .calls import NotRegisteredError, StatusError, node_questions, read_node_answers
from .core import ServerCore
from .later_answers import AnswersLater, QuestionSender, ask_state_dump, refuse_state_dump
from .remote_managers import RemoteManager
from .served_scheduler import ServedScheduler


@final
class SessionRequests:
    """Carries out the messages of one session, on its thread.

    Args:
        core: Has the scheduler.
        peer: The client.
        session: Sends what the RMs are to receive.
        on_registration: Called on the event loop when an RM has registered.
    """

    def __init__(
        self,
        core: ServerCore,
        peer: Peer,
        session: ManagedSession,
        on_registration: Callable[[SessionManager], None],
    ) -> None:
        self._core = core
        self._peer = peer
        self._session = session
        self._on_registration = on_registration
        self._calls = SessionCalls(core.scheduler, peer)
        self.managers: dict[str, SessionManager] = {}
        self.companion_of = ""
        """The RM that uses the streams of `si.v1`, and this session besides."""
        self.client = ""
        """The address of the client."""
        self.door = v1.DoorStart()
        """The door that is the client, if it is one."""
        self.has_ended = False
        """Whether the session has ended: what is prepared from now on is abandoned at once."""
        self._prepared: dict[str, PreparedConfiguration] = {}
        """The configuration that was prepared last for an RM; only this session can commit it."""
        self._said_goodbye = False

    @property
    def is_over(self) -> bool:
        """Whether the client has said goodbye, or has no RM here."""
        return self._said_goodbye or not self.managers

    def end(self, reason: str) -> None:
        """Abandon what was prepared, and have the RMs lose their connection; on the event loop."""
        self._abandon_all()
        for manager in list(self.managers.values()):
            self._core.managers.connection_lost(manager, reason)

    def carry_out(self, message: v1.ManagerMessage) -> v1.Answer:
        """Carry out one message.

        Raises:
            Exception: It is refused, or cannot be carried out.
        """
        scheduler = self._core.scheduler
        match message.WhichOneof("body"):
            case "update_allocation" | "update_application" | "update_node" as method:
                request = getattr(message, method)
                manager = self._check_own(request.rmID)
                manager.wait_until_delivered(scheduler)
                with manager.turn:
                    self._check_own(request.rmID)  # It may have registered elsewhere meanwhile.
                    manager.hand_over(scheduler, method, request)
            case "question":
                if (
                    scheduler.stepped or self._core.works_elsewhere
                ):  # Each worker bounds its own time for them.
                    return self._calls.ask(message.question)
                with self._core.questions.step():
                    return self._calls.ask(message.question)
            case "step":
                return self._calls.step(message.step)
            case "pause" | "stop" as change:
                return self._calls.halt(change, getattr(message, change))
            case body:
                calls: dict[str | None, Callable[[Any], v1.Answer | None]] = {
                    "register": self._register,
                    "update_configuration": self._update_configuration,
                    "prepare_configuration": self._prepare_configuration,
                    "commit_configuration": self._commit_configuration,
                    "abandon_configuration": self._abandon_configuration,
                    "forget": self._forget,
                    "goodbye": self._say_goodbye,
                    "reconsider": self._reconsider,
                    "take_kept_use": self._calls.take_kept_use,
                }
                if body not in calls:
                    raise RequestError(f"a message {body or 'without a body'!r} is not expected here")
                return calls[body](getattr(message, body)) or v1.Answer()
        return v1.Answer()

    def _update_configuration(self, request: si.UpdateConfigurationRequest) -> None:
        self._core.update_configuration(request, self._check_own(request.rmID))

    def _prepare_configuration(self, request: si.UpdateConfigurationRequest) -> v1.Answer:
        prepared = self._core.prepare_configuration(request, self._check_own(request.rmID))
        before, self._prepared[request.rmID] = self._prepared.get(request.rmID), prepared
        if before is not None:
            before.abandon()
        if self.has_ended:
            self._abandon_all()
        return v1.Answer(number=prepared.number)

    def _commit_configuration(self, change: v1.ConfigurationChange) -> None:
        """Commit what was prepared in this session.

        Raises:
            RequestError: There is no such change, or it can no longer be committed.
        """
        self._check_own(change.rm_id)
        prepared = self._prepared.get(change.rm_id)
        if prepared is None:
            raise commit_refused(change.rm_id, "none is prepared in this session")
        if prepared.number != change.number:
            raise commit_refused(change.rm_id, "another one has been prepared since")
        prepared.commit()
        self._prepared.pop(change.rm_id, None)

    def _abandon_configuration(self, change: v1.ConfigurationChange) -> None:
        self._peer.check_may_speak_for(change.rm_id)
        prepared = self._prepared.get(change.rm_id)
        if prepared is not None and prepared.number == change.number:
            self._prepared.pop(change.rm_id, None)
            prepared.abandon()

    def _abandon_all(self) -> None:
        for prepared in list(self._prepared.values()):
            prepared.abandon()
        self._prepared.clear()

    def _reconsider(self, named: v1.Reconsideration) -> None:
        with self._check_own(named.rm_id).turn:
            self._core.scheduler.request_reconsideration(named)

    def _check_own(self, rm_id: str) -> RemoteManager:
        """Return the RM that a message names.

        Raises:
            StatusError: It may not be named, or has not registered in this session.
        """
        self._peer.check_may_speak_for(rm_id)
        if rm_id and rm_id == self.companion_of:
            return self._core.managers.current(rm_id)
        manager = self._core.managers.current(rm_id)
        if not isinstance(manager, SessionManager) or not manager.is_of(self._session):
            raise NotRegisteredError(f"RM {rm_id!r} has not registered in this session")
        return manager

    def _register(self, registration: v1.Registration) -> None:
        request = registration.request
        self._peer.check_may_speak_for(request.rmID)
        kind = SessionManager
        if registration.predicates:
            kind = SteppedManager if self._core.scheduler.stepped else DeferringManager
        manager = kind(self._session, request.rmID, dict(request.extraConfig), uses_file=not request.config)
        manager.connected_by = f"licorne.v1 from {self.client}"
        manager.door = self.door
        if registration.state_dump:
            ask = refuse_state_dump if self._core.scheduler.stepped else ask_state_dump
            manager.get_state_dump = partial(ask, self._session, request.rmID)
        before = self.managers.get(request.rmID)
        self.managers[request.rmID] = manager
        try:
            self._core.register(request, manager, registration.partitions)
        except BaseException:
            if before is None:
                del self.managers[request.rmID]
            else:
                self.managers[request.rmID] = before
            raise
        call_soon(self._core.loop, self._on_registration, manager)

    def _forget(self, message: v1.Forget) -> None:
        self._peer.check_may_speak_for(message.rm_id)
        self._core.scheduler.forget_manager(message.rm_id)

    def _say_goodbye(self, message: v1.Goodbye) -> None:
        for name in [message.rm_id] if message.rm_id else list(self.managers):
            self._core.managers.shut_down(self._check_own(name))
            del self.managers[name]
        self._said_goodbye = not self.managers


@final
class SessionCalls:
    """Answers the questions of one peer; one that is bound to an RM gets answers about that RM alone."""

    def __init__(self, scheduler: ServedScheduler, peer: Peer) -> None:
        self._scheduler = scheduler
        self._peer = peer

    def ask(self, question: v1.Question) -> v1.Answer:
        """Answer a question.

        Raises:
            LicorneError: It is refused.
            AssertionError: The scheduler was asked to check its invariants, and one does not hold.
        """
        if question.as_value or question.value_version not in (0, VALUE_VERSION):
            raise RequestError(
                f"the client reads answers of version {question.value_version}, this server writes "
                f"version {VALUE_VERSION}: use a client of the version of the server"
            )
        kind = question.WhichOneof("body") or ""
        self._limit(kind, question)
        value = self._scheduler.answers.answer(question)
        if kind == "resource_managers":
            value = tuple(each for each in value if self._peer.rm_id in (None, each.rm_id))
        if question.value_version:
            return v1.Answer(json=value_to_json(value))
        document = _DOCUMENTS.get(kind, _plain)(value)
        return v1.Answer(json=json.dumps(document, ensure_ascii=False))

    def _limit(self, kind: str, question: v1.Question) -> None:
        """Limit a question of a peer that is bound to an RM to that RM.

        Raises:
            StatusError: It may not ask that (PERMISSION_DENIED).
        """
        if kind in _OF_ALL:
            self._refuse_bound(TITLES[kind])
            return
        asked = getattr(question, kind) if kind else None
        if asked is None or "rm_id" not in asked.DESCRIPTOR.fields_by_name:
            return
        is_optional = asked.DESCRIPTOR.fields_by_name["rm_id"].has_presence
        if is_optional and not asked.HasField("rm_id"):
            if self._peer.rm_id is not None:
                asked.rm_id = self._peer.rm_id
        else:
            self._peer.check_may_speak_for(asked.rm_id)

    def _refuse_bound(self, question: str) -> None:
        """Refuse a question about all RMs to a peer that is bound to one.

        Raises:
            StatusError: It is (PERMISSION_DENIED).
        """
        if self._peer.rm_id is not None:
            text = f"{question} is for peers that may speak for all RMs"
            raise StatusError(grpc.StatusCode.PERMISSION_DENIED, text)

    def halt(self, change: str, halt: v1.Halt) -> v1.Answer:
        """Pause or stop an RM.

        Raises:
            LicorneError: The peer may not speak for it, or it has not registered.
        """
        self._peer.check_may_speak_for(halt.rm_id)
        method = self._scheduler.pause_manager if change == "pause" else self._scheduler.stop_manager
        return v1.Answer(changed=method(halt.rm_id, halt.reason))

    def take_kept_use(self, kept: v1.KeptUse) -> None:
        """Take what partitions of an RM have used before.

        Raises:
            LicorneError: The peer may not speak for it, or the text is not that.
        """
        self._peer.check_may_speak_for(kept.rm_id)
        try:
            usage = parse_json(kept.json)
        except JsonError as error:
            raise RequestError(f"the kept use of RM {kept.rm_id!r} is not JSON: {error}") from error
        self._scheduler.take_kept_use(kept.rm_id, usage)

    def step(self, step: v1.Step) -> v1.Answer:
        """Step a stepped scheduler, or return its time.

        Raises:
            LicorneError: It is not stepped, or does not know the step.
        """
        argument = step.argument if step.HasField("argument") else None
        if step.method != v1.Step.NOW:
            self._refuse_bound("a step")
        run = _STEPS.get(step.method)
        if run is None:
            raise RequestError(f"unknown step {step.method}")
        if step.method == v1.Step.ADVANCE_TO and argument is None:
            raise RequestError("the step ADVANCE_TO needs a time")
        number = run(self._scheduler, argument)
        return v1.Answer() if number is None else v1.Answer(number=number)


def _where(position: Position) -> str:
    """Return how an answer names a place in the configuration."""
    return f"line {position.line}"


_STEPS: Final[Mapping[int, Callable[[ServedScheduler, int | None], int | None]]] = {
    v1.Step.NOW: lambda scheduler, _: scheduler.now_ns(),
    v1.Step.DELIVER: lambda scheduler, _: scheduler.deliver(),
    v1.Step.SCHEDULE: lambda scheduler, cycles: scheduler.schedule(cycles),
    v1.Step.RUN_UNTIL_IDLE: lambda scheduler, _: scheduler.run_until_idle(),
    v1.Step.ADVANCE_TO: lambda scheduler, time_ns: scheduler.advance_to(time_ns or 0),
    v1.Step.NEXT_DEADLINE: lambda scheduler, _: scheduler.next_deadline_ns(),
    v1.Step.NEXT_TIMER: lambda scheduler, _: scheduler.next_timer_ns(),
    v1.Step.FIRE_NEXT: lambda scheduler, _: scheduler.fire_next(),
    v1.Step.INSPECT_OUTSTANDING: lambda scheduler, _: scheduler.inspect_outstanding(),
    v1.Step.PREEMPT_OVER_QUOTA: lambda scheduler, _: scheduler.preempt_over_quota(),
    v1.Step.DELIVER_EVENTS: lambda scheduler, _: scheduler.deliver_events(),
    v1.Step.RECORD_HISTORY: lambda scheduler, _: scheduler.record_history(),
}
_OF_ALL: Final = frozenset({"quarantined", "validate", "health", "check_health", "recorded_in", "figures"})
"""The questions about all RMs together."""


def _plain(value: Any) -> Json:
    """Return the document of an answer without a declared one: its fields under their names."""
    document: Json = json.loads(json.dumps(value, default=_known_to_json))
    return document


def _known_to_json(value: Any) -> object:
    """Return what JSON does not know as what it knows."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return dict(value)
    return _by_name(value)


def _by_name(value: Any) -> dict[str, object]:
    return {field.name: getattr(value, field.name) for field in fields(value)}


_DOCUMENTS: Final[Mapping[str, Callable[[Any], object]]] = {
    "explain": lambda explanation: document_of(explanation, _where),
    "dry_run": lambda run: dry_run_document(run, _where),
    "would_preempt": lambda prospects: [prospect_document(each) for each in prospects],
    "next_asks": lambda found: [next_asks_document(each, _where) for each in found],
    "queue_and_user": lambda found: None if found is None else {**found._asdict()},
    "health": lambda report: None if report is None else health_document(report),
    "check_health": health_document,
    "figures": lambda figures: json.loads(value_to_json(figures)),
    "extra_configuration": lambda found: _plain(
        _by_name(found) | {"log_levels": {name: level.name for name, level in found.log_levels.items()}}
    ),
}
"""The documents that the command line prints, of the answers that have their own."""


class ManagedSession(QuestionSender, Protocol):
    """A session, as its RMs use it."""

    def call_back(self, rm_id: str, name: str, message: Message) -> None:
        """Send a callback; a stepped scheduler waits until it has returned."""

    def call_back_nowait(self, rm_id: str, *burst: tuple[str, Message]) -> None:
        """Send callbacks of a scheduler that is not stepped, without waiting."""

    def has_room(self) -> bool:
        """Return whether not too many messages are waiting to be sent."""

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

    def send_burst(self, burst: Sequence[tuple[str, Message]]) -> None:
        """Send the messages of several callbacks; do not wait."""
        self._session.call_back_nowait(self.rm_id, *burst)

    def has_room(self) -> bool:
        """Return whether not too many messages are waiting to be sent."""
        return self._session.has_room()

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
