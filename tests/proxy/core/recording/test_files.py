"""The files of a recording: their folders, their sizes, and what happens when they cannot be written."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest
from support.proxy.manager_requests import ask_request
from support.proxy.recorded_traffic import Hearing, callbacks_in, recorded_lines, replayed
from support.proxy.running_scheduler import begin

from licorne import LicorneError, Recording, Scheduler
from licorne.proxy.core.recording.recording import RecordingFiles, new_folder


def a_header(number: int) -> bytes:
    return b"file %d\n" % number


def contents(folder: Path) -> list[bytes]:
    """Return what the files of a folder hold, in order."""
    return [path.read_bytes() for path in sorted(folder.iterdir())]


def write_all(folder: Path, rotate_bytes: int, *lines: bytes) -> None:
    files = RecordingFiles(folder, rotate_bytes, a_header)
    for line in lines:
        files.write(line)
    files.close()


def test_a_file_ends_before_it_becomes_too_large(tmp_path: Path) -> None:
    """The next one begins with a header of its own."""
    write_all(tmp_path, 14, b"one\n", b"two\n", b"three\n")

    assert [b"file 1\none\n", b"file 2\ntwo\n", b"file 3\nthree\n"] == contents(tmp_path)
    assert "transcript-000003.jsonl" == max(path.name for path in tmp_path.iterdir())


def test_lines_that_are_larger_than_a_file_stay_together(tmp_path: Path) -> None:
    """They have a file of their own."""
    write_all(tmp_path, 8, b"one\ntwo\nthree\n", b"four\n")

    assert [b"file 1\none\ntwo\nthree\n", b"file 2\nfour\n"] == contents(tmp_path)


def test_only_the_owner_can_read_a_recording(tmp_path: Path) -> None:
    """It holds what users run."""
    folder = new_folder(tmp_path)
    write_all(folder, 100, b"one\n")

    modes = [stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.iterdir())]
    assert [0o700, 0o600] == modes


def test_each_scheduler_has_a_folder_of_its_own(tmp_path: Path) -> None:
    """Two in the same second of the same process, too."""
    with Scheduler(record=tmp_path) as one, Scheduler(record=Recording(str(tmp_path))) as other:
        assert one.recorded_in is not None
        assert {tmp_path} == {one.recorded_in.parent, other.recorded_in.parent}  # type: ignore[union-attr]
        assert one.recorded_in != other.recorded_in


def test_a_scheduler_that_is_not_recorded_has_no_folder() -> None:
    """The property says so."""
    with Scheduler(engine="direct") as scheduler:
        assert None is scheduler.recorded_in


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    """The error names it."""
    blocked = tmp_path / "file"
    blocked.write_text("")

    with pytest.raises(LicorneError, match="file: nothing can be recorded there"):
        Scheduler(record=blocked)


def test_the_engine_with_threads_cannot_be_recorded(tmp_path: Path) -> None:
    """Its cycles may begin anew; no folder is made."""
    with pytest.raises(LicorneError, match="not for threads"):
        Scheduler(engine="threads", record=tmp_path)

    assert [] == [*tmp_path.iterdir()]


def test_a_file_without_room_is_refused(tmp_path: Path) -> None:
    """The value is named."""
    with pytest.raises(LicorneError, match="rotate_bytes=0"):
        Recording(tmp_path, rotate_bytes=0)


def test_a_recording_of_many_files_is_replayed_as_one(tmp_path: Path) -> None:
    """Each write has a file of its own here."""
    manager = Hearing()
    with Scheduler(record=Recording(tmp_path, rotate_bytes=1)) as scheduler:
        begin(scheduler, manager)
        scheduler.update_allocation(ask_request("one", "two"))
        manager.wait_for("placed one", "placed two")

    assert len([*tmp_path.glob("*/*")]) > 2
    assert manager.callbacks == callbacks_in(replayed(tmp_path))


def full_disk(fails_after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let so many bytes be written, and half of what comes then."""
    left = fails_after
    write = os.write

    def limited(file: int, content: bytes | memoryview) -> int:
        nonlocal left
        if left == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        part = content[:left]
        left -= len(part)
        return write(file, part)

    monkeypatch.setattr(os, "write", limited)


def test_a_write_that_fails_leaves_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was written of the last ones is taken back."""
    full_disk(len(b"file 1\none\n") + 2, monkeypatch)
    with pytest.raises(OSError, match="No space left"):
        write_all(tmp_path, 100, b"one\n", b"two\n")

    assert [b"file 1\none\n"] == contents(tmp_path)


def test_scheduling_goes_on_when_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, logged: list[str]
) -> None:
    """The recording ends with a whole line; that is logged once."""
    manager = Hearing()
    with Scheduler(record=tmp_path) as scheduler:
        begin(scheduler, manager)
        full_disk(10, monkeypatch)
        scheduler.update_allocation(ask_request("one"))
        scheduler.update_allocation(ask_request("two"))
        manager.wait_for("placed one", "placed two")
    heard = callbacks_in(replayed(tmp_path))

    assert manager.callbacks[: len(heard)] == heard
    assert len(heard) < len(manager.callbacks)
    assert 1 == len([line for line in logged if "has ended, scheduling continues: No space left" in line])
    assert {"recording"} == set(recorded_lines(tmp_path)[0])
