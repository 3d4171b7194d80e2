"""One reading of a server: the state of its partition, and the documents of one view."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, assert_never, final
from urllib.parse import quote

from ...core.documents.applications import ApplicationDocument
from ...core.documents.clusters import NodeDocument, PartitionDocument, UtilizationsDocument, WorkerDocument
from ...core.documents.explanations import SentencesDocument
from ...core.documents.monitoring import EventBatchDocument, EventDocument, HealthDocument, ManagerDocument
from ...core.documents.queues import GroupUsageDocument, QueueDocument, UsageDocument, UserUsageDocument
from .client import DocumentReader, MissingDocumentError, RestClient, ServerReadError
from .views import View

_PARTITIONS: Final = DocumentReader(list[PartitionDocument])
_QUEUE: Final = DocumentReader(QueueDocument)
_NODES: Final = DocumentReader(list[NodeDocument])
_APPLICATIONS: Final = DocumentReader(list[ApplicationDocument])
_USERS: Final = DocumentReader(list[UserUsageDocument])
_GROUPS: Final = DocumentReader(list[GroupUsageDocument])
_MANAGERS: Final = DocumentReader(list[ManagerDocument])
_HEALTH: Final = DocumentReader(HealthDocument)
_UTILIZATIONS: Final = DocumentReader(list[UtilizationsDocument])
_WORKERS: Final = DocumentReader(list[WorkerDocument])
_EXPLANATION: Final = DocumentReader(SentencesDocument)
_REASONS: Final = DocumentReader(dict[str, str])
_REASONS_MAX: Final = 100
"""The number of applications about which one question may be."""
_NO_PARTITION: Final = "no partition: no resource manager has registered yet"
_ALLOCATED: Final = re.compile(
    r'^yunikorn_scheduler_container_allocation_attempt_total\{state="allocated"'
    r"(?:,worker=.*)?\} ([0-9.e+]+)$",
    re.MULTILINE,
)
"""One line, of a door one for each worker."""
_WAITING: Final = re.compile(r'^licorne_waiting\{.*?reason="([^"]*)".*\} ([0-9.e+]+)$', re.MULTILINE)


@final
@dataclass(frozen=True, slots=True)
class ServerReading:
    """The answers of a server; missing ones are empty."""

    partitions: tuple[PartitionDocument, ...]
    partition: PartitionDocument | None
    """The partition that is shown, `None` if the server has none."""
    manager: ManagerDocument | None = None
    """The resource manager of the partition, `None` if the server does not report it: YuniKorn's does not."""
    workers: tuple[WorkerDocument, ...] = ()
    """Where the partitions run behind a door; empty where all run in the server."""
    health: HealthDocument | None = None
    allocated: int | None = None
    """How many allocations it has made since it started."""
    waiting: tuple[tuple[str, int], ...] = ()
    """How many applications wait for which reason, in all partitions, the largest number first."""
    queues: QueueDocument | None = None
    applications: tuple[ApplicationDocument, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)
    """The first blockers of the oldest waiting applications, in few words; YuniKorn's server has none."""
    nodes: tuple[NodeDocument, ...] = ()
    owners: tuple[tuple[str, UsageDocument], ...] = ()
    """Users, or groups: their names, and what they use."""
    events: tuple[tuple[int, EventDocument], ...] = ()
    utilizations: tuple[UtilizationsDocument, ...] = ()
    missing: str = ""
    """Why the documents of the view are not there."""

    def types(self) -> list[str]:
        """Return the types of resources of the partition, those that are used most first."""
        if self.partition is None:
            return []
        capacity = self.partition.get("capacity", {})
        names = {*capacity.get("capacity", {}), *capacity.get("usedCapacity", {})}
        return sorted(names, key=lambda name: (-capacity.get("utilization", {}).get(name, 0), name))

    def checked_type(self, wanted: str | None) -> str:
        """Return a type of resource, the most used one if none is asked for; empty if the partition has none.

        Raises:
            ServerReadError: The partition does not have the one that is asked for.
        """
        types = self.types()
        if wanted is not None and types and wanted not in types:
            raise ServerReadError(f"the partition has no resource {wanted!r}, but {', '.join(types)}")
        return wanted or next(iter(types), "")

    def utilization(self) -> UtilizationsDocument | None:
        """Return how far the nodes of the partition are used, `None` if that is not read."""
        shown = self.partition
        same = (each for each in self.utilizations if shown and each.get("partition") == shown["name"])
        return next(
            (each for each in same if shown and each["clusterId"] == shown.get("clusterId", "")), None
        )


