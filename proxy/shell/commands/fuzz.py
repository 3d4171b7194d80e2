"""`licorne fuzz`: simulated clusters under faults, each decided by a seed."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from ....model.errors import LicorneError
from ...base.terminal.standard_output import ends_on, write_line
from ...core.scheduler.engine_names import ENGINES
from .options import PolicyOption

_SHRINKING_SECONDS = 120.0
_LINES_MAX = 200
_ENGINES = ("direct", "actors", "threads", "reference", "door", "hostile", "files")
_ENGINE_HELP = (
    "An engine, `reference`, `door`, `hostile` or `files`; may be repeated, all unless it is given."
)


def fuzz(
    *,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The first seed.")] = 1,
    runs: Annotated[
        int | None, typer.Option("--runs", min=1, help="How many seeds; one, unless --minutes is given.")
    ] = None,
    minutes: Annotated[
        float | None, typer.Option("--minutes", min=0, help="Run seed after seed for this long.")
    ] = None,
    steps: Annotated[
        int, typer.Option("--steps", min=1, help="How many steps are planned for each seed.")
    ] = 60,
    engine: Annotated[
        list[str] | None,
        typer.Option("--engine", help=_ENGINE_HELP),
    ] = None,
    policy: PolicyOption = None,
    jobs: Annotated[int, typer.Option("--jobs", min=1, help="How many processes run plans.")] = 1,
    replay: Annotated[
        Path | None, typer.Option("--replay", help="Run this plan, which was written at a failure.")
    ] = None,
    folder: Annotated[
        Path, typer.Option("--folder", help="Where the plan of a failure is written.")
    ] = Path(),
) -> None:
    """Run simulated clusters under faults: the same seed does the same everywhere.

    A failure ends with status 1 and prints the smallest plan that reproduces it, with all its messages.
    """
    with ends_on(LicorneError, "licorne fuzz"):
        from .serve import check_installed

        check_installed("server")
        if replay is not None:
            _replay(replay)
            return
        limit = time.monotonic() + minutes * 60 if minutes is not None else None
        if minutes is None:
            runs = runs or 1
        engines = tuple(engine or (ENGINES if policy else _ENGINES))
        tried = tuple(policy or ())
        _fuzz(seed, runs, steps=steps, engines=engines, policies=tried, limit=limit, jobs=jobs, folder=folder)


def _fuzz(
    seed: int,
    runs: int | None,
    *,
    steps: int,
    engines: tuple[str, ...],
    policies: tuple[str, ...],
    limit: float | None,
    jobs: int,
    folder: Path,
) -> None:
    from ...base.files.output_files import write_whole
    from ...fuzz.plans import drawn_plan
    from ...fuzz.runs import be_quiet, run_seeds, shrunk

    be_quiet()
    summary = run_seeds(
        seed,
        runs,
        steps=steps,
        engines=engines,
        until=lambda: limit is not None and time.monotonic() > limit,
        jobs=jobs,
        policies=policies,
    )
    for engine in engines:
        done, cpu_seconds = summary.steps[engine], summary.cpu_seconds[engine]
        pace = done / cpu_seconds if cpu_seconds else 0
        runs_done = summary.runs[engine]
        write_line(f"{engine}: {runs_done:,} runs, {done:,} steps, {pace:,.0f} steps per CPU second")
    if not summary.failures:
        write_line("nothing was found")
        return
    failure = summary.failures[0]
    write_line(f"seed {failure.seed} on {failure.engine}: {failure.failure}")
    write_line(f"looking for a smaller plan for {_SHRINKING_SECONDS:g} s at most")
    plan, outcome = shrunk(drawn_plan(failure.seed, steps, failure.engine, policies), _SHRINKING_SECONDS)
    path = folder / f"fuzz-{failure.engine}-{failure.seed}.json"
    write_whole(path, plan.text())
    _show(outcome.transcript(), outcome.failure)
    write_line(f"replay it: licorne fuzz --replay {path}")
    raise typer.Exit(1)


def _replay(path: Path) -> None:
    from ...base.files.input_files import read_text
    from ...fuzz.plans import Plan
    from ...fuzz.runs import be_quiet
    from ...fuzz.world.cluster import run_plan

    be_quiet()
    outcome = run_plan(Plan.read(read_text(path), str(path)))
    _show(outcome.transcript(), outcome.failure)
    write_line(f"{outcome.steps:,} steps, trace {outcome.trace}")
    if outcome.failure is not None:
        raise typer.Exit(1)


def _show(transcript: str, failure: BaseException | None) -> None:
    from ...fuzz.runs import text_of

    rows = transcript.splitlines()
    if len(rows) > _LINES_MAX:
        write_line(f"... {len(rows) - _LINES_MAX} lines before")
    for row in rows[-_LINES_MAX:]:
        write_line(row)
    write_line("nothing was found" if failure is None else text_of(failure))
