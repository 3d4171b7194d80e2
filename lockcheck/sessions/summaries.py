"""Summaries: what a session found and observed, as frozen values; all reports are made from them.

Summaries of several sessions, such as those of all tests of a run, merge into one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ..checking.acquisition_checks import edge_of_dependency
from ..checking.graph import Dependency, Graph
from ..checking.watch import Watch
from ..findings.findings import Edge, Finding
from ..findings.terms import ClassEdge, Mode, Rung
from ..holding.runtime import LATCH
from ..holding.stacks import RawStack, resolve
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


@dataclass(frozen=True, slots=True)
class Summary:
    """All that a session found and observed.

    Findings are sorted by evidence, the strongest first, edges by name.
    """

    level: str
    findings: tuple[Finding, ...] = ()
    class_edges: tuple[ObservedEdge, ...] = ()
    orders: tuple[Declaration, ...] = ()
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
    greenlets: bool = False
    """Whether greenlets took the place of threads, so that nothing was checked from then on."""

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


def summary_of(watch: Watch) -> Summary:
    """Return the summary of a session so far, from its watch."""
    policy = watch.policy
    with LATCH:
        seen = _seen(watch.graph)
        summary = Summary(
            level=policy.level.name.lower(),
            findings=strongest_first(watch.findings),
            orders=(_declaration(policy.order),) if policy.order is not None else (),
            contracts=_contracts(list(watch.contracts.items())),
            dependencies=len(watch.graph),
            acquisitions=watch.acquisitions,
            skipped=watch.skipped,
            unexamined=watch.graph.unexamined,
            searches_given_up=watch.searches_given_up,
            faults=tuple(watch.faults),
            unwatched=tuple(watch.unwatched),
            greenlets=watch.greenlets,
        )
    # Files are read for the lines, and keys of the program are shown: not under the latch.
    class_edges = tuple(_class_edge(one, policy.name) for one in seen)
    return replace(summary, class_edges=class_edges)


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
        orders=tuple(dict.fromkeys(order for summary in everything for order in summary.orders)),
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
        greenlets=any(summary.greenlets for summary in everything),
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
