"""Recordings as `licorne replay` reads them: folders, cut lines, missing files, and lines that are wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest
from support.proxy.manager_requests import ONE, node_request
from support.proxy.recorded_traffic import Hearing, callbacks_in
from typer.testing import CliRunner

from licorne import Recording, Scheduler
from licorne.proxy.play.transcripts.replay import Replay
from licorne.proxy.play.transcripts.transcript import read_recording, recording_files, rows_of_files
from licorne.proxy.shell.command_line import application

HEADER: Final = '{"recording": {"version": 1, "file": 1, "reservations": true}}'


def replay(*arguments: str | Path, text: str | None = None) -> tuple[int, list[str], str]:
    """Run `licorne replay`; return its status, its lines of output, and what it says on standard error."""
    result = CliRunner().invoke(application, ["replay", *map(str, arguments)], input=text)
    return result.exit_code, result.stdout.splitlines(), " ".join(result.stderr.split())


def record(folder: Path, rotate_bytes: int = 1) -> Hearing:
    """Record two nodes, in files of one turn each."""
    manager = Hearing()
    with Scheduler(engine="direct", record=Recording(folder, rotate_bytes=rotate_bytes)) as scheduler:
        scheduler.register("rm", manager, configuration=ONE)
        scheduler.update_node(node_request("n1"))
        scheduler.update_node(node_request("n2"))
        scheduler.deliver()
    return manager


def heard_in(output: list[str]) -> list[str]:
    return callbacks_in([json.loads(row) for row in output])


def test_the_folder_above_the_only_recording_will_do(tmp_path: Path) -> None:
    """The files are read in order."""
    manager = record(tmp_path)
    status, output, _ = replay(tmp_path)

    assert 0 == status
    assert manager.callbacks == heard_in(output)


def test_the_files_may_come_as_one(tmp_path: Path) -> None:
    """As `cat` gives them, in a file or on standard input."""
    manager = record(tmp_path)
    whole = "".join(path.read_text() for path in sorted(tmp_path.glob("*/*")))
    file = tmp_path / "whole.jsonl"
    file.write_text(whole)

    assert manager.callbacks == heard_in(replay(file)[1])
    assert manager.callbacks == heard_in(replay("-", text=whole)[1])


def test_of_several_recordings_one_has_to_be_named(tmp_path: Path) -> None:
    """The error names them."""
    record(tmp_path)
    manager = record(tmp_path)
    folders = sorted(path.name for path in tmp_path.iterdir())
    status, output, said = replay(tmp_path)

    assert (2, []) == (status, output)
    assert f"there are several recordings, name one of: {', '.join(folders)}" in said
    assert manager.callbacks == heard_in(replay(tmp_path / folders[0])[1])


def test_what_is_no_recording_is_refused(tmp_path: Path) -> None:
    """A folder without one; and a time in a file, where it is not known when the clock starts."""
    status, _, said = replay(tmp_path)
    file = tmp_path / "transcript.jsonl"
    file.write_text('{"at": 1, "partition": 1, "schedule": 1}\n')
    status_of_file, _, said_of_file = replay(file)

    assert (2, 2) == (status, status_of_file)
    assert "there is no recording, no file transcript-*.jsonl" in said
    assert "a line with `at` is part of a recording" in said_of_file


def test_a_last_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    """The process was killed while it wrote: a note says so, and all before is replayed."""
    manager = record(tmp_path)
    last = max(tmp_path.glob("*/*"))
    last.write_bytes(last.read_bytes()[:-2])
    status, output, said = replay(tmp_path)

    assert 0 == status
    assert manager.callbacks[:1] == heard_in(output)
    assert f"{last}:2: the last line is incomplete and is left out" in said


def test_a_recording_without_one_of_its_files_is_refused(tmp_path: Path) -> None:
    """What comes after could not be true."""
    record(tmp_path)
    files = sorted(tmp_path.glob("*/*"))
    files[1].unlink()
    status, _, said = replay(tmp_path)

    assert 2 == status
    assert f"{files[2]}:1: this is file 3 of a recording, expected file 2" in said


TURN: Final[dict[str, Any]] = {"at": 1, "partition": 1}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({"at": 1, "schedule": 1}, "a line with `at` and this verb needs a `partition`"),
        ({**TURN}, "a line has one verb, not none"),
        ({**TURN, "schedule": 1, "node": {}}, "a line has one verb, not schedule, node"),
        ({**TURN, "schedule": 1}, "there is no partition 1"),
        ({**TURN, "at": "now", "schedule": 1}, "at: expected a whole number, not 'now'"),
        ({**TURN, "schedule": 1, "answers": [[]]}, "answers: no answer of a predicate: []"),
        (
            {**TURN, "schedule": 1, "groups": {"ada": 1}},
            "groups[ada]: expected a list, or why the look-up `failed`",
        ),
        ({**TURN, "schedule": 1, "halted": 1}, "halted: expected bool, not 1"),
        ({**TURN, "timer": "Alarm"}, "timer: no timer: 'Alarm'"),
        ({**TURN, "step": "explode"}, "step: 'explode' is not one of cycle"),
        ({**TURN, "retire": 1}, "retire: not true: 1"),
        (
            {**TURN, "quarantine": {"kind": "queue"}},
            "quarantine: expected a kind (application, node), a name",
        ),
        ({"at": 1, "answer": {}}, "answer: expected an object with the rmID of a resource manager, not {}"),
        ({"timer": "Expiry"}, "unknown verb 'timer'"),
        ({"recording": {"version": 2}}, "recording: version 2: this program reads 1"),
        ({"recording": {"version": 1, "file": 1}}, "this is file 1 of a recording, expected file 2"),
    ],
)
def test_a_line_that_is_wrong_ends_the_replay(line: dict[str, Any], said: str) -> None:
    """Status 2; the text names the place."""
    status, output, error = replay("-", text=f"{HEADER}\n{json.dumps(line)}\n")

    assert (2, []) == (status, output)
    assert said in error
    assert "-:2" in error


def test_a_recording_cannot_be_simulated(tmp_path: Path) -> None:
    """It says when everything happened; a simulation decides that."""
    record(tmp_path, 10_000)
    result = CliRunner().invoke(application, ["simulate", str(*tmp_path.glob("*/*"))])

    assert 2 == result.exit_code
    assert "a recording cannot be simulated: replay it" in " ".join(result.stderr.split())


def test_a_replay_reserves_nodes_if_the_recorded_scheduler_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment of the replay does not count."""
    monkeypatch.setenv("DISABLE_RESERVATION", "true")
    record(tmp_path)
    monkeypatch.delenv("DISABLE_RESERVATION")
    with Scheduler(engine="direct") as scheduler:
        notes: list[str] = []
        rows = rows_of_files(recording_files(tmp_path))
        Replay(scheduler, lambda _: None).run(read_recording(rows, notes.append))

        assert not scheduler._cluster.partitions()[0].host.reservations_on


@pytest.mark.parametrize("engine", ["threads", "other"])
def test_other_engines_replay_no_recording(engine: str, tmp_path: Path) -> None:
    """The error says which do."""
    record(tmp_path)

    assert 2 == replay("--engine", engine, tmp_path)[0]
