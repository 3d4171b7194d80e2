"""The REST interface on a port: uvicorn on a thread of its own, for a scheduler of this process."""

from __future__ import annotations

import ssl
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self, final

import uvicorn
from starlette.applications import Starlette
from starlette.types import ASGIApp

from ....model.errors import LicorneError
from ...core.scheduler.scheduler import Scheduler
from ...si.arguments import check_type
from .application import rest_app
from .closing import ConnectionTimes
from .connections import bounded_connections
from .limits import LimitsSettings
from .serving import BACKLOG, AsgiServer, ServingThread

_DRAIN_SECONDS: Final = 3
"""How long requests that are under way may take when the server stops."""
_NAME: Final = "REST"
_PORT_MAX: Final = 65_535


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
    """For TLS, with its key; `None` for none."""
    key: Path | None = None
    client_authorities: Path | None = None
    """Each client must have a certificate of these."""
    tokens: tuple[str, ...] = ()
    """The bearer tokens that are let in; without any, each reader is."""
    hosts: tuple[str, ...] = ()
    """The names by which readers may ask where no token is required, see `rest_app`."""
    ui_dir: Path | None = None
    """A folder with the build of another user interface, in place of the page."""
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
    """A REST server; `with` starts and stops it. What it shows goes on.

    It listens, and answers, when `with` has begun. What ends it later, such as a process that has no
    descriptors left, is logged, and it starts again.

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
    """A REST server for a scheduler of this process; as all such servers."""

    def __init__(self, scheduler: Scheduler, settings: RestSettings | None = None) -> None:
        super().__init__(settings or RestSettings(), note_end=self._note_end)
        self._scheduler = scheduler

    def _application(self, settings: RestSettings) -> Starlette:
        return rest_app(
            self._scheduler,
            tokens=settings.tokens,
            hosts=settings.hosts,
            limits=settings.limits,
            ui_dir=settings.ui_dir,
        )

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
