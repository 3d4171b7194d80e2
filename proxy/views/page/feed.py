"""The live data of all viewers: one reading of the scheduler for all of them, and none without a viewer.

A reading is made ten times a second at most, on a separate thread; after a long one the next waits for as
long again, so that readings take half of the time at most. Each viewer has a queue of a few messages. One
that is too slow loses what waits there, and gets the full document next.

In the texts, a partition is a set of tables, each from a name to a row. The text of a row is made when the
row is new or changed. The full document is made of the texts that are there; a change has those of the rows
that changed, and `null` for each that is gone.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from typing import Any, Final, final

from ....model.errors import RequestError
from ....model.limits.usage_tree import UsageView
from ....model.resources.resource import Resource
from ....model.values.messages import short_partition_name
from ....model.values.states import ManagerState
from ....model.views.rows import LiveApplication, LiveEnded, NodeRow
from ....model.views.shown import QueueView
from ...core.scheduler.answering.views import KnownRows, LiveRows
from ...core.scheduler.scheduler import Scheduler

INTERVAL_SECONDS: Final = 0.1
VIEWERS_MAX: Final = 64
_WAITING_MAX: Final = 16
"""How many messages wait for a viewer before it is given the full document in their place."""
_SILENCE_SECONDS: Final = 10.0
"""After so long without a message a comment is sent: it finds connections that are gone."""
_RETRY_MS: Final = 1000
_USAGES_EACH: Final = 10
"""Users and groups are read with each tenth reading: their rows are made again each time."""
_SCHEDULABLE: Final = 1
_RESERVED: Final = 2
_MEAN_DIGITS: Final = 4
"""How much of a mean is sent: it moves all the time, and a row is sent anew when its text is another one."""


class TooManyViewersError(RequestError):
    """As many viewers as are allowed look already."""


@final
class Viewer:
    """One connection that shows live data. Used by the event loop alone."""

    def __init__(self) -> None:
        self.needs_all = True
        self._waiting: deque[str] = deque()
        self._arrived = asyncio.Event()

    def put(self, message: str) -> None:
        """Add a message; at the bound all that wait are dropped, and the full document comes next."""
        if len(self._waiting) >= _WAITING_MAX:
            self._waiting.clear()
            self.needs_all = True
            return
        self._waiting.append(message)
        self._arrived.set()

    async def get(self) -> str:
        """Return the next message, a comment after a long silence."""
        while not self._waiting:
            self._arrived.clear()
            try:
                async with asyncio.timeout(_SILENCE_SECONDS):
                    await self._arrived.wait()
            except TimeoutError:
                return ": nothing has changed\n\n"
        return self._waiting.popleft()


@final
class LiveFeed:
    """Reads the scheduler while there are viewers, and sends all of them what changed."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._view = scheduler.monitoring.live_view
        self._viewers: dict[Viewer, None] = {}
        self._task: asyncio.Task[None] | None = None
        self.readings = 0
        """How often the scheduler has been read."""

    async def messages(self) -> AsyncGenerator[str, None]:
        """Yield the messages of a new viewer, as server-sent events, until it goes."""
        viewer = Viewer()
        self._viewers[viewer] = None
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())
        try:
            yield f"retry: {_RETRY_MS}\n\n"
            while True:
                yield await viewer.get()
        finally:
            self._viewers.pop(viewer, None)

    def check_room(self) -> None:
        """Refuse a viewer beyond the bound.

        Raises:
            TooManyViewersError: There are as many as are allowed.
        """
        if len(self._viewers) >= VIEWERS_MAX:
            raise TooManyViewersError(f"{VIEWERS_MAX} pages are open already, more are not served")

    async def close(self) -> None:
        """Stop reading."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _run(self) -> None:
        """Read and send, until there is no viewer."""
        tables = LiveTables()
        number = 0
        due = time.monotonic()
        while self._viewers:
            began = time.monotonic()
            needs_all = any(viewer.needs_all for viewer in self._viewers)
            try:
                all_of_it, change = await asyncio.to_thread(self._read, tables, needs_all=needs_all)
            except RequestError as error:
                all_of_it, change = "", ""
                self._tell_all(_event("unavailable", _quoted(str(error))))
            number += bool(change)
            self._tell(number, all_of_it, change)
            ended = time.monotonic()
            due = next_reading(due, began, ended)
            await asyncio.sleep(due - ended)

    def _read(self, tables: LiveTables, *, needs_all: bool) -> tuple[str, str]:
        """Return the full document, if anybody needs it, and the changes; runs on a separate thread."""
        self.readings += 1
        with_usages = needs_all or self.readings % _USAGES_EACH == 0
        change = tables.update(self._view.rows(tables.known, with_usages=with_usages))
        return (tables.full() if needs_all else ""), change

    def _tell(self, number: int, all_of_it: str, change: str) -> None:
        now_ms = time.time_ns() // 1_000_000
        head = f'"number":{number},"time":{now_ms}'
        about = {"engine": self._scheduler.engine_name, "events": self._scheduler.events.enabled}
        full = _event("full", f'{{{head},{json.dumps(about)[1:-1]},"partitions":{all_of_it}}}')
        changed = _event("change", f'{{{head},"partitions":{change}}}')
        for viewer in self._viewers:
            if viewer.needs_all:
                if all_of_it:
                    viewer.needs_all = False
                    viewer.put(full)
            elif change:
                viewer.put(changed)

    def _tell_all(self, message: str) -> None:
        for viewer in self._viewers:
            viewer.needs_all = True
            viewer.put(message)


def next_reading(due: float, began: float, ended: float) -> float:
    """Return when to read next, in seconds of the clock of the arguments.

    Args:
        due: When the last reading was due: what it was late is not added to the interval.
        began: When it began.
        ended: When its messages were given to the viewers.
    """
    return max(due + INTERVAL_SECONDS, ended + (ended - began))


def _event(kind: str, data: str) -> str:
    return f"event: {kind}\ndata: {data}\n\n"


def _quoted(text: str) -> str:
    return json.dumps({"why": text})


@final
class Types:
    """The resource types of a partition in a fixed order: a quantity is known by its place in a list."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._places: dict[str, int] = {}

    def quantities(self, resource: Resource | None) -> list[int | None] | None:
        """Return the quantity of each type, `None` for a type that the resource does not name."""
        return None if resource is None else self.of_items(resource.items())

    def mean(self, mean: Resource | None) -> tuple[list[int | None], ...]:
        """Return the last column of a row, with what was used on average; none where no past counts."""
        if mean is None:
            return ()
        items = mean.items()
        return (self.of_items((name, round(each, _MEAN_DIGITS - len(str(each)))) for name, each in items),)

    def of_items(self, items: Iterable[tuple[str, int]]) -> list[int | None]:
        """Return pairs of type and quantity in the same way."""
        places = self._places
        values: list[int | None] = [None] * len(self.names)
        for name, quantity in items:
            place = places.get(name)
            if place is None:
                place = places[name] = len(self.names)
                self.names.append(name)
                values.append(None)
            values[place] = quantity
        return values


