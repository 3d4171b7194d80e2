"""Run workloads, each between two runs of the light: `python tests/bench/lit_run.py [WORKLOAD...]`.

Each workload has a process of its own, in which the light runs before and after it. The figures are written
to standard output, one line of JSON a workload; `tests/bench/targets.py` reads them.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from light import Light
from pydantic import TypeAdapter

from licorne.model.build_kind import build_name
from licorne.proxy.bench.child import measure_on_fresh_scheduler
from licorne.proxy.bench.figures import Figures, Measurement
from licorne.proxy.bench.gauges import Gauges
from licorne.proxy.bench.workload_table import DEFAULT_NAMES, workload_named
from licorne.proxy.bench.workloads import BenchWorkload
from licorne.proxy.core.scheduler.engine_names import ENGINES, EngineName

_LIGHT_RUNS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class LitFigures(Figures):
    """The figures of a workload, with the build that was measured and the light around the measurement."""

    build: str
    light_before_per_second: float
    light_after_per_second: float

    @property
    def light_per_second(self) -> float:
        """The light in the middle of the run, as far as it can be known."""
        return (self.light_before_per_second + self.light_after_per_second) / 2

    @property
    def ratio_to_light(self) -> float | None:
        """The pace of the workload in units of the light; `None` if it has no pace."""
        pace = self.measurement.pace_per_second
        return None if pace is None else pace / self.light_per_second


_ADAPTER: TypeAdapter[LitFigures] = TypeAdapter(LitFigures)


def lit_to_json(figures: LitFigures) -> str:
    """Return the figures as one line of JSON."""
    return _ADAPTER.dump_json(figures).decode()


def lit_from_json(text: str) -> LitFigures:
    """Read what `lit_to_json` wrote."""
    return _ADAPTER.validate_json(text)


def lit_run(
    workload: BenchWorkload,
    engine: EngineName,
    gauges: Gauges,
    light: Light,
    measure_on: Callable[[BenchWorkload, EngineName, Gauges], Measurement] = measure_on_fresh_scheduler,
) -> LitFigures:
    """Run the light, the workload, and the light again, in this process."""
    before = light.allocations_per_second(gauges.clock_seconds, runs=_LIGHT_RUNS)
    measurement = measure_on(workload, engine, gauges)
    # What is left of the scheduler would otherwise be collected on the light's time.
    gauges.collect_garbage()
    after = light.allocations_per_second(gauges.clock_seconds, runs=_LIGHT_RUNS)
    return LitFigures(
        workload=workload.name,
        engine=engine,
        build=build_name(),
        light_before_per_second=before,
        light_after_per_second=after,
        measurement=measurement,
    )


def main(arguments: Sequence[str]) -> None:
    """Run one workload in this process, several of them in a process each."""
    parser = argparse.ArgumentParser(prog="tests/bench/lit_run.py", description=__doc__)
    parser.add_argument(
        "workloads", nargs="*", default=DEFAULT_NAMES, help="by default those of `licorne bench`"
    )
    parser.add_argument("--engine", choices=ENGINES, default="actors")
    chosen = parser.parse_args(arguments)
    if len(chosen.workloads) == 1:
        (name,) = chosen.workloads
        print(lit_to_json(lit_run(workload_named(name), chosen.engine, Gauges(), Light())))
        return
    for name in chosen.workloads:
        subprocess.run([sys.executable, __file__, name, "--engine", chosen.engine], check=True)  # noqa: S603


if __name__ == "__main__":
    main(sys.argv[1:])
