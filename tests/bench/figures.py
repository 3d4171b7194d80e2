"""The figures of a run of one workload, and the gauges that they are read from.

Figures are plain frozen values that one process sends to another as JSON.
"""

from __future__ import annotations

import gc
import resource
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter

from licorne.model.errors import LicorneError
from licorne.proxy.core.scheduler.engine_names import EngineName

_STATM: Final = Path("/proc/self/statm")


class BenchError(LicorneError):
    """A run that gave no valid figure; the message names the workload and what did not come."""


def resident_bytes() -> int:
    """Return the memory this process occupies now.

    On a system without `/proc` this is the peak: differences are then too small rather than too large.
    """
    if not _STATM.exists():
        return peak_bytes()
    return int(_STATM.read_text(encoding="ascii").split()[1]) * resource.getpagesize()


def peak_bytes() -> int:
    """Return the most memory this process ever occupied."""
    unit = 1 if sys.platform == "darwin" else 1_024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauges:
    """What the measuring code reads; by default the real clocks, and the memory of this process.

    They are handed in, so that the measuring code can be tested without time or memory of its own.
    """

    clock_seconds: Callable[[], float] = time.perf_counter
    cpu_seconds: Callable[[], float] = time.process_time
    sleep_seconds: Callable[[float], None] = time.sleep
    # Called before memory is read, so that garbage is not taken for something that is kept.
    collect_garbage: Callable[[], int] = gc.collect
    resident_bytes: Callable[[], int] = resident_bytes
    peak_bytes: Callable[[], int] = peak_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Churn:
    """Allocations that are released and replaced by waiting ones (`f_*`)."""

    per_second: float
    # From the release to the callback with the allocation that came in its place.
    latency_p50_seconds: float
    latency_p99_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """Asks that cannot fit (`g_*`): what it costs to let them wait, and what they do when a node is freed."""

    # Processor time over wall time while nothing changes: 1.0 is one core.
    waiting_cpu_share: float
    # From the release of a node's allocation to the first callback with a new one, over several nodes.
    reaction_median_seconds: float
    reaction_max_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HalfLoad:
    """Asks that come one in each request, at half of the pace that the scheduler has (`l_*`)."""

    offered_per_second: float
    # From the call with an ask to the callback with its allocation.
    latency_p50_seconds: float
    latency_p99_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Pods:
    """Applications of one ask beside asks of large applications (`k_*`): what each takes from start to end.

    An application is submitted, its ask placed, the allocation released and the application removed; an ask
    is sent, placed and released. Both in seconds of processor time, all threads of the process together.
    """

    cpu_seconds_per_application: float
    cpu_seconds_per_ask: float

    @property
    def application_to_ask(self) -> float:
        """How many asks of a large application an application of one ask costs."""
        return self.cpu_seconds_per_application / self.cpu_seconds_per_ask


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """All that is measured of the scheduler itself.

    What a workload does not show is `None`: `f_*` and `g_*` have no allocations per second, the others no
    asks that only wait, and two applications are too few to say what one needs.
    """

    nodes_per_second: float
    applications_per_second: float
    # What the caller of the scheduler can hand over, and what the scheduler deals with if nothing has room.
    asks_handed_over_per_second: float
    asks_taken_in_per_second: float | None
    bytes_per_node: float | None
    bytes_per_application: float | None
    bytes_per_ask: float | None
    peak_bytes: int
    allocations_per_second: float | None = None
    churn: Churn | None = None
    backlog: Backlog | None = None
    half_load: HalfLoad | None = None
    pods: Pods | None = None

    @property
    def pace_per_second(self) -> float | None:
        """What the workload is about: allocations, or replaced allocations, per second."""
        return self.churn.per_second if self.churn is not None else self.allocations_per_second


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The measurement of one workload on one build and engine, and the light around it."""

    workload: str
    engine: EngineName
    build: str
    light_before_per_second: float
    light_after_per_second: float
    measurement: Measurement
    threads: int | None = None
    """How many threads the engine had, if it was said."""

    @property
    def light_per_second(self) -> float:
        """The light in the middle of the run, as far as it can be known."""
        return (self.light_before_per_second + self.light_after_per_second) / 2

    @property
    def ratio_to_light(self) -> float | None:
        """The pace of the workload in units of the light; `None` if it has no pace."""
        pace = self.measurement.pace_per_second
        return None if pace is None else pace / self.light_per_second

    @property
    def engine_text(self) -> str:
        """The engine, and how many threads it had if that was said."""
        return self.engine if self.threads is None else f"{self.engine}, {self.threads}"


_ADAPTER: TypeAdapter[Figures] = TypeAdapter(Figures)


def figures_to_json(figures: Figures) -> str:
    """Return the figures as one line of JSON."""
    return _ADAPTER.dump_json(figures).decode()


def figures_from_json(text: str) -> Figures:
    """Read what `figures_to_json` wrote.

    Raises:
        pydantic.ValidationError: the text is something else.
    """
    return _ADAPTER.validate_json(text)


def median_figures(runs: Sequence[Figures]) -> Figures:
    """Return the one run in the middle: its figures belong together, which medians of each would not.

    The middle is by the pace, or by the reaction where there is none. Of an even number of runs it is the
    lower one of the two.
    """
    assert runs, "a median needs at least one run"
    return sorted(runs, key=_merit)[(len(runs) - 1) // 2]


def _merit(figures: Figures) -> float:
    backlog = figures.measurement.backlog
    if backlog is not None:
        return -backlog.reaction_median_seconds
    return figures.measurement.pace_per_second or 0.0


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the smallest value that at least `percent` of all values do not exceed."""
    assert 0 < percent <= 100, percent
    assert values, "a percentile needs at least one value"
    rank = ceil(round(len(values) * percent / 100, 6))
    return sorted(values)[rank - 1]
