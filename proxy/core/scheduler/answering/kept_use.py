"""What queues and users have used, as a document: what usage files have, and a door and its workers exchange.

It has the moment that it was made, and for each partition its own moment and rows of a path, a user of that
leaf or none, a resource type, what was in use, and what is kept of the past (`decayed_use`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from .....model.errors import LicorneError, RequestError
from .....model.queues.use_order import KeptUse
from .....model.resources.decayed_use import DecayedUse, TypeUse, carried, raised_to
from .....model.values.documents import Document

KIND: Final = "licorne usage"
VERSION: Final = 1
_Time = Annotated[int, Field(ge=0, lt=2**63)]


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
        usage: What is kept, by the full name of the partition.
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
        document: The document, as it was read from JSON.

    Raises:
        LicorneError: It is no such document, or not of this version.
    """
    if not isinstance(document, dict) or document.get("kind") != KIND:
        raise LicorneError(f"is no usage file: its kind is not {KIND!r}")
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
        known: What is kept already.
        rm_id: The RM.
        document: What `use_document` has returned, maybe by another clock.
        now_ns: The moment by the clock of this process: what is ahead of it counts as of then.

    Raises:
        RequestError: It is no such document.
    """
    try:
        _, usage = read_use(document)
    except LicorneError as error:
        raise RequestError(f"what RM {rm_id!r} has used: {error}") from error
    taken = of_manager(usage, rm_id)
    return later_use(known, taken if now_ns is None else not_ahead(taken, now_ns))
