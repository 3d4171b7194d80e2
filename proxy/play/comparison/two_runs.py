"""Simulate one input under two configurations, compare the runs, and simulate again to explain them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import final

from ...core.scheduler.engine_names import EngineName
from ..simulation.core import Core
from ..simulation.decisions import Decisions
from ..simulation.driver import NoProgress
from ..simulation.given_queues import GivenQueues
from ..simulation.progress import progress_on
from ..simulation.scheduler_core import SchedulerCore
from ..simulation.simulation import simulate
from ..simulation.workloads.transcript_input import Transcript
from ..simulation.workloads.workload import InputNote, Workload
from .comparison import ComparedRun, Comparison, build_comparison
from .conditions import Condition
from .probing import ProbedCore, Probes
from .why import InterruptedRunError, explained


@final
class TwoRuns:
    """One input under the configurations A and B.

    Args:
        work: The input.
        queues: A and B.
        engine: The name of the engine.
        open_core: Opens a scheduler.
        is_interrupted: Returns whether the user has interrupted.

    Raises:
        LicorneError: A configuration does not fit the input.
    """

    def __init__(
        self,
        work: Workload | Transcript,
        queues: tuple[GivenQueues, GivenQueues],
        *,
        engine: EngineName,
        open_core: Callable[[EngineName], SchedulerCore],
        is_interrupted: Callable[[], bool],
    ) -> None:
        self._work = work
        self._queues = queues
        self._notes = [given.checked_notes(work) for given in queues]
        self._engine: EngineName = engine
        self._open_core = open_core
        self._is_interrupted = is_interrupted

    def compared(self, conditions: Iterable[Condition], *, with_reasons: bool) -> Comparison | None:
        """Simulate and compare; return `None` where that was interrupted.

        Args:
            conditions: What is asked about the effects.
            with_reasons: Whether to simulate again, to say why the runs differ.

        Raises:
            LicorneError: The scheduler refuses a configuration, or a condition is about no job.
        """
        runs = []
        for given, notes in zip(self._queues, self._notes, strict=True):
            run = self._run(given, notes)
            if run.report.is_interrupted:
                return None
            runs.append(run)
        a, b = runs
        comparison = build_comparison(a, b, conditions)
        if not with_reasons or comparison.difference is None:
            return comparison
        try:
            why = explained(
                comparison.difference,
                comparison.effects,
                (a.decisions, b.decisions),
                self._queues,
                self._run_again,
            )
        except InterruptedRunError:
            return None
        return replace(comparison, why=why)

    def _run(self, given: GivenQueues, notes: tuple[InputNote, ...]) -> ComparedRun:
        """Simulate the input under one of the configurations."""
        decisions = Decisions()
        with progress_on(sys.stderr, f"{self._work.name} under {given.path}") as progress:
            report = simulate(
                self._work,
                self._open_core,
                engine=self._engine,
                configuration=given.text,
                progress=progress,
                stopwatch=time.perf_counter,
                is_interrupted=self._is_interrupted,
                configuration_notes=notes,
                with_jobs=True,
                decisions=decisions,
            )
        return ComparedRun(file=str(given.path), report=report, decisions=tuple(decisions))

    def _run_again(
        self,
        configuration: str,
        decisions: Decisions,
        *,
        probes: Probes | None = None,
        is_done: Callable[[], bool] | None = None,
    ) -> None:
        """Simulate the input once more; a `Rerun`."""

        def open_core(name: EngineName) -> Core:
            core = self._open_core(name)
            return core if probes is None else ProbedCore(core, decisions, probes)

        simulate(
            self._work,
            open_core,
            engine=self._engine,
            configuration=configuration,
            progress=NoProgress(),
            stopwatch=time.perf_counter,
            is_interrupted=lambda: self._is_interrupted() or (is_done is not None and is_done()),
            decisions=decisions,
        )
        if self._is_interrupted():
            raise InterruptedRunError("interrupted")
