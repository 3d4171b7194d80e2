"""Questions to the file of a history: tables of rows, and the use of queues over time.

A file is read as it is at one moment, also while a server writes it.
"""

# ruff: noqa: S608 - statements are made of names in the modules of this room
from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias, final

from ....model.errors import LicorneError
from .store import COUNTED, HOUR_NS, WAIT_COLUMNS, HistoryFileError, check_version
from .subjects import Grouping, HistorySubject

Cell: TypeAlias = "str | int | float"
POINTS_MAX: Final = 400
"""How many points a range of the page has at most."""
_BYTES: Final = "type IN ('memory', 'ephemeral-storage', 'storage') OR type LIKE 'hugepages%'"
_SCALE: Final = f"3600.0 * CASE WHEN type = 'vcore' THEN 1000 WHEN {_BYTES} THEN {2**30} ELSE 1 END"
_UNIT: Final = f"CASE WHEN type = 'vcore' THEN 'core h' WHEN {_BYTES} THEN 'GiB h' ELSE 'h' END"


class HistoryTable(NamedTuple):
    """The answer to a question."""

    columns: tuple[str, ...]
    rows: list[tuple[Cell, ...]]


class Period(NamedTuple):
    """The time that a question is about, and its partition."""

    since_ns: int
    until_ns: int
    partition: str = ""
    """The full or the short name; empty for all."""

    @property
    def values(self) -> tuple[Cell, ...]:
        """The values of `_HOURS` and `_ENTRIES`."""
        return self.since_ns, self.until_ns, self.partition, self.partition


_IN_PARTITION: Final = "(?3 IN ('', partition) OR substr(partition, -length(?4) - 1) = ']' || ?4)"
_HOURS: Final = f"time_ns > ?1 - {HOUR_NS} AND time_ns < ?2 AND {_IN_PARTITION}"
"""The hours of which a part is in a period."""
_ENTRIES: Final = f"time_ns >= ?1 AND time_ns < ?2 AND {_IN_PARTITION}"
_CONFIGURATIONS: Final = f"""time_ns < ?2 AND ?3 = ?4
    AND (time_ns >= ?1 OR rowid IN ({COUNTED} AND time_ns < ?1 GROUP BY rm))"""
"""With those that counted at the beginning."""


class QueueUse(NamedTuple):
    """The mean use of a queue in an interval."""

    path: str
    time_ns: int
    """When the interval begins."""
    type: str
    used: int
    waiting: int


@final
class HistoryFile:
    """A file to be asked; each question reads it anew.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """Open the file for one question.

        Raises:
            HistoryFileError: It is not there, is not a history, or has another version.
        """
        try:
            with closing(sqlite3.connect(f"{self._path.absolute().as_uri()}?mode=ro", uri=True)) as database:
                check_version(database, self._path)
                yield database
        except sqlite3.Error as error:
            raise HistoryFileError(f"{self._path}: cannot be read as a history: {error}") from error

    def ask(self, subject: HistorySubject, period: Period, by: Grouping = Grouping.QUEUE) -> HistoryTable:
        """Return the answer to a question.

        Args:
            subject: What it is about.
            period: The time that it is about; of uses and waits, whole hours.
            by: Whose use or waits are added up; waits are known by queue and partition alone.

        Raises:
            HistoryFileError: The file cannot be read.
            LicorneError: There are no waits by this grouping.
        """
        name = f'"{by.value}"'
        if subject is HistorySubject.USAGE:
            query = f"""SELECT {name}, type, round(sum(used_seconds) / ({_SCALE}), 3) AS used,
                round(sum(waiting_seconds) / ({_SCALE}), 3) AS waited, {_UNIT} AS unit
                FROM uses JOIN holders ON holder = id WHERE {_HOURS}
                GROUP BY {name}, type ORDER BY type, used DESC, {name}"""
        elif subject is HistorySubject.WAITS:
            if by not in (Grouping.QUEUE, Grouping.PARTITION):
                raise LicorneError(f"waits are kept by queue and partition, not by {by.value}")
            sums = ", ".join(f"sum({column}) AS {column}" for column in WAIT_COLUMNS)
            query = f"""SELECT {name}, sum(placed) AS placed,
                round(sum(seconds) / sum(placed), 3) AS mean_seconds, {sums}
                FROM waits WHERE {_HOURS} GROUP BY {name} ORDER BY {name}"""
        else:
            where = _CONFIGURATIONS if subject is HistorySubject.CONFIGURATIONS else _ENTRIES
            query = f"SELECT * FROM {subject.value} WHERE {where} ORDER BY time_ns DESC"
        with self._opened() as database:
            found = database.execute(query, period.values)
            return HistoryTable(tuple(column for column, *_ in found.description), found.fetchall())

    def first_ns(self) -> int | None:
        """Return the first hour of which uses are known, `None` without one.

        Raises:
            HistoryFileError: The file cannot be read.
        """
        with self._opened() as database:
            found: tuple[int | None] = database.execute("SELECT min(time_ns) FROM uses").fetchone()
        return found[0]

    def queue_use(self, period: Period, parent: str) -> tuple[int, list[QueueUse]]:
        """Return the length of intervals, and in each the mean use of a queue and those directly below it.

        Intervals are whole hours. One that is not over counts until the end of the period.

        Raises:
            HistoryFileError: The file cannot be read.
        """
        interval_ns = max(1, -(-(period.until_ns - period.since_ns) // HOUR_NS // POINTS_MAX)) * HOUR_NS
        child = "substr(queue, length(?5) + 2)"
        query = f"""WITH shown AS (
                SELECT time_ns - time_ns % ?6 AS begin_ns, type, used_seconds, waiting_seconds, queue
                FROM uses JOIN holders ON holder = id
                WHERE {_HOURS} AND substr(queue || '.', 1, length(?5) + 1) = ?5 || '.'
            ), paths AS (
                SELECT ?5 AS path, * FROM shown UNION ALL
                SELECT ?5 || '.' || substr({child}, 1, instr({child} || '.', '.') - 1), * FROM shown
                WHERE queue != ?5
            )
            SELECT path, begin_ns, type, sum(used_seconds), sum(waiting_seconds) FROM paths
            GROUP BY path, begin_ns, type ORDER BY path, begin_ns"""
        with self._opened() as database:
            found = database.execute(query, (*period.values, parent, interval_ns)).fetchall()

        def mean(begin_ns: int, seconds: float) -> int:
            return round(seconds * 10**9 / max(10**9, min(interval_ns, period.until_ns - begin_ns)))

        return interval_ns, [
            QueueUse(path, begin_ns, name, mean(begin_ns, used), mean(begin_ns, waiting))
            for path, begin_ns, name, used, waiting in found
        ]
