"""Simulations from a program or a notebook: load an input, simulate it, and compare several runs of it.

Nothing is printed, and nothing is kept between calls. Ctrl-C ends a simulation, which then returns the
results so far.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final, overload

from typing_extensions import Unpack

from ...model.configuration.names import did_you_mean
from ...model.errors import RequestError
from ..base.files.input_files import GivenConfiguration
from ..core.resolvers.resolver import UserResolver
from ..play.comparison.comparison import compared, comparison_document, with_why
from ..play.simulation.driver import interruption_noted
from ..play.simulation.runs import FinishedRun, RunSettings, run_each, run_settings
from ..play.simulation.workloads.inputs import Transcript, load_input
from ..play.simulation.workloads.reading import ReadingOptions, input_options
from ..play.simulation.workloads.rows import Row, nodes_of_rows, rows_of_workload, workload_of_rows
from ..play.simulation.workloads.workload import SimulatedNode, SimulatedWorkload
from .other_processes import run_elsewhere
from .simulated_runs import Run, html_table

if TYPE_CHECKING:
    from typing import Self

GivenWorkload: TypeAlias = "Workload | str | os.PathLike[str] | Mapping[str, object]"
"""The input of a simulation: a loaded workload, the path of any input, or a scenario as a mapping."""


_OPTIONS: Final = ("queues", "policies", "users", "usage", "engine", "threads")
"""The options of a run besides its input, see `simulate`."""


@final
class Workload:
    """A cluster with the jobs that are submitted to it; made by `load` or `from_rows`."""

    def __init__(self, loaded: SimulatedWorkload | Transcript) -> None:
        self._loaded = loaded

    def __repr__(self) -> str:
        return f"<Workload {self.name!r}>"

    @classmethod
    def from_rows(
        cls,
        rows: Iterable[Mapping[str, object]],
        nodes: Iterable[Mapping[str, object]] | Workload,
        *,
        name: str = "rows",
    ) -> Self:
        """Return a workload with one row for each job, such as the records of a data frame.

        Args:
            rows: The jobs, each with the resources of all its tasks together: `resources_vcore` (cores),
                `resources_memory` (bytes) and so on; with the times `submitted` and `run_time` in seconds
                (without a run time the job runs to the end); and optionally with `job`, `queue`, `user`,
                `groups` (`a;b`), `tasks`, `walltime`, `priority`, and `gang`, whether it starts as a whole.
                Other columns of `Run.jobs` are ignored.
            nodes: The cluster, as in a scenario: `{"prefix": "n", "count": 4, "resources": {"vcore": 8}}`, or
                the nodes of another workload.
            name: The name of the workload.

        Raises:
            RequestError: A value in a row or in the nodes is invalid; the error has its place.
        """
        there = cls._nodes_of(nodes) if isinstance(nodes, Workload) else nodes_of_rows(nodes)
        return cls(workload_of_rows(rows, there, name))

    @property
    def name(self) -> str:
        """The name of the workload in reports."""
        return self._loaded.name

    @property
    def jobs(self) -> list[Row]:
        """One row for each job, as `from_rows` reads it; a transcript has no jobs before it is simulated."""
        return rows_of_workload(self._jobs_of("jobs"))

    @property
    def queues(self) -> str:
        """The default queues of a run, as YAML; a transcript has them in its lines."""
        return self._jobs_of("queues").default_configuration

    def _nodes_of(self) -> tuple[SimulatedNode, ...]:
        return self._jobs_of("nodes").nodes

    def _jobs_of(self, what: str) -> SimulatedWorkload:
        """Return the loaded workload, unless it is a transcript."""
        if isinstance(self._loaded, Transcript):
            raise RequestError(f"{what}: expected a workload with jobs, got the transcript {self.name!r}")
        return self._loaded

    def _repr_html_(self) -> str:
        """Return the HTML for a notebook."""
        if isinstance(self._loaded, Transcript):
            return html_table([{"transcript": self.name}])
        jobs, nodes = len(self._loaded.applications), len(self._loaded.nodes)
        notes = {note.text: note.count for note in self._loaded.notes}
        return html_table([{"workload": self.name, "nodes": nodes, "jobs": jobs, **notes}])


@final
class Comparison(Sequence[Run]):
    """Runs of one workload, in the given order; `comparison["fifo"]` is the run of that name.

    After Ctrl-C it has the runs that had started.
    """

    def __init__(
        self,
        work: SimulatedWorkload | Transcript,
        settings: Mapping[str, RunSettings],
        finished: Mapping[str, FinishedRun],
    ) -> None:
        self._work = work
        self._settings = settings
        self._finished = finished
        self._runs: Final = tuple(Run(name, run) for name, run in finished.items())

    def __len__(self) -> int:
        return len(self._runs)

    @overload
    def __getitem__(self, index: int | str) -> Run: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Run]: ...

    def __getitem__(self, index: int | str | slice) -> Run | Sequence[Run]:
        if isinstance(index, str):
            return self._runs[list(self._finished).index(self._known(index))]
        return self._runs[index]

    @property
    def summary(self) -> list[Row]:
        """The `Run.summary` of each run."""
        return [run.summary for run in self._runs]

    @property
    def jobs(self) -> list[Row]:
        """The rows of `Run.jobs` of all runs, each with the name of its `run`."""
        return [{"run": run.name, **row} for run in self._runs for row in run.jobs]

    def document(self, a: str, b: str, *, why: bool = False) -> dict[str, Any]:
        """Return the differences of two runs in the form of `licorne compare --json`: the changes in waits.

        Args:
            a: The name of one run.
            b: The name of the other run.
            why: Whether to find the settings of the queues that cause the first different decision; the
                workload is then simulated up to 60 more times.

        Raises:
            RequestError: A run does not exist.
            InterruptedRunError: Ctrl-C has ended a simulation for `why`.
        """
        names = (self._known(a), self._known(b))
        runs = (self._finished[a], self._finished[b])
        comparison = compared(names, runs, ())
        if why:
            settings = (self._settings[a], self._settings[b])
            with interruption_noted() as is_interrupted:
                comparison = with_why(comparison, self._work, settings, runs, is_interrupted)
        return comparison_document(comparison)

    def _known(self, name: str) -> str:
        if name not in self._finished:
            known = ", ".join(map(repr, self._finished))
            raise RequestError(f"expected the name of a run ({known}), got {name!r}")
        return name

    def _repr_html_(self) -> str:
        """Return the HTML for a notebook."""
        return html_table(self.summary)


def load(
    source: str | os.PathLike[str] | Mapping[str, object], **reading: Unpack[ReadingOptions]
) -> Workload:
    """Read an input of `licorne simulate`: a log, a trace, a scenario or a transcript.

    Args:
        source: The path of the file, or a scenario as a mapping, as read from its YAML.
        reading: The options of the command as keywords: `nodes`, `csv_mapping`, `own_times`, `seed`, `gang`,
            `task_processors`, `estimate_factor`, `first`, `scale_rate`, `scale_size`, `scale_nodes`, and
            `begin` and `end` for `--from` and `--to`.

    Raises:
        LicorneError: The input cannot be read or is invalid (with its place), or an option is unknown.
    """
    return Workload(load_input(input_options(source, reading)))


def simulate(
    workload: GivenWorkload,
    *,
    name: str = "",
    queues: GivenConfiguration | None = None,
    policies: Mapping[str, Callable[[], object]] | None = None,
    users: str | os.PathLike[str] | UserResolver | None = None,
    usage: str | os.PathLike[str] | None = None,
    engine: str = "direct",
    threads: int | None = None,
    figures: bool = True,
    **reading: Unpack[ReadingOptions],
) -> Run:
    """Simulate a workload on a virtual clock, to its end or until Ctrl-C.

    Args:
        workload: A loaded workload, or an argument of `load`.
        name: The name of the run in tables.
        queues: A path (`pathlib.Path`), YAML text or a mapping; `None` for the queues of the input.
        policies: Classes of policies, by their names in the queues.
        users: A file of users with lists of groups, or a resolver.
        usage: A file with the earlier use of queues and users.
        engine: The engine of the scheduler, which is stepped.
        threads: The number of threads of the engine `threads`.
        figures: Whether to collect figures over time, for `Run.series` and the page.
        reading: The options of `load`; not allowed with a loaded workload.

    Raises:
        LicorneError: The input is invalid (the error has the place), or the scheduler refuses the queues.
    """
    work = _loaded(workload, reading)
    settings = run_settings(
        queues=queues, policies=policies, users=users, usage=usage, engine=engine, threads=threads
    )
    with interruption_noted() as is_interrupted:
        runs = run_each(work, {name: settings}, is_interrupted=is_interrupted, with_figures=figures)
    return Run(name, runs[name])


def compare(
    workload: GivenWorkload,
    runs: Mapping[str, Mapping[str, Any]],
    *,
    processes: int = 1,
    figures: bool = True,
    **reading: Unpack[ReadingOptions],
) -> Comparison:
    """Simulate one workload several times, each time with other queues or policies.

    Args:
        workload: A loaded workload, or an argument of `load`.
        runs: The options of each run, by its name: `queues`, `policies`, `users`, `usage`, `engine` and
            `threads`, as `simulate` takes them.
        processes: The number of processes. A run with a policy that another process cannot import, such as a
            class of a notebook's cell, is simulated in this process.
        figures: Whether to collect figures over time, for `Run.series` and the page.
        reading: The options of `load`; not allowed with a loaded workload.

    Raises:
        LicorneError: The input is invalid (the error has the place), or the scheduler refuses queues.
    """
    if type(processes) is not int or processes < 1:
        raise RequestError(f"processes: expected a number from 1 on, got {processes!r}")
    work = _loaded(workload, reading)
    settings = {name: _settings_of(name, options) for name, options in runs.items()}
    if not settings:
        raise RequestError("runs: expected the options of at least one run, got none")
    with interruption_noted() as is_interrupted:
        found: dict[str, FinishedRun] = {}
        if processes > 1:
            found = run_elsewhere(work, runs, processes, figures, is_interrupted)
        here = {name: one for name, one in settings.items() if name not in found}
        if here and not is_interrupted():
            found |= run_each(work, here, is_interrupted=is_interrupted, with_figures=figures)
    return Comparison(work, settings, {name: found[name] for name in settings if name in found})


def _loaded(given: GivenWorkload, reading: Mapping[str, object]) -> SimulatedWorkload | Transcript:
    """Return the workload, read now if it was not loaded."""
    if not isinstance(given, Workload):
        return load_input(input_options(given, reading))
    if reading:
        raise RequestError(f"{next(iter(reading))}: the workload is loaded already, give it to load")
    return given._loaded  # noqa: SLF001 - private for programs only


def _settings_of(name: str, options: Mapping[str, Any]) -> RunSettings:
    """Return the settings of one of several runs."""
    if not isinstance(options, Mapping):
        raise RequestError(f"runs[{name!r}]: expected a mapping of options, got {options!r:.100}")
    for option in options:
        if option not in _OPTIONS:
            known = f"{did_you_mean(option, _OPTIONS)}; known: {', '.join(_OPTIONS)}"
            raise RequestError(f"runs[{name!r}]: unknown option {option!r}{known}")
    return run_settings(name=f"queues of {name}", **options)
