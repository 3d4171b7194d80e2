"""Resource managers (RMs) that are connected: their callbacks become messages.

`RemoteManager` is the callback with which such an RM registers. The table of them knows which one is the
current one of each RM, so that the end of an old connection does no harm to a new one.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final, final

import grpc

from ....actors.services.log import Log
from ....actors.services.rm_link import BACKLOG_MAX
from ....model.errors import LicorneError
from ...si import licorne_v1_pb2 as v1
from ...si import si_pb2 as si
from ...si.api import ResourceManager
from .buffers import call_soon
from .calls import NotRegisteredError, StatusError
from .served_scheduler import ServedScheduler

if TYPE_CHECKING:
    from google.protobuf.message import Message


MANAGERS_MAX: Final = 1_000
"""How many RMs the scheduler knows, stopped ones included: it keeps what they had to be looked at."""
HANDED_BYTES_MAX: Final = 4 << 20
"""How many bytes of requests the partitions of an RM have not carried out."""
_LOOK_SECONDS: Final = 1.0
"""How soon a thread that waits for callbacks sees that the connection is lost."""
_REGISTERING: Final = 64
"""How many locks the registrations share."""


class RemoteManager(ResourceManager, ABC):
    """The callback of an RM in another process; a subclass knows its streams.

    Args:
        rm_id: Its id.
        extra: Its settings that are not in its queues, as it sent them.
        uses_file: Whether it runs on the server's configuration, since it sent none.
    """

    def __init__(self, rm_id: str, extra: dict[str, str], *, uses_file: bool) -> None:
        self.rm_id = rm_id
        self.extra = extra
        self.uses_file = uses_file
        self.connected_by = ""
        """How it is connected, in words."""
        self.speaks_for: object = None
        """The session that it belongs to: one that registers again there has not been replaced."""
        self.door = v1.DoorStart()
        """The door that it comes from; its epoch is 0 if it comes from none."""
        self.on_replaced: Callable[[str], object] = lambda _: None
        """Called when the scheduler has given it up, since another one has taken its place."""
        self.lost: str | None = None
        """Why its connection is lost; set once, on the event loop."""
        self._burst: list[tuple[str, Message]] | None = None
        """The callbacks of a burst; belongs to the thread that delivers."""
        self._handed_bytes = 0
        self.delivered: Final = threading.Event()
        """Set with each callback that is sent."""
        self.turn: Final = threading.RLock()
        """Held while a request of it is carried out, and while it registers again: a request of the old
        connection never reaches the new one."""

    def replaced(self, reason: str) -> None:
        """Take note that another callback has registered the RM, here or at the worker of a door."""
        self.on_replaced(reason)

    @abstractmethod
    def send(self, callback: str, message: Message) -> None:
        """Send a callback's message; wait while too many are waiting to be sent."""

    @abstractmethod
    def send_burst(self, burst: Sequence[tuple[str, Message]]) -> None:
        """Send the messages of several callbacks; do not wait."""

    @abstractmethod
    def has_room(self) -> bool:
        """Return whether not too many messages are waiting to be sent."""

    def begin_burst(self) -> None:
        """Keep the messages of the callbacks that follow, on the thread that delivers."""
        self._burst = []

    def end_burst(self) -> None:
        """Send what was kept, without waiting: its reader is woken once."""
        burst, self._burst = self._burst, None
        if burst:
            self.send_burst(burst)
            self.delivered.set()

    def _call_back(self, callback: str, message: Message) -> None:
        if self._burst is None:
            self.send(callback, message)
            self.delivered.set()
        else:
            self._burst.append((callback, message))

    @abstractmethod
    def set_bounded(self, bounded: bool) -> None:  # noqa: FBT001 - it is the verb's object
        """Have `send` wait while too many messages are waiting, or not: while the RM registers again."""

    @abstractmethod
    def end(self, status: StatusError) -> None:
        """Deliver what is queued, then end its streams; on the event loop."""

    @abstractmethod
    def drop(self) -> None:
        """Drop all queued messages: they no longer have a reader; on the event loop."""

    def note_update(self, request: si.UpdateConfigurationRequest) -> None:
        """Note that an update has replaced what it sent when it registered."""
        self.extra = dict(request.extraConfig)
        self.uses_file = not request.config

    def wait_until_delivered(self, scheduler: ServedScheduler) -> None:
        """Wait while too many callbacks wait in the scheduler: its answers would add to them."""
        while self.lost is None:
            self.delivered.clear()
            if scheduler.callbacks_waiting(self.rm_id) < BACKLOG_MAX:
                return
            self.delivered.wait(_LOOK_SECONDS)

    def hand_over(self, scheduler: ServedScheduler, method: str, request: Message) -> None:
        """Let the scheduler carry out a request; wait now and then until its partitions have caught up.

        Their mailboxes have a bound in messages alone.
        """
        getattr(scheduler, method)(request)
        self._handed_bytes += request.ByteSize()
        if self._handed_bytes >= HANDED_BYTES_MAX and not scheduler.stepped:
            self._handed_bytes = 0
            with suppress(LicorneError):  # A question that each partition answers in its turn.
                scheduler.queue_and_user("", rm_id=self.rm_id)

    def update_allocation(self, response: si.AllocationResponse) -> None:
        """Send placements, releases and rejections."""
        self._call_back("update_allocation", response)

    def update_application(self, response: si.ApplicationResponse) -> None:
        """Send answers and changes of state."""
        self._call_back("update_application", response)

    def update_node(self, response: si.NodeResponse) -> None:
        """Send answers."""
        self._call_back("update_node", response)

    def update_container_scheduling_state(self, request: si.UpdateContainerSchedulingStateRequest) -> None:
        """Send a hint."""
        self._call_back("update_container_scheduling_state", request)

    def send_event(self, events: Sequence[si.EventRecord]) -> None:
        """Send events."""
        self._call_back("send_event", v1.Events(events=events))


