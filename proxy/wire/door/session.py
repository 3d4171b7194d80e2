"""One session of a link with a worker: its start, its requests, and the check that the worker is alive.

C threads answer pings of gRPC even when Python hangs. So each session asks a question that passes through the
turn of the partition.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, final

from .... import __version__
from ....model.errors import LicorneError, ReplacedError, RequestError
from ....model.values.documents import Document
from ...base.process import build_hash
from ...si import licorne_v1_pb2 as v1
from ...si import si_pb2 as si
from ..client.connection import Connection
from ..client.errors import ConnectionLostError, NotSentError
from ..client.remote_scheduler import RemoteScheduler
from .routing import LinkRequest
from .workers import LaunchedWorker, LaunchError

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from ...si.api import ResourceManagerCallback

Connect: TypeAlias = "Callable[[LaunchedWorker, Callable[[RequestError], object]], RemoteScheduler]"
"""Returns a session with a worker; the second argument is called when the session is lost."""
CALLBACKS: Final = {
    si.NodeResponse: "update_node",
    si.ApplicationResponse: "update_application",
    si.AllocationResponse: "update_allocation",
}
"""The callback of each answer."""
SILENCE_SECONDS: Final = 30
"""The time after which a silent worker that does not answer is lost."""
TICK_SECONDS: Final = 1.0
_ASKED_AFTER_SECONDS: Final = 5
"""The time after which a silent worker is asked."""
_PLAIN: Final = (
    ("Failed parsing HTTP/2", "the server there is not a `licorne serve`, but perhaps one for HTTP/1.1"),
    ("Socket closed", "it closes connections without TLS; with TLS, give its authority as --worker-ca"),
)
"""Parts of the texts of errors of gRPC without TLS, and their meanings."""
_SECURE: Final = (
    (
        "WRONG_VERSION_NUMBER",
        "the server there does not use TLS, which --worker-ca and --worker-cert require",
    ),
    ("CERTIFICATE_VERIFY_FAILED", "the authority in --worker-ca does not vouch for its certificate"),
    ("Hostname Verification", "its certificate is for another name than this address"),
    ("Socket closed", "it closes connections of who has no certificate that it trusts, see --worker-cert"),
)
_BOTH: Final = (
    ("Connection refused", "nothing listens there"),
    ("UNIMPLEMENTED", "the gRPC server there is not a `licorne serve`"),
    ("UNAUTHENTICATED", "it refuses whoever does not send its token, see --worker-token"),
    ("PERMISSION_DENIED", "its --access does not let this door speak for the resource manager"),
    ("errors resolving", "there is no host of that name"),
    ("did not answer", "something listens there, and does not answer"),
)
_CONNECT_SECONDS: Final = 20.0
"""The time limit for a worker to listen, and to answer a call."""


@dataclass(frozen=True, slots=True)
class WorkerSession:
    """One session with a worker; those of a link are numbered from 1."""

    number: int
    worker: LaunchedWorker
    scheduler: RemoteScheduler
    pulse: Pulse

    def halt(self, rm_id: str, halt: tuple[str, str] | None) -> None:
        """Pause or stop a resource manager; a lost worker is halted when it is replaced."""
        if halt is not None:
            change, reason = halt
            method = self.scheduler.pause_manager if change == "pause" else self.scheduler.stop_manager
            with suppress(LicorneError):
                method(rm_id, reason)


def send_at_once(scheduler: RemoteScheduler, request: LinkRequest) -> None:
    """Send a request, without waiting.

    Raises:
        NotSentError: The worker does not read.
        LicorneError: The request is refused, or the worker is lost.
    """
    match request:
        case si.AllocationRequest():
            scheduler.update_allocation(request)
        case si.ApplicationRequest():
            scheduler.update_application(request)
        case si.NodeRequest():
            scheduler.update_node(request)
        case _:
            scheduler.request_reconsideration(request)


def is_refusal(loss: RequestError | None) -> bool:
    """Return whether the worker itself has ended a session with a reason: it runs, and answers."""
    return isinstance(loss, ReplacedError) or (isinstance(loss, ConnectionLostError) and loss.by_server)


STEPS: Final[Mapping[int, Callable[[RemoteScheduler], object]]] = {
    v1.Step.INSPECT_OUTSTANDING: RemoteScheduler.inspect_outstanding,
    v1.Step.PREEMPT_OVER_QUOTA: RemoteScheduler.preempt_over_quota,
    v1.Step.DELIVER_EVENTS: RemoteScheduler.deliver_events,
    v1.Step.RECORD_HISTORY: RemoteScheduler.record_history,
}
"""The steps of a stepped scheduler that a running scheduler can carry out as well."""


@final
class Pulse:
    """The signs of life in one session; the owner guards it, and calls `tick` once a second.

    Seconds are counted by calls: a door that was suspended itself has not waited in that time.

    Args:
        connection: Returns the session.
    """

    def __init__(self, connection: Callable[[], Connection]) -> None:
        self._connection = connection
        self._signs = -1
        self._silent_seconds = 0
        self._question: Future[v1.Answer] | None = None
        self._asked_behind = 0
        self.hangs_behind: int | None = None
        """The number of requests that were sent to the worker before the question that it does not answer, if
        the session was ended for that."""

    def tick(self, sent: int) -> int | None:
        """Note that a second has passed; ask the worker if it is time, and end a silent session.

        Args:
            sent: The number of sent requests that are not known to be carried out.

        Returns:
            The number of these that are carried out, by the last answer; `None` without a new answer.

        Raises:
            RequestError: The session is lost.
        """
        connection = self._connection()
        through = None
        if self._question is not None and self._question.done():
            if not isinstance(self._question.exception(), ConnectionLostError):
                through = self._asked_behind
            self._question = None
        signs = connection.signs
        is_silent = signs == self._signs and not connection.is_held_up
        self._signs = signs
        self._silent_seconds = self._silent_seconds + 1 if is_silent else 0
        open_now = max(sent - (through or 0), 0)
        if self._question is None and (open_now or self._silent_seconds >= _ASKED_AFTER_SECONDS):
            with suppress(NotSentError, ConnectionLostError):  # It does not read, which counts as silence.
                self._question = connection.ask_sign()
                self._asked_behind = open_now
        if self._silent_seconds >= SILENCE_SECONDS:
            self.hangs_behind = None if self._question is None else self._asked_behind
            connection.end(f"the worker has given no sign of life for {SILENCE_SECONDS} s")
        return through


class LinkOwner(Protocol):
    """The RM of a link, as the door has it."""

    @property
    def rm_id(self) -> str:
        """The id of the RM."""

    @property
    def callback(self) -> ResourceManagerCallback:
        """Its callback, which workers use for predicates."""

    def registration(self) -> si.RegisterResourceManagerRequest:
        """Return the registration of the RM at a worker, with its current configuration."""

    def kept_use(self, partition: str) -> Document | None:
        """Return the use from which a worker of a partition continues, `None` for nothing."""

    def deliver(self, name: str, argument: Message | Sequence[si.EventRecord]) -> None:
        """Queue a callback; wait while the queue is full."""

    def give_up(self, partition: str, error: ReplacedError) -> None:
        """End all links of the RM: another door, or another program, has registered it at a worker."""

    def note_failure(self, what: str, error: BaseException) -> None:
        """Report a failed action."""


def report_doubt(owner: LinkOwner, partition: str, doubt: str, now_ns: int) -> None:
    """Report an impossible answer of the worker of a partition, as a failure and as an event."""
    text = f"the worker of partition {partition!r} is not believed, and replaced: {doubt}"
    owner.note_failure(f"partition {partition!r}", LicorneError(text))
    event = si.EventRecord(objectID=partition, message=text, timestampNano=now_ns)
    owner.deliver("send_event", [event])


@final
class WorkerConnector:
    """Opens sessions with workers; each session names the door, and the time of its start.

    Args:
        token: The bearer token of the workers, if they require one.
        tls: The files with the certificate authorities of workers, a client certificate, and its key.
        note_failure: Called with the id of a resource manager, the name of a callback, and its error.
    """

    def __init__(
        self,
        token: str | None,
        tls: tuple[Path | None, Path | None, Path | None],
        note_failure: Callable[[str, str, BaseException], object],
    ) -> None:
        self._token = token
        self._tls = tls
        self._note_failure = note_failure
        self._build = build_hash()
        self._door = v1.DoorStart(
            epoch=time.time_ns(), name=f"process {os.getpid()} on {socket.gethostname()}"
        )
        """The start of this door: workers refuse a door that is older than the last one that registered."""

    def __call__(self, worker: LaunchedWorker, on_lost: Callable[[RequestError], object]) -> RemoteScheduler:
        """Return a session with a worker.

        Raises:
            LicorneError: The worker cannot be reached, or refuses the session.
        """
        root_certificates, certificate, key = self._tls
        try:
            scheduler = RemoteScheduler(
                worker.address,
                token=worker.token or self._token,
                root_certificates=root_certificates,
                certificate=certificate,
                key=key,
                on_error=lambda failure: self._note_failure(failure.rm_id, failure.callback, failure.error),
                timeout=_CONNECT_SECONDS,
                send_timeout_seconds=0,
                on_lost=on_lost,
                door=self._door,
                has_listened=worker.has_listened,
            )
        except ConnectionLostError as error:
            with_tls = root_certificates is not None or certificate is not None
            raise unusable_worker(worker, error, with_tls=with_tls) from error
        try:
            check_build(worker, scheduler.server_version, scheduler.server_build, self._build)
        except BaseException:
            scheduler.stop()
            raise
        return scheduler


def unusable_worker(
    worker: LaunchedWorker, error: ConnectionLostError, *, with_tls: bool
) -> ConnectionLostError:
    """Return the error, for operators, for a failed connection to a worker.

    Args:
        worker: The worker.
        error: The error of the client.
        with_tls: Whether the door uses TLS towards workers.
    """
    said = str(error)
    signs = (*(_SECURE if with_tls else _PLAIN), *_BOTH)
    meaning = next((meaning for sign, meaning in signs if sign in said), said)
    return ConnectionLostError(f"{_named(worker)} cannot be used: {meaning}", is_passing=error.is_passing)


def check_build(worker: LaunchedWorker, version: str, build: str, own: str) -> None:
    """Refuse a worker of another build of Licorne: its decisions may differ from those of other workers.

    Args:
        worker: The worker.
        version: The version in its answer to `hello`; empty for a worker that is too old to send it.
        build: The hash of its sources; empty for a worker that does not send it.
        own: The hash of the sources of this door.

    Raises:
        LaunchError: The version or the build differs from that of this door.
    """
    if version == __version__ and build != own:
        raise LaunchError(
            f"{_named(worker)} cannot be used: it is build {build or 'unknown'} of Licorne {version}, and "
            f"this door is build {own or 'unknown'}"
        )
    if version != __version__:
        its = f"Licorne {version}" if version else "an older Licorne"
        raise LaunchError(f"{_named(worker)} cannot be used: it is {its}, and this door is {__version__}")


def lasts(error: BaseException) -> bool:
    """Return whether another worker, or another try, would fail in the same way: no worker can run."""
    if isinstance(error, ConnectionLostError):
        return False
    return isinstance(error, RequestError | LaunchError) or not isinstance(error, LicorneError)


def _named(worker: LaunchedWorker) -> str:
    return f"the worker of partition {worker.partition!r} at {worker.address}"
