"""What is read of a scheduler for its history: uses, waits, ends, preemptions and configurations."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from support.proxy.listening import Listener
from support.proxy.manager_requests import (
    application_request,
    ask_request,
    configuration_request,
    node_request,
    release_request,
)
from support.proxy.preempted_work import GUARANTEED, preempt, start_victim
from support.waiting import wait_until

from licorne import RequestError, Scheduler
from licorne.proxy.core.scheduler.engine_names import EngineName
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.views.history.questions import HistoryFile, Period
from licorne.proxy.views.history.recorder import (
    Batch,
    HistoryReader,
    HistoryWriter,
    connection_of,
    project_of,
)
from licorne.proxy.views.history.subjects import HistorySubject

SECOND: Final = 10**9
BOB: Final = ("[rm]default", "root.leaf", "bob", "bob", "")
QUEUES: Final = GUARANTEED


def nobody(_rm_id: str, _text: str) -> str:
    return "a test"


@pytest.fixture
def scheduler() -> Iterator[Scheduler]:
    with Scheduler(engine="direct") as made:
        made.register("rm", Listener(), configuration=QUEUES)
        made.update_node(node_request("n1"))
        made.update_application(application_request("app"))
        made.run_until_idle()
        yield made


@pytest.fixture
def reader(scheduler: Scheduler) -> HistoryReader:
    made = HistoryReader(scheduler, nobody)
    read(made)
    return made


def read(reader: HistoryReader) -> Batch:
    """Read what has happened, as if it had been written."""
    batch = reader.read()
    reader.written()
    return batch


def place(scheduler: Scheduler, *keys: str, memory: int, **more: str) -> None:
    scheduler.update_allocation(ask_request(*keys, memory=memory, **more))
    scheduler.run_until_idle()


def uses_of(scheduler: Scheduler, reader: HistoryReader, *, holder: Any = BOB) -> list[Any]:
    """Return what a holder has used, and what waited, in the ten seconds that pass now."""
    scheduler.advance_to(scheduler.now_ns() + 10 * SECOND)
    rows = map(tuple, read(reader).tables["uses"])
    return [row[6:] for row in rows if row[:6] == (*holder, "memory")]


def test_uses_and_waits_are_those_since_the_last_batch(scheduler: Scheduler, reader: HistoryReader) -> None:
    """In quantities times seconds."""
    place(scheduler, "one", "two", memory=60)
    first = read(reader)
    both, again = uses_of(scheduler, reader), read(reader)
    scheduler.update_allocation(release_request("one"))
    scheduler.run_until_idle()
    second = read(reader)
    one = uses_of(scheduler, reader)
    scheduler.update_application(si.ApplicationRequest(rmID="rm", remove=[{"applicationID": "app"}]))
    scheduler.run_until_idle()
    read(reader)

    assert ([(600, 600)], [(600, 0)], []) == (both, one, uses_of(scheduler, reader))
    assert [1, 1] == [row[2] for batch in (first, second) for row in batch.tables["waits"]]
    assert not again.tables.get("waits")


def test_what_was_not_written_is_in_the_next_batch(scheduler: Scheduler, reader: HistoryReader) -> None:
    """As when the disk was full."""
    place(scheduler, "one", memory=60)
    read(reader)
    scheduler.update_application(application_request("lost", queue="root.nowhere"))
    scheduler.advance_to(scheduler.now_ns() + 10 * SECOND)
    reader.read()
    again = uses_of(scheduler, reader)
    scheduler.update_application(application_request("lost", queue="root.nowhere"))
    scheduler.run_until_idle()
    reader.read()

    assert [(1200, 0)] == again
    assert ["lost"] == [row[1] for row in reader.read().tables["ended"]]


def test_the_first_group_and_the_project_are_those_of_the_application(scheduler: Scheduler) -> None:
    """The namespace is the project of one that has none."""
    request = application_request("pods")
    request.new[0].ugi.groups.extend(["physics", "staff"])
    request.new[0].tags["project"] = "atlas"
    scheduler.update_application(request)
    place(scheduler, "one", memory=10, application="pods")
    reader = HistoryReader(scheduler, nobody)
    read(reader)

    holder = ("[rm]default", "root.leaf", "bob", "physics", "atlas")
    assert [(100, 0)] == uses_of(scheduler, reader, holder=holder)
    assert ("team", "") == (project_of({"namespace": "team"}), project_of({}))


def test_ends_have_their_state_and_reason(scheduler: Scheduler, reader: HistoryReader) -> None:
    """Rejected, removed and completed applications."""
    scheduler.update_application(application_request("lost", queue="root.nowhere"))
    scheduler.update_application(application_request("withdrawn"))
    scheduler.run_until_idle()
    scheduler.update_application(si.ApplicationRequest(rmID="rm", remove=[{"applicationID": "withdrawn"}]))
    place(scheduler, "one", memory=60)
    scheduler.update_allocation(release_request("one"))
    scheduler.run_until_idle()
    scheduler.advance_to(scheduler.now_ns() + 60 * SECOND)
    rows: Any = {row[1]: row for row in read(reader).tables["ended"]}

    assert {"lost": "Rejected", "withdrawn": "Removed", "app": "Completed"} == {
        name: row[7] for name, row in rows.items()
    }
    assert "no placement rule matched" in rows["lost"][9]
    assert "it was removed by its resource manager" == rows["withdrawn"][9]
    assert BOB == tuple(rows["app"][2:7])
    assert 0 < rows["app"][0] - rows["app"][8] <= 60 * SECOND


def test_preemptions_have_both_sides_and_the_work_that_is_lost() -> None:
    """A line for each victim."""
    with Scheduler(engine="direct") as scheduler:
        start_victim(scheduler)
        preempt(scheduler, after_seconds=100)
        row: Any
        (row,) = HistoryReader(scheduler, nobody).read().tables["preempted"]

    assert ["[rm]default", "GUARANTEE", "root.entitled", "urgent", "ask"] == row[1:6]
    assert ["root.leaf", "bob", "app", "victim", "n1", '{"memory": 90}'] == row[6:12]
    assert 100 * SECOND <= row[13] < 200 * SECOND


def test_configurations_have_who_changed_them(scheduler: Scheduler) -> None:
    """Also those that were refused, with the errors."""
    reader = HistoryReader(scheduler, nobody)
    (first,) = read(reader).tables["configurations"]
    scheduler.update_configuration(configuration_request(QUEUES.replace("leaf", "other")))
    with pytest.raises(RequestError):
        scheduler.update_configuration(configuration_request("partitions: [{name: 1"))
    changed, refused = read(reader).tables["configurations"]

    assert ("rm", "registered", "a test", QUEUES) == (*first[1:4], first[5])
    assert ("changed", QUEUES.replace("leaf", "other")) == (changed[2], changed[5])
    assert ("rm", "refused") == tuple(refused[1:3])
    assert "update of configuration failed" in str(refused[5])
    assert "in this process" == connection_of(scheduler, "rm")


def test_what_a_manager_had_counts_no_longer_when_it_is_forgotten(
    scheduler: Scheduler, reader: HistoryReader
) -> None:
    """And what it does when it registers again begins anew."""
    place(scheduler, "one", memory=60)
    read(reader)
    scheduler.register("rm", Listener(), configuration=QUEUES)
    read(reader)
    anew = uses_of(scheduler, reader)
    scheduler.update_node(node_request("n1"))
    scheduler.update_application(application_request("app"))
    place(scheduler, "one", memory=30)
    (waits,) = read(reader).tables["waits"]
    before = uses_of(scheduler, reader)
    scheduler.stop_manager("rm", "it ends")
    scheduler.forget_manager("rm")
    read(reader)

    assert ([], [(300, 0)], []) == (anew, before, uses_of(scheduler, reader))
    assert 1 == waits[2]


def rows_of(path: Path, subject: HistorySubject) -> list[Any]:
    return HistoryFile(path).ask(subject, Period(0, 2**62)).rows


@pytest.mark.parametrize("engine", ["actors", "threads"])
def test_a_running_scheduler_is_written_by_itself(tmp_path: Path, engine: EngineName) -> None:
    """And once more at the end."""
    path = tmp_path / "history.db"
    with Scheduler(engine=engine) as scheduler, HistoryWriter(scheduler, path, nobody):
        listener = Listener()
        scheduler.register("rm", listener, configuration=QUEUES)
        scheduler.update_node(node_request("n1"))
        scheduler.update_application(application_request("app"))
        scheduler.update_allocation(ask_request("one", memory=60))
        listener.wait_for("placed one")
        wait_until(lambda: rows_of(path, HistorySubject.WAITS), "the wait is in the file")
        assert scheduler.monitoring.history_file == path
        scheduler.update_application(application_request("lost", queue="root.nowhere"))
        wait_until(lambda: any(each.startswith("rejected lost") for each in listener.heard), "it is rejected")

    assert ["lost"] == [row[1] for row in rows_of(path, HistorySubject.ENDED)]
    assert 1 == len(rows_of(path, HistorySubject.CONFIGURATIONS))
    assert ["root.leaf"] == [row[0] for row in rows_of(path, HistorySubject.USAGE)]


def test_a_failure_is_logged_once_and_nothing_is_lost(
    scheduler: Scheduler, tmp_path: Path, logged: Callable[[], list[str]]
) -> None:
    """As soon as the file can be written again it has everything."""
    path = tmp_path / "history.db"
    writer = HistoryWriter(scheduler, path, nobody)
    with sqlite3.connect(path) as other:
        other.execute("ALTER TABLE waits RENAME TO elsewhere")
    place(scheduler, "one", memory=60)
    writer.write()
    writer.write()
    with sqlite3.connect(path) as other:
        other.execute("ALTER TABLE elsewhere RENAME TO waits")
    writer.write()

    assert 1 == len([text for text in logged() if "the history was not written" in text])
    assert 1 == len(rows_of(path, HistorySubject.WAITS))


@pytest.fixture
def logged() -> Iterator[Callable[[], list[str]]]:
    """Give what Licorne has logged."""
    from loguru import logger

    texts: list[str] = []
    handler = logger.add(lambda message: texts.append(str(message)), format="{message}")
    logger.enable("licorne")
    yield lambda: texts
    logger.disable("licorne")
    logger.remove(handler)


def test_a_place_that_cannot_be_written_is_refused(scheduler: Scheduler, tmp_path: Path) -> None:
    """Before anything is."""
    with pytest.raises(Exception, match="there is no directory"):
        HistoryWriter(scheduler, tmp_path / "nowhere" / "history.db", nobody)

    assert [] == list(tmp_path.iterdir())
