"""The file of a history: sums over hours, processes that are killed, bounds, and files that are refused."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any, Final

import pytest

from licorne.model.state.counters import WAIT_BOUNDS_NS, Histogram
from licorne.proxy.views.history.questions import HistoryFile, Period, QueueUse
from licorne.proxy.views.history.store import DAYS_KEPT, HOUR_NS, HistoryFileError, HistoryStore, Row
from licorne.proxy.views.history.subjects import Grouping, HistorySubject

BEGIN: Final = 500_000 * HOUR_NS
HOUR_SECONDS: Final = 3600
ADA: Final = ("[rm]default", "root.a.b", "ada", "physics", "atlas")
BOB: Final = ("[rm]default", "root.c", "bob", "", "")
ALWAYS: Final = Period(0, 2 * BEGIN)


def uses(cores: int, seconds: int, waiting: int = 0, holder: tuple[str, ...] = ADA) -> dict[str, list[Row]]:
    return {"uses": [(*holder, "vcore", 1000 * cores * seconds, 1000 * waiting * seconds)]}


def ended(time_ns: int, reason: object = "") -> Any:
    return (time_ns, "app", *BOB, "Completed", time_ns, reason)


def configured(time_ns: int, checksum: str, change: str = "changed") -> Row:
    return (time_ns, "rm", change, "queues.yaml of ada", checksum, f"text of {checksum}")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.db"


@pytest.fixture
def used(path: Path) -> Path:
    """A file in which ada has used two cores for an hour and a half, and waited for one for half an hour."""
    store = HistoryStore(path)
    store.write(BEGIN + HOUR_NS // 2, uses(2, HOUR_SECONDS // 4, waiting=1))
    store.write(BEGIN + HOUR_NS - 1, uses(2, HOUR_SECONDS // 4, waiting=1))
    store.write(BEGIN + 2 * HOUR_NS - 1, uses(2, HOUR_SECONDS))
    store.close()
    return path


@pytest.mark.parametrize(
    ("by", "name"),
    [
        (Grouping.USER, "ada"),
        (Grouping.GROUP, "physics"),
        (Grouping.PROJECT, "atlas"),
        (Grouping.QUEUE, "root.a.b"),
        (Grouping.PARTITION, "[rm]default"),
    ],
)
def test_uses_are_added_up_by_those_who_use(used: Path, by: Grouping, name: str) -> None:
    """As people read them: cores times hours."""
    table = HistoryFile(used).ask(HistorySubject.USAGE, ALWAYS, by)

    assert (by.value, "type", "used", "waited", "unit") == table.columns
    assert [(name, "vcore", 3.0, 0.5, "core h")] == table.rows


def test_a_use_counts_in_the_hours_in_which_it_was(used: Path) -> None:
    """The first hour has half of it."""
    first = HistoryFile(used).ask(HistorySubject.USAGE, Period(BEGIN, BEGIN + HOUR_NS, "default"))
    later = HistoryFile(used).ask(HistorySubject.USAGE, Period(BEGIN + HOUR_NS, BEGIN + 9 * HOUR_NS))
    elsewhere = HistoryFile(used).ask(HistorySubject.USAGE, Period(0, 2 * BEGIN, "[rm]other"))

    assert ([1.0], [2.0], []) == tuple([row[2] for row in each.rows] for each in (first, later, elsewhere))


def test_the_page_gets_the_means_of_a_queue_and_those_right_below(used: Path) -> None:
    """In whole hours; of the hour that is not over, until the end of the period."""
    file = HistoryFile(used)
    interval_ns, points = file.queue_use(Period(BEGIN, BEGIN + HOUR_NS * 3 // 2), "root")

    assert (HOUR_NS, BEGIN) == (interval_ns, file.first_ns())
    assert [
        QueueUse("root", BEGIN, "vcore", 1000, 500),
        QueueUse("root", BEGIN + HOUR_NS, "vcore", 4000, 0),
        QueueUse("root.a", BEGIN, "vcore", 1000, 500),
        QueueUse("root.a", BEGIN + HOUR_NS, "vcore", 4000, 0),
    ] == points
    assert {"root.a.b"} == {point.path for point in file.queue_use(ALWAYS, "root.a.b")[1]}
    assert [] == file.queue_use(ALWAYS, "root.a_b")[1]


def test_a_long_range_has_few_points(used: Path) -> None:
    """A year in days."""
    interval_ns, points = HistoryFile(used).queue_use(
        Period(BEGIN - 365 * 24 * HOUR_NS, BEGIN + HOUR_NS), "root"
    )

    assert (22 * HOUR_NS, 2) == (interval_ns, len(points))


def test_waits_are_counted_by_how_long_they_were(path: Path) -> None:
    """By queue; others are not kept."""
    histogram = Histogram(WAIT_BOUNDS_NS)
    for seconds in (0, 30, 10**7):
        histogram.add(seconds * 10**9)
    store = HistoryStore(path)
    waits = histogram.figures()
    row: Row = ["[rm]default", "root.c", waits.durations, waits.total_ns / 1e9, *waits.counts]
    store.write(BEGIN, {"waits": [row]})
    store.write(BEGIN + 60 * 10**9, {"waits": [row]})
    table = HistoryFile(path).ask(HistorySubject.WAITS, ALWAYS)

    assert ("queue", "placed", "mean_seconds", "within_1s", "within_10s") == table.columns[:5]
    assert [("root.c", 6, 3333343.333, 2, 0, 2, 0, 0, 0, 0, 0, 2)] == table.rows


def test_a_batch_that_cannot_be_written_leaves_nothing(path: Path) -> None:
    """It is one transaction."""
    store = HistoryStore(path)

    with pytest.raises(TypeError):
        store.write(BEGIN, {**uses(1, 60), "ended": [ended(BEGIN), ended(BEGIN, object())]})

    store.write(BEGIN, {"ended": [ended(BEGIN)]})
    assert 1 == len(HistoryFile(path).ask(HistorySubject.ENDED, ALWAYS).rows)
    assert [] == HistoryFile(path).ask(HistorySubject.USAGE, ALWAYS).rows


def test_configurations_are_those_of_the_time_and_the_one_that_counted_at_its_begin(path: Path) -> None:
    """One that was refused has not counted."""
    store = HistoryStore(path)
    rows = [configured(BEGIN, "1"), configured(BEGIN + 1, "2"), configured(BEGIN + 2, "x", "refused")]
    store.write(BEGIN + 9, {"configurations": [*rows, configured(BEGIN + 8, "3")]})
    table = HistoryFile(path).ask(HistorySubject.CONFIGURATIONS, Period(BEGIN + 5, BEGIN + 9))

    assert ["3", "2"] == [row[table.columns.index("checksum")] for row in table.rows]


def test_a_configuration_that_counts_already_is_no_change(path: Path) -> None:
    """As after a restart of the server, or where another worker has written it; one that returns is."""
    store, other = HistoryStore(path), HistoryStore(path)
    for number, (writer, text) in enumerate([(store, "1"), (other, "1"), (other, "2"), (store, "1")]):
        writer.write(BEGIN + number, {"configurations": [configured(BEGIN + number, text)]})
    store.write(BEGIN + 4, {"configurations": [configured(BEGIN + 4, "", "refused")] * 2})
    rows = HistoryFile(path).ask(HistorySubject.CONFIGURATIONS, Period(BEGIN, BEGIN + 9)).rows

    assert ["", "", "1", "2", "1"] == [row[4] for row in rows]


def test_a_file_that_is_too_large_loses_its_oldest_entries(path: Path) -> None:
    """It stops growing; the last configuration stays."""
    store = HistoryStore(path, bytes_max=200_000)
    store.write(BEGIN, {"configurations": [configured(BEGIN, "1")]})
    sizes = []
    for hour in range(1, 400):
        now_ns = BEGIN + hour * HOUR_NS
        store.write(now_ns, {**uses(hour, 60), "ended": [ended(now_ns, "x" * 200)] * 20})
        sizes.append(store.size())
    left = HistoryFile(path).ask(HistorySubject.ENDED, ALWAYS)

    assert max(sizes) < 800_000
    assert ended(now_ns, "x" * 200) == left.rows[0]
    assert ended(BEGIN + 100 * HOUR_NS)[0] < left.rows[-1][0]
    assert 1 == len(HistoryFile(path).ask(HistorySubject.CONFIGURATIONS, ALWAYS).rows)


def test_what_is_too_old_is_removed(path: Path) -> None:
    """With the holders that nothing names."""
    store = HistoryStore(path)
    store.write(BEGIN, {**uses(1, 60), "ended": [ended(BEGIN)]})
    for second in range(60):
        store.write(BEGIN + (DAYS_KEPT + 1) * 24 * HOUR_NS + second, uses(1, 60, holder=BOB))
    store.close()
    with sqlite3.connect(path) as database:
        users = database.execute("SELECT user FROM holders").fetchall()

    assert ([("bob",)], []) == (users, HistoryFile(path).ask(HistorySubject.ENDED, ALWAYS).rows)


def test_other_files_are_refused(tmp_path: Path) -> None:
    """Nothing of them is changed."""
    text, newer = tmp_path / "text", tmp_path / "newer.db"
    text.write_text("no database, but long enough to be looked at\n" * 100, encoding="utf-8")
    with sqlite3.connect(newer) as database:
        database.execute("PRAGMA user_version = 9")

    for path, why in ((text, "not a database"), (newer, "has the version 9; this program knows 1")):
        content = path.read_bytes()
        with pytest.raises(HistoryFileError, match=why):
            HistoryStore(path)
        with pytest.raises(HistoryFileError, match=why):
            HistoryFile(path).first_ns()
        assert content == path.read_bytes()
    with pytest.raises(HistoryFileError, match=r"missing\.db: cannot be read"):
        HistoryFile(tmp_path / "missing.db").first_ns()
