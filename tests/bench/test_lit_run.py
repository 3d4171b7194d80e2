from __future__ import annotations

from collections.abc import Callable

import pytest
from light import Light
from lit_run import lit_from_json, lit_run, lit_to_json
from support.proxy.bench_fakes import FakeClock, FakeScheduler, a_workload, fake_gauges
from support.proxy.lit_figures import some_lit_figures

from licorne.proxy.bench.driver import Stepped
from licorne.proxy.bench.figures import Churn, Measurement
from licorne.proxy.bench.gauges import Gauges
from licorne.proxy.bench.measurement import measure
from licorne.proxy.bench.workloads import BenchWorkload
from licorne.proxy.core.scheduler.engine_names import EngineName


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
    """Three runs each, in the same process, around the measurement; a machine that slows down slows both."""
    log: list[str] = []
    clock = FakeClock()

    def measure_on(workload: BenchWorkload, engine: EngineName, gauges: Gauges) -> Measurement:
        log.append(f"{workload.name} on {engine}")
        return measure(workload, Stepped(FakeScheduler(clock), gauges), gauges)

    figures = lit_run(a_workload(), "direct", fake_gauges(clock), LoggingLight(log), measure_on)

    assert log == ["light, 3 runs", "tiny on direct", "light, 3 runs"]
    assert (50_000.0, 30_000.0, 40_000.0) == (
        figures.light_before_per_second,
        figures.light_after_per_second,
        figures.light_per_second,
    )
    assert figures.measurement.nodes_per_second == 2.0


def test_the_ratio_is_that_of_the_pace_to_the_light() -> None:
    """The pace of `f_*` is that of replaced allocations; without a pace there is no ratio."""
    churn = Churn(per_second=4_000.0, latency_p50_seconds=0.1, latency_p99_seconds=0.1)

    assert 0.25 == some_lit_figures(pace=10_000.0, light=40_000.0).ratio_to_light
    assert 0.1 == some_lit_figures(pace=None, churn=churn, light=40_000.0).ratio_to_light
    assert some_lit_figures(pace=None).ratio_to_light is None


@pytest.mark.parametrize("pace", [20_000.0, None])
def test_lit_figures_come_out_of_json_as_they_went_in(pace: float | None) -> None:
    """One line each: a file of them is read line by line."""
    figures = some_lit_figures(pace=pace)

    assert figures == lit_from_json(lit_to_json(figures))
    assert "\n" not in lit_to_json(figures)
