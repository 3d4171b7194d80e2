"""Workloads of simulations: nodes, and applications with their tasks, from any kind of file.

All of it is frozen. Times are whole nanoseconds of virtual time, counted from the start of the simulation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from itertools import chain, repeat


class GangStyle(Enum):
    """The styles of a gang whose placeholders are not all placed in time; names of `si.v1`."""

    SOFT = "Soft"
    HARD = "Hard"


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedNode:
    """One machine."""

    node_id: str
    resources: Mapping[str, int]
    attributes: Mapping[str, str] = field(default_factory=dict)


class NodeChange(Enum):
    """What happens to nodes while a simulation runs; the values are the keys of a scenario."""

    ADD = "add"
    REMOVE = "remove"
    """The node is gone at once, as after a failure, and what runs on it ends."""
    DRAIN = "drain"
    """The node gets nothing more, and what runs on it runs on."""
    RESTORE = "restore"
    """A drained node takes work again; a removed one comes back, empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeEvent:
    """Nodes that change at one moment.

    `is_repeated` says of nodes that are removed whether what ran on them is asked for again.
    """

    at_ns: int
    change: NodeChange
    nodes: tuple[SimulatedNode, ...]
    is_repeated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedTask:
    """Equal pieces of work of one application; each of the `count` pieces is one ask.

    `duration_ns` is `None` for work that runs to the end of the simulation.
    """

    key: str
    resources: Mapping[str, int]
    submit_at_ns: int
    duration_ns: int | None
    priority: int = 0
    count: int = 1

    def allocation_keys(self) -> Iterator[str]:
        """Yield the allocation key of every piece, in order."""
        if self.count == 1:
            yield self.key
            return
        for number in range(1, self.count + 1):
            yield f"{self.key}-{number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedApplication:
    """An application of one user in one queue.

    `gang` is `None` for an application whose tasks start one by one. A gang first asks for a placeholder
    for every task that is submitted together with the application, and starts when all are placed.
    `placeholder_timeout_ns` is how long placeholders may wait for the others, `None` for the default of the
    scheduler. `walltime_ns` is how long each task runs at most by its owner, `None` where that is not known.
    `tags` are those of the application besides.
    """

    application_id: str
    queue: str
    user: str
    groups: tuple[str, ...]
    submit_at_ns: int
    tasks: tuple[SimulatedTask, ...]
    gang: GangStyle | None = None
    placeholder_timeout_ns: int | None = None
    walltime_ns: int | None = None
    tags: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        assert all(task.submit_at_ns >= self.submit_at_ns for task in self.tasks), (
            "tasks follow their application"
        )

    def first_tasks(self) -> tuple[SimulatedTask, ...]:
        """Return the tasks that are submitted together with the application."""
        return tuple(task for task in self.tasks if task.submit_at_ns == self.submit_at_ns)

    def gang_resources(self) -> dict[str, int]:
        """Return what all placeholders of a gang ask for together."""
        tasks = self.first_tasks()
        return _sum((task.resources for task in tasks), (task.count for task in tasks))


@dataclass(frozen=True, slots=True)
class InputNote:
    """Something about the input that the report must not hide: what was skipped, changed or ignored."""

    count: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A whole simulation: a cluster, what is submitted to it, and a queue configuration that fits.

    `nodes` are there from the start, and `node_events` change them, in the order of their times.
    `configuration_notes` are about that configuration, and matter unless another one replaces it.
    """

    name: str
    nodes: tuple[SimulatedNode, ...]
    applications: tuple[SimulatedApplication, ...]
    default_configuration: str
    notes: tuple[InputNote, ...] = ()
    configuration_notes: tuple[InputNote, ...] = ()
    node_events: tuple[NodeEvent, ...] = ()

    def all_nodes(self) -> tuple[SimulatedNode, ...]:
        """Return every node that is there at some time, each once."""
        added = (event.nodes for event in self.node_events if event.change is NodeChange.ADD)
        return (*self.nodes, *chain.from_iterable(added))

    def node_types(self) -> set[str]:
        """Return the resource types that some node has."""
        return {name for node in self.all_nodes() for name in node.resources}

    def task_count(self) -> int:
        """Return the number of asks that will be submitted."""
        return sum(task.count for application in self.applications for task in application.tasks)


def count_tasks_larger_than_every_node(workload: Workload) -> int:
    """Return how many pieces of work fit on no node, not even on an empty one."""
    shapes = _distinct_shapes(node.resources for node in workload.all_nodes())
    answers: dict[tuple[tuple[str, int], ...], bool] = {}
    count = 0
    for application in workload.applications:
        for task in application.tasks:
            shape = tuple(task.resources.items())
            if shape not in answers:
                answers[shape] = any(_fits(task.resources, node) for node in shapes)
            count += 0 if answers[shape] else task.count
    return count


def count_gangs_larger_than_the_cluster(workload: Workload) -> int:
    """Return how many gangs ask for more of something than all nodes have together."""
    there = _sum(node.resources for node in workload.all_nodes())
    return sum(
        not _fits(application.gang_resources(), there)
        for application in workload.applications
        if application.gang is not None
    )


def _sum(resources: Iterable[Mapping[str, int]], counts: Iterable[int] = repeat(1)) -> dict[str, int]:
    """Return the sum of resources, each as often as its count says."""
    total: dict[str, int] = {}
    for one, count in zip(resources, counts, strict=False):
        for name, quantity in one.items():
            total[name] = total.get(name, 0) + quantity * count
    return total


def _distinct_shapes(resources: Iterable[Mapping[str, int]]) -> list[Mapping[str, int]]:
    """Return each different resource once."""
    return list({tuple(sorted(one.items())): one for one in resources}.values())


def _fits(wanted: Mapping[str, int], there: Mapping[str, int]) -> bool:
    """Return whether each wanted type is there in that quantity."""
    return all(quantity <= there.get(name, 0) for name, quantity in wanted.items())
