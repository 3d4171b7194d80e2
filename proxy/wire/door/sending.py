"""How a link sends to its worker: in order, and each request again until the worker reads it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import wait
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TypeAlias, final

from ....model.errors import LicorneError, ReplacedError, RequestError
from ....model.values.documents import Document
from ...si import licorne_v1_pb2 as v1
from ...si import si_pb2 as si
from ...si.api import ResourceManagerCallback
from ..client.errors import ConnectionLostError, NotSentError
from ..client.remote_scheduler import RemoteScheduler
from .pulse import Pulse
from .routing import LinkRequest
from .under_way import Replayed, SentEntry
from .workers import LaunchedWorker

Connect: TypeAlias = "Callable[[LaunchedWorker, Callable[[RequestError], object]], RemoteScheduler]"
"""Makes a session with a worker; the second argument is called when it is lost."""

CALLBACKS: Final = {
    si.NodeResponse: "update_node",
    si.ApplicationResponse: "update_application",
    si.AllocationResponse: "update_allocation",
}
"""The callback of each answer."""
_LOOK_SECONDS: Final = 0.05
"""How often who waits for a worker looks whether the link was closed."""
_ROOM_SECONDS: Final = 0.01
"""How long a worker that does not read is left alone before a request is sent again."""


@dataclass(frozen=True, slots=True)
class WorkerSession:
    """One session with a worker; those of a link are numbered from 1."""

    number: int
    worker: LaunchedWorker
    scheduler: RemoteScheduler
    pulse: Pulse

    def halt(self, rm_id: str, halt: tuple[str, str] | None) -> None:
        """Pause or stop a resource manager; a worker that is lost is halted when it is replaced."""
        if halt is not None:
            change, reason = halt
            method = self.scheduler.pause_manager if change == "pause" else self.scheduler.stop_manager
            with suppress(LicorneError):
                method(rm_id, reason)


@final
class PatientWorker:
    """A worker as a recovery sees it: it has one partition, and a request is sent again until it is read.

    Args:
        scheduler: The session with it.
        partition: The partition.
        given_up: Set when the link is closed.
        turn: Held while it registers.
        used: What the partition has used before, which it goes on from when it registers; `None` for nothing.
    """

    def __init__(
        self,
        scheduler: RemoteScheduler,
        partition: str,
        given_up: threading.Event,
        turn: threading.Lock,
        used: Document | None,
    ) -> None:
        self._used = used
        self._scheduler = scheduler
        self._partition = partition
        self._given_up = given_up
        self._turn = turn
        self.update_node = self.update_application = self.update_allocation = self.send

    def register_resource_manager(
        self,
        request: si.RegisterResourceManagerRequest,
        callback: ResourceManagerCallback,
    ) -> si.RegisterResourceManagerResponse:
        """Register the RM with the one partition.

        A link that was closed does not: the RM has registered again, and would lose what it has by that.

        Raises:
            LicorneError: It is refused, or the worker is lost, or it is given up.
        """
        with self._turn:
            if self._given_up.is_set():
                raise ConnectionLostError("the link is closed")
            if self._used is not None:
                self._scheduler.take_kept_use(request.rmID, self._used)
            return self._scheduler.register_resource_manager(request, callback, partitions=[self._partition])

    def update_configuration(self, request: si.UpdateConfigurationRequest) -> None:
        """Replace the configuration."""
        self._scheduler.update_configuration(request)

    def stop(self) -> None:
        """End the session."""
        self._scheduler.stop()

    def send(self, request: LinkRequest) -> None:
        """Send a request; wait while the worker does not read.

        Raises:
            LicorneError: It is refused, the worker is lost, or it is given up.
        """
        while True:
            try:
                send_at_once(self._scheduler, request)
            except NotSentError:
                if self._given_up.wait(_ROOM_SECONDS):
                    raise
                continue
            return

    def replay(self, requests: Iterable[Replayed], note: Callable[[SentEntry | None], None]) -> None:
        """Send again what was under way when a worker was lost.

        Args:
            requests: What is sent, in order.
            note: Called with each suspect before it is sent, and with `None` before anything else is.

        Raises:
            LicorneError: It is refused, or the worker is lost.
        """
        for each in requests:
            note(each.suspect)
            self.send(each.request)
            if each.suspect is not None:
                self._wait_until_carried_out()
        note(None)

    def _wait_until_carried_out(self) -> None:
        """Wait until the worker has carried out all that it was sent.

        Raises:
            ConnectionLostError: The worker is lost, or it is given up.
        """
        answer = None
        while answer is None or not answer.done():
            if self._given_up.is_set():
                raise ConnectionLostError("the link is closed")
            try:
                answer = answer or self._scheduler.connection.ask_sign()
            except NotSentError:
                self._given_up.wait(_ROOM_SECONDS)
            else:
                wait([answer], _LOOK_SECONDS)
        if isinstance(lost := answer.exception(), ConnectionLostError):
            raise lost


def send_at_once(scheduler: RemoteScheduler, request: LinkRequest) -> None:
    """Send a request, without waiting.

    Raises:
        NotSentError: The worker does not read.
        LicorneError: It is refused, or the worker is lost.
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
    """Return whether the worker itself has ended a session, and said why: it runs, and answers."""
    return isinstance(loss, ReplacedError) or (isinstance(loss, ConnectionLostError) and loss.by_server)


STEPS: Final[Mapping[int, Callable[[RemoteScheduler], object]]] = {
    v1.Step.INSPECT_OUTSTANDING: RemoteScheduler.inspect_outstanding,
    v1.Step.PREEMPT_OVER_QUOTA: RemoteScheduler.preempt_over_quota,
    v1.Step.DELIVER_EVENTS: RemoteScheduler.deliver_events,
    v1.Step.RECORD_HISTORY: RemoteScheduler.record_history,
}
"""What a scheduler does that runs by itself, too."""
