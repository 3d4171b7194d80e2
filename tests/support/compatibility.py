"""Writes files in the formats that later versions have to read: `python -m support.compatibility FOLDER`.

A folder of tests/data/compatibility has such files, as its version wrote them. A change of a format needs a
new number in the format, and a new folder; the old one stays.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import licorne
from licorne.proxy.core.recording.recording import Recording
from licorne.proxy.core.scheduler.scheduler import Scheduler
from licorne.proxy.play.simulation.reporting.report_files import to_json
from licorne.proxy.play.transcripts.replay import Replay, replay_recording
from licorne.proxy.play.transcripts.saved_moment import saved_lines
from licorne.proxy.play.transcripts.transcript import read_recording, read_transcript, rows_of_files
from licorne.proxy.views.history.recorder import HistoryReader
from licorne.proxy.views.history.store import HistoryStore

ROOT: Final = Path(__file__).parents[2]
DAY: Final = ROOT / "examples" / "policies" / "gangs-day.yaml"
VERSIONS: Final = ROOT / "tests" / "data" / "compatibility"
RECORDING: Final = "recording.jsonl"
REPLAYED: Final = "replayed.jsonl"
USAGE: Final = "usage.json"
MOMENT: Final = "moment.jsonl"
FIGURES: Final = "figures.json"
HISTORY: Final = "history.sql"
_LATER_NS: Final = 60 * 10**9


def replayed(recording: Path) -> str:
    """Return the output of a replay of a recording."""
    heard: list[str] = []
    replay_recording(read_recording(rows_of_files([recording]), print), "direct", heard.append)
    return "".join(f"{line}\n" for line in heard)


def write_all(inputs: Path, folder: Path) -> None:
    """Write what this version writes: a recording and its replay, use, a saved moment, figures, a history.

    Args:
        inputs: A folder with the configuration and the requests of a version.
        folder: Where the files are written.
    """
    requests = requests_of(inputs)
    with TemporaryDirectory() as recordings:
        scheduler = Scheduler(engine="direct", record=Recording(recordings, outcomes=True))
        with scheduler:
            Replay(scheduler, lambda _: None).run(read_transcript(requests, "requests"))
            usage = json.dumps(scheduler.kept_use(), indent=1) + "\n"
            moment = "".join(f"{line}\n" for line in saved_lines(scheduler.saved()))
        (recorded,) = Path(recordings).rglob("transcript-*.jsonl")
        folder.joinpath(RECORDING).write_bytes(recorded.read_bytes())
    folder.joinpath(USAGE).write_text(usage, encoding="utf-8")
    folder.joinpath(MOMENT).write_text(moment, encoding="utf-8")
    folder.joinpath(REPLAYED).write_text(replayed(folder / RECORDING), encoding="utf-8")
    folder.joinpath(FIGURES).write_text(to_json(licorne.simulate(DAY)._figures()), encoding="utf-8")
    folder.joinpath(HISTORY).write_text(_history(requests), encoding="utf-8")


def _history(requests: str) -> str:
    """Return the file of a history as statements of SQL: of what happens by requests, and a minute later."""
    with TemporaryDirectory() as folder, Scheduler(engine="direct") as scheduler:
        path = Path(folder) / "history.db"
        store = HistoryStore(path)
        reader = HistoryReader(scheduler, lambda *_: "a test")
        Replay(scheduler, lambda _: None).run(read_transcript(requests, "requests"))
        store.write(*reader.read())
        reader.written()
        scheduler.advance_to(scheduler.now_ns() + _LATER_NS)
        store.write(*reader.read())
        store.close()
        with closing(sqlite3.connect(path)) as database:
            (version,) = database.execute("PRAGMA user_version").fetchone()
            return "\n".join([f"PRAGMA user_version = {version};", *database.iterdump(), ""])


def requests_of(inputs: Path) -> str:
    """Return the requests of a version as a transcript, whose registration has the configuration."""
    registration, *lines = inputs.joinpath("requests.jsonl").read_text(encoding="utf-8").splitlines()
    first = json.loads(registration)
    first["register"]["config"] = inputs.joinpath("queues.yaml").read_text(encoding="utf-8")
    return "\n".join([json.dumps(first), *lines, ""])


if __name__ == "__main__":
    write_all(VERSIONS / "0.1", Path(sys.argv[1]))
