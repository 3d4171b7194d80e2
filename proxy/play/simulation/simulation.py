"""One simulation from input to report, optionally with a queue configuration besides the input."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, final

from ....model.configuration.names import did_you_mean
from ....model.configuration.reader import inspect, load
from ....model.configuration.schema import SchedulerConfig
from ....model.errors import LicorneError
from ....model.values.messages import short_partition_name
from ...base.files.input_files import GivenConfiguration, InputError, configuration_text, read_text
from ...si import si_pb2 as si
from ...si.constants import NODE_PARTITION
from ..transcripts.player import PlayedManager, TranscriptPlayer, TranscriptRules
from .accounts import Job, Jobs
from .core import CallbackGuard, Core, PredicateGuard, Traffic
from .driver import QUIET_LIMIT_NS, Driver, Progress, never
from .forecasts import forecasts_of
from .job_figures import build_job_report
from .record import Decisions, SimulationRecord
from .recorded_manager import RecordedManager
from .recorded_starts import recorded_starts
from .report import NeverStarted, SimulationReport, build_report
from .reporting.figure_building import build_figures
from .reporting.run_series import RunSeries
from .si_messages import PARTITION
from .simulated_rm import SimulatedRM
from .workloads.inputs import Transcript
from .workloads.workload import (
    InputNote,
    SimulatedWorkload,
    count_gangs_larger_than_the_cluster,
    count_tasks_larger_than_every_node,
)

if TYPE_CHECKING:
    from ...core.scheduler.engine_names import EngineName
    from ..transcripts.transcript import Line

CoreFactory: TypeAlias = "Callable[[EngineName], Core]"
"""Opens a core with the engine of that name; its clock may have any time."""


def simulate(
    work: SimulatedWorkload | Transcript,
    open_core: CoreFactory,
    *,
    engine: EngineName,
    configuration: GivenConfiguration | None,
    progress: Progress,
    stopwatch: Callable[[], float],
    is_interrupted: Callable[[], bool] = never,
    quiet_limit_ns: int = QUIET_LIMIT_NS,
    configuration_notes: tuple[InputNote, ...] = (),
    with_figures: bool = False,
    with_jobs: bool = False,
    decisions: Decisions | None = None,
    with_forecasts: bool = False,
) -> SimulationReport:
    """Simulate a workload or a transcript to its end, or to an interrupt.

    Args:
        work: The workload or transcript.
        open_core: Opens the scheduler; it is always closed at the end.
        engine: The name of its engine.
        configuration: The queues, as for `Scheduler.register`; `None` for those of the input.
        progress: The receiver of the progress.
        stopwatch: Real time in seconds, from any start.
        is_interrupted: Returns whether to stop, with a report of the results so far.
        quiet_limit_ns: The time without any change after which it ends, as in `Driver`.
        configuration_notes: The notes about that queue YAML for the report.
        with_figures: Whether to collect figures over time as well.
        with_jobs: Whether to collect figures of whole jobs as well.
        decisions: The list for decisions in their order, `None` without one.
        with_forecasts: Whether to forecast the starts of jobs that wait.

    Raises:
        LicorneError: The scheduler refuses the configuration, or there are no forecasts for this work.
    """
    given = None if configuration is None else configuration_text(configuration)
    series = RunSeries() if with_figures else None
    jobs = Jobs() if with_jobs or with_forecasts else None
    record = SimulationRecord(series, jobs, decisions)
    with closing(open_core(engine)) as core:
        traffic = _traffic(work, core, record, given)
        driver = Driver(
            core,
            traffic,
            record,
            progress=progress,
            stopwatch=stopwatch,
            is_interrupted=is_interrupted,
            quiet_limit_ns=quiet_limit_ns,
        )
        forecasts = None
        if jobs is not None and with_forecasts:
            forecasts = forecasts_of(work, jobs, traffic, driver, engine=engine)
        result = driver.run(after_each=None if forecasts is None else forecasts.look)
        if series is not None:
            series.finish(record.waiting, record.running, record.last_change_ns)
            series.note_bounds(core.queue_bounds())
        policy_failures = core.policy_failures()
        never_started = None
        if jobs is not None and not result.is_interrupted:
            never_started = _never_started(list(jobs), core, record)
    if given is None and not isinstance(work, Transcript):
        configuration_notes = work.configuration_notes
    notes = (*_notes(work), *configuration_notes)
    report = build_report(
        record,
        result,
        workload=work.name,
        engine=engine,
        nodes=record.nodes,
        notes=notes,
        policy_failures=policy_failures,
    )
    if jobs is not None:
        score = None if forecasts is None else forecasts.score()
        report = replace(_with_jobs(report, work, jobs, record), never_started=never_started, forecasts=score)
    if series is None:
        return report
    figures = build_figures(record, workload=work.name, engine=engine, is_interrupted=result.is_interrupted)
    return replace(report, figures=figures)


def _traffic(
    work: SimulatedWorkload | Transcript, core: Core, record: SimulationRecord, given: str | None
) -> Traffic:
    """Return the side of the resource managers; without given queues it has those of the input."""
    if isinstance(work, Transcript):
        return TranscriptTraffic(work, core, record, given)
    return SimulatedRM(work, core, record, work.default_configuration if given is None else given)


def _with_jobs(
    report: SimulationReport, work: SimulatedWorkload | Transcript, jobs: Jobs, record: SimulationRecord
) -> SimulationReport:
    """Return a report with the figures of jobs, and their agreement with the starts of a log."""
    job_report = build_job_report(jobs, record.capacity)
    starts = recorded_starts(job_report.rows, _recorded_ns(work))
    return replace(report, jobs=job_report, recorded_starts=starts)


def _recorded_ns(work: SimulatedWorkload | Transcript) -> dict[str, int]:
    """Return the starts that the input has recorded, by job."""
    applications = () if isinstance(work, Transcript) else work.applications
    starts_ns = ((each.application_id, each.recorded_start_ns) for each in applications)
    return {name: start_ns for name, start_ns in starts_ns if start_ns is not None}


def _never_started(jobs: Sequence[Job], core: Core, record: SimulationRecord) -> NeverStarted | None:
    """Return the jobs that have not started, with the reason of the first one."""
    left = [job for job in jobs if job.started_at_ns is None]
    if not left:
        return None
    first = left[0]
    reason = core.waits_because(first.name)
    if first.rejected:
        reason = reason or next(iter(record.remarks.rejections), "")
    return NeverStarted(jobs=len(left), of=len(jobs), first=first.name, reason=reason)


def _notes(work: SimulatedWorkload | Transcript) -> tuple[InputNote, ...]:
    """Return the notes of the report about the input."""
    if isinstance(work, Transcript):
        return ()
    notes = (
        InputNote(
            count_tasks_larger_than_every_node(work),
            "task larger than every node: submitted all the same, never placed",
        ),
        InputNote(
            count_gangs_larger_than_the_cluster(work),
            "gang larger than the whole cluster: never starts as one",
        ),
    )
    return (*work.notes, *(note for note in notes if note.count))


@final
class TranscriptTraffic:
    """All resource managers of a transcript; a `Traffic`.

    Args:
        transcript: Their requests.
        core: The scheduler; virtual time starts at the time of its clock.
        record: The record of the simulation.
        configuration: The queue YAML that replaces that of every registration; `None` keeps those.
    """

    def __init__(
        self, transcript: Transcript, core: Core, record: SimulationRecord, configuration: str | None = None
    ) -> None:
        self._transcript = transcript
        self._core = core
        self._record = record
        self._origin_ns = core.now_ns()
        self._steps_done = 0
        self._guards: list[CallbackGuard] = []
        self._player = TranscriptPlayer(
            core.api, self._recorded_manager, configuration=configuration, callback_of=self._guarded
        )

    def start(self) -> None:
        """Do nothing: the registration is in the transcript."""

    def next_event_ns(self) -> int | None:
        """Return the time of the next line; after the last one, the end of the transcript."""
        if self._steps_done < len(self._transcript.steps):
            return self._transcript.steps[self._steps_done].at_ns
        return self._transcript.end_ns if self._now_ns() < self._transcript.end_ns else None

    def deliver(self, now_ns: int) -> None:
        """Play the due lines, up to the next one that runs the scheduler until idle."""
        steps = self._transcript.steps
        while self._steps_done < len(steps) and steps[self._steps_done].at_ns <= now_ns:
            step = steps[self._steps_done]
            self._steps_done += 1
            if step.line.verb == "schedule":
                return
            try:
                self._player.play(step.line)
            except LicorneError as error:
                # As in a replay, the transcript continues after a refusal.
                self._record.remarks.refusals[f"line {step.line.number}, {step.line.verb}: {error}"] += 1

    def has_to_send(self) -> bool:
        """Return whether a release has to be confirmed; raise the error of a callback."""
        for guard in self._guards:
            guard.raise_failure()
        return bool(self._player.releases_to_confirm())

    def send(self) -> None:
        """Confirm the kept releases, one request for each, in order."""
        for _ in range(self._player.releases_to_confirm()):
            self._player.confirm_next()

    def is_anything_open(self) -> bool:
        """Return whether time should continue after the last line: it should not."""
        return False

    def progress(self) -> tuple[int, int]:
        """Return the number of played lines, and of all lines."""
        return self._steps_done, len(self._transcript.steps)

    def _now_ns(self) -> int:
        """Return the virtual time from the start."""
        return self._core.now_ns() - self._origin_ns

    def _recorded_manager(self, rm_id: str, rules: TranscriptRules) -> RecordedManager:
        return RecordedManager(rm_id, rules, self._record, self._now_ns, self._core.queue_and_user)

    def _guarded(self, manager: PlayedManager) -> CallbackGuard:
        guard = PredicateGuard(manager)
        self._guards.append(guard)
        return guard


@dataclass(frozen=True, slots=True)
class GivenQueues:
    """The configuration of a file, as text and as parsed settings."""

    path: Path
    text: str
    config: SchedulerConfig

    def check_partitions(self, wanted: Collection[str] = (PARTITION,)) -> None:
        """Refuse a configuration without any partition of the nodes.

        Args:
            wanted: The partitions of the nodes; by default the one of all workloads except transcripts.

        Raises:
            InputError: The configuration has none of these partitions.
        """
        there = [partition.name for partition in self.config.partitions]
        if wanted and not set(wanted) & set(there):
            name = min(wanted)
            message = f"there is no partition {name!r}, to which the nodes of the input come"
            known = f"; the partitions are: {', '.join(there) or 'none'}"
            raise InputError(self.path, f"{message}{known}{did_you_mean(name, there)}")

    def checked_notes(self, work: SimulatedWorkload | Transcript) -> tuple[InputNote, ...]:
        """Refuse a configuration that does not fit the work; return warnings about it.

        Raises:
            InputError: The configuration has none of the partitions of the nodes.
        """
        if isinstance(work, SimulatedWorkload):
            self.check_partitions()
            return self.notes(work.node_types())
        lines = [step.line for step in work.steps]
        self.check_partitions(partitions_in(lines))
        return self.notes(node_types_in(lines))

    def notes(self, node_types: Collection[str]) -> tuple[InputNote, ...]:
        """Return warnings: allowed settings that are probably a mistake, given the resources of the nodes."""
        warnings = inspect(self.text, str(self.path), node_types=node_types).warnings
        return tuple(InputNote(1, str(warning)) for warning in warnings)


def read_queues(path: Path) -> GivenQueues:
    """Read a configuration.

    Raises:
        InputError: The file cannot be read.
        ConfigurationError: The file is not a configuration; the error has all problems.
    """
    text = read_text(path)
    return GivenQueues(path, text, load(text, source=str(path)))


def given_queues(given: GivenConfiguration, name: str) -> GivenQueues:
    """Return a configuration from a program: a path, YAML text or a mapping.

    Args:
        given: The configuration.
        name: The name, in messages, of one that is not in a file.

    Raises:
        LicorneError: It cannot be read, or is not a configuration; the error has all problems.
    """
    if isinstance(given, os.PathLike):
        return read_queues(Path(given))
    text = configuration_text(given)
    return GivenQueues(Path(name), text, load(text, source=name))


def node_types_in(lines: Iterable[Line]) -> set[str]:
    """Return the resource types of the nodes of a transcript."""
    return {name for node in _nodes(lines) for name in node.schedulableResource.resources}


def partitions_in(lines: Iterable[Line]) -> set[str]:
    """Return the partitions of the nodes of a transcript."""
    return {
        short_partition_name(node.attributes.get(NODE_PARTITION, "") or PARTITION) for node in _nodes(lines)
    }


def _nodes(lines: Iterable[Line]) -> Iterator[si.NodeInfo]:
    for line in lines:
        if line.verb == "node":
            yield from line.message(si.NodeRequest).nodes
