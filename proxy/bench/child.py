"""The process of one workload: `python -m licorne.proxy.bench.child WORKLOAD ENGINE [THREADS]`.

It runs the workload and writes the figures to standard output as one line of JSON. Each workload has a
process of its own, so that none finds the memory or the garbage of another.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from loguru import logger

from ...model.errors import LicorneError
from ..core.scheduler.engine_names import EngineName, engine_named
from .driver import SelfRunning, Stepped
from .figures import Figures, Measurement, figures_to_json
from .gauges import Gauges
from .measurement import measure
from .workload_table import workload_named
from .workloads import BenchWorkload


def main(arguments: Sequence[str]) -> int:
    """Run one workload on one engine.

    Args:
        arguments: The name of the workload, the name of the engine, and maybe the number of its threads.

    Returns:
        The exit status: 1 if there are no figures; what went wrong is then on standard error.
    """
    name, engine_name, *count = arguments
    threads = int(count[0]) if count else None
    logger.remove()
    logger.add(sys.stderr, level="WARNING")
    logger.enable("licorne")
    try:
        engine = engine_named(engine_name)
        measurement = measure_on_fresh_scheduler(workload_named(name), engine, Gauges(), threads)
    except LicorneError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    figures = Figures(workload=name, engine=engine, measurement=measurement, threads=threads)
    sys.stdout.write(figures_to_json(figures) + "\n")
    return 0


def measure_on_fresh_scheduler(
    workload: BenchWorkload, engine: EngineName, gauges: Gauges, threads: int | None = None
) -> Measurement:
    """Measure one workload on a scheduler that is made for it, and stopped afterwards."""
    # The facade imports the whole package; the rest of this module can be used and tested without it.
    from licorne import Scheduler  # noqa: PLC0415 - see above

    with Scheduler(engine=engine, threads=threads) as scheduler:
        driver = Stepped(scheduler, gauges) if engine == "direct" else SelfRunning(scheduler, gauges)
        return measure(workload, driver, gauges)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