@final
class _Table:
    """The rows of one kind by name, with their texts."""

    def __init__(self) -> None:
        self.rows: dict[str, Any] = {}
        self.texts: dict[str, str] = {}
        self._names: tuple[str, ...] = ()

    def update(
        self, names: tuple[str, ...], rows: Iterable[tuple[str, object]], text_of: Callable[[Any], str]
    ) -> list[str]:
        """Take the names that there are now, and rows that may have changed.

        Returns:
            The changes as members of a JSON object.
        """
        changes = []
        for name, row in rows:
            before = self.rows.get(name)
            self.rows[name] = row  # Also an equal one: the next reading compares identities.
            if before is None or before != row:
                text = f"{json.dumps(name)}:{text_of(row)}"
                if text != self.texts.get(name):
                    self.texts[name] = text
                    changes.append(text)
        if names != self._names:
            self._names = names
            present = frozenset(names)
            for name in [name for name in self.rows if name not in present]:
                del self.rows[name], self.texts[name]
                changes.append(f"{json.dumps(name)}:null")
        return changes

    def all(self) -> str:
        """Return all texts as one JSON object."""
        return "{" + ",".join(self.texts.values()) + "}"


class _PartitionTables:
    """The tables of one partition."""

    def __init__(self, name: str) -> None:
        self.types = Types()
        rm_id = name[1:].rpartition("]")[0]
        self._fixed = f'"rm":{json.dumps(rm_id)},"name":{json.dumps(short_partition_name(name))}'
        self._head = ""
        self.tables = {kind: _Table() for kind in _KINDS}

    def known(self) -> KnownRows:
        """Return what need not be read again."""
        return KnownRows(
            self.tables["nodes"].rows,
            self.tables["applications"].rows,
            frozenset(map(int, self.tables["ended"].rows)),
        )

    def update(self, rows: LiveRows) -> str:
        """Take a reading; return the members that changed, the empty text if none did."""
        names = rows.names
        changed = []
        for kind, table in self.tables.items():
            now = getattr(rows, kind)
            if now is None:
                continue
            of_kind = tuple(map(str, names.ended)) if kind == "ended" else getattr(names, kind)
            members = table.update(of_kind, ((str(row[0]), row) for row in now), getattr(self, f"_{kind}"))
            if members:
                changed.append(f'"{kind}":{{{",".join(members)}}}')
        head = self._head_of(rows)
        if head != self._head:
            self._head = head
            changed.insert(0, head)
        return ",".join(changed)

    def full(self) -> str:
        """Return all members."""
        tables = (f'"{kind}":{table.all()}' for kind, table in self.tables.items())
        return f"{self._fixed},{self._head},{','.join(tables)}"

    def _head_of(self, rows: LiveRows) -> str:
        names = rows.names
        capacity = json.dumps(self.types.quantities(names.capacity))
        manager = rows.manager
        halted = (
            None
            if manager is None or manager.state is ManagerState.RUNNING
            else [manager.state.value, _milliseconds(manager.since_ns), manager.reason]
        )
        return (
            f'"types":{json.dumps(self.types.names)},"state":"{names.state.value}","capacity":{capacity},'
            f'"allocations":{names.allocations},"endedTotal":{names.ended_total},"halted":{json.dumps(halted)}'
        )

    # ---------------------------------------------------------------------------- the texts of rows

    def _nodes(self, row: NodeRow) -> str:
        quantities = self.types.quantities
        flags = row.schedulable * _SCHEDULABLE + row.reserved * _RESERVED
        out = () if row.out is None else ([_milliseconds(row.out[0]), *row.out[1:]],)
        return _text([quantities(row.capacity), quantities(row.available), flags, *out])

    def _applications(self, row: LiveApplication) -> str:
        quantities = self.types.quantities
        facts = row.facts
        return _text(
            [
                row.user,
                row.queue_path,
                facts.state.value,
                quantities(facts.pending),
                quantities(facts.allocated),
                quantities(facts.placeholder_allocated),
                facts.max_priority,
                _milliseconds(facts.submitted_at_ns),
                _milliseconds(row.backoff_until_ns),
            ]
        )

    def _queues(self, row: QueueView) -> str:
        quantities = self.types.quantities
        return _text(
            [
                int(row.is_leaf),
                int(row.managed),
                row.state.value,
                quantities(row.guaranteed),
                quantities(row.maximum),
                quantities(row.allocated),
                quantities(row.pending),
                quantities(row.preempting),
                row.running,
                row.max_applications,
                *self.types.mean(row.decayed_mean),
            ]
        )

    def _users(self, row: UsageView) -> str:
        queues: list[object] = []
        for each in row.queues:
            if not (each.usage or each.applications or each.limit or each.decayed_mean):
                continue
            limit = None if each.limit is None else self.types.quantities(each.limit.max_resources)
            most = 0 if each.limit is None else each.limit.max_applications
            used = self.types.of_items(each.usage)
            mean = self.types.mean(each.decayed_mean)
            queues.append([each.queue_path, used, len(each.applications), limit, most, *mean])
        return _text(queues)

    _groups = _users

    @staticmethod
    def _ended(row: LiveEnded) -> str:
        return _text(
            [
                row.application_id,
                row.user,
                row.queue_path,
                row.state.value,
                _milliseconds(row.submitted_at_ns),
                _milliseconds(row.finished_at_ns),
                row.reason,
            ]
        )


