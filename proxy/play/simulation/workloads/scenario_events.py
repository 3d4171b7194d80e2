"""The events of a scenario: nodes that are added, removed, drained and restored, by their times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, final

from .....model.configuration.names import did_you_mean
from .....model.configuration.problems import RuleFinding
from ....base.files.input_files import NODES_MAX
from ....base.files.located_yaml import LocatedYaml
from .scenario_documents import NodeEventDocument, NodesDocument, ScenarioDocument
from .workload import NodeChange, NodeEvent, SimulatedNode


class _StateInScenario(Enum):
    """The state of a node that has been there."""

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
    """Yield what is wrong with the events of a scenario."""
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
    """Return what an event says that happens."""
    return tuple(change for change in NodeChange if getattr(event, change.value) is not None)


def _named(event: NodeEventDocument, change: NodeChange) -> list[str]:
    """Return the names of the nodes that an event changes; none for those that it adds."""
    names: list[str] = [] if change is NodeChange.ADD else getattr(event, change.value)
    return names


@final
@dataclass(slots=True)
class _KnownNode:
    """What is known of a node: its state, and when it last changed."""

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
        """Yield the changes that a node cannot make when they are due."""
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
        """Take the nodes that an event adds, or yield why not."""
        self._count += nodes.count
        if nodes.prefix in self._prefixes:
            text = f"the prefix {nodes.prefix!r} stands there twice"
            yield self._located.finding(["events", index, "add", "prefix"], text)
        elif self._count > NODES_MAX:
            text = f"there are {self._count:,} nodes with these, more than {NODES_MAX:,}"
            yield self._located.finding(["events", index, "add"], text)
        else:
            self._prefixes.append(nodes.prefix)
            self._note_added([nodes], at_ns)

    def _note_added(self, documents: Sequence[NodesDocument], at_ns: int) -> None:
        """Note that nodes are there from a moment on."""
        for node in nodes_of(documents):
            self._known[node.node_id] = _KnownNode(_StateInScenario.THERE, at_ns)

    def _objection(self, name: str, change: NodeChange, at_ns: int) -> str:
        """Return why a node cannot change so, empty if it can."""
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
