"""Compares the starts of a simulation with those in its log: is the simulated policy the real one?

A recorded start counts from the first submission of the log, like the simulated one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from .job_figures import JobRow
from .report import NO_OWNER, JsonDocument

_MINUTE_NS: Final = 60 * 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class StartAgreement:
    """The agreement of some jobs that have started, and have a recorded start.

    `within_1m`, `within_10m` and `within_60m` are the numbers of jobs whose two starts are at most so far
    apart. `mean_later_ns` is the mean of the simulated start less the recorded one, rounded down.
    """

    jobs: int
    within_1m: int
    within_10m: int
    within_60m: int
    mean_later_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedStarts:
    """The agreement of all jobs, and by queue."""

    total: StartAgreement
    queues: Mapping[str, StartAgreement]

    def document(self) -> dict[str, JsonDocument]:
        """Return it as a JSON document."""
        queues: list[JsonDocument] = [{"queue": name, **asdict(one)} for name, one in self.queues.items()]
        return {"total": asdict(self.total), "queues": queues}


def recorded_starts(rows: Iterable[JobRow], recorded_ns: Mapping[str, int]) -> RecordedStarts | None:
    """Compare the jobs of a run with their recorded starts, by job; return `None` if no job has both."""
    differences_ns: defaultdict[str, list[int]] = defaultdict(list)
    for row in rows:
        if row.started_ns is not None and row.job in recorded_ns:
            differences_ns[row.queue or NO_OWNER.queue].append(row.started_ns - recorded_ns[row.job])
    if not differences_ns:
        return None
    return RecordedStarts(
        total=_agreement([each for part in differences_ns.values() for each in part]),
        queues={name: _agreement(differences_ns[name]) for name in sorted(differences_ns)},
    )


def _agreement(differences_ns: Sequence[int]) -> StartAgreement:
    """Return the agreement of jobs with these differences."""

    def within(minutes: int) -> int:
        return sum(abs(each) <= minutes * _MINUTE_NS for each in differences_ns)

    return StartAgreement(
        jobs=len(differences_ns),
        within_1m=within(1),
        within_10m=within(10),
        within_60m=within(60),
        mean_later_ns=sum(differences_ns) // len(differences_ns),
    )
