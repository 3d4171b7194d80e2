"""Reads a log in the standard workload format (SWF): one job per line, 18 numbers, `-1` for unknown.

Lines that start with `;` are comments; from the header in them the size of the machine (`MaxNodes`,
`MaxProcs`) and the names of queues (`Queue: 3 batch`) are used. Up to three extra columns are read, as in the
logs of MetaCentrum: the nodes of a job (in braces; ignored), the name of its queue, and the text of its
request.

This module only reads; `swf` converts jobs for a simulation.

The machines of a log are in a file next to it, `<log>.machines`, one kind of machine per line: id, name,
number of nodes, processors of a node, speed (ignored), and memory of a node in kB (optional). Without such a
file the header of the log may have the number of nodes and processors.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Final

from .....model.resources.quantities import INT64_MAX
from ....base.files.input_files import (
    NANOSECONDS_IN_SECOND,
    InputError,
    check_node_count,
    read_text,
    whole_number,
)
from .workload import SimulatedNode

UNKNOWN: Final = -1
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
_SIZE: Final = re.compile(r";\s*(MaxNodes|MaxProcs)\s*:\s*([0-9]{1,9})\b.*")
_QUEUE: Final = re.compile(r";\s*Queue\s*:\s*([0-9]{1,9})\s+(\S+).*")
MACHINES_SUFFIX: Final = ".machines"
BYTES_IN_KILOBYTE: Final = 1024
_MACHINE_COLUMNS: Final = "id, name, nodes, processors, speed, memory in kB"


@dataclass(frozen=True, slots=True, kw_only=True)
class SwfJob:
    """One line of the log, in its own units; `-1` (`UNKNOWN`) marks a value that the log does not have.

    `queue_name` and `request` are empty if the log has no such column; so are `name`, `user_name`,
    `group_name` and `tags`, which a log of this format never has, but a CSV file with jobs may have.
    """

    line: int
    number: int
    submit_ns: int
    run_ns: int
    processors: int
    requested_processors: int
    requested_ns: int
    requested_memory: int
    status: int
    user: int
    group: int
    queue: int
    queue_name: str
    request: str
    name: str = ""
    user_name: str = ""
    group_name: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SwfLog:
    """A whole log; the sizes are 0 and names of queues are missing if the header does not have them."""

    path: Path
    jobs: tuple[SwfJob, ...]
    nodes_max: int = 0
    processors_max: int = 0
    queue_names: Mapping[int, str] = field(default_factory=dict)


def read_swf_log(path: Path) -> SwfLog:
    """Read a log.

    Raises:
        InputError: The file cannot be read, a line has the wrong number of columns, a value is not a number,
            or a job number occurs twice.
    """
    sizes = {"MaxNodes": 0, "MaxProcs": 0}
    queue_names: dict[int, str] = {}
    jobs: dict[int, SwfJob] = {}
    for line, text in enumerate(read_text(path).split("\n"), start=1):
        if text.startswith(";"):
            if size := _SIZE.fullmatch(text):
                sizes[size[1]] = int(size[2])
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

    def extra_texts(self) -> list[str]:
        """Return the extra columns without the list of nodes."""
        extra = [text for _, text in self._fields[len(_COLUMNS) :]]
        return extra[1:] if extra and extra[0].startswith("{") else extra


def _read_job(line: _Line) -> SwfJob:
    """Return the job of one line."""
    extra = line.extra_texts()
    return SwfJob(
        line=line.line,
        number=line.whole("job number"),
        submit_ns=line.seconds_ns("submit time"),
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
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One kind of machine; `memory` is in bytes per node, 0 if it is unknown."""

    name: str
    nodes: int
    processors: int
    memory: int


def read_machines(path: Path) -> tuple[Machine, ...]:
    """Read a file of machines; lines that start with `;` or `#` are comments.

    Raises:
        InputError: The file cannot be read, a value is not a number, or a name occurs twice.
    """
    machines: dict[str, Machine] = {}
    for line, text in enumerate(read_text(path).split("\n"), start=1):
        if not text.strip() or text.startswith((";", "#")):
            continue
        machine = _read_machine(path, line, text)
        if machine.name in machines:
            raise InputError(path, f"the machine {machine.name!r} stands there twice", line=line)
        machines[machine.name] = machine
    if not machines:
        raise InputError(path, f"there is no machine in the file; a line has the columns {_MACHINE_COLUMNS}")
    return tuple(machines.values())


def _read_machine(path: Path, line: int, text: str) -> Machine:
    """Return the machine of one line."""
    fields = text.split()
    if len(fields) not in {4, 5, 6}:
        raise InputError(path, f"{len(fields)} columns where a machine has {_MACHINE_COLUMNS}", line=line)

    def number(index: int, name: str, scale: int = 1) -> int:
        return whole_number(fields[index], path=path, line=line, name=name, scale=scale)

    machine = Machine(
        name=fields[1],
        nodes=number(2, "nodes"),
        processors=number(3, "processors"),
        memory=number(5, "memory", BYTES_IN_KILOBYTE) if len(fields) == 6 else 0,
    )
    if machine.nodes == 0 or machine.processors == 0:
        message = f"{fields[2]!r} nodes with {fields[3]!r} processors are no cluster"
        raise InputError(path, message, line=line)
    return machine


def machines_of_header(log: SwfLog) -> tuple[Machine, ...]:
    """Return the machines in the header of a log, empty without any.

    Without a number of processors each node has one, and without a number of nodes each processor is a node.

    Raises:
        InputError: The header has fewer processors than nodes.
    """
    nodes = log.nodes_max or log.processors_max
    processors = log.processors_max or nodes
    if nodes == 0:
        return ()
    if processors < nodes:
        message = f"the header has fewer processors (MaxProcs {processors}) than nodes (MaxNodes {nodes})"
        raise InputError(log.path, message)
    return (Machine(name="node", nodes=nodes, processors=processors // nodes, memory=0),)


def nodes_of(path: Path, machines: tuple[Machine, ...]) -> tuple[SimulatedNode, ...]:
    """Return every single node: `seth-001`, `seth-002`, ...

    Args:
        path: The file with the machines, for errors.
        machines: The machines.

    Raises:
        InputError: The number of nodes is too large.
    """
    check_node_count(path, sum(machine.nodes for machine in machines))
    nodes = []
    for machine in machines:
        resources = {"vcore": machine.processors * 1000}
        if machine.memory:
            resources["memory"] = machine.memory
        width = len(str(machine.nodes))
        for number in range(1, machine.nodes + 1):
            node_id = f"{machine.name}-{number:0{width}}"
            attributes = {"machine": machine.name}
            nodes.append(SimulatedNode(node_id=node_id, resources=resources, attributes=attributes))
    return tuple(nodes)
