"""The comparison of two simulations of one input, and its JSON document.

One input is simulated under two configurations, then again to explain the difference. The document has these
keys; times are whole nanoseconds:

| key | value |
|---|---|
| `kind`, `format` | `licorne comparison`, 1; a change of meaning changes the number |
| `a`, `b` | `configuration`, the file of each, and its `report`, the document of `simulation.report` |
| `total` | the effects on all jobs, see `Effects` |
| `queues`, `users`, `groups` | lists of the same, each with its name under `queue`, `user` or `group` |
| `later`, `earlier` | at most ten jobs: `job`, `delay_ns` (`null` for never), and its rows `a` and `b` |
| `unpaired` | the number of jobs of a transcript that were submitted in only one run |
| `first_difference` | `null`, or its `number`, `at_ns`, and the decisions, see `difference_document` |
| `why` | `null`, or `step`, `settings` that differ, those `needed` for the difference, and `consequences` |
| `windows` | `null`, or `days` of each window, and `differences`, see `WindowDifference` |
| `conditions` | `condition`, its `value`, `unbounded` if a job never starts, and whether it `holds` |
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Final, final

from ....model.errors import RequestError
from ...core.scheduler.engine_names import EngineName
from ..simulation.core import Core, SchedulerCore
from ..simulation.driver import NoProgress
from ..simulation.record import Decisions
from ..simulation.report import JsonDocument, SimulationReport, document_of
from ..simulation.runs import FinishedRun, RunSettings, opened_core
from ..simulation.simulation import GivenQueues, given_queues, simulate
from ..simulation.workloads.inputs import Transcript
from ..simulation.workloads.workload import SimulatedWorkload
from .conditions import Condition, ConditionResult, evaluated
from .effects import Effects, JobEffect, JobEffects, job_effects
from .first_difference import FirstDifference, ProbedCore, Probes, difference_document, first_difference
from .why import InterruptedRunError, Why, explained, why_document
from .windows import WindowComparison

JOBS_MAX: Final = 10
"""The number of jobs that are shown in each direction."""
_FORMAT: Final = 1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TwoRuns:
    """Two simulations of one input: the files of A and B, reports, differences, reasons, conditions.

    `why` is `None` if no decision differs, or if it was not requested; `windows` if they were not.
    """

    file_a: str
    file_b: str
    a: SimulationReport
    b: SimulationReport
    effects: JobEffects
    difference: FirstDifference | None
    conditions: tuple[ConditionResult, ...]
    why: Why | None = None
    windows: WindowComparison | None = None


def compared(
    names: tuple[str, str],
    runs: tuple[FinishedRun, FinishedRun],
    conditions: Iterable[Condition],
) -> TwoRuns:
    """Compare two simulations of one input.

    Args:
        names: The names of A and B: the files of their queues.
        runs: The runs under A and B.
        conditions: The conditions on the effects.

    Raises:
        ConditionError: A condition is about jobs that do not exist.
    """
    a, b = runs
    assert a.report.jobs is not None, "the jobs under A were collected"
    assert b.report.jobs is not None, "the jobs under B were collected"
    effects = job_effects(a.report.jobs, b.report.jobs)
    return TwoRuns(
        file_a=names[0],
        file_b=names[1],
        a=a.report,
        b=b.report,
        effects=effects,
        difference=first_difference(a.decisions, b.decisions),
        conditions=tuple(evaluated(condition, effects) for condition in conditions),
    )


def comparison_document(comparison: TwoRuns) -> dict[str, JsonDocument]:
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
        "windows": None if comparison.windows is None else comparison.windows.document(),
        "conditions": [_condition(result) for result in comparison.conditions],
    }


def _parts(kind: str, parts: Mapping[str, Effects]) -> JsonDocument:
    """Return effects with their names."""
    return [{kind: name, **asdict(effects)} for name, effects in parts.items()]


def _job(row: JobEffect) -> JsonDocument:
    """Return one job under both configurations."""
    return {"job": row.a.job, "delay_ns": row.delay_ns, "a": row.a.document(), "b": row.b.document()}


def _condition(result: ConditionResult) -> JsonDocument:
    """Return the result of a condition as a document."""
    return {
        "condition": result.condition.text,
        "value": result.value,
        "unbounded": result.is_unbounded,
        "holds": result.holds,
    }


def with_why(
    comparison: TwoRuns,
    work: SimulatedWorkload | Transcript,
    settings: tuple[RunSettings, RunSettings],
    runs: tuple[FinishedRun, FinishedRun],
    is_interrupted: Callable[[], bool],
) -> TwoRuns:
    """Return a comparison with the reasons, for which the input is simulated again.

    Args:
        comparison: The comparison of two runs.
        work: Their input.
        settings: The settings of A and B; queues between the two are simulated with the settings of B, and
            the policies of both.
        runs: The runs under A and B.
        is_interrupted: Returns whether the user has interrupted the comparison.

    Raises:
        InterruptedRunError: A simulation was interrupted.
    """
    if comparison.difference is None:
        return comparison
    a, b = settings
    both = replace(b, policies={**a.policies, **b.policies})

    def rerun(
        configuration: str,
        decisions: Decisions,
        *,
        probes: Probes | None = None,
        is_done: Callable[[], bool] | None = None,
    ) -> None:
        """Simulate the input once more; see `Rerun`."""

        def open_core(_: EngineName) -> Core:
            return opened_core(
                both, SchedulerCore if probes is None else partial(ProbedCore, decisions, probes)
            )

        simulate(
            work,
            open_core,
            engine=both.engine,
            configuration=configuration,
            progress=NoProgress(),
            stopwatch=time.perf_counter,
            is_interrupted=lambda: is_interrupted() or (is_done is not None and is_done()),
            quiet_limit_ns=max(a.quiet_limit_ns, b.quiet_limit_ns),
            decisions=decisions,
        )
        if is_interrupted():
            raise InterruptedRunError("interrupted")

    why = explained(
        comparison.difference,
        comparison.effects,
        (runs[0].decisions, runs[1].decisions),
        (_queues_of(a, work), _queues_of(b, work)),
        rerun,
    )
    return replace(comparison, why=why)


def _queues_of(settings: RunSettings, work: SimulatedWorkload | Transcript) -> GivenQueues:
    """Return the queues of a run: the given ones, or those of its input.

    Raises:
        RequestError: The input is a transcript, in which each registration has queues.
    """
    if settings.queues is not None:
        return settings.queues
    if isinstance(work, Transcript):
        raise RequestError("why: expected queues for both runs of a transcript, got none for one of them")
    return given_queues(work.default_configuration, "queues of the input")