@final
class ServerReader:
    """Reads one server again and again."""

    def __init__(self, client: RestClient) -> None:
        self._client = client
        self._follower = EventFollower()

    async def read(self, view: View, wanted: str | None) -> ServerReading:
        """Read what the header and a view show.

        Args:
            view: The view.
            wanted: The partition: its name, or `[rm]name`. If several have it, the first that is active;
                `None` for the first one of all.

        Raises:
            ServerReadError: The server cannot be read, or has no such partition.
        """
        workers = await self._workers()
        partitions = tuple(await self._partitions(workers))
        if not partitions:
            return ServerReading(partitions, None, workers=workers, missing=_NO_PARTITION)
        partition = _partition(partitions, wanted, workers)
        metrics = await self._metrics()
        head = ServerReading(
            partitions,
            partition,
            manager=await self._manager(partition.get("clusterId", "")),
            workers=workers,
            health=await self._health(),
            allocated=_allocated_in(metrics),
            waiting=_waiting_in(metrics),
        )
        path = f"/ws/v1/partition/{quote(partition_name(partition, partitions), safe='')}"
        try:
            return await self._with_content(head, view, path)
        except MissingDocumentError as error:
            return replace(head, missing=str(error))

    async def explain(self, reading: ServerReading, application_id: str) -> SentencesDocument | None:
        """Return why an application waits, `None` if the server cannot tell: YuniKorn's cannot.

        Raises:
            ServerReadError: The server cannot be read.
        """
        assert reading.partition is not None, "an application is in a partition: please report"
        query = {
            "rm": reading.partition.get("clusterId", ""),
            "partition": reading.partition["name"],
            "application": application_id,
        }
        try:
            return await self._client.read(_EXPLANATION, "/licorne/v1/explain/sentences", query)
        except MissingDocumentError:
            return None

    async def _workers(self) -> tuple[WorkerDocument, ...]:
        try:
            known = await self._client.read(_WORKERS, "/licorne/v1/workers")
        except MissingDocumentError:
            return ()
        return tuple(known)

    async def _partitions(self, workers: Sequence[WorkerDocument]) -> list[PartitionDocument]:
        """Return the partitions, which each server has; none behind a door while no worker answers.

        Raises:
            ServerReadError: The server cannot be read, or is another kind of server.
        """
        try:
            return await self._client.read(_PARTITIONS, "/ws/v1/partitions")
        except MissingDocumentError as error:
            if workers:
                text = "; ".join(worker_lines(workers))
                raise ServerReadError(f"{self._client.address}: {text}") from error
            raise ServerReadError(
                f"{self._client.address} is not a server of Licorne or YuniKorn: {error}"
            ) from error

    async def _health(self) -> HealthDocument | None:
        try:
            return await self._client.read(_HEALTH, "/ws/v1/scheduler/healthcheck")
        except MissingDocumentError:
            return None

    async def _manager(self, rm_id: str) -> ManagerDocument | None:
        try:
            known = await self._client.read(_MANAGERS, "/licorne/v1/managers")
        except MissingDocumentError:
            return None
        return next((each for each in known if each["rmID"] == rm_id), None)

    async def _reasons(
        self, head: ServerReading, applications: Sequence[ApplicationDocument]
    ) -> Mapping[str, str]:
        assert head.partition is not None, "an application is in a partition: please report"
        waiting = sorted(
            (each for each in applications if each.get("requests")),
            key=lambda each: each.get("submissionTime", 0),
        )
        if not waiting:
            return {}
        query = {
            "rm": head.partition.get("clusterId", ""),
            "partition": head.partition["name"],
            "application": [each["applicationID"] for each in waiting[:_REASONS_MAX]],
        }
        try:
            return await self._client.read(_REASONS, "/licorne/v1/page/reasons", query)
        except MissingDocumentError:
            return {}

    async def _metrics(self) -> str:
        try:
            return await self._client.read_text("/ws/v1/metrics")
        except MissingDocumentError:
            return ""

    async def _with_content(self, head: ServerReading, view: View, path: str) -> ServerReading:
        """Return a reading with the documents of a view."""
        read = self._client.read
        match view:
            case View.QUEUES:
                queues = await read(_QUEUE, f"{path}/queues")
                return replace(head, queues=queues)
            case View.APPLICATIONS:
                applications = await read(_APPLICATIONS, f"{path}/applications/active")
                reasons = await self._reasons(head, applications)
                return replace(head, applications=tuple(applications), reasons=reasons)
            case View.NODES:
                nodes = await read(_NODES, f"{path}/nodes")
                return replace(head, nodes=tuple(nodes))
            case View.USERS:
                users = await read(_USERS, f"{path}/usage/users")
                return replace(head, owners=tuple((each["userName"], each.get("queues")) for each in users))
            case View.GROUPS:
                groups = await read(_GROUPS, f"{path}/usage/groups")
                return replace(head, owners=tuple((each["groupName"], each.get("queues")) for each in groups))
            case View.EVENTS:
                events = await self._follower.read(self._client)
                return replace(head, events=events)
            case View.UTILIZATION:
                found = await read(_UTILIZATIONS, "/ws/v1/scheduler/node-utilizations")
                return replace(head, utilizations=tuple(found))
            case View.HEALTH:
                return head if head.health else replace(head, missing="the health has not been checked yet")
            case _:
                assert_never(view)


