"""One simulation from input to report."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias, final

from ....model.errors import LicorneError
from ...base.files.given_configuration import GivenConfiguration, configuration_text
from ..transcripts.player import PlayedManager, TranscriptPlayer, TranscriptRules
from .callback_guard import CallbackGuard, PredicateGuard
from .core import Core, Traffic
from .decisions import Decisions
from .driver import Driver, Progress
from .interruption import never
from .job_figures import build_job_report
from .jobs import Jobs
from .record import SimulationRecord
from .recorded_manager import RecordedManager
from .report import SimulationReport, build_report
from .reporting.figure_building import build_figures
from .reporting.run_series import RunSeries
from .simulated_rm import SimulatedRM
from .workloads.transcript_input import Transcript
from .workloads.workload import (
    InputNote,
    Workload,
    count_gangs_larger_than_the_cluster,
    count_tasks_larger_than_every_node,
)

if TYPE_CHECKING:
    from ...core.scheduler.engine_names import EngineName

CoreFactory: TypeAlias = "Callable[[EngineName], Core]"
"""Opens a core with the engine of that name; its clock may have any time."""


def simulate(
    work: Workload | Transcript,
    open_core: CoreFactory,
    *,
    engine: EngineName,
    configuration: GivenConfiguration | None,
    progress: Progress,
    stopwatch: Callable[[], float],
    is_interrupted: Callable[[], bool] = never,
    configuration_notes: tuple[InputNote, ...] = (),
    with_figures: bool = False,
    with_jobs: bool = False,
    decisions: Decisions | None = None,
) -> SimulationReport:
    """Simulate a workload or a transcript to its end, or until it is interrupted.

    Args:
        work: What is simulated.
        open_core: Opens the scheduler; it is closed at the end, whatever happens.
        engine: The name of its engine.
        configuration: The queues, as `Scheduler.register` takes them; `None` for those of the input.
        progress: Gets the progress.
        stopwatch: Real time in seconds, from any start.
        is_interrupted: Returns whether to stop, with a report of what is known so far.
        configuration_notes: The notes about that queue YAML for the report.
        with_figures: Whether to collect figures over time as well.
        with_jobs: Whether to collect figures of whole jobs as well.
        decisions: Where decisions are written down in their order, `None` for nowhere.

    Raises:
        LicorneError: The scheduler refuses the configuration.
    """
    given = None if configuration is None else configuration_text(configuration)
    series = RunSeries() if with_figures else None
    jobs = Jobs() if with_jobs else None
    record = SimulationRecord(series, jobs, decisions)
    with closing(open_core(engine)) as core:
        traffic: Traffic
        if isinstance(work, Transcript):
            traffic = TranscriptTraffic(work, core, record, given)
        else:
            text = work.default_configuration if given is None else given
            traffic = SimulatedRM(work, core, record, text)
        driver = Driver(
            core, traffic, record, progress=progress, stopwatch=stopwatch, is_interrupted=is_interrupted
        )
        result = driver.run()
        if series is not None:
            series.finish(record.waiting, record.running, record.last_change_ns)
            series.note_bounds(core.queue_bounds())
    if given is None and not isinstance(work, Transcript):
        configuration_notes = work.configuration_notes
    notes = (*_notes(work), *configuration_notes)
    report = build_report(record, result, workload=work.name, engine=engine, nodes=record.nodes, notes=notes)
    if jobs is not None:
        report = replace(report, jobs=build_job_report(jobs, record.capacity))
    if series is None:
        return report
    figures = build_figures(record, workload=work.name, engine=engine, is_interrupted=result.is_interrupted)
    return replace(report, figures=figures)


def _notes(work: Workload | Transcript) -> tuple[InputNote, ...]:
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
        record: The record that is written.
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
        """Return when the next line is due; after the last one, the end of the transcript."""
        if self._steps_done < len(self._transcript.steps):
            return self._transcript.steps[self._steps_done].at_ns
        return self._transcript.end_ns if self._now_ns() < self._transcript.end_ns else None

    def deliver(self, now_ns: int) -> None:
        """Play the lines that are due, up to the next one that runs the scheduler until idle."""
        steps = self._transcript.steps
        while self._steps_done < len(steps) and steps[self._steps_done].at_ns <= now_ns:
            step = steps[self._steps_done]
            self._steps_done += 1
            if step.line.verb == "schedule":
                return
            try:
                self._player.play(step.line)
            except LicorneError as error:
                # As in a replay, the transcript goes on after a refusal.
                self._record.remarks.refusals[f"line {step.line.number}, {step.line.verb}: {error}"] += 1

    def has_to_send(self) -> bool:
        """Return whether a release is to be confirmed; raise the error of a callback."""
        for guard in self._guards:
            guard.raise_failure()
        return bool(self._player.releases_to_confirm())

    def send(self) -> None:
        """Confirm the releases that are kept now, one request for each, in order."""
        for _ in range(self._player.releases_to_confirm()):
            self._player.confirm_next()

    def is_anything_open(self) -> bool:
        """Return whether time should go on after the last line: it should not."""
        return False

    def progress(self) -> tuple[int, int]:
        """Return how many lines were played, and how many there are."""
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