@final
class RemoteManagers:
    """The RMs that are connected, by id; the scheduler has the same ones registered.

    Args:
        scheduler: Where they register.
        loop: The event loop, which counts the time of a pause.
        executor: Runs what may wait for the scheduler.
        stop_after: For how many seconds a pause lasts before the RM is stopped.
        forget_after: How many seconds later it is forgotten; `None` for never.
    """

    def __init__(
        self,
        scheduler: ServedScheduler,
        loop: AbstractEventLoop,
        executor: Executor,
        stop_after: float,
        forget_after: float | None = None,
    ) -> None:
        self._scheduler = scheduler
        self._loop = loop
        self._executor = executor
        self._stop_after: Final = stop_after
        self._forget_after: Final = forget_after
        self._registering = tuple(threading.Lock() for _ in range(_REGISTERING))
        """One registration of an RM at a time: the table and the scheduler change in one order."""
        self._table: dict[str, RemoteManager] = {}
        self._timers: dict[str, TimerHandle] = {}
        """When RMs that are paused are stopped, and stopped ones forgotten; belongs to the event loop."""
        self._doors: dict[str, v1.DoorStart] = {}
        """The door that has registered an RM last, also while it is not connected."""
        self._closed = False
        self._log = Log(part="core.rmproxy")

    def register(
        self,
        request: si.RegisterResourceManagerRequest,
        manager: RemoteManager,
        default_configuration: str,
        partitions: Collection[str],
    ) -> None:
        """Register an RM, on a thread that may wait; an earlier connection of the same RM ends.

        Only the named partitions are made, by default all.

        Raises:
            RequestError: The registration is refused; an earlier one stays unchanged.
            StatusError: There are too many RMs (RESOURCE_EXHAUSTED), or a newer door has registered the RM
                (ABORTED).
        """
        if not request.config and manager.uses_file:
            completed = si.RegisterResourceManagerRequest()
            completed.CopyFrom(request)
            completed.config = default_configuration
            request = completed
        with self._registering[hash(manager.rm_id) % _REGISTERING]:
            before = self._table.get(manager.rm_id)
            self._check_count(manager.rm_id)
            self._check_door(manager)
            manager.on_replaced = partial(self._give_up, manager)
            with _standing_aside(before):
                self._scheduler.register_resource_manager(request, manager, partitions=partitions or None)
                self._table[manager.rm_id] = manager
                if manager.door.epoch:
                    self._doors[manager.rm_id] = manager.door
        call_soon(self._loop, self._entered, manager, before)

    def _check_count(self, rm_id: str) -> None:
        """Refuse one RM too many.

        Raises:
            StatusError: It is one (RESOURCE_EXHAUSTED).
        """
        known = self._scheduler.resource_managers()
        if len(known) >= MANAGERS_MAX and rm_id not in {each.rm_id for each in known}:
            text = f"RM {rm_id!r} is one too many: {MANAGERS_MAX} have registered"
            raise StatusError(grpc.StatusCode.RESOURCE_EXHAUSTED, text)

    def _check_door(self, manager: RemoteManager) -> None:
        """Refuse a door that is older than the one that has registered the RM last.

        Raises:
            StatusError: It is (ABORTED).
        """
        last, door = self._doors.get(manager.rm_id), manager.door
        if last is not None and door.epoch and (last.epoch, last.name) > (door.epoch, door.name):
            text = (
                f"RM {manager.rm_id!r} belongs to a newer door, {_door_in_words(last)}; this one is "
                f"{_door_in_words(door)}: end the one that is not to be, and start the other one again"
            )
            raise StatusError(grpc.StatusCode.ABORTED, text)

    def _give_up(self, manager: RemoteManager, reason: str) -> None:
        """End an RM that the scheduler has given up, unless it has registered again; on any thread."""
        self._run(lambda: self._leave(manager, reason, StatusError(grpc.StatusCode.ABORTED, reason)))

    def _entered(self, manager: RemoteManager, before: RemoteManager | None) -> None:
        """Count the time of a new connection, which may be lost already, and end the one before."""
        self._cancel_timer(manager.rm_id)
        if before is not None:
            before.end(_replaced(manager))
        if manager.lost is not None:
            self._pause(manager, manager.lost)

    def is_connected(self, rm_id: str) -> bool:
        """Return whether an RM is registered, and has not lost its connection."""
        manager = self._table.get(rm_id)
        return manager is not None and manager.lost is None

    def current(self, rm_id: str) -> RemoteManager:
        """Return the manager with which an RM is registered.

        Raises:
            NotRegisteredError: It has not registered, or has lost its connection.
        """
        manager = self._table.get(rm_id)
        if manager is None:
            raise NotRegisteredError(f"RM {rm_id!r} has not registered")
        if manager.lost is not None:
            raise NotRegisteredError(f"RM {rm_id!r} has to register again: {manager.lost}")
        return manager

    def check_current(self, manager: RemoteManager) -> None:
        """Refuse a request that comes after the end of its connection; with the manager's `turn`.

        Raises:
            StatusError: The RM has registered again (ABORTED), or has to (FAILED_PRECONDITION).
        """
        current = self.current(manager.rm_id)
        if current is not manager:
            raise _replaced(current)

    def all(self) -> list[RemoteManager]:
        """Return those that are registered, connected or not."""
        return list(self._table.values())

    def on_file(self) -> list[RemoteManager]:
        """Return those that run on the server's configuration."""
        return [manager for manager in self.all() if manager.uses_file]

    def connection_lost(self, manager: RemoteManager, reason: str) -> None:
        """Pause an RM, and stop it when the pause has lasted too long; on the event loop."""
        if manager.lost is None:
            manager.lost = reason
            if self._table.get(manager.rm_id) is manager:
                self._pause(manager, reason)

    def _pause(self, manager: RemoteManager, reason: str) -> None:
        if self._closed:
            return
        self._run(lambda: self._scheduler.pause_manager(manager.rm_id, reason, callback=manager))
        self._cancel_timer(manager.rm_id)
        text = f"{reason}, and it did not come back within {self._stop_after:g} s"
        self._timers[manager.rm_id] = self._loop.call_later(self._stop_after, self._stop, manager, text)

    def shut_down(self, manager: RemoteManager) -> None:
        """Stop an RM that has announced its end, on a thread that may wait."""
        self._leave(manager, "it has shut down")

    def _stop(self, manager: RemoteManager, reason: str) -> None:
        self._timers.pop(manager.rm_id, None)
        self._run(lambda: self._leave(manager, reason))

    def _forget_later(self, rm_id: str) -> None:
        self._cancel_timer(rm_id)
        if self._forget_after is not None and not self._closed and rm_id not in self._table:
            self._timers[rm_id] = self._loop.call_later(self._forget_after, self._forget, rm_id)

    def _forget(self, rm_id: str) -> None:
        self._timers.pop(rm_id, None)
        self._doors.pop(rm_id, None)
        self._run(lambda: self._scheduler.forget_manager(rm_id))

    def _leave(self, manager: RemoteManager, reason: str, status: StatusError | None = None) -> None:
        """Stop an RM and forget it, unless it has registered again; end its streams if a status is given."""
        with self._registering[hash(manager.rm_id) % _REGISTERING]:
            if self._table.get(manager.rm_id) is manager:
                with _standing_aside(manager):
                    self._scheduler.stop_manager(manager.rm_id, reason, callback=manager)
                    del self._table[manager.rm_id]
                call_soon(self._loop, self._forget_later, manager.rm_id)
                if status is not None:
                    call_soon(self._loop, manager.end, status)

    def _cancel_timer(self, rm_id: str) -> None:
        timer = self._timers.pop(rm_id, None)
        if timer is not None:
            timer.cancel()

    def _run(self, step: Callable[[], object]) -> None:
        """Run a step that may wait for the scheduler; no call waits for it, so that failures are logged."""

        def attempt() -> None:
            try:
                step()
            except LicorneError as error:  # The scheduler has been stopped meanwhile.
                self._log.debug("a step after the loss of a connection is not taken: {}", error)
            except Exception:  # noqa: BLE001 - it is logged
                self._log.exception("a step after the loss of a connection failed, please report")

        self._executor.submit(attempt)

    def close(self) -> None:
        """Stop counting pauses, and let no callback wait for a peer; on the event loop."""
        self._closed = True
        for rm_id in list(self._timers):
            self._cancel_timer(rm_id)
        for manager in self.all():
            manager.drop()


def _door_in_words(door: v1.DoorStart) -> str:
    started = datetime.fromtimestamp(door.epoch / 1e9, UTC).isoformat(timespec="milliseconds")
    return f"{door.name}, started at {started}"


def _replaced(by: RemoteManager) -> StatusError:
    how = f"{by.connected_by} (a door: {_door_in_words(by.door)})" if by.door.epoch else by.connected_by
    text = f"RM {by.rm_id!r} has registered again, from another connection: {how}"
    return StatusError(grpc.StatusCode.ABORTED, text)


@contextmanager
def _standing_aside(manager: RemoteManager | None) -> Iterator[None]:
    """Carry out no request of a manager; its last callbacks do not wait for a peer that may be gone."""
    if manager is None:
        yield
        return
    manager.set_bounded(False)
    try:
        with manager.turn:
            yield
    finally:
        manager.set_bounded(True)
