"""Files of earlier versions are read, and this version writes their formats: docs/compatibility.md."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
from support.compatibility import (
    FIGURES,
    HISTORY,
    MOMENT,
    RECORDING,
    REPLAYED,
    USAGE,
    VERSIONS,
    replayed,
    requests_of,
    write_all,
)

from licorne import LicorneError, Scheduler, inspect_configuration, read_usage
from licorne.proxy.play.simulation.reporting.report_files import read_figures
from licorne.proxy.play.transcripts.replay import Replay
from licorne.proxy.play.transcripts.transcript import read_transcript, rows_of_files
from licorne.proxy.play.verify.verifier import verify_lines
from licorne.proxy.views.history.questions import HistoryFile, Period
from licorne.proxy.views.history.store import HistoryStore
from licorne.proxy.views.history.subjects import HistorySubject

FOLDERS: Final = sorted(VERSIONS.iterdir())
NEWEST: Final = FOLDERS[-1]
ALWAYS: Final = Period(0, 2**62)


def running_keys(scheduler: Scheduler) -> list[str]:
    """Return the keys of all allocations of a scheduler, sorted."""
    nodes: Any = scheduler.snapshot()["nodes"]
    return sorted(
        each["allocationKey"]
        for found in nodes.values()
        for node in found
        for each in node.get("allocations", ())
    )


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the files of this version from the inputs of the newest folder."""
    folder = tmp_path_factory.mktemp("written")
    write_all(NEWEST, folder)
    return folder


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_configuration_of_an_earlier_version_is_valid(folder: Path) -> None:
    """Without an error or a warning: each key and property means what it meant."""
    report = inspect_configuration(folder / "queues.yaml")

    assert ((), ()) == (tuple(report.errors), tuple(report.warnings))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_recording_of_an_earlier_version_replays_to_the_same_bytes(folder: Path) -> None:
    """What the resource manager heard then; and none of its decisions is refuted."""
    recording = folder / RECORDING
    findings = verify_lines(row.text for row in rows_of_files([recording]))

    assert folder.joinpath(REPLAYED).read_text(encoding="utf-8") == replayed(recording)
    assert [] == findings.refuted
    assert 1 == sum(count for what, count in findings.confirmed.items() if what.startswith("preemption"))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_past_use_and_a_saved_moment_of_an_earlier_version_continue(folder: Path) -> None:
    """A scheduler that was stopped under that version goes on under this one with what ran."""
    _, use = read_usage(folder / USAGE)
    with Scheduler(engine="direct") as earlier, Scheduler(engine="direct", kept_use=use) as later:
        Replay(earlier, lambda _: None).run(read_transcript(requests_of(folder), "requests"))
        Replay(later, lambda _: None).run(read_transcript(folder.joinpath(MOMENT).read_text("utf-8"), MOMENT))

        assert running_keys(earlier) == running_keys(later) != []
        assert set(use) == {"[rm]default"}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_figures_of_an_earlier_version_can_be_compared(folder: Path) -> None:
    """With `licorne simulate --report --compare`."""
    assert read_figures(folder / FIGURES).queues


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_history_of_an_earlier_version_is_asked_and_continued(folder: Path, tmp_path: Path) -> None:
    """Every table answers with what was written then, and the sums of an hour go on."""
    path = tmp_path / "history.db"
    with closing(sqlite3.connect(path)) as database:
        database.executescript(folder.joinpath(HISTORY).read_text(encoding="utf-8"))
    found = {subject.value: HistoryFile(path).ask(subject, ALWAYS).rows for subject in HistorySubject}
    store = HistoryStore(path)
    store.write(
        int(found["ended"][0][0]),
        {"uses": [["[rm]default", "root.gangs", "ann", "ann", "", "vcore", 120000, 0]]},
    )
    store.close()

    assert {"usage": 4, "waits": 4, "ended": 1, "preempted": 1, "configurations": 1} == {
        name: len(rows) for name, rows in found.items()
    }
    assert ("root.gangs", "vcore", 0.033, 0.0, "core h") in found["usage"]
    assert 0.067 in {row[2] for row in HistoryFile(path).ask(HistorySubject.USAGE, ALWAYS).rows}


@pytest.mark.parametrize("name", [FIGURES, HISTORY, MOMENT, RECORDING, REPLAYED, USAGE])
def test_this_version_writes_what_the_newest_folder_has(name: str, written: Path) -> None:
    """So the version of that folder can read it, and one may go back to it.

    A difference needs a new number in the format, and a new folder beside the old one, as
    docs/compatibility.md promises; one of decisions alone needs a row in docs/deviations.md.
    """
    assert NEWEST.joinpath(name).read_text("utf-8") == written.joinpath(name).read_text("utf-8")


def test_a_file_of_a_later_format_is_refused_by_its_number(tmp_path: Path) -> None:
    """Rather than read wrongly: this is what happens on the way back over a change of the format."""
    usage = json.loads(NEWEST.joinpath(USAGE).read_text(encoding="utf-8"))
    tmp_path.joinpath(USAGE).write_text(json.dumps(usage | {"version": 2}), encoding="utf-8")
    lines = NEWEST.joinpath(RECORDING).read_text(encoding="utf-8").replace('"version":1', '"version":2', 1)
    tmp_path.joinpath(RECORDING).write_text(lines, encoding="utf-8")

    for name, read in ((USAGE, read_usage), (RECORDING, replayed)):
        with pytest.raises(LicorneError, match=r"version 2|the version 2"):
            read(tmp_path / name)
