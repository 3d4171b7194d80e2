"""The service `licorne.v1.Session`: one stream for all messages between a client and the scheduler.

Each session has a thread that carries out its messages in order. With a stepped scheduler that thread also
waits in callbacks until they have returned, and carries out what the client sends meanwhile: as in one
process.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeAlias, final

import grpc
from google.protobuf.message import Message

from .... import __version__
from ....actors.runtime.pool import RequestThread
from ....model.errors import LicorneError, RequestError
from ....model.identifiers import id_refusal
from ...si import licorne_v1_pb2 as v1
from .access import Peer
from .buffers import Inbox, Outgoing, call_soon
from .calls import (
    LAST_SECONDS,
    Callback,
    SessionEnd,
    StatusError,
    Written,
    merged_callbacks,
    parsed,
    size_of,
    status_of,
    wrapped,
)
from .core import DaemonPool, ServerCore
from .later_answers import LaterAnswers, Questions, batch_of
from .session_requests import SessionManager, SessionRequests

SERVICE: Final = "licorne.v1.Session"

_MAY_WAIT: Final = frozenset(
    {"question", "step", "update_configuration", "prepare_configuration", "commit_configuration"}
)
"""The calls in which a door waits for workers, of which one may be silent."""
_WAITING_MAX: Final = 64
"""How many such calls of a session wait at once; then its other messages wait, too."""
_APART_SECONDS: Final = 0.001
"""After several messages at once to a client that is not stepped, the next ones are written this much later,
and merged meanwhile."""

_Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"


@final
class _Session:
    """One stream. The event loop reads and writes; the session's thread calls the scheduler."""

    def __init__(self, core: ServerCore, peer: Peer) -> None:
        self._core = core
        self._peer = peer
        self.outgoing: Outgoing[Written] = Outgoing(core.loop, size_of)
        self._inbox: Inbox[v1.ManagerMessage] = Inbox(core.loop)
        self.has_predicates = False
        """Whether it answers questions about nodes here."""
        self._requests = SessionRequests(core, peer, self, self._registered)
        self._waiting_calls = DaemonPool(1, "licorne-session-calls")
        """Carries out, in order, calls that may wait for workers; requests continue meanwhile."""
        self._room_to_wait = threading.Semaphore(_WAITING_MAX)
        self._answers = LaterAnswers(
            lambda rm_id, name, message: self.outgoing.try_put(Callback(rm_id, name, message, 0)),
            lambda error: self.end(StatusError(*status_of(error))),
        )
        self._callbacks = 0
        """How many callbacks a stepped scheduler has made."""
        self._task: asyncio.Task[Any] | None = None
        """It answers the call."""
        self._works = False

    # ------------------------------------------------------------------------- on the event loop

    async def run(self, context: _Context) -> None:
        """Serve the session: this task writes, another one reads, and a thread works."""
        self._requests.client = context.peer()
        with self._core.calls.stranger() as self._task:
            data = await self._core.calls.first_message(context)
            if data is not grpc.aio.EOF:
                await self._serve(context, parsed(v1.ManagerMessage, data))

    async def _serve(self, context: _Context, hello: v1.ManagerMessage) -> None:
        if hello.WhichOneof("body") != "hello":
            text = f"the first message is hello, not {hello.WhichOneof('body') or 'an empty one'}"
            raise StatusError(grpc.StatusCode.FAILED_PRECONDITION, text)
        stepped = self._core.scheduler.stepped
        self._requests.door = hello.hello.door
        if hello.hello.companion_of:
            self._accompany(hello.hello)
        said = v1.Answer(
            stepped=stepped,
            version=__version__,
            rest_address=self._core.rest_address,
            build=self._core.build,
        )
        self.answer(hello.call, said)
        reading = asyncio.create_task(self._read(context))
        reason = "its connection was lost"
        try:
            await self._write(context)
        except StatusError as error:
            reason = f"its stream was ended: {error}"
            raise
        finally:
            self._requests.has_ended = True
            reading.cancel()
            self._inbox.close(drop=True)
            self.outgoing.close()
            self._answers.close()
            self._waiting_calls.shutdown()
            if self._core.companions.get(self._requests.companion_of) is self:
                del self._core.companions[self._requests.companion_of]
            self._requests.end(reason)

    def _accompany(self, hello: v1.Hello) -> None:
        """Take the predicates, hints and events of an RM that is about to register by `si.v1`.

        An earlier companion of the RM ends. Until the RM has registered, this is a stranger.

        Raises:
            StatusError: The peer may not speak for it.
        """
        self._peer.check_may_speak_for(hello.companion_of)
        bad = id_refusal("the rmID", hello.companion_of)
        if bad is not None:
            raise StatusError(grpc.StatusCode.INVALID_ARGUMENT, bad)
        self._core.check_not_stepped()
        self._requests.companion_of = hello.companion_of
        self.has_predicates = hello.predicates
        before = self._core.companions.get(hello.companion_of)
        self._core.companions[hello.companion_of] = self
        if isinstance(before, _Session):
            text = f"RM {hello.companion_of!r} has another session as its companion"
            before.end(StatusError(grpc.StatusCode.ABORTED, text))
        if self._core.managers.is_connected(hello.companion_of):
            self.claim()

    def claim(self) -> None:
        """Count the session as one with an RM."""
        if self._task is not None:
            self._core.calls.claim(self._task)

    async def _read(self, context: _Context) -> None:
        """Read messages until the client closes its side; a thread works from the first one on."""
        try:
            while (data := await context.read()) is not grpc.aio.EOF:
                message = parsed(v1.ManagerMessage, data)
                if self._core.scheduler.stepped or not self._answers.take(message):
                    if not self._works:
                        self._works = True
                        RequestThread(target=self._work, name="licorne-session", daemon=True).start()
                    await self._inbox.put(message, len(data))
            if not self._works:
                self.outgoing.finish()
        except Exception as error:  # noqa: BLE001 - it is the answer
            self.end(StatusError(*status_of(error)))
        self._inbox.close()

    def end(self, status: StatusError) -> None:
        """End the session with a status, soon, behind what waits to be written; on any thread."""
        self.outgoing.put_nowait(SessionEnd(status))
        self.outgoing.finish()
        call_soon(self._core.loop, self._end_in_time, status)

    def _end_in_time(self, status: StatusError) -> None:
        if self._task is not None:
            self._core.loop.call_later(LAST_SECONDS, self._core.calls.end, self._task, status)

    def forget(self, manager: SessionManager, status: StatusError) -> None:
        """Forget an RM that is connected elsewhere now; a session without RMs ends."""
        managers = self._requests.managers
        if managers.get(manager.rm_id) is manager:
            del managers[manager.rm_id]
            if status.code is grpc.StatusCode.ABORTED:
                said = v1.Replaced(reason=str(status))
                self.outgoing.put_nowait(v1.SchedulerMessage(rm_id=manager.rm_id, replaced=said))
        if not managers:
            self.end(status)

    def drop(self) -> None:
        """Drop what waits to be written."""
        self.outgoing.close()

    async def _write(self, context: _Context) -> None:
        """Write messages until the end.

        Raises:
            StatusError: The session ends with a status.
        """
        loop = self._core.loop
        written_at, written_count = 0.0, 0
        while True:
            is_behind = written_count > 1 or self.outgoing.has_items()
            await self.outgoing.wait_for_items()
            early = written_at + _APART_SECONDS - loop.time()
            if early > 0 and is_behind and not self._core.scheduler.stepped:
                await asyncio.sleep(early)  # Later messages join it meanwhile.
            items = await self.outgoing.take()
            if not items:
                return
            written_at, written_count = loop.time(), len(items)
            for item in merged_callbacks(items):
                if isinstance(item, SessionEnd):
                    raise item.status
                await context.write(wrapped(item).SerializeToString())

    # ---------------------------------------------------------------------------- on any thread

    def answer(self, call: int, answer: v1.Answer) -> None:
        """Answer a call, unless it needs no answer."""
        if call:
            self.outgoing.put(v1.SchedulerMessage(call=call, answer=answer))

    def call_back(self, rm_id: str, name: str, message: Message) -> None:
        """Send a callback; a stepped scheduler waits until it has returned."""
        if not self._core.scheduler.stepped:
            self.outgoing.put(Callback(rm_id, name, message, 0))
            return
        self._callbacks += 1
        number = self._callbacks
        self.outgoing.put(Callback(rm_id, name, message, number))
        self._work_until(lambda received: received.returned.callback == number)

    def call_back_nowait(self, rm_id: str, *burst: tuple[str, Message]) -> None:
        """Send callbacks of a scheduler that is not stepped, without waiting."""
        self.outgoing.put_nowait(*(Callback(rm_id, name, message, 0) for name, message in burst))

    def has_room(self) -> bool:
        """Return whether not too many messages are waiting to be sent."""
        return self.outgoing.has_room()

    def ask_later(
        self,
        rm_id: str,
        name: str,
        questions: Questions,
        on_answer: Callable[[v1.ManagerMessage | None], None],
    ) -> None:
        """Send a batch of questions; see `QuestionSender`."""
        self._answers.ask(rm_id, name, questions, on_answer)

    def ask_now(
        self, rm_id: str, name: str, questions: v1.PredicateQuestions | v1.PreemptionQuestions
    ) -> v1.ManagerMessage:
        """Ask an RM of a stepped scheduler a batch of questions, and wait for the message with the answers.

        Raises:
            LicorneError: Its connection is lost.
        """
        self._callbacks += 1
        number = questions.batch = self._callbacks
        self.outgoing.put(Callback(rm_id, name, questions, number))
        found = self._work_until(lambda received: batch_of(received) == number)
        if found is None:
            raise LicorneError("the connection of the resource manager is lost")
        return found

    def set_bounded(self, bounded: bool) -> None:  # noqa: FBT001 - it is the verb's object
        """Have callbacks wait while too many messages are waiting, or not."""
        self.outgoing.set_bounded(bounded)

    # -------------------------------------------------------------------- on the session's thread

    def _work(self) -> None:
        """Carry out messages in order, until the client has closed its side."""
        self._work_until(lambda _: False)
        for _ in range(_WAITING_MAX):  # Waiting messages are answered first.
            self._room_to_wait.acquire()
        if self._requests.is_over:
            self.outgoing.finish()

    def _work_until(self, is_last: Callable[[v1.ManagerMessage], bool]) -> v1.ManagerMessage | None:
        """Carry out messages up to one that the caller waits for, and return that; `None` at the end."""
        while (message := self._inbox.get()) is not None:
            if is_last(message):
                return message
            self.outgoing.wait_for_room()  # An RM that does not read is not served.
            if self._core.works_elsewhere and message.WhichOneof("body") in _MAY_WAIT:
                self._room_to_wait.acquire()
                with suppress(RuntimeError):  # The session has ended: no answer is needed.
                    self._waiting_calls.submit(self._serve_waiting, message)
                    continue
                self._room_to_wait.release()
            else:
                self._serve_call(message)
        return None

    def _serve_waiting(self, message: v1.ManagerMessage) -> None:
        try:
            self._serve_call(message)
        finally:
            self._room_to_wait.release()

    def _serve_call(self, message: v1.ManagerMessage) -> None:
        """Carry out a message, and answer it."""
        try:
            with self._core.scheduler.one_caller:
                answer = self._requests.carry_out(message)
        except Exception as error:  # noqa: BLE001 - it is the answer
            self._refuse(message.call, error)
        else:
            self.answer(message.call, answer)

    def _refuse(self, call: int, error: Exception) -> None:
        if isinstance(error, StatusError) and error.code is grpc.StatusCode.PERMISSION_DENIED:
            self.end(error)
            return
        kind = v1.Refusal.OTHER
        if isinstance(error, RequestError | StatusError):
            is_replaced = status_of(error)[0] is grpc.StatusCode.ABORTED
            kind = v1.Refusal.REPLACED if is_replaced else v1.Refusal.REQUEST
        elif isinstance(error, AssertionError):
            kind = v1.Refusal.INVARIANT
        text = str(error) if isinstance(error, LicorneError | AssertionError) else status_of(error)[1]
        self.outgoing.put(v1.SchedulerMessage(call=call, refusal=v1.Refusal(kind=kind, text=text)))

    def _registered(self, manager: SessionManager) -> None:
        """Count the session as one with an RM; it may have ended meanwhile. On the event loop."""
        if self._requests.has_ended:
            self._core.managers.connection_lost(manager, "its connection was lost")
        else:
            self.claim()


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
