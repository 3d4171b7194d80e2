"""Texts: the lines above a table, the lines about one row, and a reading for pipes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from operator import itemgetter
from typing import Literal, assert_never

from rich.table import Table
from rich.text import Text

from ....model.configuration.durations import short_duration_text
from ...base.terminal.standard_output import counted, output_console, print_table, write_line
from ...core.documents.applications import AllocationDocument, ApplicationDocument
from ...core.documents.clusters import NodeDocument, PartitionDocument
from ...core.documents.explanations import BlockerLineDocument, SentencesDocument
from ...core.documents.queues import QueueDocument
from .reading import ServerReading, partition_name, worker_lines
from .tables import Cell, ViewTable, printable, short_quantity, short_resource, time_text
from .views import View

_LISTED_MAX = 200
"""How many asks or allocations of one thing are listed."""


def detail_lines(view: View, reading: ServerReading, table: ViewTable, key: str, now_ns: int) -> list[str]:
    """Return the lines about a row; for one that has gone, a line that reports it.

    Args:
        view: The view that the row is of.
        reading: The answers of the server.
        table: The table with the row.
        key: The key of the row.
        now_ns: The time that ages end at.
    """
    lines: Iterable[str] | None
    match view:
        case View.QUEUES:
            lines = next((_queue(each) for each in _queues(reading.queues) if each["queuename"] == key), None)
        case View.APPLICATIONS:
            found = (each for each in reading.applications if each["applicationID"] == key)
            lines = next((_application(each, now_ns) for each in found), None)
        case View.NODES:
            lines = next((_node(each) for each in reading.nodes if each["nodeID"] == key), None)
        case View.HEALTH:
            lines = health_lines(reading)
        case View.USERS | View.GROUPS | View.EVENTS | View.UTILIZATION:
            row = next((each for each in table.rows if each.key == key), None)
            pairs = zip(table.columns, row.cells, strict=True) if row else ()
            lines = [
                f"{column.heading}: {cell.value if isinstance(cell.value, str) else cell.text}"
                for column, cell in pairs
                if not column.is_bar
            ]
        case _:
            assert_never(view)
    return [printable(line) for line in lines or ["it is no longer there"]]


def explanation_lines(explanation: SentencesDocument) -> list[str]:
    """Return why an application waits: all reasons, each with its line of the configuration."""
    lines = ["", "why it waits"]
    if not any(explanation.get(key) for key in ("waiting", "blockers", "rejection")):
        lines.append("  nothing of it waits")
    if explanation.get("rejection", ""):
        lines.append(f"  rejected: {explanation.get('rejection', '')}")
    if explanation.get("draining", False):
        lines.append("  its queue is draining: what it has goes on, nothing new comes in")
    lines.extend(_blockers(explanation.get("blockers", []), "  "))
    for group in explanation.get("waiting", []):
        lines.append(f"  {group.get('text', '')}")
        lines.append(f"    {group.get('sentence', '')}")
        lines.extend(_blockers(group.get("blockers", []), "    "))
        lines.extend(f"    {text.strip()}" for text in group.get("nodes", []))
        if group.get("start", ""):
            lines.append(f"    {group.get('start', '')}")
    if explanation.get("more", 0):
        lines.append(f"  and {explanation.get('more', 0)} more groups of asks")
    if places := explanation.get("places", []):
        lines.extend(["its place in the orders", *(f"  {place.get('text', '')}" for place in places)])
    for victims in explanation.get("victims", []):
        lines.append(f"preemption for {victims.get('text', '')}: {victims.get('why', '')}")
        lines.extend(
            f"  {each.get('title', '')}, {each.get('why', '')}" for each in victims.get("victims", [])
        )
    return [printable(line) for line in lines]


def _blockers(blockers: Iterable[BlockerLineDocument], indent: str) -> Iterator[str]:
    for blocker in blockers:
        setting = blocker.get("setting")
        where = f" (line {setting.get('line', 0)}: {setting.get('text', '')})" if setting else ""
        yield f"{indent}{blocker.get('text', '')}{where}"
        yield from (f"{indent}  {lack.get('text', '')}" for lack in blocker.get("lacks", []))
        yield from (f"{indent}  to change: {change}" for change in blocker.get("changes", []))


def _queues(queue: QueueDocument | None) -> Iterator[QueueDocument]:
    """Yield a queue and all below it."""
    if queue is not None:
        yield queue
        for child in queue.get("children", []):
            yield from _queues(child)


def _queue(queue: QueueDocument) -> Iterator[str]:
    kind = "leaf" if queue.get("isLeaf", False) else "parent"
    made = "managed" if queue.get("isManaged", True) else "dynamic"
    yield f"queue {queue['queuename']}: {kind}, {queue.get('status', '')}, {made}"
    for heading, quantities in (
        ("used", queue.get("allocatedResource", {})),
        ("pending", queue.get("pendingResource", {})),
        ("guaranteed", queue.get("guaranteedResource", {})),
        ("maximum", queue.get("maxResource", {})),
        ("being preempted", queue.get("preemptingResource", {})),
        ("headroom", queue.get("headroom", {})),
    ):
        yield f"{heading}: {short_resource(quantities)}"
    limit = f" of {queue.get('maxRunningApps', 0)} at most" if queue.get("maxRunningApps", 0) else ""
    yield f"running applications: {queue.get('runningApps', 0)}{limit}"
    yield f"policy: {queue.get('sortingPolicy', '')}"
    yield from (f"property {name}: {value}" for name, value in sorted(queue.get("properties", {}).items()))


def _application(application: ApplicationDocument, now_ns: int) -> Iterator[str]:
    yield f"application {application['applicationID']}: {application.get('applicationState', '')}"
    yield f"queue: {application.get('queueName', '')}"
    groups = f", groups {', '.join(application.get('groups', []))}" if application.get("groups", []) else ""
    yield f"user: {application.get('user', '')}{groups}"
    yield f"used: {short_resource(application.get('usedResource', {}))}"
    yield f"pending: {short_resource(application.get('pendingResource', {}))}"
    if application.get("submissionTime", 0) > 0:
        age = short_duration_text(now_ns - application.get("submissionTime", 0))
        yield f"submitted: {time_text(application.get('submissionTime', 0))}, {age} ago"
    log = application.get("stateLog", [])
    states = [f"{each.get('applicationState', '')} {time_text(each.get('time', 0))}" for each in log]
    yield f"states: {', '.join(states) or '-'}"
    yield f"reservations: {', '.join(application.get('reservations', [])) or '-'}"
    if rejected := application.get("rejectedMessage"):
        yield f"rejected: {rejected}"
    asks = application.get("requests", [])
    for ask in asks[:_LISTED_MAX]:
        wanted, priority = short_resource(ask.get("resource", {})), ask.get("priority", "")
        required = ask.get("requiredNodeId", "")
        node = f", on node {required} alone" if required else ""
        yield f"ask {ask['allocationKey']}: {wanted}, priority {priority}{node}"
        for message in ask.get("allocationLog", []):
            yield f"  {message.get('message', '')} ({message.get('count', 0)} times)"
    yield from _left_out(len(asks), "asks")
    yield from _allocations(application.get("allocations", []), "on", "nodeId")


def _node(node: NodeDocument) -> Iterator[str]:
    taking = "takes work" if node.get("schedulable", True) else "drained: it takes nothing new"
    yield f"node {node['nodeID']} ({node.get('hostName', '') or 'no host name'}): {taking}"
    for heading, quantities in (
        ("capacity", node.get("capacity", {})),
        ("allocated", node.get("allocated", {})),
        ("occupied by others", node.get("occupied", {})),
        ("free", node.get("available", {})),
    ):
        yield f"{heading}: {short_resource(quantities)}"
    yield f"reserved for: {', '.join(node.get('reservations', [])) or '-'}"
    yield from (f"attribute {name}: {value}" for name, value in sorted(node.get("attributes", {}).items()))
    yield from _allocations(node.get("allocations", []), "of", "applicationId")


def _allocations(
    allocations: Sequence[AllocationDocument], word: str, other: Literal["nodeId", "applicationId"]
) -> Iterator[str]:
    for each in allocations[:_LISTED_MAX]:
        quantities = short_resource(each.get("resource", {}))
        yield f"allocation {each['allocationKey']} {word} {each.get(other, '')}: {quantities}"
    yield from _left_out(len(allocations), "allocations")


def _left_out(count: int, what: str) -> Iterator[str]:
    if count > _LISTED_MAX:
        yield f"and {count - _LISTED_MAX:,} more {what}"


def heading_lines(reading: ServerReading, resource: str, address: str, pace: str = "") -> list[str]:
    """Return two lines, and more if the resource manager is not there, or the server is a door.

    Args:
        reading: The answers of the server.
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
    if reading.waiting:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in reading.waiting)
        lines.append(printable(f"waiting: {reasons}"))
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


