"""Documents of several workers made one: each as one scheduler with all partitions would have it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, Final, TypeAlias

from ....core.documents.clusters import WorkerDocument
from ....core.documents.monitoring import ManagedPartitionDocument
from ....core.health.watch import HISTORY_MAX
from ..places import PartitionPlace
from .reading import AskedWorker, full_name

Json: TypeAlias = "dict[str, Any]"

_MINUTE_NS: Final = 60 * 10**9


def worker_document(place: PartitionPlace) -> WorkerDocument:
    """Return the document of where a partition runs."""
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
    """Return the entries of all lists, in the order of the partitions; those of others come last."""
    order = {(place.rm_id, place.partition): number for number, place in enumerate(places)}
    entries = chain.from_iterable(documents)
    return sorted(entries, key=lambda each: order.get((each[rm_key], each[name_key]), len(order)))


def builds_of(lists: Iterable[Sequence[Json]]) -> list[dict[str, str]]:
    """Return what each resource manager has said of its program, by resource manager."""
    found = {build["rmId"]: build for clusters in lists for each in clusters for build in _builds(each)}
    return [found[rm_id] for rm_id in sorted(found)]


def _builds(cluster: Json) -> Sequence[dict[str, str]]:
    return cluster.get("rmBuildInformation") or ()


def clusters(
    places: Sequence[PartitionPlace], found: Sequence[tuple[AskedWorker, Sequence[Json]]]
) -> list[Json]:
    """Return one entry a partition, each with what all resource managers have said of their programs."""
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

    A worker that has no entry in a minute counts as in the minute before, and as 0 before its first one.

    Args:
        histories: The document of each worker.
        key: What is counted, a number as a text.
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
    """Return what a check is known by: some have one name and check different things."""
    return check["Name"], check["Description"]


def _check(kind: tuple[str, str], found: Sequence[tuple[AskedWorker, Json]]) -> Json:
    """Return one check over all workers: with what those say that failed, or else all."""
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
    """Return what a resource manager has said of its program, and what its partitions have, by name."""
    own = [each for _, document in found for each in document if each["rmID"] == rm_id]
    build: dict[str, str] = next((each["buildInformation"] for each in own if each["buildInformation"]), {})
    partitions = [row for each in own for row in each["partitions"]]
    return build, sorted(partitions, key=lambda row: str(row["name"]))


def locks(found: Sequence[tuple[AskedWorker, Json]]) -> Json:
    """Return the graph of the locks of all workers: how often each order was observed is added up."""
    first = found[0][1]
    if all(document["observed"] is None for _, document in found):
        return first
    counts: dict[tuple[str, str], int] = {}
    for _, document in found:
        for held, taken, count in document["observed"] or ():
            counts[held, taken] = counts.get((held, taken), 0) + count
    return {**first, "observed": [[held, taken, count] for (held, taken), count in counts.items()]}


def missing_workers(missing: Sequence[tuple[PartitionPlace, str]]) -> Json:
    """Return the check that each partition has a worker that answers."""
    texts = [why or f"partition {full_name(place)}: its worker does not answer" for place, why in missing]
    return {
        "Name": "Partitions without a worker",
        "Succeeded": not texts,
        "Description": "Check that each partition has a worker that answers",
        "DiagnosisMessage": "; ".join(texts) if texts else "Partitions without a worker: 0",
    }
