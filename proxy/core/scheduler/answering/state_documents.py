"""Documents of a whole scheduler: a snapshot, a saved moment, and what queues and users have used.

A saved moment has the requests of `si.v1` that make it again. Each has the time at which what it makes began,
in nanoseconds since 1970; `licorne.proxy.play.transcripts.saved_moment` makes a transcript of it.

Kept use is what usage files have, and what a door and its workers exchange: the moment that it was made, and
for each partition its own moment and rows of a path, a user of that leaf or none, a resource type, what was
in use, and what is kept of the past (`decayed_use`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Final, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from .....model.errors import LicorneError, RequestError
from .....model.nodes.node import NodeFacts
from .....model.partition import Partition
from .....model.queues.use_order import KeptUse
from .....model.resources.comparisons import is_zero, prune
from .....model.resources.decayed_use import DecayedUse, TypeUse, carried, raised_to
from .....model.resources.resource import subtract, total_of
from .....model.values.allocation import START_TIME_TAG, Allocation, Ask
from .....model.values.documents import Document, Json
from .....model.values.messages import (
    AllocationSubmission,
    ApplicationSubmission,
    NodeAction,
    NodeUpdate,
    short_partition_name,
)
from .....model.views.shown import (
    SavedApplication,
    SavedPartition,
    ShownPartition,
    saved_partition,
    shown_partition,
)
from ...documents.applications import snapshot_application
from ...documents.clusters import node_document, snapshot_partition
from ...documents.queues import QueueDocument, group_document, queue_document, user_document
from ...recording.turn_documents import allocation_request, application_request, node_request
from .questions import ask_each

_SECOND_NS = 1_000_000_000
KIND: Final = "licorne usage"
VERSION: Final = 1
_Time = Annotated[int, Field(ge=0, lt=2**63)]


def snapshot(partitions: Sequence[Partition]) -> Document:
    """Return the documents of the REST interface, those of a partition under its short name.

    If several RMs have a partition of one name, each is under its full name, `[rm]default`.
    """
    answers = ask_each(partitions, _shown)
    shared = Counter(short_partition_name(partition.name) for partition, _ in answers)
    named = [(_key(partition.name, shared), shown) for partition, shown in answers]
    documents = {
        "partitions": [snapshot_partition(shown.partition) for _, shown in named],
        "queues": {name: _queues(shown) for name, shown in named},
        "nodes": {name: [*map(node_document, shown.nodes)] for name, shown in named},
        "applications": {name: [*map(snapshot_application, shown.applications)] for name, shown in named},
        "users": {name: [*map(user_document, shown.users)] for name, shown in named},
        "groups": {name: [*map(group_document, shown.groups)] for name, shown in named},
    }
    return cast("Document", documents)


def _queues(shown: ShownPartition) -> QueueDocument:
    return queue_document((shown.root,), partition=short_partition_name(shown.partition.name))


def _shown(partition: Partition) -> ShownPartition:
    return partition.read(shown_partition)


def _key(full_name: str, shared: Counter[str]) -> str:
    short = short_partition_name(full_name)
    return full_name if shared[short] > 1 else short


def saved(partitions: Sequence[Partition], configuration_text: Callable[[str], str]) -> Document:
    """Return the document of partitions.

    Args:
        partitions: Each is read in one turn of it.
        configuration_text: Returns the queues of a resource manager.
    """
    found = [
        _partition(answer) for _, answer in ask_each(partitions, lambda each: each.read(saved_partition))
    ]
    names = sorted({partition.rm_id for partition in partitions})
    return {"managers": {name: configuration_text(name) for name in names}, "partitions": [*found]}


def _partition(saved: SavedPartition) -> Document:
    rm_id = saved.rm_id
    foreign = [
        _submission(each.ask, saved.name, each.node_id) for node in saved.nodes for each in node.foreign
    ]
    return {
        "rmID": rm_id,
        "name": short_partition_name(saved.name),
        "time": saved.time_ns,
        "nodes": node_request(rm_id, [_node(facts) for facts in saved.nodes])["nodes"],
        "foreign": allocation_request(rm_id, foreign, (), ()).get("allocations", []),
        "schedulable": node_request(rm_id, [_again(facts) for facts in saved.nodes if facts.schedulable])[
            "nodes"
        ],
        "queues": [*sorted({each.shown.summary.queue_path for each in saved.applications})],
        "requests": [
            request for application in saved.applications for request in _requests(application, saved)
        ],
    }


def _node(facts: NodeFacts) -> NodeUpdate:
    """Return the creation of a node on which nothing is placed yet."""
    others = prune(subtract(facts.occupied, total_of([each.resource for each in facts.foreign])))
    return NodeUpdate(
        node_id=facts.node_id,
        action=NodeAction.CREATE_DRAIN,
        attributes=facts.attributes,
        resource=facts.capacity,
        occupied=None if is_zero(others) else others,
    )


def _again(facts: NodeFacts) -> NodeUpdate:
    """Return the update by which a node is schedulable again."""
    return NodeUpdate(
        node_id=facts.node_id,
        action=NodeAction.DRAIN_TO_SCHEDULABLE,
        attributes=facts.attributes,
        resource=None,
    )


def _requests(application: SavedApplication, saved: SavedPartition) -> Iterator[Json]:
    """Yield what makes an application and all it has: when, which request, and its body."""
    shown, rm_id = application.shown, saved.rm_id
    begun_ns = min(shown.summary.submitted_at_ns, saved.time_ns)
    new = _application(application.submission, shown.summary.queue_path, shown.summary.user.groups)
    yield [begun_ns, "application", application_request(rm_id, [new], ())]
    for allocation, _ in shown.allocations:
        at_ns = min(max(begun_ns, allocation.bound_at_ns), saved.time_ns)
        existing = _submission(_as_it_started(allocation), saved.name, allocation.node_id)
        yield [at_ns, "allocation", allocation_request(rm_id, [existing], (), ())]
    for waiting in sorted((each.ask for each in shown.asks), key=lambda ask: ask.created_at_ns):
        at_ns = min(max(begun_ns, waiting.created_at_ns), saved.time_ns)
        asked = _submission(waiting, saved.name, "")
        yield [at_ns, "allocation", allocation_request(rm_id, [asked], (), ())]


def _application(
    submission: ApplicationSubmission, queue_path: str, groups: tuple[str, ...]
) -> ApplicationSubmission:
    """Return the submission of an application to the queue where it is, with the groups that were found."""
    return replace(submission, queue_name=queue_path, groups=groups, looked_up=None)


def _as_it_started(allocation: Allocation) -> Ask:
    """Return the ask of an allocation without a tag of another start than its own."""
    ask = allocation.ask
    started = ask.tags.get(START_TIME_TAG)
    if started is None or started == str(allocation.bound_at_ns // _SECOND_NS):
        return ask
    copied = ask.resized(ask.resource)
    copied.tags = {name: text for name, text in ask.tags.items() if name != START_TIME_TAG}
    return copied


def _submission(ask: Ask, partition: str, node_id: str) -> AllocationSubmission:
    return AllocationSubmission(
        allocation_key=ask.allocation_key,
        application_id=ask.application_id,
        partition=partition,
        resource=ask.resource,
        priority=ask.priority,
        tags=ask.tags,
        node_id=node_id,
        task_group_name=ask.task_group_name,
        placeholder=ask.placeholder,
        originator=ask.originator,
        allow_preempt_self=ask.allow_preempt_self,
        allow_preempt_other=ask.allow_preempt_other,
    )


class _UsageRow(BaseModel):
    """The use of one resource type by a queue, or by a user in a leaf."""

    model_config = ConfigDict(extra="forbid", strict=True)

    path: Annotated[str, Field(min_length=1)]
    user: str | None
    half_life: Annotated[int, Field(gt=0, lt=2**63)]
    span: Annotated[int, Field(ge=0, lt=2**63)]
    type: Annotated[str, Field(min_length=1)]
    amount: Annotated[int, Field(ge=0, lt=2**63)]
    kept: Annotated[int, Field(gt=-(2**256), lt=2**256)]


class _UsagePartition(BaseModel):
    """The rows of one partition, as of one moment."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: Annotated[str, Field(min_length=1)]
    at: _Time
    rows: list[_UsageRow]


