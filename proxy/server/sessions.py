"""The service `licorne.v1.Session`: one stream for all that a client and the scheduler say to each other.

Each session has a thread that carries out its messages in order. With a stepped scheduler that thread also
waits in callbacks until they have returned, and carries out what the client sends meanwhile: as in one
process.
"""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, final

import grpc

from ...model.errors import LicorneError, RequestError
from ..si import licorne_v1_pb2 as v1
from ..si.merging import MERGED_MAX, merges_into
from .buffers import Inbox, Outgoing
from .messages import parsed
from .remote_managers import RemoteManager
from .session_calls import SessionCalls
from .statuses import NotRegisteredError, StatusError, status_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from google.protobuf.message import Message

    from ..si import si_pb2 as si
    from .access import Peer
    from .core import ServerCore

__all__ = ["SERVICE", "Sessions"]

SERVICE: Final = "licorne.v1.Session"

_ANSWER_SECONDS: Final = 2.0
"""How long a partition waits for an RM's answer about nodes; then it counts as refused."""

_Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"


class _Callback(NamedTuple):
    """A callback that waits to be written."""

    rm_id: str
    name: str
    message: Message
    number: int


class _SessionEnd(NamedTuple):
    """The end of the session, in the place of a message."""

    status: StatusError


class _SessionManager(RemoteManager):
    """An RM that has registered in a session."""

    def __init__(self, session: _Session, rm_id: str, extra: dict[str, str], *, uses_file: bool) -> None:
        super().__init__(rm_id, extra, uses_file=uses_file)
        self._session = session

    def send(self, callback: str, message: Message) -> None:
        self._session.call_back(self.rm_id, callback, message)

    def set_bounded(self, bounded: bool) -> None:  # noqa: FBT001 - it is the verb's object
        self._session.outgoing.set_bounded(bounded)

    def end(self, reason: str) -> None:
        self._session.drop(self, reason)

    def send_event(self, events: Sequence[si.EventRecord]) -> None:
        self.send("send_event", v1.Events(events=events))


@final
class _PredicateManager(_SessionManager):
    """An RM that answers questions about nodes."""

    def predicates(self, args: si.PredicatesArgs) -> None:
        question = v1.PredicateQuestion(
            allocation_key=args.allocationKey, allocate=args.allocate, node_ids=[args.nodeID]
        )
        answers = self._session.ask(self.rm_id, "predicates", v1.PredicateQuestions(questions=[question]))
        for answer in answers.predicate_answers.answers:
            for refusal in answer.refused:
                raise LicorneError(refusal.reason)

    def preemption_predicates(
        self, args: si.PreemptionPredicatesArgs
    ) -> si.PreemptionPredicatesResponse | None:
        questions = v1.PreemptionQuestions(questions=[args])
        answers = self._session.ask(self.rm_id, "preemption_predicates", questions)
        return next(iter(answers.preemption_answers.answers), None)


