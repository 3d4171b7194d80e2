"""The REST interface of a door: the paths of a scheduler, with other endpoints behind them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, final

from starlette.applications import Starlette

from ....core.documents.declarations import Operation
from ....views.page.application import Page, files_of_page
from ....views.rest.application import OPERATIONS, application_of
from ....views.rest.limits import LimitsSettings, Pace
from ....views.rest.running import ApplicationServer, RestSettings
from .dumps import DUMPS
from .events import EVENTS, DoorEvents
from .live import LIVE, LiveViewers
from .merging import LISTS
from .questions import BELOW, METRICS, PASSED, QUESTIONS, pass_on
from .reading import DoorReader, ViewedDoor
from .worker_client import WorkerClient

_ENDPOINTS: Final[Mapping[str, Callable[..., Any]]] = {
    **LISTS,
    **METRICS,
    **QUESTIONS,
    **EVENTS,
    **PASSED,
    **LIVE,
    **DUMPS,
}
OWN_PATHS: Final = frozenset(
    {"/openapi.yaml", "/ws/v1/validate-conf", "/ws/v1/stack", "/ws/v1/fullstatedump", "/debug/stack"}
)
"""The paths that the process of the door answers like a scheduler, including those of profiles."""
_PROFILES: Final = "/debug/pprof/"


def door_operations() -> list[Operation]:
    """Return the operations of a scheduler with the endpoints of a door."""
    return [_of_door(each) for each in (*OPERATIONS, *Page.OPERATIONS)]


def _of_door(operation: Operation) -> Operation:
    path = operation.path
    if path in OWN_PATHS or path.startswith(_PROFILES):
        return operation
    endpoint = pass_on if path.startswith(BELOW) else _ENDPOINTS[path]
    return operation._replace(endpoint=endpoint)


def door_app(
    door: ViewedDoor,
    client: WorkerClient,
    *,
    tokens: tuple[str, ...] = (),
    hosts: tuple[str, ...] = (),
    limits: LimitsSettings | None = None,
    ui_dir: Path | None = None,
) -> Starlette:
    """Return the REST interface of a door, with the page at `/`.

    Args:
        door: The door that readers see.
        client: The client for the workers.
        tokens: The accepted bearer tokens; without any, all readers are accepted.
        hosts: As for `rest_app`.
        limits: The limits of readers; by default those of `LimitsSettings`.
        ui_dir: A folder with the build of another user interface, ` in place of the page/served at `/`
            instead of the page/` in place of the page.

    Raises:
        LicorneError: The folder has no `index.html`.
    """
    reader = DoorReader(door, client)
    events = DoorEvents(reader)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await events.close()

    application = application_of(
        door_operations(),
        files_of_page(ui_dir),
        lifespan,
        events=events,
        pace=Pace(lambda: any(place.waiting for place in door.places())),
        tokens=tokens,
        hosts=hosts,
        limits=limits or LimitsSettings(),
    )
    application.state.door_reader = reader
    application.state.door_viewers = LiveViewers()
    application.state.door_dumping = False
    return application


def _end_streams(application: Starlette) -> None:
    events: DoorEvents = application.state.events
    events.finish()


@final
class DoorRest(ApplicationServer):
    """A REST server for a door of this process; `with` starts and stops it, without the door.

    Args:
        door: The door that readers see.
        settings: The address, the tokens and the limits.
        client: The client for the workers, with their token and TLS settings.

    Raises:
        LicorneError: The server cannot listen on the address, or does not start.
    """

    def __init__(
        self, door: ViewedDoor, settings: RestSettings | None = None, client: WorkerClient | None = None
    ) -> None:
        super().__init__(settings or RestSettings(), on_stop=_end_streams)
        self._door = door
        self._client = client or WorkerClient()

    def _application(self, settings: RestSettings) -> Starlette:
        return door_app(
            self._door,
            self._client,
            tokens=settings.tokens,
            hosts=settings.hosts,
            limits=settings.limits,
            ui_dir=settings.ui_dir,
        )
