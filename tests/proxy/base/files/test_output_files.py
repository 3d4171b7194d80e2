from __future__ import annotations

import os
from pathlib import Path

import pytest

from licorne.proxy.base.files.output_files import UnwritableFileError, check_writable, set_aside, write_whole


def test_a_file_is_written_and_replaced_as_a_whole(tmp_path: Path) -> None:
    """Nothing else is left in its directory."""
    path = tmp_path / "a.txt"
    write_whole(path, "one é\n")
    write_whole(path, "two\n")

    assert b"two\n" == path.read_bytes()
    assert [path] == list(tmp_path.iterdir())


def test_what_is_set_aside_is_kept_whatever_comes_later(tmp_path: Path) -> None:
    """Each time under another name."""
    path = tmp_path / "a.txt"
    for text in ("one", "two", "three"):
        write_whole(path, text)
        set_aside(path)

    names = ["a.txt.refused", "a.txt.refused-2", "a.txt.refused-3"]
    assert names == sorted(each.name for each in tmp_path.iterdir())
    assert ["one", "two", "three"] == [(tmp_path / name).read_text(encoding="utf-8") for name in names]


def test_what_is_no_file_is_not_set_aside() -> None:
    """A device is read and written in one place."""
    assert Path("/dev/null") == set_aside(Path("/dev/null"))


def test_the_text_is_on_the_disk_before_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the file is not empty after a loss of power."""
    path, seen = tmp_path / "a.txt", []
    real = os.fsync

    def fsync(number: int) -> None:
        seen.append((path.exists(), os.fstat(number).st_size))
        real(number)

    monkeypatch.setattr(os, "fsync", fsync)
    write_whole(path, "text")

    assert [(False, 4)] == seen


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    """Its target is written."""
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "target")
    write_whole(link, "text")

    assert link.is_symlink()
    assert "text" == (tmp_path / "target").read_text(encoding="utf-8")


def test_after_a_failure_the_file_is_as_it_was(tmp_path: Path) -> None:
    """A text that is no UTF-8 cannot be written."""
    path = tmp_path / "a.txt"
    write_whole(path, "old")

    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "new \ud800")

    assert "old" == path.read_text(encoding="utf-8")
    assert [path] == list(tmp_path.iterdir())


def test_a_device_is_written_to(tmp_path: Path) -> None:
    """It is not replaced by a file."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        check_writable(pipe)
        write_whole(pipe, "text")
        assert b"text" == os.read(reader, 10)
    finally:
        os.close(reader)
    assert pipe.is_fifo()


def test_a_path_that_cannot_be_written_is_refused_with_its_name(tmp_path: Path) -> None:
    """Before anything is written, and when it is."""
    missing = tmp_path / "none" / "a.txt"

    with pytest.raises(UnwritableFileError, match="there is no directory"):
        check_writable(missing)
    with pytest.raises(UnwritableFileError, match="it is a directory"):
        check_writable(tmp_path)
    with pytest.raises(UnwritableFileError, match=r"none/a\.txt: cannot be written: No such file"):
        write_whole(missing, "text")
