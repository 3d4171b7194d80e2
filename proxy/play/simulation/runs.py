"""Runs of a simulation by a command or a program: their settings and results, one by one or in processes.

Another process receives its run as a pickle, and returns a pickle. Unlike the processes of `multiprocessing`
it does not import the main program again: a script needs no guard, and its own definitions are unknown there.
The caller itself runs those that cannot be sent, or fail there.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Final, TypeAlias, final

from ....actors.services.clocks import EPOCH_2000_NS
from ....model.configuration.problems import ConfigurationError
from ....model.configuration.reader import policy_problems
from ....model.policies.policies import GivenPolicies, PolicyFactory, PolicyPoint
from ....model.queues.use_order import KeptUse
from ...base.files.input_files import GivenConfiguration
from ...base.process import prepare_process
from ...core.resolvers.resolver import UserResolver, read_users
from ...core.scheduler.engine_names import EngineName, engine_named
from ...views.dumps import begun_at, read_usage
from .core import Core, SchedulerCore
from .driver import HELD_LIMIT_NS, QUIET_LIMIT_NS, NoProgress, interruption_noted, never, progress_on
from .record import Decision, Decisions
from .report import SimulationReport
from .simulation import GivenQueues, given_queues, simulate
from .workloads.inputs import Transcript
from .workloads.workload import SimulatedWorkload

GivenPath: TypeAlias = "str | os.PathLike[str]"
CoreOfSettings: TypeAlias = "Callable[[RunSettings], Core]"
_PROGRAM: Final = (
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); "
    "from licorne.proxy.play.simulation.runs import answer_run; answer_run()"
)
_LONG_TASKS: Final = 2_000
"""From how many tasks on the start of another process, about a second of CPU time, is worth its cost."""
_LOOK_SECONDS: Final = 0.2
"""The interval at which a thread that waits for a process checks for Ctrl-C."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """The settings of a run besides its input.

    Attributes:
        queues: The queues that replace those of the input; `None` keeps those.
        policies: The policies that the queues may name.
        resolver: The resolver of the groups of users, which replaces the configured ones; `None` keeps those.
        usage: The use of queues and users at the start of the simulation.
        engine: The engine of the scheduler.
        threads: The number of threads of the engine; `None` for one.
        quiet_limit_ns: The time without any change after which the run ends: longer if a policy holds starts.
    """

    queues: GivenQueues | None = None
    policies: Mapping[str, PolicyFactory] = field(default_factory=dict)
    resolver: UserResolver | None = None
    usage: Mapping[str, KeptUse] = field(default_factory=dict)
    engine: EngineName = "direct"
    threads: int | None = None
    quiet_limit_ns: int = QUIET_LIMIT_NS


def run_settings(
    *,
    name: str = "queues",
    queues: GivenConfiguration | None = None,
    policies: Mapping[str, PolicyFactory] | None = None,
    users: GivenPath | UserResolver | None = None,
    usage: GivenPath | None = None,
    engine: str = "direct",
    threads: int | None = None,
) -> RunSettings:
    """Read the settings of a run.

    Args:
        name: The name, in messages, of queues that are not in a file.
        queues: The queues: a path, YAML text or a mapping; `None` for those of the input.
        policies: Classes of policies, or other factories, by their names in the queues.
        users: A file of users with lists of groups, or a resolver; `None` for the configured ones.
        usage: A file with the use of queues and users, as `licorne serve --usage-file` writes it.
        engine: The name of an engine.
        threads: The number of threads of the engine `threads`.

    Raises:
        LicorneError: A setting cannot be read, is invalid or unknown.
    """
    given = None if queues is None else given_queues(queues, name)
    points = GivenPolicies(policies or {}).points
    holds = any(PolicyPoint.ADMISSION in each for each in points.values())
    if given is not None and (problems := policy_problems(given.config, points, source=str(given.path))):
        raise ConfigurationError(problems)
    return RunSettings(
        queues=given,
        policies=dict(policies or {}),
        resolver=read_users(Path(users)) if isinstance(users, str | os.PathLike) else users,
        usage={} if usage is None else begun_at(EPOCH_2000_NS, *read_usage(Path(usage))),
        engine=engine_named(engine),
        threads=threads,
        quiet_limit_ns=HELD_LIMIT_NS if holds else QUIET_LIMIT_NS,
    )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRun:
    """One simulation: its report with figures of jobs, and its decisions."""

    report: SimulationReport
    decisions: Sequence[Decision]


def opened_core(settings: RunSettings, core: Callable[..., SchedulerCore] = SchedulerCore) -> SchedulerCore:
    """Open the scheduler for some settings; the core is a kind of `SchedulerCore`.

    Raises:
        LicorneError: The engine cannot have that number of threads, or a policy cannot be given.
    """
    return core(settings.engine, settings.resolver, settings.threads, settings.usage, settings.policies)


def run_each(
    work: SimulatedWorkload | Transcript,
    settings: Mapping[str, RunSettings],
    *,
    is_shown: bool = False,
    is_interrupted: Callable[[], bool] = never,
    with_figures: bool = False,
    with_forecasts: bool = False,
    open_core: CoreOfSettings = opened_core,
) -> dict[str, FinishedRun]:
    """Simulate a workload or a transcript under each of some settings, one after the other.

    Args:
        work: The workload or transcript.
        settings: The settings of each run by its name, which may be empty.
        is_shown: Whether a bar on standard error, if that is a terminal, shows the progress.
        is_interrupted: Returns whether to stop, with the results so far.
        with_figures: Whether to collect figures over time as well.
        with_forecasts: Whether to forecast the starts of jobs that wait.
        open_core: Opens the scheduler.

    Returns:
        The runs by name. An interrupted run is the last one.

    Raises:
        LicorneError: Queues do not fit the work, and nothing has been simulated; or the scheduler refuses
            them.
    """
    notes = {
        name: () if one.queues is None else one.queues.checked_notes(work) for name, one in settings.items()
    }
    finished: dict[str, FinishedRun] = {}
    for name, one in settings.items():
        description = f"{work.name} under {name}" if name else work.name
        decisions = Decisions()
        with progress_on(sys.stderr, description) if is_shown else nullcontext(NoProgress()) as progress:
            report = simulate(
                work,
                partial(_opened, open_core, one),
                engine=one.engine,
                configuration=None if one.queues is None else one.queues.text,
                configuration_notes=notes[name],
                progress=progress,
                stopwatch=time.perf_counter,
                is_interrupted=is_interrupted,
                quiet_limit_ns=one.quiet_limit_ns,
                with_figures=with_figures,
                with_jobs=True,
                decisions=decisions,
                with_forecasts=with_forecasts,
            )
        finished[name] = FinishedRun(report=report, decisions=tuple(decisions))
        if report.is_interrupted:
            break
    return finished


def _opened(open_core: CoreOfSettings, settings: RunSettings, _: EngineName) -> Core:
    return open_core(settings)


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


def run_beside(
    work: SimulatedWorkload | Transcript,
    settings: Mapping[str, RunSettings],
    options: Mapping[str, Any],
    is_interrupted: Callable[[], bool],
) -> dict[str, FinishedRun]:
    """Simulate under each of two settings, long workloads under the second one in another process meanwhile.

    Args:
        work: The workload or transcript.
        settings: The two settings by name.
        options: The options that give the second ones, as `run_settings` takes them.
        is_interrupted: Returns whether to stop, with the results so far.

    Returns:
        The runs by name, in the order of the settings.

    Raises:
        LicorneError: As for `run_each`.
    """
    here = partial(run_each, work, is_shown=True, is_interrupted=is_interrupted)
    if isinstance(work, Transcript) or work.task_count() < _LONG_TASKS:
        return here(settings)
    for one in settings.values():
        if one.queues is not None:
            one.queues.checked_notes(work)
    first, second = settings
    with ThreadPoolExecutor(1) as pool:
        elsewhere = pool.submit(run_elsewhere, work, {second: options}, 1, False, is_interrupted)
        finished = here({first: settings[first]})
        beside = elsewhere.result()
    if finished[first].report.is_interrupted:
        return finished
    return finished | (beside or here({second: settings[second]}))


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


def answer_run() -> None:
    """Run the simulation on standard input, and write the result; exit with status 1 on failure."""
    prepare_process()
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
    with suppress(BrokenPipeError), os.fdopen(result, "wb") as file:
        file.write(output)
