"""Prints a comparison: the effects on all jobs, by queue and user; the largest effects; the first difference.

At a terminal columns of zeros are left out, as are queues and users after the first 20. In a pipe each row is
one line with all columns, and all queues, users and groups are printed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Final

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ....model.configuration.durations import short_duration_text
from ...base.terminal.standard_output import counted, print_table
from ..simulation.job_figures import JobFigures, JobReport, JobRow
from ..simulation.report_table import ROWS_MAX, print_notes, print_rest, remarks_of
from .comparison import JOBS_MAX, TwoRuns
from .effects import Effects, JobEffect
from .first_difference import difference_lines
from .why import why_lines

_COUNTS: Final = ("jobs", "later", "only_a", "earlier", "only_b", "same")
_HEADS: Final = {"only_a": "only-A", "only_b": "only-B"}


def print_comparison(comparison: TwoRuns, console: Console, *, plain: bool = False) -> None:
    """Print the whole comparison.

    Args:
        comparison: The comparison.
        console: The console to print to.
        plain: For programs: one line for each row, all columns, and all queues, users and groups.
    """
    effects = comparison.effects
    names = f"A is {comparison.file_a}, B is {comparison.file_b}"
    console.print(Text(f"{comparison.a.workload}: {names}", style="bold"), soft_wrap=True)
    console.print(Text(_summary(effects.total)), soft_wrap=True)
    if effects.unpaired:
        console.print(Text(f"{counted(effects.unpaired, 'job')} of one run alone: left out"), soft_wrap=True)
    _print_preempted(comparison, console)
    counts = [name for name in _COUNTS if plain or _is_shown(name, effects.total)]
    a, b = comparison.a.jobs, comparison.b.jobs
    assert a is not None, "the jobs under A were collected"
    assert b is not None, "the jobs under B were collected"
    for kind, parts in (("queue", effects.queues), ("user", effects.users), ("group", effects.groups)):
        if kind == "queue" or len(parts) > 1:
            shown = parts if plain else dict(islice(parts.items(), ROWS_MAX))
            print_table(
                _table(kind, shown, counts, (_figures(kind, a), _figures(kind, b)), plain=plain),
                console,
                plain=plain,
            )
            print_rest(len(parts) - len(shown), kind, console)
    _print_jobs("start later in B", effects.later, console, plain=plain)
    _print_jobs("start earlier in B", effects.earlier, console, plain=plain)
    reasons = () if comparison.why is None else why_lines(comparison.why)
    for line in (*difference_lines(comparison.difference), *reasons):
        console.print(Text(line), soft_wrap=True)
    _print_remarks(comparison, console)


def _is_shown(name: str, total: Effects) -> bool:
    """Return whether people see a count: some follow from the others, or are zero in most comparisons."""
    return name != "same" and (name not in _HEADS or getattr(total, name) > 0)


def _summary(total: Effects) -> str:
    """Return the effects on all jobs, in one line."""
    if not total.later and not total.earlier:
        return f"{counted(total.jobs, 'job')}: each starts at the same time in A and in B"
    later = f"{total.later:,} later in B, by {short_duration_text(total.later_ns)} in all"
    earlier = f"{total.earlier:,} earlier, by {short_duration_text(total.earlier_ns)} in all"
    if total.only_a:
        later += f" ({total.only_a:,} never in B)"
    if total.only_b:
        earlier += f" ({total.only_b:,} never in A)"
    return f"{counted(total.jobs, 'job')}: {later}; {earlier}; {total.same:,} at the same time"


def _print_preempted(comparison: TwoRuns, console: Console) -> None:
    """Print the number of preempted tasks, if any."""
    a, b = comparison.a.total.preempted, comparison.b.total.preempted
    if a or b:
        console.print(Text(f"preempted: {counted(a, 'task')} in A, {b:,} in B"), soft_wrap=True)


def _figures(kind: str, report: JobReport) -> Mapping[str, JobFigures]:
    """Return the figures of one run by queue, user or group."""
    return {"queue": report.queues, "user": report.users, "group": report.groups}[kind]


def _table(
    kind: str,
    parts: Mapping[str, Effects],
    counts: Sequence[str],
    figures: tuple[Mapping[str, JobFigures], Mapping[str, JobFigures]],
    *,
    plain: bool,
) -> Table:
    """Return the effects by queue, user or group, with the waits under A and under B."""
    separator, between = ("", "-") if plain else (",", "\n")
    table = Table(box=SIMPLE, padding=(0, 0), show_edge=False)
    heads = [_HEADS.get(name, name) for name in counts]
    heads += [f"later{between}by", f"earlier{between}by"]
    heads += [f"wait{between}{name}{between}{side}" for name in ("mean", "p95") for side in ("A", "B")]
    table.add_column(_bottom(kind), overflow="fold")
    for head in heads:
        table.add_column(_bottom(head), justify="right")
    for name, effects in parts.items():
        cells = [format(getattr(effects, count), separator) for count in counts]
        cells += map(short_duration_text, (effects.later_ns, effects.earlier_ns))
        cells += [_wait(side.get(name), figure) for figure in ("mean", "p95") for side in figures]
        table.add_row(Text(name), *cells)
    return table


def _bottom(head: str) -> str:
    """Return a head of up to three lines with empty lines above it."""
    return "\n" * (2 - head.count("\n")) + head


def _wait(figures: JobFigures | None, name: str) -> str:
    """Return a figure of the waits as text, `-` if no job has started."""
    if figures is None or figures.wait_ns is None:
        return "-"
    return short_duration_text(getattr(figures.wait_ns, name))


def _print_jobs(title: str, rows: Sequence[JobEffect], console: Console, *, plain: bool) -> None:
    """Print the jobs with the largest effect in one direction."""
    if not rows:
        return
    shown = rows[:JOBS_MAX]
    most = f", the {JOBS_MAX} with the largest effect" if len(rows) > JOBS_MAX else ""
    console.print(Text(f"{title}{most}:"), soft_wrap=True)
    table = Table(box=SIMPLE, padding=(0, 0), show_edge=False)
    for head in ("job", "queue", "user"):
        table.add_column(head, overflow="fold")
    for head in ("submitted", "wait-A", "wait-B", "by"):
        table.add_column(head, justify="right")
    for row in shown:
        by = "-" if row.delay_ns is None else short_duration_text(abs(row.delay_ns))
        table.add_row(
            *(Text(text) for text in (row.a.job, "->".join(row.queues()), "->".join(row.users()))),
            short_duration_text(row.a.submitted_ns),
            _wait_of(row.a),
            _wait_of(row.b),
            by,
        )
    print_table(table, console, plain=plain)


def _wait_of(row: JobRow) -> str:
    """Return the wait of a job for its start, as text."""
    if row.started_ns is None:
        return "never"
    return "-" if row.wait_ns is None else short_duration_text(row.wait_ns)


def _print_remarks(comparison: TwoRuns, console: Console) -> None:
    """Print the counted texts of both reports: the common ones, then those of A, then those of B."""
    for (title, of_a), of_b in zip(
        remarks_of(comparison.a).items(), remarks_of(comparison.b).values(), strict=True
    ):
        print_notes(title, [note for note in of_a if note in of_b], console)
        print_notes(f"{title}, A", [note for note in of_a if note not in of_b], console)
        print_notes(f"{title}, B", [note for note in of_b if note not in of_a], console)
