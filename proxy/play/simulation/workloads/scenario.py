"""A hand-written scenario as a workload; `scenario_documents` shows the form of such a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from random import Random
from typing import Final, final

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from .....model.configuration.names import did_you_mean
from .....model.configuration.problems import Problem, RuleFinding
from .....model.configuration.reader import inspect
from ....base.files.input_files import NODES_MAX, LocatedYaml, YamlValue, read_located_yaml, unpacked_name
from .scenario_documents import (
    UNKNOWN_KEY,
    ApplicationsDocument,
    NodeEventDocument,
    NodesDocument,
    ScenarioDocument,
    TasksDocument,
    error_text,
)
from .workload import (
    GangStyle,
    InputNote,
    NodeChange,
    NodeEvent,
    SimulatedApplication,
    SimulatedNode,
    SimulatedTask,
    SimulatedWorkload,
    configuration_for,
)

_PARTITION_KEYS: Final = ("placementrules", "limits", "nodesortpolicy", "preemption", "windows", "queues")
_TASKS_MAX: Final = 1_000_000
_SECTIONS: Final[dict[str, type[BaseModel]]] = {
    "nodes": NodesDocument,
    "applications": ApplicationsDocument,
    "tasks": TasksDocument,
    "events": NodeEventDocument,
    "add": NodesDocument,
}


def read_scenario(path: Path, seed: int = 1, text: str | None = None) -> SimulatedWorkload:
    """Read a scenario.

    Args:
        path: The YAML file, or the name, in messages, of a scenario that is not in a file.
        seed: The seed for random durations between two bounds; the same seed gives the same durations.
        text: The text of a scenario that is not in a file; `None` for the text of the file.

    Raises:
        InputError: The file cannot be read.
        ConfigurationError: A value is invalid; the error has all problems, with their places.
    """
    located = read_located_yaml(path, text)
    document = _validated(located)
    findings = list(_contradictions(document, located))
    if findings:
        raise located.error(findings)
    configuration, notes = _configuration(document, located)
    random = Random(seed)  # noqa: S311 - a simulation has no secrets
    return SimulatedWorkload(
        name=document.name or unpacked_name(path).stem,
        nodes=tuple(nodes_of(document.nodes)),
        applications=tuple(_applications(document, random)),
        default_configuration=configuration,
        configuration_notes=notes,
        node_events=node_events(document),
    )


def _validated(located: LocatedYaml) -> ScenarioDocument:
    """Return the document, or raise an error with all problems in it."""
    try:
        return ScenarioDocument.model_validate(located.value)
    except ValidationError as error:
        details = error.errors(include_url=False)
        raise located.error(_finding(detail, located) for detail in details) from None


def _finding(detail: ErrorDetails, located: LocatedYaml) -> RuleFinding:
    """Return one error as a finding, at its place."""
    way = detail["loc"]
    text = error_text(detail, lambda: _known_keys(way))
    return located.finding(way, text, at_key=detail["type"] == UNKNOWN_KEY)


def _known_keys(way: tuple[int | str, ...]) -> tuple[str, ...]:
    """Return the keys that the mapping around the end of a way may have."""
    lists = [step for step in way[:-1] if isinstance(step, str)]
    model = _SECTIONS[lists[-1]] if lists else ScenarioDocument
    return tuple(model.model_fields)


def _contradictions(document: ScenarioDocument, located: LocatedYaml) -> Iterator[RuleFinding]:
    """Yield the contradictions between parts that are valid by themselves."""
    yield from _repeated(located, "nodes", "prefix", [nodes.prefix for nodes in document.nodes])
    yield from _repeated(located, "applications", "name", [one.name for one in document.applications])
    yield from node_event_findings(document, located)
    if document.queues is None:
        yield from _queues_in_queues(document, located)
    count = sum(nodes.count for nodes in document.nodes)
    if count > NODES_MAX:
        yield located.finding(["nodes"], f"there are {count:,} nodes, more than {NODES_MAX:,}")
    tasks = sum(one.count * sum(task.count for task in one.tasks) for one in document.applications)
    if tasks > _TASKS_MAX:
        yield located.finding(["applications"], f"there are {tasks:,} tasks, more than {_TASKS_MAX:,}")


def _repeated(located: LocatedYaml, section: str, key: str, names: list[str]) -> Iterator[RuleFinding]:
    """Yield the names that occur twice in a section."""
    for index, name in enumerate(names):
        if name in names[:index]:
            yield located.finding([section, index, key], f"the {key} {name!r} is listed twice")


def _queues_in_queues(document: ScenarioDocument, located: LocatedYaml) -> Iterator[RuleFinding]:
    """Yield the queues that would have to be both a leaf and a parent; given queues may allow more."""
    paths = {one.queue.lower() for one in document.applications}
    for index, one in enumerate(document.applications):
        below = sorted(path for path in paths if path.startswith(f"{one.queue.lower()}."))
        if below:
            text = f"the queue {one.queue!r} cannot take applications and have {below[0]!r} below it"
            yield located.finding(["applications", index, "queue"], text)


def _configuration(document: ScenarioDocument, located: LocatedYaml) -> tuple[str, tuple[InputNote, ...]]:
    """Return the queue YAML, and warnings about it.

    It is that of the scenario, or else has one leaf for each used queue. It is checked here, where the places
    of the scenario are known.
    """
    value = located.value
    assert isinstance(value, dict), "a scenario that is valid is a mapping"
    parts: dict[str, YamlValue] = {key: value[key] for key in _PARTITION_KEYS if value.get(key) is not None}
    if document.queues is None:
        paths = (one.queue.lower() for one in document.applications)
        parts = {**yaml.safe_load(configuration_for(paths))["partitions"][0], **parts}
    text: str = yaml.safe_dump({"partitions": [{"name": "default", **parts}]}, sort_keys=False)
    added = [event.add for event in document.events if event.add is not None]
    node_types = {name for nodes in (*document.nodes, *added) for name in nodes.resources}
    report = inspect(text, node_types=node_types)
    if report.errors:
        raise located.error(_findings(report.errors, located))
    warnings = located.problems(_findings(report.warnings, located))
    return text, tuple(InputNote(1, str(warning)) for warning in warnings)


def _findings(problems: Iterable[Problem], located: LocatedYaml) -> list[RuleFinding]:
    """Return the findings in the queue YAML at the places of the scenario."""
    return [
        located.finding_at(problem.path.removeprefix("partitions[0]").removeprefix("."), problem.text)
        for problem in problems
    ]


def _applications(document: ScenarioDocument, random: Random) -> Iterator[SimulatedApplication]:
    """Yield every application."""
    for one in document.applications:
        for number in range(1, one.count + 1):
            submit_at_ns = one.submit + (number - 1) * one.every
            application_id = f"{one.name}-{number}"
            yield SimulatedApplication(
                application_id=application_id,
                queue=one.queue.lower(),
                user=one.user,
                groups=tuple(one.groups),
                submit_at_ns=submit_at_ns,
                tasks=tuple(_tasks(one, application_id, submit_at_ns, random)),
                gang=GangStyle[one.gang.upper()] if one.gang else None,
                tags=one.tags,
                fails=one.fails,
            )


def _tasks(
    one: ApplicationsDocument, application_id: str, submit_at_ns: int, random: Random
) -> Iterator[SimulatedTask]:
    """Yield the tasks of one application; with random durations, each piece is a separate task."""
    for number, tasks in enumerate(one.tasks, start=1):
        key = f"{application_id}-t{number}"
        duration = tasks.duration
        is_drawn = duration is not None and duration.shortest_ns < duration.longest_ns
        for piece in range(1, tasks.count + 1 if is_drawn else 2):
            yield SimulatedTask(
                key=f"{key}-{piece}" if is_drawn else key,
                resources=tasks.resources,
                submit_at_ns=submit_at_ns + tasks.after,
                duration_ns=random.randint(duration.shortest_ns, duration.longest_ns) if duration else None,
                priority=tasks.priority,
                count=1 if is_drawn else tasks.count,
            )


class _StateInScenario(Enum):
    """The state of a node that has existed."""

    THERE = auto()
    DRAINED = auto()
    REMOVED = auto()


_STATES_BEFORE: Final = {
    NodeChange.REMOVE: (_StateInScenario.THERE, _StateInScenario.DRAINED),
    NodeChange.DRAIN: (_StateInScenario.THERE,),
    NodeChange.RESTORE: (_StateInScenario.DRAINED, _StateInScenario.REMOVED),
}
_STATE_AFTER: Final = {
    NodeChange.REMOVE: _StateInScenario.REMOVED,
    NodeChange.DRAIN: _StateInScenario.DRAINED,
    NodeChange.RESTORE: _StateInScenario.THERE,
}
_SAID: Final = {
    _StateInScenario.THERE: "takes work",
    _StateInScenario.DRAINED: "is drained",
    _StateInScenario.REMOVED: "is removed",
}


def nodes_of(documents: Sequence[NodesDocument]) -> Iterator[SimulatedNode]:
    """Yield every node of lists of equal nodes."""
    for nodes in documents:
        for number in range(1, nodes.count + 1):
            yield SimulatedNode(
                node_id=f"{nodes.prefix}-{number}", resources=nodes.resources, attributes=nodes.attributes
            )


def node_events(document: ScenarioDocument) -> tuple[NodeEvent, ...]:
    """Return the events of a scenario without findings, in the order of their times."""
    added = [event.add for event in document.events if event.add is not None]
    by_id = {node.node_id: node for node in nodes_of([*document.nodes, *added])}
    events = []
    for event in sorted(document.events, key=lambda event: event.at):
        (change,) = _changes(event)
        named = _named(event, change)
        nodes = [by_id[name] for name in named] if event.add is None else nodes_of([event.add])
        events.append(
            NodeEvent(at_ns=event.at, change=change, nodes=tuple(nodes), is_repeated=bool(event.again))
        )
    return tuple(events)


def node_event_findings(document: ScenarioDocument, located: LocatedYaml) -> Iterator[RuleFinding]:
    """Yield the problems of the events of a scenario."""
    is_usable = True
    for index, event in enumerate(document.events):
        changes = _changes(event)
        way: list[int | str] = ["events", index]
        if len(changes) != 1:
            is_usable = False
            there = " and ".join(change.value for change in changes) or "none of them"
            yield located.finding(way, f"an event has one of add, remove, drain and restore, not {there}")
        elif event.again is not None and changes[0] is not NodeChange.REMOVE:
            yield located.finding([*way, "again"], "only nodes that are removed end what runs on them")
    if is_usable:
        yield from _NodeHistory(document, located).findings()


def _changes(event: NodeEventDocument) -> tuple[NodeChange, ...]:
    """Return the changes of an event."""
    return tuple(change for change in NodeChange if getattr(event, change.value) is not None)


def _named(event: NodeEventDocument, change: NodeChange) -> list[str]:
    """Return the names of the nodes that an event changes; an empty list if it adds nodes."""
    names: list[str] = [] if change is NodeChange.ADD else getattr(event, change.value)
    return names


@final
@dataclass(slots=True)
class _KnownNode:
    """The state of a node, and the time of its last change."""

    state: _StateInScenario
    at_ns: int


@final
class _NodeHistory:
    """The states of all nodes, event by event, each of which has one change."""

    def __init__(self, document: ScenarioDocument, located: LocatedYaml) -> None:
        self._document = document
        self._located = located
        self._prefixes = [nodes.prefix for nodes in document.nodes]
        self._count = sum(nodes.count for nodes in document.nodes)
        self._known: dict[str, _KnownNode] = {}

    def findings(self) -> Iterator[RuleFinding]:
        """Yield the changes that a node cannot make at their times."""
        if self._count > NODES_MAX:
            return
        self._note_added(self._document.nodes, -1)
        for index, event in sorted(enumerate(self._document.events), key=lambda numbered: numbered[1].at):
            if event.add is not None:
                yield from self._added(index, event.add, event.at)
                continue
            (change,) = _changes(event)
            for place, name in enumerate(_named(event, change)):
                text = self._objection(name, change, event.at)
                if text:
                    yield self._located.finding(self._way(index, change, place), text)
                else:
                    self._known[name] = _KnownNode(_STATE_AFTER[change], event.at)

    def _added(self, index: int, nodes: NodesDocument, at_ns: int) -> Iterator[RuleFinding]:
        """Add the nodes of an event, or yield the reasons against it."""
        self._count += nodes.count
        if nodes.prefix in self._prefixes:
            text = f"the prefix {nodes.prefix!r} is listed twice"
            yield self._located.finding(["events", index, "add", "prefix"], text)
        elif self._count > NODES_MAX:
            text = f"there are {self._count:,} nodes with these, more than {NODES_MAX:,}"
            yield self._located.finding(["events", index, "add"], text)
        else:
            self._prefixes.append(nodes.prefix)
            self._note_added([nodes], at_ns)

    def _note_added(self, documents: Sequence[NodesDocument], at_ns: int) -> None:
        """Note that nodes exist from a moment on."""
        for node in nodes_of(documents):
            self._known[node.node_id] = _KnownNode(_StateInScenario.THERE, at_ns)

    def _objection(self, name: str, change: NodeChange, at_ns: int) -> str:
        """Return the reason against a change of a node, empty if it is possible."""
        known = self._known.get(name)
        if known is None:
            return f"there is no node {name!r} at that time{did_you_mean(name, tuple(self._known))}"
        if known.at_ns == at_ns:
            return f"the node {name!r} has changed at that time already"
        if known.state not in _STATES_BEFORE[change]:
            return f"the node {name!r} {_SAID[known.state]} at that time already"
        return ""

    def _way(self, index: int, change: NodeChange, place: int) -> list[int | str]:
        """Return the way to a name: in a list, or alone."""
        alone = f"events[{index}].{change.value}[{place}]" not in self._located.positions
        return ["events", index, change.value, *([] if alone else [place])]