_KINDS: Final = ("queues", "nodes", "applications", "users", "groups", "ended")


@final
class LiveTables:
    """The tables of all partitions at the last reading."""

    def __init__(self) -> None:
        self._partitions: dict[str, _PartitionTables] = {}

    def known(self, partition: str) -> KnownRows:
        """Return what of a partition need not be read again."""
        tables = self._partitions.get(partition)
        return KnownRows() if tables is None else tables.known()

    def update(self, rows: Sequence[LiveRows]) -> str:
        """Take a reading; return what changed as the text of a JSON object, the empty text for nothing."""
        changes = []
        for each in rows:
            known = self._partitions.get(each.partition)
            if known is None:
                known = self._partitions[each.partition] = _PartitionTables(each.partition)
                known.update(each)
                changes.append(f"{json.dumps(each.partition)}:{{{known.full()}}}")
            elif members := known.update(each):
                changes.append(f"{json.dumps(each.partition)}:{{{members}}}")
        present = {each.partition for each in rows}
        for name in [name for name in self._partitions if name not in present]:
            del self._partitions[name]
            changes.append(f"{json.dumps(name)}:null")
        return "{" + ",".join(changes) + "}" if changes else ""

    def full(self) -> str:
        """Return everything as the text of a JSON object."""
        members = (f"{json.dumps(name)}:{{{known.full()}}}" for name, known in self._partitions.items())
        return "{" + ",".join(members) + "}"


def _text(row: list[object]) -> str:
    return json.dumps(row, separators=(",", ":"))


def _milliseconds(time_ns: int | None) -> int | None:
    return None if time_ns is None else time_ns // 1_000_000
