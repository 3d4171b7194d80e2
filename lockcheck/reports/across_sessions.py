"""Cycles whose steps were taken in different sessions, such as those of different tests.

What two tests do never happens at the same time, and their locks are not the same ones. So such a cycle is
R1: its steps never ran together. It matters if one program does both at the same time: a *role* that both
tests have says so. Then a lock is identified by class and key, by class alone if it has no key, and the
cycle is R2 unless the summaries show a guard: a gate, other keys, or that only readers meet.

The order of what different tests do is not known, so no start and no join guards a cycle here.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Final, final

from ..findings.evidence import Kind, Rung
from ..findings.findings import Edge, Finding, fingerprint_of_cycle
from ..sessions.summaries import ObservedEdge, Summary, merged, strongest_first

PENDING_MAX: Final = 64
"""How many summaries are collected before they are merged: one by one, each would be compared with all."""
_MODE: Final = re.compile(r" \[[RW]\]$")
_SERIAL: Final = re.compile(r" #\d+$")
"""The serial number in the name of a lock without a key, which differs from run to run."""


def cycles_across_sessions(summary: Summary) -> tuple[Finding, ...]:
    """Return the cycles over several sessions of a summary that are in none of them alone."""
    known = {_classes_of(finding) for finding in summary.findings if finding.kind is Kind.CYCLE}
    found: dict[str, Finding] = {}
    for role in summary.roles:
        for path in _paths(role.class_edges):
            _add(found, _finding(path, _guards(path), role.name))
    for path in _paths(summary.class_edges):
        _add(found, _finding(path, [_never_met(path), *_readers(path)], None))
    return tuple(one for one in found.values() if _classes_of(one) not in known)


def _add(found: dict[str, Finding], finding: Finding) -> None:
    before = found.get(finding.fingerprint)
    if before is None or before.rung < finding.rung:
        found[finding.fingerprint] = finding


def _finding(path: Sequence[ObservedEdge], guards: list[str], role: str | None) -> Finding:
    names = [str(one) for one in path]
    return Finding(
        Rung.R1 if guards else Rung.R2,
        Kind.CYCLE,
        "a cycle over tests: " + ", then ".join(names),
        tuple(replace(one.example, execution=f"{one.example.execution} of {one.test}") for one in path),
        tuple(guards) or (f"the program does this at the same time: the tests have the role {role}", _FREE),
        fingerprint=fingerprint_of_cycle("classes", names),
    )


_FREE: Final = "no lock is held in two of the steps in modes that exclude each other"


def _classes_of(finding: Finding) -> str:
    """Return what is equal for all cycles over the same classes, over instances or not."""
    return fingerprint_of_cycle("classes", [str(edge.class_edge) for edge in finding.edges])


# ------------------------------------------------------------------------------------------ paths


def _paths(class_edges: Sequence[ObservedEdge]) -> Iterator[tuple[ObservedEdge, ...]]:
    """Yield a shortest cycle through each edge, once each; strong ones where there are any."""
    usable = [one for one in class_edges if one.endless and one.held != one.wanted]
    after: dict[str, list[ObservedEdge]] = {}
    for one in usable:
        after.setdefault(one.held, []).append(one)
    seen: set[tuple[str, ...]] = set()
    for start in usable:
        path = _shortest_cycle(start, after, strong=True) or _shortest_cycle(start, after, strong=False)
        names = tuple(map(str, path))
        if path and len({one.test for one in path}) > 1 and names not in seen:
            seen.add(names)
            yield path


def _shortest_cycle(
    start: ObservedEdge, after: dict[str, list[ObservedEdge]], *, strong: bool
) -> tuple[ObservedEdge, ...]:
    """Return a shortest cycle through an edge, the least name first; empty if there is none."""
    pending: deque[tuple[ObservedEdge, ...]] = deque([(start,)])
    seen = {str(start)}
    while pending:
        path = pending.popleft()
        for following in after.get(path[-1].wanted, ()):
            if strong and _readers_meet(path[-1], following):
                continue
            if following is start:
                at = min(range(len(path)), key=lambda place: str(path[place]))
                return (*path[at:], *path[:at])
            if str(following) not in seen:
                seen.add(str(following))
                pending.append((*path, following))
    return ()


def _readers_meet(one: ObservedEdge, following: ObservedEdge) -> bool:
    return "R" == one.wanted_mode == following.held_mode


# ------------------------------------------------------------------------------------ what guards them


def _never_met(path: Sequence[ObservedEdge]) -> str:
    steps = ", ".join(f"{one} in {one.test}" for one in path)
    return f"its steps never ran together: {steps}"


def _readers(path: Sequence[ObservedEdge]) -> Iterator[str]:
    for one, following in zip(path, (*path[1:], path[0]), strict=True):
        if _readers_meet(one, following):
            yield f"only readers meet at {one.wanted}, unless a writer comes between them"


def _guards(path: Sequence[ObservedEdge]) -> list[str]:
    """Return what guards a cycle, though its steps run at the same time."""
    reasons = list(_readers(path))
    for one, following in zip(path, (*path[1:], path[0]), strict=True):
        wanted, held = _lock(one.example.wanted), _lock(str(following.example.held))
        if wanted != held and _keyed(one.example.wanted) and _keyed(str(following.example.held)):
            reasons.append(f"one wants {wanted}, the other one held {held}")
    for one, other in combinations(path, 2):
        reasons += [f"guarded by {gate}, held in both" for gate in _gates(one.example, other.example)]
        if (one.test, one.example.execution) == (other.test, other.example.execution):
            reasons.append(f"one execution does both: {one.example.execution} of {one.test}")
    return list(dict.fromkeys(reasons))


def _gates(one: Edge, other: Edge) -> Iterator[str]:
    theirs = {_lock(held): held for held in other.all_held}
    for held in one.all_held:
        again = theirs.get(_lock(held))
        if again is not None and not (held.endswith(" [R]") and again.endswith(" [R]")):
            yield _lock(held)


def _lock(text: str) -> str:
    """Return what identifies a lock in all runs: class and key, or its class."""
    return _SERIAL.sub("", _MODE.sub("", text))


def _keyed(text: str) -> bool:
    return _SERIAL.search(_MODE.sub("", text)) is None


@final
class MergedSummaries:
    """The merged summaries of the sessions of a run so far.

    Args:
        level: how much is checked.
    """

    def __init__(self, level: str) -> None:
        self._summaries = [Summary(level, acquisitions=0)]

    def add(self, summary: Summary) -> None:
        """Add a summary."""
        self._summaries.append(summary)
        if len(self._summaries) > PENDING_MAX:
            self._summaries = [merged(self._summaries)]

    def summary(self) -> Summary:
        """Return everything as one summary."""
        self._summaries = [merged(self._summaries)]
        return self._summaries[0]

    def with_cycles(self) -> tuple[Summary, tuple[Finding, ...]]:
        """Return one summary with the cycles over several sessions; and these cycles alone."""
        summary = self.summary()
        across = cycles_across_sessions(summary)
        return replace(summary, findings=strongest_first([*summary.findings, *across])), across
