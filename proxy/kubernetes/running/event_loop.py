"""One thread that carries out all events in order: a mailbox, timers, and workers."""

from __future__ import annotations

import heapq
import itertools
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import groupby
from typing import Any, Final, Protocol, TypeAlias, TypeVar, final

from ....model.errors import LicorneError
from ...si import si_pb2 as si

T = TypeVar("T")
_BATCH_MAX: Final = 500
_REPORTERS_MAX: Final = 4
Entry: TypeAlias = (
    si.NodeInfo
    | si.AddApplicationRequest
    | si.RemoveApplicationRequest
    | si.Allocation
    | si.AllocationRelease
)
_KINDS: Final = {
    si.NodeInfo: "node",
    si.AddApplicationRequest: "application",
    si.RemoveApplicationRequest: "removal",
    si.Allocation: "allocation",
    si.AllocationRelease: "release",
}


class EventLoop(Protocol):
    """The operations of the thread for the parts of the scheduler of pods."""

    def now(self) -> float:
        """Return the seconds of a clock that never goes back."""
        ...

    def unix_seconds(self) -> float:
        """Return the seconds since 1970, for comparisons with times of the cluster."""
        ...

    def post(self, call: Callable[..., None], *args: Any) -> None:
        """Call a function on the thread, after all that was posted before; from any thread."""
        ...

    def later(self, seconds: float, call: Callable[..., None], *args: Any) -> None:
        """Call a function on the thread when the time has passed; from the thread itself."""
        ...

    def work(
        self, call: Callable[[], T], then: Callable[[T | Exception], None], *, is_urgent: bool = True
    ) -> None:
        """Call a function on a worker, and `then` on the thread with its result or exception.

        Calls that are not urgent have a few separate workers, so that reports do not delay binds.
        """
        ...


@final
class EventThread:
    """The thread, with its workers.

    Args:
        workers_max: How many calls run on workers at a time.
    """

    def __init__(self, *, workers_max: int = 16) -> None:
        self._on_idle: Callable[[], None] = _nothing
        self._on_error: Callable[[Exception], None] = _nothing
        self._mailbox: queue.SimpleQueue[tuple[Callable[..., None], tuple[Any, ...]] | None]
        self._mailbox = queue.SimpleQueue()
        self._timers: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._number = itertools.count()
        self._workers = ThreadPoolExecutor(workers_max, thread_name_prefix="licorne-kubernetes-worker")
        self._reporters = ThreadPoolExecutor(_REPORTERS_MAX, thread_name_prefix="licorne-kubernetes-reporter")
        self._thread = threading.Thread(target=self._run, name="licorne-kubernetes", daemon=True)

    def start(self, *, on_idle: Callable[[], None], on_error: Callable[[Exception], None]) -> None:
        """Begin to carry out posted calls.

        Args:
            on_idle: Is called on the thread when the mailbox is empty, and after each few hundred calls.
            on_error: Is called on the thread with the exception of a call; the next call follows.
        """
        self._on_idle, self._on_error = on_idle, on_error
        self._thread.start()

    def stop(self) -> None:
        """Carry out the posted calls, end the thread and wait for the calls on workers."""
        self._mailbox.put(None)
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join()
        self._workers.shutdown(wait=True, cancel_futures=True)
        self._reporters.shutdown(wait=True, cancel_futures=True)

    def now(self) -> float:
        """Return the seconds of the monotonic clock."""
        return time.monotonic()

    def unix_seconds(self) -> float:
        """Return the seconds since 1970, by the clock of this machine."""
        return time.time()

    def post(self, call: Callable[..., None], *args: Any) -> None:
        """Call a function on the thread, after all that was posted before."""
        self._mailbox.put((call, args))

    def later(self, seconds: float, call: Callable[..., None], *args: Any) -> None:
        """Call a function on the thread when the time has passed."""
        heapq.heappush(self._timers, (self.now() + seconds, next(self._number), call, args))

    def work(
        self, call: Callable[[], T], then: Callable[[T | Exception], None], *, is_urgent: bool = True
    ) -> None:
        """Call a function on a worker, and `then` on the thread; dropped after the stop."""
        try:
            future = (self._workers if is_urgent else self._reporters).submit(call)
        except RuntimeError:  # stopped
            return

        def answer(done: Future[T]) -> None:
            if not done.cancelled():
                error = done.exception()
                self.post(then, error if isinstance(error, Exception) else done.result())

        future.add_done_callback(answer)

    def _run(self) -> None:
        is_running = True
        while is_running:
            is_running = self._carry_out_next()
            for _ in range(_BATCH_MAX):
                if not is_running or self._mailbox.empty():
                    break
                is_running = self._carry_out_next()
            self._carry_out(self._on_idle, ())

    def _carry_out_next(self) -> bool:
        """Wait for the next call, and carry it out; return whether it was not the end."""
        entry = self._next()
        if entry is not None:
            self._carry_out(*entry)
        return entry is not None

    def _next(self) -> tuple[Callable[..., None], tuple[Any, ...]] | None:
        """Wait for the next call: due timers before posted calls; `None` at the end."""
        while True:
            wait = self._timers[0][0] - self.now() if self._timers else None
            if wait is not None and wait <= 0:
                _, _, call, args = heapq.heappop(self._timers)
                return call, args
            try:
                return self._mailbox.get(timeout=wait)
            except queue.Empty:
                continue

    def _carry_out(self, call: Callable[..., None], args: tuple[Any, ...]) -> None:
        try:
            call(*args)
        except Exception as error:  # noqa: BLE001 - one bad object must not end the scheduler of all others
            self._on_error(error)


