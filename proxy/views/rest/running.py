"""The REST interface on a port: uvicorn on its own thread, for a scheduler of this process."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, final

import uvicorn
from anyio.to_thread import current_default_thread_limiter
from loguru import logger
from starlette.applications import Starlette
from starlette.types import ASGIApp

from ....model.errors import LicorneError
from ...core.scheduler.scheduler import Scheduler
from ...si.arguments import check_type
from .application import rest_app
from .connections import ConnectionTimes, bounded_connections
from .limits import LimitsSettings

if TYPE_CHECKING:
    from prometheus_client import Metric

_DRAIN_SECONDS: Final = 3
"""How long requests that are under way may take when the server stops."""
_NAME: Final = "REST"
_PORT_MAX: Final = 65_535
BACKLOG: Final = 512
"""How many connections may wait to be taken."""
_THREADS: Final = 8
"""How many requests may wait for something at once."""
_AGAIN_SECONDS: Final = 1.0
"""How soon a server that has ended starts again."""
_LACKS: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_QUIET_SECONDS: Final = 60
"""From one line of the log about such a lack to the next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestSettings:
    """How a REST server listens.

    Raises:
        LicorneError: The host or the port is not one.
    """

    host: str = "127.0.0.1"
    port: int = 0
    """The port 0 stands for one that is free."""
    certificate: Path | None = None
    """The certificate for TLS, with its key; `None` without TLS."""
    key: Path | None = None
    client_authorities: Path | None = None
    """Each client must have a certificate of these."""
    tokens: tuple[str, ...] = ()
    """The bearer tokens that are let in; without any, each reader is."""
    hosts: tuple[str, ...] = ()
    """The names by which readers may ask where no token is required, see `rest_app`."""
    closed: tuple[str, ...] = ()
    """The beginnings of paths that are refused where no token is required."""
    ui_dir: Path | None = None
    """A folder with the build of another user interface, instead of the page."""
    limits: LimitsSettings = field(default_factory=LimitsSettings)
    times: ConnectionTimes = field(default_factory=ConnectionTimes)
    """How long a client may take."""
    connections_max: int = 2_000
    """How many connections there may be; 503 above."""

    def __post_init__(self) -> None:
        check_type("host", self.host, str)
        check_type("port", self.port, int)
        if not 0 <= self.port <= _PORT_MAX:
            raise LicorneError(f"port={self.port} is not from 0 to {_PORT_MAX}")


class ApplicationServer(ABC):
    """A REST server; `with` starts and stops it. The scheduler behind it continues.

    It listens, and answers, when `with` has begun. If it ends later, for example because the process has no
    descriptors left, that is logged, and it starts again.

    Args:
        settings: How it listens.
        note_end: Called with what has ended a server, and with `None` when one answers.
        on_stop: Called with the application when the server begins to stop; by any thread.

    Raises:
        LicorneError: The address cannot be listened on, or the server does not start.
    """

    def __init__(
        self,
        settings: RestSettings,
        *,
        note_end: Callable[[BaseException | None], None] = lambda _: None,
        on_stop: Callable[[Starlette], None] = lambda _: None,
    ) -> None:
        self.settings = settings
        self._on_stop = on_stop
        self._serving = ServingThread(_NAME, self._made, note_end)

    @abstractmethod
    def _application(self, settings: RestSettings) -> Starlette:
        """Return what is served; called again when a server has ended."""

    def __enter__(self) -> Self:
        self._serving.start(self.settings.host, self.settings.port)
        return self

    def __exit__(self, *_: object) -> None:
        self._serving.end()

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return self._serving.port

    def begin_stop(self) -> None:
        """Take no new connections, and let requests that are under way end; returns at once."""
        self._serving.begin_stop()

    def _made(self) -> AsgiServer:
        settings = self.settings
        application = self._application(settings)

        def begin_stop() -> None:
            application.state.pace.is_closed = True
            self._on_stop(application)

        return AsgiServer(_NAME, _config(application, settings), on_stop=begin_stop)


