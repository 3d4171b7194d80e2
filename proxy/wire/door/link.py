"""One partition of one resource manager (RM): its record, its worker, and its waiting requests."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any, Final, final

from ....actors.services.interrupts import start_thread
from ....model.errors import LicorneError, ReplacedError, RequestError
from ...core.scheduler.answering.questions import UnavailableError
from ...si import licorne_v1_pb2 as v1
from ...si import si_pb2 as si
from ..client.errors import ConnectionLostError, NotSentError
from ..client.recovery import Recovery
from ..client.remote_scheduler import RemoteScheduler
from .handing_over import PatientWorker, bound_texts, doubted_code, hand_over, session_callback
from .record import PartitionRecord
from .routing import LinkRequest
from .session import (
    CALLBACKS,
    TICK_SECONDS,
    Connect,
    LinkOwner,
    Pulse,
    WorkerSession,
    is_refusal,
    lasts,
    report_doubt,
    send_at_once,
)
from .under_way import SentEntry, UnderWay
from .workers import LaunchedWorker, LaunchError, LinkState, PartitionPlace, WorkerTable

HELD_BYTES_MAX: Final = 32 << 20
"""The number of bytes of requests that may wait for one worker before the RM has to wait as well."""
_PAUSE_MIN_SECONDS: Final = 0.05
_PAUSE_MAX_SECONDS: Final = 5.0
"""The longest delay between two attempts to get a worker."""


@final
class PartitionLink:
    """The link to the worker of a partition, for one RM; its own thread maintains it.

    A lost worker is replaced, and the new one gets the contents of the record. The lock guards the record,
    the queue, and the state. It is never held during a send or a delivery, so that a request never waits for
    a worker because of it.

    Args:
        owner: The RM.
        partition: The name of the partition in the configuration.
        workers: The table of workers.
        connect: Returns a session with a worker.
        now_ns: Returns the time, nanoseconds since 1970.
    """

    def __init__(
        self,
        owner: LinkOwner,
        partition: str,
        workers: WorkerTable,
        connect: Connect,
        now_ns: Callable[[], int],
    ) -> None:
        self._owner = owner
        self.partition: Final = partition
        self._workers = workers
        self._connect = connect
        self._now_ns = now_ns
        self.started: Final[Future[None]] = Future()
        """Done when the partition runs for the first time; has an error if it cannot run."""
        self._record = PartitionRecord(owner.rm_id, partition)
        self._under_way = UnderWay(owner.rm_id)
        self._changed = threading.Condition()
        self._delivering = threading.Lock()
        """Held while an answer is noted and queued for the RM, so that all answers are in one order."""
        self._ended = threading.Event()
        """Set when the link is closed."""
        self._session: WorkerSession | None = None
        """The session in use; during a recovery only the recovery sends through it."""
        self._number = 0
        self._loss: RequestError | None = None
        """The reason for the loss of the last session, `None` while it is not lost."""
        self._doubt = ""
        """The impossible answer of the worker, the empty text without one."""
        self._farewell: tuple[si.NodeResponse | si.ApplicationResponse | si.AllocationResponse, ...] = ()
        """The last messages for the RM after the end of the link."""
        self._queue: deque[LinkRequest] = deque()
        self._held_bytes = 0
        """The number of bytes of requests that were accepted and not sent."""
        self._halt: tuple[str, str] | None = None
        """`pause` or `stop` with the reason, if the RM is halted."""
        self._configured: si.RegisterResourceManagerRequest | None = None
        """The last registration that the worker has accepted, with its configuration."""
        self._place = PartitionPlace.starting(owner.rm_id, partition, now_ns())

    def start(self) -> None:
        """Start the search for a worker; return at once."""
        start_thread(self._run, f"licorne-link-{self.partition}")

    @property
    def place(self) -> PartitionPlace:
        """The place of the partition, and its state."""
        with self._changed:
            return replace(self._place, waiting=len(self._queue))

    # ------------------------------------------------------------------------------------- requests

    def update_node(self, request: si.NodeRequest) -> None:
        """Accept nodes; return when they are noted."""
        with self._changed:
            self._under_way.note(request)
            self._record.note_nodes(request.nodes)
            self._send_or_queue(request)

    def update_application(self, request: si.ApplicationRequest) -> None:
        """Accept applications; return when they are noted."""
        with self._changed:
            self._under_way.note(request)
            self._record.note_applications(request)
            self._send_or_queue(request)

    def update_allocation(self, request: si.AllocationRequest) -> None:
        """Accept asks, allocations and releases; return when they are noted."""
        with self._changed:
            self._under_way.note(request)
            sent = self._record.note_allocations(request, self._number)
            self._send_or_queue(sent)

    def pass_on(self, request: LinkRequest) -> None:
        """Accept a request without a partition: the worker answers it."""
        with self._changed:
            self._record.expect_rejections(request)
            self._send_or_queue(request)

    def wait_for_room(self) -> None:
        """Wait while too many requests wait for the worker."""
        with self._changed:
            self._changed.wait_for(lambda: self._held_bytes < HELD_BYTES_MAX or self._ended.is_set())

    def _send_or_queue(self, request: LinkRequest) -> None:
        """Send a request if it is its turn and the worker reads; queue it otherwise. Needs the lock."""
        session = self._session
        if session is not None and self._place.state is LinkState.RUNNING and not self._queue:
            with suppress(NotSentError, ConnectionLostError):
                send_at_once(session.scheduler, request)
                return
        if session is None or self._ended.is_set():
            if not isinstance(request, v1.Reconsideration):  # It has no effect without a worker.
                self._held_bytes += request.ByteSize()
            return  # The record has it, and the next recovery sends it.
        kept = deepcopy(request)  # The caller may use its message again.
        self._queue.append(kept)
        self._held_bytes += kept.ByteSize()
        self._changed.notify_all()

    # ------------------------------------------------------------------------------------ questions

    def scheduler(self) -> RemoteScheduler:
        """Return the worker for a question.

        Raises:
            RequestError: The partition has no worker now; the text gives the time and the reason.
        """
        with self._changed:
            session, place = self._session, self._place
        if session is None or place.state is not LinkState.RUNNING:
            raise RequestError(place.refusal(self._now_ns()))
        return session.scheduler

    @property
    def is_running(self) -> bool:
        """Whether a worker runs the partition."""
        return self._place.state is LinkState.RUNNING

    def has_application(self, application_id: str) -> bool:
        """Return whether the partition has an application."""
        with self._changed:
            return self._record.has_application(application_id)

    # ------------------------------------------------------------------------------------ life cycle

    def halt(self, change: str, reason: str) -> None:
        """Halt placement for the RM (`pause`), or its timers as well (`stop`); also on a later worker."""
        with self._changed:
            self._halt = (change, reason)
            session = self._session if self._place.state is LinkState.RUNNING else None
        if session is not None:
            session.halt(self._owner.rm_id, self._halt)

    def note_configured(self) -> None:
        """Note that the worker has the current configuration of the RM."""
        self._configured = self._owner.registration()

    def configure(self) -> None:
        """Send the worker the current configuration of the RM; a worker that refuses it is replaced."""
        with self._changed:
            session = self._session if self.is_running else None
        wanted = self._owner.registration()
        if session is None or wanted == self._configured:
            return  # A recovery checks at its end whether the configuration has changed.
        request = si.UpdateConfigurationRequest(
            rmID=wanted.rmID, config=wanted.config, extraConfig=wanted.extraConfig
        )
        try:
            session.scheduler.update_configuration(request)
        except ConnectionLostError as error:
            self._lose(session.number, error)
        except LicorneError as error:
            self._owner.note_failure("configuration", error)
            self._lose(session.number, ConnectionLostError(f"it refused a configuration: {error}"))
        else:
            self._configured = wanted

    def close(self, reason: str = "", *, ends: bool = False) -> None:
        """End the link: later messages of the worker are dropped. Return at once.

        Args:
            reason: The reason.
            ends: Whether the partition ends with all its contents, which the RM is then informed of.
        """
        with self._changed:
            if ends:
                self._farewell = self._record.end(self._now_ns())
            self._ended.set()
            self._number += 1
            self._queue.clear()
            self._enter(LinkState.CLOSED, reason)
            self._changed.notify_all()
        self._settle(UnavailableError(reason or "the link is closed"))

    def _settle(self, error: BaseException | None) -> None:
        """Report whether the partition runs, unless that was reported before."""
        with suppress(InvalidStateError):
            if error is None:
                self.started.set_result(None)
            else:
                self.started.set_exception(error)

    def _enter(self, state: LinkState, reason: str | None = None) -> None:
        """Change the state, with the lock held; without a reason the earlier one stays."""
        if self._place.state is not LinkState.CLOSED:
            self._place = self._place.entered(state, reason, self._now_ns())

    # -------------------------------------------------------------------------- on the link's thread

    def _run(self) -> None:
        """Keep a worker until the link is closed."""
        pause = _PAUSE_MIN_SECONDS
        while not self._ended.is_set():
            try:
                self._serve()
                pause = _PAUSE_MIN_SECONDS
            except ReplacedError as error:
                self._settle(error)
                self._owner.give_up(self.partition, error)
                return
            except BaseException as error:  # noqa: BLE001 - the partition must not stay without a worker
                self._fail(error)
                passes = isinstance(error, LicorneError) and not isinstance(error, LaunchError)
                pause = min(pause * 2, _PAUSE_MAX_SECONDS) if passes else _PAUSE_MAX_SECONDS
            self._ended.wait(pause)
        for response in self._farewell:
            self._owner.deliver(CALLBACKS[type(response)], response)

    def _fail(self, error: BaseException) -> None:
        """Note why the partition has no worker; if it never ran and another try is useless, stop trying."""
        with self._changed:
            self._enter(LinkState.STARTING, str(error))
        if self.started.done() and not self._ended.is_set():
            self._owner.note_failure(f"partition {self.partition!r}", error)
        elif lasts(error):
            self._settle(error)

    def _serve(self) -> None:
        """Get a worker, recover the partition on it, and send all requests, until it is lost.

        Raises:
            LicorneError: No worker is available, or it refuses the partition.
        """
        worker = self._workers.worker_of(self.partition, self._ended)
        session = None
        answers = False
        try:
            session = self._begin(worker)
            self._recover(session)
            self._send_queued(session)
            answers = self._ended.is_set()
            self._raise_if_refused()
        except ConnectionLostError:
            answers = self._ended.is_set()
            raise
        except LicorneError:
            answers = True
            raise
        finally:
            with self._changed:
                self._session = None
                refused = is_refusal(self._loss)
                if session is not None and not answers and not refused and not self._doubt:
                    self._under_way.lose(session.pulse.hangs_behind)
            if not refused and (session is None or not answers or not session.scheduler.is_connected):
                self._workers.lost(worker)  # Also of a closed link: the next link must not wait for it.
            if session is not None:
                session.scheduler.stop()

    def _begin(self, worker: LaunchedWorker) -> WorkerSession:
        """Connect with a worker.

        Raises:
            LicorneError: The worker cannot be reached, or refuses the session.
        """
        with self._changed:
            self._number += 1
            number, self._loss, self._doubt = self._number, None, ""
        scheduler = self._connect(worker, lambda error: self._lose(number, error))
        return WorkerSession(number, worker, scheduler, Pulse(lambda: scheduler.connection))

    def _raise_if_refused(self) -> None:
        """Raise the error with which the worker ended the session, if any.

        Raises:
            RequestError: The worker ended the session; another session would end in the same way, or has to
                wait at least.
        """
        if self._loss is not None and is_refusal(self._loss) and not self._ended.is_set():
            raise self._loss

    def _lose(self, number: int, error: RequestError) -> None:
        """Note that a session is lost."""
        with self._changed:
            if number == self._number:
                self._session, self._loss = None, error
                self._enter(LinkState.STARTING, str(error))
                self._changed.notify_all()

    def _recover(self, session: WorkerSession) -> None:
        """Register at a worker, and hand over the contents of the record.

        Raises:
            LicorneError: The registration is refused, or the worker was lost.
        """
        callback = session_callback(self._owner.callback, partial(self._hear, session.number))
        patient = self._patient(session)
        with self._delivering:
            with self._changed:
                self._check_current(session)
                aside = self._under_way.set_aside(self._place.reason)
                take = self._record.take
                refused = [] if aside is None else [take(aside.callback, aside.response, session.number)]
                known = self._record.begin_recovery(self._now_ns())
                known, replayed = self._under_way.split(known, *self._record.accepted)
                self._queue.clear()
                self._held_bytes = 0
                self._session = session
                self._enter(LinkState.RECOVERING)
                self._place = self._place.at(session.worker, session.scheduler.rest_address)
                self._changed.notify_all()
            start_thread(lambda: self._watch(session), f"licorne-pulse-{self.partition}")
            if aside is not None:
                self._owner.note_failure("request", RequestError(aside.reason))
            for response in (*refused, *known.heard):
                self._owner.deliver(CALLBACKS[type(response)], response)
        self._configured = registration = self._owner.registration()
        recovery = hand_over(patient, registration, callback, known, partial(self._check_current, session))
        if recovery is not None:
            session.scheduler.run_behind_callbacks(lambda: self._end_recovery(session, recovery))
            for rejection in recovery.rejections:
                text = f"{rejection.kind.value} {rejection.name!r} is not recovered: {rejection.reason}"
                self._owner.note_failure("recovery", RequestError(text))
        patient.replay(replayed, self._note_replayed)
        for request in known.late:
            patient.send(request)
        halted = None
        while True:  # Until no other halt has come in the meantime; later ones are applied directly.
            with self._changed:
                self._check_current(session)
                if self._halt == halted:
                    self._enter(LinkState.RUNNING)
                    self._changed.notify_all()
                    break
                halted = self._halt
            session.halt(self._owner.rm_id, self._halt)
        self.configure()
        self._settle(None)

    def _note_replayed(self, suspect: SentEntry | None) -> None:
        with self._changed:
            self._under_way.send(suspect)

    def _watch(self, session: WorkerSession) -> None:
        """Check a session for signs of life until it is lost; runs on a separate thread."""
        with suppress(RequestError):  # The session is lost, or has been stopped.
            while not self._ended.wait(TICK_SECONDS):
                with self._changed:
                    if self._session is not session:
                        return
                    runs = self._place.state is LinkState.RUNNING
                    sent = max(len(self._under_way) - len(self._queue), 0) if runs else 0
                    count = session.pulse.tick(sent)
                    if runs and count is not None:
                        self._under_way.carried_out(count)

    def _patient(self, session: WorkerSession) -> PatientWorker:
        turn = self._workers.registering(self.partition)
        used = self._owner.kept_use(self.partition)
        return PatientWorker(session.scheduler, self.partition, self._ended, turn, used)

    def _end_recovery(self, session: WorkerSession, recovery: Recovery) -> None:
        """Note the entries that the worker could not accept; all answers of the recovery are noted."""
        with self._delivering:
            with self._changed:
                if session.number != self._number:
                    return
                heard, requests = self._record.end_recovery(recovery.rejections, recovery.left_out)
                for request in requests:
                    self._send_or_queue(request)
            for response in heard:
                self._owner.deliver("update_allocation", response)

    def _check_current(self, session: WorkerSession) -> None:
        """Refuse to continue with a session that is not the last one.

        Raises:
            ConnectionLostError: The session was lost, or the link was closed.
        """
        with self._changed:
            if session.number != self._number or not session.scheduler.is_connected:
                if isinstance(self._loss, ReplacedError) and not self._ended.is_set():
                    raise self._loss
                raise ConnectionLostError(f"the worker was lost: {self._place.reason}")

    def _send_queued(self, session: WorkerSession) -> None:
        """Send the waiting requests, in order, until the session is lost or the link closed."""
        patient = self._patient(session)
        while True:
            with self._changed:
                self._changed.wait_for(
                    lambda: self._queue or self._session is not session or self._ended.is_set()
                )
                if self._session is not session or self._ended.is_set():
                    return
                request = self._queue[0]
            try:
                patient.send(request)
            except (ConnectionLostError, NotSentError):
                return
            except RequestError as error:
                self._owner.note_failure("request", error)
            with self._changed:
                if self._session is session and self._queue and self._queue[0] is request:
                    self._queue.popleft()
                    self._held_bytes -= request.ByteSize()
                    self._changed.notify_all()

    def _hear(self, number: int, name: str, said: Any) -> None:
        """Note a message of a worker, then queue it for the RM; messages of earlier sessions are dropped."""
        with self._delivering:
            with self._changed:
                if number != self._number:
                    return
                self._doubt = doubt = self._record.doubt(name, said) or doubted_code(said)
                if doubt:
                    self._lose(number, ConnectionLostError(f"its worker is replaced: {doubt}"))
                    self._number += 1  # Its later messages are dropped.
                else:
                    bound_texts(said)
                    heard = self._record.take(name, said, number)
            if doubt:
                report_doubt(self._owner, self.partition, doubt, self._now_ns())
            elif heard is not None:
                self._owner.deliver(name, heard)
