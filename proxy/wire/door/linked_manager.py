"""The resource managers (RMs) at a door: their table, links, the start of their workers, use and reloads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from time import time_ns
from typing import TYPE_CHECKING, Any, Final, TypeVar, final

from ....model.configuration.reader import DEFAULT_CONFIGURATION
from ....model.errors import LicorneError, ReplacedError, RequestError
from ....model.queues.use_order import KeptUse
from ....model.values.documents import Document, Json
from ....model.values.messages import full_partition_name
from ....model.values.states import ManagerEvent
from ...core.scheduler.answering.questions import UnavailableError
from ...core.scheduler.answering.state_documents import of_manager, taken_use, use_document
from ...core.scheduler.managers.callbacks import CallbackFailures, CallbackThreads
from ...core.scheduler.managers.manager_life import ManagerLife, ManagerStatus
from ...core.scheduler.prepared_configuration import PreparedConfiguration, commit_refused
from ...si import si_pb2 as si
from ..client.callbacks import CallbackQueue
from ..client.errors import ConnectionLostError
from .link import PartitionLink
from .workers import LaunchError, WorkerTable

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from ...si.api import ResourceManagerCallback

_Each = TypeVar("_Each")
_Outcome = TypeVar("_Outcome")
_AGAIN_SECONDS: Final = 0.05
"""The pause after a failed start of a worker; launchers wait longer after several failures."""


@final
class LinkedManager:
    """One registration of an RM.

    Args:
        request: The message of the registration.
        callback: Its callback.
        partitions: The names of its partitions; `None` for all of its configuration.
        threads: The threads that are inside a callback.
        failures: Called with errors of callbacks.
        use: The use of its partitions.
        on_replaced: Called once, with the partition and the error, when the RM has registered elsewhere.
        now_ns: Returns the time, nanoseconds since 1970.
        before: The earlier registration, which is closed now: its callbacks come first.
    """

    def __init__(
        self,
        request: si.RegisterResourceManagerRequest,
        callback: ResourceManagerCallback,
        partitions: frozenset[str] | None,
        *,
        threads: CallbackThreads,
        failures: CallbackFailures,
        use: DoorUse,
        on_replaced: Callable[[LinkedManager, str, ReplacedError], object],
        now_ns: Callable[[], int],
        before: LinkedManager | None = None,
    ) -> None:
        self.rm_id: Final = request.rmID
        self.callback: Final = callback
        self.partitions: Final = partitions
        self._threads = threads
        self._failures = failures
        self._use = use
        self._on_replaced = on_replaced
        self._is_given_up = False
        self._request = si.RegisterResourceManagerRequest()
        self._request.CopyFrom(request)
        self._request.config = request.config or DEFAULT_CONFIGURATION  # A worker may have another default.
        self._lock = threading.Lock()
        """The lock for the request, and for the fact that the RM is given up."""
        self.life = ManagerLife(self.rm_id, now_ns)
        self.life.advance(ManagerEvent.REGISTER)
        self.links: Mapping[str, PartitionLink] = {}
        """The links by the name of the partition; replaced as a whole."""
        self.prepared: object = None
        """The last prepared change of its configuration, if it may still be committed."""
        after: CallbackQueue | None = None if before is None else before._callbacks  # noqa: SLF001 - its kind
        self._callbacks: Final[CallbackQueue] = CallbackQueue(f"licorne-callbacks-{self.rm_id}", after)

    @property
    def status(self) -> ManagerStatus:
        """The current state of the RM."""
        connection: str = getattr(self.callback, "connected_by", "")
        return replace(self.life.status, partitions=tuple(sorted(self.links)), connection=connection)

    def registration(self) -> si.RegisterResourceManagerRequest:
        """Return the registration of the RM at a worker, with its current configuration."""
        with self._lock:
            request = si.RegisterResourceManagerRequest()
            request.CopyFrom(self._request)
            return request

    def kept_use(self, partition: str) -> Document | None:
        """Return the use from which a worker of a partition continues, `None` for nothing."""
        return self._use.of_partition(self.rm_id, partition)

    def configure(self, configuration: str, extra: Mapping[str, str]) -> None:
        """Set another configuration."""
        with self._lock:
            self._request.config = configuration or DEFAULT_CONFIGURATION
            self._request.extraConfig.clear()
            self._request.extraConfig.update(extra)

    @property
    def callbacks_waiting(self) -> int:
        """The number of waiting callbacks."""
        return self._callbacks.count

    def deliver(self, name: str, argument: Message | Sequence[si.EventRecord]) -> None:
        """Queue a callback; wait while the queue is full."""
        self._callbacks.put(lambda: self._call_back(name, argument), may_wait=lambda: True)

    def _call_back(self, name: str, argument: Message | Sequence[si.EventRecord]) -> None:
        self.call(getattr(self.callback, name), argument)

    def call(self, method: Callable[[Any], object], argument: object) -> None:
        """Call a method of the callback; its errors are reported."""
        try:
            with self._threads.callback(self.rm_id):
                method(argument)
        except BaseException as error:  # noqa: BLE001 - it is reported, and the next one is made
            self.note_failure(getattr(method, "__name__", "callback"), error)

    def give_up(self, partition: str, error: ReplacedError) -> None:
        """End all links, since the RM has registered elsewhere; only the first report counts."""
        with self._lock:
            is_first, self._is_given_up = not self._is_given_up, True
        if is_first:
            self._on_replaced(self, partition, error)

    def note_failure(self, what: str, error: BaseException) -> None:
        """Report a failed action."""
        self._failures.note(self.rm_id, what, error)

    def close(self, reason: str) -> None:
        """End its links, and the thread of its callbacks after the queued ones are delivered.

        Inside one of its callbacks the call does not wait for that.
        """
        self.prepared = None
        for link in self.links.values():
            link.close(reason)
        self._callbacks.close()

    def any_link(self) -> PartitionLink:
        """Return any link, for an unknown partition: all workers refuse it in the same way.

        Raises:
            RequestError: The RM does not have any partition.
        """
        links = [*self.links.values()]
        if not links:
            raise RequestError(f"RM {self.rm_id!r} has no partition")
        return next((link for link in links if link.is_running), links[0])


@final
class ManagerTable:
    """The registered resource managers of a door, and those that are registering; any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        """Held while the table changes, and never during a wait."""
        self._turns: dict[str, threading.Lock] = {}
        """One lock for each id of a resource manager, held while it registers, is reconfigured, or leaves."""
        self._by_id: dict[str, LinkedManager] = {}
        self._registering: set[LinkedManager] = set()
        """The resource managers whose partitions wait for their first worker."""
        self.stopped: Final = threading.Event()

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the registered resource managers, in the order of the registrations."""
        return tuple(self._by_id)

    def check_running(self) -> None:
        """Refuse a request to a door that has been stopped.

        Raises:
            RequestError: It has.
        """
        if self.stopped.is_set():
            raise RequestError("the scheduler has been stopped")

    def turn(self, rm_id: str) -> threading.Lock:
        """Return the lock for registrations, changes and ends of one resource manager."""
        with self._lock:
            return self._turns.setdefault(rm_id, threading.Lock())

    def find(self, rm_id: str) -> LinkedManager | None:
        """Return a registered resource manager, `None` for an unknown id."""
        return self._by_id.get(rm_id)

    def known(self, rm_id: str, what: str) -> LinkedManager:
        """Return a registered resource manager.

        Raises:
            RequestError: It has not registered.
        """
        manager = self._by_id.get(rm_id)
        if manager is None:
            raise RequestError(f'received {what}, but RmID="{rm_id}" not registered')
        return manager

    def running(self, rm_id: str, request: str) -> LinkedManager:
        """Return the resource manager of a request.

        Raises:
            RequestError: It has not registered or has stopped, or the door has been stopped.
        """
        self.check_running()
        manager = self.known(rm_id, request)
        if manager.life.has_stopped:
            why = f": {manager.life.status.reason}" if manager.life.status.reason else ""
            raise RequestError(f"{request} of RM {rm_id!r}, which has stopped{why}")
        return manager

    def links(self, rm_id: str | None = None) -> list[PartitionLink]:
        """Return the links of one or all resource managers, by registration and configuration."""
        managers = [manager for name, manager in [*self._by_id.items()] if rm_id in (None, name)]
        return [link for manager in managers for link in manager.links.values()]

    def statuses(self) -> tuple[ManagerStatus, ...]:
        """Return the states of the resource managers, by id."""
        return tuple(manager.status for _, manager in sorted(self._by_id.items()))

    def begin(self, manager: LinkedManager) -> LinkedManager | None:
        """Add a resource manager that registers; return its earlier registration, which is gone.

        Raises:
            RequestError: The door has been stopped.
        """
        with self._lock:
            self.check_running()  # A concurrent stop ends those that it finds.
            before = self._by_id.pop(manager.rm_id, None)
            self._registering.add(manager)
            return before

    def complete(self, manager: LinkedManager) -> None:
        """Note that a resource manager has registered.

        Raises:
            RequestError: The door has been stopped.
        """
        with self._lock:
            self.check_running()
            self._by_id[manager.rm_id] = manager

    def end_registration(self, manager: LinkedManager) -> None:
        """Note that a registration has succeeded or failed."""
        with self._lock:
            self._registering.discard(manager)

    def forget(self, rm_id: str) -> None:
        """Remove a resource manager."""
        with self._lock:
            self._by_id.pop(rm_id, None)

    def stop(self) -> list[LinkedManager] | None:
        """Refuse further requests; return all resource managers, `None` if it was stopped before."""
        with self._lock:
            if self.stopped.is_set():
                return None
            self.stopped.set()
            return [*self._by_id.values(), *self._registering]


def at_each(places: Sequence[_Each], step: Callable[[_Each], _Outcome]) -> list[_Outcome]:
    """Do the same at several workers at once: a worker that does not answer does not delay the others.

    Args:
        places: The links.
        step: The action, which waits for the worker.

    Returns:
        The outcomes, in the order of the places.
    """
    if len(places) < 2:
        return [step(place) for place in places]
    with ThreadPoolExecutor(len(places), "licorne-door") as pool:
        return [*pool.map(step, places)]


def wait_until_started(links: Iterable[PartitionLink], what: str, seconds: float) -> None:
    """Wait until each partition has a worker.

    Args:
        links: The links of the partitions, which try repeatedly.
        what: The action that fails without a worker, for the errors.
        seconds: The time limit for all of them together.

    Raises:
        RequestError: A partition cannot have a worker.
        UnavailableError: A partition has no worker in time, or its link was closed.
        ReplacedError: A newer door has registered the resource manager at a worker.
    """
    deadline = time.monotonic() + seconds
    for link in links:
        try:
            link.started.result(max(deadline - time.monotonic(), 0.0))
        except TimeoutError as error:
            raise _no_worker(what, link.partition, seconds, link.place.reason) from error
        except LicorneError as error:
            kinds = (UnavailableError, ReplacedError)
            kind = next((each for each in kinds if isinstance(error, each)), RequestError)
            raise kind(f"{what} failed: partition {link.partition!r}: {error}") from error


def start_worker(
    workers: WorkerTable, partition: str, given_up: threading.Event, what: str, seconds: float
) -> None:
    """Start the worker of a new partition.

    Args:
        workers: The workers.
        partition: The partition.
        given_up: Set when the caller stops waiting.
        what: The action that fails without a worker, for the errors.
        seconds: The time limit.

    Raises:
        RequestError: The partition cannot have a worker.
        UnavailableError: The partition has no worker in time, or the start was given up.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            workers.worker_of(partition, given_up)
        except LaunchError as error:
            raise RequestError(f"{what} failed: {error}") from error
        except LicorneError as error:
            if given_up.wait(_AGAIN_SECONDS) or time.monotonic() >= deadline:
                raise _no_worker(what, partition, seconds, str(error)) from error
        else:
            return


