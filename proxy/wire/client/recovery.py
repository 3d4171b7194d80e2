"""The recovery of a resource manager (RM): what it knows is sent to a scheduler that knows nothing.

Either side may have been restarted. The RM registers, and hands over its nodes, applications and existing
allocations; asks follow when all of these are answered. See docs/recovery.md.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from enum import Enum
from functools import partial
from typing import Final, cast, final

from ....model.errors import LicorneError, RequestError
from ...base.files.input_files import GivenConfiguration, configuration_text
from ...core.scheduler.calling import CallingSide
from ...si import si_pb2 as si
from ...si.api import ResourceManagerCallback, SchedulerAPI
from ...si.arguments import check_callback, check_message, check_type, rm_id_of
from .recovery_parts import (
    GivenAllocation,
    RecoveryEvent,
    RecoveryState,
    next_recovery_state,
    read_known_state,
    watcher_of,
)
from .recovery_progress import (
    AllocationBatch,
    RecoveryProgress,
    RecoveryRejection,
    RejectedKind,
    Request,
    ask_requests,
)
from .relisting import ShowsItsState, differences

HELD_REQUESTS_MAX: Final = 65_536
"""How many requests wait for the end of a recovery at most; a further one is refused."""


class OnRejection(Enum):
    """The end of a recovery if a node or an existing allocation is rejected."""

    LEAVE_OUT = "The node stays drained, and the recovery continues"
    FAIL = "The recovery fails"


@final
class Recovery:
    """Registers a resource manager, and recovers its state; asks are held back until that is done.

    It is a door to the scheduler until the RM recovers the next time: requests that are sent through it wait
    while it recovers, and are sent in order afterwards. It may be used by several threads.

    Args:
        scheduler: The scheduler, in this process or elsewhere.
        registration: How the RM registers.
        callback: The callback of the RM. It gets all but the answers that it expects: those of existing
            allocations that are recovered, and rejections of applications that are sent again.
        nodes: All nodes. Each has the action `CREATE`, or `CREATE_DRAIN` if it is to stay drained.
        applications: All applications that are active.
        allocations: The existing allocations, each with its node; also foreign ones (tag `foreign`).
        asks: The waiting asks.
        on_rejection: Whether the recovery ends if a node or an allocation is rejected.
        batch_max: How many entries one request has at most.
        replaces: The recovery by which the RM has registered before. The scheduler ends all that it knew by
            that one, and the callback is not called about it: for the RM nothing has ended.
        partitions: The partitions that are made, as for `Scheduler.register`; `None` makes all.
        configuration: The queues, as for `Scheduler.register`, instead of `registration.config`.
        forces_applications: Whether rejected applications with allocations are forced, see docs/recovery.md.

    The arguments are walked once, in the constructor: nodes and applications are copied, allocations and asks
    are kept as bytes. They may be given as the bytes of their messages.

    Raises:
        LicorneError: Something occurs twice or refers to something that is not given.
        RequestError: The callback lacks a method.
    """

    def __init__(
        self,
        scheduler: SchedulerAPI,
        registration: si.RegisterResourceManagerRequest,
        callback: ResourceManagerCallback,
        *,
        nodes: Iterable[si.NodeInfo] = (),
        applications: Iterable[si.AddApplicationRequest] = (),
        allocations: Iterable[GivenAllocation] = (),
        asks: Iterable[GivenAllocation] = (),
        on_rejection: OnRejection = OnRejection.LEAVE_OUT,
        batch_max: int = 1_000,
        replaces: Recovery | None = None,
        partitions: Collection[str] | None = None,
        configuration: GivenConfiguration | None = None,
        forces_applications: bool = True,
    ) -> None:
        if not callable(getattr(scheduler, "register_resource_manager", None)) or isinstance(scheduler, type):
            raise LicorneError(f"scheduler={scheduler!r:.200} is not a scheduler")
        check_message("a registration", registration, si.RegisterResourceManagerRequest)
        check_type("batch_max", batch_max, int)
        check_type("on_rejection", on_rejection, OnRejection)
        check_type("replaces", replaces, Recovery, type(None))
        if batch_max < 1:
            raise LicorneError(f"batch_max={batch_max}: a request has one entry at least")
        check_callback(callback)
        self._scheduler = scheduler
        self._registration = registration
        if configuration is not None:
            self._registration = deepcopy(registration)
            self._registration.config = configuration_text(configuration)
        self._rm_id = registration.rmID
        self._batch_max = batch_max
        self._on_rejection = on_rejection
        known = read_known_state(self._rm_id, nodes, applications, allocations, asks)
        self._progress_of = partial(
            RecoveryProgress, self._rm_id, batch_max=batch_max, forces=forces_applications
        )
        self._progress = self._progress_of(known)
        self._watcher = watcher_of(
            callback, self._take_nodes, self._take_applications, self._take_allocations, self.fail
        )
        self._changed = threading.Condition()
        self._state = RecoveryState.NEW
        self._replaced = replaces
        self._partitions = partitions
        self._is_replaced = False
        """Whether another recovery registers in its place, or has."""
        self._has_left = False
        """Whether another recovery has registered in its place."""
        self._sender: int | None = None
        """The identity of the thread that is sending something of this recovery."""
        self._passing: list[int] = []
        """The identities of the threads that are sending a request that is not held back."""
        self._is_registering = False
        self._is_pausing = False
        """Whether a thread waits for the others to send nothing."""
        self._due: deque[Request] = deque()
        """The requests of the recovery itself, which are still to be sent."""
        self._failure = ""
        self._held: deque[Request] = deque(ask_requests(self._rm_id, known.asks, batch_max))

    # ------------------------------------------------------------------------------------- the life

    @property
    def state(self) -> RecoveryState:
        """How far it has come."""
        return self._state

    @property
    def failure(self) -> str:
        """Why it has failed; empty unless it has."""
        return self._failure

    @property
    def rejections(self) -> tuple[RecoveryRejection, ...]:
        """The rejections by the scheduler, since the last `relist` if any; in order of the answers."""
        with self._changed:
            return tuple(self._progress.rejections)

    @property
    def left_out(self) -> tuple[str, ...]:
        """The nodes on which nothing is placed because of a rejection, sorted."""
        with self._changed:
            return tuple(sorted(self._progress.left_out))

    def start(self) -> None:
        """Register, and begin to recover; do not wait for the end. The calls are those of the scheduler.

        Raises:
            RequestError: The registration is refused, and may be tried again; or the scheduler refuses what
                follows, and the recovery has failed.
            LicorneError: It was started before.
        """
        with self._changed:
            next_recovery_state(self._state, RecoveryEvent.REGISTER)
            if self._is_registering:
                raise LicorneError(f"the recovery of RM {self._rm_id!r} is being started already")
            self._is_registering = True
        if self._replaced is not None:
            self._replaced._stand_aside()  # noqa: SLF001 - of the same class
        try:
            self._register()
        except BaseException:
            self._is_registering = False
            if self._replaced is not None:
                self._replaced._come_back()  # noqa: SLF001 - likewise
            raise
        if self._replaced is not None:
            self._replaced._leave()  # noqa: SLF001 - likewise
        with self._changed:
            self._enter(RecoveryEvent.REGISTER)
            self._enter(RecoveryEvent.RECOVER)
            self._due += self._progress.begin()
        self._send_due()
        self._raise_if_failed()

    def _register(self) -> None:
        chosen = {} if self._partitions is None else {"partitions": self._partitions}
        scheduler = cast("CallingSide", self._scheduler)
        scheduler.register_resource_manager(self._registration, self._watcher, **chosen)

    def relist(
        self,
        *,
        nodes: Iterable[si.NodeInfo] = (),
        applications: Iterable[si.AddApplicationRequest] = (),
        allocations: Iterable[GivenAllocation] = (),
        asks: Iterable[GivenAllocation] = (),
    ) -> None:
        """Make the scheduler know the present state, and nothing else; do not wait for the end.

        For an RM that has lost track and lists everything again. It is Recovering until that is answered, and
        `wait` waits for it; requests that are sent through it meanwhile follow. The arguments have the form
        of those of the constructor, and are compared with a snapshot of the scheduler:

        * a node by its id, its size, and whether it is drained. One that is not given is removed;
        * an application by its id alone. One that is not given is removed;
        * an allocation by its application, key, node and size. One that the scheduler has elsewhere, or as an
          ask, is moved. One of others (tag `foreign`) is compared by its key, node and size;
        * an ask by its application, key and size. **One that the scheduler has placed stays placed** while
          its node is given: the RM has not heard of it, or has not started it yet. To take a placement back,
          send a release with `SCHEDULING_FAILED_ON_RM`;
        * an ask or allocation that is not given is released; the RM hears that as after its own release.

        Entries that are equal in these are not sent. Tags, priorities, users and queues are not compared.
        An application of which anything else is sent is sent too (tag `licorne/create-if-missing`).

        The lists must contain everything that the RM has sent through this recovery before: missing entries
        end. The RM may still hear of decisions before the call: the placement of an ask that is not
        given, for example, and then its release. An ask that is placed during the call, and is given as an
        allocation on another node, stays there: the RM hears that, and the next `relist` moves it.
        A member of a gang that is about to replace its placeholder continues, as when its ask is withdrawn.

        Raises:
            LicorneError: Something occurs twice or refers to something that is not given; it is not Running;
                the scheduler does not show what it has; the RM speaks the older generation of `si.v1`; or
                this thread is inside a request of this recovery. Nothing has been sent.
            RequestError: The scheduler does not answer, and nothing has been sent; or it refuses a request as
                a whole, and the recovery has failed.
        """
        known = read_known_state(self._rm_id, nodes, applications, allocations, asks)
        scheduler = self._scheduler
        if not isinstance(scheduler, ShowsItsState):
            raise LicorneError("the scheduler does not show its state: it has no method `snapshot`")
        with self._alone():
            found = differences(scheduler, self._rm_id, known, self._batch_max)
            with self._changed:
                if self._state is RecoveryState.RECOVERING:
                    missing = found.missing
                    self._progress = self._progress_of(missing, before=found.before)
                    self._due += [*found.first, *self._progress.begin()]
                    last = ask_requests(self._rm_id, missing.asks, self._batch_max)
                    self._held.extendleft(reversed(last))
        self._raise_if_failed()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Recover again; what was sent has arrived, and nothing else is sent before the block ends."""
        own = threading.get_ident()
        with self._changed:
            next_recovery_state(self._state, RecoveryEvent.RECOVER)
            if self._is_pausing or own == self._sender or own in self._passing:
                why = "lists everything inside one of its own requests, or twice"
                raise LicorneError(f"RM {self._rm_id!r} {why}")
            self._is_pausing = True
        try:
            for request in self._take_held(own):
                self._try_to_send(request)
            with self._changed:
                self._enter(RecoveryEvent.RECOVER)
            yield
        finally:
            with self._changed:
                self._is_pausing = False
                self._sender = None if self._sender == own else self._sender
                self._changed.notify_all()
            self._send_due()

    def _take_held(self, own: int) -> list[Request]:
        """Wait until no other thread sends anything; return what was held back before."""
        with self._changed:
            self._changed.wait_for(lambda: self._sender is None and not self._passing)
            if self._is_replaced:
                raise LicorneError(f"RM {self._rm_id!r} has registered again, by another recovery")
            self._sender = own
            held, self._held = [*self._held], deque()
            return held

    def _raise_if_failed(self) -> None:
        if self._state is RecoveryState.FAILED:
            raise RequestError(f"the recovery has failed: {self._failure}")

    def wait(self, timeout_seconds: float | None = None) -> RecoveryState:
        """Wait until it is Running or Failed, for so long at most; return its state then.

        It makes no steps: a stepped scheduler has to be stepped by another thread, or before.

        Raises:
            LicorneError: It would wait without end: nothing has started the recovery.
        """
        check_type("timeout_seconds", timeout_seconds, int, float, type(None))
        if self._state is RecoveryState.NEW and timeout_seconds is None and not self._is_registering:
            raise LicorneError(f"the recovery of RM {self._rm_id!r} has not been started: call start()")
        ended = (RecoveryState.RUNNING, RecoveryState.FAILED)
        with self._changed:
            self._changed.wait_for(lambda: self._state in ended, timeout_seconds)
            return self._state

    def fail(self, reason: str) -> bool:
        """End a recovery, because the connection is lost; return whether it was under way.

        Requests that it held back are dropped, and further ones refused.
        """
        with self._changed:
            if self._state is not RecoveryState.RECOVERING:
                return False
            self._failure = reason
            self._enter(RecoveryEvent.FAIL)
            self._drop()
            return True

    # ------------------------------------------------------------------------------- requests of the RM

    def update_node(self, request: si.NodeRequest) -> None:
        """Send a request once the recovery is done; at once if it is.

        Raises:
            RequestError: It is for another RM, too many wait, the recovery has failed, or the RM has
                registered again; or the scheduler refuses it, now that nothing is held back.
        """
        self._send_or_hold(request, rm_id_of(request, si.NodeRequest))

    def update_application(self, request: si.ApplicationRequest) -> None:
        """Send a request, as `update_node` does."""
        self._send_or_hold(request, rm_id_of(request, si.ApplicationRequest))

    def update_allocation(self, request: si.AllocationRequest) -> None:
        """Send a request, as `update_node` does."""
        self._send_or_hold(request, rm_id_of(request, si.AllocationRequest))

    def _send_or_hold(
        self, request: si.NodeRequest | si.ApplicationRequest | si.AllocationRequest, rm_id: str
    ) -> None:
        if rm_id != self._rm_id:
            raise RequestError(f"the request is of RM {rm_id!r}, and this recovery of {self._rm_id!r}")
        with self._changed:
            if self._state is RecoveryState.FAILED:
                raise RequestError(f"the recovery of RM {self._rm_id!r} has failed: {self._failure}")
            if self._has_left:
                raise RequestError(f"RM {self._rm_id!r} has registered again, by another recovery")
            if self._holds_back():
                if len(self._held) >= HELD_REQUESTS_MAX:
                    raise RequestError(f"{HELD_REQUESTS_MAX} requests of RM {self._rm_id!r} wait already")
                self._held.append(deepcopy(request))
                return
            sender = threading.get_ident()
            self._passing.append(sender)
        try:
            self._send(request)
        finally:
            with self._changed:
                self._passing.remove(sender)
                self._changed.notify_all()

    def _holds_back(self) -> bool:
        """Return whether a request has to wait: for the recovery, an earlier request, or another recovery."""
        return (
            self._state is not RecoveryState.RUNNING
            or bool(self._held)
            or self._sender is not None
            or self._is_replaced
            or self._is_pausing
        )

    # ------------------------------------------------------------------------------------- its steps

    def _enter(self, event: RecoveryEvent) -> None:
        """Enter the next state; the caller has the lock."""
        self._state = next_recovery_state(self._state, event)
        self._changed.notify_all()

    def _take_nodes(self, response: si.NodeResponse) -> None:
        """Carry out what follows from an answer about nodes; nothing once the recovery has ended."""
        with self._changed:
            if self._state is not RecoveryState.RECOVERING:
                return
            self._due += self._progress.take_nodes(response)
        self._send_due()

    def _take_applications(self, response: si.ApplicationResponse) -> si.ApplicationResponse:
        """Carry out what follows from an answer about applications; return what the RM is to know of it."""
        with self._changed:
            if self._state is not RecoveryState.RECOVERING:
                return response
            requests, rest = self._progress.take_applications(response)
            self._due += requests
        self._send_due()
        return rest

    def _take_allocations(self, response: si.AllocationResponse) -> si.AllocationResponse:
        """Carry out what follows from an answer about allocations; return what the RM is to know of it.

        The RM knows the allocations that it has listed, also if the recovery has failed meanwhile.
        """
        if self._state is RecoveryState.RUNNING:
            return response
        with self._changed:
            requests, rest = self._progress.take_allocations(response)
            self._due += requests
        self._send_due()
        return rest

    def _send_due(self) -> None:
        """Send what is due, in order, unless another thread is sending: that thread continues with it."""
        if self._on_rejection is OnRejection.FAIL:
            rejection = next((entry for entry in self.rejections if entry.node_id), None)
            if rejection is not None:
                self.fail(f"{rejection.kind.value} {rejection.name} was rejected: {rejection.reason}")
                return
        while True:
            with self._changed:
                request = self._next_due()
                if request is None:
                    return
                self._sender = threading.get_ident()
            try:
                self._try_to_send(request)
            finally:
                with self._changed:
                    self._sender = None
                    self._changed.notify_all()

    def _try_to_send(self, request: Request) -> None:
        """Send a request; one that is refused ends a recovery that is under way."""
        try:
            self._send(request)
        except LicorneError as error:
            if not self.fail(str(error)):
                self._note_refused(request, error)

    def _next_due(self) -> Request | None:
        """Take what is to be sent now, and end the recovery when that was all; the caller has the lock."""
        if self._sender is not None or self._is_replaced or self._is_pausing:
            return None
        if self._state is RecoveryState.RECOVERING:
            if self._due:
                return self._due.popleft()
            if not self._progress.is_complete:
                return None
            self._enter(RecoveryEvent.SUCCEED)
        return self._held.popleft() if self._held and self._state is RecoveryState.RUNNING else None

    def _drop(self) -> None:
        """Drop what was not sent; the caller has the lock."""
        self._due.clear()
        self._held.clear()

    def _stand_aside(self) -> None:
        """Send nothing from now on, and wait for what is being sent: it is for the earlier registration."""
        self._watcher.is_muted = True
        own = threading.get_ident()
        with self._changed:
            self._is_replaced = True
            self._changed.wait_for(lambda: {self._sender, *self._passing} <= {None, own})

    def _leave(self) -> None:
        """Drop what was not sent: the other recovery has registered, with all that the RM knows."""
        if not self.fail(f"RM {self._rm_id!r} has registered again"):
            with self._changed:
                self._has_left = True
                self._drop()

    def _come_back(self) -> None:
        """Continue: the other recovery could not register."""
        self._watcher.is_muted = False
        with self._changed:
            self._is_replaced = False
        self._send_due()

    def _note_refused(self, request: Request, error: LicorneError) -> None:
        kind = "AllocationRequest" if isinstance(request, AllocationBatch) else type(request).__name__
        refusal = RecoveryRejection(kind=RejectedKind.REQUEST, name=kind, reason=str(error))
        with self._changed:
            self._progress.rejections.append(refusal)

    def _send(self, request: Request) -> None:
        match request:
            case si.NodeRequest():
                self._scheduler.update_node(request)
            case si.ApplicationRequest():
                self._scheduler.update_application(request)
            case AllocationBatch():
                self._scheduler.update_allocation(request.request())
            case _:
                self._scheduler.update_allocation(request)
