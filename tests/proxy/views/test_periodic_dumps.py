"""State dumps in files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.proxy.processes import serving
from support.proxy.rest_scenario import rest_scenario
from support.waiting import wait_until

from licorne import LicorneError
from licorne.proxy.views.dumps import DUMPS_KEPT, PeriodicDumps


def test_dumps_are_written_every_so_often(tmp_path: Path) -> None:
    """Each is complete when it has its name; the folder is made."""
    folder = tmp_path / "dumps"
    with rest_scenario() as scheduler, PeriodicDumps(scheduler, folder, 0.01):
        wait_until(lambda: len(list(folder.glob("*.json"))) >= 2, "two dumps")

    for path in folder.glob("*.json"):
        assert json.loads(path.read_text(encoding="utf-8"))["partitions"]
    assert [] == list(folder.glob("*.unfinished"))


def test_the_oldest_are_removed(tmp_path: Path) -> None:
    """Other files are left alone."""
    (tmp_path / "mine.json").touch()
    with rest_scenario() as scheduler:
        dumps = PeriodicDumps(scheduler, tmp_path, 60)
        paths = [dumps.write() for _ in range(DUMPS_KEPT + 1)]

    assert sorted([tmp_path / "mine.json", *paths[1:]]) == sorted(tmp_path.iterdir())


def test_a_dump_stays_when_the_clock_was_set_back(tmp_path: Path) -> None:
    """Those of before have later names."""
    for number in range(DUMPS_KEPT):
        (tmp_path / f"licorne-state-99990101T00000{number}.000000.json").touch()
    with rest_scenario() as scheduler:
        path = PeriodicDumps(scheduler, tmp_path, 60).write()

    assert (True, DUMPS_KEPT) == (path.exists(), len(list(tmp_path.iterdir())))


def test_parts_of_dumps_of_a_killed_process_are_removed(tmp_path: Path) -> None:
    """They would stay for good."""
    (tmp_path / "licorne-state-20260101T000000.unfinished").touch()
    with rest_scenario() as scheduler:
        PeriodicDumps(scheduler, tmp_path, 60)

    assert [] == list(tmp_path.iterdir())


def test_a_dump_that_cannot_be_made_leaves_no_file(tmp_path: Path) -> None:
    """Another one is under way."""
    with rest_scenario() as scheduler, scheduler.monitoring.dumping:
        dumps = PeriodicDumps(scheduler, tmp_path, 60)
        with pytest.raises(LicorneError, match="is being made already"):
            dumps.write()

    assert [] == list(tmp_path.iterdir())


def test_a_folder_and_an_interval_that_cannot_be_are_named(tmp_path: Path) -> None:
    """Before anything is written."""
    (tmp_path / "file").touch()
    with rest_scenario() as scheduler:
        with pytest.raises(
            LicorneError, match=r"an interval of 0 seconds between state dumps is not above 0"
        ):
            PeriodicDumps(scheduler, tmp_path, 0)
        with pytest.raises(LicorneError, match=r"no state dumps can be written to .*/file"):
            PeriodicDumps(scheduler, tmp_path / "file", 1)


def test_serve_writes_them(tmp_path: Path) -> None:
    """Into the folder of its option, as often as it says."""
    with serving("--state-dumps", str(tmp_path), "--state-dump-interval", "10ms"):
        wait_until(lambda: list(tmp_path.glob("*.json")), "a dump")

    arguments = ["--no-rest", "--state-dumps", str(tmp_path), "--state-dump-interval", "0s"]
    command = [sys.executable, "-m", "licorne", "serve", "--address", "127.0.0.1:0", *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own command
    assert ended.returncode == 2
    assert "an interval of 0.0 seconds between state dumps is not above 0" in ended.stderr
