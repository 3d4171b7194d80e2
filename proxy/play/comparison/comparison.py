"""The comparison of two simulations of one input, and its JSON document.

One input is simulated under two configurations, and again to explain the difference. The keys of the document
are described in `docs/simulation.md`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Final, final

from ...core.scheduler.engine_names import EngineName
from ..simulation.core import Core, SchedulerCore
from ..simulation.driver import NoProgress, progress_on
from ..simulation.record import Decision, Decisions
from ..simulation.report import JsonDocument, SimulationReport, document_of
from ..simulation.simulation import GivenQueues, simulate
from ..simulation.workloads.inputs import Transcript
from ..simulation.workloads.workload import InputNote, Workload
from .conditions import Condition, ConditionResult, evaluated
from .effects import Effects, JobEffect, JobEffects, job_effects
from .first_difference import FirstDifference, ProbedCore, Probes, difference_document, first_difference
from .why import InterruptedRunError, Why, explained, why_document

JOBS_MAX: Final = 10
"""How many jobs are shown in each direction."""
_FORMAT: Final = 1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two simulations of one input: the files of A and B, the reports, what differs and why, conditions.

    `why` is `None` where no decision differs, and where it was not asked for.
    """

    file_a: str
    file_b: str
    a: SimulationReport
    b: SimulationReport
    effects: JobEffects
    difference: FirstDifference | None
    conditions: tuple[ConditionResult, ...]
    why: Why | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRun:
    """One simulation: the file of its configuration, its report with figures of jobs, and its decisions."""

    file: str
    report: SimulationReport
    decisions: Sequence[Decision]


def build_comparison(a: ComparedRun, b: ComparedRun, conditions: Iterable[Condition]) -> Comparison:
    """Compare two simulations of one input.

    Args:
        a: The run under A.
        b: The run under B.
        conditions: What is asked about the effects.

    Raises:
        ConditionError: A condition is about jobs that are not there.
    """
    assert a.report.jobs is not None, "the jobs under A were collected"
    assert b.report.jobs is not None, "the jobs under B were collected"
    effects = job_effects(a.report.jobs, b.report.jobs)
    return Comparison(
        file_a=a.file,
        file_b=b.file,
        a=a.report,
        b=b.report,
        effects=effects,
        difference=first_difference(a.decisions, b.decisions),
        conditions=tuple(evaluated(condition, effects) for condition in conditions),
    )


def comparison_document(comparison: Comparison) -> dict[str, JsonDocument]:
    """Return a comparison as a JSON document."""
    effects = comparison.effects
    return {
        "kind": "licorne comparison",
        "format": _FORMAT,
        "a": {"configuration": comparison.file_a, "report": document_of(comparison.a)},
        "b": {"configuration": comparison.file_b, "report": document_of(comparison.b)},
        "total": asdict(effects.total),
        "queues": _parts("queue", effects.queues),
        "users": _parts("user", effects.users),
        "groups": _parts("group", effects.groups),
        "later": [_job(row) for row in effects.later[:JOBS_MAX]],
        "earlier": [_job(row) for row in effects.earlier[:JOBS_MAX]],
        "unpaired": effects.unpaired,
        "first_difference": difference_document(comparison.difference),
        "why": why_document(comparison.why),
        "conditions": [_condition(result) for result in comparison.conditions],
    }


def _parts(kind: str, parts: Mapping[str, Effects]) -> JsonDocument:
    """Return effects with their names."""
    return [{kind: name, **asdict(effects)} for name, effects in parts.items()]


def _job(row: JobEffect) -> JsonDocument:
    """Return one job under both configurations."""
    return {"job": row.a.job, "delay_ns": row.delay_ns, "a": row.a.document(), "b": row.b.document()}


def _condition(result: ConditionResult) -> JsonDocument:
    """Return what a condition says."""
    return {
        "condition": result.condition.text,
        "value": result.value,
        "unbounded": result.is_unbounded,
        "holds": result.holds,
    }


@final
class TwoRuns:
    """One input under the configurations A and B.

    Args:
        work: The input.
        queues: A and B.
        engine: The name of the engine.
        open_core: Opens a scheduler.
        is_interrupted: Returns whether the user has interrupted.

    Raises:
        LicorneError: A configuration does not fit the input.
    """

    def __init__(
        self,
        work: Workload | Transcript,
        queues: tuple[GivenQueues, GivenQueues],
        *,
        engine: EngineName,
        open_core: Callable[[EngineName], SchedulerCore],
        is_interrupted: Callable[[], bool],
    ) -> None:
        self._work = work
        self._queues = queues
        self._notes = [given.checked_notes(work) for given in queues]
        self._engine: EngineName = engine
        self._open_core = open_core
        self._is_interrupted = is_interrupted

    def compared(self, conditions: Iterable[Condition], *, with_reasons: bool) -> Comparison | None:
        """Simulate and compare; return `None` where that was interrupted.

        Args:
            conditions: What is asked about the effects.
            with_reasons: Whether to simulate again, to say why the runs differ.

        Raises:
            LicorneError: The scheduler refuses a configuration, or a condition is about no job.
        """
        runs = []
        for given, notes in zip(self._queues, self._notes, strict=True):
            run = self._run(given, notes)
            if run.report.is_interrupted:
                return None
            runs.append(run)
        a, b = runs
        comparison = build_comparison(a, b, conditions)
        if not with_reasons or comparison.difference is None:
            return comparison
        try:
            why = explained(
                comparison.difference,
                comparison.effects,
                (a.decisions, b.decisions),
                self._queues,
                self._run_again,
            )
        except InterruptedRunError:
            return None
        return replace(comparison, why=why)

    def _run(self, given: GivenQueues, notes: tuple[InputNote, ...]) -> ComparedRun:
        """Simulate the input under one of the configurations."""
        decisions = Decisions()
        with progress_on(sys.stderr, f"{self._work.name} under {given.path}") as progress:
            report = simulate(
                self._work,
                self._open_core,
                engine=self._engine,
                configuration=given.text,
                progress=progress,
                stopwatch=time.perf_counter,
                is_interrupted=self._is_interrupted,
                configuration_notes=notes,
                with_jobs=True,
                decisions=decisions,
            )
        return ComparedRun(file=str(given.path), report=report, decisions=tuple(decisions))

    def _run_again(
        self,
        configuration: str,
        decisions: Decisions,
        *,
        probes: Probes | None = None,
        is_done: Callable[[], bool] | None = None,
    ) -> None:
        """Simulate the input once more; a `Rerun`."""

        def open_core(name: EngineName) -> Core:
            core = self._open_core(name)
            return core if probes is None else ProbedCore(core, decisions, probes)

        simulate(
            self._work,
            open_core,
            engine=self._engine,
            configuration=configuration,
            progress=NoProgress(),
            stopwatch=time.perf_counter,
            is_interrupted=lambda: self._is_interrupted() or (is_done is not None and is_done()),
            decisions=decisions,
        )
        if self._is_interrupted():
            raise InterruptedRunError("interrupted")