def _allocated_in(metrics: str) -> int | None:
    """Return how many allocations have been made, `None` if the metrics do not tell."""
    found = _ALLOCATED.findall(metrics)
    return sum(int(float(each)) for each in found) if found else None


def _waiting_in(metrics: str) -> tuple[tuple[str, int], ...]:
    """Return how many applications wait for which reason, the largest number first."""
    counts: Counter[str] = Counter()
    for reason, count in _WAITING.findall(metrics):
        counts[reason] += int(float(count))
    return tuple(sorted(counts.items(), key=lambda each: (-each[1], each[0])))


def partition_name(partition: PartitionDocument, partitions: Sequence[PartitionDocument]) -> str:
    """Return how a partition is named in a path: if several have its name, with its RM before it."""
    same = [each for each in partitions if each["name"] == partition["name"]]
    return partition["name"] if len(same) == 1 else _full_name(partition)


def _full_name(partition: PartitionDocument) -> str:
    return f"[{partition.get('clusterId', '')}]{partition['name']}"


def worker_lines(workers: Sequence[WorkerDocument]) -> list[str]:
    """Return a line for each partition that no worker schedules now, with why."""
    return [
        f"partition {_name_behind_door(each)} is {each.get('state', '').lower()} "
        f"since {_clock(each.get('since', 0))}{_why(each.get('reason', ''))}"
        for each in workers
        if each.get("state", "") != "Running"
    ]


def _name_behind_door(worker: WorkerDocument) -> str:
    return f"[{worker.get('rmID', '')}]{worker.get('partition', '')}"


def _clock(time_ns: int) -> str:
    return f"{datetime.fromtimestamp(time_ns / 1e9).astimezone():%H:%M:%S}"


def _why(reason: str) -> str:
    return f": {reason}" if reason else ""


def _partition(
    partitions: Sequence[PartitionDocument], wanted: str | None, workers: Sequence[WorkerDocument]
) -> PartitionDocument:
    if wanted is None:
        return partitions[0]
    found = [
        each
        for each in partitions
        if wanted in (each["name"], f"[{each.get('clusterId', '')}]{each['name']}")
    ]
    if not found:
        lost = [each for each in workers if wanted in (each.get("partition"), _name_behind_door(each))]
        if lines := worker_lines(lost):
            raise ServerReadError("; ".join(lines))
        names = [partition_name(partition, partitions) for partition in partitions]
        raise ServerReadError(f"the server has no partition {wanted!r}, but {', '.join(names)}")
    return next((each for each in found if each.get("state", "") == "Active"), found[0])


EVENTS_MAX: Final = 1_000
"""How many events are kept; older ones are dropped."""
_READS_MAX: Final = 4
"""How many batches are read at once: a server that is faster is followed at the next time."""
_PATH: Final = "/ws/v1/events/batch"
_BATCH: Final = DocumentReader(EventBatchDocument)


@final
class EventFollower:
    """The newest events of a server."""

    def __init__(self) -> None:
        self._instance = ""
        self._next_id: int | None = None
        self._events: deque[tuple[int, EventDocument]] = deque(maxlen=EVENTS_MAX)

    async def read(self, client: RestClient) -> tuple[tuple[int, EventDocument], ...]:
        """Read what is new, and return all that is kept, each with its id, the oldest first.

        Raises:
            MissingDocumentError: The server has no events, or has switched them off.
            ServerReadError: The server cannot be read.
        """
        for _ in range(_READS_MAX):
            start = self._next_id
            query = {"count": 1} if start is None else {"start": start, "count": EVENTS_MAX}
            batch = await client.read(_BATCH, _PATH, query)
            records = batch.get("EventRecords") or []
            if start is None or batch["InstanceUUID"] != self._instance:
                self._begin(batch)
            elif records:
                self._events.extend(enumerate(records, start))
                self._next_id = start + len(records)
            elif start < batch.get("LowestID", 0):  # those in between are overwritten
                self._next_id = max(batch.get("LowestID", 0), batch.get("HighestID", 0) - EVENTS_MAX + 1)
            if self._next_id is not None and self._next_id > batch.get("HighestID", 0):
                break
        return tuple(self._events)

    def _begin(self, batch: EventBatchDocument) -> None:
        """Start with the newest events of a server, which may be another one at the same address."""
        self._instance = batch["InstanceUUID"]
        self._next_id = max(batch.get("LowestID", 0), batch.get("HighestID", 0) - EVENTS_MAX + 1)
        self._events.clear()