@final
class _Session:
    """One stream. The event loop reads and writes; the session's thread calls the scheduler."""

    def __init__(self, core: ServerCore, peer: Peer) -> None:
        self._core = core
        self._peer = peer
        self.outgoing: Outgoing[v1.SchedulerMessage | _Callback | _SessionEnd] = Outgoing(core.loop)
        self._inbox: Inbox[v1.ManagerMessage] = Inbox(core.loop)
        self._managers: dict[str, RemoteManager] = {}
        self._calls = SessionCalls(core.scheduler, peer)
        self._questions: dict[int, Future[v1.ManagerMessage]] = {}
        """The questions that wait for the RM's answer, by the number of their batch."""
        self._callbacks = 0
        """How many callbacks a stepped scheduler has made."""
        self._said_goodbye = False

    # ------------------------------------------------------------------------- on the event loop

    async def run(self, context: _Context) -> None:
        """Serve the session: this task writes, another one reads, and a thread works."""
        hello = await self._read_one(context)
        if hello is None:
            return
        if hello.WhichOneof("body") != "hello":
            text = f"the first message is hello, not {hello.WhichOneof('body') or 'an empty one'}"
            raise StatusError(grpc.StatusCode.FAILED_PRECONDITION, text)
        stepped = self._core.scheduler.stepped
        self.answer(hello.call, v1.Answer(stepped=stepped))
        threading.Thread(target=self._work, name="licorne-session", daemon=True).start()
        reading = asyncio.create_task(self._read(context))
        reason = "its connection was lost"
        try:
            await self._write(context)
        except StatusError as error:
            reason = f"its stream was ended: {error}"
            raise
        finally:
            reading.cancel()
            self._inbox.close()
            self.outgoing.close()
            for future in list(self._questions.values()):
                future.cancel()
            for manager in self._managers.values():
                self._core.managers.connection_lost(manager, reason)

    async def _read_one(self, context: _Context) -> v1.ManagerMessage | None:
        """Return the next message, `None` when the client has closed its side."""
        data = await context.read()
        return None if data is grpc.aio.EOF else parsed(v1.ManagerMessage, data)

    async def _read(self, context: _Context) -> None:
        try:
            while (message := await self._read_one(context)) is not None:
                if not self._take_answer(message):
                    await self._inbox.put(message)
        except StatusError as error:
            self.outgoing.put_nowait(_SessionEnd(error))
        self._inbox.close()

    async def _write(self, context: _Context) -> None:
        """Write messages until there are no more.

        Raises:
            StatusError: The session ends with a status.
        """
        while items := await self.outgoing.take():
            for item in _merged(items):
                if isinstance(item, _SessionEnd):
                    raise item.status
                await context.write(_wrapped(item).SerializeToString())

    # ---------------------------------------------------------------------------- on any thread

    def answer(self, call: int, answer: v1.Answer) -> None:
        """Answer a call, unless it wants no answer."""
        if call:
            self.outgoing.put(v1.SchedulerMessage(call=call, answer=answer))

    def call_back(self, rm_id: str, name: str, message: Message) -> None:
        """Send a callback; a stepped scheduler waits until it has returned."""
        if not self._core.scheduler.stepped:
            self.outgoing.put(_Callback(rm_id, name, message, 0))
            return
        self._callbacks += 1
        number = self._callbacks
        self.outgoing.put(_Callback(rm_id, name, message, number))
        self._work_until(lambda received: received.returned.callback == number)

    def ask(
        self, rm_id: str, name: str, questions: v1.PredicateQuestions | v1.PreemptionQuestions
    ) -> v1.ManagerMessage:
        """Ask an RM a batch of questions, and wait for the message with the answers.

        Raises:
            LicorneError: It gave no answer in time, or its connection is lost.
        """
        self._callbacks += 1
        number = questions.batch = self._callbacks
        if self._core.scheduler.stepped:
            self.outgoing.put(_Callback(rm_id, name, questions, number))
            found = self._work_until(lambda received: _batch(received) == number)
            if found is None:
                raise LicorneError("the connection of the resource manager is lost")
            return found
        future: Future[v1.ManagerMessage] = Future()
        self._questions[number] = future
        try:
            if not self.outgoing.put(_Callback(rm_id, name, questions, number)):
                raise LicorneError("the connection of the resource manager is lost")
            return future.result(_ANSWER_SECONDS)
        except TimeoutError as error:
            text = f"the resource manager gave no answer within {_ANSWER_SECONDS:g} s"
            raise LicorneError(text) from error
        finally:
            del self._questions[number]

    def _take_answer(self, message: v1.ManagerMessage) -> bool:
        """Return whether a message answers a question; its asker gets it, unless it waits no more."""
        number = _batch(message)
        if not number or self._core.scheduler.stepped:
            return False
        future = self._questions.get(number)
        if future is not None and not future.done():
            future.set_result(message)
        return True

    def drop(self, manager: RemoteManager, reason: str) -> None:
        """Forget an RM that is connected elsewhere now; a session without RMs ends."""
        if self._managers.get(manager.rm_id) is manager:
            del self._managers[manager.rm_id]
        if not self._managers:
            self.outgoing.put_nowait(_SessionEnd(StatusError(grpc.StatusCode.ABORTED, reason)))

    # -------------------------------------------------------------------- on the session's thread

    def _work(self) -> None:
        """Carry out messages in order, until the client has closed its side."""
        self._work_until(lambda _: False)
        if self._said_goodbye or not self._managers:
            self.outgoing.finish()

    def _work_until(self, is_last: Callable[[v1.ManagerMessage], bool]) -> v1.ManagerMessage | None:
        """Carry out messages up to one that is wanted, and return that; `None` at the end."""
        while (message := self._inbox.get()) is not None:
            if is_last(message):
                return message
            try:
                with self._core.stepping:
                    answer = self._carry_out(message)
            except Exception as error:  # noqa: BLE001 - it is the answer
                self._refuse(message.call, error)
            else:
                self.answer(message.call, answer)
        return None

    def _refuse(self, call: int, error: Exception) -> None:
        if isinstance(error, StatusError) and error.code is grpc.StatusCode.PERMISSION_DENIED:
            self.outgoing.put_nowait(_SessionEnd(error))
            return
        kind = v1.Refusal.OTHER
        if isinstance(error, RequestError | StatusError):
            kind = v1.Refusal.REQUEST
        elif isinstance(error, AssertionError):
            kind = v1.Refusal.INVARIANT
        text = str(error) if isinstance(error, LicorneError | AssertionError) else status_of(error)[1]
        self.outgoing.put(v1.SchedulerMessage(call=call, refusal=v1.Refusal(kind=kind, text=text)))

    def _carry_out(self, message: v1.ManagerMessage) -> v1.Answer:
        """Carry out one message.

        Raises:
            Exception: It is refused, or cannot be carried out.
        """
        scheduler = self._core.scheduler
        match message.WhichOneof("body"):
            case "update_allocation":
                self._check_own(message.update_allocation.rmID)
                scheduler.update_allocation(message.update_allocation)
            case "update_application":
                self._check_own(message.update_application.rmID)
                scheduler.update_application(message.update_application)
            case "update_node":
                self._check_own(message.update_node.rmID)
                scheduler.update_node(message.update_node)
            case "register":
                self._register(message.register)
            case "update_configuration":
                request = message.update_configuration
                self._core.update_configuration(request, self._check_own(request.rmID))
            case "question":
                return self._calls.ask(message.question)
            case "step":
                return self._calls.step(message.step)
            case "goodbye":
                self._say_goodbye(message.goodbye.rm_id)
            case body:
                raise RequestError(f"a message {body or 'without a body'!r} is not expected here")
        return v1.Answer()

    def _check_own(self, rm_id: str) -> RemoteManager:
        """Return the RM that a message names.

        Raises:
            StatusError: It may not be named, or has not registered in this session.
        """
        self._peer.check_may_speak_for(rm_id)
        manager = self._managers.get(rm_id)
        if manager is None:
            raise NotRegisteredError(f"RM {rm_id!r} has not registered in this session")
        return manager

    def _register(self, registration: v1.Registration) -> None:
        request = registration.request
        self._peer.check_may_speak_for(request.rmID)
        kind = _PredicateManager if registration.predicates else _SessionManager
        manager = kind(self, request.rmID, dict(request.extraConfig), uses_file=not request.config)
        before = self._managers.get(request.rmID)
        self._managers[request.rmID] = manager
        try:
            self._core.register(request, manager)
        except BaseException:
            if before is None:
                del self._managers[request.rmID]
            else:
                self._managers[request.rmID] = before
            raise

    def _say_goodbye(self, rm_id: str) -> None:
        for name in [rm_id] if rm_id else list(self._managers):
            self._core.managers.shut_down(self._check_own(name))
            del self._managers[name]
        self._said_goodbye = not self._managers


