"""Prints a report: tables of the queues, users and groups, the use over time, and special events.

At a terminal they have its width, and there is a chart. In a pipe each row is one line with whole names and
all columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeVar

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ....model.configuration.durations import short_duration_text
from ....model.resources.resource import quantity_text
from ...base.terminal.standard_output import counted, print_table
from .accounts import COUNTS, permille
from .forecasts import ForecastScore
from .job_figures import JobFigures, JobReport
from .recorded_starts import RecordedStarts, StartAgreement
from .report import SimulationReport, TallyReport, Utilization
from .workloads.workload import InputNote

_BLOCKS: Final = " ▁▂▃▄▅▆▇█"
_ASCII_BLOCKS: Final = " .:-=+*#@"
_LINES_OF_NOTES_MAX: Final = 8
ROWS_MAX: Final = 20
"""The number of users or groups that are shown at a terminal."""

_SECOND: Final = 10**9
_Figures = TypeVar("_Figures")
_RARE: Final = frozenset({"waiting", "running", "rejected", "withdrawn", "preempted"})
"""Counts that are zero in many simulations: a column of zeros is left out."""


def print_report(report: SimulationReport, console: Console, *, plain: bool = False) -> None:
    """Print the whole report.

    Args:
        report: The report.
        console: The console to print to.
        plain: For programs: without a chart, and with all users and groups.
    """
    console.print(_headline(report), soft_wrap=plain)
    if report.never_started is not None:
        console.print(Text(report.never_started.sentence(), style="bold red"), soft_wrap=True)
    counts = [name for name in COUNTS if plain or name not in _RARE or getattr(report.total, name)]
    queues = _table("queue", report.queues, counts, plain=plain, total=report.total)
    print_table(queues, console, plain=plain)
    _print_lost(report.total.lost, console, plain=plain)
    use = _use(report)
    if plain:
        print_table(_use_table(use), console, plain=plain)
    else:
        _print_chart(use, report.end_ns, console)
    for kind, tallies in (("user", report.users), ("group", report.groups)):
        if len(tallies) > 1:
            shown = tallies if plain else _largest(tallies, lambda tally: tally.submitted)
            print_table(_table(kind, shown, counts, plain=plain), console, plain=plain)
            print_rest(len(tallies) - len(shown), kind, console)
    if report.recorded_starts is not None:
        _print_recorded(report.recorded_starts, console, plain=plain)
    if report.forecasts is not None:
        console.print(Text(_forecasts_line(report.forecasts)), soft_wrap=True)
    if report.jobs is not None:
        _print_jobs(report.jobs, console, plain=plain)
    for title, notes in remarks_of(report).items():
        print_notes(title, notes, console)
    console.print(
        f"{counted(report.decisions, 'decision')} in {report.wall_seconds:.2f} s: "
        f"{report.decisions_per_second:,.0f} decisions per second",
        highlight=False,
        soft_wrap=plain,
    )


def remarks_of(report: SimulationReport) -> dict[str, tuple[InputNote, ...]]:
    """Return the counted texts of a report by their titles, in the order of display."""
    return {
        "rejected, and why": report.rejections,
        "refused by the scheduler, and why": report.refusals,
        "answers of policies that were refused, with the first reason": report.policy_failures,
        "the scheduler contradicted its earlier messages: please report": report.surprises,
        "about the input": report.notes,
    }


def chart_line(series_permille: Sequence[int], columns: int, *, is_ascii: bool = False) -> str:
    """Draw a series as a line of blocks, one for each column; a longer series is averaged.

    Anything above zero shows at least the smallest block, and only a full thousand the full one.
    """
    blocks = _ASCII_BLOCKS if is_ascii else _BLOCKS
    length = len(series_permille)
    columns = min(columns, length)
    line = []
    for column in range(columns):
        part = series_permille[length * column // columns : length * (column + 1) // columns]
        level = sum(part) * (len(blocks) - 1) // (1000 * len(part))
        line.append(blocks[max(level, 1) if any(part) else 0])
    return "".join(line)


def _headline(report: SimulationReport) -> Text:
    """Return a summary of the simulated input, in one line."""
    text = Text(report.workload, style="bold")
    sizes = [
        counted(report.nodes, "node"),
        counted(report.total.submitted, "task"),
        counted(len(report.queues), "queue"),
    ]
    time = f"{short_duration_text(report.end_ns)} of virtual time"
    if report.is_interrupted:
        time = f"interrupted after {time}"
    text.append(f": {', '.join(sizes)}, {time}, engine {report.engine}", style="not bold")
    return text


def _largest(figures: Mapping[str, _Figures], size: Callable[[_Figures], int]) -> Mapping[str, _Figures]:
    """Return the figures with the most work, by name; at most `ROWS_MAX` of them."""
    if len(figures) <= ROWS_MAX:
        return figures
    names = sorted(figures, key=lambda name: (-size(figures[name]), name))[:ROWS_MAX]
    return {name: figures[name] for name in sorted(names)}


def print_rest(count: int, kind: str, console: Console) -> None:
    """Print the number of users or groups that are left out, if any."""
    if count:
        rest = counted(count, f"more {kind}")
        console.print(f"and {rest}, all of them in a pipe or with --json", highlight=False)


def _table(
    kind: str,
    tallies: Mapping[str, TallyReport],
    counts: Sequence[str],
    *,
    plain: bool,
    total: TallyReport | None = None,
) -> Table:
    """Return the figures by queue, user or group, and in total if that is one of the rows."""
    separator, wait = ("", "wait-") if plain else (",", "wait\n")
    heads = [f"\n{name}" for name in counts] + [f"{wait}{name}" for name in ("median", "p95", "max")]
    rows = {name: [*_counts(tally, counts, separator), *_waits(tally)] for name, tally in tallies.items()}
    totals = [*_counts(total, counts, separator), *_waits(total)] if total and len(rows) > 1 else None
    return figures_table(f"\n{kind}", heads, rows, totals)


def figures_table(
    kind: str, heads: Sequence[str], rows: Mapping[str, Sequence[str]], total: Sequence[str] | None = None
) -> Table:
    """Return a table of figures by name.

    Args:
        kind: The head of the names.
        heads: The heads of the figures.
        rows: The figures of each name as text.
        total: Those in the last line, `None` without one.
    """
    table = Table(box=SIMPLE, padding=(0, 0), show_edge=False, show_footer=total is not None)
    table.add_column(kind, "total", overflow="fold")
    for head, footer in zip(heads, total or [""] * len(heads), strict=True):
        table.add_column(head, footer, justify="right")
    for name, cells in rows.items():
        table.add_row(Text(name), *cells)
    return table


def _counts(tally: TallyReport, names: Sequence[str], separator: str) -> list[str]:
    """Return counts as text, with a separator between thousands."""
    return [format(getattr(tally, name), separator) for name in names]


def _waits(tally: TallyReport) -> list[str]:
    """Return the waiting times as text."""
    if tally.waits is None:
        return ["-", "-", "-"]
    return [short_duration_text(each) for each in (tally.waits.median, tally.waits.p95, tally.waits.max)]


def _print_lost(lost: Mapping[str, int], console: Console, *, plain: bool) -> None:
    """Print the work that was lost by preemption, if any, in whole cores and gibibytes."""
    if lost:
        units = {name: 1000 if name == "vcore" else 1 << 30 for name in lost}
        rounded = {
            name: amount - amount % units[name] if amount >= units[name] else amount
            for name, amount in lost.items()
        }
        amounts = ", ".join(f"{name} {quantity_text(name, amount)}" for name, amount in rounded.items())
        console.print(f"lost by preemption, times seconds: {amounts}", highlight=False, soft_wrap=plain)


def _print_jobs(report: JobReport, console: Console, *, plain: bool) -> None:
    """Print the figures of jobs by queue, user and group, and their makespan."""
    print_table(_job_table("queue", report.queues, plain=plain, total=report.total), console, plain=plain)
    for kind, figures in (("user", report.users), ("group", report.groups)):
        if len(figures) > 1:
            shown = figures if plain else _largest(figures, lambda one: one.jobs)
            print_table(_job_table(kind, shown, plain=plain), console, plain=plain)
            print_rest(len(figures) - len(shown), kind, console)
    if report.total.makespan_ns is not None:
        span = short_duration_text(report.total.makespan_ns)
        console.print(f"makespan of {counted(report.total.jobs, 'job')}: {span}", highlight=False)


def _job_table(
    kind: str, figures: Mapping[str, JobFigures], *, plain: bool, total: JobFigures | None = None
) -> Table:
    """Return the figures of jobs by queue, user or group, and in total if that is one of the rows."""
    separator, wait, slowdown = ("", "wait-", "slowdown-") if plain else (",", "wait\n", "slowdown\n")
    heads = [f"\n{name}" for name in ("jobs", "waited", "completed")]
    heads += ["never-started" if plain else "never\nstarted"]
    heads += [f"{wait}{name}" for name in ("mean", "p95", "max")]
    heads += [f"{slowdown}mean", "job-use" if plain else "use by\njobs"]
    rows = {name: _job_cells(one, separator) for name, one in figures.items()}
    totals = _job_cells(total, separator) if total and len(rows) > 1 else None
    return figures_table(f"\n{kind}", heads, rows, totals)


def _job_cells(figures: JobFigures, separator: str) -> list[str]:
    """Return figures of jobs as text; the use is that of the most used resource type."""
    numbers = (figures.jobs, figures.waited, figures.completed, figures.jobs - figures.started)
    counts = [format(count, separator) for count in numbers]
    wait, slowdown = figures.wait_ns, figures.slowdown
    waits = ["-"] * 3 if wait is None else map(short_duration_text, (wait.mean, wait.p95, wait.max))
    mean = "-" if slowdown is None else f"{slowdown.mean / 1000:.2f}"
    use = _percent(max(figures.use.values(), default=0)).strip()
    return [*counts, *waits, mean, use.replace(" ", "") if not separator else use]


def _print_recorded(starts: RecordedStarts, console: Console, *, plain: bool) -> None:
    """Print how many starts are those of the log, by queue."""
    console.print("starts compared with those in the log:", highlight=False)
    heads = ("jobs", "within-1m", "within-10m", "within-60m", "mean-later")
    rows = {name: _agreement_cells(one) for name, one in starts.queues.items()}
    total = _agreement_cells(starts.total) if len(rows) > 1 else None
    print_table(figures_table("queue", heads, rows, total), console, plain=plain)


def _forecasts_line(score: ForecastScore) -> str:
    """Return how good the forecasts were."""
    if not score.ranges:
        return f"forecasts: {counted(score.forecasts, 'job')} waited, too few for ranges"
    shares = [_percent(permille(one, score.ranges)).strip() for one in (score.within_90, score.within_50)]
    width, error = map(short_duration_text, (score.median_width_ns, score.median_error_ns))
    text = f"{shares[0]} were in the 90 % range and {shares[1]} in the 50 % range"
    return (
        f"forecasts: of {counted(score.ranges, 'start')} {text}; half of the 90 % ranges are at most {width} "
        f"long, half of the medians at most {error} wrong"
    )


def _agreement_cells(one: StartAgreement) -> list[str]:
    """Return an agreement as text."""
    counts = (one.within_1m, one.within_10m, one.within_60m)
    shares = [_percent(permille(count, one.jobs)).replace(" ", "") for count in counts]
    return [f"{one.jobs}", *shares, signed_duration_text(one.mean_later_ns)]


def signed_duration_text(value_ns: int) -> str:
    """Return a duration, with a sign if it is below zero."""
    return f"{'-' if value_ns < 0 else ''}{short_duration_text(abs(value_ns))}"


def _use(report: SimulationReport) -> list[tuple[str, Utilization]]:
    """Return the use of each resource type, then of the most used type of each queue."""
    lines = [("total", one) for one in report.total.utilization]
    if len(report.queues) > 1:
        dominant = ((queue, _dominant(tally)) for queue, tally in report.queues.items())
        lines += [(queue, one) for queue, one in dominant if one is not None]
    return lines


def _use_table(lines: Sequence[tuple[str, Utilization]]) -> Table:
    """Return mean and peak for programs."""
    table = Table()
    for heading in ("use-of", "resource"):
        table.add_column(heading)
    for heading in ("mean", "peak"):
        table.add_column(heading, justify="right")
    for label, one in lines:
        shares = (_percent(one.mean_permille), _percent(one.peak_permille))
        table.add_row(Text(label), Text(one.resource), *(share.replace(" ", "") for share in shares))
    return table


def _print_chart(lines: Sequence[tuple[str, Utilization]], end_ns: int, console: Console) -> None:
    """Print the use over time, a line for each."""
    if not lines:
        return
    label_width = min(max(len(label) for label, _ in lines), max(console.width // 3, 8))
    columns = max(console.width - label_width - 22 - max(len(one.resource) for _, one in lines), 8)
    is_ascii = not console.encoding.lower().startswith("utf")
    console.print(f"use of the cluster over {short_duration_text(end_ns)}, mean and peak:", highlight=False)
    for label, one in lines:
        line = chart_line(one.series_permille, columns, is_ascii=is_ascii)
        shares = f"{_percent(one.mean_permille)} {_percent(one.peak_permille)}"
        text = Text(f"  {label[:label_width]:<{label_width}} |")
        text.append(line, style="cyan")
        text.append(f"| {shares} {one.resource}")
        console.print(text, no_wrap=True, crop=True)


def _dominant(tally: TallyReport) -> Utilization | None:
    """Return the resource type that a queue used most, `None` if it used nothing."""
    most = max(tally.utilization, key=lambda one: (one.mean_permille, one.peak_permille), default=None)
    return most if most is not None and most.peak_permille else None


def _percent(permille: int) -> str:
    """Write thousandths as percent, in six columns."""
    return f"{permille // 10}.{permille % 10} %".rjust(7)


def print_notes(title: str, notes: Iterable[InputNote], console: Console) -> None:
    """Print the first ones of some counted texts."""
    notes = list(notes)
    if not notes:
        return
    console.print(f"{title}:", highlight=False, soft_wrap=True)
    for note in notes[:_LINES_OF_NOTES_MAX]:
        times = "once" if note.count == 1 else f"{note.count:,} times"
        console.print(Text(f"  {times}: {note.text}"), soft_wrap=True)
    if len(notes) > _LINES_OF_NOTES_MAX:
        rest = counted(len(notes) - _LINES_OF_NOTES_MAX, "more kind")
        console.print(f"  and {rest}", highlight=False)
