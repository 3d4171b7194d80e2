"""All that is known about one row, as lines of text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import assert_never

from ...model.configuration.durations import short_duration_text
from .documents import (
    BlockerDocument,
    ExplanationDocument,
    NodeDocument,
    ReadApplication,
    ReadQueue,
)
from .heading import health_lines
from .quantities import short_resource, time_text
from .reading import ServerReading
from .tables import ViewTable, printable
from .views import View

__all__ = ["detail_lines", "explanation_lines"]

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
            lines = next((_queue(each) for each in _queues(reading.queues) if each.queuename == key), None)
        case View.APPLICATIONS:
            found = (each for each in reading.applications if each.application_id == key)
            lines = next((_application(each, now_ns) for each in found), None)
        case View.NODES:
            lines = next((_node(each) for each in reading.nodes if each.node_id == key), None)
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


def explanation_lines(explanation: ExplanationDocument) -> list[str]:
    """Return why an application waits: all reasons, each with its line of the configuration."""
    lines = ["", "why it waits"]
    if explanation.rejection:
        lines.append(f"  rejected: {explanation.rejection}")
    if explanation.draining:
        lines.append("  its queue is draining: what it has goes on, nothing new comes in")
    lines.extend(_blockers(explanation.blockers, "  "))
    for group in explanation.waiting:
        lines.append(f"  {group.text}")
        lines.extend(_blockers(group.blockers, "    "))
        lines.extend(f"    {text.strip()}" for text in group.nodes)
    if explanation.more:
        lines.append(f"  and {explanation.more} more groups of asks")
    return [printable(line) for line in (lines if len(lines) > 2 else [*lines, "  nothing of it waits"])]


def _blockers(blockers: Iterable[BlockerDocument], indent: str) -> Iterator[str]:
    for blocker in blockers:
        setting = blocker.setting
        where = f" (line {setting.line}: {setting.text})" if setting else ""
        yield f"{indent}{blocker.text}{where}"
        yield from (f"{indent}  {lack.text}" for lack in blocker.lacks)
        yield from (f"{indent}  to change: {change}" for change in blocker.changes)


def _queues(queue: ReadQueue | None) -> Iterator[ReadQueue]:
    """Yield a queue and all below it."""
    if queue is not None:
        yield queue
        for child in queue.children:
            yield from _queues(child)


def _queue(queue: ReadQueue) -> Iterator[str]:
    kind = "leaf" if queue.is_leaf else "parent"
    yield f"queue {queue.queuename}: {kind}, {queue.status}, {'managed' if queue.is_managed else 'dynamic'}"
    for heading, quantities in (
        ("used", queue.allocated_resource),
        ("pending", queue.pending_resource),
        ("guaranteed", queue.guaranteed_resource),
        ("maximum", queue.max_resource),
        ("being preempted", queue.preempting_resource),
        ("headroom", queue.headroom),
    ):
        yield f"{heading}: {short_resource(quantities)}"
    limit = f" of {queue.max_running_apps} at most" if queue.max_running_apps else ""
    yield f"running applications: {queue.running_apps}{limit}"
    yield f"policy: {queue.sorting_policy}"
    yield from (f"property {name}: {value}" for name, value in sorted(queue.properties.items()))


def _application(application: ReadApplication, now_ns: int) -> Iterator[str]:
    yield f"application {application.application_id}: {application.application_state}"
    yield f"queue: {application.queue_name}"
    groups = f", groups {', '.join(application.groups)}" if application.groups else ""
    yield f"user: {application.user}{groups}"
    yield f"used: {short_resource(application.used_resource)}"
    yield f"pending: {short_resource(application.pending_resource)}"
    if application.submission_time > 0:
        age = short_duration_text(now_ns - application.submission_time)
        yield f"submitted: {time_text(application.submission_time)}, {age} ago"
    states = (f"{each.application_state} {time_text(each.time)}" for each in application.state_log)
    yield f"states: {', '.join(states) or '-'}"
    yield f"reservations: {', '.join(application.reservations) or '-'}"
    if application.rejected_message:
        yield f"rejected: {application.rejected_message}"
    for ask in application.requests[:_LISTED_MAX]:
        node = f", on node {ask.required_node_id} alone" if ask.required_node_id else ""
        yield f"ask {ask.allocation_key}: {short_resource(ask.resource)}, priority {ask.priority}{node}"
        yield from (f"  {entry.message} ({entry.count} times)" for entry in ask.allocation_log)
    yield from _left_out(len(application.requests), "asks")
    for each in application.allocations[:_LISTED_MAX]:
        yield f"allocation {each.allocation_key} on {each.node_id}: {short_resource(each.resource)}"
    yield from _left_out(len(application.allocations), "allocations")


def _node(node: NodeDocument) -> Iterator[str]:
    taking = "takes work" if node.schedulable else "drained: it takes nothing new"
    yield f"node {node.node_id} ({node.host_name or 'no host name'}): {taking}"
    for heading, quantities in (
        ("capacity", node.capacity),
        ("allocated", node.allocated),
        ("occupied by others", node.occupied),
        ("free", node.available),
    ):
        yield f"{heading}: {short_resource(quantities)}"
    yield f"reserved for: {', '.join(node.reservations) or '-'}"
    yield from (f"attribute {name}: {value}" for name, value in sorted(node.attributes.items()))
    for each in node.allocations[:_LISTED_MAX]:
        yield f"allocation {each.allocation_key} of {each.application_id}: {short_resource(each.resource)}"
    yield from _left_out(len(node.allocations), "allocations")


def _left_out(count: int, what: str) -> Iterator[str]:
    if count > _LISTED_MAX:
        yield f"and {count - _LISTED_MAX:,} more {what}"
