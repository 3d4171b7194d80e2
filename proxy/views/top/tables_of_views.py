"""The table of a view, made of a reading and of what a user has chosen."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Final, assert_never, final

from ....model.configuration.durations import short_duration_text
from ...core.documents.applications import ApplicationDocument
from ...core.documents.clusters import NodeDocument, UtilizationsDocument
from ...core.documents.monitoring import TYPE_WORDS, EventDocument, HealthDocument, change_text
from ...core.documents.queues import QueueDocument, UsageDocument
from .reading import ServerReading
from .tables import Bar, Cell, Column, ViewRow, ViewTable, name_cell, percent, quantity_cell, time_text
from .views import View

_QUEUE_COLUMNS: Final = (
    Column("queue", "queue"),
    Column("bar", "use", is_bar=True),
    Column("used", "used", 7, is_number=True),
    Column("guaranteed", "guarant", 7, is_number=True),
    Column("maximum", "maximum", 7, is_number=True),
    Column("pending", "pending", 7, is_number=True),
    Column("applications", "apps", 7, is_number=True),
    Column("status", "status", 8, least_screen=100),
    Column("policy", "policy", 8, least_screen=110),
)


def queue_table(root: QueueDocument, resource: str, folded: Collection[str] = ()) -> ViewTable:
    """Return the rows of a tree of queues, those below a queue after it.

    Args:
        root: The queue at the top.
        resource: The type of resource of the quantities.
        folded: The paths of queues whose children are left out.
    """
    return ViewTable(_QUEUE_COLUMNS, tuple(_queue_rows(root, resource, folded, 0, None)))


def _queue_rows(
    queue: QueueDocument, resource: str, folded: Collection[str], depth: int, above: int | None
) -> Iterator[ViewRow]:
    own = queue.get("maxResource", {}).get(resource)
    # Without its own maximum a queue can use as much as the queue above it.
    maximum = above if own is None else own if above is None else min(own, above)
    used = queue.get("allocatedResource", {}).get(resource, 0)
    pending = queue.get("pendingResource", {}).get(resource, 0)
    guaranteed = queue.get("guaranteedResource", {}).get(resource)
    is_folded = queue["queuename"] in folded and bool(queue.get("children", []))
    name = queue["queuename"].rpartition(".")[2]
    mark = "+ " if is_folded else ""
    running = (
        f"{queue.get('runningApps', 0)}/{queue.get('maxRunningApps', 0)}"
        if queue.get("maxRunningApps", 0)
        else f"{queue.get('runningApps', 0)}"
    )
    yield ViewRow(
        queue["queuename"],
        (
            name_cell(queue["queuename"], f"{'  ' * depth}{mark}{name}"),
            Cell(None, "", Bar(used, pending, guaranteed, maximum)),
            quantity_cell(resource, used),
            quantity_cell(resource, guaranteed),
            quantity_cell(resource, own),
            quantity_cell(resource, pending),
            Cell(queue.get("runningApps", 0), running),
            name_cell(queue.get("status", "")),
            name_cell(queue.get("sortingPolicy", "")),
        ),
    )
    if not is_folded:
        for child in sorted(queue.get("children", []), key=lambda child: child["queuename"]):
            yield from _queue_rows(child, resource, folded, depth + 1, maximum)


_NODE_COLUMNS: Final = (
    Column("node", "node"),
    Column("bar", "use", is_bar=True),
    Column("percent", "use %", 6, is_number=True),
    Column("used", "used", 7, is_number=True),
    Column("capacity", "capac.", 7, is_number=True),
    Column("available", "free", 7, is_number=True),
    Column("allocations", "allocs", 6, is_number=True),
    Column("state", "state", 8),
)


def node_table(nodes: Iterable[NodeDocument], resource: str) -> ViewTable:
    """Return a row for each node, by name; the quantities are of one type of resource."""
    return ViewTable(
        _NODE_COLUMNS,
        tuple(_node_row(node, resource) for node in sorted(nodes, key=lambda node: node["nodeID"])),
    )


def _node_row(node: NodeDocument, resource: str) -> ViewRow:
    used = node.get("allocated", {}).get(resource, 0) + node.get("occupied", {}).get(resource, 0)
    capacity = node.get("capacity", {}).get(resource, 0)
    share = percent(used, capacity)
    state = "reserved" if node.get("isReserved", False) else "ready"
    return ViewRow(
        node["nodeID"],
        (
            name_cell(node["nodeID"]),
            Cell(None, "", Bar(used, maximum=capacity)),
            Cell(share, "-" if share is None else str(share)),
            quantity_cell(resource, used),
            quantity_cell(resource, capacity),
            quantity_cell(resource, node.get("available", {}).get(resource, 0)),
            Cell(len(node.get("allocations", [])), str(len(node.get("allocations", [])))),
            name_cell(state) if node.get("schedulable", True) else Cell("drained", "drained", style="red"),
        ),
    )


_EVENT_COLUMNS: Final = (
    Column("id", "id", 8, is_number=True),
    Column("time", "time", 8),
    Column("type", "about", 11),
    Column("object", "object"),
    Column("reference", "reference", least_screen=100),
    Column("message", "what"),
)


def event_table(events: Iterable[tuple[int, EventDocument]]) -> ViewTable:
    """Return a row for each event with its id, the highest id first."""
    return ViewTable(
        _EVENT_COLUMNS, tuple(_event_row(*each) for each in sorted(events, key=lambda each: -each[0]))
    )


def _event_row(event_id: int, event: EventDocument) -> ViewRow:
    what = ": ".join(part for part in (change_text(event), event.get("message", "")) if part)
    return ViewRow(
        str(event_id),
        (
            Cell(event_id, str(event_id)),
            Cell(event.get("timestampNano", 0), time_text(event.get("timestampNano", 0))),
            name_cell(TYPE_WORDS.get(event.get("type", 0), str(event.get("type", 0)))),
            name_cell(event.get("objectID", "")),
            name_cell(event.get("referenceID", "")),
            name_cell(what),
        ),
    )


def usage_table(owners: Iterable[tuple[str, UsageDocument]], resource: str, heading: str) -> ViewTable:
    """Return a row for each user or group and queue; the quantities are of one type of resource.

    A queue in which neither something runs nor a limit is set has no row, but each user or group has one.

    Args:
        owners: Users or groups: their names, and what they use.
        resource: The type of resource.
        heading: The heading of their names.
    """
    columns = (
        Column("name", heading, 16),
        Column("queue", "queue"),
        Column("bar", "use of limit", is_bar=True),
        Column("used", "used", 7, is_number=True),
        Column("maximum", "limit", 7, is_number=True),
        Column("applications", "apps", 7, is_number=True),
    )
    named = sorted(owners, key=itemgetter(0))
    return ViewTable(columns, tuple(row for name, usage in named for row in _rows(name, usage, resource, 0)))


def _rows(name: str, usage: UsageDocument, resource: str, depth: int) -> Iterator[ViewRow]:
    used = usage.get("resourceUsage", {}).get(resource, 0)
    limit, most = usage.get("maxResources", {}), usage.get("maxApplications", 0)
    maximum = limit.get(resource)
    running = len(usage.get("runningApplications", []))
    full = maximum is not None and used >= maximum
    apps_full = 0 < most <= running
    if depth == 0 or running or used or limit or most:
        apps = f"{running}/{most}" if most else str(running)
        yield ViewRow(
            f"{name}\n{usage['queuePath']}",
            (
                name_cell(name),
                name_cell(usage["queuePath"], f"{'  ' * depth}{usage['queuePath'].rpartition('.')[2]}"),
                # Without a limit there is nothing that a bar could be read against.
                Cell(None, "", Bar(used, maximum=maximum) if maximum is not None else None),
                quantity_cell(resource, used, style=_FULL if full else ""),
                quantity_cell(resource, maximum),
                Cell(running, apps, style=_FULL if apps_full else ""),
            ),
        )
    for child in sorted(usage.get("children", []), key=lambda child: child["queuePath"]):
        yield from _rows(name, child, resource, depth + 1)


_FULL: Final = "bold red"
_CHECKS: Final = (
    Column("check", "check", 32),
    Column("result", "result", 7),
    Column("diagnosis", "what it found"),
)
_UTILIZATION: Final = (
    Column("type", "type", 20),
    Column("bucket", "used", 9),
    Column("nodes", "nodes", 6, is_number=True),
    Column("bar", "share of nodes", is_bar=True),
)


def health_table(health: HealthDocument) -> ViewTable:
    """Return a row for each check, in the order of the server; names may stand twice."""
    rows = []
    for number, check in enumerate(health.get("HealthChecks", [])):
        result = Cell("ok", "ok") if check["Succeeded"] else Cell("failed", "failed", style="bold red")
        rows.append(
            ViewRow(
                str(number),
                (name_cell(check.get("Name", "")), result, name_cell(check.get("DiagnosisMessage", ""))),
            )
        )
    return ViewTable(_CHECKS, tuple(rows))


def utilization_table(document: UtilizationsDocument | None) -> ViewTable:
    """Return a row for each type of resource and tenth of use, with how many nodes use as much."""
    rows = []
    for kind in document.get("utilizations", []) if document else ():
        total = sum(bucket.get("numOfNodes", 0) for bucket in kind.get("utilization", []))
        for bucket in kind.get("utilization", []):
            count = bucket.get("numOfNodes", 0)
            cells = (
                name_cell(kind.get("type", "")),
                name_cell(bucket["bucketName"]),
                Cell(count, str(count)),
                Cell(None, "", Bar(count, maximum=total)),
            )
            rows.append(ViewRow(f"{kind.get('type', '')}\n{bucket['bucketName']}", cells))
    return ViewTable(_UTILIZATION, tuple(rows))


_APPLICATION_COLUMNS: Final = (
    Column("application", "application"),
    Column("state", "state", 10),
    Column("queue", "queue"),
    Column("user", "user", 9),
    Column("used", "used", 7, is_number=True),
    Column("pending", "pending", 7, is_number=True),
    Column("asks", "asks", 5, is_number=True),
    Column("age", "age", 7, is_number=True),
    Column("why", "why it waits", least_screen=110),
)


def application_table(
    applications: Iterable[ApplicationDocument], resource: str, now_ns: int, reasons: Mapping[str, str]
) -> ViewTable:
    """Return a row for each application, the oldest first.

    Args:
        applications: The applications.
        resource: The type of resource that the quantities are of.
        now_ns: The time that ages end at.
        reasons: Why applications wait, in few words; the others have the message that was noted most often.
    """
    oldest_first = sorted(
        applications, key=lambda each: (each.get("submissionTime", 0), each["applicationID"])
    )
    return ViewTable(
        _APPLICATION_COLUMNS,
        tuple(_application_row(each, resource, now_ns, reasons) for each in oldest_first),
    )


def foremost_message(application: ApplicationDocument) -> str:
    """Return the message that its asks have most often; of equal ones the first in their order."""
    counts: dict[str, int] = {}
    for ask in application.get("requests", []):
        for entry in ask.get("allocationLog", []):
            counts[entry.get("message", "")] = counts.get(entry.get("message", ""), 0) + entry.get("count", 0)
    return min(counts, key=lambda message: (-counts[message], message), default="")


def _application_row(
    application: ApplicationDocument, resource: str, now_ns: int, reasons: Mapping[str, str]
) -> ViewRow:
    submitted = application.get("submissionTime", 0)
    age_ns = max(0, now_ns - submitted) if submitted > 0 else None
    waiting = len(application.get("requests", []))
    return ViewRow(
        application["applicationID"],
        (
            name_cell(application["applicationID"]),
            name_cell(application.get("applicationState", "")),
            name_cell(application.get("queueName", "")),
            name_cell(application.get("user", "")),
            quantity_cell(resource, application.get("usedResource", {}).get(resource, 0)),
            quantity_cell(resource, application.get("pendingResource", {}).get(resource, 0)),
            Cell(waiting, str(waiting)),
            Cell(age_ns, "-" if age_ns is None else short_duration_text(age_ns)),
            name_cell(reasons.get(application["applicationID"]) or foremost_message(application)),
        ),
    )


def table_of(
    view: View, reading: ServerReading, resource: str, now_ns: int, folded: Collection[str] = ()
) -> ViewTable:
    """Return the table of a view.

    Args:
        view: The view; the reading is one for it.
        reading: The answers of the server.
        resource: The type of resource that quantities are of.
        now_ns: The time that ages end at.
        folded: The paths of queues whose children are left out.
    """
    if reading.missing:
        return ViewTable((), note=reading.missing)
    table = _table(view, reading, resource, now_ns, folded)
    return table if table.rows else replace(table, note=f"no {view.value}")


def _table(
    view: View, reading: ServerReading, resource: str, now_ns: int, folded: Collection[str]
) -> ViewTable:
    match view:
        case View.QUEUES:
            return queue_table(reading.queues, resource, folded) if reading.queues else ViewTable(())
        case View.APPLICATIONS:
            return application_table(reading.applications, resource, now_ns, reading.reasons)
        case View.NODES:
            return node_table(reading.nodes, resource)
        case View.USERS | View.GROUPS:
            return usage_table(reading.owners, resource, view.value.removesuffix("s"))
        case View.EVENTS:
            return event_table(reading.events)
        case View.HEALTH:
            return health_table(reading.health) if reading.health else ViewTable(())
        case View.UTILIZATION:
            return utilization_table(reading.utilization())
        case _:
            assert_never(view)


@final
@dataclass(frozen=True, slots=True)
class SortOrder:
    """A column to sort by, and the direction."""

    key: str
    descending: bool

    def reversed(self) -> SortOrder:
        """Return the other direction."""
        return SortOrder(self.key, not self.descending)


@final
@dataclass(slots=True)
class ScreenState:
    """The choices of a user; each view has its own order and filter."""

    view: View = View.QUEUES
    partition: str | None = None
    resource: str | None = None
    orders: dict[View, SortOrder] = field(default_factory=dict)
    filters: dict[View, str] = field(default_factory=dict)
    folded: set[str] = field(default_factory=set)

    @property
    def filter(self) -> str:
        """The filter of the view, empty without one."""
        return self.filters.get(self.view, "")

    def table(self, reading: ServerReading, now_ns: int) -> ViewTable:
        """Return the table of a reading with the columns, order and filter of the user."""
        folded = () if self.filter else self.folded  # a filter searches everything
        table = table_of(self.view, reading, self.type_of(reading), now_ns, folded)
        order = self.orders.get(self.view)
        if order is not None:
            table = table.ordered(order.key, descending=order.descending)
        return table.filtered(self.filter)

    def type_of(self, reading: ServerReading) -> str:
        """Return the type of resource that is shown: the chosen one, or that which is used most."""
        types = reading.types()
        return self.resource if self.resource in types else next(iter(types), "")

    def next_type(self, reading: ServerReading) -> None:
        """Choose the type of resource that follows by name."""
        types = sorted(reading.types())
        if types:
            self.resource = types[(types.index(self.type_of(reading)) + 1) % len(types)]

    def next_order(self, table: ViewTable) -> None:
        """Sort by the column that follows, after the last one as the view itself does.

        Numbers come largest first, texts in the order of letters.
        """
        columns = [column for column in table.columns if not column.is_bar]
        order = self.orders.get(self.view)
        place = next((i for i, column in enumerate(columns) if order and column.key == order.key), -1) + 1
        if place < len(columns):
            self.orders[self.view] = SortOrder(columns[place].key, columns[place].is_number)
        else:
            self.orders.pop(self.view, None)

    def reverse_order(self, table: ViewTable) -> None:
        """Turn the order round; without one, sort by the first column the other way."""
        order = self.orders.get(self.view)
        if order is not None:
            self.orders[self.view] = order.reversed()
        elif table.columns:
            self.orders[self.view] = SortOrder(table.columns[0].key, descending=True)

    def fold(self, path: str) -> None:
        """Hide what is below a queue, or show it again."""
        self.folded ^= {path}
