"""Where and how the traffic of a scheduler is recorded, and the numbered files of one recording."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, final

from ....model.errors import LicorneError
from ...si.arguments import check_type

ROTATE_BYTES: Final = 64 * 2**20
FORMAT_VERSION: Final = 1
"""What the first line of each file says; raised when lines get another meaning."""
FILE_PATTERN: Final = "transcript-*.jsonl"
_FOLDERS_MAX: Final = 1_000


@final
@dataclass(frozen=True, slots=True)
class Recording:
    """What `Scheduler(record=...)` takes: the folder, and what is different from the usual.

    Each scheduler makes a folder of its own below.

    Raises:
        LicorneError: a file would have no room for a line.
    """

    folder: Path | str
    rotate_bytes: int = ROTATE_BYTES
    """A file ends before it becomes larger, unless a single turn is."""
    anonymize: bool = False
    """Names have pseudonyms; see `docs/transcripts.md` for what is replaced, and what may differ then."""
    outcomes: bool = False
    """What the resource managers hear is written as well, and what justifies each preemption: so that
    `licorne verify` can check it."""

    def __post_init__(self) -> None:
        check_type("folder", self.folder, Path, str)
        check_type("rotate_bytes", self.rotate_bytes, int)
        check_type("outcomes", self.outcomes, bool)
        if self.rotate_bytes < 1:
            raise LicorneError(f"rotate_bytes={self.rotate_bytes}: a file must have one byte at least")


def recording_of(record: Recording | Path | str) -> Recording:
    """Return a recording; a path stands for one with the usual settings."""
    return record if isinstance(record, Recording) else Recording(Path(record))


def new_folder(folder: Path) -> Path:
    """Make a folder of its own for one recording below a folder, which is made if it is not there.

    It is named after the time and the process, so that a server that starts again never meets its own files.

    Raises:
        LicorneError: It cannot be made.
    """
    name = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for number in range(1, _FOLDERS_MAX):
            own = folder / (name if number == 1 else f"{name}-{number}")
            try:
                own.mkdir(mode=0o700)
            except FileExistsError:
                continue
            return own
    except OSError as error:
        raise LicorneError(f"{folder}: nothing can be recorded there: {error.strerror or error}") from error
    raise LicorneError(f"{folder}: nothing can be recorded there: {name} has been used too often")


@final
class RecordingFiles:
    """Writes lines to `transcript-000001.jsonl` and so on. One thread at a time may use it.

    What is written is with the operating system at once, so it survives the end of the process, by SIGKILL
    too (not that of the machine).

    Args:
        folder: an empty folder.
        rotate_bytes: a file that would become larger ends, and the next one begins.
        header: returns the first line of a file, given its number.

    Raises:
        LicorneError: the first file cannot be written.
    """

    def __init__(self, folder: Path, rotate_bytes: int, header: Callable[[int], bytes]) -> None:
        self._folder = folder
        self._rotate_bytes = rotate_bytes
        self._header = header
        self._number = 0
        self._size = 0
        self._header_size = 0
        self._file = -1
        try:
            self._begin_next()
        except OSError as error:
            raise LicorneError(
                f"{folder}: nothing can be recorded there: {error.strerror or error}"
            ) from error

    def write(self, lines: bytes) -> None:
        """Write whole lines, to one file.

        Raises:
            OSError: they cannot be written; then none of them is in the file, unless that fails as well.
        """
        if self._size > self._header_size and self._size + len(lines) > self._rotate_bytes:
            self._begin_next()
        self._append(lines)

    def close(self) -> None:
        """Close the file; nothing more is written."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _begin_next(self) -> None:
        self._number += 1
        path = self._folder / f"transcript-{self._number:06}.jsonl"
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self.close()
        self._file, self._size = file, 0
        self._append(self._header(self._number))
        self._header_size = self._size

    def _append(self, content: bytes) -> None:
        rest = memoryview(content)
        try:
            while rest:
                rest = rest[os.write(self._file, rest) :]
        except OSError:
            os.ftruncate(self._file, self._size)
            raise
        self._size += len(content)
