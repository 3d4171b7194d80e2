"""The families of metrics, as prometheus-client has them: names get no ending, and times are in seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

from prometheus_client import Metric

from ....model.state.counters import BOUNDS_NS, HistogramFigures

_NS: Final = 10**9
Labels = TypeVar("Labels", bound="str | tuple[str, ...]")
"""The name of a label, or of several; and in samples their values."""


def counter(name: str, text: str, labels: Labels, values: Mapping[Labels, float]) -> Metric:
    """Return a counter; its name gets no `_total`, unlike prometheus-client's own."""
    return _labelled(name, text, "counter", labels, values)


def gauge(name: str, text: str, labels: Labels, values: Mapping[Labels, float]) -> Metric:
    """Return a gauge."""
    return _labelled(name, text, "gauge", labels, values)


def _labelled(name: str, text: str, kind: str, labels: Labels, values: Mapping[Labels, float]) -> Metric:
    def texts(of: Labels) -> tuple[str, ...]:
        return (of,) if isinstance(of, str) else of

    family = Metric(name, text, kind)
    for of_labels, value in values.items():
        family.add_sample(name, dict(zip(texts(labels), texts(of_labels), strict=True)), value)
    return family


def single(name: str, text: str, value: float) -> Metric:
    """Return a gauge without labels."""
    family = Metric(name, text, "gauge")
    family.add_sample(name, {}, value)
    return family


def histogram(
    name: str,
    text: str,
    rows: Sequence[tuple[Mapping[str, str], HistogramFigures]],
    bounds_ns: Sequence[int] = BOUNDS_NS,
) -> Metric:
    """Return a histogram in seconds, with the labels of each row."""
    family = Metric(name, text, "histogram")
    for labels, figures in rows:
        total = 0
        for bound_ns, count in zip(bounds_ns, figures.counts, strict=False):
            total += count
            family.add_sample(f"{name}_bucket", {**labels, "le": f"{bound_ns / _NS:g}"}, total)
        family.add_sample(f"{name}_bucket", {**labels, "le": "+Inf"}, figures.durations)
        family.add_sample(f"{name}_sum", dict(labels), figures.total_ns / _NS)
        family.add_sample(f"{name}_count", dict(labels), figures.durations)
    return family
