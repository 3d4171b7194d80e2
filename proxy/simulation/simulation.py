"""One simulation from input to report."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from .driver import Driver
from .interruption import never
from .record import SimulationRecord
from .report import build_report
from .reporting.figure_building import build_figures
from .reporting.run_series import RunSeries
from .simulated_rm import SimulatedRM
from .transcript_traffic import TranscriptTraffic
from .workloads.transcript_input import Transcript
from .workloads.workload import (
    InputNote,
    count_gangs_larger_than_the_cluster,
    count_tasks_larger_than_every_node,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..scheduler.scheduler import EngineName
    from .core import Core, Traffic
    from .driver import Progress
    from .report import SimulationReport
    from .workloads.workload import Workload

__all__ = ["CoreFactory", "simulate"]

CoreFactory: TypeAlias = "Callable[[EngineName], Core]"
"""Opens a core with the engine of that name; its clock may have any time."""


def simulate(
    work: Workload | Transcript,
    open_core: CoreFactory,
    *,
    engine: EngineName,
    configuration: str | None,
    progress: Progress,
    stopwatch: Callable[[], float],
    is_interrupted: Callable[[], bool] = never,
    configuration_notes: tuple[InputNote, ...] = (),
    with_figures: bool = False,
) -> SimulationReport:
    """Simulate a workload or a transcript to its end, or until it is interrupted.

    Args:
        work: What is simulated.
        open_core: Opens the scheduler; it is closed at the end, whatever happens.
        engine: The name of its engine.
        configuration: The queue YAML; `None` for the one of the input.
        progress: Gets the progress.
        stopwatch: Real time in seconds, from any start.
        is_interrupted: Returns whether to stop, with a report of what is known so far.
        configuration_notes: The notes about that queue YAML for the report.
        with_figures: Whether to collect figures over time as well.

    Raises:
        LicorneError: The scheduler refuses the configuration.
    """
    series = RunSeries() if with_figures else None
    record = SimulationRecord(series)
    with closing(open_core(engine)) as core:
        traffic: Traffic
        if isinstance(work, Transcript):
            traffic = TranscriptTraffic(work, core, record, configuration)
        else:
            text = work.default_configuration if configuration is None else configuration
            traffic = SimulatedRM(work, core, record, text)
        driver = Driver(
            core, traffic, record, progress=progress, stopwatch=stopwatch, is_interrupted=is_interrupted
        )
        result = driver.run()
        if series is not None:
            series.finish(record.waiting, record.running, record.last_change_ns)
            series.note_bounds(core.queue_bounds())
    if configuration is None and not isinstance(work, Transcript):
        configuration_notes = work.configuration_notes
    notes = (*_notes(work), *configuration_notes)
    report = build_report(record, result, workload=work.name, engine=engine, nodes=record.nodes, notes=notes)
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
