"""The documents of a door that cross partitions: lists, sums and states."""

from __future__ import annotations

from functools import lru_cache
from http import HTTPStatus
from typing import Final

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import Response

from .....model.configuration.reader import load
from .....model.configuration.schema import SchedulerConfig
from ....views.rest.handlers.monitoring import managers_document
from ....views.rest.handlers.questions import parameters_of
from ....views.rest.handlers.queues import config_response
from ....views.rest.responses import RestError, json_response
from ..places import PartitionPlace
from .merging import (
    by_partition,
    clusters,
    health,
    locks,
    managed_partitions,
    missing_workers,
    summed_history,
    worker_document,
)
from .reading import DoorReader, WorkerAnswers, full_name, noted, reader_of


async def _clusters(request: Request) -> Response:
    reader = reader_of(request)
    found, answers = await reader.documents(b"/ws/v1/clusters")
    return noted(json_response(clusters(reader.places(), found)), answers)


async def _partitions(request: Request) -> Response:
    """Return the partitions, each with where it runs."""
    reader = reader_of(request)
    found, answers = await reader.documents(b"/ws/v1/partitions")
    places = reader.places()
    where = {(each.rm_id, each.partition): worker_document(each) for each in places}
    merged = by_partition(places, (document for _, document in found), "clusterId", "name")
    for each in merged:
        worker = where.get((each["clusterId"], each["name"]))
        if worker is not None:
            each["worker"] = worker
    return noted(json_response(merged), answers)


async def _workers(request: Request) -> Response:
    return json_response([worker_document(each) for each in reader_of(request).places()])


async def _utilizations(request: Request) -> Response:
    reader = reader_of(request)
    found, answers = await reader.documents(b"/ws/v1/scheduler/node-utilizations")
    merged = by_partition(reader.places(), (document for _, document in found), "clusterId", "partition")
    return noted(json_response(merged), answers)


async def _application_history(request: Request) -> Response:
    return await _history(request, b"/ws/v1/history/apps", "totalApplications")


async def _container_history(request: Request) -> Response:
    return await _history(request, b"/ws/v1/history/containers", "totalContainers")


async def _history(request: Request, target: bytes, key: str) -> Response:
    found, answers = await reader_of(request).documents(target)
    return noted(json_response(summed_history([document for _, document in found], key)), answers)


async def _health(request: Request) -> Response:
    """Return the report over all workers; it is one also while none of them answers."""
    reader = reader_of(request)
    try:
        found, answers = await reader.documents(b"/ws/v1/scheduler/healthcheck")
    except RestError as error:
        found, answers = [], WorkerAnswers((), _all_missing(reader, error))
    return noted(json_response(health(found, missing_workers(answers.missing))), answers)


def _all_missing(reader: DoorReader, error: RestError) -> list[tuple[PartitionPlace, str]]:
    """Return all partitions as missing, each with why."""
    known = {full_name(place): why for place, why in reader.missing()}
    return [(place, known.get(full_name(place), error.message)) for place in reader.places()]


async def _managers(request: Request) -> Response:
    """Show all RMs as the door knows them."""
    reader = reader_of(request)
    try:
        found, answers = await reader.documents(b"/licorne/v1/managers")
    except RestError as error:
        found, answers = [], WorkerAnswers((), _all_missing(reader, error))
    documents = managers_document(
        reader.door.resource_managers(),
        reader.door.callbacks_waiting,
        lambda rm_id: managed_partitions(rm_id, found),
    )
    return noted(json_response(documents), answers)


async def _locks(request: Request) -> Response:
    """Return the graph of the locks of the workers."""
    parameters_of(request)
    found, answers = await reader_of(request).documents(b"/licorne/v1/locks")
    if not found:
        raise RestError(HTTPStatus.NOT_FOUND, "there are no workers, whose locks these would be")
    return noted(json_response(locks(found)), answers)


async def _config(request: Request) -> Response:
    """Return the configuration of the first resource manager."""
    config, extra = await run_sync(effective_configuration, reader_of(request))
    return config_response(request, config or SchedulerConfig(), extra)


def effective_configuration(reader: DoorReader) -> tuple[SchedulerConfig | None, dict[str, str]]:
    """Return the configuration of the first resource manager, if there is one, and its extra one."""
    for place in reader.places():
        text = reader.door.configuration_text(place.rm_id)
        return _loaded(text), dict(reader.door.extra_configuration(place.rm_id).texts)
    return None, {}


@lru_cache(maxsize=1)
def _loaded(text: str) -> SchedulerConfig:
    """Return the configuration in a text that has been read before: it may take seconds."""
    return load(text)


LISTS: Final = {
    "/ws/v1/clusters": _clusters,
    "/ws/v1/partitions": _partitions,
    "/ws/v1/config": _config,
    "/ws/v1/scheduler/node-utilizations": _utilizations,
    "/ws/v1/scheduler/healthcheck": _health,
    "/ws/v1/history/apps": _application_history,
    "/ws/v1/history/containers": _container_history,
    "/licorne/v1/workers": _workers,
    "/licorne/v1/managers": _managers,
    "/licorne/v1/locks": _locks,
}
"""The endpoints by their paths."""
