"""The settings of a recording of a scheduler, and its numbered files."""

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
"""The version in the first line of each file; raised when the meaning of lines changes."""
FILE_PATTERN: Final = "transcript-*.jsonl"
_FOLDERS_MAX: Final = 1_000


@final
@dataclass(frozen=True, slots=True)
class Recording:
    """The argument of `Scheduler(record=...)`: the folder, and settings that differ from the defaults.

    Each scheduler makes a separate folder below it.

    Raises:
        LicorneError: A file would be too small for a line.
    """

    folder: Path | str
    rotate_bytes: int = ROTATE_BYTES
    """A file ends before it becomes larger, unless a single turn is larger."""
    anonymize: bool = False
    """Whether names get pseudonyms; `docs/transcripts.md` lists them, and possible differences."""
    outcomes: bool = False
    """Whether the callbacks to the resource managers are written as well, and the justification of each
    preemption, so that `licorne verify` can check them."""

    def __post_init__(self) -> None:
        check_type("folder", self.folder, Path, str)
        check_type("rotate_bytes", self.rotate_bytes, int)
        check_type("outcomes", self.outcomes, bool)
        if self.rotate_bytes < 1:
            raise LicorneError(f"rotate_bytes={self.rotate_bytes}: a file must have one byte at least")


def recording_of(record: Recording | Path | str) -> Recording:
    """Return a recording; a path stands for one with the default settings."""
    return record if isinstance(record, Recording) else Recording(Path(record))


def new_folder(folder: Path) -> Path:
    """Make a separate folder for one recording below a folder, which is made if it is missing.

    It is named after the time and the process, so that a restarted server never finds its own files.

    Raises:
        LicorneError: The folder cannot be made.
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

    Written lines are passed to the operating system at once, so they survive the end of the process, even by
    SIGKILL (not the end of the machine).

    Args:
        folder: An empty folder.
        rotate_bytes: The size limit of a file; the next file begins before it is exceeded.
        header: Returns the first line of a file, given its number.

    Raises:
        LicorneError: The first file cannot be written.
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
        """Write whole lines to one file.

        Raises:
            OSError: The lines cannot be written; they are removed from the file again, unless that fails as
                well.
        """
        if self._size > self._header_size and self._size + len(lines) > self._rotate_bytes:
            self._begin_next()
        self._append(lines)

    def close(self) -> None:
        """Close the file; nothing may be written afterwards."""
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
