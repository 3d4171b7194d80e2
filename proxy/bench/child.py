"""The process of one workload: `python -m licorne.proxy.bench.child WORKLOAD ENGINE [THREADS]`.

It runs the light, the workload and the light again, and writes the figures to standard output as one line of
JSON. Each workload has a process of its own, so that none finds the memory or the garbage of another.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from loguru import logger

from ...model.errors import LicorneError
from .driver import SelfRunning, Stepped
from .engine import EngineKind
from .figures import Figures, Measurement, figures_to_json
from .gauges import Gauges
from .measurement import measure
from .workload_table import workload_named
from .workloads import BenchWorkload

if TYPE_CHECKING:
    from .light import Light

__all__ = ["MeasureOn", "light_if_installed", "main", "measure_on_fresh_scheduler", "run_workload"]

MeasureOn: TypeAlias = "Callable[[BenchWorkload, EngineKind, Gauges], Measurement]"

_LIGHT_RUNS: Final = 3


def main(arguments: Sequence[str]) -> int:
    """Run one workload on one engine.

    Args:
        arguments: The name of the workload, the name of the engine, and maybe the number of its threads.

    Returns:
        The exit status: 1 if there are no figures; what went wrong is then on standard error.
    """
    name, engine, *count = arguments
    threads = int(count[0]) if count else None
    measure_on = partial(measure_on_fresh_scheduler, threads=threads)
    logger.remove()
    logger.add(sys.stderr, level="WARNING")
    logger.enable("licorne")
    try:
        figures = run_workload(
            workload_named(name), EngineKind(engine), Gauges(), light_if_installed(), measure_on
        )
    except LicorneError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(figures_to_json(replace(figures, threads=threads)) + "\n")
    return 0


def run_workload(
    workload: BenchWorkload, engine: EngineKind, gauges: Gauges, light: Light | None, measure_on: MeasureOn
) -> Figures:
    """Run the light, the workload, and the light again.

    Args:
        workload: What to run.
        engine: On what to run it.
        gauges: What time and memory are read from.
        light: The unit of the ratios; `None` where it is not to be had.
        measure_on: What measures one workload on one engine, see `measure_on_fresh_scheduler`.
    """
    before = _pace_of(light, gauges)
    measurement = measure_on(workload, engine, gauges)
    # What is left of the scheduler would otherwise be collected on the light's time.
    gauges.collect_garbage()
    after = _pace_of(light, gauges)
    return Figures(
        workload=workload.name,
        engine=engine,
        light_before_per_second=before,
        light_after_per_second=after,
        measurement=measurement,
    )


def _pace_of(light: Light | None, gauges: Gauges) -> float | None:
    return None if light is None else light.allocations_per_second(gauges.clock_seconds, runs=_LIGHT_RUNS)


def light_if_installed() -> Light | None:
    """Return the light, `None` where the extra `bench` is not installed."""
    try:
        from .light import Light  # noqa: PLC0415 - see above
    except ModuleNotFoundError:
        return None
    return Light()


def measure_on_fresh_scheduler(
    workload: BenchWorkload, engine: EngineKind, gauges: Gauges, threads: int | None = None
) -> Measurement:
    """Measure one workload on a scheduler that is made for it, and stopped afterwards."""
    # The facade imports the whole package; the rest of this module can be used and tested without it.
    from licorne import Scheduler  # noqa: PLC0415 - see above

    with Scheduler(engine=engine.value, threads=threads) as scheduler:
        driver = Stepped(scheduler, gauges) if engine is EngineKind.DIRECT else SelfRunning(scheduler, gauges)
        return measure(workload, driver, gauges)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
