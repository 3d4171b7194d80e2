"""The comparison of two simulations of one input, and its JSON document.

The keys of the document are described in `docs/simulation.md`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Final, final

from ..report import JsonDocument, SimulationReport, document_of
from .conditions import Condition, ConditionResult, evaluated
from .effects import Effects, JobEffect, JobEffects, job_effects

__all__ = ["JOBS_MAX", "Comparison", "build_comparison", "comparison_document"]

JOBS_MAX: Final = 10
"""How many jobs are shown in each direction."""

_FORMAT: Final = 1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two simulations of one input: the files of A and B, the reports, the effects on jobs, conditions."""

    file_a: str
    file_b: str
    a: SimulationReport
    b: SimulationReport
    effects: JobEffects
    conditions: tuple[ConditionResult, ...] = ()


def build_comparison(
    files: tuple[str, str],
    a: SimulationReport,
    b: SimulationReport,
    conditions: Iterable[Condition] = (),
) -> Comparison:
    """Compare two reports of simulations of one input; both have figures of jobs.

    Args:
        files: The configurations A and B.
        a: The report under A.
        b: The report under B.
        conditions: What is asked about the effects.

    Raises:
        ConditionError: A condition is about jobs that are not there.
    """
    assert a.jobs is not None, "the jobs under A were collected"
    assert b.jobs is not None, "the jobs under B were collected"
    effects = job_effects(a.jobs, b.jobs)
    return Comparison(
        file_a=files[0],
        file_b=files[1],
        a=a,
        b=b,
        effects=effects,
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
