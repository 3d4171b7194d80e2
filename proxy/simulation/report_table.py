"""Show a report to a person: a table of the queues, a chart of the use over time, and what stands out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.box import SIMPLE
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console

    from .report import SimulationReport, TallyReport, Utilization
    from .workload import InputNote

__all__ = ["chart_line", "format_duration", "print_report"]

_BLOCKS: Final = " ▁▂▃▄▅▆▇█"
_ASCII_BLOCKS: Final = " .:-=+*#@"
_LINES_OF_NOTES_MAX: Final = 8
_SECOND: Final = 10**9
_UNITS_NS: Final = (
    ("d", 86_400 * _SECOND),
    ("h", 3_600 * _SECOND),
    ("m", 60 * _SECOND),
    ("s", _SECOND),
    ("ms", 10**6),
    ("us", 10**3),
    ("ns", 1),
)
# Counts that are zero in most simulations: a column of zeros tells nothing.
_RARE_COLUMNS: Final = ("running", "rejected", "withdrawn", "preempted")


def print_report(report: SimulationReport, console: Console) -> None:
    """Print the whole report."""
    console.print(_headline(report))
    console.print(_table(report))
    _print_chart(report, console)
    for title, notes in (
        ("rejected, and why", report.rejections),
        ("the scheduler said what does not fit the books", report.surprises),
        ("about the input", report.notes),
    ):
        _print_notes(title, notes, console)
    console.print(
        f"{report.decisions:,} decisions in {report.wall_seconds:.2f} s: "
        f"{report.decisions_per_second:,.0f} decisions per second",
        highlight=False,
    )


def format_duration(nanoseconds: int) -> str:
    """Write a duration for a person, in its two largest units: `3d4h`, `2m30s`, `250ms`, `0s`.

    What is smaller than the second unit is cut off.
    """
    for index, (unit, unit_ns) in enumerate(_UNITS_NS):
        if nanoseconds >= unit_ns:
            whole, rest = divmod(nanoseconds, unit_ns)
            if unit_ns <= _SECOND:
                return f"{whole}{unit}"
            smaller, smaller_ns = _UNITS_NS[index + 1]
            part = rest // smaller_ns
            return f"{whole}{unit}{part}{smaller}" if part else f"{whole}{unit}"
    return "0s"


def chart_line(series_permille: Sequence[int], columns: int, *, is_ascii: bool = False) -> str:
    """Draw a series as a line of blocks, one a column; a longer series is averaged.

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
    """Return what was simulated, in one line."""
    text = Text(report.workload, style="bold")
    text.append(
        f": {report.nodes:,} nodes, {report.total.submitted:,} tasks, {len(report.queues):,} queues, "
        f"{format_duration(report.end_ns)} of virtual time, engine {report.engine}",
        style="not bold",
    )
    return text


def _table(report: SimulationReport) -> Table:
    """Return the figures by queue and in total."""
    rare = [name for name in _RARE_COLUMNS if getattr(report.total, name)]
    counts = ["submitted", "placed", "waiting", "completed", *rare]
    table = Table(box=SIMPLE, padding=(0, 0), show_edge=False, show_footer=len(report.queues) > 1)
    table.add_column("\nqueue", "total", overflow="fold")
    for name, footer in zip(counts, _counts(report.total, counts), strict=True):
        table.add_column(f"\n{name}", footer, justify="right")
    for name, footer in zip(("median", "p95", "max"), _waits(report.total), strict=True):
        table.add_column(f"wait\n{name}", footer, justify="right")
    for queue, tally in report.queues.items():
        table.add_row(Text(queue), *_counts(tally, counts), *_waits(tally))
    return table


def _counts(tally: TallyReport, names: list[str]) -> list[str]:
    """Return counts as text."""
    return [f"{getattr(tally, name):,}" for name in names]


def _waits(tally: TallyReport) -> list[str]:
    """Return the waiting times as text."""
    if tally.waits is None:
        return ["-", "-", "-"]
    return [
        format_duration(wait_ns)
        for wait_ns in (tally.waits.median_ns, tally.waits.p95_ns, tally.waits.max_ns)
    ]


def _print_chart(report: SimulationReport, console: Console) -> None:
    """Print the use of each resource type, then of each queue the type that it uses most."""
    lines = [("total", one) for one in report.total.utilization]
    if len(report.queues) > 1:
        dominant = ((queue, _dominant(tally)) for queue, tally in report.queues.items())
        lines += [(queue, one) for queue, one in dominant if one is not None]
    if not lines:
        return
    label_width = min(max(len(label) for label, _ in lines), max(console.width // 3, 8))
    columns = max(console.width - label_width - 22 - max(len(one.resource) for _, one in lines), 8)
    is_ascii = not console.encoding.lower().startswith("utf")
    console.print(
        f"use of the cluster over {format_duration(report.end_ns)}, mean and peak:", highlight=False
    )
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


def _print_notes(title: str, notes: Iterable[InputNote], console: Console) -> None:
    """Print counted texts, the first ones."""
    notes = list(notes)
    if not notes:
        return
    console.print(f"{title}:", highlight=False)
    for note in notes[:_LINES_OF_NOTES_MAX]:
        console.print(Text(f"  {note.count:,} {note.text}"), soft_wrap=True)
    if len(notes) > _LINES_OF_NOTES_MAX:
        console.print(f"  and {len(notes) - _LINES_OF_NOTES_MAX:,} more kinds", highlight=False)
