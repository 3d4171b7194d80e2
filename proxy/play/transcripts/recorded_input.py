"""The lines of a recording, one after the other: of a folder with its files in order, or of one text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ...base.files.input_errors import InputError
from ...core.recording.files import FILE_PATTERN
from .transcript import Line, TranscriptError, read_line

_BEGINNING: Final = '{"recording"'
_HEADER: Final = "recording"


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a file, with its end of line if it has one."""

    source: str
    number: int
    text: str


def is_recording(text: str) -> bool:
    """Return whether a text is a recording: its first line says so."""
    rows = (row for row in text.splitlines() if row.strip() and not row.startswith("#"))
    return next(rows, "").startswith(_BEGINNING)


def recording_files(folder: Path) -> list[Path]:
    """Return the files of the recording in a folder, or of the only one in a folder below it.

    Raises:
        InputError: there is none, or several.
    """
    files = sorted(folder.glob(FILE_PATTERN))
    if files:
        return files
    found = sorted({file.parent for file in folder.glob(f"*/{FILE_PATTERN}")})
    if not found:
        raise InputError(folder, f"there is no recording, no file {FILE_PATTERN}")
    if len(found) > 1:
        names = ", ".join(path.name for path in found)
        raise InputError(folder, f"there are several recordings, name one of: {names}")
    return sorted(found[0].glob(FILE_PATTERN))


def rows_of_files(files: Iterable[Path]) -> Iterator[Row]:
    """Yield the rows of files, one file after the other.

    Raises:
        InputError: a file cannot be read.
    """
    for path in files:
        with _input_errors(path), path.open(encoding="utf-8", errors="replace", newline="\n") as file:
            for number, text in enumerate(file, start=1):
                yield Row(str(path), number, text)


def rows_of_text(text: str, source: str) -> Iterator[Row]:
    """Yield the rows of a text."""
    for number, row in enumerate(text.splitlines(keepends=True), start=1):
        yield Row(source, number, row)


def read_recording(rows: Iterable[Row], note: Callable[[str], None]) -> Iterator[Line]:
    """Yield the lines of a recording.

    A row without an end was being written when the process was killed: it is dropped.

    Args:
        rows: the rows of all files in order.
        note: gets a message about a row that is dropped.

    Raises:
        TranscriptError: a row is malformed, or a file is missing.
    """
    files = 0
    for row in rows:
        if not row.text.strip() or row.text.startswith("#"):
            continue
        if not row.text.endswith("\n"):
            note(f"{row.source}:{row.number}: the last line is incomplete and is left out")
            continue
        line = read_line(row.text.rstrip("\n"), row.source, row.number)
        if line.verb == _HEADER:
            files += 1
            if line.header().file != files:
                raise TranscriptError(
                    f"{row.source}:{row.number}: this is file {line.header().file} of a recording, "
                    f"expected file {files}"
                )
        elif not files:
            raise TranscriptError(f"{row.source}:{row.number}: a recording begins with the line `recording`")
        yield line


@contextmanager
def _input_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(path, f"cannot be read: {error.strerror or error}") from error
