"""Figures of workloads between two runs of the light, for the tests of `tests/bench/`."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from lit_run import LitFigures
from support.proxy.bench_fakes import some_figures


def some_lit_figures(
    workload: str = "u500", *, light: float = 40_000.0, build: str = "pure Python", **figures: Any
) -> LitFigures:
    """Return figures as a run gives them; by default half of the light."""
    inside = some_figures(workload, **figures)
    return LitFigures(
        **{field.name: getattr(inside, field.name) for field in fields(inside)},
        build=build,
        light_before_per_second=light,
        light_after_per_second=light,
    )
