"""Reads a CSV file of jobs, one per row, with a mapping of its columns, into the form of a workload log.

The mapping is a small YAML file:

submit: submit_time              # the name of a column, or a mapping:
run: {column: elapsed, unit: ms} # default seconds; or `start` and `end` instead of `run`
walltime: time_limit             # optional, like all below
cpus: cores                      # by default one
memory: {column: mem, unit: Mi, per: cpu}   # bytes of the whole job by default
user: owner
group: account
queue: partition
job: id                          # by default the number of the row
tags: {namespace: project}       # tags of applications, and the column of each
delimiter: "|"                   # by default a comma
unknown: [Unknown, UNLIMITED]    # texts that count as an empty field
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from .....model.configuration.durations import DurationError, parse_duration_ns
from .....model.configuration.names import did_you_mean
from .....model.configuration.problems import RuleFinding
from .....model.resources.quantities import INT64_MAX, QuantityError, parse_quantity
from ....base.files.input_files import (
    NANOSECONDS_IN_SECOND,
    InputError,
    LocatedYaml,
    read_located_yaml,
    read_text,
)
from .scenario_documents import UNKNOWN_KEY, error_text
from .swf_log import BYTES_IN_KILOBYTE, UNKNOWN, SwfJob, SwfLog

_UNITS_NS: Final = {
    "ns": 1,
    "us": 10**3,
    "ms": 10**6,
    "s": NANOSECONDS_IN_SECOND,
    "m": 60 * NANOSECONDS_IN_SECOND,
    "h": 3600 * NANOSECONDS_IN_SECOND,
    "d": 86_400 * NANOSECONDS_IN_SECOND,
}
_NUMBER: Final = re.compile(r"-?[0-9]{1,30}(\.[0-9]{1,18})?")
_CLOCK: Final = re.compile(
    r"(?:(?P<days>[0-9]{1,6})-)?(?P<hours>[0-9]{1,6}):(?P<minutes>[0-5][0-9]):(?P<seconds>[0-5][0-9](\.[0-9]{1,9})?)"
)
_MEMORY: Final = re.compile(r"([0-9]{1,30}(?:\.[0-9]{1,18})?) ?([A-Za-z]*)")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_Name: TypeAlias = Annotated[str, Field(min_length=1)]


def read_csv_log(path: Path, mapping: CsvMapping) -> SwfLog:
    """Read the jobs of a file.

    Raises:
        InputError: The file cannot be read, or a value is not of its kind, with line and column.
        ConfigurationError: The mapping names a column that the header does not have.
    """
    jobs: dict[str, SwfJob] = {}
    for number, row in enumerate(_rows(path, mapping), start=1):
        job = _job(number, row)
        before = jobs.setdefault(job.name or str(number), job)
        if before is not job:
            raise row.error(row.mapping.job, f"{job.name!r} stands already in line {before.line}")
    if not jobs:
        raise InputError(path, "there is no job below the header")
    return SwfLog(path, tuple(jobs.values()))


def _rows(path: Path, mapping: CsvMapping) -> Iterator[_JobRecord]:
    """Yield the records below the header, each with exactly the fields of the header."""
    text = read_text(path)
    lines = text.split("\n")
    reader = csv.reader(io.StringIO(text), strict=True, delimiter=mapping.document.delimiter)
    header: list[str] | None = None
    try:
        for fields in reader:
            if not fields:
                continue
            if header is None:
                header = fields
                mapping.check_columns(header, path)
                continue
            if len(fields) != len(header):
                message = f"{len(fields)} fields where the header has {len(header)}: {fields[0]!r} ..."
                raise InputError(path, message, line=reader.line_num)
            place = (path, reader.line_num, lines[reader.line_num - 1])
            yield _JobRecord(place, mapping, header, fields)
    except csv.Error as error:
        raise InputError(path, f"no CSV: {error}", line=reader.line_num) from error
    if header is None:
        raise InputError(path, "the file is empty; its first line must name the columns")


class _JobRecord:
    """One record, with its place."""

    def __init__(
        self, place: tuple[Path, int, str], mapping: CsvMapping, header: list[str], fields: list[str]
    ) -> None:
        self.path, self.line, self._text = place
        self.mapping = mapping.document
        self._header = header
        self._fields = fields

    def text(self, column: ColumnDocument | None) -> str:
        """Return the text in a column without surrounding blanks; empty if it is unknown."""
        if column is None:
            return ""
        text = self._fields[self._header.index(column.column)].strip()
        return "" if text in self.mapping.unknown else text

    def error(self, column: ColumnDocument | None, message: str) -> InputError:
        """Return an error about the value in a column."""
        assert column is not None, "only a value of a column is wrong"
        index = self._header.index(column.column)
        delimiter = self.mapping.delimiter
        before = delimiter.join(self._fields[:index])
        # The column of a field in quotes or over several lines cannot be computed from the fields.
        is_plain = delimiter.join(self._fields) == self._text
        place = len(before) + (2 if index else 1) if is_plain else None
        return InputError(self.path, f"{column.column}: {message}", line=self.line, column=place)

    def moment_ns(self, column: TimeColumnDocument | None) -> int:
        """Return a time: a number of its unit, or a date with a clock time; `UNKNOWN` without one."""
        text = self.text(column)
        if column is None or not text:
            return UNKNOWN
        if _NUMBER.fullmatch(text) is not None:
            return self._in_ns(column, Decimal(text))
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise self.error(column, f"{text!r} is neither a number nor a date with a time") from None
        since = (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)) - _EPOCH
        return self._in_range(column, since // timedelta(microseconds=1) * 1000)

    def duration_ns(self, column: TimeColumnDocument | None) -> int:
        """Return a duration: a number of its unit, `1-02:03:04` or `1h30m`; `UNKNOWN` without one."""
        text = self.text(column)
        if column is None or not text:
            return UNKNOWN
        if _NUMBER.fullmatch(text) is not None:
            return self._in_ns(column, Decimal(text))
        if clock := _CLOCK.fullmatch(text):
            whole = int(clock["days"] or 0) * 86_400 + int(clock["hours"]) * 3600 + int(clock["minutes"]) * 60
            seconds = whole + Decimal(clock["seconds"])
            return self._in_range(column, int(seconds * NANOSECONDS_IN_SECOND))
        try:
            return self._in_range(column, parse_duration_ns(text))
        except DurationError:
            message = f"{text!r} is no duration; write a number, 1-02:03:04 or 1h30m"
            raise self.error(column, message) from None

    def run_ns(self) -> int:
        """Return the run time of the job, `UNKNOWN` if it is unknown."""
        mapping = self.mapping
        if mapping.run is not None:
            return self.duration_ns(mapping.run)
        start_ns, end_ns = self.moment_ns(mapping.start), self.moment_ns(mapping.end)
        if UNKNOWN in {start_ns, end_ns}:
            return UNKNOWN
        if end_ns < start_ns:
            message = f"{self.text(mapping.end)!r} is before the start, {self.text(mapping.start)!r}"
            raise self.error(mapping.end, message)
        return end_ns - start_ns

    def cpus(self) -> int:
        """Return the processors of the job: 1 without such a column; `UNKNOWN` if the field is empty."""
        column = self.mapping.cpus
        if column is None:
            return 1
        text = self.text(column)
        if not text:
            return UNKNOWN
        number = Decimal(text) if _NUMBER.fullmatch(text) is not None else None
        if number is None or number != number.to_integral_value():
            raise self.error(column, f"{text!r} is not a whole number")
        return self._in_range(column, int(number))

    def memory_kilobytes(self, cpus: int) -> int:
        """Return the kB of each processor, rounded up; `UNKNOWN` if they are unknown."""
        column = self.mapping.memory
        text = self.text(column)
        if column is None or not text or cpus <= 0:
            return UNKNOWN
        bytes_in_all = self._memory_bytes(column, text)
        parts = BYTES_IN_KILOBYTE * (cpus if column.per == "job" else 1)
        return -(-bytes_in_all // parts)

    def _memory_bytes(self, column: MemoryColumnDocument, text: str) -> int:
        """Return a quantity of memory, in its own unit or else that of the column."""
        match = _MEMORY.fullmatch(text)
        unit = _bytes_of(match[2] or column.unit) if match is not None else None
        if match is None or unit is None:
            raise self.error(column, f"{text!r} is no amount of memory; write a number or 4Gi")
        return self._in_range(column, ceil(Fraction(match[1]) * unit))

    def _in_ns(self, column: TimeColumnDocument, number: Decimal) -> int:
        """Return a number of a column's unit in nanoseconds."""
        return self._in_range(column, int(number * _UNITS_NS[column.unit]))

    def _in_range(self, column: ColumnDocument, value: int) -> int:
        """Return a value, `UNKNOWN` below zero."""
        if value > INT64_MAX:
            raise self.error(column, f"{self.text(column)!r} is too large")
        return value if value >= 0 else UNKNOWN


