"""The usage file: what queues and users have used, kept over a restart for their fair share.

It is JSON: the moment that it was written, and for each partition its own moment and rows of a path, a user
of that leaf or none, a resource type, what was in use, and what is kept of the past (`decayed_use`).
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from time import time_ns
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Final, Literal, Self, final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ...actors.services.log import Log
from ...model.errors import LicorneError
from ...model.queues.use_order import KeptUse
from ...model.resources.decayed_use import DecayedUse, TypeUse, carried, raised_to
from ...model.values.messages import short_partition_name
from ..files.input_errors import InputError
from ..files.input_files import read_text
from ..files.json_text import JsonError, parse_json
from ..files.output_files import check_writable, write_whole

if TYPE_CHECKING:
    from ..scheduler.scheduler import Scheduler

__all__ = ["INTERVAL_SECONDS", "UsageFile", "begun_at", "check_age", "read_usage", "usage_text"]

INTERVAL_SECONDS: Final = 300.0
"""From one writing to the next."""
HALF_LIVES_MAX: Final = 20
"""So many half-lives leave a millionth."""
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
    """The whole file; times are nanoseconds, moments count from 1970."""

    model_config = ConfigDict(extra="forbid", strict=True)

    kind: Literal["licorne usage"]
    version: Literal[1]
    at: _Time
    partitions: list[_UsagePartition]


def usage_text(usage: Mapping[str, KeptUse], now_ns: int) -> str:
    """Return the text of a usage file.

    Args:
        usage: What is kept, by the full name of the partition.
        now_ns: The moment of writing, nanoseconds since 1970.
    """
    partitions = [
        _UsagePartition(name=name, at=kept.at_ns, rows=list(_rows(kept)))
        for name, kept in sorted(usage.items())
    ]
    document = _UsageDocument(kind=KIND, version=VERSION, at=now_ns, partitions=partitions)
    return document.model_dump_json(indent=1) + "\n"


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


def read_usage(path: Path) -> tuple[int, dict[str, KeptUse]]:
    """Return when a usage file was written, and what is kept in it by the full name of the partition.

    Raises:
        InputError: The file cannot be read, or is not of this version.
    """
    try:
        document = parse_json(read_text(path))
    except JsonError as error:
        raise InputError(path, f"is no JSON: {error}") from error
    if not isinstance(document, dict) or document.get("kind") != KIND:
        raise InputError(path, f"is no usage file: its kind is not {KIND!r}")
    if document.get("version") != VERSION:
        raise InputError(path, f"has the version {document.get('version')!r}; this program reads {VERSION}")
    try:
        usage = _UsageDocument.model_validate_json(read_text(path))
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(str(step) for step in first["loc"])
        raise InputError(path, f"{place}: {first['msg']}, not {str(first['input'])[:80]!r}") from error
    kept = {}
    for partition in usage.partitions:
        if partition.at > usage.at:
            raise InputError(path, f"{partition.name}: its time {partition.at} is after that of the file")
        kept[partition.name] = KeptUse(partition.at, _uses(partition.rows, f"{path}: {partition.name}"))
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


def check_age(path: Path, at_ns: int, usage: Mapping[str, KeptUse], now_ns: int) -> None:
    """Refuse a file from which nothing can be gone on from now.

    Raises:
        InputError: It is from the future, or older than 20 of its longest half-life.
    """
    if at_ns > now_ns:
        raise InputError(path, f"is from the future: its time is {at_ns}, and now is {now_ns}")
    half_lives = [use.half_life_ns for kept in usage.values() for use in kept.uses.values()]
    if half_lives and now_ns - at_ns > HALF_LIVES_MAX * max(half_lives):
        age, longest = (now_ns - at_ns) // 10**9, max(half_lives) // 10**9
        raise InputError(path, f"is {age} s old, more than {HALF_LIVES_MAX} half-lives of {longest} s")


def begun_at(begin_ns: int, at_ns: int, usage: Mapping[str, KeptUse]) -> dict[str, KeptUse]:
    """Return what is kept as if the file had been written when a simulation begins.

    A partition has it by its name within its resource manager as well, if no other one has the same.

    Args:
        begin_ns: The beginning of the simulation, nanoseconds since 1970.
        at_ns: When the file was written.
        usage: What is kept, by the full name of the partition.
    """
    begun = {}
    for name, kept in usage.items():
        ended = {path: raised_to(use, {}, kept.at_ns) for path, use in kept.uses.items()}
        moved = {path: carried(use, at_ns, use.half_life_ns, begin_ns) for path, use in ended.items()}
        begun[name] = KeptUse(begin_ns, moved)
    short = Counter(short_partition_name(name) for name in usage)
    for name, kept in list(begun.items()):
        if short[short_partition_name(name)] == 1:
            begun[short_partition_name(name)] = kept
    return begun


@final
class UsageFile:
    """Writes what was used into a file, every five minutes; `with` starts and ends that.

    Args:
        scheduler: The scheduler; it is not stopped.
        path: The file; it is replaced as a whole.
        interval_seconds: From one writing to the next.

    Raises:
        UnwritableFileError: the file cannot be written.
    """

    def __init__(self, scheduler: Scheduler, path: Path, interval_seconds: float = INTERVAL_SECONDS) -> None:
        check_writable(path)
        self._scheduler = scheduler
        self._path = path
        self._interval_seconds = interval_seconds
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="licorne-usage", daemon=True)
        self._writing = threading.Lock()
        self._log = Log()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._closed.set()
        self._thread.join()

    def write(self) -> None:
        """Write the file now; what cannot be written is logged, and the file stays as it was."""
        try:
            with self._writing:
                write_whole(self._path, usage_text(self._scheduler.monitoring.keep_use(), time_ns()))
        except LicorneError as error:
            self._log.warning("the use of queues was not written to {}: {}", self._path, error)

    def _run(self) -> None:
        while not self._closed.wait(self._interval_seconds):
            self.write()
