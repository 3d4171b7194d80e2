"""The machines a log in the standard workload format ran on.

They are in a file next to the log, `<log>.machines`, one kind of machine a line: id, name, number of
nodes, processors of a node, speed (ignored), and memory of a node in kB (optional). Without such a file
the header of the log may have the number of nodes and processors.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ....base.files.input_errors import InputError
from ....base.files.input_files import check_node_count, read_text, whole_number
from .swf_log import SwfLog
from .workload import SimulatedNode

MACHINES_SUFFIX: Final = ".machines"
BYTES_IN_KILOBYTE: Final = 1024
_COLUMNS: Final = "id, name, nodes, processors, speed, memory in kB"


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One kind of machine; `memory` is in bytes a node, 0 where it is not known."""

    name: str
    nodes: int
    processors: int
    memory: int


def read_machines(path: Path) -> tuple[Machine, ...]:
    """Read a file of machines; lines that start with `;` or `#` are comments.

    Raises:
        InputError: The file cannot be read, a value is no number, or a name is there twice.
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
        raise InputError(path, f"there is no machine in the file; a line has the columns {_COLUMNS}")
    return tuple(machines.values())


def _read_machine(path: Path, line: int, text: str) -> Machine:
    """Return the machine of one line."""
    fields = text.split()
    if len(fields) not in {4, 5, 6}:
        raise InputError(path, f"{len(fields)} columns where a machine has {_COLUMNS}", line=line)

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
    """Return the machines in the header of a log, none if it has none.

    Without a number of processors each node has one, and without one of nodes each processor is a node.

    Raises:
        InputError: There are fewer processors than nodes.
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
        InputError: There are too many nodes.
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
