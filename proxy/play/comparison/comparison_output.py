"""A comparison on standard output.

It shows the effects on all jobs, by queue and user, the largest effects, and the first difference. At a
terminal columns of zeros are left out, as are queues and users after the first 20. In a pipe each row is one
line with all columns, and all queues, users and groups are printed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ....model.configuration.durations import short_duration_text
from ...base.terminal.standard_output import counted, print_table
from ..simulation.job_figures import JobFigures, JobReport, JobRow
from ..simulation.report_table import ROWS_MAX, figures_table, print_notes, print_rest, remarks_of
from .comparison import JOBS_MAX, TwoRuns
from .effects import Effects, JobEffect, JobEffects
from .first_difference import difference_lines
from .why import why_lines
from .windows import WindowComparison

_COUNTS: Final = ("jobs", "later", "only_a", "earlier", "only_b", "same")
_OWNERS_MAX: Final = 3
"""The number of queues, and of users, that are named as those that pay or gain."""
_HEADS: Final = {"only_a": "only-A", "only_b": "only-B"}


def print_comparison(comparison: TwoRuns, console: Console, *, plain: bool = False) -> None:
    """Print the whole comparison.

    Args:
        comparison: The comparison.
        console: The console to print to.
        plain: For programs: one line for each row, all columns, and all queues, users and groups.
    """
    effects = comparison.effects
    _print_summary(comparison, console)
    if comparison.windows is not None:
        _print_windows(comparison.windows, console, plain=plain)
    counts = [name for name in _COUNTS if plain or _is_shown(name, effects.total)]
    a, b = comparison.a.jobs, comparison.b.jobs
    assert a is not None, "the jobs under A were collected"
    assert b is not None, "the jobs under B were collected"
    if not plain:
        _draw_waits(a, b, console)
    for kind, parts in (("queue", effects.queues), ("user", effects.users), ("group", effects.groups)):
        if kind == "queue" or len(parts) > 1:
            shown = parts if plain else dict(islice(parts.items(), ROWS_MAX))
            print_table(
                _terminal_table(kind, shown, counts, (_figures(kind, a), _figures(kind, b)), plain=plain),
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


def _print_summary(comparison: TwoRuns, console: Console) -> None:
    """Print the effects on all jobs, who pays and who gains, and what never started."""
    effects = comparison.effects
    names = f"A is {comparison.file_a}, B is {comparison.file_b}"
    console.print(Text(f"{comparison.a.workload}: {names}", style="bold"), soft_wrap=True)
    console.print(Text(_summary(effects.total)), soft_wrap=True)
    for side, report in (("A", comparison.a), ("B", comparison.b)):
        if report.never_started is not None:
            text = f"{side}: {report.never_started.sentence()}"
            console.print(Text(text, style="bold red"), soft_wrap=True)
    for verb, sign in (("pay", 1), ("gain", -1)):
        owners = ", ".join(_owners(effects, sign))
        if owners:
            console.print(Text(f"{verb}: {owners}"), soft_wrap=True)
    if effects.unpaired:
        console.print(Text(f"{counted(effects.unpaired, 'job')} of one run alone: left out"), soft_wrap=True)
    _print_preempted(comparison, console)


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


def _owners(effects: JobEffects, sign: int) -> Iterator[str]:
    """Yield the queues and users with the largest net loss (sign 1) or gain (sign -1), at most 3 of each."""
    for kind, parts in (("queue", effects.queues), ("user", effects.users)):
        net = {
            name: (sign * (one.only_a - one.only_b), sign * (one.later_ns - one.earlier_ns))
            for name, one in parts.items()
        }
        largest = sorted((name for name in net if net[name] > (0, 0)), key=net.__getitem__, reverse=True)
        for name in largest[:_OWNERS_MAX]:
            jobs, time_ns = net[name]
            amounts = [counted(jobs, "start")] if jobs > 0 else []
            amounts += [short_duration_text(time_ns)] if time_ns > 0 else []
            yield f"{kind} {name} ({' and '.join(amounts)})"


def _draw_waits(a: JobReport, b: JobReport, console: Console) -> None:
    """Draw the mean wait of each queue and user under A and under B, all on one scale."""
    lines = [
        (kind, name, figures[0], figures[1])
        for kind, of_a, of_b in (("queue", a.queues, b.queues), ("user", a.users, b.users))
        for name in islice(of_a, ROWS_MAX)
        if (figures := tuple(mean_wait_ns(side.get(name)) for side in (of_a, of_b))) and any(figures)
    ]
    longest = max((max(of_a, of_b) for *_, of_a, of_b in lines), default=0)
    if not longest:
        return
    width = max(len(f"{kind} {name}") for kind, name, *_ in lines)
    columns = max(console.width - width - 16, 8)
    bar = "█" if console.encoding.lower().startswith("utf") else "#"
    console.print("mean waits, A above B:", highlight=False)
    for kind, name, *waits in lines:
        for label, side, wait_ns in zip((f"{kind} {name}", ""), "AB", waits, strict=True):
            length = -(-wait_ns * columns // longest)
            text = Text(f"  {label:<{width}} {side} ")
            text.append(bar * length, style="cyan")
            text.append(f" {short_duration_text(wait_ns)}")
            console.print(text, no_wrap=True, crop=True)


def mean_wait_ns(figures: JobFigures | None) -> int:
    """Return a mean wait, 0 if no job has started."""
    return 0 if figures is None or figures.wait_ns is None else figures.wait_ns.mean


def _print_windows(windows: WindowComparison, console: Console, *, plain: bool) -> None:
    """Print the differences over windows, with their intervals."""
    shortest, longest = min(windows.days), max(windows.days)
    length = counted(longest, "day") if shortest == longest else f"{shortest} to {longest} days"
    title = f"{counted(len(windows.days), 'window')} of {length}"
    console.print(f"{title}, each from an empty cluster; B less A, 95 % interval:", highlight=False)
    rows = {
        one.name: (*one.values(), f"{one.lower_in_b}", f"{one.higher_in_b}", one.verdict())
        for one in windows.differences
    }
    heads = ("A", "B", "difference", "from", "to", "lower-in-B", "higher-in-B", "verdict")
    print_table(figures_table("figure", heads, rows), console, plain=plain)


def _print_preempted(comparison: TwoRuns, console: Console) -> None:
    """Print the number of preempted tasks, if any."""
    a, b = comparison.a.total.preempted, comparison.b.total.preempted
    if a or b:
        console.print(Text(f"preempted: {counted(a, 'task')} in A, {b:,} in B"), soft_wrap=True)


def _figures(kind: str, report: JobReport) -> Mapping[str, JobFigures]:
    """Return the figures of one run by queue, user or group."""
    return {"queue": report.queues, "user": report.users, "group": report.groups}[kind]


def _terminal_table(
    kind: str,
    parts: Mapping[str, Effects],
    counts: Sequence[str],
    figures: tuple[Mapping[str, JobFigures], Mapping[str, JobFigures]],
    *,
    plain: bool,
) -> Table:
    """Return the effects by queue, user or group, with the waits under A and under B."""
    separator, between = ("", "-") if plain else (",", "\n")
    heads = [_HEADS.get(name, name) for name in counts]
    heads += [f"later{between}by", f"earlier{between}by"]
    heads += [f"wait{between}{name}{between}{side}" for name in ("mean", "p95") for side in ("A", "B")]
    rows = {}
    for name, effects in parts.items():
        cells = [format(getattr(effects, count), separator) for count in counts]
        cells += map(short_duration_text, (effects.later_ns, effects.earlier_ns))
        cells += [_wait(side.get(name), figure) for figure in ("mean", "p95") for side in figures]
        rows[name] = cells
    return figures_table(_bottom(kind), [_bottom(head) for head in heads], rows)


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