def print_as_text(reading: ServerReading, table: ViewTable, resource: str, address: str) -> None:
    """Print what a server is like and a table, without bars, each row in a line."""
    console = output_console()
    for line in heading_lines(reading, resource, address):
        console.print(Text(line), soft_wrap=True)
    if table.note:
        console.print(Text(table.note), soft_wrap=True)
        return
    places = [place for place, column in enumerate(table.columns) if not column.is_bar]
    shown = Table()
    for place in places:
        column = table.columns[place]
        shown.add_column(column.heading, justify="right" if column.is_number else "left")
    for row in table.rows:
        shown.add_row(*(Text(plain_text(row.cells[place])) for place in places))
    print_table(shown, console, plain=True)


def plain_text(cell: Cell) -> str:
    """Return the text of a cell without indentation: of a queue the whole path."""
    return printable(cell.value) if isinstance(cell.value, str) else cell.text


def print_as_json(reading: ServerReading, table: ViewTable, resource: str, address: str, view: str) -> None:
    """Print a JSON document; quantities are raw numbers of one type of resource, and ages in nanoseconds."""
    partition = reading.partition
    rows = [
        {
            column.key: cell.value
            for column, cell in zip(table.columns, row.cells, strict=True)
            if not column.is_bar
        }
        for row in table.rows
    ]
    document = {
        "address": address,
        "view": view,
        "partition": partition["name"] if partition else None,
        "state": partition.get("state", "") if partition else None,
        "nodes": partition.get("totalNodes", 0) if partition else 0,
        "allocations": partition.get("totalContainers", 0) if partition else 0,
        "healthy": reading.health["Healthy"] if reading.health else None,
        "resource": resource or None,
        "note": table.note or None,
        "rows": rows,
    }
    write_line(json.dumps(document, indent=2, ensure_ascii=False))
