"""Runs of simulations in other processes: what cannot be sent to one, or fails there, is left to the caller.

A process gets its run as a pickle, and answers with one. It does not import the main program again, as those
of `multiprocessing` do: a script needs no guard, and what it has defined itself is not known there.
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
"""How often a thread that waits for a process looks for Ctrl-C."""


def run_elsewhere(
    work: SimulatedWorkload | Transcript,
    runs: Mapping[str, Mapping[str, Any]],
    processes: int,
    with_figures: bool,  # noqa: FBT001 - as `compare` has it
    is_interrupted: Callable[[], bool],
) -> dict[str, FinishedRun]:
    """Simulate in other processes, as far as that works; an interrupt is passed on to them.

    Args:
        work: What is simulated.
        runs: The options of each run, by its name.
        processes: How many processes there are at once.
        with_figures: Whether to collect figures over time as well.
        is_interrupted: Returns whether to stop, with what is known so far.
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
    """Return the answer of a new process, `None` where it has none."""
    with TemporaryFile() as given:  # A pipe takes 64 KiB, and to write the rest this thread had to wait.
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
    """Simulate what standard input asks for, and write the result; end with status 1 where that fails."""
    result = os.dup(1)
    os.dup2(2, 1)  # What a policy prints must not become a part of the answer.
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