def _no_worker(what: str, partition: str, seconds: float, why: str) -> UnavailableError:
    because = f": {why}" if why else ""
    return UnavailableError(
        f"{what} failed: partition {partition!r} has no worker within {seconds:g} s{because}"
    )


@final
class DoorUse:
    """The use of partitions, as their workers last reported it; any thread may use it.

    Args:
        kept: The earlier use, by full name.
    """

    def __init__(self, kept: Mapping[str, KeptUse]) -> None:
        self._lock = threading.Lock()
        self._kept = kept
        """The use by the full name of the partition; replaced as a whole."""

    def take(self, rm_id: str, usage: Json) -> None:
        """Note the use of partitions of an RM; for each the later report is kept.

        A report with a time in the future, by the clock of another machine, counts as of now. Otherwise all
        later reports with a right clock would be the earlier ones.

        Raises:
            RequestError: The document is invalid.
        """
        with self._lock:
            self._kept = taken_use(self._kept, rm_id, usage, time_ns())

    def of_partition(self, rm_id: str, partition: str) -> Document | None:
        """Return the use from which a worker of a partition continues, `None` for nothing."""
        name = full_partition_name(partition, rm_id)
        kept = self._kept.get(name)
        return None if kept is None or not kept.uses else use_document({name: kept}, time_ns())

    def of_manager(self, rm_id: str | None) -> Document:
        """Return the use of the partitions of an RM, or of all RMs with `None`."""
        return use_document(of_manager(self._kept, rm_id), time_ns())