def _merged(
    items: Iterable[v1.SchedulerMessage | _Callback | _SessionEnd],
) -> Iterator[v1.SchedulerMessage | _Callback | _SessionEnd]:
    """Yield items with neighbouring responses of one kind merged."""
    last: _Callback | None = None
    count = 0
    for item in items:
        if not isinstance(item, _Callback) or item.number:
            if last is not None:
                yield last
                last = None
            yield item
        elif (
            last is not None
            and count < MERGED_MAX
            and last[:2] == item[:2]
            and merges_into(item.message, last.message)
        ):
            last.message.MergeFrom(item.message)
            count += 1
        else:
            if last is not None:
                yield last
            last, count = item, 1
    if last is not None:
        yield last


def _batch(message: v1.ManagerMessage) -> int:
    """Return the number of the batch that a message answers, 0 if it answers none."""
    return message.predicate_answers.batch or message.preemption_answers.batch


def _wrapped(item: v1.SchedulerMessage | _Callback) -> v1.SchedulerMessage:
    if isinstance(item, v1.SchedulerMessage):
        return item
    message = v1.SchedulerMessage(rm_id=item.rm_id, callback=item.number)
    getattr(message, item.name).CopyFrom(item.message)
    return message


@final
class Sessions:
    """The handlers of the service; they run on the event loop."""

    def __init__(self, core: ServerCore) -> None:
        self._core = core

    def handler(self) -> grpc.GenericRpcHandler:
        """Return the handler of the one method; it takes and gives bytes."""

        async def open_session(_: object, context: _Context) -> None:
            await self._core.answering(context, lambda peer: _Session(self._core, peer).run(context))

        return grpc.method_handlers_generic_handler(
            SERVICE, {"Open": grpc.stream_stream_rpc_method_handler(open_session)}
        )
