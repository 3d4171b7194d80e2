"""The file of a history: an SQLite database that processes of one machine write, and others read.

Each batch is one transaction, so a process that is killed leaves the file as of its last batch. The rows of a
table are given as one JSON text to one statement: SQLite works on them without Python's interpreter, which
the threads of the scheduler need meanwhile.

The file is bounded: if it is too large, or has entries older than `DAYS_KEPT`, the oldest entries are
removed.
"""

# ruff: noqa: S608 - statements are made of names in this module
from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeAlias, final

from ....model.errors import LicorneError
from ....model.state.counters import WAIT_BOUNDS_NS

Row: TypeAlias = "Sequence[str | int | float]"
VERSION: Final = 1
"""The version of the tables, in `user_version` of the file."""
BYTES_MAX: Final = 1 << 30
DAYS_KEPT: Final = 400
HOUR_NS: Final = 3600 * 10**9
_TRIM_EVERY: Final = 60
"""After this many batches the size of the file is compared with its limit."""
_PART_TRIMMED: Final = 10
"""A file that is too large loses this part of the time that it covers, until it is not."""
WAIT_COLUMNS: Final = (*(f"within_{bound // 10**9}s" for bound in WAIT_BOUNDS_NS), "longer")
HOLDER_COLUMNS: Final = ("partition", "queue", "user", '"group"', "project")
_COLUMNS: Final = {
    "uses": ("time_ns", "holder", "type", "used_seconds", "waiting_seconds"),
    "waits": ("time_ns", "partition", "queue", "placed", "seconds", *WAIT_COLUMNS),
    "ended": ("time_ns", "application", *HOLDER_COLUMNS, "state", "submitted_ns", "reason"),
    "preempted": (
        *("time_ns", "partition", "cause", "queue", "application", "allocation", "victim_queue"),
        *("victim_user", "victim_application", "victim_allocation", "node", "resource", "reason", "lost_ns"),
    ),
    "configurations": ("time_ns", "rm", "change", "who", "checksum", "text"),
}
"""The columns of each table with a time; that of uses and waits is the beginning of the hour."""
_KEYS: Final = {"uses": ("time_ns", "holder", "type"), "waits": ("time_ns", "partition", "queue")}
"""The keys of tables with sums; rows of the others are added."""
COUNTED: Final = "SELECT max(rowid) FROM configurations WHERE change != 'refused'"
"""The last configuration that has counted."""


class HistoryFileError(LicorneError):
    """A file that is not a history, or has another version; its text begins with the path."""


