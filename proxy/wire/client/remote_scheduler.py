"""A scheduler in another process, with the API of `Scheduler`."""

from __future__ import annotations

import json
import math
import queue
import random
import threading
from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, final

from ....actors.services.interrupts import start_thread
from ....model.errors import LicorneError, ReplacedError, RequestError
from ....model.values.documents import Json
from ...core.scheduler.answering.questions import DOCUMENTS, TITLES, QuestionSide
from ...core.scheduler.answering.sent_values import VALUE_VERSION, value_from_json
from ...core.scheduler.calling import CallingSide, check_registration
from ...core.scheduler.managers.callbacks import CallbackFailures, CallbackThreads, ErrorHook
from ...si import licorne_v1_pb2 as v1
from ...si import si_pb2 as si
from ...si.api import DeferredPredicates, ResourceManager, ResourceManagerCallback, StateDumpPlugin
from ...si.arguments import check_seconds, rm_id_of
from .callbacks import (
    CallbackQueue,
    StateDumpAnswers,
    ask_nodes,
    ask_victims,
    make_callback,
    predicate_answers,
    preemption_answers,
)
from .connection import Connection, Transport, first_connection
from .errors import ConnectionLostError
from .remote_life import (
    Registered,
    RemoteConfigurations,
    RemoteLife,
    RemoteSteps,
    disconnected_hooks,
    reconnected_of,
)

_BACKOFF_MIN_SECONDS: Final = 0.05
_BACKOFF_MAX_SECONDS: Final = 5.0
_CALL_SECONDS: Final = 30.0
_REGISTRATION_SECONDS: Final = 75.0
"""Longer than a door may take to answer a registration."""
_PREDICATE_THREADS: Final = 16
"""How many threads ask an RM's predicates at once: one that waits does not set the pace."""


