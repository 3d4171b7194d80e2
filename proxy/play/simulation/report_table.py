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
from .job_figures import JobFigures, JobReport
from .report import SimulationReport, TallyReport, Utilization
from .workloads.workload import InputNote

_BLOCKS: Final = " ▁▂▃▄▅▆▇█"
_ASCII_BLOCKS: Final = " .:-=+*#@"
_LINES_OF_NOTES_MAX: Final = 8
ROWS_MAX: Final = 20
"""The number of users or groups that are shown at a terminal."""

_SECOND: Final = 10**9
_COUNTS: Final = (
    "submitted",
    "placed",
    "waiting",
    "running",
    "completed",
    "rejected",
    "withdrawn",
    "preempted",
)
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
    counts = [name for name in _COUNTS if plain or name not in _RARE or getattr(report.total, name)]
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
        "the scheduler said what contradicts its earlier messages: please report": report.surprises,
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
    show_total = total is not None and len(tallies) > 1
    separator, wait = ("", "wait-") if plain else (",", "wait\n")
    table = Table(box=SIMPLE, padding=(0, 0), show_edge=False, show_footer=show_total)
    table.add_column(f"\n{kind}", "total", overflow="fold")
    for name, footer in zip(counts, _counts(total, counts, separator), strict=True):
        table.add_column(f"\n{name}", footer, justify="right")
    for name, footer in zip(("median", "p95", "max"), _waits(total), strict=True):
        table.add_column(f"{wait}{name}", footer, justify="right")
    for name, tally in tallies.items():
        table.add_row(Text(name), *_counts(tally, counts, separator), *_waits(tally))
    return table


def _counts(tally: TallyReport | None, names: Sequence[str], separator: str) -> list[str]:
    """Return counts as text, with a separator between thousands."""
    return [format(getattr(tally, name, 0), separator) for name in names]


def _waits(tally: TallyReport | None) -> list[str]:
    """Return the waiting times as text."""
    if tally is None or tally.waits is None:
        return ["-", "-", "-"]
    return [
        short_duration_text(wait_ns)
        for wait_ns in (tally.waits.median_ns, tally.waits.p95_ns, tally.waits.max_ns)
    ]


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
    show_total = total is not None and len(figures) > 1
    separator, wait, slowdown = ("", "wait-", "slowdown-") if plain else (",", "wait\n", "slowdown\n")
    table = Table(box=SIMPLE, padding=(0, 0), show_edge=False, show_footer=show_total)
    heads = [f"\n{name}" for name in ("jobs", "waited", "completed")]
    heads += [f"{wait}{name}" for name in ("mean", "p95", "max")]
    heads += [f"{slowdown}mean", "job-use" if plain else "use by\njobs"]
    table.add_column(f"\n{kind}", "total", overflow="fold")
    for head, footer in zip(heads, _job_cells(total, separator), strict=True):
        table.add_column(head, footer, justify="right")
    for name, one in figures.items():
        table.add_row(Text(name), *_job_cells(one, separator))
    return table


def _job_cells(figures: JobFigures | None, separator: str) -> list[str]:
    """Return figures of jobs as text; the use is that of the most used resource type."""
    if figures is None:
        return [""] * 8
    counts = [format(count, separator) for count in (figures.jobs, figures.waited, figures.completed)]
    wait, slowdown = figures.wait_ns, figures.slowdown
    waits = ["-"] * 3 if wait is None else map(short_duration_text, (wait.mean, wait.p95, wait.max))
    mean = "-" if slowdown is None else f"{slowdown.mean / 1000:.2f}"
    use = _percent(max(figures.use.values(), default=0)).strip()
    return [*counts, *waits, mean, use.replace(" ", "") if not separator else use]


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
