"""A worker as the recovery of a partition sees it: what is handed over to it, and what it says."""

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
"""Takes what a worker says: the name of the callback, and its argument."""
_LOOK_SECONDS: Final = 0.05
"""How often a recovery is looked at: whether the worker was lost, or the link was closed."""
_ROOM_SECONDS: Final = 0.01
"""How long a worker that does not read is left alone before a request is sent again."""
_KNOWN_NAMES: Final = frozenset({"allocationKey", "applicationID", "nodeID", "partitionName"})
"""Names that the door has sent itself: an RM knows by them what is meant, however long they are."""
_CODES: Final = frozenset(code.value for code in RejectionCode)


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


def hand_over(
    worker: PatientWorker,
    registration: si.RegisterResourceManagerRequest,
    callback: ResourceManagerCallback,
    known: PartsToRecover,
    check_current: Callable[[], None],
) -> Recovery | None:
    """Register at a worker, and give it what a partition holds.

    The asks are sent on this thread, as all that follows is: a recovery would send them on the thread on
    which its last answer has come, and what the RM says next, such as their ends, could overtake them.

    Args:
        worker: The worker.
        registration: How the RM registers.
        callback: Gets what the worker says.
        known: What the partition holds.
        check_current: Raises an error when the session is lost, or the link was closed.

    Returns:
        The recovery, which has come to its end; `None` where the partition held nothing.

    Raises:
        LicorneError: It is refused, it fails, or the worker is lost meanwhile.
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
    """The callback for one session with a worker; questions of the worker go to the RM itself.

    Args:
        callback: The callback of the RM.
        hear: Gets everything else.
    """

    def __init__(self, callback: ResourceManagerCallback, hear: Hear) -> None:
        super().__init__(callback, lambda _: None, lambda response: response, lambda response: response)
        self._hear = hear
        self.replaced = _nothing  # The link learns it from the end of the session.

    def update_allocation(self, response: si.AllocationResponse) -> None:
        """Take placements, releases and rejections."""
        self._hear("update_allocation", response)

    def update_application(self, response: si.ApplicationResponse) -> None:
        """Take answers about applications, and changes of state."""
        self._hear("update_application", response)

    def update_node(self, response: si.NodeResponse) -> None:
        """Take accepted and rejected nodes."""
        self._hear("update_node", response)

    def send_event(self, events: Sequence[si.EventRecord]) -> None:
        """Take events."""
        self._hear("send_event", events)

    def update_container_scheduling_state(self, request: si.UpdateContainerSchedulingStateRequest) -> None:
        """Take a hint."""
        self._hear("update_container_scheduling_state", request)


@final
class _AskedSessionCallback(SessionCallback):
    """The callback for an RM that has predicates of its own; a worker asks no other one."""

    def predicates(self, args: si.PredicatesArgs) -> None:
        """Ask the RM."""
        ask_predicate(self._callback, args)


def session_callback(callback: ResourceManagerCallback, hear: Hear) -> SessionCallback:
    """Return the callback for a session; it has predicates only if that of the RM has."""
    asks = getattr(type(callback), "predicates", None) is not ResourceManager.predicates
    return (_AskedSessionCallback if asks else SessionCallback)(callback, hear)


def doubted_code(said: Message | Sequence[si.EventRecord]) -> str:
    """Return what of the codes of rejections cannot be, empty if all can; ask when all else is believed."""
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
    """Shorten what a worker says for people, as a scheduler does; names that were never sent are doubted."""
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
                    value.clear()  # No worker sends any.
