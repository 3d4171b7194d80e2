"""The recovery of a partition on a worker: the requests for the worker, and the handling of its answers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import wait
from typing import Final, TypeAlias, final

from google.protobuf.message import Message

from ....model.errors import LINE_LENGTH_MAX, RequestError, shortened
from ....model.values.documents import Document
from ....model.values.messages import RejectionCode
from ...si import si_pb2 as si
from ...si.api import ResourceManager, ResourceManagerCallback
from ...si.arguments import ask_predicate
from ...si.messages import batches
from ..client.errors import ConnectionLostError, NotSentError
from ..client.recovery import Recovery
from ..client.recovery_parts import RecoveryState, Watcher
from ..client.remote_scheduler import RemoteScheduler
from .allocation_record import BATCH_MAX
from .record import PartsToRecover
from .routing import LinkRequest
from .session import send_at_once
from .under_way import Replayed, SentEntry

Hear: TypeAlias = "Callable[[str, Message | Sequence[si.EventRecord]], None]"
"""Called with an answer of a worker: the name of the callback, and its argument."""
_LOOK_SECONDS: Final = 0.05
"""The interval of the checks during a recovery: whether the worker was lost, or the link was closed."""
_ROOM_SECONDS: Final = 0.01
"""The pause before a request is sent again to a worker that does not read."""
_KNOWN_NAMES: Final = frozenset({"allocationKey", "applicationID", "nodeID", "partitionName"})
"""Fields with names that the door has sent itself: an RM needs them in full, however long they are."""
_CODES: Final = frozenset(code.value for code in RejectionCode)


@final
class PatientWorker:
    """A worker during a recovery: it has one partition, and a request is sent again until it is read.

    Args:
        scheduler: The session with the worker.
        partition: The partition.
        given_up: Set when the link is closed.
        turn: The lock that is held during the registration.
        used: The earlier use of the partition, from which it continues when it registers; `None` without any.
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

        A closed link does not register: the RM has registered again, and would lose its new state.

        Raises:
            LicorneError: The registration is refused, the worker is lost, or the recovery is given up.
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
            LicorneError: The request is refused, the worker is lost, or the recovery is given up.
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
        """Send again the requests that were under way when a worker was lost.

        Args:
            requests: The requests, in order.
            note: Called with each suspect before it is sent, and with `None` before any other request.

        Raises:
            LicorneError: A request is refused, or the worker is lost.
        """
        for each in requests:
            note(each.suspect)
            self.send(each.request)
            if each.suspect is not None:
                self._wait_until_carried_out()
        note(None)

    def _wait_until_carried_out(self) -> None:
        """Wait until the worker has carried out all requests.

        Raises:
            ConnectionLostError: The worker is lost, or the recovery is given up.
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


def hand_over(
    worker: PatientWorker,
    registration: si.RegisterResourceManagerRequest,
    callback: ResourceManagerCallback,
    known: PartsToRecover,
    check_current: Callable[[], None],
) -> Recovery | None:
    """Register at a worker, and give it the state of a partition.

    This thread sends the asks and all later requests. A recovery would send the asks on the thread of its
    last answer, and later requests of the RM, such as releases of these asks, could overtake them.

    Args:
        worker: The worker.
        registration: The registration of the RM.
        callback: The callback for the answers of the worker.
        known: The state of the partition.
        check_current: Raises an error if the session is lost, or the link was closed.

    Returns:
        The finished recovery; `None` if the partition had no state.

    Raises:
        LicorneError: The recovery is refused or fails, or the worker is lost in the meantime.
    """
    if not (known.nodes or known.applications or known.asks):
        worker.register_resource_manager(registration, callback)
        return None
    recovery = Recovery(
        worker,
        registration,
        callback,
        nodes=known.nodes,
        applications=known.applications,
        allocations=known.allocations,
    )
    recovery.start()
    while recovery.wait(_LOOK_SECONDS) is RecoveryState.RECOVERING:
        check_current()
    if recovery.state is RecoveryState.FAILED:
        raise RequestError(f"the recovery has failed: {recovery.failure}")
    for batch in batches(known.asks, BATCH_MAX, len):
        worker.send(
            si.AllocationRequest(rmID=registration.rmID, allocations=map(si.Allocation.FromString, batch))
        )
    return recovery


def _nothing(_: str) -> None:
    """Do nothing."""


class SessionCallback(Watcher):
    """The callback for one session with a worker; questions of the worker go directly to the RM.

    Args:
        callback: The callback of the RM.
        hear: Called with all other messages.
    """

    def __init__(self, callback: ResourceManagerCallback, hear: Hear) -> None:
        super().__init__(callback, lambda _: None, lambda response: response, lambda response: response)
        self._hear = hear
        self.replaced = _nothing  # The end of the session informs the link.

    def update_allocation(self, response: si.AllocationResponse) -> None:
        """Pass on placements, releases and rejections."""
        self._hear("update_allocation", response)

    def update_application(self, response: si.ApplicationResponse) -> None:
        """Pass on answers about applications, and changes of state."""
        self._hear("update_application", response)

    def update_node(self, response: si.NodeResponse) -> None:
        """Pass on accepted and rejected nodes."""
        self._hear("update_node", response)

    def send_event(self, events: Sequence[si.EventRecord]) -> None:
        """Pass on events."""
        self._hear("send_event", events)

    def update_container_scheduling_state(self, request: si.UpdateContainerSchedulingStateRequest) -> None:
        """Pass on a scheduling state."""
        self._hear("update_container_scheduling_state", request)


@final
class _AskedSessionCallback(SessionCallback):
    """The callback for an RM that has predicates; a worker asks no other RM."""

    def predicates(self, args: si.PredicatesArgs) -> None:
        """Ask the RM."""
        ask_predicate(self._callback, args)


def session_callback(callback: ResourceManagerCallback, hear: Hear) -> SessionCallback:
    """Return the callback for a session; it has predicates only if the callback of the RM has them."""
    asks = getattr(type(callback), "predicates", None) is not ResourceManager.predicates
    return (_AskedSessionCallback if asks else SessionCallback)(callback, hear)


def doubted_code(said: Message | Sequence[si.EventRecord]) -> str:
    """Return the impossible part of the codes of rejections, empty without one; asked as the last check."""
    match said:
        case si.AllocationResponse():
            codes = [each.code for each in said.rejectedAllocations]
        case si.NodeResponse() | si.ApplicationResponse():
            codes = [each.code for each in said.rejected]
        case _:
            return ""
    code = next((code for code in codes if code not in _CODES), None)
    return "" if code is None else f"it rejected for the code {code!r:.100}, which does not exist"


def bound_texts(said: Message | Sequence[si.EventRecord]) -> None:
    """Shorten the texts of a worker for people, like a scheduler; names that were never sent are doubted."""
    entries: Sequence[Message] = [said] if isinstance(said, Message) else said
    if isinstance(said, si.NodeResponse | si.ApplicationResponse | si.AllocationResponse):
        entries = [entry for _, answered in said.ListFields() for entry in answered]
    for entry in entries:
        if entry.ByteSize() > LINE_LENGTH_MAX:
            entry.DiscardUnknownFields()
            for field, value in entry.ListFields():
                if isinstance(value, str) and field.name not in _KNOWN_NAMES:
                    setattr(entry, field.name, shortened(value))
                elif field.name == "allocationTags":
                    value.clear()  # Workers do not send this field.
