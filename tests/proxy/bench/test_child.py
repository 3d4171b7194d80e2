from __future__ import annotations

import sys
from collections.abc import Callable

import pytest
from support.proxy.bench_fakes import FakeClock, FakeScheduler, a_workload, fake_gauges

from licorne.proxy.bench.child import light_if_installed, run_workload
from licorne.proxy.bench.driver import Stepped
from licorne.proxy.bench.engine import EngineKind
from licorne.proxy.bench.figures import Measurement
from licorne.proxy.bench.gauges import Gauges
from licorne.proxy.bench.light import Light
from licorne.proxy.bench.measurement import measure
from licorne.proxy.bench.workloads import BenchWorkload


class LoggingLight(Light):
    """Shines with a given pace, and logs that it did."""

    def __init__(self, log: list[str]) -> None:
        super().__init__(allocations=1, nodes=1)
        self._log = log
        self._paces = iter([50_000.0, 30_000.0])

    def allocations_per_second(self, clock: Callable[[], float], *, runs: int) -> float:  # noqa: ARG002 - as the light
        """Log the number of runs."""
        self._log.append(f"light, {runs} runs")
        return next(self._paces)


def test_the_light_shines_before_and_after_the_workload() -> None:
    """Three runs each, in the same process, around the measurement."""
    log: list[str] = []
    clock = FakeClock()

    def measure_on(workload: BenchWorkload, engine: EngineKind, gauges: Gauges) -> Measurement:
        log.append(f"{workload.name} on {engine.value}")
        return measure(workload, Stepped(FakeScheduler(clock), gauges), gauges)

    figures = run_workload(a_workload(), EngineKind.DIRECT, fake_gauges(clock), LoggingLight(log), measure_on)

    assert log == ["light, 3 runs", "tiny on direct", "light, 3 runs"]
    assert (figures.light_before_per_second, figures.light_after_per_second) == (50_000.0, 30_000.0)
    assert figures.measurement.nodes_per_second == 2.0


def test_without_its_extra_a_workload_is_measured_without_the_light(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its figures are there, but for the light."""
    assert isinstance(light_if_installed(), Light)
    monkeypatch.delitem(sys.modules, "licorne.proxy.bench.light")
    monkeypatch.setitem(sys.modules, "sortedcontainers", None)
    clock = FakeClock()

    def measure_on(workload: BenchWorkload, _: EngineKind, gauges: Gauges) -> Measurement:
        return measure(workload, Stepped(FakeScheduler(clock), gauges), gauges)

    light = light_if_installed()
    figures = run_workload(a_workload(), EngineKind.DIRECT, fake_gauges(clock), light, measure_on)

    assert (None, None, None) == (light, figures.light_per_second, figures.ratio_to_light)
    assert figures.measurement.nodes_per_second == 2.0
