"""Run workloads, each between two runs of the light: `python tests/bench/lit_run.py [WORKLOAD...]`.

Each workload has a process of its own, so that none finds the memory or the garbage of another; the light
runs in it before and after the workload. The figures are written to standard output, one line of JSON a
workload; `tests/bench/targets.py` reads them.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from driver import SelfRunning, Stepped
from figures import (
    BenchError,
    Figures,
    Gauges,
    Measurement,
    figures_from_json,
    figures_to_json,
    median_figures,
)
from light import Light
from measurement import measure
from workloads import DEFAULT_NAMES, WORKLOADS, BenchWorkload, workload_named

from licorne import Scheduler
from licorne.proxy.base.process import build_name
from licorne.proxy.core.scheduler.engine_names import ENGINES, EngineName

_LIGHT_RUNS: Final = 3
# More than the measuring code waits at most for anything, so that its error comes first: it knows more.
_PROCESS_SECONDS_MAX: Final = 3_600


def measure_on_fresh_scheduler(
    workload: BenchWorkload, engine: EngineName, gauges: Gauges, threads: int | None = None
) -> Measurement:
    """Measure one workload on a scheduler that is made for it, and stopped afterwards."""
    with Scheduler(engine=engine, threads=threads) as scheduler:
        driver = Stepped(scheduler, gauges) if engine == "direct" else SelfRunning(scheduler, gauges)
        return measure(workload, driver, gauges)


def lit_run(
    workload: BenchWorkload,
    engine: EngineName,
    gauges: Gauges,
    light: Light,
    *,
    threads: int | None = None,
    measure_on: Callable[
        [BenchWorkload, EngineName, Gauges, int | None], Measurement
    ] = measure_on_fresh_scheduler,
) -> Figures:
    """Run the light, the workload, and the light again, in this process."""
    before = light.allocations_per_second(gauges.clock_seconds, runs=_LIGHT_RUNS)
    measurement = measure_on(workload, engine, gauges, threads)
    # What is left of the scheduler would otherwise be collected on the light's time.
    gauges.collect_garbage()
    after = light.allocations_per_second(gauges.clock_seconds, runs=_LIGHT_RUNS)
    return Figures(
        workload=workload.name,
        engine=engine,
        build=build_name(),
        light_before_per_second=before,
        light_after_per_second=after,
        measurement=measurement,
        threads=threads,
    )


def run_in_process(workload: BenchWorkload, engine: EngineName, threads: int | None = None) -> Figures:
    """Run a workload once in a fresh interpreter; `threads` are those of the engine `threads`, if it is that.

    Raises:
        BenchError: the process failed; the message ends with what it wrote last.
    """
    command = [sys.executable, __file__, workload.name, "--engine", engine]
    if threads is not None and engine == "threads":
        command += ["--threads", str(threads)]
    try:
        done = subprocess.run(  # noqa: S603 - our own program, with names from our own tables
            command, capture_output=True, text=True, check=False, timeout=_PROCESS_SECONDS_MAX
        )
    except subprocess.TimeoutExpired as error:
        raise BenchError(f"{workload.name} on {engine}: not done after {_PROCESS_SECONDS_MAX} s") from error
    if done.returncode != 0:
        words = done.stderr.strip().splitlines() or [f"the process ended with status {done.returncode}"]
        raise BenchError(f"{workload.name} on {engine}: {words[-1]}")
    return figures_from_json(done.stdout)


def run_all(
    workloads: Sequence[BenchWorkload],
    engines: Sequence[EngineName],
    repeat: int,
    run: Callable[[BenchWorkload, EngineName], Figures],
) -> Iterator[Figures]:
    """Give the figures of every workload on every engine, each as soon as it is done.

    Each runs `repeat` times; the run in the middle is given.
    """
    for workload in workloads:
        for engine in engines:
            yield median_figures([run(workload, engine) for _ in range(repeat)])


def main(arguments: Sequence[str]) -> None:
    """Run one workload in this process, several of them, or several times, in a process each."""
    parser = argparse.ArgumentParser(prog="tests/bench/lit_run.py", description=__doc__)
    parser.add_argument(
        "workloads", nargs="*", default=DEFAULT_NAMES, help="by default those of `make bench`"
    )
    parser.add_argument("--all", action="store_true", help="run every workload")
    parser.add_argument(
        "--engine", action="append", choices=ENGINES, help="by default `actors`; may be repeated"
    )
    parser.add_argument("--threads", type=int, help="of the engine `threads`; by default two")
    parser.add_argument("--repeat", type=int, default=1, help="how often; the run in the middle is written")
    chosen = parser.parse_args(arguments)
    try:
        workloads = WORKLOADS if chosen.all else [workload_named(name) for name in chosen.workloads]
    except BenchError as error:
        parser.error(str(error))
    engines = chosen.engine or ["actors"]
    if (len(workloads), len(engines), chosen.repeat) == (1, 1, 1):
        print(figures_to_json(lit_run(workloads[0], engines[0], Gauges(), Light(), threads=chosen.threads)))
        return
    for figures in run_all(
        workloads,
        engines,
        chosen.repeat,
        lambda workload, engine: run_in_process(workload, engine, chosen.threads),
    ):
        print(figures_to_json(figures), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
