"""Reads a CSV file of jobs, with a mapping of its columns, into the form of a workload log.

The mapping is a small YAML file:

submit: submit_time              # the name of a column, or a mapping:
run: {column: elapsed, unit: ms} # default seconds; or `start` and `end` instead of `run`
walltime: time_limit             # optional, like all below
start: begun                     # optional beside `run`: a job without a start is left out
cpus: {column: cores, times: 0.01, per: task}   # by default one; of the whole job by default
resources: {gpu: gpus}           # other resources, each as `cpus`, in units of the scheduler
tasks: nodes                     # the number of equal tasks
memory: {column: mem, unit: Mi, per: cpu}   # bytes of the whole job by default
user: owner
group: account
queue: partition
job: id                          # by default the number of the row
part: task_name                  # of one of several rows of a job; by default a job is one row
where: {state: [COMPLETED]}      # the texts of the rows to read; by default all
tags: {namespace: project}       # tags of applications, and the column of each
delimiter: "|"                   # by default a comma
unknown: [Unknown, UNLIMITED]    # texts that count as an empty field
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterator
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
_MILLI: Final = 1000
_UNKNOWN_AMOUNT: Final = Fraction(UNKNOWN)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_Name: TypeAlias = Annotated[str, Field(min_length=1)]


def read_csv_log(path: Path, mapping: CsvMapping) -> SwfLog:
    """Read the jobs of a file.

    Raises:
        InputError: The file cannot be read, or a value is not of its kind, with line and column.
        ConfigurationError: The mapping names a column that the header does not have.
    """
    jobs: dict[tuple[str, str], SwfJob] = {}
    notes: Counter[str] = Counter()
    for number, row in enumerate(records_of(path, mapping.document, mapping.check_columns), start=1):
        if not row.is_selected():
            notes["row left out by `where` of the mapping"] += 1
            continue
        job = _job(number, row)
        before = jobs.setdefault((job.name or str(number), job.part), job)
        if before is not job:
            raise row.error(row.mapping.job, f"{job.name!r} stands already in line {before.line}")
    if not jobs:
        raise InputError(path, "there is no job below the header")
    return SwfLog(path, tuple(jobs.values()), notes=notes)


def records_of(
    path: Path, mapping: MappingDocument, check_header: Callable[[list[str], Path], None]
) -> Iterator[JobRecord]:
    """Yield the records below the header, each with exactly the fields of the header.

    Raises:
        InputError: The file cannot be read, or is not CSV.
        LicorneError: The check refuses the header.
    """
    text = read_text(path)
    lines = text.split("\n")
    rows = csv_rows(path, text, mapping.delimiter)
    _, header = next(rows)
    check_header(header, path)
    for line, fields in rows:
        yield JobRecord((path, line, lines[line - 1]), mapping, header, fields)


def csv_rows(path: Path, text: str, delimiter: str = ",") -> Iterator[tuple[int, list[str]]]:
    """Yield the line and the fields of the header, then of each record, with as many fields as the header.

    Raises:
        InputError: The text is not CSV, or empty.
    """
    reader = csv.reader(io.StringIO(text), strict=True, delimiter=delimiter)
    expected = 0
    try:
        for fields in filter(None, reader):
            if len(fields) != (expected or len(fields)):
                message = f"{len(fields)} fields where the header has {expected}: {fields[0]!r} ..."
                raise InputError(path, message, line=reader.line_num)
            expected = len(fields)
            yield reader.line_num, fields
    except csv.Error as error:
        raise InputError(path, f"no CSV: {error}", line=reader.line_num) from error
    if not expected:
        raise InputError(path, "the file is empty; its first line must name the columns")


class JobRecord:
    """One record, with its place."""

    def __init__(
        self, place: tuple[Path, int, str], mapping: MappingDocument, header: list[str], fields: list[str]
    ) -> None:
        self.path, self.line, self._text = place
        self.mapping = mapping
        self._header = header
        self._fields = fields

    def has(self, name: str) -> bool:
        """Return whether there is a column of that name."""
        return name in self._header

    def first_text(self, *names: str) -> str:
        """Return the first text that is known in one of the named columns, which need not exist."""
        texts = (self.text(ColumnDocument(column=name)) for name in names if name in self._header)
        return next((text for text in texts if text), "")

    def is_selected(self) -> bool:
        """Return whether the mapping selects this record."""
        return all(
            self._fields[self._header.index(column)].strip() in texts
            for column, texts in self.mapping.where.items()
        )

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
            message = f"{text!r} is not a duration; write a number, 1-02:03:04 or 1h30m"
            raise self.error(column, message) from None

    def run_ns(self) -> int:
        """Return the run time of the job, `UNKNOWN` if it is unknown."""
        mapping = self.mapping
        if mapping.run is not None:
            has_no_start = mapping.start is not None and not self.text(mapping.start)
            return UNKNOWN if has_no_start else self.duration_ns(mapping.run)
        start_ns, end_ns = self.moment_ns(mapping.start), self.moment_ns(mapping.end)
        if UNKNOWN in {start_ns, end_ns}:
            return UNKNOWN
        if end_ns < start_ns:
            message = f"{self.text(mapping.end)!r} is before the start, {self.text(mapping.start)!r}"
            raise self.error(mapping.end, message)
        return end_ns - start_ns

    def tasks(self) -> int:
        """Return the number of tasks of the job; 0 if it is unknown."""
        column = self.mapping.tasks
        number = self.amount(column, 1) if column is not None else _UNKNOWN_AMOUNT
        if number.denominator != 1:
            raise self.error(column, f"{self.text(column)!r} is not a whole number")
        return max(int(number), 0)

    def cpus(self, tasks: int) -> Fraction:
        """Return the processors of the job: 1 without such a column; `UNKNOWN` if the field is empty."""
        column = self.mapping.cpus
        return Fraction(1) if column is None else self.amount(column, tasks)

    def amount(self, column: AmountColumnDocument, tasks: int) -> Fraction:
        """Return an amount of the whole job; `UNKNOWN` if the field is empty or the number below zero."""
        text = self.text(column)
        if not text:
            return _UNKNOWN_AMOUNT
        if _NUMBER.fullmatch(text) is None:
            raise self.error(column, f"{text!r} is not a number")
        factor = Fraction(str(column.times)) * ((tasks or 1) if column.per == "task" else 1)
        number = Fraction(text) * factor
        return _UNKNOWN_AMOUNT if self._in_range(column, ceil(number)) < 0 else number

    def memory_bytes(self, tasks: int, cpus: Fraction) -> int:
        """Return the memory of the whole job, rounded up; `UNKNOWN` if it is unknown."""
        column = self.mapping.memory
        text = self.text(column)
        if column is None or not text or cpus <= 0:
            return UNKNOWN
        factors = {"job": Fraction(1), "cpu": cpus, "task": Fraction(tasks or 1)}
        return self._in_range(column, ceil(self._memory_bytes(column, text) * factors[column.per]))

    def resources(self, tasks: int, cpus: Fraction) -> dict[str, int]:
        """Return the resources of all tasks of a job with more than whole processors and memory, or none."""
        mapping = self.mapping
        if not (mapping.resources or mapping.tasks or mapping.part or cpus.denominator != 1):
            return {}
        found = {"vcore": ceil(cpus * _MILLI), "memory": self.memory_bytes(tasks, cpus)}
        found |= {name: ceil(self.amount(each, tasks)) for name, each in mapping.resources.items()}
        return {name: amount for name, amount in found.items() if amount > 0}

    def _memory_bytes(self, column: MemoryColumnDocument, text: str) -> int:
        """Return a quantity of memory, in its own unit or else that of the column."""
        match = _MEMORY.fullmatch(text)
        unit = _bytes_of(match[2] or column.unit) if match is not None else None
        if match is None or unit is None:
            raise self.error(column, f"{text!r} is not an amount of memory; write a number or 4Gi")
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


def _job(number: int, row: JobRecord) -> SwfJob:
    """Return the job of one record."""
    mapping = row.mapping
    tasks = row.tasks()
    cpus = row.cpus(tasks)
    memory = row.memory_bytes(tasks, cpus)
    tags = {tag: row.text(column) for tag, column in mapping.tags.items()}
    return SwfJob(
        line=row.line,
        number=number,
        submit_ns=row.moment_ns(mapping.submit),
        run_ns=row.run_ns(),
        processors=int(cpus),
        requested_ns=row.duration_ns(mapping.walltime),
        requested_memory=-(-memory // (BYTES_IN_KILOBYTE * max(int(cpus), 1))) if memory > 0 else UNKNOWN,
        queue_name=row.text(mapping.queue),
        name=row.text(mapping.job),
        user_name=row.text(mapping.user),
        group_name=row.text(mapping.group),
        tags={tag: text for tag, text in tags.items() if text},
        part=row.text(mapping.part),
        tasks=tasks,
        resources=row.resources(tasks, cpus),
        start_ns=row.moment_ns(mapping.start),
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


class AmountColumnDocument(ColumnDocument):
    """A column of amounts, each times a factor, of a whole job or of each task."""

    times: Annotated[float, Field(gt=0, le=1e9)] = 1
    per: Literal["job", "task"] = "job"


class TimeColumnDocument(ColumnDocument):
    """A column of times or durations; plain numbers are in its unit."""

    unit: Literal["ns", "us", "ms", "s", "m", "h", "d"] = "s"


class MemoryColumnDocument(ColumnDocument):
    """A column of memory; plain numbers are in its unit, of a whole job, of each cpu or of each task."""

    unit: Literal["", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti"] = ""
    per: Literal["job", "cpu", "task"] = "job"


_Text: TypeAlias = Annotated[ColumnDocument, BeforeValidator(_column)]
_Time: TypeAlias = Annotated[TimeColumnDocument, BeforeValidator(_column)]
_Amount: TypeAlias = Annotated[AmountColumnDocument, BeforeValidator(_column)]
_Memory: TypeAlias = Annotated[MemoryColumnDocument, BeforeValidator(_column)]


class MappingDocument(_MappingPart):
    """The whole file."""

    submit: _Time
    run: _Time | None = None
    start: _Time | None = None
    end: _Time | None = None
    walltime: _Time | None = None
    cpus: _Amount | None = None
    resources: dict[_Name, _Amount] = {}
    tasks: _Amount | None = None
    part: _Text | None = None
    where: dict[_Name, list[str]] = {}
    memory: _Memory | None = None
    user: _Text | None = None
    group: _Text | None = None
    queue: _Text | None = None
    job: _Text | None = None
    tags: dict[_Name, _Text] = {}
    delimiter: Annotated[str, Field(min_length=1, max_length=1)] = ","
    unknown: list[str] = []


class CsvMapping:
    """A mapping that was read, with the places of all its values.

    Args:
        document: The contents.
        located: The places.
    """

    def __init__(self, document: MappingDocument, located: LocatedYaml) -> None:
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
        columns: list[tuple[tuple[str, ...], ColumnDocument]] = [
            ((name,), column) for name, column in self.document if isinstance(column, ColumnDocument)
        ]
        columns += [(("where", name), ColumnDocument(column=name)) for name in self.document.where]
        for kind in ("resources", "tags"):
            columns += [((kind, name), column) for name, column in getattr(self.document, kind).items()]
        return columns


def read_csv_mapping(path: Path) -> CsvMapping:
    """Read a mapping.

    Raises:
        InputError: The file cannot be read.
        ConfigurationError: A value is invalid; the error has all problems, with their places.
    """
    located = read_located_yaml(path)
    try:
        document = MappingDocument.model_validate(located.value)
    except ValidationError as error:
        raise located.error(_finding(each, located) for each in error.errors(include_url=False)) from None
    is_between = document.start is not None and document.end is not None
    if (document.run is None and not is_between) or (document.run is not None and document.end is not None):
        text = "how long jobs ran is in one column (run), or is the time between two (start and end)"
        raise located.error([located.finding((), text)])
    return CsvMapping(document, located)


def _finding(detail: ErrorDetails, located: LocatedYaml) -> RuleFinding:
    """Return one error as a finding, at its place."""
    way = tuple(step for step in detail["loc"] if f"{step}" != "[key]")
    known = MappingDocument if len(way) == 1 else MemoryColumnDocument
    text = error_text(detail, lambda: tuple(known.model_fields))
    return located.finding(way, text, at_key=detail["type"] == UNKNOWN_KEY)
