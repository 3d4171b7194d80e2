"""Workloads of simulations: nodes, and applications with their tasks, from any kind of file.

All values are frozen. Times are whole nanoseconds of virtual time, counted from the start of the simulation.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from fractions import Fraction
from itertools import chain, repeat
from math import ceil
from typing import Final, TypeAlias

import yaml

from .....model.configuration.policies import GangPlacing
from .....model.configuration.queue_properties import GANG_PLACING
from .....model.values.dependencies import ARRAY_TAG, tags_for

POOLS: Final = "partitions"
"""The attribute of a node with the names of its pools, separated by commas."""
_FORBIDDEN: Final = re.compile(r"[^a-z0-9_:#/@-]")
_NAME_LENGTH_MAX: Final = 64
_ROOT: Final = "root"
_Tree: TypeAlias = "dict[str, _Tree]"
_QueueEntry: TypeAlias = "dict[str, str | bool | dict[str, str] | list[_QueueEntry]]"
_ONE: Final = Fraction(1)


class GangStyle(Enum):
    """The styles of a gang whose placeholders are not all placed in time, with their names in `si.v1`."""

    SOFT = "Soft"
    HARD = "Hard"


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedNode:
    """One machine."""

    node_id: str
    resources: Mapping[str, int]
    attributes: Mapping[str, str] = field(default_factory=dict)

    def is_of(self, pool: str) -> bool:
        """Return whether work of a pool may run here; that of the empty pool may run anywhere."""
        return not pool or pool in self.attributes.get(POOLS, "").split(",")


class NodeChange(Enum):
    """A change of nodes during a simulation; the values are the keys of a scenario."""

    ADD = "add"
    REMOVE = "remove"
    """The node is removed at once, as after a failure, and its work ends."""
    DRAIN = "drain"
    """The node gets no new work, and its present work continues."""
    RESTORE = "restore"
    """A drained node accepts work again; a removed one comes back, empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeEvent:
    """Nodes that change at one moment.

    `is_repeated` is whether the work of removed nodes is asked for again.
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
    `placeholder_timeout_ns` is the time for which placeholders may wait for the others, `None` for the
    default of the scheduler. `walltime_ns` is the maximum run time of each task by its owner, `None` if it is
    unknown. `tags` are the other tags of the application. `recorded_start_ns` is its start in the log. It
    runs only on nodes of its `pool`, unless that is empty. If it `follows` an application, it is submitted
    `think_ns` after the end of that, instead of at its time. It `fails` where others wait for how it ends.
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
    recorded_start_ns: int | None = None
    pool: str = ""
    follows: str = ""
    think_ns: int = 0
    fails: bool = False

    def __post_init__(self) -> None:
        assert all(task.submit_at_ns >= self.submit_at_ns for task in self.tasks), (
            "tasks follow their application"
        )

    def first_tasks(self) -> tuple[SimulatedTask, ...]:
        """Return the tasks that are submitted together with the application."""
        return tuple(task for task in self.tasks if task.submit_at_ns == self.submit_at_ns)

    def gang_resources(self) -> dict[str, int]:
        """Return the sum of all placeholders of a gang."""
        tasks = self.first_tasks()
        return _sum((task.resources for task in tasks), (task.count for task in tasks))


@dataclass(frozen=True, slots=True)
class InputNote:
    """A part of the input that was skipped, changed or ignored, which the report must show."""

    count: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedWorkload:
    """A whole simulation: a cluster, the submissions to it, and a queue configuration for them.

    `nodes` exist from the start, and `node_events` change them, in the order of their times.
    `configuration_notes` are about that configuration, and do not apply if another one replaces it.
    """

    name: str
    nodes: tuple[SimulatedNode, ...]
    applications: tuple[SimulatedApplication, ...]
    default_configuration: str
    notes: tuple[InputNote, ...] = ()
    configuration_notes: tuple[InputNote, ...] = ()
    node_events: tuple[NodeEvent, ...] = ()

    def all_nodes(self) -> tuple[SimulatedNode, ...]:
        """Return every node that exists at some time, each once."""
        added = (event.nodes for event in self.node_events if event.change is NodeChange.ADD)
        return (*self.nodes, *chain.from_iterable(added))

    def node_types(self) -> set[str]:
        """Return the resource types that some node has."""
        return {name for node in self.all_nodes() for name in node.resources}

    def task_count(self) -> int:
        """Return the number of asks that will be submitted."""
        return sum(task.count for application in self.applications for task in application.tasks)


def count_tasks_larger_than_every_node(workload: SimulatedWorkload) -> int:
    """Return the number of pieces of work that do not fit on any node, even an empty one."""
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


def count_gangs_larger_than_the_cluster(workload: SimulatedWorkload) -> int:
    """Return the number of gangs that ask for more of a resource than all nodes have together."""
    there = _sum(node.resources for node in workload.all_nodes())
    return sum(
        not _fits(application.gang_resources(), there)
        for application in workload.applications
        if application.gang is not None
    )


def _sum(resources: Iterable[Mapping[str, int]], counts: Iterable[int] = repeat(1)) -> dict[str, int]:
    """Return the sum of resources, each multiplied by its count."""
    total: dict[str, int] = {}
    for one, count in zip(resources, counts, strict=False):
        for name, quantity in one.items():
            total[name] = total.get(name, 0) + quantity * count
    return total


def _distinct_shapes(resources: Iterable[Mapping[str, int]]) -> list[Mapping[str, int]]:
    """Return each different resource once."""
    return list({tuple(sorted(one.items())): one for one in resources}.values())


def _fits(wanted: Mapping[str, int], there: Mapping[str, int]) -> bool:
    """Return whether each type is available in the requested quantity."""
    return all(quantity <= there.get(name, 0) for name, quantity in wanted.items())


def queue_name(text: str) -> str:
    """Return a legal queue name for a name from a trace: lower case, `_` for illegal characters."""
    return _FORBIDDEN.sub("_", text.lower())[:_NAME_LENGTH_MAX] or "_"


def configuration_for(
    queue_paths: Iterable[str],
    *,
    node_sort_policy: str = "fair",
    resource_weights: Mapping[str, float] | None = None,
    has_whole_gangs: bool = False,
) -> str:
    """Return the YAML of a partition with these leaf queues, open to everyone and without quotas.

    Args:
        queue_paths: Full paths, each starting with `root.`; order and repetitions do not matter.
        node_sort_policy: `fair` or `binpacking`.
        resource_weights: The weight of each resource type when nodes are sorted; the default if absent.
        has_whole_gangs: Whether gangs are placed whole. Gangs whose placeholders never time out would
            otherwise hold parts of their room, and wait for each other forever.
    """
    tree: _Tree = {}
    for path in sorted(set(queue_paths)):
        level = tree
        for name in path.split(".")[1:]:
            level = level.setdefault(name, {})
    policy: dict[str, object] = {"type": node_sort_policy}
    if resource_weights is not None:
        policy["resourceweights"] = dict(resource_weights)
    root: _QueueEntry = {"name": _ROOT, "submitacl": "*"}
    if has_whole_gangs:
        root["properties"] = {GANG_PLACING: GangPlacing.WHOLE.value}
    root["queues"] = _entries(tree)
    partition = {"name": "default", "nodesortpolicy": policy, "queues": [root]}
    text: str = yaml.safe_dump({"partitions": [partition]}, sort_keys=False)
    return text


def _entries(tree: _Tree) -> list[_QueueEntry]:
    """Return the queues of one level with everything below them."""
    entries: list[_QueueEntry] = []
    for name, children in tree.items():
        entry: _QueueEntry = {"name": name}
        if children:
            entry["parent"] = True
            entry["queues"] = _entries(children)
        entries.append(entry)
    return entries


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadCut:
    """The part of a workload to take, and its scale.

    Attributes:
        from_ns: Earlier submissions are left out, and time starts here; `None` for the start.
        to_ns: Submissions at this time or later are left out; `None` without an end.
        first: The number of jobs to take of the rest, in the order of submission; `None` for all.
        rate: The factor of the rate of submissions.
        size: The factor of the size of each task, which is rounded up.
        nodes: The factor of the number of nodes of each kind, which is rounded up.
    """

    from_ns: int | None = None
    to_ns: int | None = None
    first: int | None = None
    rate: Fraction = _ONE
    size: Fraction = _ONE
    nodes: Fraction = _ONE


def cut_workload(workload: SimulatedWorkload, cut: WorkloadCut) -> SimulatedWorkload:
    """Return a part of a workload, scaled; it may have no applications.

    Times are cut before they are scaled. Events of nodes before the part happen at its start.
    """
    start_ns = cut.from_ns or 0
    taken = sorted(_taken(workload.applications, cut), key=lambda each: each.submit_at_ns)[: cut.first]
    notes = list(workload.notes)
    if len(taken) < len(workload.applications):
        notes.append(InputNote(len(workload.applications) - len(taken), "job that is left out by the cut"))
    nodes = tuple(_scaled_nodes(workload.nodes, cut.nodes))
    result = replace(
        workload,
        nodes=nodes,
        applications=tuple(_moved(each, start_ns, cut) for each in taken),
        node_events=tuple(_moved_events(workload, nodes, cut)),
    )
    result, absent = without_absent(result)
    notes += absent
    if cut.nodes != _ONE or cut.size != _ONE:
        result, too_large = without_what_never_starts(result)
        if too_large:
            notes.append(InputNote(too_large, "job skipped: there is no room for the whole of it any more"))
    return replace(result, notes=tuple(notes))


def _taken(applications: Iterable[SimulatedApplication], cut: WorkloadCut) -> Iterator[SimulatedApplication]:
    """Yield the applications that are submitted in the part."""
    for application in applications:
        at_ns = application.submit_at_ns
        if at_ns >= (cut.from_ns or 0) and (cut.to_ns is None or at_ns < cut.to_ns):
            yield application


def _moved(application: SimulatedApplication, start_ns: int, cut: WorkloadCut) -> SimulatedApplication:
    """Return an application at its time in the part; its tasks keep their times after it."""
    at_ns = int((application.submit_at_ns - start_ns) / cut.rate)
    shift_ns = at_ns - application.submit_at_ns
    tasks = tuple(_moved_task(task, shift_ns, cut.size) for task in application.tasks)
    recorded_ns = application.recorded_start_ns
    is_scaled = cut.rate != _ONE or cut.size != _ONE or cut.nodes != _ONE
    return replace(
        application,
        submit_at_ns=at_ns,
        tasks=tasks,
        recorded_start_ns=None if is_scaled or recorded_ns is None else recorded_ns + shift_ns,
    )


def _moved_task(task: SimulatedTask, shift_ns: int, size: Fraction) -> SimulatedTask:
    """Return a task at its time in the part."""
    resources = {name: ceil(quantity * size) for name, quantity in task.resources.items()}
    return replace(task, submit_at_ns=task.submit_at_ns + shift_ns, resources=resources)


def _moved_events(
    workload: SimulatedWorkload, nodes: tuple[SimulatedNode, ...], cut: WorkloadCut
) -> Iterator[NodeEvent]:
    """Yield the events of the part, without those of nodes that are left out."""
    gone = {node.node_id for node in workload.nodes} - {node.node_id for node in nodes}
    for event in workload.node_events:
        left = tuple(node for node in event.nodes if node.node_id not in gone)
        if left and (cut.to_ns is None or event.at_ns < cut.to_ns):
            at_ns = max(0, int((event.at_ns - (cut.from_ns or 0)) / cut.rate))
            yield replace(event, at_ns=at_ns, nodes=left)


def _scaled_nodes(nodes: tuple[SimulatedNode, ...], factor: Fraction) -> Iterator[SimulatedNode]:
    """Yield a number of nodes of each kind by a factor: the first of them, or all and copies of them."""
    kinds: dict[object, list[SimulatedNode]] = {}
    for node in nodes:
        kind = (tuple(node.resources.items()), tuple(node.attributes.items()))
        kinds.setdefault(kind, []).append(node)
    if factor == _ONE:
        yield from nodes
        return
    for alike in kinds.values():
        for number in range(ceil(len(alike) * factor)):
            node = alike[number % len(alike)]
            copy = number // len(alike)
            yield replace(node, node_id=f"{node.node_id}-copy{copy}") if copy else node


def without_absent(workload: SimulatedWorkload) -> tuple[SimulatedWorkload, list[InputNote]]:
    """Return a workload in which no application waits for one that is not in it, and a note about these."""
    there = {each.application_id for each in workload.applications}
    there |= {array for each in workload.applications if (array := each.tags.get(ARRAY_TAG))}
    applications = []
    for application in workload.applications:
        tags = tags_for(application.tags, there.__contains__)
        follows = application.follows if application.follows in there else ""
        is_changed = tags != application.tags or follows != application.follows
        applications.append(replace(application, tags=tags, follows=follows) if is_changed else application)
    count = sum(new is not old for new, old in zip(applications, workload.applications, strict=True))
    notes = [InputNote(count, "job that waits for jobs that are not there: not for these")] if count else []
    return replace(workload, applications=tuple(applications)), notes


def without_what_never_starts(workload: SimulatedWorkload) -> tuple[SimulatedWorkload, int]:
    """Return a workload without the gangs that would hold room forever, and the number of these.

    Only placeholders without a timeout do: others are given up in time.
    """
    pools = {}
    for pool in {application.pool for application in workload.applications}:
        sizes = [node.resources for node in workload.all_nodes() if node.is_of(pool)]
        pools[pool] = _sum(sizes), Counter(tuple(size.items()) for size in sizes)
    kept = []
    for application in workload.applications:
        waits_for_ever = application.placeholder_timeout_ns is not None
        there, shapes = pools[application.pool]
        if not waits_for_ever or (
            _fits(application.gang_resources(), there)
            and all(_has_places(task, shapes) for task in application.first_tasks())
        ):
            kept.append(application)
    return replace(workload, applications=tuple(kept)), len(workload.applications) - len(kept)


def _has_places(task: SimulatedTask, shapes: Counter[tuple[tuple[str, int], ...]]) -> bool:
    """Return whether all pieces of a task have room at once on empty nodes."""
    places = 0
    for shape, count in shapes.items():
        there = dict(shape)
        places += count * min(there.get(name, 0) // quantity for name, quantity in task.resources.items())
    return places >= task.count