def _bytes_of(unit: str) -> int | None:
    """Return the bytes of a unit of memory, `None` for another text."""
    try:
        return parse_quantity(f"1{unit}")
    except QuantityError:
        return None


def _job(number: int, row: _JobRecord) -> SwfJob:
    """Return the job of one record."""
    mapping = row.mapping
    cpus = row.cpus()
    tags = {tag: row.text(column) for tag, column in mapping.tags.items()}
    return SwfJob(
        line=row.line,
        number=number,
        submit_ns=row.moment_ns(mapping.submit),
        run_ns=row.run_ns(),
        processors=cpus,
        requested_processors=UNKNOWN,
        requested_ns=row.duration_ns(mapping.walltime),
        requested_memory=row.memory_kilobytes(cpus),
        status=UNKNOWN,
        user=UNKNOWN,
        group=UNKNOWN,
        queue=UNKNOWN,
        queue_name=row.text(mapping.queue),
        request="",
        name=row.text(mapping.job),
        user_name=row.text(mapping.user),
        group_name=row.text(mapping.group),
        tags={tag: text for tag, text in tags.items() if text},
    )


def _column(value: object) -> object:
    """Return the document of a column; its name may stand alone."""
    return {"column": value} if isinstance(value, str) else value


class _MappingPart(BaseModel):
    """The base of all mappings of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ColumnDocument(_MappingPart):
    """A column of texts."""

    column: _Name


class TimeColumnDocument(ColumnDocument):
    """A column of times or durations; plain numbers are in its unit."""

    unit: Literal["ns", "us", "ms", "s", "m", "h", "d"] = "s"


class MemoryColumnDocument(ColumnDocument):
    """A column of memory; plain numbers are in its unit, bytes by default, of a whole job or of each cpu."""

    unit: Literal["", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti"] = ""
    per: Literal["job", "cpu"] = "job"


_Text: TypeAlias = Annotated[ColumnDocument, BeforeValidator(_column)]
_Time: TypeAlias = Annotated[TimeColumnDocument, BeforeValidator(_column)]
_Memory: TypeAlias = Annotated[MemoryColumnDocument, BeforeValidator(_column)]


class _MappingDocument(_MappingPart):
    """The whole file."""

    submit: _Time
    run: _Time | None = None
    start: _Time | None = None
    end: _Time | None = None
    walltime: _Time | None = None
    cpus: _Text | None = None
    memory: _Memory | None = None
    user: _Text | None = None
    group: _Text | None = None
    queue: _Text | None = None
    job: _Text | None = None
    tags: dict[_Name, _Text] = {}
    delimiter: Annotated[str, Field(min_length=1, max_length=1)] = ","
    unknown: list[str] = []


_COLUMNS: Final = (
    *("submit", "run", "start", "end", "walltime", "cpus", "memory", "user", "group", "queue", "job"),
)


class CsvMapping:
    """A mapping that was read, with the places of all its values.

    Args:
        document: The contents.
        located: The places.
    """

    def __init__(self, document: _MappingDocument, located: LocatedYaml) -> None:
        self.document = document
        self._located = located

    def check_columns(self, header: list[str], path: Path) -> None:
        """Refuse a mapping with columns that a header does not have.

        Raises:
            ConfigurationError: Columns are missing; the error has the place of each in the mapping.
        """
        findings = []
        for way, column in self._columns():
            if column.column not in header:
                hint = did_you_mean(column.column, header)
                text = f"the header of {path} has no column {column.column!r}{hint}"
                findings.append(self._located.finding(way, text))
        if findings:
            raise self._located.error(findings)

    def _columns(self) -> list[tuple[tuple[str, ...], ColumnDocument]]:
        """Return the named columns, each with its place."""
        named = ((name, getattr(self.document, name)) for name in _COLUMNS)
        columns = [((name,), column) for name, column in named if column is not None]
        return [*columns, *((("tags", tag), column) for tag, column in self.document.tags.items())]


def read_csv_mapping(path: Path) -> CsvMapping:
    """Read a mapping.

    Raises:
        InputError: The file cannot be read.
        ConfigurationError: A value is invalid; the error has all problems, with their places.
    """
    located = read_located_yaml(path)
    try:
        document = _MappingDocument.model_validate(located.value)
    except ValidationError as error:
        raise located.error(_finding(each, located) for each in error.errors(include_url=False)) from None
    if (document.run is None) == (document.start is None or document.end is None):
        text = "how long jobs ran is in one column (run), or is the time between two (start and end)"
        raise located.error([located.finding((), text)])
    return CsvMapping(document, located)


def _finding(detail: ErrorDetails, located: LocatedYaml) -> RuleFinding:
    """Return one error as a finding, at its place."""
    way = tuple(step for step in detail["loc"] if f"{step}" != "[key]")
    known = _MappingDocument if len(way) == 1 else MemoryColumnDocument
    text = error_text(detail, lambda: tuple(known.model_fields))
    return located.finding(way, text, at_key=detail["type"] == UNKNOWN_KEY)
