"""One session of a link with a worker, and how it sends there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TypeAlias

from ....model.errors import LicorneError, ReplacedError, RequestError
from ...si import licorne_v1_pb2 as v1
from ...si import si_pb2 as si
from ..client.errors import ConnectionLostError
from ..client.remote_scheduler import RemoteScheduler
from .pulse import Pulse
from .routing import LinkRequest
from .workers import LaunchedWorker

Connect: TypeAlias = "Callable[[LaunchedWorker, Callable[[RequestError], object]], RemoteScheduler]"
"""Makes a session with a worker; the second argument is called when it is lost."""

CALLBACKS: Final = {
    si.NodeResponse: "update_node",
    si.ApplicationResponse: "update_application",
    si.AllocationResponse: "update_allocation",
}
"""The callback of each answer."""


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
