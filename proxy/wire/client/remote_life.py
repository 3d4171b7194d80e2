"""The resource managers (RMs) of a remote scheduler, and the methods for their lives, as in `Scheduler`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import final

from ....model.errors import ReplacedError
from ...core.scheduler.managers.callbacks import CallbackFailures, CallbackThreads
from ...si import licorne_v1_pb2 as v1
from ...si.api import ResourceManagerCallback
from ...si.arguments import check_type, replaced_hook
from .connection import Connection


@final
class Registered:
    """An RM that has registered, and what it said then."""

    def __init__(self, request: v1.Registration, callback: ResourceManagerCallback) -> None:
        self.request = request
        self.callback = callback


class RemoteLife(ABC):
    """The methods for the life of RMs; `RemoteScheduler` has the rest."""

    _registered: dict[str, Registered]
    _replaced: dict[str, tuple[Registered | None, ReplacedError]]
    """The RMs that have registered elsewhere since, until they register here again."""
    _callback_threads: CallbackThreads
    _failures: CallbackFailures

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

    @property
    def server_build(self) -> str:
        """The hash of the source code of the server; empty from one that does not say it.

        Raises:
            RequestError: This object has been stopped, or there is no connection now.
        """
        return self._known().server_build

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
        check_type("rm_id", rm_id, str)
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
        check_type("rm_id", rm_id, str)
        check_type("reason", reason, str)
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
        check_type("rm_id", rm_id, str)
        check_type("reason", reason, str)
        self._callback_threads.refuse("a stop of a resource manager")
        return self._halt(v1.ManagerMessage(stop=v1.Halt(rm_id=rm_id, reason=reason)), rm_id, callback)

    def _halt(self, message: v1.ManagerMessage, rm_id: str, callback: ResourceManagerCallback | None) -> bool:
        registered = self._registered.get(rm_id)
        if callback is not None and (registered is None or registered.callback is not callback):
            return False  # It has registered with another one since.
        return self._call(message).changed

    # ------------------------------------------------------------------------------- RMs that are replaced

    def _note_replaced(self, rm_id: str, error: ReplacedError) -> None:
        """Note that an RM has registered elsewhere: this object does not register it again by itself."""
        self._replaced[rm_id] = (self._registered.pop(rm_id, None), error)

    def _all_replaced(self) -> ReplacedError | None:
        """Return why no RM is registered here any more, `None` if one is, or none was."""
        if self._registered:
            return None
        return next((error for _, error in self._replaced.values()), None)

    def _tell_replaced(self, rm_id: str) -> None:
        """Tell the callback of an RM, or whom failures are reported to, that it is replaced."""
        registered, error = self._replaced.get(rm_id, (None, None))
        hook = None if registered is None else replaced_hook(registered.callback)
        if error is not None:
            self._guarded(rm_id, "replaced", _raising(error) if hook is None else partial(hook, str(error)))()

    def _guarded(self, rm_id: str, name: str, step: Callable[[], object]) -> Callable[[], None]:
        """Return a step that is a callback of an RM, and reports what it raises."""

        def run() -> None:
            try:
                with self._callback_threads.callback(rm_id):
                    step()
            except BaseException as error:  # noqa: BLE001 - it is reported
                self._failures.note(rm_id, name, error)

        return run

    def _check_not_replaced(self, rm_id: str) -> None:
        """Refuse a request of an RM that has registered elsewhere.

        Raises:
            ReplacedError: It has.
        """
        if rm_id in self._replaced:
            raise ReplacedError(str(self._replaced[rm_id][1]))


def _raising(error: Exception) -> Callable[[], object]:
    """Return what raises an error."""

    def step() -> None:
        raise error

    return step


def reconnected_of(registered: Registered) -> Callable[[], object] | None:
    """Return the method by which an RM registers again, `None` if it has none."""
    found: Callable[[], object] | None = getattr(registered.callback, "reconnected", None)
    return found
