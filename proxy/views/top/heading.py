"""The lines above a table: the server, its partition, its pace and its health."""

from __future__ import annotations

from datetime import datetime
from operator import itemgetter

from ...base.terminal.tables import counted
from ...core.documents.clusters import PartitionDocument
from .quantities import short_quantity
from .reading import ServerReading, partition_name, worker_lines
from .tables import printable


def heading_lines(reading: ServerReading, resource: str, address: str, pace: str = "") -> list[str]:
    """Return two lines, and more if the resource manager is not there, or the server is a door.

    Args:
        reading: What the server answered.
        resource: The type of resource that quantities are of.
        address: The address of the server.
        pace: How many allocations it makes, in words; left out if empty.
    """
    partition = reading.partition
    if partition is None:
        return [address, health_text(reading)]
    capacity = partition.get("capacity", {})
    used = capacity.get("usedCapacity", {}).get(resource, 0)
    whole = capacity.get("capacity", {}).get(resource)
    share = capacity.get("utilization", {}).get(resource, 0)
    first = (
        printable(f"{partition_name(partition, reading.partitions)} {partition.get('state', '')}"),
        address,
        counted(partition.get("totalNodes", 0), "node"),
        counted(partition.get("totalContainers", 0), "allocation"),
    )
    of = f"{short_quantity(resource, used)}/{short_quantity(resource, whole)} ({share} %)"
    second = (printable(f"{resource} {of}") if resource else "no resources", pace, health_text(reading))
    lines = ["  ".join(first), "  ".join(part for part in second if part)]
    manager = reading.manager
    if manager is not None and manager.get("state", "") not in ("", "Running"):
        since = datetime.fromtimestamp(manager.get("since", 0) / 1e9).astimezone()
        state, reason = manager.get("state", "").lower(), manager.get("reason", "")
        lines.append(printable(f"RM {manager.get('rmID', '')} is {state} since {since:%H:%M:%S}: {reason}"))
    return [*lines, *_worker_lines(reading, partition)]


def _worker_lines(reading: ServerReading, partition: PartitionDocument) -> list[str]:
    """Return where the partition runs behind a door, and which partitions no worker schedules."""
    own = (partition.get("clusterId", ""), partition["name"])
    lines = [
        f"on worker {each.get('address', '')}, number {each.get('workerNumber', 0)}, "
        f"{counted(each.get('requestsWaiting', 0), 'request')} waiting"
        for each in reading.workers
        if (each.get("rmID", ""), each.get("partition", "")) == own and each.get("state", "") == "Running"
    ]
    return [*map(printable, (*lines, *worker_lines(reading.workers)))]


def health_text(reading: ServerReading) -> str:
    """Return what the checks of the health found."""
    if reading.health is None:
        return "health unknown"
    if reading.health["Healthy"]:
        return "healthy"
    failed = sum(not check["Succeeded"] for check in reading.health.get("HealthChecks", []))
    return f"UNHEALTHY: {counted(failed, 'check')} failed"


def pace_text(before: ServerReading | None, now: ServerReading, seconds: float) -> str:
    """Return how many allocations a second were made between two readings, nothing if that is unknown.

    The server counts from its start: a lower count than before is that of another server.
    """
    if before is None or before.allocated is None or now.allocated is None or seconds <= 0:
        return ""
    made = now.allocated - before.allocated
    return f"{made / seconds:,.1f} allocations/s" if made >= 0 else ""


def health_lines(reading: ServerReading) -> list[str]:
    """Return all checks in words, those that failed first."""
    lines = [health_text(reading)]
    checks = reading.health.get("HealthChecks", []) if reading.health else ()
    for check in sorted(checks, key=itemgetter("Succeeded")):
        result = "ok" if check["Succeeded"] else "FAILED"
        lines.append(f"{result}: {check.get('Name', '')}: {check.get('DiagnosisMessage', '')}")
    return lines
