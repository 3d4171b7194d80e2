"""How a link sends to its worker: in order, and each request again until the worker reads it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias, final

from ...model.values.documents import Document
from ..client.errors import ConnectionLostError, NotSentError
from ..client.remote_scheduler import RemoteScheduler
from ..si import licorne_v1_pb2 as v1
from ..si import si_pb2 as si
from ..si.api import ResourceManagerCallback

__all__ = ["CALLBACKS", "STEPS", "LinkRequest", "PatientWorker", "send_at_once"]

LinkRequest: TypeAlias = "si.NodeRequest | si.ApplicationRequest | si.AllocationRequest | v1.Reconsideration"
"""What a link sends."""
CALLBACKS: Final = {
    si.NodeResponse: "update_node",
    si.ApplicationResponse: "update_application",
    si.AllocationResponse: "update_allocation",
}
"""The callback of each answer."""
_ROOM_SECONDS: Final = 0.01
"""How long a worker that does not read is left alone before a request is sent again."""


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


STEPS: Final[Mapping[int, Callable[[RemoteScheduler], object]]] = {
    v1.Step.INSPECT_OUTSTANDING: RemoteScheduler.inspect_outstanding,
    v1.Step.PREEMPT_OVER_QUOTA: RemoteScheduler.preempt_over_quota,
    v1.Step.DELIVER_EVENTS: RemoteScheduler.deliver_events,
    v1.Step.RECORD_HISTORY: RemoteScheduler.record_history,
}
"""What a scheduler does that runs by itself, too."""
