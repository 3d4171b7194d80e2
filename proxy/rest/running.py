"""The REST interface on a port: uvicorn on a thread of its own, for a scheduler of this process."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, final

import uvicorn
from anyio.to_thread import current_default_thread_limiter
from loguru import logger
from starlette.applications import Starlette
from starlette.types import ASGIApp

from ...model.errors import LicorneError
from ..scheduler.scheduler import Scheduler
from .application import rest_app
from .closing import ConnectionTimes
from .connections import bounded_connections
from .limits import LimitsSettings

__all__ = ["RestServer", "RestSettings"]

_BACKLOG: Final = 512
_THREADS: Final = 8
"""How many requests may wait for the scheduler at once."""
_DRAIN_SECONDS: Final = 3
"""How long requests that are under way may take when the server stops."""
_AGAIN_SECONDS: Final = 1.0
"""How soon a server that has ended starts again."""
_NAME: Final = "REST"
_LACKS: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_QUIET_SECONDS: Final = 60
"""From one line of the log about such a lack to the next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestSettings:
    """How a REST server listens."""

    host: str = "127.0.0.1"
    port: int = 0
    """The port 0 stands for one that is free."""
    certificate: Path | None = None
    """For TLS, with its key; `None` for none."""
    key: Path | None = None
    client_authorities: Path | None = None
    """Each client must have a certificate of these."""
    tokens: tuple[str, ...] = ()
    """The bearer tokens that are let in; without any, each reader is."""
    ui_dir: Path | None = None
    """A folder with the build of another user interface, in place of the page."""
    limits: LimitsSettings = field(default_factory=LimitsSettings)
    times: ConnectionTimes = field(default_factory=ConnectionTimes)
    """How long a client may take."""
    connections_max: int = 2_000
    """How many connections there may be; 503 above."""


@final
class RestServer:
    """A REST server for a scheduler of this process; `with` starts and stops it. The scheduler goes on.

    It listens, and answers, when `with` has begun. What ends it later, such as a process that has no
    descriptors left, is logged, and it starts again.

    Raises:
        LicorneError: The address cannot be listened on, or the server does not start.
    """

    def __init__(self, scheduler: Scheduler, settings: RestSettings | None = None) -> None:
        self._scheduler = scheduler
        self._settings = settings or RestSettings()
        self._socket: socket.socket | None = None
        self._server: _Server | None = None
        self._stopping = threading.Event()
        self._started: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, name="licorne-rest", daemon=True)

    def __enter__(self) -> Self:
        self._server = self._made()
        self._socket = _listen(self._settings)
        self._thread.start()
        try:
            self._started.result()
        except Exception as error:
            self._end()
            raise LicorneError(f"the REST server does not start: {error!r}") from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end()

    @property
    def port(self) -> int:
        """The port that it listens on."""
        assert self._socket is not None, "the server has not been started"
        port: int = self._socket.getsockname()[1]
        return port

    def begin_stop(self) -> None:
        """Take no new connections, and let requests that are under way end; returns at once."""
        self._stopping.set()
        if self._server is not None:
            self._server.begin_stop()

    def _end(self) -> None:
        self.begin_stop()
        self._thread.join()
        if self._socket is not None:
            self._socket.close()

    def _made(self) -> _Server:
        settings = self._settings
        application = rest_app(
            self._scheduler, tokens=settings.tokens, limits=settings.limits, ui_dir=settings.ui_dir
        )
        return _Server(application, settings, self._has_started)

    def _has_started(self) -> None:
        self._scheduler.monitoring.broken_interfaces.pop(_NAME, None)
        if not self._started.done():
            self._started.set_result(None)

    def _run(self) -> None:
        """Serve until the server stops; start again after what ended it."""
        assert self._server is not None, "the server is made before its thread"
        assert self._socket is not None, "the socket is made before the thread"
        while not self._stopping.is_set():
            try:
                asyncio.run(self._server.run_on(self._socket))
            except (Exception, SystemExit) as error:  # noqa: BLE001 - it is logged, and REST starts again
                if not self._started.done():
                    self._started.set_exception(error)
                    return
                self._scheduler.monitoring.broken_interfaces[_NAME] = repr(error)
                logger.opt(exception=error).error("the REST server has ended, and starts again")
            if self._stopping.wait(_AGAIN_SECONDS):
                return
            with suppress(OSError):  # Without descriptors it cannot be made: the old one ends, and says so.
                self._server = self._made()


@final
class _Server(uvicorn.Server):
    """One run of uvicorn."""

    def __init__(self, application: Starlette, settings: RestSettings, on_start: Callable[[], None]) -> None:
        super().__init__(_config(application, settings))
        self.config.load()  # What it imports is there before a client can take the last descriptor.
        self._application = application
        self._on_start = on_start
        self._quiet_until = 0.0

    async def run_on(self, listening: socket.socket) -> None:
        """Serve on a socket, which stays open."""
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
            logger.warning("REST can take no connection: {}", error)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to answer."""
        await super().startup(sockets)
        self._on_start()

    def begin_stop(self) -> None:
        """Take no new connections; returns at once."""
        self._application.state.pace.is_closed = True
        self.should_exit = True


def _listen(settings: RestSettings) -> socket.socket:
    """Return a socket that listens.

    Raises:
        LicorneError: The address cannot be listened on.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, settings.port), family=family, backlog=_BACKLOG)
    except OSError as error:
        where = f"[{settings.host}]" if ":" in settings.host else settings.host
        raise LicorneError(
            f"cannot listen on {where}:{settings.port} for REST: {error.strerror or error}"
        ) from error


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
        backlog=_BACKLOG,
        timeout_graceful_shutdown=_DRAIN_SECONDS,
        ssl_certfile=settings.certificate,
        ssl_keyfile=settings.key,
        ssl_ca_certs=None if settings.client_authorities is None else str(settings.client_authorities),
        ssl_cert_reqs=ssl.CERT_NONE if settings.client_authorities is None else ssl.CERT_REQUIRED,
    )
