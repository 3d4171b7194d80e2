"""`licorne fuzz`: simulated clusters under faults, each decided by a seed."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ....model.errors import LicorneError
from ...base.terminal.standard_output import ends_on, write_line
from ...core.scheduler.engine_names import ENGINES
from .options import AsJsonOption, PolicyOption, number_option, print_document, value_option

if TYPE_CHECKING:
    from ...fuzz.runs import RunSummary

_SHRINKING_SECONDS = 120.0
_LINES_MAX = 200
_ENGINES = ("direct", "actors", "threads", "reference", "door", "hostile", "files")
_ENGINE_HELP = (
    "An engine, `reference`, `door`, `hostile` or `files`; may be repeated, all unless it is given."
)


def fuzz(
    *,
    seed: Annotated[int, number_option("--seed", "The first seed.", at_least=0)] = 1,
    runs: Annotated[
        int | None,
        number_option("--runs", "How many seeds; one, unless --minutes is given.", at_least=1),
    ] = None,
    minutes: Annotated[
        float | None, value_option("--minutes", "MINUTES", "Run seed after seed for this long.", min=0)
    ] = None,
    steps: Annotated[
        int, number_option("--steps", "How many steps are planned for each seed.", at_least=1)
    ] = 60,
    engine: Annotated[list[str] | None, value_option("--engine", "ENGINE", _ENGINE_HELP)] = None,
    policy: PolicyOption = None,
    jobs: Annotated[int, number_option("--jobs", "How many processes run plans.", at_least=1)] = 1,
    replay: Annotated[
        Path | None, value_option("--replay", "FILE", "Run this plan, which was written at a failure.")
    ] = None,
    folder: Annotated[
        Path, value_option("--folder", "DIR", "Where the plan of a failure is written.")
    ] = Path(),
    as_json: AsJsonOption = False,
) -> None:
    """Run simulated clusters under faults: the same seed does the same everywhere.

    A failure ends with status 1 and prints the smallest plan that reproduces it, with all its messages.
    """
    with ends_on(LicorneError, "licorne fuzz"):
        from .serve import check_installed

        check_installed("server")
        if replay is not None:
            _replay(replay, as_json=as_json)
            return
        limit = time.monotonic() + minutes * 60 if minutes is not None else None
        if minutes is None:
            runs = runs or 1
        engines = tuple(engine or (ENGINES if policy else _ENGINES))
        tried = tuple(policy or ())
        summary = _run(seed, runs, steps=steps, engines=engines, policies=tried, limit=limit, jobs=jobs)
        failed = _reported(summary, steps, engines, tried, folder, as_json=as_json)
        raise typer.Exit(int(failed))


def _run(
    seed: int,
    runs: int | None,
    *,
    steps: int,
    engines: tuple[str, ...],
    policies: tuple[str, ...],
    limit: float | None,
    jobs: int,
) -> RunSummary:
    from ...fuzz.runs import be_quiet, run_seeds

    be_quiet()
    return run_seeds(
        seed,
        runs,
        steps=steps,
        engines=engines,
        until=lambda: limit is not None and time.monotonic() > limit,
        jobs=jobs,
        policies=policies,
    )


def _reported(
    summary: RunSummary,
    steps: int,
    engines: tuple[str, ...],
    policies: tuple[str, ...],
    folder: Path,
    *,
    as_json: bool,
) -> bool:
    """Print the results, with the smallest plan of the first failure; return whether one failed."""
    from ...base.files.output_files import write_whole
    from ...fuzz.plans import drawn_plan
    from ...fuzz.runs import shrunk

    write = (lambda _: None) if as_json else write_line
    document: dict[str, object] = {
        "engines": [
            {
                "engine": engine,
                "runs": summary.runs[engine],
                "steps": summary.steps[engine],
                "cpuSeconds": round(summary.cpu_seconds[engine], 3),
            }
            for engine in engines
        ],
        "failure": None,
    }
    for engine in engines:
        done, cpu_seconds = summary.steps[engine], summary.cpu_seconds[engine]
        pace = done / cpu_seconds if cpu_seconds else 0
        write(f"{engine}: {summary.runs[engine]:,} runs, {done:,} steps, {pace:,.0f} steps per CPU second")
    if summary.failures:
        failure = summary.failures[0]
        write(f"seed {failure.seed} on {failure.engine}: {failure.failure}")
        write(f"looking for a smaller plan for {_SHRINKING_SECONDS:g} s at most")
        plan, outcome = shrunk(drawn_plan(failure.seed, steps, failure.engine, policies), _SHRINKING_SECONDS)
        path = folder / f"fuzz-{failure.engine}-{failure.seed}.json"
        write_whole(path, plan.text())
        if not as_json:
            _show(outcome.transcript(), outcome.failure)
        write(f"replay it: licorne fuzz --replay {path}")
        document["failure"] = {
            "engine": failure.engine,
            "seed": failure.seed,
            "text": failure.failure,
            "plan": str(path),
        }
    else:
        write("nothing was found")
    if as_json:
        print_document(document)
    return bool(summary.failures)


def _replay(path: Path, *, as_json: bool) -> None:
    from ...base.files.input_files import read_text
    from ...fuzz.plans import Plan
    from ...fuzz.runs import be_quiet, text_of
    from ...fuzz.world.cluster import run_plan

    be_quiet()
    outcome = run_plan(Plan.read(read_text(path), str(path)))
    failure = outcome.failure
    if as_json:
        text = None if failure is None else text_of(failure)
        print_document({"steps": outcome.steps, "trace": outcome.trace, "failure": text})
    else:
        _show(outcome.transcript(), failure)
        write_line(f"{outcome.steps:,} steps, trace {outcome.trace}")
    raise typer.Exit(int(failure is not None))


def _show(transcript: str, failure: BaseException | None) -> None:
    from ...fuzz.runs import text_of

    rows = transcript.splitlines()
    if len(rows) > _LINES_MAX:
        write_line(f"... {len(rows) - _LINES_MAX} lines before")
    for row in rows[-_LINES_MAX:]:
        write_line(row)
    write_line("nothing was found" if failure is None else text_of(failure))
