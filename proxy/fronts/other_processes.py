"""Runs of simulations in other processes; the caller runs those that cannot be sent there, or fail there.

A process receives its run as a pickle, and returns a pickle. Unlike the processes of `multiprocessing` it
does not import the main program again: a script needs no guard, and its own definitions are unknown there.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from tempfile import TemporaryFile
from typing import Any, Final

from ..play.simulation.driver import interruption_noted
from ..play.simulation.runs import FinishedRun, run_each, run_settings
from ..play.simulation.workloads.inputs import Transcript
from ..play.simulation.workloads.workload import SimulatedWorkload

_PROGRAM: Final = (
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); "
    "from licorne.proxy.fronts.other_processes import answer; answer()"
)
_LOOK_SECONDS: Final = 0.2
"""The interval at which a thread that waits for a process checks for Ctrl-C."""


def run_elsewhere(
    work: SimulatedWorkload | Transcript,
    runs: Mapping[str, Mapping[str, Any]],
    processes: int,
    with_figures: bool,  # noqa: FBT001 - as `compare` has it
    is_interrupted: Callable[[], bool],
) -> dict[str, FinishedRun]:
    """Simulate in other processes where possible; an interrupt is passed on to them.

    Args:
        work: The workload.
        runs: The options of each run, by its name.
        processes: The number of processes at once.
        with_figures: Whether to collect figures over time as well.
        is_interrupted: Returns whether to stop, with the results so far.
    """

    def one(name: str) -> FinishedRun | None:
        try:
            job = pickle.dumps(sys.path) + pickle.dumps((work, name, dict(runs[name]), with_figures))
        except Exception:  # noqa: BLE001 - whatever an object raises that cannot be sent
            return None
        return None if b"__main__" in job or is_interrupted() else _answered(job, is_interrupted)

    with ThreadPoolExecutor(processes) as pool:
        found = dict(zip(runs, pool.map(one, runs), strict=True))
    return {name: run for name, run in found.items() if run is not None}


def _answered(job: bytes, is_interrupted: Callable[[], bool]) -> FinishedRun | None:
    """Return the answer of a new process, `None` without an answer."""
    with TemporaryFile() as given:  # A pipe takes 64 KiB; writing more would block this thread.
        given.write(job)
        given.seek(0)
        process = subprocess.Popen(  # noqa: S603 - this Python
            [sys.executable, "-c", _PROGRAM], stdin=given, stdout=subprocess.PIPE, start_new_session=True
        )
    with process:
        is_interrupting = False
        while True:
            try:
                output, _ = process.communicate(timeout=_LOOK_SECONDS)
                break
            except subprocess.TimeoutExpired:
                if is_interrupted() and not is_interrupting:
                    is_interrupting = True
                    process.send_signal(signal.SIGINT)
    answer: FinishedRun | None = pickle.loads(output) if process.returncode == 0 else None  # noqa: S301 - ours
    return answer


def answer() -> None:
    """Run the simulation on standard input, and write the result; exit with status 1 on failure."""
    result = os.dup(1)
    os.dup2(2, 1)  # Output of a policy must not become part of the answer.
    try:
        with interruption_noted() as is_interrupted:
            work, name, options, with_figures = pickle.load(sys.stdin.buffer)  # noqa: S301 - of who started us
            settings = {name: run_settings(name=f"queues of {name}", **options)}
            runs = run_each(work, settings, is_interrupted=is_interrupted, with_figures=with_figures)
            output = pickle.dumps(runs[name])
    except Exception:  # noqa: BLE001 - it is simulated again by who asks, and the error is seen there
        sys.exit(1)
    with contextlib.suppress(BrokenPipeError), os.fdopen(result, "wb") as file:
        file.write(output)
