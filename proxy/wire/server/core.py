"""The core that all services of the server share: the scheduler, the connected RMs, answers to calls."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Iterator
from concurrent.futures import Executor, Future
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Final, ParamSpec, Protocol, TypeVar, final

import grpc
from google.protobuf.message import Message

from ....model.configuration.problems import ConfigurationError
from ....model.configuration.reader import load
from ....model.errors import LicorneError
from ...base.files.input_files import read_text
from ...base.process import build_hash
from ...core.scheduler.prepared_configuration import PreparedConfiguration, commit_refused
from ...si import si_pb2 as si
from .access import AccessRules, Peer
from .buffers import call_soon
from .calls import Calls, StatusError, status_of
from .later_answers import QuestionSender
from .remote_managers import RemoteManager, RemoteManagers
from .served_scheduler import ServedScheduler, WorksElsewhere

T = TypeVar("T")
_LARGE: Final = 64 << 10
"""How many characters a configuration has that keeps the interpreter busy for long."""
_THREADS: Final = 8
"""How many registrations, pauses and stops may wait for the scheduler at once."""


class Companion(QuestionSender, Protocol):
    """A session beside the streams of `si.v1`."""

    has_predicates: bool

    def claim(self) -> None:
        """Count as a call of an RM, which has registered; on the event loop."""

    def call_back(self, rm_id: str, name: str, message: Message) -> None:
        """Send a callback that the streams do not have."""

    def call_back_nowait(self, rm_id: str, *burst: tuple[str, Message]) -> None:
        """Send callbacks that the streams do not have, without waiting."""

    def has_room(self) -> bool:
        """Return whether not too many messages are waiting to be sent."""

    def set_bounded(self, bounded: bool) -> None:  # noqa: FBT001 - it is the verb's object
        """Have callbacks wait while too many messages are waiting, or not."""


@final
class ServerCore:
    """The state of a running server; made on its event loop."""

    def __init__(
        self,
        scheduler: ServedScheduler,
        *,
        access: AccessRules,
        configuration: ConfigurationFile | None,
        stop_after: float,
        forget_after: float | None,
        silence: float,
        rest_address: str = "",
    ) -> None:
        self.rest_address = rest_address
        self.build: Final = build_hash()
        self.loop = asyncio.get_running_loop()
        self.scheduler = scheduler
        self.works_elsewhere = isinstance(scheduler, WorksElsewhere)
        self._access = access
        self._configuration = configuration
        self._executor = DaemonPool(_THREADS, "licorne-server")
        self._large = DaemonPool(1, "licorne-server-large")
        """Takes large configurations, one at a time: to read one may take seconds of the interpreter."""
        self._large_turn = threading.Lock()
        """Held while a large configuration is read."""
        self._reloads = DaemonPool(1, "licorne-server-reload")
        """Looks at the configuration file, whose file system may not answer."""
        self.companions: dict[str, Companion] = {}
        """The sessions of RMs that use the streams of `si.v1`, by RM; belongs to the event loop."""
        self.questions = Budget()
        """The time for questions about the scheduler, which its partitions answer."""
        self.calls = Calls(silence)
        self.stopping: StatusError | None = None
        """Set when the server stops: the status of calls from then on."""
        self.managers = RemoteManagers(scheduler, self.loop, self._executor, stop_after, forget_after)

    async def answering(
        self, context: grpc.aio.ServicerContext[Any, Any], answer: Callable[[Peer], Awaitable[T]]
    ) -> T:
        """Answer a call of a peer that is let in; an error becomes the status of the call."""

        async def answer_peer() -> T:
            if self.stopping is not None:
                raise self.stopping
            return await answer(self._peer(context))

        return await self.calls.answer(context, answer_peer)

    def _peer(self, context: grpc.aio.ServicerContext[Any, Any]) -> Peer:
        """Return who makes a call.

        Raises:
            StatusError: The peer is not let in.
        """
        metadata = {
            key: value for key, value in context.invocation_metadata() or () if isinstance(value, str)
        }
        certificate = context.auth_context()
        names = [
            name.decode(errors="replace")
            for part in ("x509_common_name", "peer_dns")
            for name in certificate.get(part, ())
            if name  # A certificate without a common name has an empty one.
        ]
        return self._access.peer(metadata, names)

    async def on_thread(self, step: Callable[[], T], *, configuration: str = "") -> T:
        """Run a step that may wait for the scheduler, and read a configuration."""
        pool = self._large if len(configuration) > _LARGE else self._executor
        return await self.loop.run_in_executor(pool, step)

    def _turn_to_read(self, configuration: str) -> AbstractContextManager[object]:
        return self._large_turn if len(configuration) > _LARGE else nullcontext()

    async def on_thread_of_file(self, step: Callable[[], T]) -> T:
        """Run a step that looks at the configuration file, whose file system may not answer."""
        return await self.loop.run_in_executor(self._reloads, step)

    def check_not_stepped(self) -> None:
        """Refuse streams that a stepped scheduler cannot serve.

        Raises:
            StatusError: It is stepped.
        """
        if self.scheduler.stepped:
            text = "this scheduler is stepped: only licorne.v1 has the calls that step it, si.v1 has none"
            raise StatusError(grpc.StatusCode.FAILED_PRECONDITION, text)

    # ------------------------------------------------------------------------------- configurations

    def register(
        self,
        request: si.RegisterResourceManagerRequest,
        manager: RemoteManager,
        partitions: Collection[str] = (),
    ) -> None:
        """Register an RM, on a thread that may wait; one that sends no configuration gets the server's.

        Only the named partitions of the configuration are made, by default all.

        Raises:
            RequestError: The registration is refused.
        """
        with self._turn_to_read(request.config):
            self.managers.register(request, manager, self._default_configuration(), partitions)
        call_soon(self.loop, self._claim_companion, request.rmID)

    def _claim_companion(self, rm_id: str) -> None:
        companion = self.companions.get(rm_id)
        if companion is not None:
            companion.claim()

    def update_configuration(self, request: si.UpdateConfigurationRequest, manager: RemoteManager) -> None:
        """Replace the configuration of an RM, on a thread that may wait; an empty one is the server's.

        Raises:
            RequestError: The configuration is refused.
        """
        with self._turn_to_read(request.config):
            self.scheduler.update_configuration(self._completed(request))
        manager.note_update(request)

    def prepare_configuration(
        self, request: si.UpdateConfigurationRequest, manager: RemoteManager
    ) -> PreparedConfiguration:
        """Prepare a configuration of an RM, on a thread that may wait; an empty one is the server's.

        Raises:
            RequestError: The configuration is refused.
        """
        completed = self._completed(request)
        with self._turn_to_read(request.config):
            prepared = self.scheduler.prepare_configuration(completed)

        def commit() -> None:
            if not request.config and completed.config != self._default_configuration():
                raise commit_refused(request.rmID, "the file of the server has changed since")
            prepared.commit()
            manager.note_update(request)

        return PreparedConfiguration(prepared.rm_id, prepared.number, commit, prepared.abandon)

    def _completed(self, request: si.UpdateConfigurationRequest) -> si.UpdateConfigurationRequest:
        """Return a request with the configuration that counts."""
        completed = si.UpdateConfigurationRequest()
        completed.CopyFrom(request)
        if not request.config:
            completed.config = self._default_configuration()
        return completed

    def file_has_changed(self) -> bool:
        """Return whether there is a configuration file, and it is another one than at the last look."""
        return self._configuration is not None and self._configuration.has_changed()

    def reload(self) -> list[str]:
        """Read the server's configuration again, on a thread that may wait.

        Returns:
            The failures, as lines; the RMs named there keep their configuration.

        Raises:
            FileRefusedError: The file is refused, and nothing has changed.
        """
        failures: list[str] = []
        if self._configuration is None:
            return failures
        try:
            is_new = self._configuration.reload()
        except FileRefusedError as error:
            self.scheduler.metrics.configurations.refuse("", str(error))
            raise
        if not is_new:
            return failures
        for manager in self.managers.on_file():
            request = si.UpdateConfigurationRequest(
                rmID=manager.rm_id, config=self._configuration.text, extraConfig=manager.extra
            )
            try:
                self.scheduler.update_configuration(request)
            except Exception as error:  # noqa: BLE001 - the other RMs get it all the same
                failures.append(f"RM {manager.rm_id!r} keeps its configuration: {status_of(error)[1]}")
        return failures

    def _default_configuration(self) -> str:
        return "" if self._configuration is None else self._configuration.text

    def begin_stop(self) -> None:
        """Refuse further calls and requests; on the event loop."""
        self.stopping = StatusError(grpc.StatusCode.UNAVAILABLE, "the server stops")

    def end_streams(self) -> None:
        """End all streams, those of RMs after the delivery of the queued messages; on the event loop."""
        if self.stopping is not None:
            self.calls.end_strangers(self.stopping)
            for manager in self.managers.all():
                manager.end(self.stopping)

    def close(self) -> None:
        """End the threads; on the event loop, when no call is under way."""
        self.managers.close()
        for pool in (self._executor, self._large, self._reloads):
            pool.shutdown(cancel_futures=True)


SHARE: Final = 0.1
"""How much of the time the steps take, in the long run."""
BURST_SECONDS: Final = 1.0
"""How much time they may take at once, after a while without any."""


@final
class Budget:
    """Has steps wait that would take more than their share of the time. They run one after the other.

    Args:
        now: Returns the time, in seconds.
        wait: Waits for a number of seconds.
    """

    def __init__(
        self, now: Callable[[], float] = time.monotonic, wait: Callable[[float], object] = time.sleep
    ) -> None:
        self._now = now
        self._wait = wait
        self._lock = threading.Lock()
        self._left_seconds = BURST_SECONDS
        self._seen = now()

    @contextmanager
    def step(self) -> Iterator[None]:
        """Wait until there is time left for a step, then count what it takes."""
        with self._lock:
            self._refill()
            if self._left_seconds < 0:
                self._wait(-self._left_seconds / SHARE)
                self._refill()
            begin = self._now()
            try:
                yield
            finally:
                self._left_seconds -= self._now() - begin

    def _refill(self) -> None:
        now = self._now()
        self._left_seconds = min(BURST_SECONDS, self._left_seconds + (now - self._seen) * SHARE)
        self._seen = now


P = ParamSpec("P")


@final
class DaemonPool(Executor):
    """Runs tasks in order of arrival, as many at once as it has threads; each is started when it is needed.

    Args:
        threads_max: How many threads there may be.
        name: Their name.
    """

    def __init__(self, threads_max: int, name: str) -> None:
        self._threads_max = threads_max
        self._name = name
        self._tasks: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._lock = threading.Lock()
        self._threads = 0
        self._is_closed = False

    def submit(self, task: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run a task; as `concurrent.futures.Executor.submit`.

        Raises:
            RuntimeError: The pool is shut down.
        """
        future: Future[T] = Future()
        with self._lock:
            if self._is_closed:
                raise RuntimeError("the pool of threads is shut down")
            self._tasks.put((future, lambda: task(*args, **kwargs)))
            if not self._idle.acquire(blocking=False) and self._threads < self._threads_max:
                self._threads += 1
                threading.Thread(target=self._work, name=f"{self._name}_{self._threads}", daemon=True).start()
        return future

    def shutdown(self, wait: bool = False, *, cancel_futures: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002 - as its base
        """Refuse tasks from now on, without waiting; those that have not begun are cancelled on request."""
        with self._lock:
            self._is_closed = True
            waiting = []
            while cancel_futures and not self._tasks.empty():
                waiting.append(self._tasks.get())
            for _ in range(self._threads):
                self._tasks.put(None)
        for item in waiting:
            if item is not None:
                item[0].cancel()

    def _work(self) -> None:
        while (item := self._tasks.get()) is not None:
            future, task = item
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(task())
                except BaseException as error:  # noqa: BLE001 - it is the outcome
                    future.set_exception(error)
            del item, future, task
            self._idle.release()


class FileRefusedError(LicorneError):
    """The file cannot be read, or is not a valid configuration; each error is a line with its position."""


@final
class ConfigurationFile:
    """The configuration of the RMs that send none.

    Raises:
        FileRefusedError: The file is refused; there is no earlier text.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen = self._stamp()
        self.text = ""
        """The last text that was valid."""
        self.text = self._read()

    def has_changed(self) -> bool:
        """Return whether the file is another one than when it was last looked at."""
        before, self._seen = self._seen, self._stamp()
        return before != self._seen

    def reload(self) -> bool:
        """Read the file again; return whether its text is another one.

        Raises:
            FileRefusedError: It is refused; the earlier text stays.
        """
        before, self.text = self.text, self._read()
        return before != self.text

    def owned(self) -> str:
        """Return the path with the owner of the file, who may have changed it."""
        try:
            return f"{self.path} of {self.path.owner()}"
        except (OSError, KeyError):
            return str(self.path)

    def _stamp(self) -> tuple[int, int, int] | None:
        try:
            status = self.path.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino

    def _read(self) -> str:
        try:
            if self.text and not self.path.is_file():
                raise FileRefusedError(f"{self.path}: the file no longer exists")
            text = read_text(self.path)
        except LicorneError as error:
            raise FileRefusedError(str(error)) from error
        try:
            config = load(text, source=str(self.path))
        except ConfigurationError as error:
            raise FileRefusedError("\n".join(map(str, error.problems))) from error
        if not config.partitions:  # An editor may have emptied the file to write it anew.
            raise FileRefusedError(f"{self.path}: it contains no partition")
        return text
