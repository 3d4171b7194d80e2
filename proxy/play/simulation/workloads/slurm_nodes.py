"""The machines of Slurm: from `scontrol show node`, from a table of `sinfo -N`, or from `slurm.conf`.

A table has a header with `NODELIST` and `CPUS`, and perhaps `PARTITION`, `MEMORY` (MiB) and `GRES`, in any
order, between blanks or bars; a node has a row for each of its partitions. Of `slurm.conf` the lines of nodes
and partitions are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from math import prod
from pathlib import Path
from typing import Final

from ....base.files.input_files import InputError, check_node_count, whole_number
from .swf_log import BYTES_IN_KILOBYTE

_MILLI: Final = 1000
_BYTES_IN_MEGABYTE: Final = 1024 * BYTES_IN_KILOBYTE
_NODES_MAX: Final = 1_000_001
"""One more than a simulation has."""
_RECORD: Final = re.compile(r"(?m)^(?=NodeName=)")
_FIELD: Final = re.compile(r"(\w+)=(\S*)")
_DEVICES: Final = re.compile(r"(?P<name>[A-Za-z]\w*)(:[A-Za-z]\w*)?:(?P<count>[0-9]{1,6})(\([^)]*\))?")
_CONFIGURED: Final = re.compile(r"(?mi)^PartitionName=")
_CONTINUED: Final = re.compile(r"\\\n")
_HEADER: Final = re.compile(r"(?m)^(?=.*\bNODELIST\b)(?=.*\bCPUS\b).*$")
_BETWEEN_NAMES: Final = re.compile(r",(?![^\[]*\])")
"""A comma outside of brackets."""
_RANGES: Final = re.compile(r"([^\[]*)\[([0-9,-]+)\](.*)")
_CORES: Final = (("sockets", "socketsperboard"), ("corespersocket",), ("threadspercore",), ("boards",))
"""The parts of the number of processors of a node, each with its names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One kind of machine; `memory` is in bytes per node, 0 if it is unknown.

    `others` are other resources of a node. `names` are the names of the nodes; without them they are
    numbered. `partitions` are those of Slurm, separated by commas.
    """

    name: str
    nodes: int
    processors: int
    memory: int
    others: Mapping[str, int] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    partitions: str = ""

    def resources(self) -> dict[str, int]:
        """Return the resources of a node, in units of the scheduler interface."""
        memory = {"memory": self.memory} if self.memory else {}
        return {"vcore": self.processors * _MILLI, **memory, **self.others}


def machines_of_slurm(path: Path, text: str) -> tuple[Machine, ...] | None:
    """Return the machines in a text of Slurm, `None` if it is none; equal nodes are one kind.

    Raises:
        InputError: A value is not a number, or there are too many nodes.
    """
    if _CONFIGURED.search(text):
        nodes = _configured_nodes(path, text)
    elif header := _HEADER.search(text):
        nodes = _listed_nodes(path, text, header)
    elif text.lstrip().startswith("NodeName="):
        nodes = _shown_nodes(path, text)
    else:
        return None
    kinds: dict[tuple[object, ...], list[Machine]] = {}
    for node in nodes:
        key = (node.processors, node.memory, tuple(node.others.items()), node.partitions)
        kinds.setdefault(key, []).append(node)
    return tuple(
        replace(alike[0], nodes=len(alike), names=tuple(node.name for node in alike))
        for alike in kinds.values()
    )


def _shown_nodes(path: Path, text: str) -> Iterator[Machine]:
    """Yield the nodes that `scontrol show node` prints, also with `-o`."""
    line = 1
    for record in _RECORD.split(text):
        values = {name.lower(): value for name, value in _FIELD.findall(record)}
        if values:
            cpus = values.get("cpuefctv") or values.get("cputot", "")
            yield _node(path, line, values["nodename"], cpus, values, partitions=values.get("partitions", ""))
        line += record.count("\n")


def _listed_nodes(path: Path, text: str, header: re.Match[str]) -> Iterator[Machine]:
    """Yield the nodes of a table; in a row for another partition the node is the same."""
    separator = "|" if "|" in header[0] else None
    heads = [head.strip() for head in header[0].split(separator)]
    found: dict[str, Machine] = {}
    first = text.count("\n", 0, header.start()) + 2
    for line, row in enumerate(text[header.end() :].split("\n")[1:], start=first):
        if not row.strip():
            continue
        cells = [cell.strip() for cell in row.split(separator, len(heads) - 1)]
        if len(cells) != len(heads):
            raise InputError(
                path, f"expected {len(heads)} columns, got {len(cells)}: {row.strip()!r}", line=line
            )
        values = dict(zip(heads, cells, strict=True))
        values |= {"realmemory": values.get("MEMORY", "0"), "gres": values.get("GRES", "")}
        partition = values.get("PARTITION", "").rstrip("*")
        for name in expanded(path, values["NODELIST"], line):
            before = found.get(name)
            partitions = ",".join(filter(None, (before.partitions if before else "", partition)))
            found[name] = _node(path, line, name, values["CPUS"], values, partitions=partitions)
    yield from found.values()


def _configured_nodes(path: Path, text: str) -> Iterator[Machine]:
    """Yield the nodes of `slurm.conf`, each with the partitions that list it."""
    nodes: dict[str, tuple[int, Mapping[str, str]]] = {}
    for line, names, values in _configured(text, "NodeName"):
        nodes |= dict.fromkeys(expanded(path, names, line), (line, values))
    partitions: dict[str, list[str]] = {}
    for line, partition, values in _configured(text, "PartitionName"):
        listed = values.get("nodes", "")
        for name in nodes if listed == "ALL" else expanded(path, listed, line):
            partitions.setdefault(name, []).append(partition)
    for name, (line, values) in nodes.items():
        cpus = values.get("cpus") or values.get("procs")
        if cpus is None:
            parts = [next((values[key] for key in keys if key in values), "1") for keys in _CORES]
            cpus = str(prod(whole_number(part, path=path, line=line, name="Sockets") for part in parts))
        yield _node(path, line, name, cpus, values, partitions=",".join(partitions.get(name, ())))


def _configured(text: str, kind: str) -> Iterator[tuple[int, str, Mapping[str, str]]]:
    """Yield the lines of a kind: number, name, and values, which those of `DEFAULT` lines complete."""
    defaults: dict[str, str] = {}
    rows = _CONTINUED.sub(" ", text).split("\n")
    for line, row in enumerate(rows, start=1):
        values = {name.lower(): value for name, value in _FIELD.findall(row.partition("#")[0])}
        name = values.pop(kind.lower(), "")
        if name == "DEFAULT":
            defaults |= values
        elif name:
            yield line, name, {**defaults, **values}


def _node(
    path: Path, line: int, name: str, cpus: str, values: Mapping[str, str], *, partitions: str
) -> Machine:
    """Return one node, from its fields."""
    others: dict[str, int] = {}
    for device in _DEVICES.finditer(values.get("gres", "")):
        others[device["name"]] = others.get(device["name"], 0) + int(device["count"])
    memory = values.get("realmemory", "0")
    machine = Machine(
        name=name,
        nodes=1,
        processors=whole_number(cpus, path=path, line=line, name="processors"),
        memory=whole_number(memory, path=path, line=line, name="RealMemory", scale=_BYTES_IN_MEGABYTE),
        others=others,
        partitions=partitions,
    )
    if not machine.processors:
        raise InputError(path, f"the node {name!r} has no processors", line=line)
    return machine


def expanded(path: Path, text: str, line: int = 1) -> list[str]:
    """Return the names in a list of Slurm: `n[001-003,7],login`.

    Raises:
        InputError: A range is not one, or there are too many names.
    """
    names = list(islice(_expanded(path, text, line), _NODES_MAX))
    check_node_count(path, len(names))
    return names


def _expanded(path: Path, text: str, line: int) -> Iterator[str]:
    for part in filter(None, _BETWEEN_NAMES.split(text)):
        match = _RANGES.fullmatch(part)
        if match is None:
            if "[" in part:
                raise InputError(path, f"expected a list of nodes such as n[01-20], got {part!r}", line=line)
            yield part
            continue
        begin, ranges, rest = match.groups()
        for each in ranges.split(","):
            low, _, high = each.partition("-")
            for number in range(int(low or 0), int(high or low or 0) + 1):
                yield from (
                    f"{begin}{number:0{len(low)}}{end}"
                    for end in (_expanded(path, rest, line) if rest else ("",))
                )
