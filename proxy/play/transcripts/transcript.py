"""Transcripts: one JSON object per line, each with one verb."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from google.protobuf.message import Message

from ....model.configuration.durations import parse_duration_ns
from ....model.errors import LicorneError
from ....model.state.host import TimerAction
from ....model.values.documents import Document, Json
from ...base.files.input_files import InputError
from ...base.files.json_text import JsonError, MessageError, parse_json, read_message
from ...core.recording.recording import FILE_PATTERN
from ...si import licorne_v1_pb2 as v1
from ...si import si_pb2 as si
from .recorded_lines import (
    RECORDED_KEYS,
    RECORDED_VERBS,
    Header,
    Recorded,
    read_header,
    read_recorded,
    read_recorded_verb,
)

MessageType = TypeVar("MessageType", bound=Message)
_MESSAGES: Final[dict[str, type[Message]]] = {
    "register": si.RegisterResourceManagerRequest,
    "configuration": si.UpdateConfigurationRequest,
    "node": si.NodeRequest,
    "application": si.ApplicationRequest,
    "allocation": si.AllocationRequest,
    "reconsider": v1.Reconsideration,
}
_ONLY: Final = "only"
_OTHERS: Final = ("schedule", "advance", "confirm", "predicates", "snapshot", "recording")
_BEGINNING: Final = '{"recording"'
_HEADER: Final = "recording"


class TranscriptError(LicorneError):
    """An invalid line of a transcript; the text begins with `source:line`."""


@dataclass(frozen=True, slots=True)
class PredicateTable:
    """The placements that the RM's predicates refuse."""

    denied: frozenset[tuple[str, str]] = frozenset()
    denies_all: bool = False

    def denies(self, allocation_key: str, node_id: str) -> bool:
        """Return whether an ask may not run on a node."""
        return self.denies_all or (allocation_key, node_id) in self.denied


@dataclass(frozen=True, slots=True)
class Line:
    """One line: its verb and its body, checked."""

    source: str
    number: int
    verb: str
    body: object
    recorded: Recorded | None = None
    """The time, the partition and the answers of the line, in a recording."""
    only: tuple[str, ...] | None = None
    """The partitions of a registration, `None` for all."""

    @property
    def place(self) -> str:
        """The place of the line, for messages."""
        return f"{self.source}:{self.number}"

    def message(self, kind: type[MessageType]) -> MessageType:
        """Return the request of a line whose verb is a request."""
        assert isinstance(self.body, kind), f"{self.verb} has been read as {type(self.body).__name__}"
        return self.body

    def cycles(self) -> int | None:
        """Return the number of cycles of `schedule`, `None` for all."""
        assert self.body is None or isinstance(self.body, int), "checked when it was read"
        return self.body

    def duration_ns(self) -> int:
        """Return the duration of `advance`."""
        assert isinstance(self.body, int), "checked when it was read"
        return self.body

    def confirms(self) -> bool:
        """Return whether `confirm` is automatic."""
        return self.body is True

    def timer(self) -> TimerAction:
        """Return the action of `timer`."""
        assert isinstance(self.body, TimerAction), "checked when it was read"
        return self.body

    def header(self) -> Header:
        """Return the body of `recording`."""
        assert isinstance(self.body, Header), "checked when it was read"
        return self.body

    def predicate_table(self) -> PredicateTable:
        """Return the table of `predicates`."""
        assert isinstance(self.body, PredicateTable), "checked when it was read"
        return self.body


def read_transcript(text: str, source: str) -> list[Line]:
    """Read all lines of a transcript.

    Raises:
        TranscriptError: A line is malformed.
    """
    lines = []
    for number, row in enumerate(text.split("\n"), start=1):
        if row.strip() and not row.startswith("#"):
            lines.append(read_line(row, source, number))
    return lines


def read_line(row: str, source: str, number: int) -> Line:
    """Read one line that is neither blank nor a comment.

    Raises:
        TranscriptError: The line is malformed.
    """
    where = f"{source}:{number}"
    try:
        document = parse_json(row)
    except JsonError as error:
        place = where if error.column is None else f"{where}:{error.column}"
        raise TranscriptError(f"{place}: not JSON: {error}") from error
    if isinstance(document, dict) and "at" in document:
        return _read_recorded_line(document, source, number)
    verbs = [key for key in document if key != _ONLY] if isinstance(document, dict) else []
    if not isinstance(document, dict) or len(verbs) != 1:
        raise TranscriptError(f"{where}: a line is an object with one key, its verb: {row[:80]!r}")
    verb = verbs[0]
    return Line(
        source, number, verb, _read_body(verb, document[verb], where), only=_read_only(document, where)
    )