@final
class RemoteScheduler(RemoteConfigurations, CallingSide, QuestionSide, RemoteSteps, RemoteLife):
    """A scheduler that `licorne serve` runs; programs for `Scheduler` run on it unchanged.

    Callbacks come in order on a thread of this object. When the connection is lost it is made again, with a
    delay that grows to 5 s. A callback with a method `disconnected(error)` is called when it is lost, and one
    with a method `reconnected()` when it is back, both on the thread of callbacks: there the RM registers
    again and sends its state, see `licorne.Recovery`. An RM without the second is registered again with the
    same request, and starts with nothing. Calls meanwhile raise `ConnectionLostError`.

    If the scheduler is stepped (`licorne serve --engine direct`), callbacks come inside the calls, as in one
    process, and a lost connection stays lost.

    Args:
        address: `HOST:PORT` of the server.
        token: The bearer token, if the server requires one.
        root_certificates: A PEM file with the authorities that vouch for the server; TLS is used then.
        certificate: A PEM file with a client certificate, with its `key`; TLS is used then.
        key: The PEM file of its key.
        on_error: As for `Scheduler`: called with each callback that raises.
        timeout: How many seconds a call may wait for its answer, and before that to be sent, and the first
            connection for the server. Without it 30 s; a registration 75 s, since a door waits up to 60 s
            for its workers.
        send_timeout_seconds: How long `update_node`, `update_application`, `update_allocation` and
            `reconsider` may wait while the server does not read; then they raise `NotSentError`, and no part
            of the request was sent. With 0 they do not wait. Without it they wait until the server reads or
            the connection is lost, which may take 30 s. Not for a stepped scheduler: it answers each call.
        on_lost: Called once, with the reason, when the connection is lost; it stays lost then. If the RMs
            have registered elsewhere, that is a `ReplacedError`.
        door: The door of this client: for `Door`.
        has_listened: Whether the server listened before: one that refuses connections is not waited for.

    Raises:
        ConnectionLostError: The server cannot be reached within the timeout; one that does not listen yet
            is waited for.
        RequestError: It refuses the connection.
        LicorneError: An argument is wrong: the address, a time, or a file that cannot be read.
    """

    def __init__(
        self,
        address: str,
        *,
        token: str | None = None,
        root_certificates: Path | str | None = None,
        certificate: Path | str | None = None,
        key: Path | str | None = None,
        on_error: ErrorHook | None = None,
        timeout: float | None = None,
        send_timeout_seconds: float = math.inf,
        on_lost: Callable[[RequestError], object] | None = None,
        door: v1.DoorStart | None = None,
        has_listened: bool = False,
    ) -> None:
        check_seconds("timeout", _CALL_SECONDS if timeout is None else timeout)
        check_seconds("send_timeout_seconds", send_timeout_seconds, may_be_zero=True)
        self._transport = Transport(address, token, root_certificates, certificate, key, door=door)
        self._timeout = _CALL_SECONDS if timeout is None else timeout
        self._registration_timeout = _REGISTRATION_SECONDS if timeout is None else timeout
        self._send_timeout_seconds = send_timeout_seconds
        self._on_lost = on_lost
        self._failures = CallbackFailures(on_error)
        self._callback_threads = CallbackThreads()
        self._registered: dict[str, Registered] = {}
        self._replaced: dict[str, tuple[Registered | None, ReplacedError]] = {}
        self._stopped = threading.Event()
        self._steps: queue.SimpleQueue[v1.SchedulerMessage | None] = queue.SimpleQueue()
        """The answers of a stepped scheduler; `None` when the connection is lost."""
        self._state_dumps = StateDumpAnswers(self._callback_threads)
        self._connection: Connection | None = None
        self._connecting = threading.Lock()
        """Held while a connection becomes the one in use, and while it is taken away."""
        self._stepping = threading.RLock()
        self.answers = RemoteAnswers(self._question)
        """The function that answers questions in messages."""
        connect = partial(self._transport.connect, self._receive, self._lost)
        connection = first_connection(connect, self._timeout, has_listened=has_listened)
        self.stepped = connection.is_stepped
        self._callbacks = CallbackQueue("licorne-callbacks") if not self.stepped else None
        self._predicates = (
            None if self.stepped else ThreadPoolExecutor(_PREDICATE_THREADS, "licorne-predicates")
        )
        try:
            self._use(connection)
        except ConnectionLostError:
            if self.stepped or on_lost is not None:
                raise
            start_thread(self._reconnect, "licorne-reconnect")

    # -------------------------------------------------------------------------------- SchedulerAPI

    def register_resource_manager(
        self,
        request: si.RegisterResourceManagerRequest,
        callback: ResourceManagerCallback,
        *,
        partitions: Collection[str] | None = None,
    ) -> si.RegisterResourceManagerResponse:
        """Register a resource manager with its queues; one that is registered already loses all it had.

        With `partitions`, see `register`, only these of the configuration are made.

        Raises:
            RequestError: the registration is refused, and nothing has changed.
        """
        check_registration(request, callback, partitions)
        self._callback_threads.refuse("a registration")
        judges = isinstance(callback, DeferredPredicates)
        judges = judges or getattr(type(callback), "predicates", None) is not ResourceManager.predicates
        dumps = isinstance(callback, StateDumpPlugin)
        registration = v1.Registration(
            request=request, predicates=judges, state_dump=dumps, partitions=partitions
        )
        registered = Registered(registration, callback)
        before = self._registered.setdefault(request.rmID, registered)

        def replace(answer: Future[v1.Answer]) -> None:
            if answer.exception() is None:  # Earlier messages end the state of the callback before.
                self._registered[request.rmID] = registered
                self._replaced.pop(request.rmID, None)

        try:
            self._ask(self._known(), v1.ManagerMessage(register=registration), replace)
        except BaseException:
            if before is registered:
                self._registered.pop(request.rmID, None)
            raise
        return si.RegisterResourceManagerResponse()

    def update_node(self, request: si.NodeRequest) -> None:
        """Take new and changed nodes.

        Raises:
            RequestError: the request is refused as a whole, and nothing has changed.
            NotSentError: the server does not read; no part of the request was sent.
        """
        rm_id = rm_id_of(request, si.NodeRequest)
        self._update(rm_id, "NodeRequest", v1.ManagerMessage(update_node=request))

    def update_application(self, request: si.ApplicationRequest) -> None:
        """Take new and removed applications.

        Raises:
            RequestError: the request is refused as a whole, and nothing has changed.
            NotSentError: the server does not read; no part of the request was sent.
        """
        rm_id = rm_id_of(request, si.ApplicationRequest)
        self._update(rm_id, "ApplicationRequest", v1.ManagerMessage(update_application=request))

    def update_allocation(self, request: si.AllocationRequest) -> None:
        """Take asks, existing allocations and releases.

        Raises:
            RequestError: the request is refused as a whole, and nothing has changed.
            NotSentError: the server does not read; no part of the request was sent.
        """
        rm_id = rm_id_of(request, si.AllocationRequest)
        self._update(rm_id, "AllocationRequest", v1.ManagerMessage(update_allocation=request))

    def request_reconsideration(self, request: v1.Reconsideration) -> None:
        """Try again what the predicates of a resource manager have refused; see `reconsider`.

        Raises:
            RequestError: It has not registered here.
            NotSentError: The server does not read; no part of the request was sent.
        """
        self._update(request.rm_id, "reconsideration", v1.ManagerMessage(reconsider=request))

    def take_kept_use(self, rm_id: str, usage: Json) -> None:
        """Let partitions continue from an earlier use; see `Scheduler`, which may refuse it."""
        self._call(v1.ManagerMessage(take_kept_use=v1.KeptUse(rm_id=rm_id, json=json.dumps(usage))))

    def stop(self) -> None:
        """Report that the RMs of this object shut down, deliver what is queued, and end the connection.

        The scheduler itself continues, with the RMs of others. Inside a callback it does not wait for
        callbacks.
        """
        self._callback_threads.refuse("a stop")
        if self._stopped.is_set():
            return
        with self._connecting:
            self._stopped.set()
            connection = self._connection
        if connection is not None:
            with suppress(LicorneError):
                if self._registered:
                    self._ask(connection, v1.ManagerMessage(goodbye=v1.Goodbye()))
                connection.finish(self._timeout)
        if self._callbacks is not None:
            self._callbacks.close()
        if self._predicates is not None:
            self._predicates.shutdown(wait=False, cancel_futures=True)

    def _question(self, question: v1.Question) -> Any:
        kind = question.WhichOneof("body") or ""
        self._callback_threads.refuse(TITLES[kind])
        if kind in DOCUMENTS:
            return json.loads(self._call(v1.ManagerMessage(question=question)).json)
        question.value_version = VALUE_VERSION
        return value_from_json(self._call(v1.ManagerMessage(question=question)).json)

    # ---------------------------------------------------------------------------------- connection

    @property
    def is_connected(self) -> bool:
        """Return whether there is a connection now."""
        return self._connection is not None

    def _connect(self, timeout: float) -> Connection:
        return self._transport.connect(self._receive, self._lost, timeout)

    def _use(self, connection: Connection) -> None:
        """Make a connection the one in use.

        Raises:
            ConnectionLostError: It is lost already.
            RequestError: This object has been stopped.
        """
        with self._connecting:
            if self._stopped.is_set():
                raise RequestError("the scheduler has been stopped")
            if connection.lost is not None:
                raise connection.lost
            self._connection = connection

    def _known(self) -> Connection:
        """Return the connection.

        Raises:
            RequestError: this object has been stopped, or there is no connection now.
        """
        if self._stopped.is_set():
            raise RequestError("the scheduler has been stopped")
        if (connection := self._connection) is None:
            raise ConnectionLostError(f"no connection to the scheduler at {self._transport.address}")
        return connection

    def _update(self, rm_id: str, request: str, message: v1.ManagerMessage) -> None:
        self._check_not_replaced(rm_id)
        connection = self._known()
        if rm_id not in self._registered:
            raise RequestError(f'received {request}, but RmID="{rm_id}" not registered')
        if self.stepped:
            self._callback_threads.refuse(f"the {request} to a stepped scheduler")
            self._call(message)
        else:
            connection.send(message, self._send_timeout_seconds)

    def _call(self, message: v1.ManagerMessage) -> v1.Answer:
        """Make a call and wait for its answer; callbacks of a stepped scheduler are made meanwhile."""
        return self._ask(self._known(), message)

    def _ask(
        self,
        connection: Connection,
        message: v1.ManagerMessage,
        on_end: Callable[[Future[v1.Answer]], None] | None = None,
    ) -> v1.Answer:
        if not self.stepped:
            seconds = self._registration_timeout if message.HasField("register") else self._timeout
            try:
                return connection.call_later(message, on_end, seconds).result(seconds)
            except TimeoutError as error:
                text = f"the scheduler at {self._transport.address} gave no answer within {seconds:g} s"
                raise ConnectionLostError(text) from error
        with self._stepping:
            answer = connection.call_later(message, on_end)
            answer.add_done_callback(lambda _: self._steps.put(None))
            while not answer.done():
                received = self._steps.get()
                if received is not None:
                    self._call_back(received, self._registered.get(received.rm_id))
            return answer.result()

    # ----------------------------------------------------------------------------------- callbacks

    def _receive(self, message: v1.SchedulerMessage) -> None:
        """Queue a message that is not an answer; on the connection's thread."""
        if message.HasField("replaced"):
            self._note_replaced(message.rm_id, ReplacedError(message.replaced.reason))
        if self._callbacks is None or self._predicates is None:
            self._steps.put(message)
        elif message.HasField("predicates") and not self._defers(message.rm_id):
            count = len(message.predicates.questions)
            size = -(-count // _PREDICATE_THREADS)
            for start in range(0, count, size):
                positions = range(start, min(start + size, count))
                self._predicates.submit(self._answer_predicates, message, positions)
        elif message.HasField("predicates"):
            self._predicates.submit(self._answer_predicates, message, range(0))
        elif message.HasField("preemption_predicates"):
            self._predicates.submit(self._answer_preemption, message)
        elif message.HasField("state_dump"):
            registered, connection = self._registered.get(message.rm_id), self._connection
            if registered is not None and connection is not None:
                self._state_dumps.answer(message, registered.callback, connection.send)
        else:
            registered = self._registered.get(message.rm_id)
            self._callbacks.put(lambda: self._call_back(message, registered), may_wait=self._may_wait)

    def _may_wait(self) -> bool:
        """Return whether no call waits for an answer that stands behind the callbacks on the connection."""
        connection = self._connection
        return connection is not None and not connection.has_calls

    def _call_back(self, message: v1.SchedulerMessage, registered: Registered | None) -> None:
        """Make the callback of a message; for a stepped scheduler, also answer a question."""
        if message.HasField("refusal"):
            self._failures.note("", "request", RequestError(message.refusal.text))
        elif message.HasField("replaced"):
            self._tell_replaced(message.rm_id)
        elif message.HasField("predicates"):
            self._answer_predicates(message, range(len(message.predicates.questions)))
        elif message.HasField("preemption_predicates"):
            self._answer_preemption(message)
        elif registered is not None:
            try:
                with self._callback_threads.callback(message.rm_id):
                    make_callback(registered.callback, message)
            except BaseException as error:  # noqa: BLE001 - it is reported, and the next one is made
                self._failures.note(message.rm_id, str(message.WhichOneof("body")), error)
            if message.callback:
                self._reply(v1.ManagerMessage(returned=v1.Returned(callback=message.callback)))

    def _answer_predicates(self, message: v1.SchedulerMessage, positions: range) -> None:
        """Answer some of the questions of a batch about nodes; several threads may do so at once."""
        registered = self._registered.get(message.rm_id)
        if registered is not None:
            if isinstance(registered.callback, DeferredPredicates):
                ask_nodes(registered.callback, message.predicates, self._reply)
                return
            note = partial(self._failures.note, message.rm_id)
            with self._callback_threads.predicate():
                found = predicate_answers(registered.callback, message.predicates, positions, note)
            self._reply(v1.ManagerMessage(predicate_answers=found))

    def _answer_preemption(self, message: v1.SchedulerMessage) -> None:
        """Answer a batch of questions about victims."""
        registered = self._registered.get(message.rm_id)
        if registered is not None:
            note = partial(self._failures.note, message.rm_id)
            if isinstance(registered.callback, DeferredPredicates):
                ask_victims(registered.callback, message.preemption_predicates, self._reply)
                return
            with self._callback_threads.predicate():
                found = preemption_answers(registered.callback, message.preemption_predicates, note)
            self._reply(v1.ManagerMessage(preemption_answers=found))

    def _defers(self, rm_id: str) -> bool:
        """Return whether an RM itself answers its predicates later."""
        registered = self._registered.get(rm_id)
        return registered is not None and isinstance(registered.callback, DeferredPredicates)

    def _reply(self, message: v1.ManagerMessage) -> None:
        """Send a reply, unless the connection is lost."""
        connection = self._connection
        if connection is not None:
            try:
                connection.send(message)
            except ConnectionLostError:
                pass
            except RequestError as error:  # It is too large: the scheduler does without it.
                self._failures.note("", str(message.WhichOneof("body")), error)

    # ----------------------------------------------------------------------------------- reconnecting

    def _lost(self, connection: Connection) -> None:
        """Begin to connect again; on the thread of the connection that is lost."""
        with self._connecting:
            if self._connection is not connection:
                return  # It never was the one in use.
            self._connection = None
        if self.stepped or self._stopped.is_set():
            return
        if connection.lost is not None:
            for rm_id, hook in disconnected_hooks(self._registered, connection.lost):
                self.run_behind_callbacks(self._guarded(rm_id, "disconnected", hook))
        if self._on_lost is None:
            start_thread(self._reconnect, "licorne-reconnect")
        elif connection.lost is not None:
            self._on_lost(self._all_replaced() or connection.lost)

    def _reconnect(self) -> None:
        """Try until there is a connection on which all RMs have registered again."""
        delay = _BACKOFF_MIN_SECONDS
        while not self._stopped.wait(delay * random.uniform(0.5, 1.0)):  # noqa: S311 - spreads clients out
            delay = min(delay * 2, _BACKOFF_MAX_SECONDS)
            with suppress(LicorneError):
                connection = self._connect(self._timeout)
                try:
                    self._register_again(connection)
                except LicorneError as error:
                    if not self._stopped.is_set():
                        self._failures.note("", "reconnect", error)
                    connection.close()
                    raise
                return

    def _register_again(self, connection: Connection) -> None:
        for rm_id, registered in list(self._registered.items()):
            if reconnected_of(registered) is None:
                try:
                    self._ask(connection, v1.ManagerMessage(register=registered.request))
                except ReplacedError as error:
                    self._note_replaced(rm_id, error)
                    if self._callbacks is not None:
                        self._callbacks.put(partial(self._tell_replaced, rm_id))
        self._use(connection)
        for rm_id, registered in list(self._registered.items()):
            reconnected = reconnected_of(registered)
            if reconnected is not None and self._callbacks is not None:
                self._callbacks.put(self._guarded(rm_id, "reconnected", reconnected))

    def run_behind_callbacks(self, step: Callable[[], None]) -> None:
        """Run a step on the thread of callbacks, behind all that have come; not for a stepped scheduler."""
        if self._callbacks is not None:
            self._callbacks.put(step)


@final
class RemoteAnswers:
    """Answers the questions that are messages, as `Scheduler.answers` does."""

    def __init__(self, ask: Callable[[v1.Question], Any]) -> None:
        self._ask = ask

    def answer(self, question: v1.Question) -> Any:
        """Return the answer to a question.

        Raises:
            RequestError: It is refused.
            AssertionError: The question was whether every invariant holds, and one does not.
        """
        asked = v1.Question()
        asked.CopyFrom(question)
        return self._ask(asked)
