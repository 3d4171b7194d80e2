"""Compares two configurations in several windows of a workload, and states how sure the differences are.

The workload is divided into blocks of whole days. Each block is simulated under A and under B from an empty
cluster. The mean of the differences over the blocks has an interval: 95 % of the means of as many blocks that
are drawn with replacement, with a seed, lie in it. If it contains zero, the windows do not show which
configuration is better.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from random import Random
from typing import Final, TypeAlias

from ....model.errors import RequestError
from ..simulation.driver import never
from ..simulation.job_figures import JobFigures, JobReport
from ..simulation.report import JsonDocument
from ..simulation.report_table import signed_duration_text
from ..simulation.runs import RunSettings, run_each
from ..simulation.workloads.inputs import Transcript
from ..simulation.workloads.workload import SimulatedWorkload, WorkloadCut, cut_workload

_DAY_NS: Final = 86_400 * 10**9
_DRAWS: Final = 1000
_Figure: TypeAlias = "tuple[str, str]"
"""The name of a figure, and the queue of its jobs, empty for all jobs."""
_WAITS: Final = ("mean wait", "p95 wait")
_SLOWDOWN: Final = "mean slowdown"


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowDifference:
    """One figure over all windows in which both runs have it; lower is better.

    Waits are in nanoseconds, slowdowns in thousandths; `a`, `b` and `difference` (B less A) are means over
    windows. `low` and `high` are the ends of the interval. `lower_in_b` is the number of windows in which B
    has the lower value, `higher_in_b` the higher one.
    """

    figure: str
    queue: str
    windows: int
    a: int
    b: int
    difference: int
    low: int
    high: int
    lower_in_b: int
    higher_in_b: int

    @property
    def name(self) -> str:
        """The figure, and whose it is."""
        return f"{self.figure} of {self.queue or 'all jobs'}"

    def values(self) -> list[str]:
        """Return A, B, the difference and the ends of the interval as texts."""
        values = (self.a, self.b, self.difference, self.low, self.high)
        if self.figure == _SLOWDOWN:
            return [f"{value / 1000:.2f}" for value in values]
        return [signed_duration_text(value) for value in values]

    def verdict(self) -> str:
        """Return which configuration is better."""
        if self.high < 0:
            return "B is better"
        return "A is better" if self.low > 0 else "not decided"


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowComparison:
    """The differences in all windows; `days` are their lengths."""

    days: tuple[int, ...]
    differences: tuple[WindowDifference, ...]

    def document(self) -> dict[str, JsonDocument]:
        """Return it as a JSON document."""
        differences: list[JsonDocument] = [
            {**asdict(one), "verdict": one.verdict()} for one in self.differences
        ]
        return {"days": list(self.days), "differences": differences}


def compared_windows(
    work: SimulatedWorkload | Transcript,
    settings: tuple[RunSettings, RunSettings],
    count: int,
    seed: int,
    is_interrupted: Callable[[], bool] = never,
) -> WindowComparison | None:
    """Simulate each window under A and under B; return `None` after an interrupt.

    Args:
        work: The workload; it must last for at least two days.
        settings: The settings of A and B.
        count: The number of windows; fewer if the workload has fewer days.
        seed: The seed of the resampling.
        is_interrupted: Returns whether the user has interrupted the comparison.

    Raises:
        RequestError: The workload is a transcript, or its submissions are within less than two days.
    """
    if isinstance(work, Transcript):
        raise RequestError("--windows: expected a workload with jobs, got a transcript")
    values: dict[_Figure, list[tuple[int, int]]] = {}
    lengths = []
    for begin, end in _blocks(work, count):
        part = cut_workload(work, WorkloadCut(from_ns=begin * _DAY_NS, to_ns=end * _DAY_NS))
        if not part.applications:
            continue
        lengths.append(end - begin)
        runs = run_each(part, {"A": settings[0], "B": settings[1]}, is_interrupted=is_interrupted)
        if any(run.report.is_interrupted for run in runs.values()):
            return None
        a, b = (dict(_figures(run.report.jobs)) for run in runs.values())
        for figure in a.keys() & b.keys():
            values.setdefault(figure, []).append((a[figure], b[figure]))
    ordered = sorted(values, key=lambda figure: (figure[1], figure[0]))
    return WindowComparison(
        days=tuple(lengths),
        differences=tuple(_difference(figure, values[figure], seed) for figure in ordered),
    )


def _blocks(work: SimulatedWorkload, count: int) -> Iterator[tuple[int, int]]:
    """Yield the first day of each block, and the first day after it."""
    last_ns = max((each.submit_at_ns for each in work.applications), default=0)
    days = last_ns // _DAY_NS + 1
    if days < 2:
        raise RequestError(f"--windows: expected submissions within at least 2 days, got {days} day")
    count = min(count, days)
    for number in range(count):
        yield days * number // count, days * (number + 1) // count


def _figures(jobs: JobReport | None) -> Iterator[tuple[_Figure, int]]:
    """Yield the figures of one run, by their names and queues."""
    assert jobs is not None, "the jobs were collected"
    parts: Mapping[str, JobFigures] = {"": jobs.total, **(jobs.queues if len(jobs.queues) > 1 else {})}
    for queue, one in parts.items():
        if one.wait_ns is not None:
            yield (_WAITS[0], queue), one.wait_ns.mean
            yield (_WAITS[1], queue), one.wait_ns.p95
        if one.slowdown is not None:
            yield (_SLOWDOWN, queue), one.slowdown.mean


def _difference(figure: _Figure, pairs: Sequence[tuple[int, int]], seed: int) -> WindowDifference:
    """Return the difference of one figure, with its interval."""
    differences = [b - a for a, b in pairs]
    count, rng = len(pairs), Random(seed)  # noqa: S311 - nothing secret is drawn
    means = sorted(sum(rng.choices(differences, k=count)) // count for _ in range(_DRAWS))
    return WindowDifference(
        figure=figure[0],
        queue=figure[1],
        windows=count,
        a=sum(a for a, _ in pairs) // count,
        b=sum(b for _, b in pairs) // count,
        difference=sum(differences) // count,
        low=means[_DRAWS // 40 - 1],
        high=means[-_DRAWS // 40],
        lower_in_b=sum(each < 0 for each in differences),
        higher_in_b=sum(each > 0 for each in differences),
    )
