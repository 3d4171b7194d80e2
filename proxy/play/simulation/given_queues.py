"""A queue configuration that is given besides the input; it is checked before anything runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ....model.configuration.names import did_you_mean
from ....model.configuration.reader import inspect, load
from ....model.configuration.schema import SchedulerConfig
from ....model.values.messages import short_partition_name
from ...base.files.input_errors import InputError
from ...base.files.input_files import read_text
from ...si import si_pb2 as si
from ...si.constants import NODE_PARTITION
from .si_messages import PARTITION
from .workloads.workload import InputNote, Workload

if TYPE_CHECKING:
    from ..transcripts.transcript import Line
    from .workloads.transcript_input import Transcript


@dataclass(frozen=True, slots=True)
class GivenQueues:
    """The configuration of a file, as text and as it was read."""

    path: Path
    text: str
    config: SchedulerConfig

    def check_partitions(self, wanted: Collection[str] = (PARTITION,)) -> None:
        """Refuse a configuration that has none of the partitions of the nodes.

        Args:
            wanted: These partitions; by default the one of all workloads that are no transcripts.

        Raises:
            InputError: There is none of them.
        """
        there = [partition.name for partition in self.config.partitions]
        if wanted and not set(wanted) & set(there):
            name = min(wanted)
            message = f"there is no partition {name!r}, to which the nodes of the input come"
            known = f"; the partitions are: {', '.join(there) or 'none'}"
            raise InputError(self.path, f"{message}{known}{did_you_mean(name, there)}")

    def checked_notes(self, work: Workload | Transcript) -> tuple[InputNote, ...]:
        """Refuse a configuration that does not fit the work; return what is probably not meant in it.

        Raises:
            InputError: It has none of the partitions of the nodes.
        """
        if isinstance(work, Workload):
            self.check_partitions()
            return self.notes(work.node_types())
        lines = [step.line for step in work.steps]
        self.check_partitions(partitions_in(lines))
        return self.notes(node_types_in(lines))

    def notes(self, node_types: Collection[str]) -> tuple[InputNote, ...]:
        """Return warnings: what is allowed and probably a mistake, given the resources of the nodes."""
        warnings = inspect(self.text, str(self.path), node_types=node_types).warnings
        return tuple(InputNote(1, str(warning)) for warning in warnings)


def read_queues(path: Path) -> GivenQueues:
    """Read a configuration.

    Raises:
        InputError: The file cannot be read.
        ConfigurationError: It is no configuration; the error has all problems.
    """
    text = read_text(path)
    return GivenQueues(path, text, load(text, source=str(path)))


def node_types_in(lines: Iterable[Line]) -> set[str]:
    """Return the resource types that some node of a transcript has."""
    return {name for node in _nodes(lines) for name in node.schedulableResource.resources}


def partitions_in(lines: Iterable[Line]) -> set[str]:
    """Return the partitions of the nodes of a transcript."""
    return {
        short_partition_name(node.attributes.get(NODE_PARTITION, "") or PARTITION) for node in _nodes(lines)
    }


def _nodes(lines: Iterable[Line]) -> Iterator[si.NodeInfo]:
    for line in lines:
        if line.verb == "node":
            yield from line.message(si.NodeRequest).nodes