def _read_recorded_line(document: Document, source: str, number: int) -> Line:
    """Read a line with a time."""
    where = f"{source}:{number}"
    verbs = [key for key in document if key not in RECORDED_KEYS]
    if len(verbs) != 1:
        raise TranscriptError(f"{where}: a line has one verb, not {', '.join(verbs) or 'none'}")
    verb = verbs[0]
    try:
        recorded = read_recorded(document)
        if verb in RECORDED_VERBS:
            return Line(source, number, verb, read_recorded_verb(verb, document[verb]), recorded)
    except LicorneError as error:
        raise TranscriptError(f"{where}: {verb}: {error}") from error
    only = _read_only(document, where)
    return Line(source, number, verb, _read_body(verb, document[verb], where), recorded, only)


def _read_only(document: Document, where: str) -> tuple[str, ...] | None:
    """Return the partitions of a registration, `None` for all."""
    if _ONLY not in document:
        return None
    names = document[_ONLY]
    if "register" not in document or not isinstance(names, list):
        raise TranscriptError(f"{where}: `only` is a list of partitions, beside `register`: {names!r}")
    return tuple(map(str, names))


def _read_body(verb: str, body: Json, where: str) -> object:
    if verb in _MESSAGES:
        return _read_message(_MESSAGES[verb], body, f"{where}: {verb}")
    if verb not in _OTHERS:
        raise TranscriptError(
            f"{where}: unknown verb {verb!r}, there are {', '.join((*_MESSAGES, *_OTHERS))}"
        )
    return _read_other(verb, body, f"{where}: {verb}")


def _read_message(kind: type[Message], body: Json, where: str) -> Message:
    try:
        return read_message(kind, body)
    except MessageError as error:
        raise TranscriptError(f"{where}: {error}") from error


def _read_other(verb: str, body: Json, where: str) -> object:
    if verb == "schedule":
        return _read_cycles(body, where)
    if verb == "advance":
        return _read_duration(body, where)
    if verb == "confirm":
        if body not in ("auto", "manual"):
            raise TranscriptError(f"{where}: neither 'auto' nor 'manual': {body!r}")
        return body == "auto"
    if verb == "predicates":
        return _read_predicates(body, where)
    if verb == "recording":
        try:
            return read_header(body)
        except LicorneError as error:
            raise TranscriptError(f"{where}: {error}") from error
    if body is not True:
        raise TranscriptError(f"{where}: not true: {body!r}")
    return None


def _read_cycles(body: Json, where: str) -> int | None:
    if body == "all":
        return None
    if isinstance(body, bool) or not isinstance(body, int) or body < 0:
        raise TranscriptError(f"{where}: neither a number of cycles nor 'all': {body!r}")
    return body


def _read_duration(body: Json, where: str) -> int:
    if not isinstance(body, str):
        raise TranscriptError(f"{where}: no duration: {body!r}")
    try:
        duration_ns = parse_duration_ns(body)
    except LicorneError as error:
        raise TranscriptError(f"{where}: {error}") from error
    if duration_ns < 0:
        raise TranscriptError(f"{where}: time does not go back: {body!r}")
    return duration_ns


def _read_predicates(body: Json, where: str) -> PredicateTable:
    if not isinstance(body, dict) or not set(body) <= {"deny", "denyAll"}:
        raise TranscriptError(f"{where}: expected an object with `deny` and `denyAll`, not {body!r}")
    pairs = []
    rows = body.get("deny") or []
    if not isinstance(rows, list):
        raise TranscriptError(f"{where}: `deny` is not a list: {rows!r}")
    for row in rows:
        if not isinstance(row, dict) or set(row) != {"allocationKey", "nodeID"}:
            raise TranscriptError(f"{where}: expected a pair of allocationKey and nodeID, not {row!r}")
        pairs.append((str(row["allocationKey"]), str(row["nodeID"])))
    return PredicateTable(frozenset(pairs), bool(body.get("denyAll")))


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a file, with its end of line if it has one."""

    source: str
    number: int
    text: str


def is_recording(text: str) -> bool:
    """Return whether a text is a recording, according to its first line."""
    rows = (row for row in text.splitlines() if row.strip() and not row.startswith("#"))
    return next(rows, "").startswith(_BEGINNING)


def recording_files(folder: Path) -> list[Path]:
    """Return the files of the recording in a folder, or in its only subfolder with one.

    Raises:
        InputError: The folder has none, or several.
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
        InputError: A file cannot be read.
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

    A row without an end is dropped: the process was killed while it wrote the row.

    Args:
        rows: The rows of all files in order.
        note: Called with a message about a dropped row.

    Raises:
        TranscriptError: A row is malformed, or a file is missing.
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
