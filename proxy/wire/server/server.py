"""The server: it listens, and serves resource managers until it is stopped."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Final, Self, final

import grpc
from google.protobuf import descriptor_pool
from google.protobuf.descriptor import FileDescriptor
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2

from ....model.errors import LicorneError
from ...si import licorne_v1_pb2 as v1
from ...si import si_pb2 as si
from ...si.constants import keepalive_options
from ...si.messages import MESSAGE_BYTES_MAX
from .access import AccessRules, Address
from .buffers import call_soon
from .core import ConfigurationFile, ServerCore
from .served_scheduler import ServedScheduler
from .sessions import SERVICE as SESSION_SERVICE
from .sessions import Sessions
from .si_streams import SERVICE as SI_SERVICE
from .si_streams import SiStreams
from .watchdog import Watchdog

_STREAMS_MAX: Final = 4_000
"""How many calls are under way at once; further ones are refused with RESOURCE_EXHAUSTED."""
_DELIVERY_SECONDS: Final = 3.0
"""How long a server that stops delivers what is queued for its RMs."""
_GRACE_SECONDS: Final = 1.0
"""How long streams may take to end after that."""
_OPTIONS: Final = (
    ("grpc.so_reuseport", 0),  # A second server on one port is an error, not a partner.
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", -1),
    ("grpc.max_concurrent_streams", 100),
    ("grpc.max_metadata_size", 16 << 10),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
    ("grpc.max_connection_idle_ms", 600_000),
)
_WATCH_SECONDS: Final = 1.0
"""How often the configuration file is looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """How a server listens, and whom it serves."""

    address: Address = field(default_factory=lambda: Address("127.0.0.1", 0))
    credentials: grpc.ServerCredentials | None = None
    """The credentials for TLS; `None` without TLS."""
    access: AccessRules = field(default_factory=AccessRules)
    configuration: ConfigurationFile | None = None
    """For RMs that send no configuration."""
    stop_after_seconds: float = 300.0
    """How long an RM may be away before it is stopped."""
    forget_after_seconds: float | None = None
    """How much later it is forgotten, `None` for never."""
    keepalive_seconds: float = 20.0
    """How long a connection may be silent before it is asked for a sign of life."""
    keepalive_timeout_seconds: float = 10.0
    """How long the answer may take; then the connection counts as lost."""
    handshake_seconds: float = 10.0
    """How long a connection may take until it speaks HTTP/2."""
    silence_seconds: float = 30.0
    """How long a session may be open without `hello`, and an RM of `si.v1` be registered without a stream."""
    rest_address: str = ""
    """Where the REST interface of the same scheduler listens, `HOST:PORT`; empty if there is none."""

    def options(self) -> list[tuple[str, int]]:
        """Return the options of gRPC."""
        return [
            *_OPTIONS,
            *keepalive_options(self.keepalive_seconds, self.keepalive_timeout_seconds),
            ("grpc.server_handshake_timeout_ms", max(1, round(self.handshake_seconds * 1_000))),
        ]


@final
class Server:
    """A server for one scheduler; all methods belong to one event loop."""

    def __init__(self, scheduler: ServedScheduler, settings: ServerSettings) -> None:
        self._scheduler = scheduler
        self._settings = settings
        self._core = ServerCore(
            scheduler,
            access=settings.access,
            configuration=settings.configuration,
            stop_after=settings.stop_after_seconds,
            forget_after=settings.forget_after_seconds,
            silence=settings.silence_seconds,
            rest_address=settings.rest_address,
        )
        self._health = health.aio.HealthServicer()
        self._server = grpc.aio.server(options=settings.options(), maximum_concurrent_rpcs=_STREAMS_MAX)

    async def start(self) -> Address:
        """Listen; return the address, with the port that was chosen.

        Raises:
            LicorneError: The address cannot be listened on.
        """
        server = self._server
        server.add_generic_rpc_handlers((SiStreams(self._core).handler(), Sessions(self._core).handler()))
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        services = [SI_SERVICE, SESSION_SERVICE, health.SERVICE_NAME, reflection.SERVICE_NAME]
        reflection.enable_server_reflection(services, server, pool=_pool())
        port = self._listen()
        await server.start()
        for name in ("", SI_SERVICE, SESSION_SERVICE):
            await self._health.set(name, health_pb2.HealthCheckResponse.SERVING)
        return self._settings.address.with_port(port)

    def _listen(self) -> int:
        address, credentials = str(self._settings.address), self._settings.credentials
        try:
            if credentials is None:
                return self._server.add_insecure_port(address)
            return self._server.add_secure_port(address, credentials)
        except RuntimeError as error:
            raise LicorneError(
                f"cannot listen on {address}: is the port in use, the host one of this machine?"
            ) from error

    async def reload(self) -> list[str]:
        """Read the configuration file again; return what could not be done, as lines.

        Raises:
            FileRefusedError: The file is refused, and nothing has changed.
        """
        return await self._core.on_thread_of_file(self._core.reload)

    async def file_has_changed(self) -> bool:
        """Return whether there is a configuration file, and it is another one than at the last look."""
        return await self._core.on_thread_of_file(self._core.file_has_changed)

    async def stop(self) -> None:
        """Refuse new calls, stop the scheduler, deliver what is queued, and end all streams; within 5 s."""
        self._core.begin_stop()
        await self._health.enter_graceful_shutdown()
        stopped = self._core.loop.create_future()

        def stop() -> None:
            try:
                self._scheduler.stop()
            finally:
                call_soon(self._core.loop, stopped.set_result, None)

        # A thread that the process does not wait for: a callback in it may never end.
        threading.Thread(target=stop, name="licorne-server-stop", daemon=True).start()
        await asyncio.wait([stopped], timeout=_DELIVERY_SECONDS)
        self._core.end_streams()
        await self._server.stop(_GRACE_SECONDS)
        self._core.close()
        await asyncio.wait([stopped], timeout=_GRACE_SECONDS)


