"""Which columns of a CSV file say what about its jobs: a small YAML file.

submit: submit_time              # the name of a column, or more about it:
run: {column: elapsed, unit: ms} # else seconds; or `start` and `end` in place of `run`
walltime: time_limit             # optional, as are all below
cpus: cores                      # by default one
memory: {column: mem, unit: Mi, per: cpu}   # bytes of the whole job by default
user: owner
group: account
queue: partition
job: id                          # by default the number of the row
tags: {namespace: project}       # tags of applications, and the column of each
delimiter: "|"                   # by default a comma
unknown: [Unknown, UNLIMITED]    # texts that say no more than an empty field
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from .....model.configuration.names import did_you_mean
from .....model.configuration.problems import RuleFinding
from ....base.files.located_yaml import LocatedYaml, read_located_yaml
from .scenario_errors import text_of

_Name: TypeAlias = Annotated[str, Field(min_length=1)]


def _column(value: object) -> object:
    """Return what is said about a column; its name may stand alone."""
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
    """A mapping that was read, with the place of everything in it.

    Args:
        document: What it says.
        located: The places.
    """

    def __init__(self, document: _MappingDocument, located: LocatedYaml) -> None:
        self.document = document
        self._located = located

    def check_columns(self, header: list[str], path: Path) -> None:
        """Refuse columns that a header does not have.

        Raises:
            ConfigurationError: It lacks some, with the place of each in the mapping.
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
        """Return the columns that are named, each with its place."""
        named = ((name, getattr(self.document, name)) for name in _COLUMNS)
        columns = [((name,), column) for name, column in named if column is not None]
        return [*columns, *((("tags", tag), column) for tag, column in self.document.tags.items())]


def read_csv_mapping(path: Path) -> CsvMapping:
    """Read a mapping.

    Raises:
        InputError: The file cannot be read.
        ConfigurationError: Something in it is wrong; the error has all problems, with their places.
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
    match detail["type"]:
        case "extra_forbidden":
            known = _MappingDocument if len(way) == 1 else MemoryColumnDocument
            text = f"unknown key {way[-1]!r}{did_you_mean(str(way[-1]), tuple(known.model_fields))}"
            return located.finding(way, text, at_key=True)
        case "missing":
            return located.finding(way, f"the key {way[-1]!r} is missing")
        case _:
            return located.finding(way, text_of(detail))
