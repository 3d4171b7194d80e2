"""Run workloads, one process each, and collect their figures."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from ..core.scheduler.engine_names import EngineName
from .errors import BenchError
from .figures import Figures, figures_from_json, median_figures
from .workloads import BenchWorkload

# More than the measuring code waits at most for anything, so that its error comes first: it knows more.
_PROCESS_SECONDS_MAX: Final = 3_600


def run_all(
    workloads: Sequence[BenchWorkload],
    engines: Sequence[EngineName],
    *,
    repeat: int,
    threads: int | None = None,
    run: Callable[[BenchWorkload, EngineName], Figures] | None = None,
) -> Iterator[Figures]:
    """Give the figures of every workload on every engine, each as soon as it is done.

    Args:
        workloads: What to run, in this order.
        engines: On what to run each of them.
        repeat: How often; the run in the middle is given.
        threads: How many threads the engine `threads` has; `None` for as many as it has by default.
        run: What runs a workload once; by default a process of its own.

    Raises:
        BenchError: a run gave no figures.
    """
    assert repeat >= 1, repeat
    run_once = partial(run_in_process_of_its_own, threads=threads) if run is None else run
    for workload in workloads:
        for engine in engines:
            yield median_figures([run_once(workload, engine) for _ in range(repeat)])


def run_in_process_of_its_own(
    workload: BenchWorkload, engine: EngineName, threads: int | None = None
) -> Figures:
    """Run a workload once in a fresh interpreter; `threads` are those of the engine `threads`, if it is that.

    Raises:
        BenchError: the process failed; the message ends with what it wrote last.
    """
    command = [sys.executable, "-m", "licorne.proxy.bench.child", workload.name, engine]
    if threads is not None and engine == "threads":
        command.append(str(threads))
    try:
        done = subprocess.run(  # noqa: S603 - our own module, with names from our own tables
            command, capture_output=True, text=True, check=False, timeout=_PROCESS_SECONDS_MAX
        )
    except subprocess.TimeoutExpired as error:
        raise BenchError(f"{workload.name} on {engine}: not done after {_PROCESS_SECONDS_MAX} s") from error
    if done.returncode != 0:
        raise BenchError(f"{workload.name} on {engine}: {_last_error_line(done.stderr, done.returncode)}")
    sys.stderr.write(done.stderr)
    return figures_from_json(done.stdout)


def _last_error_line(stderr: str, status: int) -> str:
    lines = stderr.strip().splitlines()
    return lines[-1] if lines else f"the process ended with status {status} and said nothing"
