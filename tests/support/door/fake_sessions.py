"""A link whose sessions a test ends, holds back, and looks into; each is with a real scheduler."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from concurrent.futures import Future
from typing import Any, cast, final

from support.proxy.listening import Listener
from support.waiting import WAIT_SECONDS, wait_until

from licorne import RemoteScheduler, ReplacedError, RequestError, ResourceManager, Scheduler
from licorne.model.values.documents import Document
from licorne.proxy.si import licorne_v1_pb2 as v1
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.si.api import ResourceManagerCallback
from licorne.proxy.wire.client.errors import ConnectionLostError, NotSentError
from licorne.proxy.wire.door.link import PartitionLink
from licorne.proxy.wire.door.workers import LaunchedWorker, WorkerTable


@final
class FakeSession:
    """A session with a worker, as a link sees it.

    Attributes:
        scheduler: the scheduler behind it, which goes on when the session is lost.
        speaks: cleared, what the scheduler says is held back before the link hears it.
        holds_back: set while something is held back.
        reads: whether it takes requests.
        halts: what it was told: `pause` or `stop`.
        looked_at: called whenever the link asks whether it is connected.
        registering: called before it registers.
        callback: what a test calls to have the worker say something.
        kills: what ends the worker when it stands in a request.
        hangs: what holds the worker when it stands in a request.
        got: the requests that it took, as text.
        signs: what the worker has said, as `Connection` counts it; this one says nothing by itself.
    """

    def __init__(self, worker: LaunchedWorker, on_lost: Callable[[RequestError], object]) -> None:
        self.kills = self.hangs = "nothing does"
        self.got: list[str] = []
        self.signs = 0
        self.is_held_up = False
        self._holds = False
        self._open: list[Future[v1.Answer]] = []
        self.worker = worker
        self.scheduler = Scheduler()
        self.speaks = threading.Event()
        self.speaks.set()
        self.holds_back = threading.Event()
        self.reads = True
        self.halts: list[str] = []
        self.looked_at: Callable[[], object] = lambda: None
        self.registering: Callable[[], object] = lambda: None
        self.rest_address = ""
        self.callback: ResourceManagerCallback = ResourceManager()
        self.registrations = 0
        self._is_connected = True
        self._why = "it was cut"
        self._on_lost = on_lost

    @property
    def is_connected(self) -> bool:
        """Whether it is not lost."""
        self.looked_at()
        return self._is_connected

    def lose(self, error: RequestError | None = None) -> None:
        """Lose the connection."""
        cut = self._cut("it was cut")
        self._on_lost(error or cut)

    def end(self, reason: str) -> None:
        """Lose the connection for a reason, which the thread of a connection says."""
        threading.Thread(target=self._on_lost, args=[self._cut(reason)]).start()

    def _cut(self, reason: str) -> ConnectionLostError:
        self._is_connected, self._why = False, reason
        error = ConnectionLostError(reason)
        for future in self._open:
            future.set_exception(error)
        self._open.clear()
        return error

    @property
    def connection(self) -> FakeSession:
        """Itself."""
        self._check_connected()
        return self

    def ask_sign(self) -> Future[v1.Answer]:
        """Answer when all that came before is carried out."""
        self._check()
        future: Future[v1.Answer] = Future()
        if self._holds:
            self._open.append(future)
        else:
            self.signs += 1
            try:
                self.scheduler.queue_and_user("none")
            except RequestError as error:  # The RM has not registered yet.
                future.set_exception(error)
            else:
                future.set_result(v1.Answer())
        return future

    def _carry_out(self, request: si.NodeRequest | si.ApplicationRequest | si.AllocationRequest) -> bool:
        """Note a request; return whether the worker lives and carries it out."""
        self._check()
        text = str(request)
        self.got.append(text)
        self._holds = self._holds or self.hangs in text
        if self.kills in text:
            self.end("it was killed")
        return self._is_connected and not self._holds

    def register_resource_manager(
        self,
        request: si.RegisterResourceManagerRequest,
        callback: ResourceManagerCallback,
        *,
        partitions: Collection[str],
    ) -> si.RegisterResourceManagerResponse:
        """Register."""
        self.registering()
        self._check()
        self.registrations += 1
        self.callback = said = _HeldBack(self, callback)
        return self.scheduler.register_resource_manager(request, said, partitions=partitions)

    def update_node(self, request: si.NodeRequest) -> None:
        """Take nodes."""
        if self._carry_out(request):
            self.scheduler.update_node(request)

    def update_application(self, request: si.ApplicationRequest) -> None:
        """Take applications."""
        if self._carry_out(request):
            self.scheduler.update_application(request)

    def update_allocation(self, request: si.AllocationRequest) -> None:
        """Take asks, allocations and releases."""
        if self._carry_out(request):
            self.scheduler.update_allocation(request)

    def update_configuration(self, request: si.UpdateConfigurationRequest) -> None:
        """Replace the configuration."""
        self._check()
        self.scheduler.update_configuration(request)

    def _check_connected(self) -> None:
        if not self._is_connected:
            raise ConnectionLostError(self._why)

    def _check(self) -> None:
        self._check_connected()
        if not self.reads:
            raise NotSentError("it does not read")

    def run_behind_callbacks(self, step: Callable[[], None]) -> None:
        """Run a step."""
        step()

    def pause_manager(self, _: str, __: str) -> bool:
        """Note it."""
        self.halts.append("pause")
        return True

    def stop_manager(self, _: str, __: str) -> bool:
        """Note it."""
        self.halts.append("stop")
        return True

    def stop(self) -> None:
        """End the session: the scheduler goes on."""
        self._is_connected = False


@final
class _HeldBack(ResourceManager):
    """The callback of a link, which hears later what is held back."""

    def __init__(self, session: FakeSession, callback: ResourceManagerCallback) -> None:
        self._session = session
        self._callback = callback

    def _wait(self) -> None:
        if not self._session.speaks.is_set():
            self._session.holds_back.set()
            self._session.speaks.wait(WAIT_SECONDS)
            self._session.holds_back.clear()

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self._wait()
        self._callback.update_allocation(response)

    def update_application(self, response: si.ApplicationResponse) -> None:
        self._wait()
        self._callback.update_application(response)

    def update_node(self, response: si.NodeResponse) -> None:
        self._wait()
        self._callback.update_node(response)

    def update_container_scheduling_state(self, request: si.UpdateContainerSchedulingStateRequest) -> None:
        self._wait()
        self._callback.update_container_scheduling_state(request)


@final
class LinkBench:
    """The owner of a link, its launcher, and its sessions.

    Attributes:
        listener: what the RM hears.
        delivers: cleared, the RM hears of no allocation.
        is_delivering: set while a callback waits for the RM.
        launches: cleared, the launcher waits.
        launching: called when a worker is there.
        lost_workers: the workers that were reported as lost.
        sessions: all sessions, in order.
        changes: called with each session before the link uses it.
    """

    rm_id = "rm"

    def __init__(self, configuration: str) -> None:
        self._registration = si.RegisterResourceManagerRequest(rmID="rm", config=configuration)
        self.listener = Listener()
        self.callback: ResourceManagerCallback = self.listener
        self.failures: list[str] = []
        self.delivers = threading.Event()
        self.delivers.set()
        self.is_delivering = threading.Event()
        self.launches = threading.Event()
        self.launches.set()
        self.launching: Callable[[], object] = lambda: None
        self.lost_workers: list[LaunchedWorker] = []
        self.sessions: list[FakeSession] = []
        self.changes: Callable[[FakeSession], object] = lambda _: None
        self._changed = threading.Condition()
        self._count = 0
        self._table = WorkerTable(self)

    # ------------------------------------------------------------------------------- as an owner

    def registration(self) -> si.RegisterResourceManagerRequest:
        """Return how the RM registers."""
        return self._registration

    def configure(self, configuration: str) -> None:
        """Have another configuration from now on."""
        self._registration = si.RegisterResourceManagerRequest(rmID="rm", config=configuration)

    def deliver(self, name: str, argument: Any) -> None:
        """Have the RM hear it."""
        if name == "update_allocation" and not self.delivers.is_set():
            self.is_delivering.set()
            self.delivers.wait(WAIT_SECONDS)
        getattr(self.listener, name)(argument)

    def kept_use(self, partition: str) -> Document | None:  # noqa: ARG002 - as the owner has it
        """Nothing was used before."""
        return None

    def give_up(self, partition: str, error: ReplacedError) -> None:
        """Note it."""
        self.failures.append(f"{partition} is given up: {error}")

    def note_failure(self, what: str, error: BaseException) -> None:
        """Note it."""
        self.failures.append(f"{what}: {error}")

    # ---------------------------------------------------------------------------- as a launcher

    def start(self, partition: str, given_up: threading.Event) -> LaunchedWorker:
        """Return the next worker, once it launches."""
        wait_until(lambda: self.launches.is_set() or given_up.is_set())
        if not self.launches.is_set():
            raise ConnectionLostError("it was given up")
        self.launching()
        self._count += 1
        return LaunchedWorker(partition, f"worker:{self._count}", self._count)

    def lost(self, worker: LaunchedWorker) -> None:
        """Note it."""
        self.lost_workers.append(worker)

    def stop(self) -> None:
        """End all schedulers."""
        for session in self.sessions:
            session.speaks.set()
            session.scheduler.stop()

    # ------------------------------------------------------------------------------ for the test

    def link(self) -> PartitionLink:
        """Return a link to the partition `default`, which is not started."""
        return PartitionLink(self, "default", self._table, self._connect, time.time_ns)

    def _connect(self, worker: LaunchedWorker, on_lost: Callable[[RequestError], object]) -> RemoteScheduler:
        session = FakeSession(worker, on_lost)
        self.changes(session)
        with self._changed:
            self.sessions.append(session)
            self._changed.notify_all()
        return cast("RemoteScheduler", session)

    def session(self, number: int) -> FakeSession:
        """Wait for a session, counted from 1."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.sessions) >= number, WAIT_SECONDS)
        return self.sessions[number - 1]
