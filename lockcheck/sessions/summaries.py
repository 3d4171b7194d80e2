"""Summaries: what a session found and observed, as frozen values; all reports are made from them.

Summaries of several sessions, such as those of all tests of a run, merge into one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ..checking.acquisition_checks import edge_of_dependency
from ..checking.graph import Dependency, Graph
from ..checking.watch import Watch
from ..findings.findings import Edge, Finding
from ..findings.statistics import Usage, usages_together
from ..findings.terms import ClassEdge, Mode, Rung
from ..holding.runtime import LATCH
from ..holding.stacks import RawStack, line_of, resolve
from ..order.order import Order, OrderStep


@dataclass(frozen=True, slots=True)
class Declaration:
    """A declared order: its text, and every edge of classes that it allows."""

    text: str
    steps: tuple[OrderStep, ...]
    readers_first: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Contract:
    """A contract of a function, and how often it was checked."""

    name: str
    checked: int


@dataclass(frozen=True, slots=True)
class ObservedEdge(ClassEdge):
    """A learned edge: one class of locks was requested while another one was held, at least once."""

    count: int
    """How many different occurrences were learned."""
    waits: bool
    """Whether any execution waited for the requested lock, or could have: not all only tried."""
    endless: bool
    """Whether any execution would have waited for ever."""
    sites: tuple[str, ...]
    """The places in the code that want the second lock, as file and line."""
    test: str | None
    """The session that saw it first."""
    example: Edge
    """The first occurrence."""


Nesting = ObservedEdge
"""The earlier public name, which is kept."""


@dataclass(frozen=True, slots=True)
class Role:
    """Edges of tests that have one role: the program does at the same time what they do."""

    name: str
    class_edges: tuple[ObservedEdge, ...]

    @property
    def nestings(self) -> tuple[ObservedEdge, ...]:
        """The edges, under their name in documents, which is kept."""
        return self.class_edges


@dataclass(frozen=True, slots=True)
class Summary:
    """All that a session found and observed.

    Findings are sorted by evidence, the strongest first, edges by name.
    """

    level: str
    findings: tuple[Finding, ...] = ()
    class_edges: tuple[ObservedEdge, ...] = ()
    roles: tuple[Role, ...] = ()
    """By name; their edges are in `class_edges` too."""
    orders: tuple[Declaration, ...] = ()
    usages: tuple[Usage, ...] = ()
    """How locks were used, by class, mode and place, and by key on request; at the level `full` alone."""
    contracts: tuple[Contract, ...] = ()
    """The contracts of functions, by name."""
    dependencies: int = 0
    """How many edges of instances were learned."""
    acquisitions: int | None = None
    """How many acquisitions were new, and so checked; `None` where a document does not have it."""
    skipped: int = 0
    unexamined: int = 0
    searches_given_up: int = 0
    faults: tuple[str, ...] = ()
    unwatched: tuple[str, ...] = ()
    """The names of locks that are not watched, because they existed before locks were adopted."""

    @property
    def verdict(self) -> str:
        """The findings by rung, in a few words; or that no lock was seen."""
        counts = {rung: sum(finding.rung is rung for finding in self.findings) for rung in Rung}
        found = ", ".join(f"{count} at {rung.name}" for rung, count in counts.items() if count)
        return f"found {found or 'nothing'}" if found or self.acquisitions != 0 else "no lock was seen"

    @property
    def sites(self) -> dict[str, int]:
        """How many places in the code make each edge."""
        return {str(class_edge): len(class_edge.sites) for class_edge in self.class_edges}

    @property
    def nestings(self) -> tuple[ObservedEdge, ...]:
        """The edges, under their name in documents, which is kept."""
        return self.class_edges


def summary_of(watch: Watch) -> Summary:
    """Return the summary of a session so far, from its watch."""
    policy = watch.policy
    with LATCH:
        seen = _seen(watch.graph)
        summary = Summary(
            level=policy.level.name.lower(),
            findings=strongest_first(watch.findings),
            orders=(_declaration(policy.order),) if policy.order is not None else (),
            usages=_usages(watch),
            contracts=_contracts(list(watch.contracts.items())),
            dependencies=len(watch.graph),
            acquisitions=watch.acquisitions,
            skipped=watch.skipped,
            unexamined=watch.graph.unexamined,
            searches_given_up=watch.searches_given_up,
            faults=tuple(watch.faults),
            unwatched=tuple(watch.unwatched),
        )
    # Files are read for the lines, and keys of the program are shown: not under the latch.
    class_edges = tuple(_class_edge(one, policy.name) for one in seen)
    roles = (Role(policy.role, class_edges),) if policy.role is not None else ()
    return replace(summary, class_edges=class_edges, roles=roles)


def merged(summaries: Iterable[Summary]) -> Summary:
    """Return one summary of several: findings by fingerprint, edges by classes and modes."""
    findings: dict[str, Finding] = {}
    everything = list(summaries)
    for summary in everything:
        for finding in summary.findings:
            known = findings.get(finding.fingerprint)
            findings[finding.fingerprint] = finding if known is None else _both(known, finding)
    levels = dict.fromkeys(summary.level for summary in everything)
    return Summary(
        level=", ".join(levels) or "off",
        findings=strongest_first(findings.values()),
        class_edges=_class_edges_together(
            class_edge for summary in everything for class_edge in summary.class_edges
        ),
        roles=_roles_together([role for summary in everything for role in summary.roles]),
        orders=tuple(dict.fromkeys(order for summary in everything for order in summary.orders)),
        usages=usages_together(usage for summary in everything for usage in summary.usages),
        contracts=_contracts(
            (contract.name, contract.checked) for summary in everything for contract in summary.contracts
        ),
        dependencies=sum(summary.dependencies for summary in everything),
        acquisitions=_acquisitions(everything),
        skipped=sum(summary.skipped for summary in everything),
        unexamined=sum(summary.unexamined for summary in everything),
        searches_given_up=sum(summary.searches_given_up for summary in everything),
        faults=tuple(fault for summary in everything for fault in summary.faults),
        unwatched=tuple(dict.fromkeys(name for summary in everything for name in summary.unwatched)),
    )


def strongest_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings in the order of a summary."""
    return tuple(
        sorted(findings, key=lambda finding: (-finding.rung, finding.kind.value, finding.fingerprint))
    )


