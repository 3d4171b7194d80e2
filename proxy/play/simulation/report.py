"""The results of a simulation, as frozen values and as one JSON document.

The document (`document_of`) has these keys; times are whole nanoseconds of virtual time, shares are in
thousandths of the cluster's capacity:

| key | value |
|---|---|
| `format` | 2; a change of meaning changes it |
| `workload`, `engine` | names |
| `nodes` | number of nodes |
| `capacity` | the sum of all nodes at the end, by resource type |
| `end_ns` | the time of the last event |
| `interrupted` | whether it was stopped before its end |
| `decisions` | scheduling cycles with a result |
| `wall_seconds`, `decisions_per_second` | real time; the only values that differ from run to run |
| `total` | a tally, see below |
| `queues` | a tally for each queue that work was placed in, with its name under `queue`, sorted by name |
| `users`, `groups` | the same for each `user` and `group`; work of a user in several groups counts in each |
| `rejections` | the reasons of rejected work, as a list of `{"count", "text"}` |
| `refusals` | the same for requests and nodes that were refused as a whole |
| `surprises` | the same for callbacks of the scheduler that do not fit the record: a sign of a bug |
| `notes` | the same for parts of the input that were skipped, changed or ignored |
| `jobs` | figures of whole jobs, if they were collected, see `job_figures` |

A tally has `submitted`, `placed` (got a node at least once), `waiting` and `running` (at the end),
`completed`, `rejected`, `withdrawn`, `preempted`; `wait_ns` with `count`, `median`, `p95` and `max` of the
time from submission to the first placement, `null` without a placement; and `utilization`, for each resource
type the `mean` and `peak` share and the mean share in each of 60 equal parts of the time (`series`; fewer
parts if there are fewer nanoseconds). After preemptions there is `lost`: by resource type the resources of
preempted work on its nodes times the seconds for which it had them, in units of the scheduler interface.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from .accounts import COUNTS, Owner, StepFunction, Tally, permille, permille_by_interval, sum_of
from .driver import RunResult
from .record import SimulationRecord
from .workloads.workload import InputNote

if TYPE_CHECKING:
    from .job_figures import JobReport
    from .reporting.figures import RunFigures

_INTERVALS: Final = 60
_FORMAT: Final = 2
_SECOND: Final = 10**9
NO_OWNER: Final = Owner(queue="(no queue)", user="(no user)", groups=("(no group)",))
"""The names in the report for a missing queue, user or group."""

JsonDocument: TypeAlias = "dict[str, JsonDocument] | list[JsonDocument] | str | int | float | bool | None"


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitTimes:
    """The waits of work for its first node; by nearest rank, so each value is one that occurred."""

    count: int
    median_ns: int
    p95_ns: int
    max_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Utilization:
    """The use of one resource type, in thousandths of the cluster."""

    resource: str
    mean_permille: int
    peak_permille: int
    series_permille: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TallyReport:
    """The figures of one queue, user or group, or of all; `waits` is `None` without a placement.

    `lost` is the resources of preempted work on nodes times the seconds for which it had them, by resource
    type.
    """

    submitted: int
    placed: int
    waiting: int
    running: int
    completed: int
    rejected: int
    withdrawn: int
    preempted: int
    lost: Mapping[str, int]
    waits: WaitTimes | None
    utilization: tuple[Utilization, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationReport:
    """All figures of one simulation.

    `figures` are those over time, `jobs` those of whole jobs; each is `None` if they were not collected.
    """

    workload: str
    engine: str
    nodes: int
    capacity: Mapping[str, int]
    end_ns: int
    decisions: int
    wall_seconds: float
    total: TallyReport
    queues: Mapping[str, TallyReport]
    users: Mapping[str, TallyReport]
    groups: Mapping[str, TallyReport]
    is_interrupted: bool
    rejections: tuple[InputNote, ...]
    refusals: tuple[InputNote, ...]
    surprises: tuple[InputNote, ...]
    notes: tuple[InputNote, ...]
    figures: RunFigures | None = None
    jobs: JobReport | None = None

    @property
    def decisions_per_second(self) -> float:
        """The number of decisions in one second of real time, with one decimal."""
        return round(self.decisions / self.wall_seconds, 1) if self.wall_seconds > 0 else 0.0


def build_report(
    record: SimulationRecord,
    result: RunResult,
    *,
    workload: str,
    engine: str,
    nodes: int,
    notes: tuple[InputNote, ...],
) -> SimulationReport:
    """Return the report of a simulation that has ended."""
    tallies = record.accounts.tallies()
    end_ns = record.last_change_ns

    def by(names: Callable[[Owner], Iterable[str]]) -> dict[str, TallyReport]:
        parts: defaultdict[str, list[Tally]] = defaultdict(list)
        for owner, tally in tallies.items():
            for name in names(owner):
                parts[name].append(tally)
        return {name: _tally_report(parts[name], record.capacity, end_ns) for name in sorted(parts)}

    return SimulationReport(
        workload=workload,
        engine=engine,
        nodes=nodes,
        capacity={name: capacity.value for name, capacity in sorted(record.capacity.items())},
        end_ns=end_ns,
        is_interrupted=result.is_interrupted,
        decisions=result.decisions,
        wall_seconds=result.wall_seconds,
        total=_tally_report(list(tallies.values()), record.capacity, end_ns),
        queues=by(lambda owner: [owner.queue or NO_OWNER.queue]),
        users=by(lambda owner: [owner.user or NO_OWNER.user]),
        groups=by(lambda owner: owner.groups or NO_OWNER.groups),
        rejections=_counted(record.remarks.rejections),
        refusals=_counted(record.remarks.refusals),
        surprises=_counted(record.remarks.surprises),
        notes=notes,
    )


def _counted(counts: Mapping[str, int]) -> tuple[InputNote, ...]:
    """Return counted texts, the most frequent first."""
    ordered = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    return tuple(InputNote(count, text) for text, count in ordered)


def _tally_report(tallies: list[Tally], capacity: Mapping[str, StepFunction], end_ns: int) -> TallyReport:
    """Add up some tallies."""
    return TallyReport(
        **{name: sum(getattr(tally, name) for tally in tallies) for name in COUNTS},
        lost=_lost(tallies),
        waits=_wait_times(sorted(wait for tally in tallies for wait in tally.waits_ns)),
        utilization=tuple(
            _utilization(name, [tally.used[name] for tally in tallies if name in tally.used], there, end_ns)
            for name, there in sorted(capacity.items())
        ),
    )


def _lost(tallies: list[Tally]) -> dict[str, int]:
    """Return the work lost by preemption, in units times seconds; types without any are left out."""
    lost: Counter[str] = Counter()
    for tally in tallies:
        lost.update(tally.lost)
    return {name: amount // _SECOND for name, amount in sorted(lost.items()) if amount >= _SECOND}


def _wait_times(waits_ns: list[int]) -> WaitTimes | None:
    """Return the ranks of sorted waiting times."""
    if not waits_ns:
        return None
    return WaitTimes(
        count=len(waits_ns),
        median_ns=nearest_rank(waits_ns, 50),
        p95_ns=nearest_rank(waits_ns, 95),
        max_ns=waits_ns[-1],
    )


def nearest_rank(ordered: Sequence[int], percent: int) -> int:
    """Return the smallest value that at least this percentage of the values do not exceed."""
    return ordered[(len(ordered) * percent + 99) // 100 - 1]


def _utilization(name: str, parts: list[StepFunction], capacity: StepFunction, end_ns: int) -> Utilization:
    """Return the use of one resource type by some owners together."""
    used = sum_of(parts)
    whole = permille_by_interval(used, capacity, end_ns=end_ns, intervals=1)
    return Utilization(
        resource=name,
        mean_permille=whole[0],
        peak_permille=permille(used.peak, capacity.peak),
        series_permille=permille_by_interval(used, capacity, end_ns=end_ns, intervals=_INTERVALS),
    )


def document_of(report: SimulationReport) -> JsonDocument:
    """Return the report as a JSON document; its keys are described above."""
    jobs: dict[str, JsonDocument] = {} if report.jobs is None else {"jobs": report.jobs.document()}
    return {
        "format": _FORMAT,
        "workload": report.workload,
        "engine": report.engine,
        "nodes": report.nodes,
        "capacity": dict(report.capacity),
        "end_ns": report.end_ns,
        "interrupted": report.is_interrupted,
        "decisions": report.decisions,
        "wall_seconds": round(report.wall_seconds, 3),
        "decisions_per_second": report.decisions_per_second,
        "total": _tally_document(report.total),
        "queues": _tallies_document("queue", report.queues),
        "users": _tallies_document("user", report.users),
        "groups": _tallies_document("group", report.groups),
        "rejections": _notes_document(report.rejections),
        "refusals": _notes_document(report.refusals),
        "surprises": _notes_document(report.surprises),
        "notes": _notes_document(report.notes),
        **jobs,
    }


def _tallies_document(kind: str, tallies: Mapping[str, TallyReport]) -> JsonDocument:
    """Return tallies with their names."""
    return [{kind: name, **_tally_document(tally)} for name, tally in tallies.items()]


def _tally_document(tally: TallyReport) -> dict[str, JsonDocument]:
    """Return one tally."""
    return {
        **{name: getattr(tally, name) for name in COUNTS},
        **({"lost": dict(tally.lost)} if tally.lost else {}),
        "wait_ns": _waits_document(tally.waits),
        "utilization": {
            one.resource: {
                "mean": one.mean_permille,
                "peak": one.peak_permille,
                "series": list(one.series_permille),
            }
            for one in tally.utilization
        },
    }


def _waits_document(waits: WaitTimes | None) -> JsonDocument:
    """Return the waiting times, null without any."""
    if waits is None:
        return None
    return {"count": waits.count, "median": waits.median_ns, "p95": waits.p95_ns, "max": waits.max_ns}


def _notes_document(notes: Iterable[InputNote]) -> JsonDocument:
    """Return counted texts."""
    return [{"count": note.count, "text": note.text} for note in notes]
