"""The baseline, findings that are accepted for now; and the differences between the findings of two runs.

    [[accepted]]
    fingerprint = "65b39f5fc41b"
    reason = "the archive is read on one thread only until release 2"
    expires = 2027-03-31

An entry that is past its day accepts nothing and fails, and so does one that no finding used: a baseline only
gets smaller.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Final

from ..findings.errors import LockUsageError
from ..findings.evidence import Rung
from ..findings.findings import Finding
from ..findings.json_values import read_text, shown
from ..sessions.summaries import ObservedEdge, Summary

NO_REASON: Final = "TODO: why this is accepted"
"""What `lockcheck baseline` writes as a reason, for a person to replace."""


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
    """What is wrong with the baseline: entries that expired, or that no finding used."""

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
        raise LockUsageError(f"{where}: fingerprint: {fingerprint!r} is no fingerprint")
    if not isinstance(reason, str) or not reason.strip():
        raise LockUsageError(f"{where}: reason: {reason!r} is no reason")
    if not isinstance(expires, date) or isinstance(expires, datetime):
        raise LockUsageError(f"{where}: expires: {expires!r} is no date such as 2027-03-31")
    return Accepted(fingerprint, reason, expires)


@dataclass(frozen=True, slots=True)
class Differences:
    """What is new, and what is gone. A finding that reached a higher rung is new."""

    findings_new: tuple[Finding, ...]
    findings_gone: tuple[Finding, ...]
    class_edges_new: tuple[ObservedEdge, ...]
    class_edges_gone: tuple[ObservedEdge, ...]

    def text(self) -> str:
        """Yield the differences, one line each."""
        return "\n".join(self._lines()) or "No difference."

    def _lines(self) -> Iterator[str]:
        yield from (f"+ {finding} [{finding.fingerprint}]" for finding in self.findings_new)
        yield from (f"- {finding} [{finding.fingerprint}]" for finding in self.findings_gone)
        for class_edge in self.class_edges_new:
            at = ", ".join(class_edge.sites[:3]) + (" and others" if len(class_edge.sites) > 3 else "")
            yield f"+ {class_edge} at {at}"
        yield from (f"- {class_edge}" for class_edge in self.class_edges_gone)


def differences(old: Summary, new: Summary) -> Differences:
    """Compare two summaries: findings by fingerprint and rung, edges by classes and modes."""
    before = {finding.fingerprint: finding for finding in old.findings}
    after = {finding.fingerprint for finding in new.findings}
    known, seen = set(map(str, old.class_edges)), set(map(str, new.class_edges))
    return Differences(
        tuple(
            one
            for one in new.findings
            if one.fingerprint not in before or before[one.fingerprint].rung < one.rung
        ),
        tuple(one for one in old.findings if one.fingerprint not in after),
        tuple(one for one in new.class_edges if str(one) not in known),
        tuple(one for one in old.class_edges if str(one) not in seen),
    )