@final
class HistoryStore:
    """The file as its writer has it; one thread at a time.

    Args:
        path: The file; it is made if it does not exist.
        bytes_max: The limit of its size.

    Raises:
        HistoryFileError: The file is not a history, or has another version.
    """

    def __init__(self, path: Path, *, bytes_max: int = BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._batches = 0
        self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            self._check(path)
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = NORMAL")
            with self._transaction():
                if self._check(path):  # Another process may have made them.
                    self._make_tables()
        except (sqlite3.Error, HistoryFileError) as error:
            self._database.close()
            if isinstance(error, HistoryFileError):
                raise
            raise HistoryFileError(f"{path}: is not a history that can be written: {error}") from error

    def _check(self, path: Path) -> bool:
        """Refuse a file of another version; return whether it is new."""
        is_new = self._database.execute("SELECT 1 FROM sqlite_schema").fetchone() is None
        check_version(self._database, path, 0 if is_new else VERSION)
        return is_new

    def _make_tables(self) -> None:
        columns = ", ".join(HOLDER_COLUMNS)
        execute = self._database.execute
        execute(f"CREATE TABLE holders (id INTEGER PRIMARY KEY, {columns}, UNIQUE ({columns}))")
        for table, columns_of in _COLUMNS.items():
            key = f", PRIMARY KEY ({', '.join(_KEYS[table])})" if table in _KEYS else ""
            execute(f"CREATE TABLE {table} ({', '.join(columns_of)}{key})")
            execute(f"CREATE INDEX {table}_by_time ON {table} (time_ns)")
        execute(f"PRAGMA user_version = {VERSION}")

    def write(self, time_ns: int, tables: Mapping[str, Sequence[Row]]) -> None:
        """Write a batch as one transaction.

        Args:
            time_ns: The time of the batch.
            tables: The rows by table, in the order of the columns. Those of sums are without the hour, and
                those of `uses` begin with the columns of the holder.

        Raises:
            sqlite3.Error: It cannot be written, and nothing of it was.
        """
        hour_ns = time_ns - time_ns % HOUR_NS
        with self._transaction() as database:
            for table, rows in _pieces(tables):
                text = json.dumps(rows)
                if table == "uses":
                    database.execute(_ADD_HOLDERS, (text,))
                database.execute(_ADDS[table], (text, hour_ns) if table in _KEYS else (text,))
        if self._batches % _TRIM_EVERY == 0:
            self._trim(time_ns)
        self._batches += 1

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield self._database
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")

    def size(self) -> int:
        """Return how many bytes of the file are in use; it does not grow while others are free."""
        names = ("page_count", "freelist_count", "page_size")
        pages, free, bytes_each = (self._database.execute(f"PRAGMA {name}").fetchone()[0] for name in names)
        return int((pages - free) * bytes_each)

    def _trim(self, now_ns: int) -> None:
        """Remove what is too old, then the oldest part of a file that is too large, until it is not."""
        before_ns = now_ns - DAYS_KEPT * 24 * HOUR_NS
        self._remove(before_ns)
        while self.size() > self._bytes_max and before_ns < now_ns:
            firsts = [
                self._database.execute(f"SELECT min(time_ns) FROM {table}").fetchone()[0]
                for table in _COLUMNS
            ]
            first_ns = max(before_ns, min((each for each in firsts if each is not None), default=now_ns))
            before_ns = first_ns + max((now_ns - first_ns) // _PART_TRIMMED, 1)
            self._remove(before_ns)

    def _remove(self, before_ns: int) -> None:
        with self._transaction() as database:
            for table in _COLUMNS:
                kept = f" AND rowid NOT IN ({COUNTED} GROUP BY rm)" if table == "configurations" else ""
                database.execute(f"DELETE FROM {table} WHERE time_ns < ?{kept}", (before_ns,))
            database.execute("DELETE FROM holders WHERE id NOT IN (SELECT holder FROM uses)")


def check_version(database: sqlite3.Connection, path: Path, known: int = VERSION) -> None:
    """Refuse a file of another version.

    Raises:
        HistoryFileError: The file has another version.
    """
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if version != known:
        raise HistoryFileError(f"{path}: has the version {version}; this program knows {VERSION}")


def _pieces(tables: Mapping[str, Sequence[Row]]) -> Iterator[tuple[str, Sequence[Row]]]:
    """Yield the rows of one statement, with their table; a configuration is compared with the one before."""
    for table, rows in tables.items():
        yield from ((table, [row]) for row in rows) if table == "configurations" else ((table, rows),)


def _values(first: int, count: int) -> str:
    """Return the expressions for some values of each row of the JSON text."""
    return ", ".join(f"json_extract(value, '$[{place}]')" for place in range(first, first + count))


def _add(table: str) -> str:
    """Return the statement that adds rows; those with the key of another one are added to its sums.

    A configuration that counts already, which another process may have noted, is not added.
    """
    columns = _COLUMNS[table]
    holders = len(HOLDER_COLUMNS)
    if table not in _KEYS:
        insert = f"INSERT INTO {table} SELECT {_values(0, len(columns))} FROM json_each(?1)"
        if table != "configurations":
            return insert
        last = f"SELECT checksum FROM configurations WHERE rowid = ({COUNTED} AND rm = {_values(1, 1)})"
        return f"{insert} WHERE {_values(2, 1)} = 'refused' OR {_values(4, 1)} IS NOT ({last})"
    if table == "uses":
        source = f"""?2, holders.id, {_values(holders, 3)} FROM json_each(?1)
            JOIN holders ON ({", ".join(HOLDER_COLUMNS)}) = ({_values(0, holders)})"""
    else:
        source = f"?2, {_values(0, len(columns) - 1)} FROM json_each(?1)"
    sums = [name for name in columns if name not in _KEYS[table]]
    added = ", ".join(f"{name} = {name} + excluded.{name}" for name in sums)
    return f"INSERT INTO {table} SELECT {source} WHERE true ON CONFLICT DO UPDATE SET {added}"


_ADD_HOLDERS: Final = f"""INSERT OR IGNORE INTO holders ({", ".join(HOLDER_COLUMNS)})
    SELECT {_values(0, len(HOLDER_COLUMNS))} FROM json_each(?1)"""
_ADDS: Final = {table: _add(table) for table in _COLUMNS}
