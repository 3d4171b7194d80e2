"""Forecasts of when waiting jobs start: ranges that earlier forecasts of the same simulation calibrate.

A forecast is a run of a copy of the whole simulation, made by `fork`: the scheduler with its queues and
policies as they are. In the copy nothing more is submitted, and each job runs as long as jobs of its user
usually do. It ends when the job starts. So a forecast obeys every rule of the scheduler.

Such a start is too early in most cases, because later submissions are unknown, and jobs of one user
come in batches of unusual length. Therefore the true wait of each job is divided by its forecast wait. The
range of a job is its forecast wait times quantiles of these ratios, of the latest jobs that have started.
"""

from __future__ import annotations

import gc
import os
import warnings
from collections import defaultdict, deque
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from typing import Final, NamedTuple, NoReturn, final

from ....model.configuration.durations import short_duration_text
from ....model.errors import RequestError
from ...base.terminal.standard_output import counted
from ...core.scheduler.engine_names import EngineName
from .accounts import Job, Jobs
from .core import Traffic
from .driver import Driver
from .report import JsonDocument, nearest_rank
from .simulated_rm import SimulatedRM
from .workloads.inputs import Transcript
from .workloads.workload import SimulatedWorkload

RATIOS_MIN: Final = 50
"""The number of ratios that a range needs."""
_RATIOS_MAX: Final = 300
_PERCENTS: Final = (5, 25, 50, 75, 95)
_OF_USER_MIN: Final = 5
_OF_USER_MAX: Final = 50
_OF_ALL_MAX: Final = 200
_COPIES_MAX: Final = 4
"""The number of copies that run at once."""
_BEFORE_MAX: Final = 1000
"""The number of jobs before a moment that are looked at for a forecast from this moment on."""
_MILLION: Final = 10**6
"""Ratios are whole millionths."""


class Quantiles(NamedTuple):
    """Waits that are not exceeded in 5, 25, 50, 75 and 95 % of the cases."""

    low_ns: int
    quarter_ns: int
    median_ns: int
    three_quarters_ns: int
    high_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StartForecast:
    """How long a job waits from a moment on: `wait_ns` if nothing more is submitted, `None` for ever.

    `quantiles` are `None` if fewer than 50 `ratios` calibrate them.
    """

    wait_ns: int | None
    ratios: int
    quantiles: Quantiles | None = None

    def sentence(self) -> str:
        """Return it as text."""
        if self.wait_ns is None:
            return "forecast: it does not start even if nothing more is submitted"
        if self.quantiles is None:
            start = f"it starts in {short_duration_text(self.wait_ns)} if nothing more is submitted"
            return f"forecast: {start}; a range needs {RATIOS_MIN} jobs that waited before, not {self.ratios}"
        low, _, median, _, high = map(short_duration_text, self.quantiles)
        return (
            f"forecast: it starts in {low} to {high} with 90 %, and in {median} or less with 50 %, "
            f"by {counted(self.ratios, 'job')} that waited before"
        )

    def document(self) -> dict[str, JsonDocument]:
        """Return it as a JSON document."""
        quantiles = None if self.quantiles is None else dict(self.quantiles._asdict())
        return {"wait_ns": self.wait_ns, "ratios": self.ratios, "quantiles": quantiles}


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastScore:
    """How good the forecasts of a simulation were, which were made when jobs were submitted.

    `forecasts` is the number of jobs that had to wait and have started, `ranges` of those with a range. Of
    these `within_90` and `within_50` started in it. Half of the ranges of 90 % are at most `median_width_ns`
    long, and half of the medians are at most `median_error_ns` wrong; 0 without ranges.
    """

    forecasts: int
    ranges: int
    within_90: int
    within_50: int
    median_error_ns: int
    median_width_ns: int

    def document(self) -> dict[str, JsonDocument]:
        """Return it as a JSON document."""
        return dict(asdict(self))


class _Made(NamedTuple):
    """A forecast for a job at a moment; its wait is `None` if the job did not start in the copy."""

    job: Job
    at_ns: int
    wait_ns: int | None

    def ratio(self, by_ns: int) -> int | None:
        """Return its true wait by the forecast one, `None` if the job had not started by a moment."""
        started_ns = self.job.started_at_ns
        if self.wait_ns is None or started_ns is None or started_ns > by_ns:
            return None
        return (started_ns - self.at_ns) * _MILLION // self.wait_ns


