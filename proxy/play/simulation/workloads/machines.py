"""The machines of a log: from a file of kinds of machines, from a text of Slurm, or from a log's header.

A file of machines is next to the log, `<log>.machines`, one kind of machine per line: id, name, number of
nodes, processors of a node, speed (ignored), memory of a node in kB (optional), and other resources of a node
(`gpu=8`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ....base.files.input_files import InputError, check_node_count, read_text, whole_number
from .slurm_nodes import Machine, machines_of_slurm
from .swf_log import BYTES_IN_KILOBYTE, SwfLog
from .workload import POOLS, SimulatedNode

MACHINES_SUFFIX: Final = ".machines"
_MACHINE_COLUMNS: Final = "id, name, nodes, processors, speed, memory in kB, and others such as gpu=8"


def read_machines(path: Path) -> tuple[Machine, ...]:
    """Read a file of machines, where lines that start with `;` or `#` are comments, or a text of Slurm.

    Raises:
        InputError: The file cannot be read, a value is not a number, or a name occurs twice.
    """
    content = read_text(path)
    of_slurm = machines_of_slurm(path, content)
    if of_slurm is not None:
        return of_slurm
    machines: dict[str, Machine] = {}
    for line, text in enumerate(content.split("\n"), start=1):
        if not text.strip() or text.startswith((";", "#")):
            continue
        machine = _read_machine(path, line, text)
        if machine.name in machines:
            raise InputError(path, f"the machine {machine.name!r} is listed twice", line=line)
        machines[machine.name] = machine
    if not machines:
        raise InputError(path, f"there is no machine in the file; a line has the columns {_MACHINE_COLUMNS}")
    return tuple(machines.values())


def _read_machine(path: Path, line: int, text: str) -> Machine:
    """Return the machine of one line."""
    columns = text.split()
    fields = [column for column in columns if "=" not in column]
    if len(fields) not in {4, 5, 6}:
        raise InputError(path, f"{len(fields)} columns where a machine has {_MACHINE_COLUMNS}", line=line)

    def number(index: int, name: str, scale: int = 1) -> int:
        return whole_number(fields[index], path=path, line=line, name=name, scale=scale)

    machine = Machine(
        name=fields[1],
        nodes=number(2, "nodes"),
        processors=number(3, "processors"),
        memory=number(5, "memory", BYTES_IN_KILOBYTE) if len(fields) == 6 else 0,
        others={
            name: whole_number(value, path=path, line=line, name=name)
            for name, _, value in (column.partition("=") for column in columns[len(fields) :])
        },
    )
    if machine.nodes == 0 or machine.processors == 0:
        message = f"expected nodes with processors, not {fields[2]!r} nodes with {fields[3]!r} processors"
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
        width = len(str(machine.nodes))
        numbered = (f"{machine.name}-{number:0{width}}" for number in range(1, machine.nodes + 1))
        attributes = {"machine": machine.name}
        if machine.partitions:
            attributes[POOLS] = machine.partitions
        nodes += [
            SimulatedNode(node_id=node_id, resources=machine.resources(), attributes=attributes)
            for node_id in machine.names or numbered
        ]
    return tuple(nodes)
