"""What a door knows of its workers, and how their REST interfaces are asked."""

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
from ....core.scheduler.managers.manager_life import ManagerStatus
from ....views.rest.responses import RestError
from ...server.access import Address, read_address
from ..workers import LinkState, PartitionPlace
from .worker_client import HeaderFields, WorkerClient, WorkerSilentError

MISSING_HEADER: Final = "Licorne-Missing"
"""Names the partitions that a merged document does not have, since their workers did not answer."""
_MERGE_SECONDS: Final = 10.0
"""How long a worker may take for its part of a merged document."""


class ViewedDoor(Protocol):
    """What the view needs of a door."""

    def places(self) -> tuple[PartitionPlace, ...]:
        """Return where each partition is; those of the resource manager that registered first come first."""

    def resource_managers(self) -> tuple[ManagerStatus, ...]:
        """Return the state of each resource manager that has registered, sorted by id."""

    def callbacks_waiting(self, rm_id: str) -> int:
        """Return how many callbacks of a resource manager wait to be called; 0 for one that is not known."""

    def configuration_text(self, rm_id: str) -> str:
        """Return the text of the queues that a resource manager runs with, empty for one that is unknown."""

    def extra_configuration(self, rm_id: str) -> ExtraConfig:
        """Return the settings of a resource manager that are not in its queues."""


def full_name(place: PartitionPlace) -> str:
    """Return the name of a partition with its resource manager, `[rm]name`."""
    return f"[{place.rm_id}]{place.partition}"


class AskedWorker(NamedTuple):
    """A worker that can be asked: where its REST interface is, and the partitions that it has."""

    address: str
    places: tuple[PartitionPlace, ...]

    @property
    def name(self) -> str:
        """The names of its partitions: a worker that takes the place of a lost one has the same."""
        return ",".join(dict.fromkeys(place.partition for place in self.places))

    @property
    def token(self) -> str:
        """The bearer token that it alone requires; empty if it has none of its own."""
        return self.places[0].token


class Said(NamedTuple):
    """What one worker has answered."""

    worker: AskedWorker
    status: int
    content_type: str
    body: bytes

    def document(self) -> Any:
        """Return the document in the body."""
        return json.loads(self.body)

    def message(self) -> str:
        """Return the message of an error; of one that is no document the text."""
        try:
            return str(self.document()["message"])
        except (ValueError, TypeError, KeyError):
            return self.body.decode(errors="replace").strip()

    def response(self) -> Response:
        """Return the same answer to a reader of the door."""
        return Response(self.body, self.status, headers={"Content-Type": self.content_type})


class WorkerAnswers(NamedTuple):
    """What the workers have answered, and the partitions of those that have not, each with why."""

    said: Sequence[Said]
    missing: Sequence[tuple[PartitionPlace, str]]


@final
class DoorReader:
    """Finds the workers of partitions, and asks them; for the event loop.

    Args:
        door: The door.
        client: Asks the workers.
    """

    def __init__(self, door: ViewedDoor, client: WorkerClient) -> None:
        self.door = door
        self.client = client

    def places(self) -> list[PartitionPlace]:
        """Return where each partition is, in the order of one scheduler: stopped resource managers last."""
        stopped = {
            status.rm_id for status in self.door.resource_managers() if status.state is ManagerState.STOPPED
        }
        places = self.door.places()
        order = {rm_id: number for number, rm_id in enumerate(dict.fromkeys(each.rm_id for each in places))}
        return sorted(places, key=lambda each: (each.rm_id in stopped, order[each.rm_id], each.partition))

    def matching(self, rm_id: str | None, name: str | None) -> list[PartitionPlace]:
        """Return the partitions of a resource manager that have a name, short or full; `None` is any.

        Raises:
            RestError: There are partitions, but none of these.
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
        """Return the partitions that cannot be asked for now, each with why."""
        return _workers(self.places())[1]

    def worker_of(self, place: PartitionPlace) -> AskedWorker:
        """Return the worker of a partition.

        Raises:
            RestError: It cannot be asked now.
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
        """Ask the workers of partitions, of all unless said otherwise, each once and all at the same time.

        Raises:
            RestError: There are such partitions, and none of their workers answers.
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
        """Ask all workers for a document; one that refuses it counts as one that does not answer.

        Raises:
            RestError: There are partitions, and none of their workers gives the document.
        """
        answers = await self.ask(target)
        documents = [(each.worker, each.document()) for each in answers.said if each.status == HTTPStatus.OK]
        refused = [each for each in answers.said if each.status != HTTPStatus.OK]
        if refused and not documents:
            raise RestError(refused[0].status, refused[0].message())
        missing = [*answers.missing, *((place, "") for each in refused for place in each.worker.places)]
        return documents, WorkerAnswers(answers.said, missing)


def reader_of(request: Request) -> DoorReader:
    """Return what asks the workers for a request."""
    reader: DoorReader = request.app.state.door_reader
    return reader


def noted(response: Response, answers: WorkerAnswers) -> Response:
    """Return an answer that names the partitions that it does not have."""
    if answers.missing:
        names = dict.fromkeys(full_name(place) for place, _ in answers.missing)
        response.headers[MISSING_HEADER] = ", ".join(quote(name, safe="[]") for name in names)
    return response


def _workers(places: Iterable[PartitionPlace]) -> tuple[list[AskedWorker], list[tuple[PartitionPlace, str]]]:
    """Return the workers of partitions, and the partitions that cannot be asked for, with why."""
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
    """Return why a partition cannot be asked now, the empty text if it can."""
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
    """Return where a worker's REST interface is reached: one that listens everywhere, at its own host."""
    rest = read_address(place.rest_address)
    try:
        if not ipaddress.ip_address(rest.host).is_unspecified:
            return place.rest_address
    except ValueError:
        return place.rest_address
    return str(Address(read_address(place.address).host, rest.port))
