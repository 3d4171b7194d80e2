"""Texts for Prometheus as tests compare them."""

from __future__ import annotations

import re
from typing import TypeAlias

from licorne.proxy.core.metrics.exporter import exposition
from licorne.proxy.core.metrics.figures import MetricsSource

Series: TypeAlias = tuple[str, frozenset[tuple[str, str]]]
"""The name of a sample and its labels."""


def scraped(source: MetricsSource) -> dict[Series, float]:
    """Return all values of a scheduler, by their series."""
    return values_of(exposition(source)[0].decode())


def kinds_of(text: str) -> dict[str, str]:
    """Return the types of all families, by their names."""
    rows = [line.split() for line in text.splitlines() if line.startswith("# TYPE")]
    return {row[2]: row[3] for row in rows}


def values_of(text: str) -> dict[Series, float]:
    """Return all values, by their series."""
    values: dict[Series, float] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            series, _, value = line.rpartition(" ")
            name, _, labels = series.partition("{")
            values[name, frozenset(re.findall(r'(\w+)="([^"]*)"', labels))] = float(value)
    return values
