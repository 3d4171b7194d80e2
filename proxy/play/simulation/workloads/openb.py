"""The openb cluster trace: a CSV file of nodes and one of pods as a workload.

Every pod becomes a separate application with one task. The trace does not show which pods belong together,
and a packing test needs the pods decided in the order of the file: an application for each pod has exactly
that order of submission. Queues are the QoS classes of the trace; it names no users.

Resources: `vcore` in milli-cores, `memory` in bytes, and `gpu` in thousandths of a device. A node with 8
devices has 8000; a pod with 2 whole devices asks for 2000, one with 46 % of a device for 460. This is a
simplification: the scheduler has one number for a node and does not pack single devices. Three pods with 600
each are placed on a node with two devices, although no two of them could share one.

Two modes:

* `PACKING` (the default): pods are submitted in the order of the file, one each virtual second, and none ever
  ends. It shows the maximum use of the cluster.
* `OWN_TIMES`: pods start and end at their own times. A pod runs from its scheduling in the trace to its
  deletion, or from its creation if the trace never scheduled it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

from ....base.files.input_files import (
    NANOSECONDS_IN_SECOND,
    InputError,
    check_node_count,
    read_text,
    virtual_ns,
    whole_number,
)
from .csv_log import csv_rows
from .workload import (
    InputNote,
    SimulatedApplication,
    SimulatedNode,
    SimulatedTask,
    SimulatedWorkload,
    configuration_for,
    queue_name,
)

NODE_COLUMNS: Final = ("sn", "cpu_milli", "memory_mib", "gpu")
"""The required columns of a file of nodes; the optional column `model` of devices becomes an attribute."""

POD_COLUMNS: Final = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
"""The required columns of a file of pods; `qos` names the queue, and `gpu_spec` is counted."""

TIME_COLUMNS: Final = ("creation_time", "deletion_time")
"""The further columns of pods with their own times; `scheduled_time` is optional."""

_BYTES_IN_MIB: Final = 2**20
_MILLI: Final = 1000
_USER: Final = "openb"
_NO_QOS: Final = "default"
# All three types count the same, so that the fullest node is the one with the least remaining room.
_RESOURCE_WEIGHTS: Final = {"vcore": 1.0, "memory": 1.0, "gpu": 1.0}


class OpenbMode(Enum):
    """The submission of the pods of the trace."""

    PACKING = "packing"
    OWN_TIMES = "own-times"


@dataclass(frozen=True, slots=True)
class _Row:
    """One record of a CSV file, with its place."""

    path: Path
    line: int
    fields: dict[str, str]

    def text(self, name: str) -> str:
        """Return a field that must not be empty."""
        if not self.fields.get(name):
            raise InputError(self.path, f"{name}: the field is empty", line=self.line)
        return self.fields[name]

    def optional(self, name: str) -> str:
        """Return a field that may be empty or missing."""
        return self.fields.get(name, "")

    def number(self, name: str, scale: int = 1) -> int:
        """Return a whole number times a scale."""
        return whole_number(self.fields[name], path=self.path, line=self.line, name=name, scale=scale)

    def time_ns(self, name: str) -> int:
        """Return a time in seconds as nanoseconds."""
        return virtual_ns(self.fields[name], path=self.path, line=self.line, name=name)

    def resources(self, gpu: int) -> dict[str, int]:
        """Return the resources of a pod or node."""
        memory = self.number("memory_mib", _BYTES_IN_MIB)
        found = {"vcore": self.number("cpu_milli"), "memory": memory, "gpu": gpu}
        return {name: quantity for name, quantity in found.items() if quantity}


def read_openb(nodes_path: Path, pods_path: Path, mode: OpenbMode = OpenbMode.PACKING) -> SimulatedWorkload:
    """Read the trace.

    Raises:
        InputError: A file cannot be read or a value in it is invalid.
    """
    nodes = _read_nodes(nodes_path)
    columns = POD_COLUMNS if mode is OpenbMode.PACKING else (*POD_COLUMNS, *TIME_COLUMNS)
    rows = _read_rows(pods_path, columns)
    notes = {
        "pod that names a device model: the model is ignored": sum(
            bool(row.optional("gpu_spec")) for row in rows
        )
    }
    lives: list[tuple[int, int | None]]
    lives = [(number * NANOSECONDS_IN_SECOND, None) for number in range(len(rows))]
    if mode is OpenbMode.OWN_TIMES:
        lives = [_life(row) for row in rows]
        instant = sum(duration_ns == 0 for _, duration_ns in lives)
        notes["pod that ended in the second it started: taken as 1 s"] = instant
    start_ns = min(created_at_ns for created_at_ns, _ in lives)
    applications = [
        _application(row, created_at_ns - start_ns, duration_ns)
        for row, (created_at_ns, duration_ns) in zip(rows, lives, strict=True)
    ]
    return SimulatedWorkload(
        name=f"{pods_path.name} ({mode.value})",
        nodes=nodes,
        applications=tuple(sorted(applications, key=lambda each: each.submit_at_ns)),
        default_configuration=configuration_for(
            (each.queue for each in applications),
            node_sort_policy="binpacking",
            resource_weights=_RESOURCE_WEIGHTS,
        ),
        notes=tuple(InputNote(count, text) for text, count in notes.items() if count),
    )


def _application(row: _Row, submit_at_ns: int, duration_ns: int | None) -> SimulatedApplication:
    """Return the application of one pod; a duration of zero counts as a second."""
    name = row.text("name")
    task = SimulatedTask(
        key=name,
        resources=row.resources(row.number("num_gpu") * row.number("gpu_milli")),
        submit_at_ns=submit_at_ns,
        duration_ns=NANOSECONDS_IN_SECOND if duration_ns == 0 else duration_ns,
    )
    return SimulatedApplication(
        application_id=f"app-{name}",
        queue=f"root.{queue_name(row.optional('qos') or _NO_QOS)}",
        user=_USER,
        groups=(_USER,),
        submit_at_ns=submit_at_ns,
        tasks=(task,),
    )


def _read_nodes(path: Path) -> tuple[SimulatedNode, ...]:
    """Return the nodes of the file, in its order."""
    rows = _read_rows(path, NODE_COLUMNS)
    check_node_count(path, len(rows))
    return tuple(_node(row) for row in rows)


def _node(row: _Row) -> SimulatedNode:
    """Return one node."""
    model = row.optional("model")
    return SimulatedNode(
        node_id=row.text("sn"),
        resources=row.resources(row.number("gpu", _MILLI)),
        attributes={"model": model} if model else {},
    )


def _life(row: _Row) -> tuple[int, int]:
    """Return the creation of a pod in the trace, and its duration."""
    created_at_ns = row.time_ns("creation_time")
    started_at_ns = row.time_ns("scheduled_time") if row.optional("scheduled_time") else created_at_ns
    duration_ns = row.time_ns("deletion_time") - started_at_ns
    if started_at_ns < created_at_ns or duration_ns < 0:
        raise InputError(
            row.path,
            f"the times are not in order: creation_time {row.text('creation_time')!r}, scheduled_time "
            f"{row.optional('scheduled_time')!r}, deletion_time {row.text('deletion_time')!r}",
            line=row.line,
        )
    return created_at_ns, duration_ns


def _read_rows(path: Path, columns: tuple[str, ...]) -> list[_Row]:
    """Return the records below the header; the first column names each and must be unique."""
    records = csv_rows(path, read_text(path))
    line, header = next(records)
    _check_header(path, line, header, columns)
    rows: dict[str, _Row] = {}
    for line, fields in records:
        row = _Row(path, line, dict(zip(header, fields, strict=True)))
        name = row.text(columns[0])
        if name in rows:
            message = f"{columns[0]}: {name!r} stands already in line {rows[name].line}"
            raise InputError(path, message, line=line)
        rows[name] = row
    if not rows:
        raise InputError(path, "there is no record below the header")
    return list(rows.values())


def _check_header(path: Path, line: int, header: list[str], columns: tuple[str, ...]) -> None:
    """Require the columns, in any order and with any others, each once."""
    missing = [name for name in columns if name not in header]
    if missing:
        message = f"the header {','.join(header)!r} lacks the column {missing[0]!r}"
        raise InputError(path, message, line=line)
    repeated = next((name for name in header if header.count(name) > 1), None)
    if repeated is not None:
        raise InputError(path, f"the header has the column {repeated!r} twice", line=line)