@final
class DoorChange:
    """A change of configuration: prepared at each worker, then committed in the table, then at each worker.

    A worker that is lost in between gets the new configuration when its partition recovers.

    Args:
        manager: The RM.
        request: Its new configuration.
        names: Its partitions with that configuration.
        link: Makes the link to a new partition; it is started here.
    """

    def __init__(
        self,
        manager: LinkedManager,
        request: si.UpdateConfigurationRequest,
        names: list[str],
        link: Callable[[str], PartitionLink],
    ) -> None:
        self._manager = manager
        self._request = si.UpdateConfigurationRequest()
        self._request.CopyFrom(request)
        self._request.config = request.config or DEFAULT_CONFIGURATION  # A worker may have another default.
        self._names = names
        self._link = link
        self._prepared: list[tuple[PartitionLink, PreparedConfiguration]] = []
        self._undo = ExitStack()

    def prepare(self) -> None:
        """Let each worker check the change; nothing changes, and earlier prepared changes become invalid.

        Raises:
            RequestError: A worker refuses the change; then none keeps it.
        """
        links = [link for name in self._names if (link := self._manager.links.get(name)) is not None]
        with ExitStack() as undo:
            found = at_each(links, self._prepared_at)
            for link, prepared in zip(links, found, strict=True):
                if isinstance(prepared, PreparedConfiguration):
                    undo.callback(prepared.abandon)
                    self._prepared.append((link, prepared))
            refusal = next((each for each in found if isinstance(each, LicorneError)), None)
            if refusal is not None:
                raise refusal
            self._undo = undo.pop_all()
        self._manager.prepared = self

    def _prepared_at(self, link: PartitionLink) -> PreparedConfiguration | LicorneError | None:
        """Return the change that a worker has prepared, or its refusal; `None` without a worker.

        The next worker gets the committed configuration.
        """
        if not link.is_running:
            return None
        try:
            return link.scheduler().prepare_configuration(self._request)
        except ConnectionLostError:
            return None
        except LicorneError as error:
            return error if link.is_running else None

    def abandon(self) -> None:
        """Drop the change at each worker."""
        self._undo.close()

    def commit(self) -> list[PartitionLink]:
        """Make it the configuration in use; return the links to new partitions, which start.

        Raises:
            RequestError: Another change was prepared since, or the RM has registered again; nothing has
                changed.
        """
        manager = self._manager
        if manager.prepared is not self:
            self.abandon()
            raise commit_refused(manager.rm_id, "it was given another one, or has registered again")
        manager.prepared = None
        manager.configure(self._request.config, self._request.extraConfig)
        new = {name: self._link(name) for name in self._names if name not in manager.links}
        gone = [link for name, link in manager.links.items() if name not in self._names]
        manager.links = {name: new.get(name) or manager.links[name] for name in self._names}
        for link in new.values():  # They are in the table, where a stop of the door finds them.
            link.start()
        at_each(self._prepared, _commit)
        at_each([*manager.links.values()], PartitionLink.configure)
        for link in gone:
            link.close("the configuration no longer has the partition", ends=True)
        self._undo.pop_all()
        return [*new.values()]


def _commit(entry: tuple[PartitionLink, PreparedConfiguration]) -> None:
    link, prepared = entry
    try:
        prepared.commit()
    except RequestError:
        return  # The worker gets the text next, or is lost and recovers with it.
    link.note_configured()
