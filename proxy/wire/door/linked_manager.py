"""A resource manager (RM) that has registered at the door: its links, its life, its callbacks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar, final

from ....model.configuration.reader import DEFAULT_CONFIGURATION
from ....model.errors import ReplacedError
from ....model.values.documents import Document
from ....model.values.states import ManagerEvent
from ...core.scheduler.managers.callbacks import CallbackFailures, CallbackThreads
from ...core.scheduler.managers.manager_life import ManagerLife, ManagerStatus
from ...si import si_pb2 as si
from ..client.callbacks import CallbackQueue
from .kept_use import DoorUse
from .link import PartitionLink

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from ...si.api import ResourceManagerCallback

_Each = TypeVar("_Each")
_Outcome = TypeVar("_Outcome")


@final
class LinkedManager:
    """One registration of an RM.

    Args:
        request: How it has registered.
        callback: Its callback.
        partitions: The names of the partitions that it has; `None` for all of its configuration.
        threads: Knows which threads are inside a callback.
        failures: Gets what callbacks raise.
        use: What its partitions have used.
        on_replaced: Called once, with the partition and the error, when it has registered elsewhere.
        now_ns: Returns the time, nanoseconds since 1970.
        before: The registration before, which is closed now: its callbacks come first.
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
        self._request.config = request.config or DEFAULT_CONFIGURATION  # A worker may have another one.
        self._lock = threading.Lock()
        """Guards the request, and whether it is given up."""
        self.life = ManagerLife(self.rm_id, now_ns)
        self.life.advance(ManagerEvent.REGISTER)
        self.links: Mapping[str, PartitionLink] = {}
        """By the name of the partition; replaced as a whole."""
        self.prepared: object = None
        """The change of its configuration that was prepared last, if it may still be committed."""
        after: CallbackQueue | None = None if before is None else before._callbacks  # noqa: SLF001 - its kind
        self._callbacks: Final[CallbackQueue] = CallbackQueue(f"licorne-callbacks-{self.rm_id}", after)

    @property
    def status(self) -> ManagerStatus:
        """Its state now."""
        connection: str = getattr(self.callback, "connected_by", "")
        return replace(self.life.status, partitions=tuple(sorted(self.links)), connection=connection)

    def registration(self) -> si.RegisterResourceManagerRequest:
        """Return how it registers at a worker: with the configuration that it has now."""
        with self._lock:
            request = si.RegisterResourceManagerRequest()
            request.CopyFrom(self._request)
            return request

    def kept_use(self, partition: str) -> Document | None:
        """Return what a worker of a partition is to go on from, `None` for nothing."""
        return self._use.of_partition(self.rm_id, partition)

    def configure(self, configuration: str, extra: Mapping[str, str]) -> None:
        """Have another configuration from now on."""
        with self._lock:
            self._request.config = configuration or DEFAULT_CONFIGURATION
            self._request.extraConfig.clear()
            self._request.extraConfig.update(extra)

    @property
    def callbacks_waiting(self) -> int:
        """How many callbacks wait for it."""
        return self._callbacks.count

    def deliver(self, name: str, argument: Message | Sequence[si.EventRecord]) -> None:
        """Queue a callback; wait while too many wait."""
        self._callbacks.put(lambda: self._call_back(name, argument), may_wait=lambda: True)

    def _call_back(self, name: str, argument: Message | Sequence[si.EventRecord]) -> None:
        self.call(getattr(self.callback, name), argument)

    def call(self, method: Callable[[Any], object], argument: object) -> None:
        """Call a method of its callback; what that raises is reported."""
        try:
            with self._threads.callback(self.rm_id):
                method(argument)
        except BaseException as error:  # noqa: BLE001 - it is reported, and the next one is made
            self.note_failure(getattr(method, "__name__", "callback"), error)

    def give_up(self, partition: str, error: ReplacedError) -> None:
        """End all its links, since it has registered elsewhere; the first worker that says so counts."""
        with self._lock:
            is_first, self._is_given_up = not self._is_given_up, True
        if is_first:
            self._on_replaced(self, partition, error)

    def note_failure(self, what: str, error: BaseException) -> None:
        """Report what could not be done."""
        self._failures.note(self.rm_id, what, error)

    def close(self, reason: str) -> None:
        """End its links, and the thread of its callbacks when what is queued is delivered.

        Inside one of its callbacks it does not wait for that.
        """
        self.prepared = None
        for link in self.links.values():
            link.close(reason)
        self._callbacks.close()


def at_each(places: Sequence[_Each], step: Callable[[_Each], _Outcome]) -> list[_Outcome]:
    """Do the same at several workers at once: one that does not answer holds up no other.

    Args:
        places: Where.
        step: What is done; it waits for the worker.

    Returns:
        The outcomes, in the order of the places.
    """
    if len(places) < 2:
        return [step(place) for place in places]
    with ThreadPoolExecutor(len(places), "licorne-door") as pool:
        return [*pool.map(step, places)]
