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
| `policy_failures` | the same for refused answers of policies, by method, with the first reason |
| `surprises` | the same for callbacks of the scheduler that do not fit the record: a sign of a bug |
| `notes` | the same for parts of the input that were skipped, changed or ignored |
| `recorded_starts` | `null`, or the agreement with the starts in the log, see `recorded_starts` |
| `never_started` | `null`, or `jobs`, the number without a start, `of` all, the `first` and its `reason` |
| `jobs` | figures of whole jobs, if they were collected, see `job_figures` |
| `forecasts` | how good the forecasts were, if some were made, see `ForecastScore` |

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
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from ...base.terminal.standard_output import counted
from .accounts import COUNTS, Owner, StepFunction, Tally, permille, permille_by_interval, sum_of
from .driver import RunResult
from .record import SimulationRecord
from .workloads.workload import InputNote

if TYPE_CHECKING:
    from ....model.policies.watching import PointFailures
    from .forecasts import ForecastScore
    from .job_figures import JobReport
    from .recorded_starts import RecordedStarts
    from .reporting.figures import RunFigures

_INTERVALS: Final = 60
_FORMAT: Final = 2
_SECOND: Final = 10**9
_SHOWN_OF_WAITS: Final = ("count", "median", "p95", "max")
NO_OWNER: Final = Owner(queue="(no queue)", user="(no user)", groups=("(no group)",))
"""The names in the report for a missing queue, user or group."""

_Part = TypeVar("_Part")
_Figures = TypeVar("_Figures")
JsonDocument: TypeAlias = "dict[str, JsonDocument] | list[JsonDocument] | str | int | float | bool | None"


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureSpread:
    """The distribution of a value; the mean is rounded, the others are by nearest rank: they occurred."""

    count: int
    mean: int
    median: int
    p95: int
    max: int


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
    waits: FigureSpread | None
    utilization: tuple[Utilization, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NeverStarted:
    """The number of jobs, of `of` jobs, that had not started when the simulation ended.

    `first` is the name of the first of them, and `reason` what blocked it, empty if that is unknown.
    """

    jobs: int
    of: int
    first: str
    reason: str

    def sentence(self) -> str:
        """Return it as text."""
        reason = f": {self.reason}" if self.reason else ""
        return f"{self.jobs:,} of {counted(self.of, 'job')} never started, first {self.first}{reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationReport:
    """All figures of one simulation.

    `figures` are those over time, `jobs` those of whole jobs; each is `None` if they were not collected.
    `never_started` is `None` as well if all jobs have started, or the simulation was interrupted;
    `recorded_starts` if the input has no starts, and `forecasts` if none were made.
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
    policy_failures: tuple[InputNote, ...]
    surprises: tuple[InputNote, ...]
    notes: tuple[InputNote, ...]
    figures: RunFigures | None = None
    jobs: JobReport | None = None
    never_started: NeverStarted | None = None
    recorded_starts: RecordedStarts | None = None
    forecasts: ForecastScore | None = None

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
    policy_failures: Mapping[str, Mapping[str, PointFailures]] = MappingProxyType({}),
) -> SimulationReport:
    """Return the report of a simulation that has ended; failures are by policy and method."""
    tallies = record.accounts.tallies()
    end_ns = record.last_change_ns

    queues, users, groups = by_owner(
        tallies.items(), lambda part: _tally_report(part, record.capacity, end_ns)
    )
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
        queues=queues,
        users=users,
        groups=groups,
        rejections=_counted(record.remarks.rejections),
        refusals=_counted(record.remarks.refusals),
        policy_failures=_failures(policy_failures),
        surprises=_counted(record.remarks.surprises),
        notes=notes,
    )


def by_owner(
    parts: Iterable[tuple[Owner, _Part]], figures: Callable[[list[_Part]], _Figures]
) -> tuple[dict[str, _Figures], dict[str, _Figures], dict[str, _Figures]]:
    """Return the figures of parts by queue, by user and by group, each sorted by name."""
    queues, users, groups = (defaultdict[str, list[_Part]](list) for _ in range(3))
    for owner, part in parts:
        queues[owner.queue or NO_OWNER.queue].append(part)
        users[owner.user or NO_OWNER.user].append(part)
        for group in owner.groups or NO_OWNER.groups:
            groups[group].append(part)
    by_name = [{name: figures(of[name]) for name in sorted(of)} for of in (queues, users, groups)]
    return by_name[0], by_name[1], by_name[2]


def _counted(counts: Mapping[str, int]) -> tuple[InputNote, ...]:
    """Return counted texts, the most frequent first."""
    ordered = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    return tuple(InputNote(count, text) for text, count in ordered)


def _failures(failures: Mapping[str, Mapping[str, PointFailures]]) -> tuple[InputNote, ...]:
    """Return the failures of policies as counted texts with the first reason, the most frequent first."""
    counts: dict[str, int] = {}
    for policy, by_method in failures.items():
        for method, (times, first) in by_method.items():
            counts[f"policy {policy}.{method}, first about {first.subject}: {first.error}"] = times
    return _counted(counts)


def _tally_report(tallies: list[Tally], capacity: Mapping[str, StepFunction], end_ns: int) -> TallyReport:
    """Add up some tallies."""
    return TallyReport(
        **{name: sum(getattr(tally, name) for tally in tallies) for name in COUNTS},
        lost=_lost(tallies),
        waits=spread([wait for tally in tallies for wait in tally.waits_ns]),
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


def spread(values: list[int]) -> FigureSpread | None:
    """Return the distribution of values, `None` without any; they are sorted in place."""
    if not values:
        return None
    values.sort()
    count = len(values)
    return FigureSpread(
        count=count,
        mean=(2 * sum(values) + count) // (2 * count),
        median=nearest_rank(values, 50),
        p95=nearest_rank(values, 95),
        max=values[-1],
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
    forecasts: dict[str, JsonDocument]
    forecasts = {} if report.forecasts is None else {"forecasts": report.forecasts.document()}
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
        "policy_failures": _notes_document(report.policy_failures),
        "surprises": _notes_document(report.surprises),
        "notes": _notes_document(report.notes),
        "recorded_starts": None if report.recorded_starts is None else report.recorded_starts.document(),
        "never_started": None if report.never_started is None else asdict(report.never_started),
        **jobs,
        **forecasts,
    }


def _tallies_document(kind: str, tallies: Mapping[str, TallyReport]) -> JsonDocument:
    """Return tallies with their names."""
    return [{kind: name, **_tally_document(tally)} for name, tally in tallies.items()]


def _tally_document(tally: TallyReport) -> dict[str, JsonDocument]:
    """Return one tally."""
    waits = tally.waits
    return {
        **{name: getattr(tally, name) for name in COUNTS},
        **({"lost": dict(tally.lost)} if tally.lost else {}),
        "wait_ns": None if waits is None else {name: getattr(waits, name) for name in _SHOWN_OF_WAITS},
        "utilization": {
            one.resource: {
                "mean": one.mean_permille,
                "peak": one.peak_permille,
                "series": list(one.series_permille),
            }
            for one in tally.utilization
        },
    }


def _notes_document(notes: Iterable[InputNote]) -> JsonDocument:
    """Return counted texts."""
    return [{"count": note.count, "text": note.text} for note in notes]