@final
class RestServer(ApplicationServer):
    """A REST server for a scheduler of this process; as all such servers.

    Args:
        scheduler: The scheduler that readers see.
        settings: How it listens.
        more_metrics: Returns the metrics of what is around the scheduler; called at each scrape.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        settings: RestSettings | None = None,
        *,
        more_metrics: Callable[[], Iterable[Metric]] = tuple,
    ) -> None:
        super().__init__(settings or RestSettings(), note_end=self._note_end)
        self._scheduler = scheduler
        self._more_metrics = more_metrics

    def _application(self, settings: RestSettings) -> Starlette:
        application = rest_app(
            self._scheduler,
            tokens=settings.tokens,
            hosts=settings.hosts,
            limits=settings.limits,
            ui_dir=settings.ui_dir,
            closed=settings.closed,
        )
        application.state.more_metrics = self._more_metrics
        return application

    def _note_end(self, error: BaseException | None) -> None:
        broken = self._scheduler.monitoring.broken_interfaces
        if error is None:
            broken.pop(_NAME, None)
        else:
            broken[_NAME] = repr(error)


def _config(application: ASGIApp, settings: RestSettings) -> uvicorn.Config:
    return uvicorn.Config(
        application,
        http=bounded_connections(settings.times),
        h11_max_incomplete_event_size=settings.limits.head_bytes_max,
        limit_concurrency=settings.connections_max,
        ws="none",
        lifespan="on",
        loop="asyncio",
        log_config=None,
        log_level="critical",  # Bugs of ours are logged by `application`.
        access_log=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_graceful_shutdown=_DRAIN_SECONDS,
        ssl_certfile=settings.certificate,
        ssl_keyfile=settings.key,
        ssl_ca_certs=None if settings.client_authorities is None else str(settings.client_authorities),
        ssl_cert_reqs=ssl.CERT_NONE if settings.client_authorities is None else ssl.CERT_REQUIRED,
    )


@final
class AsgiServer(uvicorn.Server):
    """One run of uvicorn.

    Args:
        name: The name of the service, for the log.
        config: The application and its settings.
        on_stop: Called when the server begins to stop.
        tls: The encryption of connections, if the configuration names no certificate.
    """

    def __init__(
        self,
        name: str,
        config: uvicorn.Config,
        *,
        on_stop: Callable[[], None] = lambda: None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__(config)
        self.config.load()  # Its imports must happen before a client can take the last descriptor.
        if tls is not None:
            self.config.ssl = tls
        self._name = name
        self._on_stop = on_stop
        self._on_start: Callable[[], None] = lambda: None
        self._quiet_until = 0.0

    async def run_on(self, listening: socket.socket, on_start: Callable[[], None]) -> None:
        """Serve on a socket, which stays open; call a function when it begins to answer."""
        self._on_start = on_start
        current_default_thread_limiter().total_tokens = _THREADS
        asyncio.get_running_loop().set_exception_handler(self._note)
        with listening.dup() as own:
            await self.serve([own])

    def _note(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log what no request gets to know; of a lack of descriptors asyncio tells 500 times a second."""
        error = context.get("exception")
        if self.should_exit and isinstance(error, ValueError) and "file descriptor" in str(error):
            return  # After each lack asyncio tries again a second later, and the socket is closed by then.
        if not isinstance(error, OSError) or error.errno not in _LACKS:
            loop.default_exception_handler(context)
        elif loop.time() >= self._quiet_until:
            self._quiet_until = loop.time() + _QUIET_SECONDS
            logger.warning("{} can take no connection: {}", self._name, error)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to answer."""
        await super().startup(sockets)
        self._on_start()

    def begin_stop(self) -> None:
        """Take no new connections; returns at once."""
        self._on_stop()
        self.should_exit = True


@final
class ServingThread:
    """Serves an application from `start` to `end`.

    Args:
        name: The name of the service, for the log and for errors.
        make: Returns a server; called again when one has ended.
        note_end: Called with what has ended a server, and with `None` when one answers.
    """

    def __init__(
        self,
        name: str,
        make: Callable[[], AsgiServer],
        note_end: Callable[[BaseException | None], None] = lambda _: None,
    ) -> None:
        self._name = name
        self._make = make
        self._note_end = note_end
        self._socket: socket.socket | None = None
        self._server: AsgiServer | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = threading.Event()
        self._started: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, name=f"licorne-{name.lower()}", daemon=True)

    def start(self, host: str, port: int) -> None:
        """Listen, and return when requests are answered.

        Raises:
            LicorneError: The address cannot be listened on, or the server does not start.
        """
        try:
            self._server = self._make()
        except OSError as error:  # A certificate or key: the error gives no details.
            raise LicorneError(f"the {self._name} server does not start: {error}") from error
        self._socket = _listening_socket(self._name, host, port)
        self._thread.start()
        try:
            self._started.result()
        except Exception as error:
            self.end()
            raise LicorneError(f"the {self._name} server does not start: {error!r}") from error

    @property
    def port(self) -> int:
        """The port that it listens on."""
        if self._socket is None:
            raise LicorneError(f"the {self._name} server has not been started: use it in a `with` block")
        port: int = self._socket.getsockname()[1]
        return port

    def call(self, function: Callable[[], None]) -> None:
        """Call a function while no connection begins; it may be called later."""
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # It is closed: this run has ended, and no other has begun.
                loop.call_soon_threadsafe(function)
                return
        function()

    def begin_stop(self) -> None:
        """Take no new connections, and let requests that are under way end; returns at once."""
        self._stopping.set()
        if self._server is not None:
            self._server.begin_stop()

    def end(self) -> None:
        """Stop, and return when it has ended."""
        self.begin_stop()
        self._thread.join()
        if self._socket is not None:
            self._socket.close()

    def _has_started(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._note_end(None)
        if not self._started.done():
            self._started.set_result(None)

    def _run(self) -> None:
        """Serve until the server stops; start again after what ended it."""
        assert self._server is not None, "the server is made before its thread"
        assert self._socket is not None, "the socket is made before the thread"
        while not self._stopping.is_set():
            try:
                asyncio.run(self._server.run_on(self._socket, self._has_started))
            except (Exception, SystemExit) as error:  # noqa: BLE001 - it is logged, and it starts again
                if not self._started.done():
                    self._started.set_exception(error)
                    return
                self._note_end(error)
                logger.opt(exception=error).error("the {} server has ended, and starts again", self._name)
            if self._stopping.wait(_AGAIN_SECONDS):
                return
            with suppress(OSError):  # Without descriptors it cannot be made: the old one ends, and logs that.
                self._server = self._make()


def _listening_socket(name: str, host: str, port: int) -> socket.socket:
    """Return a socket that listens.

    Raises:
        LicorneError: The address cannot be listened on.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        where = f"[{host}]" if ":" in host else host
        raise LicorneError(
            f"cannot listen on {where}:{port} for {name}: {error.strerror or error}"
        ) from error
    # Connections inherit it. asyncio sets it only for sockets that name their protocol; this one does not.
    # Without it the body of an answer, behind its head, waits 40 ms for a client to acknowledge the head.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening
