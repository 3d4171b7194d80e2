"""The state of the workers of a door, and the requests to their REST interfaces."""

from __future__ import annotations

import asyncio
import ipaddress
import json
from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import Any, Final, NamedTuple, Protocol, final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from .....model.configuration.extra import ExtraConfig
from .....model.values.states import ManagerState
from ....core.documents.declarations import time_text
from ....core.metrics.figures import Metrics
from ....core.scheduler.managers.manager_life import ManagerStatus
from ....views.rest.responses import RestError
from ...server.access import Address, read_address
from ..workers import LinkState, PartitionPlace
from .worker_client import HeaderFields, WorkerClient, WorkerSilentError

MISSING_HEADER: Final = "Licorne-Missing"
"""Names the partitions that are missing in a merged document, since their workers did not answer."""
_MERGE_SECONDS: Final = 10.0
"""The time limit for a worker's part of a merged document."""


class ViewedDoor(Protocol):
    """The interface of a door for the view."""

    metrics: Metrics
    """The counts of the door itself."""

    def places(self) -> tuple[PartitionPlace, ...]:
        """Return the place of each partition, in the order of the registrations of resource managers."""

    def resource_managers(self) -> tuple[ManagerStatus, ...]:
        """Return the state of each registered resource manager, sorted by id."""

    def callbacks_waiting(self, rm_id: str) -> int:
        """Return the number of waiting callbacks of a resource manager; 0 if it is unknown."""

    def configuration_text(self, rm_id: str) -> str:
        """Return the text of the queues of a resource manager, empty if it is unknown."""

    def extra_configuration(self, rm_id: str) -> ExtraConfig:
        """Return the settings of a resource manager that are not in its queues."""


def full_name(place: PartitionPlace) -> str:
    """Return the name of a partition with its resource manager, `[rm]name`."""
    return f"[{place.rm_id}]{place.partition}"


class AskedWorker(NamedTuple):
    """A worker that can be asked: the address of its REST interface, and its partitions."""

    address: str
    places: tuple[PartitionPlace, ...]

    @property
    def name(self) -> str:
        """The names of its partitions: a worker that replaces a lost one has the same name."""
        return ",".join(dict.fromkeys(place.partition for place in self.places))

    @property
    def token(self) -> str:
        """The bearer token that only this worker requires; empty without one."""
        return self.places[0].token


class Said(NamedTuple):
    """The answer of one worker."""

    worker: AskedWorker
    status: int
    content_type: str
    body: bytes

    def document(self) -> Any:
        """Return the document in the body."""
        return json.loads(self.body)

    def message(self) -> str:
        """Return the message of an error; the text of an error that is not a document."""
        try:
            return str(self.document()["message"])
        except (ValueError, TypeError, KeyError):
            return self.body.decode(errors="replace").strip()

    def response(self) -> Response:
        """Return the same answer for a reader of the door."""
        return Response(self.body, self.status, headers={"Content-Type": self.content_type})


class WorkerAnswers(NamedTuple):
    """The answers of the workers, and the partitions without an answer, each with the reason."""

    said: Sequence[Said]
    missing: Sequence[tuple[PartitionPlace, str]]