def _nothing(*_: object) -> None:
    """Do nothing."""


class RequestTarget(Protocol):
    """The receiver of requests: a scheduler, or a recovery, which holds them back until it is done."""

    def update_node(self, request: si.NodeRequest) -> None:
        """Take new and changed nodes."""
        ...

    def update_application(self, request: si.ApplicationRequest) -> None:
        """Take new and removed applications."""
        ...

    def update_allocation(self, request: si.AllocationRequest) -> None:
        """Take asks, allocations and releases."""
        ...


@final
class RequestBatch:
    """Keeps entries until they are flushed; used by one thread.

    Args:
        rm_id: The resource manager of the entries.
        on_refused: Is called with an entry that makes its whole request invalid, and the error.
    """

    def __init__(self, rm_id: str, on_refused: Callable[[Entry, LicorneError], None]) -> None:
        self.target: RequestTarget | None = None
        """The receiver of the entries; they are kept until it is set."""
        self._rm_id = rm_id
        self._on_refused = on_refused
        self._entries: list[Entry] = []

    def add(self, entry: Entry) -> None:
        """Add an entry, after the pending ones."""
        self._entries.append(entry)

    def flush(self) -> None:
        """Send the pending entries: neighbours of one kind in one request, to preserve the order."""
        target = self.target
        if target is None:
            return
        for kind, group in groupby(self.take(), key=lambda entry: _KINDS[type(entry)]):
            self._send(target, kind, list(group))

    def take(self) -> list[Entry]:
        """Return the pending entries, and remove them."""
        entries, self._entries = self._entries, []
        return entries

    def _send(self, target: RequestTarget, kind: str, entries: list[Any]) -> None:
        try:
            self._request(target, kind, entries)
        except LicorneError as error:
            if len(entries) == 1:
                self._on_refused(entries[0], error)
                return
            for entry in entries:  # a request with one bad entry is refused as a whole
                self._send(target, kind, [entry])

    def _request(self, send: RequestTarget, kind: str, entries: list[Any]) -> None:
        match kind:
            case "node":
                send.update_node(si.NodeRequest(rmID=self._rm_id, nodes=entries))
            case "application":
                send.update_application(si.ApplicationRequest(rmID=self._rm_id, new=entries))
            case "removal":
                send.update_application(si.ApplicationRequest(rmID=self._rm_id, remove=entries))
            case "allocation":
                send.update_allocation(si.AllocationRequest(rmID=self._rm_id, allocations=entries))
            case _:
                releases = si.AllocationReleasesRequest(allocationsToRelease=entries)
                send.update_allocation(si.AllocationRequest(rmID=self._rm_id, releases=releases))
