"""Findings of several runs: cycles across sessions, and findings that are accepted.

**Cycles across sessions** have steps in different tests, for example. These never run at the same time, and
their locks are not the same ones, so such a cycle is R1. It matters if one program does both at the same
time.

**The baseline** lists findings that are accepted for now:

    [[accepted]]
    fingerprint = "65b39f5fc41b"
    reason = "the archive is read on one thread only until release 2"
    expires = 2027-03-31

An entry that is past its day accepts nothing and fails, and so does one that no finding used: a baseline only
gets smaller.
"""

from __future__ import annotations

import tomllib
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path
from typing import Final, final

from ..findings.findings import Finding, fingerprint_of_cycle
from ..findings.json_files import read_text, shown
from ..findings.terms import Kind, LockUsageError, Rung
from ..sessions.summaries import ObservedEdge, Summary, merged, strongest_first

PENDING_MAX: Final = 64
"""How many summaries are collected before they are merged: one by one, each would be compared with all."""


def cycles_across_sessions(summary: Summary) -> tuple[Finding, ...]:
    """Return the cycles over several sessions of a summary that no session has alone."""
    known = {_classes_of(finding) for finding in summary.findings if finding.kind is Kind.CYCLE}
    found: dict[str, Finding] = {}
    for path in _paths(summary.class_edges):
        finding = _finding(path)
        found.setdefault(finding.fingerprint, finding)
    return tuple(one for one in found.values() if _classes_of(one) not in known)


def _finding(path: Sequence[ObservedEdge]) -> Finding:
    names = [str(one) for one in path]
    return Finding(
        Rung.R1,
        Kind.CYCLE,
        "a cycle over tests: " + ", then ".join(names),
        tuple(replace(one.example, execution=f"{one.example.execution} of {one.test}") for one in path),
        (_never_met(path), *_readers(path)),
        fingerprint=fingerprint_of_cycle("classes", names),
    )


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
    """Return a shortest cycle through an edge, the least name first; empty without one."""
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


def _never_met(path: Sequence[ObservedEdge]) -> str:
    steps = ", ".join(f"{one} in {one.test}" for one in path)
    return f"its steps never ran together: {steps}"


def _readers(path: Sequence[ObservedEdge]) -> Iterator[str]:
    for one, following in zip(path, (*path[1:], path[0]), strict=True):
        if _readers_meet(one, following):
            yield f"only readers meet at {one.wanted}, unless a writer comes between them"


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


NO_REASON: Final = "TODO: why this is accepted"
"""The reason that `lockcheck baseline` writes, for a person to replace."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """A finding that is accepted."""

    fingerprint: str
    reason: str
    expires: date
    """The last day on which it is."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of comparing findings with a baseline."""

    failures: tuple[Finding, ...]
    """Findings on a rung that fails that no entry accepts."""
    accepted: tuple[Finding, ...]
    complaints: tuple[str, ...]
    """The faults of the baseline: entries that expired, or that no finding used."""

    @property
    def clean(self) -> bool:
        """Whether nothing fails."""
        return not self.failures and not self.complaints


@dataclass(frozen=True, slots=True)
class Baseline:
    """The accepted findings, and the file that lists them."""

    where: str = ""
    entries: tuple[Accepted, ...] = ()

    def check(
        self, findings: Iterable[Finding], fail_on: Collection[Rung], today: date, *, whole: bool = True
    ) -> Verdict:
        """Compare findings with the baseline.

        Args:
            findings: what was found.
            fail_on: the rungs that fail.
            today: decides which entries have expired; an entry counts on its last day.
            whole: whether everything ran that could use an entry, so that unused ones fail.
        """
        valid = {entry.fingerprint for entry in self.entries if today <= entry.expires}
        failing = [finding for finding in findings if finding.rung in fail_on]
        used = {finding.fingerprint for finding in failing}
        return Verdict(
            failures=tuple(finding for finding in failing if finding.fingerprint not in valid),
            accepted=tuple(finding for finding in failing if finding.fingerprint in valid),
            complaints=self.complaints(used, today, whole=whole),
        )

    def complaints(self, used: Collection[str], today: date, *, whole: bool) -> tuple[str, ...]:
        """Yield what is wrong with the entries, given the fingerprints of the findings; see `check`."""
        return tuple(
            f"{self.where}: {entry.fingerprint} {complaint}: {entry.reason}"
            for entry in self.entries
            for complaint in _complaints(entry, today, unused=whole and entry.fingerprint not in used)
        )

    def notes(self) -> tuple[str, ...]:
        """Return what should be filled in, but fails nothing."""
        count = sum(entry.reason == NO_REASON for entry in self.entries)
        return (f"{self.where}: {count} accepted without a reason",) if count else ()

    def reasons(self, today: date) -> dict[str, str]:
        """Return the reasons of the accepted findings, by fingerprint."""
        return {entry.fingerprint: entry.reason for entry in self.entries if today <= entry.expires}


def read_baseline(path: str) -> Baseline:
    """Read a baseline.

    Raises:
        LockUsageError: the file cannot be read, or an entry is not what it must be; nothing is accepted then.
    """
    try:
        document: dict[str, object] = tomllib.loads(read_text(Path(path)))
    except tomllib.TOMLDecodeError as error:
        raise LockUsageError(f"{path}: no TOML: {error}") from None
    except RecursionError:
        raise LockUsageError(f"{path}: no TOML: it nests too deep") from None
    unknown = sorted(document.keys() - {"accepted"})
    if unknown:
        raise LockUsageError(f"{path}: {', '.join(unknown)}: a baseline has [[accepted]] alone")
    entries = document.get("accepted", [])
    if not isinstance(entries, list):
        raise LockUsageError(f"{path}: accepted: must be written [[accepted]]")
    read = tuple(_read_entry(entry, f"{path}: accepted[{at}]") for at, entry in enumerate(entries))
    names = [entry.fingerprint for entry in read]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise LockUsageError(f"{path}: {', '.join(twice)}: accepted twice")
    return Baseline(path, read)


def _complaints(entry: Accepted, today: date, *, unused: bool) -> Iterable[str]:
    if today > entry.expires:
        yield f"expired on {entry.expires}"
    if unused:
        yield "was not found, so take it out"


def _read_entry(entry: object, where: str) -> Accepted:
    if not isinstance(entry, dict) or entry.keys() != {"fingerprint", "reason", "expires"}:
        raise LockUsageError(
            f"{where}: {shown(entry)} must have fingerprint, reason and expires, and nothing else"
        )
    fingerprint, reason, expires = entry["fingerprint"], entry["reason"], entry["expires"]
    if not isinstance(fingerprint, str) or not fingerprint:
        raise LockUsageError(f"{where}: fingerprint: expected a fingerprint, got {fingerprint!r}")
    if not isinstance(reason, str) or not reason.strip():
        raise LockUsageError(f"{where}: reason: expected a text, got {reason!r}")
    if not isinstance(expires, date) or isinstance(expires, datetime):
        raise LockUsageError(f"{where}: expires: expected a date such as 2027-03-31, got {expires!r}")
    return Accepted(fingerprint, reason, expires)
