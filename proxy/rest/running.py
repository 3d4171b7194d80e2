"""The REST interface on a port: uvicorn on a thread of its own, for a scheduler of this process."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Self, final

import uvicorn
from anyio.to_thread import current_default_thread_limiter

from ...model.errors import LicorneError
from .application import rest_app
from .closing import ConnectionTimes
from .connections import bounded_connections
from .limits import LimitsSettings

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from starlette.applications import Starlette
    from starlette.types import ASGIApp

    from ..scheduler.scheduler import Scheduler

__all__ = ["RestServer", "RestSettings"]

_BACKLOG: Final = 512
_THREADS: Final = 8
"""How many requests may wait for the scheduler at once."""
_DRAIN_SECONDS: Final = 3
"""How long requests that are under way may take when the server stops."""


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

    Raises:
        LicorneError: The address cannot be listened on.
    """

    def __init__(self, scheduler: Scheduler, settings: RestSettings | None = None) -> None:
        self._scheduler = scheduler
        self._settings = settings or RestSettings()
        self._socket: socket.socket | None = None
        self._server: uvicorn.Server | None = None
        self._application: Starlette | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        settings = self._settings
        self._application = application = rest_app(
            self._scheduler, tokens=settings.tokens, limits=settings.limits, ui_dir=settings.ui_dir
        )
        self._socket = listening = _listen(settings)
        self._server = uvicorn.Server(_config(application, settings))
        self._thread = threading.Thread(
            target=_serve, args=(self._server, listening), name="licorne-rest", daemon=True
        )
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.begin_stop()
        if self._thread is not None:
            self._thread.join()
        if self._socket is not None:
            self._socket.close()

    @property
    def port(self) -> int:
        """The port that it listens on."""
        assert self._socket is not None, "the server has not been started"
        port: int = self._socket.getsockname()[1]
        return port

    def begin_stop(self) -> None:
        """Take no new connections, and let requests that are under way end; returns at once."""
        if self._application is not None:
            self._application.state.pace.is_closed = True
        if self._server is not None:
            self._server.should_exit = True


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


def _serve(server: uvicorn.Server, listening: socket.socket) -> None:
    async def run() -> None:
        current_default_thread_limiter().total_tokens = _THREADS
        await server.serve([listening])

    asyncio.run(run())
