"""The figures of measured commits: `tests/bench/history.jsonl` has one line of JSON for each of them."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Final

from figures import Figures
from pydantic import TypeAdapter
from report import Figure

HISTORY: Final = Path(__file__).with_name("history.jsonl")
_RATIO_MIN: Final = 0.75
"""A pace below this part of the earlier one is a regression: single runs differ by up to a fifth."""
_COMPARED_MAX: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredPace:
    """What one workload gave."""

    ratio: float | None = None
    """Its pace in units of the light of the same process: the figure that machines can be compared by."""
    per_second: float | None = None
    """Allocations per second, or replaced allocations for `f_*`."""
    p50_ms: float | None = None
    """From a release to the allocation in its place, or from an ask to its allocation at half load."""
    p99_ms: float | None = None
    reaction_ms: float | None = None
    """From a freed node to the first allocation on it, the median of several nodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredCommit:
    """What one commit gave, on one machine and one engine."""

    day: str
    commit: str
    build: str
    engine: str
    python: str
    cores: int
    load: float | None = None
    """The load of the machine, this program included, when the line was made."""
    light_per_second: float | None = None
    """The median of the light of all workloads: how fast the machine was."""
    workloads: dict[str, MeasuredPace]


_ADAPTER: Final = TypeAdapter(MeasuredCommit)


def read_history(path: Path = HISTORY) -> list[MeasuredCommit]:
    """Return the measured commits, the oldest first."""
    return [_ADAPTER.validate_json(line) for line in path.read_text(encoding="utf-8").splitlines()]


def to_line(measured: MeasuredCommit) -> str:
    """Return a measured commit as a line of the history."""
    return _ADAPTER.dump_json(measured, exclude_none=True).decode() + "\n"


def commit_lines(runs: Sequence[Figures]) -> Iterator[MeasuredCommit]:
    """Give the figures of the commit that is checked out, one line for each build and engine."""
    for kind in dict.fromkeys((run.build, run.engine_text) for run in runs):
        yield _commit_of([run for run in runs if (run.build, run.engine_text) == kind])


def _commit_of(runs: Sequence[Figures]) -> MeasuredCommit:
    describe = ["git", "describe", "--always", "--dirty", "--exclude", "*", "--abbrev=8"]
    ran = subprocess.run(describe, cwd=HISTORY.parent, capture_output=True, text=True, check=True)  # noqa: S603
    return MeasuredCommit(
        day=f"{datetime.now(UTC):%Y-%m-%d}",
        commit=ran.stdout.strip(),
        build=runs[0].build,
        engine=runs[0].engine_text,
        python=platform.python_version(),
        cores=os.cpu_count() or 1,
        load=round(os.getloadavg()[0], 1),
        light_per_second=round(median(run.light_per_second for run in runs)),
        workloads={run.workload: _measured_pace(run) for run in runs},
    )


def _measured_pace(run: Figures) -> MeasuredPace:
    measured = run.measurement
    latencies = measured.churn or measured.half_load
    pace, ratio = measured.pace_per_second, run.ratio_to_light
    return MeasuredPace(
        ratio=None if ratio is None else round(ratio, 3),
        per_second=None if pace is None else round(pace),
        p50_ms=None if latencies is None else round(latencies.latency_p50_seconds * 1_000, 3),
        p99_ms=None if latencies is None else round(latencies.latency_p99_seconds * 1_000, 3),
        reaction_ms=None
        if measured.backlog is None
        else round(measured.backlog.reaction_median_seconds * 1_000, 3),
    )


def against_history(measured: MeasuredCommit, history: Sequence[MeasuredCommit]) -> Iterator[Figure]:
    """Give each ratio as a part of the earlier one: the median of the last three of that build and engine."""
    alike = [each for each in history if (each.build, each.engine) == (measured.build, measured.engine)]
    for name, pace in measured.workloads.items():
        found = [each.workloads[name].ratio for each in alike if name in each.workloads]
        earlier = [ratio for ratio in found if ratio is not None][-_COMPARED_MAX:]
        if pace.ratio is not None and earlier:
            subject = f"{name} ({measured.engine}) / median of the last {len(earlier)}"
            yield Figure(subject, pace.ratio / median(earlier), "x", wanted_min=_RATIO_MIN)
