"""Dumps: everything that a scheduler knows in one document, and the use that is kept over a restart.

**The state dump** has all documents of a scheduler. It is written piece by piece, also from time to time. The
partitions are not stopped: each piece is as of one moment, and changes that come meanwhile are shown or not.
The text has each entry of a list on a separate line.

**The usage file** has what queues and users have used, for their fair share. It is the document of
`proxy.core.scheduler.answering.kept_use` as JSON.

The room owns the form of both and the files of periodic dumps. It reads by the views of a scheduler, and
imports `scheduler` and the rooms below.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import SpooledTemporaryFile
from time import time_ns
from typing import IO, TYPE_CHECKING, Final, Self, TypeAlias, final

from ...actors.services.log import Log
from ...model.applications.report import ShownApplication
from ...model.errors import LicorneError, RequestError
from ...model.queues.use_order import KeptUse
from ...model.values.documents import Document
from ...model.values.messages import short_partition_name
from ..base.files.input_files import InputError, read_text
from ..base.files.json_text import JsonError, parse_json
from ..base.files.output_files import check_writable, write_whole
from ..core.documents.applications import application_document
from ..core.documents.clusters import NodeDocument, cluster_document, node_document, partition_document
from ..core.documents.configurations import configuration_document
from ..core.documents.declarations import time_text
from ..core.documents.monitoring import DumpedNodesDocument, DumpedRulesDocument, OpenStreamDocument
from ..core.documents.queues import queue_document, rule_document
from ..core.scheduler.answering.questions import QuestionSide
from ..core.scheduler.answering.state_documents import moved_use, not_ahead, read_use, use_document
from ..core.scheduler.answering.views import UnknownPartitionError, Views

if TYPE_CHECKING:
    from ..core.scheduler.scheduler import Scheduler

_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False)
_IN_MEMORY_MAX: Final = 8 * 2**20
"""How many bytes of a dump are kept in memory; a larger one is in a temporary file."""
_THIS_PROCESS: Final = "this process"
"""How a stream is named that no reader elsewhere has."""
Section: TypeAlias = "tuple[str, object]"
"""A key of the dump, and its value; of a list the entries, which are made when they are written."""
DUMPS_KEPT: Final = 10
"""How many files are kept; the oldest one is removed for a new one."""
_PATTERN: Final = "licorne-state-*.json"
_UNFINISHED: Final = "licorne-state-*.unfinished"


def state_dump(scheduler: Scheduler) -> Document:
    """Return the state dump as a document; it may be large.

    Raises:
        RequestError: another dump is being made, the scheduler has been stopped, or a predicate asks.
    """
    with state_dump_file(scheduler) as file:
        document: Document = json.load(file)
        return document


@contextmanager
def state_dump_file(scheduler: Scheduler) -> Iterator[IO[bytes]]:
    """Make a state dump, and give its text as a temporary file, at its beginning.

    One dump is made at a time; a slow reader of the file keeps no other one waiting.

    Raises:
        RequestError: as for `state_dump`.
    """
    with SpooledTemporaryFile(max_size=_IN_MEMORY_MAX) as file:
        if not scheduler.monitoring.dumping.acquire(blocking=False):
            raise RequestError("a state dump is being made already; ask again when it is done")
        try:
            for part in _text(_sections(scheduler)):
                file.write(
                    part.encode(errors="replace")
                )  # A lone half of a surrogate pair cannot be encoded.
        finally:
            scheduler.monitoring.dumping.release()
        file.seek(0)
        yield file


def _sections(scheduler: Scheduler) -> Iterator[Section]:
    views = scheduler.views
    names = views.partition_names()
    configurations = views.configurations()
    builds = views.builds()
    yield "timestamp", scheduler.now_ns()
    yield "partitions", map(partition_document, views.partitions())
    yield (
        "applications",
        (application_document(shown) for name in names for shown in _applications(views, name)),
    )
    yield "appHistory", [*scheduler.monitoring.history.applications()]
    yield "nodes", (_nodes(views, name) for name in names)
    yield "clusterInfo", [cluster_document(name, views.started_at_ns, builds) for name in names]
    yield "containerHistory", [*scheduler.monitoring.history.containers()]
    yield "queues", (_queues(views, name) for name in names)
    yield "rmDiagnostics", scheduler.monitoring.manager_diagnostics()
    yield "logLevel", scheduler.monitoring.log_level()
    if configurations:
        rm_id, config = configurations[0]
        extra = scheduler.extra_configuration(rm_id).texts
        yield "config", configuration_document(config, extra, yaml=False)
    yield "placementRules", (_rules(views, name) for name in names)
    streams: list[OpenStreamDocument] = [
        {"Name": stream.host or _THIS_PROCESS, "CreatedAt": time_text(stream.created_ns)}
        for stream in scheduler.events.open_streams()
    ]
    if streams:
        yield "eventStreams", streams


def _applications(views: Views, partition: str) -> Iterator[ShownApplication]:
    """Yield all applications of a partition; none if it has ended."""
    try:
        listed = views.listed_applications(partition)
        pages: Sequence[Iterator[Sequence[ShownApplication]]] = (
            views.active(partition, sorted(entry.application_id for entry in listed.active)),
            views.completed(partition, sorted(listed.completed)),
            views.rejected(partition, sorted(listed.rejected)),
        )
        for page in (page for kind in pages for page in kind):
            yield from page
    except UnknownPartitionError:
        return


def _nodes(views: Views, partition: str) -> DumpedNodesDocument:
    nodes: list[NodeDocument] = []
    try:
        for page in views.nodes(partition):
            nodes += map(node_document, page)
    except UnknownPartitionError:
        pass  # It has ended: what was read stays.
    return {"partitionName": short_partition_name(partition), "nodesInfo": nodes}


def _queues(views: Views, partition: str) -> Mapping[str, object]:
    try:
        path = views.queue(partition, "root", subtree=True)
    except UnknownPartitionError:
        return {}
    return queue_document(path, partition=short_partition_name(partition), own_maximum=True)


def _rules(views: Views, partition: str) -> DumpedRulesDocument:
    try:
        rules = [*map(rule_document, views.placement_rules(partition))]
    except UnknownPartitionError:
        rules = []
    return {"partition": short_partition_name(partition), "rules": rules}


def _text(sections: Iterator[Section]) -> Iterator[str]:
    """Yield the text of a document whose sections are made when they are written."""
    before = "{\n"
    for name, value in sections:
        yield f'{before}  "{name}": '
        before = ",\n"
        if isinstance(value, Iterator | list):
            yield from _list_text(value)
        else:
            yield _ENCODER.encode(value)
    yield "\n}\n"


def _list_text(entries: Iterable[object]) -> Iterator[str]:
    before = "["
    for entry in entries:
        yield f"{before}\n    "
        before = ","
        yield _ENCODER.encode(entry)
    yield "[]" if before == "[" else "\n  ]"


class PeriodicWriter(ABC):
    """Writes at equal intervals, on a thread; `with` starts and ends it."""

    def __init__(self, thread_name: str, interval_seconds: float) -> None:
        self._interval_seconds = interval_seconds
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name=thread_name, daemon=True)
        self._log = Log()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._closed.wait(self._interval_seconds):
            self._write_due()

    @abstractmethod
    def _write_due(self) -> None:
        """Write once; log the error of a file that cannot be written."""


@final
class PeriodicDumps(PeriodicWriter):
    """Writes a state dump of one scheduler every so often; `with` starts and ends it.

    Args:
        scheduler: The scheduler; it is not stopped.
        folder: Where the files are; other files there are left alone.
        interval_seconds: From one dump to the next.

    Raises:
        LicorneError: the folder cannot be written to, or the interval is not above 0.
    """

    def __init__(self, scheduler: Scheduler, folder: Path, interval_seconds: float) -> None:
        if not interval_seconds > 0:
            raise LicorneError(
                f"an interval of {interval_seconds} seconds between state dumps is not above 0"
            )
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise LicorneError(f"no state dumps can be written to {folder}: {error}") from error
        if not os.access(folder, os.W_OK):
            raise LicorneError(f"no state dumps can be written to {folder}: it cannot be written to")
        for left in folder.glob(_UNFINISHED):  # By a process that was killed.
            with suppress(OSError):
                left.unlink()
        super().__init__("licorne-dumps", interval_seconds)
        self._scheduler = scheduler
        self._folder = folder

    def write(self) -> Path:
        """Write a dump now; return its file. It gets its name when it is complete.

        Raises:
            RequestError: as for `state_dump`.
            OSError: the file cannot be written.
        """
        moment = datetime.fromtimestamp(time_ns() / 1e9, UTC).strftime("%Y%m%dT%H%M%S.%f")
        path = self._folder / f"licorne-state-{moment}.json"
        unfinished = path.with_suffix(".unfinished")
        try:
            with state_dump_file(self._scheduler) as source, unfinished.open("wb") as target:
                shutil.copyfileobj(source, target)
                target.flush()
                os.fsync(target.fileno())  # Else the new name may be on the disk before the text is.
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
        # A file named after a later time was written before the clock was set back: it is removed first.
        by_age = sorted(self._folder.glob(_PATTERN), key=lambda each: (each.name <= path.name, each.name))
        for old in by_age[:-DUMPS_KEPT]:
            old.unlink(missing_ok=True)
        return path

    def _write_due(self) -> None:
        try:
            self.write()
        except (LicorneError, OSError) as error:
            self._log.warning("no state dump was written to {}: {}", self._folder, error)


INTERVAL_SECONDS: Final = 300.0
"""From one writing to the next."""
HALF_LIVES_MAX: Final = 20
"""So many half-lives leave a millionth."""


def usage_text(usage: Mapping[str, KeptUse], now_ns: int) -> str:
    """Return the text of a usage file.

    Args:
        usage: The kept use, by the full name of the partition.
        now_ns: The moment of writing, nanoseconds since 1970.
    """
    return _text_of(use_document(usage, now_ns))


def _text_of(document: Document) -> str:
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def read_usage(path: Path) -> tuple[int, dict[str, KeptUse]]:
    """Return when a usage file was written, and what is kept in it by the full name of the partition.

    Raises:
        InputError: The file cannot be read, or is not of this version.
    """
    try:
        return read_use(parse_json(read_text(path)))
    except JsonError as error:
        raise InputError(path, f"is not JSON: {error}") from error
    except InputError:
        raise
    except LicorneError as error:
        raise InputError(path, str(error)) from error


def usage_from(path: Path, now_ns: int) -> Mapping[str, KeptUse]:
    """Return what is kept in a usage file, by the full name of the partition, to go on from now.

    Where the clock of the file is ahead by less than a half-life, as after a clock was set right or the host
    was changed, what was used until then counts as if it had been until now.

    Raises:
        InputError: The file cannot be read, is not of this version, is older than 20 of its longest
            half-life, or ahead by one.
    """
    at_ns, usage = read_usage(path)
    half_lives = [use.half_life_ns for kept in usage.values() for use in kept.uses.values()]
    if half_lives and at_ns - now_ns >= max(half_lives):
        raise InputError(path, f"is from the future: its time is {at_ns}, and now is {now_ns}")
    if half_lives and now_ns - at_ns > HALF_LIVES_MAX * max(half_lives):
        age, longest = (now_ns - at_ns) // 10**9, max(half_lives) // 10**9
        raise InputError(path, f"is {age} s old, more than {HALF_LIVES_MAX} half-lives of {longest} s")
    return not_ahead(usage, now_ns)


def begun_at(begin_ns: int, at_ns: int, usage: Mapping[str, KeptUse]) -> dict[str, KeptUse]:
    """Return what is kept as if the file had been written when a simulation begins.

    A partition has it by its name within its resource manager as well, if no other one has the same.

    Args:
        begin_ns: The beginning of the simulation, nanoseconds since 1970.
        at_ns: When the file was written.
        usage: The kept use, by the full name of the partition.
    """
    begun = {name: moved_use(kept, at_ns, begin_ns) for name, kept in usage.items()}
    short = Counter(short_partition_name(name) for name in usage)
    for name, kept in list(begun.items()):
        if short[short_partition_name(name)] == 1:
            begun[short_partition_name(name)] = kept
    return begun


@final
class UsageFile(PeriodicWriter):
    """Writes what was used into a file, every five minutes; `with` starts and ends that.

    Args:
        scheduler: It is asked what was used.
        path: The file; it is replaced as a whole.
        interval_seconds: From one writing to the next.

    Raises:
        UnwritableFileError: the file cannot be written.
    """

    def __init__(
        self, scheduler: QuestionSide, path: Path, interval_seconds: float = INTERVAL_SECONDS
    ) -> None:
        check_writable(path)
        super().__init__("licorne-usage", interval_seconds)
        self._scheduler = scheduler
        self._path = path
        self._writing = threading.Lock()

    def write(self) -> None:
        """Write the file now; if that fails, the error is logged, and the file keeps its old content."""
        try:
            with self._writing:
                write_whole(self._path, _text_of(self._scheduler.kept_use()))
        except LicorneError as error:
            self._log.warning("the use of queues was not written to {}: {}", self._path, error)

    def _write_due(self) -> None:
        self.write()