class _Copy(NamedTuple):
    """A process that makes a forecast, and the end of the pipe with its answer."""

    job: Job
    at_ns: int
    process: int
    answer: int


@final
class UsualRunTimes:
    """How long jobs usually run: learned from those that have ended, as parts of their walltimes.

    Args:
        workload: The workload.
    """

    def __init__(self, workload: SimulatedWorkload) -> None:
        self._applications = {each.application_id: each for each in workload.applications}
        self._of_users: defaultdict[tuple[str, bool], deque[int]]
        self._of_users = defaultdict(partial(deque, maxlen=_OF_USER_MAX))
        self._of_all: defaultdict[bool, deque[int]] = defaultdict(partial(deque, maxlen=_OF_ALL_MAX))

    def learn(self, application_id: str) -> None:
        """Take the run time of a job that has ended."""
        application = self._applications[application_id]
        ran_ns = max((task.duration_ns or 0 for task in application.tasks), default=0)
        walltime_ns = application.walltime_ns
        value = ran_ns * _MILLION // walltime_ns if walltime_ns else ran_ns
        self._of_users[application.user, bool(walltime_ns)].append(value)
        self._of_all[bool(walltime_ns)].append(value)

    def expected_ns(self, application_id: str, passed_ns: int) -> int | None:
        """Return how long a job runs that has run for some time: the median of those that ran longer.

        Without any it is the walltime, `None` if that is unknown as well.
        """
        application = self._applications[application_id]
        walltime_ns = application.walltime_ns
        known = self._of_users[application.user, bool(walltime_ns)]
        if len(known) < _OF_USER_MIN:
            known = self._of_all[bool(walltime_ns)]
        runs_ns = (value * walltime_ns // _MILLION if walltime_ns else value for value in known)
        longer_ns = sorted(ran_ns for ran_ns in runs_ns if ran_ns > passed_ns)
        if longer_ns:
            return longer_ns[len(longer_ns) // 2]
        return max(walltime_ns, passed_ns + 1) if walltime_ns else None


@final
class Forecasts:
    """The forecasts of one simulation: for each job that waits after the moment of its submission.

    Args:
        workload: The workload.
        jobs: The jobs of the simulation.
        manager: Its resource manager.
        driver: Its driver.
        until_ns: The moment of the only forecast that is of interest; `None` if all are. Then only the last
            1,000 jobs before it are forecast, to calibrate it.
    """

    def __init__(
        self,
        workload: SimulatedWorkload,
        jobs: Jobs,
        manager: SimulatedRM,
        driver: Driver,
        until_ns: int | None = None,
    ) -> None:
        self._run_times = UsualRunTimes(workload)
        self._jobs = jobs
        self._manager = manager
        self._driver = driver
        submitted_ns = sorted(each.submit_at_ns for each in workload.applications)
        before_ns = [] if until_ns is None else [each for each in submitted_ns if each <= until_ns]
        self._from_ns = before_ns[-_BEFORE_MAX] if len(before_ns) > _BEFORE_MAX else 0
        self._open: dict[str, Job] = {}
        """The jobs that had not ended at the last forecast."""
        self._made: list[_Made] = []
        self._copies: deque[_Copy] = deque()

    def look(self, now_ns: int) -> None:
        """Forecast the jobs that were submitted at this moment and wait; to be called after each moment."""
        for job in self._jobs.latest():
            if job.submitted_at_ns < now_ns or job.name in self._open:
                break
            self._open[job.name] = job
            if job.waits and now_ns >= self._from_ns:
                self._begin(job, now_ns)

    def of(self, application_id: str, now_ns: int) -> StartForecast | None:
        """Return the forecast of a job from this moment on, `None` unless it waits."""
        job = next((each for each in self._jobs if each.name == application_id and each.waits), None)
        if job is None:
            return None
        self._begin(job, now_ns)
        self._take_answers()
        return self._calibrated(len(self._made) - 1)

    def score(self) -> ForecastScore:
        """Return how good the forecasts were, of the jobs that have started."""
        self._take_answers()
        count = within_90 = within_50 = 0
        errors_ns: list[int] = []
        widths_ns: list[int] = []
        for index, made in enumerate(self._made):
            if made.job.started_at_ns is None:
                continue
            count += 1
            wait_ns, found = made.job.started_at_ns - made.at_ns, self._calibrated(index)
            if found.quantiles is not None:
                low, quarter, median, three_quarters, high = found.quantiles
                within_90 += low <= wait_ns <= high
                within_50 += quarter <= wait_ns <= three_quarters
                errors_ns.append(abs(wait_ns - median))
                widths_ns.append(high - low)
        return ForecastScore(
            forecasts=count,
            ranges=len(widths_ns),
            within_90=within_90,
            within_50=within_50,
            median_error_ns=_median(errors_ns),
            median_width_ns=_median(widths_ns),
        )

    def _calibrated(self, index: int) -> StartForecast:
        """Return a forecast, with quantiles by those before it whose jobs had started at its moment."""
        made = self._made[index]
        if made.wait_ns is None:
            return StartForecast(wait_ns=None, ratios=0)
        before = (earlier.ratio(made.at_ns) for earlier in reversed(self._made[:index]))
        ratios = sorted(islice((ratio for ratio in before if ratio is not None), _RATIOS_MAX))
        if len(ratios) < RATIOS_MIN:
            return StartForecast(wait_ns=made.wait_ns, ratios=len(ratios))
        quantiles = Quantiles(*(made.wait_ns * nearest_rank(ratios, each) // _MILLION for each in _PERCENTS))
        return StartForecast(wait_ns=made.wait_ns, ratios=len(ratios), quantiles=quantiles)

    def _begin(self, job: Job, now_ns: int) -> None:
        """Begin to forecast a job in a copy of this process."""
        ended = [each for each in self._open.values() if each.ended_at_ns is not None]
        for each in sorted(ended, key=lambda each: each.ended_at_ns or 0):
            del self._open[each.name]
            if each.has_completed:
                self._run_times.learn(each.name)
        self._take_answers(_COPIES_MAX - 1)
        reading, writing = os.pipe()
        with warnings.catch_warnings():
            # Other threads, such as that of a bar, are not in the copy, which needs none.
            warnings.simplefilter("ignore", DeprecationWarning)
            process = os.fork()
        if not process:
            self._answer(job, writing)
        os.close(writing)
        self._copies.append(_Copy(job, now_ns, process, reading))

    def _answer(self, job: Job, writing: int) -> NoReturn:
        """In a copy: simulate until the job starts, write when that is, and end this process."""
        status = 1
        try:
            gc.freeze()  # A collection would touch, and so copy, all memory.
            self._manager.suppose(self._run_times.expected_ns)
            self._driver.go_on(lambda: job.started_at_ns is not None)
            if job.started_at_ns is not None:
                os.write(writing, b"%d" % job.started_at_ns)
            status = 0
        finally:
            os._exit(status)

    def _take_answers(self, left: int = 0) -> None:
        """Wait for the oldest copies until only so many are left, and take their answers."""
        while len(self._copies) > left:
            job, at_ns, process, answer = self._copies.popleft()
            with os.fdopen(answer, "rb") as pipe:
                text = pipe.read().decode()
            _, status = os.waitpid(process, 0)
            assert status == 0, f"the forecast of {job.name} failed: please report"
            self._made.append(_Made(job, at_ns, max(1, int(text) - at_ns) if text else None))


def forecasts_of(
    work: SimulatedWorkload | Transcript,
    jobs: Jobs,
    manager: Traffic,
    driver: Driver,
    *,
    engine: EngineName,
    until_ns: int | None = None,
) -> Forecasts:
    """Return the forecasts of a simulation; see `Forecasts`.

    Raises:
        RequestError: The work is a transcript, the engine may have threads, or the system cannot copy a
            process.
    """
    if engine != "direct":  # A copy has the thread that makes it alone.
        raise RequestError(f"--forecast: expected the engine direct, got {engine}")
    if isinstance(work, Transcript) or not isinstance(manager, SimulatedRM):
        raise RequestError("--forecast: expected a workload with jobs, got a transcript")
    if not hasattr(os, "fork"):
        raise RequestError("--forecast: this system cannot copy a process (fork)")
    return Forecasts(work, jobs, manager, driver, until_ns)


def _median(values: list[int]) -> int:
    return nearest_rank(sorted(values), 50) if values else 0