def _acquisitions(summaries: Iterable[Summary]) -> int | None:
    """Return how many acquisitions were checked, if every summary has it."""
    counts = [summary.acquisitions for summary in summaries]
    return None if None in counts else sum(count for count in counts if count is not None)


def _both(known: Finding, other: Finding) -> Finding:
    strongest = known if known.rung >= other.rung else other
    return replace(strongest, count=known.count + other.count, test=known.test)


def _class_edges_together(class_edges: Iterable[ObservedEdge]) -> tuple[ObservedEdge, ...]:
    found: dict[str, ObservedEdge] = {}
    for class_edge in class_edges:
        before = found.get(str(class_edge))
        found[str(class_edge)] = class_edge if before is None else _together(before, class_edge)
    return tuple(found[name] for name in sorted(found))


def _roles_together(roles: Sequence[Role]) -> tuple[Role, ...]:
    names = sorted({role.name for role in roles})
    return tuple(
        Role(
            name,
            _class_edges_together(one for role in roles if role.name == name for one in role.class_edges),
        )
        for name in names
    )


def _together(known: ObservedEdge, other: ObservedEdge) -> ObservedEdge:
    return replace(
        known,
        count=known.count + other.count,
        waits=known.waits or other.waits,
        endless=known.endless or other.endless,
        sites=tuple(sorted({*known.sites, *other.sites})),
    )


def _contracts(counts: Iterable[tuple[str, int]]) -> tuple[Contract, ...]:
    """Add up what was counted for each contract."""
    found: dict[str, int] = {}
    for name, checked in counts:
        found[name] = found.get(name, 0) + checked
    return tuple(Contract(name, found[name]) for name in sorted(found))


def _usages(watch: Watch) -> tuple[Usage, ...]:
    found = []
    for tally in watch.tallies:
        tally.fold()
        site = f"{tally.code.co_filename}:{line_of(tally.code, tally.instruction)}"
        found.append(Usage(tally.lock, tally.mode, site, tally.key, tally.held, tally.waited))
    return usages_together(found)


@dataclass(frozen=True, slots=True)
class _Seen:
    """An edge in the graph, not yet as text."""

    edge: ClassEdge
    count: int
    waits: bool
    endless: bool
    sites: frozenset[RawStack]
    example: Dependency


def _seen(graph: Graph) -> list[_Seen]:
    return [
        _Seen(
            edge,
            count,
            waits=edge in graph.waited,
            endless=edge in graph.endless,
            sites=frozenset(graph.sites[edge]),
            example=graph.examples[edge],
        )
        for edge, count in sorted(graph.classes.items(), key=lambda item: str(item[0]))
    ]


def _class_edge(seen: _Seen, test: str | None) -> ObservedEdge:
    edge, example = seen.edge, seen.example
    shared_lock = next(
        held for held in example.held if _is(held.acquisition.lock.name, held.acquisition.mode, edge)
    )
    places = {frame for stack in seen.sites for frame in resolve(stack)}
    return ObservedEdge(
        held=edge.held,
        held_mode=edge.held_mode,
        wanted=edge.wanted,
        wanted_mode=edge.wanted_mode,
        count=seen.count,
        waits=seen.waits,
        endless=seen.endless,
        sites=tuple(sorted(f"{frame.file}:{frame.line}" for frame in places)),
        test=test,
        example=edge_of_dependency(example, shared_lock),
    )


def _is(name: str, mode: Mode, edge: ClassEdge) -> bool:
    return (name, mode) == (edge.held, edge.held_mode)


def _declaration(order: Order) -> Declaration:
    return Declaration(order.text, order.steps, tuple(sorted(order.readers_first)))
