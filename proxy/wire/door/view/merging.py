"""Merges documents of several workers into the document of one scheduler with all partitions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from http import HTTPStatus
from itertools import chain
from typing import Any, Final, TypeAlias

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import Response

from .....model.configuration.reader import load
from .....model.configuration.schema import SchedulerConfig
from ....core.documents.clusters import WorkerDocument
from ....core.documents.monitoring import ManagedPartitionDocument
from ....core.health import HISTORY_MAX
from ....views.rest.handlers.monitoring import managers_document
from ....views.rest.handlers.questions import parameters_of
from ....views.rest.handlers.queues import config_response
from ....views.rest.responses import RestError, json_response
from ..workers import PartitionPlace
from .reading import AskedWorker, DoorReader, WorkerAnswers, full_name, noted, reader_of

Json: TypeAlias = "dict[str, Any]"
_MINUTE_NS: Final = 60 * 10**9


def worker_document(place: PartitionPlace) -> WorkerDocument:
    """Return the document of the place of a partition."""
    return {
        "rmID": place.rm_id,
        "partition": place.partition,
        "state": place.state.value,
        "since": place.since_ns,
        "reason": place.reason,
        "address": place.address,
        "restAddress": place.rest_address,
        "workerNumber": place.worker_number,
        "requestsWaiting": place.waiting,
    }


def by_partition(
    places: Sequence[PartitionPlace], documents: Iterable[Sequence[Json]], rm_key: str, name_key: str
) -> list[Json]:
    """Return the entries of all lists, in the order of the partitions; other entries come last."""
    order = {(place.rm_id, place.partition): number for number, place in enumerate(places)}
    entries = chain.from_iterable(documents)
    return sorted(entries, key=lambda each: order.get((each[rm_key], each[name_key]), len(order)))


def builds_of(lists: Iterable[Sequence[Json]]) -> list[dict[str, str]]:
    """Return the reports of resource managers about their programs, by resource manager."""
    found = {build["rmId"]: build for clusters in lists for each in clusters for build in _builds(each)}
    return [found[rm_id] for rm_id in sorted(found)]


def _builds(cluster: Json) -> Sequence[dict[str, str]]:
    return cluster.get("rmBuildInformation") or ()


def clusters(
    places: Sequence[PartitionPlace], found: Sequence[tuple[AskedWorker, Sequence[Json]]]
) -> list[Json]:
    """Return one entry for each partition, with the reports of all resource managers about their programs."""
    builds = builds_of(document for _, document in found)
    entries = {
        (place.rm_id, each["partition"]): each
        for worker, document in found
        for place in worker.places
        for each in document
        if each["partition"] == place.partition
    }
    keys = ((place.rm_id, place.partition) for place in places)
    return [{**entries[key], "rmBuildInformation": builds} for key in keys if key in entries]


def summed_history(histories: Sequence[Sequence[Json]], key: str) -> list[Json]:
    """Return the sums of histories, minute by minute, the oldest first.

    A worker without an entry in a minute counts like in the minute before, and as 0 before its first entry.

    Args:
        histories: The document of each worker.
        key: The key of the count, a number as a text.
    """
    times: dict[int, int] = {}
    for each in chain.from_iterable(histories):
        minute = each["timestamp"] // _MINUTE_NS
        times[minute] = max(times.get(minute, 0), each["timestamp"])
    totals = dict.fromkeys(sorted(times), 0)
    for history in histories:
        counts = {each["timestamp"] // _MINUTE_NS: int(each[key]) for each in history}
        count = 0
        for minute in totals:
            count = counts.get(minute, count)
            totals[minute] += count
    entries = [{"timestamp": times[minute], key: str(total)} for minute, total in totals.items()]
    return entries[-HISTORY_MAX:]


def health(found: Sequence[tuple[AskedWorker, Json]], of_workers: Json) -> Json:
    """Return the report over all workers.

    Args:
        found: The report of each worker.
        of_workers: The check that each partition has a worker.
    """
    kinds = dict.fromkeys(_kind(check) for _, report in found for check in report["HealthChecks"])
    checks = [_check(kind, found) for kind in kinds]
    checks.append(of_workers)
    return {"Healthy": all(check["Succeeded"] for check in checks), "HealthChecks": checks}


def _kind(check: Json) -> tuple[str, str]:
    """Return the identity of a check: some have the same name and check different things."""
    return check["Name"], check["Description"]


def _check(kind: tuple[str, str], found: Sequence[tuple[AskedWorker, Json]]) -> Json:
    """Return one check over all workers: with the messages of those that failed, otherwise of all."""
    said = [
        (worker.name, check)
        for worker, report in found
        for check in report["HealthChecks"]
        if _kind(check) == kind
    ]
    failed = [(worker, check) for worker, check in said if not check["Succeeded"]]
    texts = {check["DiagnosisMessage"] for _, check in failed or said}
    diagnosis = (
        texts.pop()
        if len(texts) == 1
        else "; ".join(f"{worker}: {check['DiagnosisMessage']}" for worker, check in failed or said)
    )
    return {**said[0][1], "Succeeded": not failed, "DiagnosisMessage": diagnosis}


def managed_partitions(
    rm_id: str, found: Sequence[tuple[AskedWorker, Sequence[Json]]]
) -> tuple[dict[str, str], list[ManagedPartitionDocument]]:
    """Return a resource manager's report about its program, and the contents of its partitions, by name."""
    own = [each for _, document in found for each in document if each["rmID"] == rm_id]
    build: dict[str, str] = next((each["buildInformation"] for each in own if each["buildInformation"]), {})
    partitions = [row for each in own for row in each["partitions"]]
    return build, sorted(partitions, key=lambda row: str(row["name"]))