@final
class DoorReader:
    """Finds the workers of partitions, and asks them; for the event loop.

    Args:
        door: The door.
        client: The client for the workers.
    """

    def __init__(self, door: ViewedDoor, client: WorkerClient) -> None:
        self.door = door
        self.client = client

    def places(self) -> list[PartitionPlace]:
        """Return the place of each partition, in the order of a scheduler: stopped resource managers last."""
        stopped = {
            status.rm_id for status in self.door.resource_managers() if status.state is ManagerState.STOPPED
        }
        places = self.door.places()
        order = {rm_id: number for number, rm_id in enumerate(dict.fromkeys(each.rm_id for each in places))}
        return sorted(places, key=lambda each: (each.rm_id in stopped, order[each.rm_id], each.partition))

    def matching(self, rm_id: str | None, name: str | None) -> list[PartitionPlace]:
        """Return the partitions of a resource manager with a name, short or full; `None` matches any.

        Raises:
            RestError: Partitions exist, but none of them matches.
        """
        places = self.places()
        found = [
            each
            for each in places
            if rm_id in (None, each.rm_id) and name in (None, each.partition, full_name(each))
        ]
        if places and not found:
            known = ", ".join(full_name(each) for each in places if rm_id in (None, each.rm_id)) or "none"
            wanted = f"[{'any' if rm_id is None else rm_id}]{'any' if name is None else name}"
            text = f"there is no partition {wanted}; the partitions are: {known}"
            raise RestError(HTTPStatus.NOT_FOUND, text)
        return found

    def workers(self) -> list[AskedWorker]:
        """Return the workers that can be asked now."""
        return _workers(self.places())[0]

    def missing(self) -> list[tuple[PartitionPlace, str]]:
        """Return the partitions that cannot be asked now, each with the reason."""
        return _workers(self.places())[1]

    def worker_of(self, place: PartitionPlace) -> AskedWorker:
        """Return the worker of a partition.

        Raises:
            RestError: The worker cannot be asked now.
        """
        refusal = _refusal(place)
        if refusal:
            raise RestError(HTTPStatus.SERVICE_UNAVAILABLE, refusal)
        return AskedWorker(_reached(place), (place,))

    async def ask(
        self,
        target: bytes,
        places: Iterable[PartitionPlace] | None = None,
        *,
        method: str = "GET",
        headers: HeaderFields = (),
        body: bytes = b"",
    ) -> WorkerAnswers:
        """Ask the workers of partitions, by default of all, each once and all at the same time.

        Raises:
            RestError: Such partitions exist, but no worker of them answers.
        """
        wanted = self.places() if places is None else [*places]
        workers, missing = _workers(wanted)

        async def one(worker: AskedWorker) -> Said | str:
            try:
                answer = await self.client.ask(
                    worker.address,
                    target,
                    method=method,
                    headers=headers,
                    body=body,
                    token=worker.token,
                    seconds=_MERGE_SECONDS,
                )
                content_type = answer.header(b"content-type").decode("latin-1")
                return Said(worker, answer.status, content_type, await answer.body())
            except WorkerSilentError as error:
                return str(error)

        said = []
        for worker, found in zip(workers, await asyncio.gather(*map(one, workers)), strict=True):
            if isinstance(found, Said):
                said.append(found)
            else:
                missing += [(place, found) for place in worker.places]
        if missing and not said:
            raise RestError(HTTPStatus.SERVICE_UNAVAILABLE, missing[0][1])
        return WorkerAnswers(said, missing)

    async def documents(self, target: bytes) -> tuple[list[tuple[AskedWorker, Any]], WorkerAnswers]:
        """Ask all workers for a document; a refusal counts as a missing answer.

        Raises:
            RestError: Partitions exist, but no worker of them gives the document.
        """
        answers = await self.ask(target)
        documents = [(each.worker, each.document()) for each in answers.said if each.status == HTTPStatus.OK]
        refused = [each for each in answers.said if each.status != HTTPStatus.OK]
        if refused and not documents:
            raise RestError(refused[0].status, refused[0].message())
        missing = [*answers.missing, *((place, "") for each in refused for place in each.worker.places)]
        return documents, WorkerAnswers(answers.said, missing)


def reader_of(request: Request) -> DoorReader:
    """Return the reader of the door for a request."""
    reader: DoorReader = request.app.state.door_reader
    return reader


def noted(response: Response, answers: WorkerAnswers) -> Response:
    """Return an answer that names its missing partitions."""
    if answers.missing:
        names = dict.fromkeys(full_name(place) for place, _ in answers.missing)
        response.headers[MISSING_HEADER] = ", ".join(quote(name, safe="[]") for name in names)
    return response


def _workers(places: Iterable[PartitionPlace]) -> tuple[list[AskedWorker], list[tuple[PartitionPlace, str]]]:
    """Return the workers of partitions, and the partitions that cannot be asked, with the reasons."""
    found: dict[str, list[PartitionPlace]] = {}
    missing = []
    for place in places:
        refusal = _refusal(place)
        if refusal:
            missing.append((place, refusal))
        else:
            found.setdefault(_reached(place), []).append(place)
    return [AskedWorker(address, tuple(own)) for address, own in found.items()], missing


def _refusal(place: PartitionPlace) -> str:
    """Return the reason why a partition cannot be asked now, the empty text if it can."""
    since = f"since {time_text(place.since_ns)}"
    why = f": {place.reason}" if place.reason else ""
    match place.state:
        case LinkState.STARTING:
            return f"partition {full_name(place)} has no worker {since}{why}"
        case LinkState.RECOVERING:
            return f"partition {full_name(place)} is being recovered {since}{why}"
        case LinkState.RUNNING | LinkState.CLOSED if place.rest_address:
            return ""
        case LinkState.RUNNING:
            return f"partition {full_name(place)}: its worker at {place.address} has no REST interface"
        case LinkState.CLOSED:
            return f"partition {full_name(place)} has ended {since}{why}"


def _reached(place: PartitionPlace) -> str:
    """Return the address of a worker's REST interface; one that listens everywhere is at its own host."""
    rest = read_address(place.rest_address)
    try:
        if not ipaddress.ip_address(rest.host).is_unspecified:
            return place.rest_address
    except ValueError:
        return place.rest_address
    return str(Address(read_address(place.address).host, rest.port))
