"""Resource managers (RMs) that are connected: their callbacks become messages.

`RemoteManager` is the callback with which such an RM registers. The table of them knows which one is the
current one of each RM, so that the end of an old connection does no harm to a new one.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import TYPE_CHECKING, Final, final

from ...model.errors import LicorneError
from ..si import si_pb2 as si
from ..si.api import ResourceManager
from .statuses import NotRegisteredError

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, TimerHandle
    from collections.abc import Callable
    from concurrent.futures import Executor

    from google.protobuf.message import Message

    from ..scheduler.scheduler import Scheduler

__all__ = ["RemoteManager", "RemoteManagers"]


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

    @abstractmethod
    def send(self, callback: str, message: Message) -> None:
        """Send a callback's message; wait while too many are waiting to be sent."""

    @abstractmethod
    def set_bounded(self, bounded: bool) -> None:  # noqa: FBT001 - it is the verb's object
        """Have `send` wait while too many messages are waiting, or not: while the RM registers again."""

    @abstractmethod
    def end(self, reason: str) -> None:
        """End its streams, since the RM has registered again elsewhere; from any thread."""

    def update_allocation(self, response: si.AllocationResponse) -> None:
        """Send placements, releases and rejections."""
        self.send("update_allocation", response)

    def update_application(self, response: si.ApplicationResponse) -> None:
        """Send answers and changes of state."""
        self.send("update_application", response)

    def update_node(self, response: si.NodeResponse) -> None:
        """Send answers."""
        self.send("update_node", response)

    def update_container_scheduling_state(self, request: si.UpdateContainerSchedulingStateRequest) -> None:
        """Send a hint."""
        self.send("update_container_scheduling_state", request)


@final
class RemoteManagers:
    """The RMs that are connected, by id; the scheduler has the same ones registered.

    Args:
        scheduler: Where they register.
        loop: The event loop, which counts the time of a pause.
        executor: Runs what may wait for the scheduler.
        stop_after: For how many seconds a pause lasts before the RM is stopped.
    """

    def __init__(
        self, scheduler: Scheduler, loop: AbstractEventLoop, executor: Executor, stop_after: float
    ) -> None:
        self._scheduler = scheduler
        self._loop = loop
        self._executor = executor
        self._stop_after: Final = stop_after
        self._registering = threading.Lock()
        """One registration from outside at a time: the table and the scheduler change in one order."""
        self._table: dict[str, RemoteManager] = {}
        self._pauses: dict[str, TimerHandle] = {}
        """The ends of the pauses; belongs to the event loop."""

    def register(
        self, request: si.RegisterResourceManagerRequest, manager: RemoteManager, default_configuration: str
    ) -> None:
        """Register an RM, on a thread that may wait; an earlier connection of the same RM ends.

        Raises:
            RequestError: The registration is refused; an earlier one stays as it was.
        """
        if not request.config and manager.uses_file:
            completed = si.RegisterResourceManagerRequest()
            completed.CopyFrom(request)
            completed.config = default_configuration
            request = completed
        with self._registering:
            before = self._table.get(manager.rm_id)
            if before is not None:
                before.set_bounded(False)  # Its last callbacks must not wait for a peer that may be gone.
            try:
                self._scheduler.register_resource_manager(request, manager)
            except BaseException:
                if before is not None:
                    before.set_bounded(True)
                raise
            self._table[manager.rm_id] = manager
        self._loop.call_soon_threadsafe(self._cancel_stop, manager.rm_id)
        if before is not None:
            before.end(f"RM {manager.rm_id!r} has registered again, from another connection")

    def current(self, rm_id: str) -> RemoteManager:
        """Return the manager with which an RM is registered.

        Raises:
            NotRegisteredError: It has not registered.
        """
        manager = self._table.get(rm_id)
        if manager is None:
            raise NotRegisteredError(f"RM {rm_id!r} has not registered")
        return manager

    def on_file(self) -> list[RemoteManager]:
        """Return those that run on the server's configuration."""
        return [manager for manager in list(self._table.values()) if manager.uses_file]

    def connection_lost(self, manager: RemoteManager, reason: str) -> None:
        """Pause an RM, and stop it when the pause has lasted too long; on the event loop."""
        if self._table.get(manager.rm_id) is not manager:
            return
        self._run(lambda: self._scheduler.pause_manager(manager.rm_id, reason, callback=manager))
        self._cancel_stop(manager.rm_id)
        seconds = f"{self._stop_after:g} s"
        self._pauses[manager.rm_id] = self._loop.call_later(
            self._stop_after, self._stop, manager, f"{reason}, and it did not come back within {seconds}"
        )

    def shut_down(self, manager: RemoteManager) -> None:
        """Stop an RM that has said that it shuts down, on a thread that may wait."""
        self._scheduler.stop_manager(manager.rm_id, "it has shut down", callback=manager)

    def _stop(self, manager: RemoteManager, reason: str) -> None:
        self._pauses.pop(manager.rm_id, None)
        self._run(lambda: self._scheduler.stop_manager(manager.rm_id, reason, callback=manager))

    def _cancel_stop(self, rm_id: str) -> None:
        timer = self._pauses.pop(rm_id, None)
        if timer is not None:
            timer.cancel()

    def _run(self, step: Callable[[], object]) -> None:
        """Run a step that may wait for the scheduler, which may have been stopped meanwhile."""

        def attempt() -> None:
            with suppress(LicorneError):
                step()

        self._executor.submit(attempt)

    def close(self) -> None:
        """Count no more pauses; on the event loop."""
        for rm_id in list(self._pauses):
            self._cancel_stop(rm_id)
