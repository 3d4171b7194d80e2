"""The comparison of two simulations of one input, and its JSON document.

The keys of the document are described in `docs/simulation.md`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final, final

from ..simulation.decisions import Decision
from ..simulation.report import JsonDocument, SimulationReport, document_of
from .conditions import Condition, ConditionResult, evaluated
from .effects import Effects, JobEffect, JobEffects, job_effects
from .first_difference import FirstDifference, difference_document, first_difference
from .why import Why, why_document

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
