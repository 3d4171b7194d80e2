"""A part of a workload, or more or less of it: jobs by time or number, their rate and sizes, nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import Final

from .workload import (
    InputNote,
    NodeEvent,
    SimulatedApplication,
    SimulatedNode,
    SimulatedTask,
    Workload,
    count_gangs_larger_than_the_cluster,
)

_ONE: Final = Fraction(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadCut:
    """What is taken of a workload, and how it is scaled.

    Attributes:
        from_ns: Jobs that are submitted earlier are left out, and time begins here; `None` for the start.
        to_ns: Jobs that are submitted at this time or later are left out; `None` for none.
        first: How many jobs are taken of the rest, in the order of submission; `None` for all.
        rate: How many times as fast jobs follow each other.
        size: How many times as much each task asks for, rounded up.
        nodes: How many times as many nodes of each kind there are, rounded up.
    """

    from_ns: int | None = None
    to_ns: int | None = None
    first: int | None = None
    rate: Fraction = _ONE
    size: Fraction = _ONE
    nodes: Fraction = _ONE


def cut_workload(workload: Workload, cut: WorkloadCut) -> Workload:
    """Return a part of a workload, scaled; without applications if none is left.

    Times are cut before they are scaled. Events of nodes before the part happen as it begins.
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
    if cut.nodes != _ONE or cut.size != _ONE:
        result, too_large = _without_what_never_starts(result)
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
    """Return an application at its time in the part; its tasks follow it as they did."""
    at_ns = int((application.submit_at_ns - start_ns) / cut.rate)
    shift_ns = at_ns - application.submit_at_ns
    tasks = tuple(_moved_task(task, shift_ns, cut.size) for task in application.tasks)
    return replace(application, submit_at_ns=at_ns, tasks=tasks)


def _moved_task(task: SimulatedTask, shift_ns: int, size: Fraction) -> SimulatedTask:
    """Return a task at its time in the part."""
    resources = {name: ceil(quantity * size) for name, quantity in task.resources.items()}
    return replace(task, submit_at_ns=task.submit_at_ns + shift_ns, resources=resources)


def _moved_events(
    workload: Workload, nodes: tuple[SimulatedNode, ...], cut: WorkloadCut
) -> Iterator[NodeEvent]:
    """Yield the events of the part; those of nodes that are left out are not."""
    gone = {node.node_id for node in workload.nodes} - {node.node_id for node in nodes}
    for event in workload.node_events:
        left = tuple(node for node in event.nodes if node.node_id not in gone)
        if left and (cut.to_ns is None or event.at_ns < cut.to_ns):
            at_ns = max(0, int((event.at_ns - (cut.from_ns or 0)) / cut.rate))
            yield replace(event, at_ns=at_ns, nodes=left)


def _scaled_nodes(nodes: tuple[SimulatedNode, ...], factor: Fraction) -> Iterator[SimulatedNode]:
    """Yield as many nodes of each kind as a factor says: the first of them, or all and copies of them."""
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


def _without_what_never_starts(workload: Workload) -> tuple[Workload, int]:
    """Return a workload without the gangs that hold room for ever, and how many they are.

    Only placeholders that wait for ever do: others are given up in time.
    """
    shapes = Counter(tuple(node.resources.items()) for node in workload.all_nodes())
    kept = []
    for application in workload.applications:
        waits_for_ever = application.placeholder_timeout_ns is not None
        alone = replace(workload, applications=(application,))
        if not waits_for_ever or (
            not count_gangs_larger_than_the_cluster(alone)
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
