"""The lines above a table: the server, its partition, its pace and its health."""

from __future__ import annotations

from datetime import datetime

from ..terminal.tables import counted
from .quantities import short_quantity
from .reading import ServerReading, partition_name
from .tables import printable

__all__ = ["heading_lines", "health_lines", "health_text", "pace_text"]


def heading_lines(reading: ServerReading, resource: str, address: str, pace: str = "") -> list[str]:
    """Return two lines, and a third one if the resource manager of the partition is not there.

    Args:
        reading: What the server answered.
        resource: The type of resource that quantities are of.
        address: The address of the server.
        pace: How many allocations it makes, in words; left out if empty.
    """
    partition = reading.partition
    if partition is None:
        return [address, health_text(reading)]
    used = partition.capacity.used_capacity.get(resource, 0)
    whole = partition.capacity.capacity.get(resource)
    share = partition.capacity.utilization.get(resource, 0)
    first = (
        printable(f"{partition_name(partition, reading.partitions)} {partition.state}"),
        address,
        counted(partition.total_nodes, "node"),
        counted(partition.total_containers, "allocation"),
    )
    of = f"{short_quantity(resource, used)}/{short_quantity(resource, whole)} ({share} %)"
    second = (printable(f"{resource} {of}") if resource else "no resources", pace, health_text(reading))
    lines = ["  ".join(first), "  ".join(part for part in second if part)]
    manager = reading.manager
    if manager is not None and manager.state not in ("", "Running"):
        since = datetime.fromtimestamp(manager.since / 1e9).astimezone()
        text = f"RM {manager.rm_id} is {manager.state.lower()} since {since:%H:%M:%S}: {manager.reason}"
        lines.append(printable(text))
    return lines


def health_text(reading: ServerReading) -> str:
    """Return what the checks of the health found."""
    if reading.health is None:
        return "health unknown"
    if reading.health.healthy:
        return "healthy"
    failed = sum(not check.succeeded for check in reading.health.checks)
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
    checks = sorted(reading.health.checks if reading.health else (), key=lambda check: check.succeeded)
    return [
        health_text(reading),
        *(f"{'ok' if each.succeeded else 'FAILED'}: {each.name}: {each.diagnosis}" for each in checks),
    ]
