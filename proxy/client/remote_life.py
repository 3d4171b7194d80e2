"""The resource managers (RMs) of a remote scheduler, and the methods for their lives, as in `Scheduler`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import final

from ..scheduler.managers.callback_threads import CallbackThreads
from ..si import licorne_v1_pb2 as v1
from ..si.api import ResourceManagerCallback
from .connection import Connection

__all__ = ["Registered", "RemoteLife"]


@final
class Registered:
    """An RM that has registered, and what it said then."""

    def __init__(self, request: v1.Registration, callback: ResourceManagerCallback) -> None:
        self.request = request
        self.callback = callback


class RemoteLife(ABC):
    """The methods for the life of RMs; `RemoteScheduler` has the rest."""

    _registered: dict[str, Registered]
    _callback_threads: CallbackThreads

    @property
    def connection(self) -> Connection:
        """The session with the server, for who looks after it.

        Raises:
            RequestError: This object has been stopped, or there is no connection now.
        """
        return self._known()

    @property
    def rest_address(self) -> str:
        """Where the REST interface of the server listens, `HOST:PORT`; empty if it has none.

        Raises:
            RequestError: This object has been stopped, or there is no connection now.
        """
        return self._known().rest_address

    @property
    def server_version(self) -> str:
        """The version of Licorne of the server; empty from one that does not say it.

        Raises:
            RequestError: This object has been stopped, or there is no connection now.
        """
        return self._known().server_version

    @abstractmethod
    def _known(self) -> Connection:
        """Return the connection."""

    @abstractmethod
    def _call(self, message: v1.ManagerMessage) -> v1.Answer:
        """Make a call and wait for its answer."""

    def forget_manager(self, rm_id: str) -> None:
        """Forget a resource manager that has stopped, with its partitions and all that is counted of it.

        Raises:
            RequestError: It has not stopped, or no such one has registered.
        """
        self._callback_threads.refuse("the end of a resource manager")
        self._call(v1.ManagerMessage(forget=v1.Forget(rm_id=rm_id)))

    def pause_manager(
        self, rm_id: str, reason: str, *, callback: ResourceManagerCallback | None = None
    ) -> bool:
        """Place nothing new for a resource manager whose connection is lost, until it registers again.

        See `Scheduler.pause_manager`.

        Raises:
            RequestError: No such resource manager has registered, or a predicate calls.
        """
        self._callback_threads.refuse("a pause of a resource manager")
        return self._halt(v1.ManagerMessage(pause=v1.Halt(rm_id=rm_id, reason=reason)), rm_id, callback)

    def stop_manager(
        self, rm_id: str, reason: str, *, callback: ResourceManagerCallback | None = None
    ) -> bool:
        """End the timers of a resource manager, and refuse its requests, until it registers again.

        See `Scheduler.stop_manager`.

        Raises:
            RequestError: As for `pause_manager`.
        """
        self._callback_threads.refuse("a stop of a resource manager")
        return self._halt(v1.ManagerMessage(stop=v1.Halt(rm_id=rm_id, reason=reason)), rm_id, callback)

    def _halt(self, message: v1.ManagerMessage, rm_id: str, callback: ResourceManagerCallback | None) -> bool:
        registered = self._registered.get(rm_id)
        if callback is not None and (registered is None or registered.callback is not callback):
            return False  # It has registered with another one since.
        return self._call(message).changed
