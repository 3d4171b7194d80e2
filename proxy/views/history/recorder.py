"""Writes the history of a scheduler: a thread reads twice a second what has changed, and writes a batch.

A reading asks each partition in pieces of bounded size, as the page does. It takes a twentieth of a
processor at most, with the turns of the partitions: after a long one the next comes later. Waits for a busy
partition do not count. What could not be written is read again with the next batch.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, cast, final

from ....model.errors import LicorneError, RequestError
from ....model.state.counters import EndedApplication, HistogramFigures
from ....model.views.rows import LiveApplication, Seen
from ...base.files.output_files import check_writable
from ...core.documents.applications import PreemptedDocument, preempted_documents
from ...core.scheduler.answering.views import HappenedRows
from ...core.scheduler.scheduler import Scheduler
from ..dumps import PeriodicWriter
from .store import HistoryStore, Row

INTERVAL_SECONDS: Final = 0.5
_REST: Final = 20
"""A reading and its batch take one of this many parts of a processor at most."""
_PENDING_MAX: Final = 100_000
"""How many rows of a kind wait for a file that cannot be written; beyond it the oldest are dropped."""
_SECOND_NS: Final = 10**9
_PROJECT_TAGS: Final = ("project", "namespace")


def project_of(tags: Mapping[str, str]) -> str:
    """Return the project of an application: its tag `project`, or else `namespace`; empty without both."""
    return next((tags[name] for name in _PROJECT_TAGS if tags.get(name)), "")


class Batch(NamedTuple):
    """What has happened since the batch before: rows by table, as `HistoryStore.write` takes them."""

    time_ns: int
    tables: Mapping[str, Sequence[Row]]


@final
class _ReadPartition:
    """What was read of one partition."""

    def __init__(self) -> None:
        self.seen = Seen()
        self.applications: dict[str, LiveApplication] = {}
        self.waits: Mapping[str, HistogramFigures] = {}


@final
class HistoryReader:
    """Reads what has happened in a scheduler, as batches for a store.

    Args:
        scheduler: The scheduler.
        who: Returns who has changed the configuration of a resource manager to a text, in words.
    """

    def __init__(self, scheduler: Scheduler, who: Callable[[str, str], str]) -> None:
        self._scheduler = scheduler
        self._who = who
        self._partitions: dict[str, _ReadPartition] = {}
        self._sums: dict[tuple[tuple[str, ...], str], tuple[int, int]] = {}
        """The current use of holders, and what waits of them, by the type of resource."""
        self._configurations: dict[str, object] = {}
        self._refused = 0
        self._written_ns = self._read_ns = scheduler.monitoring.now_ns()
        self._pending: defaultdict[str, list[Row]] = defaultdict(list)
        self.others_seconds = 0.0
        """The processor time of what else partitions did on this thread during the last reading, less that of
        their turns for the reading on other threads."""
        self.missed = 0
        """How many ends and preemptions were forgotten before they were read."""

    def read(self) -> Batch:
        """Read what has happened since `written` was called; without that call it is in the next batch, too.

        Raises:
            RequestError: The scheduler has been stopped.
        """
        monitoring = self._scheduler.monitoring
        now_ns = self._read_ns = monitoring.now_ns()  # What has happened until then is in the reading.
        seconds = max(0, now_ns - self._written_ns) / _SECOND_NS
        uses: list[Row] = [
            [*holder, name, used * seconds, waiting * seconds]
            for (holder, name), (used, waiting) in self._sums.items()
        ]
        worked = time.thread_time()
        found = {each.partition: each for each in monitoring.live_view.happened(self._known)}
        self.others_seconds = time.thread_time() - worked - sum(each.seconds for each in found.values())
        for name in self._partitions.keys() - found.keys():
            for application in self._partitions.pop(name).applications.values():
                self._count(name, application, -1)
        for name, rows in found.items():
            self._take(name, self._partitions.setdefault(name, _ReadPartition()), rows)
        self._read_configurations(now_ns)
        for pending in self._pending.values():
            del pending[:-_PENDING_MAX]
        return Batch(now_ns, {"uses": uses, **self._pending})

    def written(self) -> None:
        """Take note that the last batch was written."""
        self._written_ns = self._read_ns
        self._pending.clear()

    def _known(self, partition: str) -> tuple[Seen, Mapping[str, LiveApplication]]:
        read = self._partitions.get(partition) or _ReadPartition()
        return read.seen, read.applications

    def _take(self, partition: str, read: _ReadPartition, rows: HappenedRows) -> None:
        happened, known = rows.happened, read.applications
        gone = known.keys() - set(happened.applications)
        for each in [
            known.pop(name)
            for name in (*gone, *(row.application_id for row in rows.applications))
            if name in known
        ]:
            self._count(partition, each, -1)
        for each in rows.applications:
            known[each.application_id] = each
            self._count(partition, each, 1)
        for queue, now in happened.waits.items():
            waits = now.since(read.waits.get(queue))
            if waits.durations:
                seconds = waits.total_ns / _SECOND_NS
                self._pending["waits"].append([partition, queue, waits.durations, seconds, *waits.counts])
        read.waits, read.seen = happened.waits, happened.seen
        self.missed += happened.missed
        self._pending["ended"] += [_ended_row(partition, each) for each in happened.ended]
        self._pending["preempted"] += [
            _preempted_row(partition, each)
            for record in happened.preemptions
            for each in preempted_documents(record)
        ]

    def _count(self, partition: str, row: LiveApplication, sign: int) -> None:
        """Add what an application uses and waits for to the sums of its holder, or take it away."""
        holder = _holder(partition, row.queue_path, row.user, row.groups, row.tags)
        facts = row.facts
        for resource, waits in ((facts.allocated, 0), (facts.placeholder_allocated, 0), (facts.pending, 1)):
            for name, quantity in resource.items():
                used, waiting = self._sums.pop((holder, name), (0, 0))
                sums = (used + sign * quantity * (1 - waits), waiting + sign * quantity * waits)
                if any(sums):
                    self._sums[holder, name] = sums

    def _read_configurations(self, now_ns: int) -> None:
        """Note configurations since the last reading, and the last refusal; the file keeps what is new."""
        changes = self._pending["configurations"]
        for rm_id, config in self._scheduler.views.configurations():
            before = self._configurations.get(rm_id)
            if before is config:
                continue
            self._configurations[rm_id] = config
            change = "changed" if before is not None else "registered"
            changes.append(
                (now_ns, rm_id, change, self._who(rm_id, config.text), config.checksum, config.text)
            )
        counts = self._scheduler.metrics.configurations
        if counts.refused > self._refused:
            self._refused = counts.refused
            rm_id, reason = counts.last_refused
            changes.append((now_ns, rm_id, "refused", "", "", reason))


def connection_of(scheduler: Scheduler, rm_id: str) -> str:
    """Return how a resource manager is connected, in words."""
    known = (each.connection for each in scheduler.resource_managers() if each.rm_id == rm_id)
    return next(known, "") or "in this process"


def _holder(
    partition: str, queue: str, user: str, groups: Sequence[str], tags: Mapping[str, str]
) -> tuple[str, ...]:
    """Return whose use it is, in the order of `HOLDER_COLUMNS`."""
    return partition, queue, user, groups[0] if groups else "", project_of(tags)


def _ended_row(partition: str, ended: EndedApplication) -> Row:
    user = ended.user
    holder = _holder(partition, ended.queue_path, user.name, user.groups, ended.tags)
    return [ended.time_ns, ended.application_id, *holder, ended.state, ended.submitted_at_ns, ended.reason]


def _preempted_row(partition: str, document: PreemptedDocument) -> Row:
    time_ns, *others = document.values()
    texts = [json.dumps(each) if isinstance(each, dict) else each for each in others]
    return cast("Row", [time_ns, partition, *texts])


@final
class HistoryWriter(PeriodicWriter):
    """Writes the history of one scheduler into a file; `with` starts and ends that.

    Args:
        scheduler: The scheduler; it is not stopped.
        path: The file.
        who: Returns who has changed the configuration of a resource manager to a text, in words.

    Raises:
        LicorneError: The file cannot be written, or is not a history.
    """

    def __init__(self, scheduler: Scheduler, path: Path, who: Callable[[str, str], str]) -> None:
        check_writable(path)
        super().__init__("licorne-history", INTERVAL_SECONDS)
        self._path = path
        self._store = HistoryStore(path)
        self._reader = HistoryReader(scheduler, who)
        self._writing = threading.Lock()
        self._failure = ""
        self._missed = 0
        scheduler.monitoring.history_file = path

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self.write()
        self._store.close()

    def _write_due(self) -> None:
        began, worked = time.monotonic(), time.thread_time()
        self.write()
        took = time.monotonic() - began
        worked = time.thread_time() - worked - self._reader.others_seconds
        self._interval_seconds = max(INTERVAL_SECONDS - took, worked * (_REST - 1))

    def write(self) -> None:
        """Write what has happened until now; a failure is logged once, and the rows are kept for later."""
        with self._writing:
            try:
                self._store.write(*self._reader.read())
            except RequestError:
                return  # The scheduler has been stopped.
            except (sqlite3.Error, LicorneError) as error:
                if str(error) != self._failure:
                    self._log.warning("the history was not written to {}: {}", self._path, error)
                self._failure = str(error)
                return
            self._reader.written()
            self._failure = ""
            if self._reader.missed > self._missed:
                self._missed = self._reader.missed
                self._log.warning("{} ends and preemptions are missing in {}", self._missed, self._path)
