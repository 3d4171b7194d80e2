"""Reads a log in the standard workload format (SWF): one job per line, 18 numbers, `-1` for unknown.

Lines that start with `;` are comments; from the header in them the size of the machine (`MaxNodes`,
`MaxProcs`) and the names of queues (`Queue: 3 batch`) are used. Up to three extra columns are read, as in the
logs of MetaCentrum: the nodes of a job (in braces; ignored), the name of its queue, and the text of its
request. Logs with these have no preceding jobs: the same number is in all their lines.

This module only reads; `swf` converts jobs for a simulation.

The header may have the number of nodes and processors of the machine.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Final

from .....model.resources.quantities import INT64_MAX
from ....base.files.input_files import NANOSECONDS_IN_SECOND, InputError, read_text

UNKNOWN: Final = -1
FAILED: Final = 0
COMPLETED: Final = 1
CANCELLED: Final = 5
_COLUMNS: Final = (
    "job number",
    "submit time",
    "wait time",
    "run time",
    "processors",
    "average processor time",
    "used memory",
    "requested processors",
    "requested time",
    "requested memory",
    "status",
    "user",
    "group",
    "executable",
    "queue",
    "partition",
    "preceding job",
    "think time",
)
_EXTRA_COLUMNS_MAX: Final = 3
_NUMBER: Final = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,9})?")
_SIZE: Final = re.compile(r";\s*(MaxNodes|MaxProcs)\s*:\s*([0-9]\S*).*")
_SIZE_NUMBER: Final = re.compile(r"[0-9]{1,9}|[0-9]{1,3}(,[0-9]{3}){1,2}")
_QUEUE: Final = re.compile(r";\s*Queue\s*:\s*([0-9]{1,9})\s+(\S+).*")
BYTES_IN_KILOBYTE: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class SwfJob:
    """One job, in units of the log; `-1` (`UNKNOWN`) or an empty text is a value that the log does not have.

    A log of this format never has the fields from `name` to `resources`, but an accounting file may have
    them: `part` is the name of one of several parts of a job, `tasks` the number of its equal tasks, 0 if it
    is unknown. `resources` are those of all its tasks, in units of the scheduler interface; then the numbers
    of processors and the memory are ignored.
    """

    line: int
    number: int
    submit_ns: int
    run_ns: int
    processors: int
    requested_processors: int = UNKNOWN
    requested_ns: int = UNKNOWN
    requested_memory: int = UNKNOWN
    status: int = UNKNOWN
    user: int = UNKNOWN
    group: int = UNKNOWN
    queue: int = UNKNOWN
    queue_name: str = ""
    request: str = ""
    name: str = ""
    user_name: str = ""
    group_name: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    part: str = ""
    tasks: int = 0
    resources: Mapping[str, int] = field(default_factory=dict)
    start_ns: int = UNKNOWN
    preceding: int = UNKNOWN
    think_ns: int = UNKNOWN


@dataclass(frozen=True, slots=True)
class SwfLog:
    """A whole log; the sizes are 0 and names of queues are missing if the header does not have them.

    `notes` are about rows that were left out.
    """

    path: Path
    jobs: tuple[SwfJob, ...]
    nodes_max: int = 0
    processors_max: int = 0
    queue_names: Mapping[int, str] = field(default_factory=dict)
    notes: Mapping[str, int] = field(default_factory=dict)


def read_swf_log(path: Path) -> SwfLog:
    """Read a log.

    Raises:
        InputError: The file cannot be read, a line has the wrong number of columns, a value is not a number,
            or a job number occurs twice.
    """
    sizes = {"MaxNodes": 0, "MaxProcs": 0}
    queue_names: dict[int, str] = {}
    jobs: dict[int, SwfJob] = {}
    for line, text in enumerate(read_text(path, comment=";").split("\n"), start=1):
        if text.startswith(";"):
            if size := _SIZE.fullmatch(text):
                sizes[size[1]] = _size(path, line, size)
            elif queue := _QUEUE.fullmatch(text):
                queue_names[int(queue[1])] = queue[2]
        elif text.strip():
            job = _read_job(_Line(path, line, text))
            if job.number in jobs:
                message = f"job number: {job.number} stands already in line {jobs[job.number].line}"
                raise InputError(path, message, line=line, column=1)
            jobs[job.number] = job
    if not jobs:
        raise InputError(path, "there is no job in the file")
    return SwfLog(path, tuple(jobs.values()), sizes["MaxNodes"], sizes["MaxProcs"], queue_names)


def _size(path: Path, line: int, size: re.Match[str]) -> int:
    """Return a size of the header: `1152` or `1,152`."""
    if _SIZE_NUMBER.fullmatch(size[2]) is None:
        message = f"{size[1]}: expected a whole number, got {size[2]!r}"
        raise InputError(path, message, line=line, column=size.start(2) + 1)
    return int(size[2].replace(",", ""))


class _Line:
    """The columns of one line, with its place."""

    def __init__(self, path: Path, line: int, text: str) -> None:
        self.path = path
        self.line = line
        self._fields = [(match.start() + 1, match[0]) for match in re.finditer(r"\S+", text)]
        count = len(self._fields)
        if not len(_COLUMNS) <= count <= len(_COLUMNS) + _EXTRA_COLUMNS_MAX:
            message = f"{count} columns where a job has {len(_COLUMNS)}, and at most 3 more: {text[:60]!r}"
            raise InputError(path, message, line=line, column=self._fields[0][0])
        for index in range(len(_COLUMNS)):
            self._check_number(index)

    def _check_number(self, index: int) -> None:
        """Require a number in a column."""
        column, text = self._fields[index]
        if _NUMBER.fullmatch(text) is None:
            message = f"{_COLUMNS[index]}: {text!r} is not a number"
            raise InputError(self.path, message, line=self.line, column=column)

    def whole(self, name: str) -> int:
        """Return a column that must be a whole number."""
        column, text = self._fields[_COLUMNS.index(name)]
        value = Decimal(text)
        if value != int(value):
            message = f"{name}: {text!r} is not a whole number"
            raise InputError(self.path, message, line=self.line, column=column)
        return int(value)

    def seconds_ns(self, name: str) -> int:
        """Return a column in seconds as nanoseconds, `UNKNOWN` for values below zero."""
        column, text = self._fields[_COLUMNS.index(name)]
        nanoseconds = int(Decimal(text) * NANOSECONDS_IN_SECOND)
        if nanoseconds > INT64_MAX:
            raise InputError(self.path, f"{name}: {text!r} is too large", line=self.line, column=column)
        return nanoseconds if nanoseconds >= 0 else UNKNOWN

    def preceding(self) -> int:
        """Return the number of the preceding job, which is another one."""
        number = self.whole("preceding job")
        if number > 0 and number == self.whole("job number"):
            column = self._fields[_COLUMNS.index("preceding job")][0]
            message = f"preceding job: {number} is the job itself"
            raise InputError(self.path, message, line=self.line, column=column)
        return number

    def extra_texts(self) -> list[str]:
        """Return the extra columns without the list of nodes."""
        extra = [text for _, text in self._fields[len(_COLUMNS) :]]
        return extra[1:] if extra and extra[0].startswith("{") else extra


def _read_job(line: _Line) -> SwfJob:
    """Return the job of one line."""
    extra = line.extra_texts()
    submit_ns, wait_ns = line.seconds_ns("submit time"), line.seconds_ns("wait time")
    return SwfJob(
        line=line.line,
        number=line.whole("job number"),
        submit_ns=submit_ns,
        run_ns=line.seconds_ns("run time"),
        processors=line.whole("processors"),
        requested_processors=line.whole("requested processors"),
        requested_ns=line.seconds_ns("requested time"),
        requested_memory=line.whole("requested memory"),
        status=line.whole("status"),
        user=line.whole("user"),
        group=line.whole("group"),
        queue=line.whole("queue"),
        queue_name=extra[0] if extra else "",
        request=extra[1] if len(extra) > 1 else "",
        preceding=UNKNOWN if extra else line.preceding(),
        think_ns=line.seconds_ns("think time"),
        start_ns=UNKNOWN if UNKNOWN in {submit_ns, wait_ns} else submit_ns + wait_ns,
    )