class _UsageDocument(BaseModel):
    """The whole document; times are nanoseconds, moments count from 1970."""

    model_config = ConfigDict(extra="forbid", strict=True)

    kind: Literal["licorne usage"]
    version: Literal[1]
    at: _Time
    partitions: list[_UsagePartition]


def use_document(usage: Mapping[str, KeptUse], now_ns: int) -> Document:
    """Return the document of what is kept.

    Args:
        usage: The kept use, by the full name of the partition.
        now_ns: The moment, nanoseconds since 1970; a later one of a partition, whose worker has another
            clock, is that of the document.
    """
    partitions = [
        _UsagePartition(name=name, at=kept.at_ns, rows=list(_rows(kept)))
        for name, kept in sorted(usage.items())
    ]
    at_ns = max([now_ns, *(partition.at for partition in partitions)])
    return _UsageDocument(kind=KIND, version=VERSION, at=at_ns, partitions=partitions).model_dump()


def _rows(kept: KeptUse) -> Iterator[_UsageRow]:
    for holder, use in sorted(kept.uses.items()):
        path, _, user = holder.partition("|")
        for name, (amount, past) in sorted(use.types.items()):
            yield _UsageRow(
                path=path,
                user=user or None,
                half_life=use.half_life_ns,
                span=use.span,
                type=name,
                amount=amount,
                kept=past,
            )