def _pool() -> descriptor_pool.DescriptorPool:
    """Return the descriptions of all services in one pool; ours are in a separate one."""
    pool = descriptor_pool.DescriptorPool()
    added: set[str] = set()

    def add(file: FileDescriptor) -> None:
        if file.name not in added:
            added.add(file.name)
            for needed in file.dependencies:
                add(needed)
            pool.AddSerializedFile(file.serialized_pb)

    for module in (si, v1, health_pb2, reflection_pb2):
        add(module.DESCRIPTOR)
    return pool


@final
class ServerThread:
    """A server on its own thread, for a scheduler of this process; `with` starts and stops it.

    It stops the scheduler, too.
    """

    def __init__(self, scheduler: ServedScheduler, settings: ServerSettings | None = None) -> None:
        self._scheduler = scheduler
        self._settings = settings or ServerSettings()
        self._started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event, Address]] = Future()
        self._thread = threading.Thread(target=self._run, name="licorne-server", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._started.result()
        return self

    def __exit__(self, *_: object) -> None:
        loop, stopping, _address = self._started.result()
        call_soon(loop, stopping.set)
        self._thread.join()

    @property
    def address(self) -> str:
        """The address that it listens on."""
        return str(self._started.result()[2])

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        stopping = asyncio.Event()
        server = Server(self._scheduler, self._settings)
        try:
            address = await server.start()
        except BaseException as error:  # noqa: BLE001 - it is raised where the server was started
            await server.stop()
            self._started.set_exception(error)
            return
        self._started.set_result((asyncio.get_running_loop(), stopping, address))
        await stopping.wait()
        await server.stop()


async def serve_until_signal(
    scheduler: ServedScheduler,
    settings: ServerSettings,
    *,
    watchdog: Watchdog,
    on_listening: Callable[[Address], None],
    report: Callable[[str], None],
    on_stopping: Callable[[], object] = lambda: None,
) -> None:
    """Serve until SIGTERM or SIGINT comes, then stop within 5 s; a second signal ends the process at once.

    A process in which Python no longer runs is killed within 5 s of the signal.
    The configuration file is read again when it changes, and on SIGHUP.

    Args:
        scheduler: The scheduler to serve; it is stopped, too.
        settings: How to listen.
        watchdog: Gets to know these signals.
        on_listening: Gets the address when the server listens.
        report: Gets lines for the operator: reloads, and what could not be done.
        on_stopping: Called when the signal comes, before the server stops, on another thread.

    Raises:
        LicorneError: The address cannot be listened on.
    """
    # Before anybody can know of this server, and send a signal.
    stopping, reloading = _noted_signals(watchdog)
    server = Server(scheduler, settings)
    try:
        on_listening(await server.start())
        watching = asyncio.create_task(_watch(server, settings, reloading, report))
        await stopping.wait()
        report("stopping")
        watching.cancel()
        await asyncio.to_thread(on_stopping)  # It may wait for the scheduler, which may wait for this server.
    finally:
        await server.stop()


def _noted_signals(watchdog: Watchdog) -> tuple[asyncio.Event, asyncio.Event]:
    """Return what the first signal to end sets, and what each one to read the configuration again sets."""
    loop = asyncio.get_running_loop()
    stopping, reloading = asyncio.Event(), asyncio.Event()

    def stop() -> None:
        stopping.set()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
        watchdog.stopping()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    watchdog.watch(signal.SIGTERM, signal.SIGINT)
    loop.add_signal_handler(signal.SIGHUP, reloading.set)
    return stopping, reloading


async def _watch(
    server: Server, settings: ServerSettings, reloading: asyncio.Event, report: Callable[[str], None]
) -> None:
    """Read the configuration again whenever its file changes, and on request."""
    file = settings.configuration
    while True:
        try:
            await asyncio.wait_for(reloading.wait(), _WATCH_SECONDS)
        except TimeoutError:
            if not await server.file_has_changed():
                continue
        reloading.clear()
        if file is None:
            report("there is no configuration file to read again")
            continue
        try:
            failures = await server.reload()
        except LicorneError as error:
            report(f"{file.path} is refused, the configuration before it stays:\n{error}")
            continue
        report("\n".join([f"{file.path} has been read again", *failures]))