def locks(found: Sequence[tuple[AskedWorker, Json]]) -> Json:
    """Return the graph of the locks of all workers: the counts of each order are added up."""
    first = found[0][1]
    if all(document["observed"] is None for _, document in found):
        return first
    counts: dict[tuple[str, str], int] = {}
    for _, document in found:
        for held, taken, count in document["observed"] or ():
            counts[held, taken] = counts.get((held, taken), 0) + count
    return {**first, "observed": [[held, taken, count] for (held, taken), count in counts.items()]}


def policies(found: Sequence[tuple[AskedWorker, Sequence[Json]]]) -> list[Json]:
    """Return the policies of all workers by name, with the sums of their figures."""
    merged: dict[str, Json] = {}
    for each in chain.from_iterable(document for _, document in found):
        other = merged.get(each["name"])
        merged[each["name"]] = each if other is None else _policy(other, each)
    return [merged[name] for name in sorted(merged)]


def _policy(one: Json, other: Json) -> Json:
    answers = one["answers"] + other["answers"]
    total_ns = sum(each["meanNs"] * each["answers"] for each in (one, other))
    failures = [each["lastFailure"] for each in (one, other) if "lastFailure" in each]
    last = {"lastFailure": max(failures, key=lambda each: each["at"])} if failures else {}
    return {
        **one,
        "answers": answers,
        "failures": one["failures"] + other["failures"],
        "meanNs": total_ns // max(answers, 1),
        "longestNs": max(one["longestNs"], other["longestNs"]),
        **last,
    }


def missing_workers(missing: Sequence[tuple[PartitionPlace, str]]) -> Json:
    """Return the check that each partition has a worker that answers."""
    texts = [why or f"partition {full_name(place)}: its worker does not answer" for place, why in missing]
    return {
        "Name": "Partitions without a worker",
        "Succeeded": not texts,
        "Description": "Check that each partition has a worker that answers",
        "DiagnosisMessage": "; ".join(texts) if texts else "Partitions without a worker: 0",
    }


async def _clusters(request: Request) -> Response:
    reader = reader_of(request)
    found, answers = await reader.documents(b"/ws/v1/clusters")
    return noted(json_response(clusters(reader.places(), found)), answers)


async def _partitions(request: Request) -> Response:
    """Return the partitions, each with its place."""
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
    """Return the report over all workers, even if none of them answers."""
    reader = reader_of(request)
    try:
        found, answers = await reader.documents(b"/ws/v1/scheduler/healthcheck")
    except RestError as error:
        found, answers = [], WorkerAnswers((), _all_missing(reader, error))
    return noted(json_response(health(found, missing_workers(answers.missing))), answers)


def _all_missing(reader: DoorReader, error: RestError) -> list[tuple[PartitionPlace, str]]:
    """Return all partitions as missing, each with the reason."""
    known = {full_name(place): why for place, why in reader.missing()}
    return [(place, known.get(full_name(place), error.message)) for place in reader.places()]


async def _managers(request: Request) -> Response:
    """Show all RMs of the door."""
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


async def _policies(request: Request) -> Response:
    """Show the policies of the workers, which all workers have; an empty list without a worker."""
    try:
        found, answers = await reader_of(request).documents(b"/ws/v1/policies")
    except RestError as error:
        found, answers = [], WorkerAnswers((), _all_missing(reader_of(request), error))
    return noted(json_response(policies(found)), answers)


async def _config(request: Request) -> Response:
    """Return the configuration of the first resource manager."""
    config, extra = await run_sync(effective_configuration, reader_of(request))
    return config_response(request, config or SchedulerConfig(), extra)


def effective_configuration(reader: DoorReader) -> tuple[SchedulerConfig | None, dict[str, str]]:
    """Return the configuration of the first resource manager, if any, and its extra configuration."""
    for place in reader.places():
        text = reader.door.configuration_text(place.rm_id)
        return _loaded(text), dict(reader.door.extra_configuration(place.rm_id).texts)
    return None, {}


@lru_cache(maxsize=1)
def _loaded(text: str) -> SchedulerConfig:
    """Return the configuration in a text; the last one is cached, since reading may take seconds."""
    return load(text)


LISTS: Final = {
    "/ws/v1/clusters": _clusters,
    "/ws/v1/partitions": _partitions,
    "/ws/v1/config": _config,
    "/ws/v1/scheduler/node-utilizations": _utilizations,
    "/ws/v1/scheduler/healthcheck": _health,
    "/ws/v1/policies": _policies,
    "/ws/v1/history/apps": _application_history,
    "/ws/v1/history/containers": _container_history,
    "/licorne/v1/workers": _workers,
    "/licorne/v1/managers": _managers,
    "/licorne/v1/locks": _locks,
}
"""The endpoints by their paths."""