def read_use(document: object) -> tuple[int, dict[str, KeptUse]]:
    """Return the moment of a document, and what is kept in it by the full name of the partition.

    Args:
        document: The document, read from JSON.

    Raises:
        LicorneError: It is not such a document, or not of this version.
    """
    if not isinstance(document, dict) or document.get("kind") != KIND:
        raise LicorneError(f"is not a usage file: its kind is not {KIND!r}")
    if document.get("version") != VERSION:
        raise LicorneError(f"has the version {document.get('version')!r}; this program reads {VERSION}")
    try:
        usage = _UsageDocument.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(str(step) for step in first["loc"])
        raise LicorneError(f"{place}: {first['msg']}, not {str(first['input'])[:80]!r}") from error
    kept = {}
    for partition in usage.partitions:
        if partition.at > usage.at:
            raise LicorneError(f"{partition.name}: its time {partition.at} is after that of the file")
        kept[partition.name] = KeptUse(partition.at, _uses(partition.rows, partition.name))
    return usage.at, kept


def _uses(rows: Iterable[_UsageRow], place: str) -> dict[str, DecayedUse]:
    """Return the rows by holder.

    Raises:
        LicorneError: Two rows are of one type of a holder, or rows of one holder have two half-lives.
    """
    uses: dict[str, DecayedUse] = {}
    for row in rows:
        holder = row.path if row.user is None else f"{row.path}|{row.user}"
        use = uses.get(holder) or DecayedUse(row.half_life, row.span, {})
        if (use.half_life_ns, use.span) != (row.half_life, row.span) or row.type in use.types:
            raise LicorneError(f"{place}: {holder}: its row of {row.type} does not fit those before it")
        uses[holder] = use._replace(types={**use.types, row.type: TypeUse(row.amount, row.kept)})
    return uses


def moved_use(kept: KeptUse, from_ns: int, to_ns: int) -> KeptUse:
    """Return what has at one moment the means that what is kept has at another one; all of it has ended."""
    ended = {path: raised_to(use, {}, kept.at_ns) for path, use in kept.uses.items()}
    return KeptUse(
        to_ns, {path: carried(use, from_ns, use.half_life_ns, to_ns) for path, use in ended.items()}
    )


def not_ahead(usage: Mapping[str, KeptUse], now_ns: int) -> dict[str, KeptUse]:
    """Return what is kept, as of now where the clock by which it was kept is ahead."""
    return {
        name: moved_use(kept, kept.at_ns, now_ns) if kept.at_ns > now_ns else kept
        for name, kept in usage.items()
    }


def of_manager(usage: Mapping[str, KeptUse], rm_id: str | None) -> dict[str, KeptUse]:
    """Return what is kept of the partitions of one RM, `None` for all."""
    return {name: kept for name, kept in usage.items() if rm_id is None or name.startswith(f"[{rm_id}]")}


def later_use(one: Mapping[str, KeptUse], other: Mapping[str, KeptUse]) -> dict[str, KeptUse]:
    """Return what is kept by either, of each partition the later; the other's if both are of one moment."""
    later = {name: kept for name, kept in other.items() if name not in one or kept.at_ns >= one[name].at_ns}
    return {**one, **later}


def taken_use(
    known: Mapping[str, KeptUse], rm_id: str, document: object, now_ns: int | None = None
) -> dict[str, KeptUse]:
    """Return what is kept when what the document has of an RM was added.

    Args:
        known: The use that is kept already.
        rm_id: The RM.
        document: A result of `use_document`, maybe by another clock.
        now_ns: The moment by the clock of this process: what is ahead of it counts as of then.

    Raises:
        RequestError: It is not such a document.
    """
    try:
        _, usage = read_use(document)
    except LicorneError as error:
        raise RequestError(f"the use of RM {rm_id!r}: {error}") from error
    taken = of_manager(usage, rm_id)
    return later_use(known, taken if now_ns is None else not_ahead(taken, now_ns))
