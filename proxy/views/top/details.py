"""All that is known about one row, as lines of text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, assert_never

from ....model.configuration.durations import short_duration_text
from ...core.documents.applications import AllocationDocument, ApplicationDocument
from ...core.documents.nodes import NodeDocument
from ...core.documents.queues import QueueDocument
from ...core.documents.sentences import BlockerLineDocument, SentencesDocument
from .heading import health_lines
from .quantities import short_resource, time_text
from .reading import ServerReading
from .tables import ViewTable, printable
from .views import View

_LISTED_MAX = 200
"""How many asks or allocations of one thing are listed."""


def detail_lines(view: View, reading: ServerReading, table: ViewTable, key: str, now_ns: int) -> list[str]:
    """Return the lines about a row; of one that has gone, a line that says so.

    Args:
        view: The view that the row is of.
        reading: What the server answered.
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
    if explanation.get("rejection", ""):
        lines.append(f"  rejected: {explanation.get('rejection', '')}")
    if explanation.get("draining", False):
        lines.append("  its queue is draining: what it has goes on, nothing new comes in")
    lines.extend(_blockers(explanation.get("blockers", []), "  "))
    for group in explanation.get("waiting", []):
        lines.append(f"  {group.get('text', '')}")
        lines.extend(_blockers(group.get("blockers", []), "    "))
        lines.extend(f"    {text.strip()}" for text in group.get("nodes", []))
        if group.get("start", ""):
            lines.append(f"    {group.get('start', '')}")
    if explanation.get("more", 0):
        lines.append(f"  and {explanation.get('more', 0)} more groups of asks")
    return [printable(line) for line in (lines if len(lines) > 2 else [*lines, "  nothing of it waits"])]


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
