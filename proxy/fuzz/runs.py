"""Runs of many plans, on several processes, and the smallest plan with the same failure."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import count, islice
from multiprocessing import get_context
from typing import Final, final

from loguru import logger

from .plans import DOOR, FILES, HOSTILE, REFERENCE, Plan, PlannedStep, drawn_plan
from .tried_policies import TriedPolicies
from .world.cluster import Outcome, run_plan

_SEEDS_BETWEEN: Final = {DOOR: 4, HOSTILE: 2, FILES: 2}
"""The distance between seeds if other engines run too: most faults show on the quick engines."""
_NAMES: Final = re.compile(r"[\w.-]*\d[\w.-]*")
"""The parts that differ between two failures of one kind: names, numbers."""


@final
@dataclass(frozen=True, slots=True)
class Result:
    """The result of one run."""

    seed: int
    engine: str
    steps: int
    trace: str
    failure: str
    """Empty if no failure was found."""
    cpu_seconds: float


@final
@dataclass(slots=True)
class RunSummary:
    """The results of many runs; all by engine."""

    runs: Counter[str] = field(default_factory=Counter)
    steps: Counter[str] = field(default_factory=Counter)
    cpu_seconds: Counter[str] = field(default_factory=Counter)
    failures: list[Result] = field(default_factory=list)

    def add(self, result: Result) -> None:
        """Count a run."""
        self.runs[result.engine] += 1
        self.steps[result.engine] += result.steps
        self.cpu_seconds[result.engine] += result.cpu_seconds  # type: ignore[assignment]  # a counter of floats
        if result.failure:
            self.failures.append(result)


def run_seeds(
    first: int,
    runs: int | None,
    *,
    steps: int,
    engines: Sequence[str],
    until: Callable[[], bool],
    jobs: int,
    policies: Sequence[str] = (),
) -> RunSummary:
    """Run one plan after the other, each on all engines, until one fails.

    With several engines, some slow ones run only the plan of every second or fourth seed.

    Args:
        first: The first seed; the others follow it.
        runs: How many seeds; `None` to end only by `until`.
        steps: How many steps each plan has.
        engines: The engines.
        until: Returns whether to begin no further run.
        jobs: How many processes run plans; 1 for this process.
        policies: The policies under test, as `--policy` takes them.

    Raises:
        LicorneError: The engine does not exist, or a policy cannot be used.
    """
    for engine in engines:
        drawn_plan(first, 0, engine, policies)  # What is wrong is refused before anything runs.
        TriedPolicies(policies, compared=engine == REFERENCE)
    work = (
        (seed, steps, engine, policies)
        for seed in islice(count(first), runs)
        for engine in engines
        if len(engines) == 1 or (seed - first) % _SEEDS_BETWEEN.get(engine, 1) == 0
    )
    summary = RunSummary()
    if jobs == 1:
        for each in work:
            if until() or summary.failures:
                break
            summary.add(_run(*each))
    else:
        _run_on_processes(work, summary, until, jobs)
    return summary


def _run_on_processes(
    work: Iterator[tuple[int, int, str, Sequence[str]]],
    summary: RunSummary,
    until: Callable[[], bool],
    jobs: int,
) -> None:
    context = get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=be_quiet) as pool:
        running = {pool.submit(_run, *each) for each in islice(work, 2 * jobs)}
        while running:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                summary.add(future.result())
            if not until() and not summary.failures:
                running |= {pool.submit(_run, *each) for each in islice(work, len(done))}
    summary.failures.sort(key=lambda result: result.seed)


def _run(seed: int, steps: int, engine: str, policies: Sequence[str]) -> Result:
    began = time.process_time()
    outcome = run_plan(drawn_plan(seed, steps, engine, policies))
    failure = "" if outcome.failure is None else text_of(outcome.failure)
    return Result(seed, engine, outcome.steps, outcome.trace, failure, time.process_time() - began)


def be_quiet() -> None:
    """Log nothing from simulated clusters: their faults are expected."""
    logger.disable("licorne")


def text_of(error: BaseException) -> str:
    """Return an error with its kind."""
    return f"{type(error).__name__}: {error}"


def shrunk(plan: Plan, seconds: float) -> tuple[Plan, Outcome]:
    """Return the smallest plan found in this time with the same failure, and its outcome.

    It removes ever smaller parts of the steps, as delta debugging does.
    """
    outcome = run_plan(plan)
    kind = _kind(outcome)
    deadline = time.monotonic() + seconds
    steps: list[PlannedStep] = list(plan.steps)
    parts = 2
    while len(steps) > 1 and time.monotonic() < deadline:
        size = -(-len(steps) // parts)
        for start in range(0, len(steps), size):
            fewer = steps[:start] + steps[start + size :]
            tried = run_plan(plan.with_steps(fewer))
            if _kind(tried) == kind:
                steps, outcome, parts = fewer, tried, max(parts - 1, 2)
                break
            if time.monotonic() > deadline:
                break
        else:
            if size == 1:
                break
            parts = min(parts * 2, len(steps))
    return plan.with_steps(steps), outcome


def _kind(outcome: Outcome) -> str:
    """Return the common text of failures of one kind, empty for no failure."""
    return "" if outcome.failure is None else _NAMES.sub("#", text_of(outcome.failure))[:60]
