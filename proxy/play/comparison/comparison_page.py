"""A comparison as one self-contained HTML file without scripts.

It begins with what never starts and with who pays and who gains, drawn on one scale. Then follow the windows
with their intervals, the first decision that differs, and the largest effects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Final

from ...base.terminal.standard_output import counted
from ..simulation.job_figures import JobFigures
from ..simulation.reporting.page_parts import alert, interval, number, share_bar, table, tiles_of, time
from ..simulation.reporting.report_files import filled_page
from .comparison import JOBS_MAX, TwoRuns
from .comparison_output import mean_wait_ns
from .effects import Effects, JobEffect
from .first_difference import difference_lines
from .why import Why, settings_line
from .windows import WindowComparison

_PAGE_ROWS_MAX: Final = 50
_NOTES: Final = """\
<h2>What the figures mean</h2>
<dl>
<dt>Later, earlier</dt><dd>Jobs that start later or earlier in B than in A. Those that start in one run \
alone are counted apart: they have no delay.</dd>
<dt>Later by, earlier by</dt><dd>The delays of the jobs that start in both runs, added up.</dd>
<dt>Who pays</dt><dd>The jobs that start later in B, by queue and by user. A job that both configurations \
place in different queues counts in both.</dd>
</dl>"""


def comparison_html(comparison: TwoRuns) -> str:
    """Return the page."""
    effects, workload = comparison.effects, comparison.a.workload
    a, b = comparison.a.jobs, comparison.b.jobs
    assert a is not None, "the jobs under A were collected"
    assert b is not None, "the jobs under B were collected"
    queues, users = (a.queues, b.queues), (a.users, b.users)
    most_ns = max((mean_wait_ns(one) for side in (*queues, *users) for one in side.values()), default=0)
    owners = _parts("queue", effects.queues, queues, most_ns) + _parts("user", effects.users, users, most_ns)
    sections = [
        _section("Who pays and who gains", owners),
        _section("The first decision that differs", _difference(comparison)),
        _section(
            "Jobs",
            _jobs("Start later in B", effects.later) + _jobs("Start earlier in B", effects.earlier),
        ),
    ]
    if comparison.why is not None:
        sections.insert(2, _section("Settings", _settings(comparison.why)))
        sections.append(_section("What follows", _consequences(comparison.why)))
    if comparison.windows is not None:
        sections.insert(1, _section("Windows", _windows(comparison.windows)))
    if comparison.conditions:
        results = [
            (result.condition.text, "yes" if result.holds else "no") for result in comparison.conditions
        ]
        sections.append(_section("Conditions", table("Conditions", ("condition", "holds"), results, texts=2)))
    return filled_page(
        {
            "title": escape(f"{workload}: comparison"),
            "class_styles": "",
            "heading": escape(workload),
            "summary": escape(f"A is {comparison.file_a}, B is {comparison.file_b}"),
            "tiles": _never_started(comparison) + _tiles(effects.total, effects.unpaired),
            "sections": "\n".join(sections),
            "notes": _NOTES,
        }
    )


def _section(title: str, body: str) -> str:
    """Return a section with its title."""
    return f"<section><h2>{escape(title)}</h2>{body}</section>"


def _paragraphs(lines: Iterable[str]) -> str:
    """Return each line as a paragraph."""
    return "".join(f"<p>{escape(line.strip())}</p>" for line in lines)


def _tiles(total: Effects, unpaired: int) -> str:
    """Return the most important numbers."""
    return tiles_of(
        ("jobs", number(total.jobs), f"{number(unpaired)} of one run alone, left out"),
        ("later in B", number(total.later), f"{number(total.only_a)} never start in B"),
        ("later by", time(total.later_ns), "added up"),
        ("earlier in B", number(total.earlier), f"{number(total.only_b)} never start in A"),
        ("earlier by", time(total.earlier_ns), "added up"),
        ("at the same time", number(total.same), "in A and in B"),
    )


def _difference(comparison: TwoRuns) -> str:
    """Return the first difference, with the first differing step if it was requested."""
    lines = [*difference_lines(comparison.difference)]
    if comparison.why is not None:
        lines += comparison.why.step.lines
    return _paragraphs(lines)


def _settings(why: Why) -> str:
    """Return the differing settings, with marks at those that are needed for the first difference."""
    needed = () if why.needed is None else why.needed.changes
    rows = [
        (
            setting.name,
            setting.in_a or "not set",
            setting.place_a,
            setting.in_b or "not set",
            setting.place_b,
            "yes" if setting in needed else "no",
        )
        for setting in why.settings
    ]
    heads = ("setting", "A", "place in A", "B", "place in B", "makes it differ")
    return _paragraphs([settings_line(why)]) + _bounded("Settings that differ", heads, rows, texts=6)


def _never_started(comparison: TwoRuns) -> str:
    """Return what never starts in A and in B, with the first reasons."""
    reports = (("A", comparison.a), ("B", comparison.b))
    return "".join(
        alert(f"{side}: {report.never_started.sentence()}")
        for side, report in reports
        if report.never_started is not None
    )


def _windows(windows: WindowComparison) -> str:
    """Return the differences over windows, with their intervals drawn: those of a figure on one scale."""
    most: dict[str, int] = {}
    for one in windows.differences:
        most[one.figure] = max(most.get(one.figure, 0), abs(one.low), abs(one.high))
    rows = [
        (
            one.name,
            *one.values(),
            interval(one.low, one.difference, one.high, most[one.figure]),
            one.verdict(),
        )
        for one in windows.differences
    ]
    heads = ("figure", "A", "B", "difference", "from", "to", "B lower | higher", "verdict")
    title = f"B less A in {counted(len(windows.days), 'window')}, with intervals of 95 %"
    return table(title, heads, rows)


def _parts(
    kind: str,
    parts: Mapping[str, Effects],
    figures: tuple[Mapping[str, JobFigures], Mapping[str, JobFigures]],
    most_ns: int,
) -> str:
    """Return the effects by queue or user, the largest losses first, with the mean waits in A and in B."""
    rows = []
    for name, effects in parts.items():
        a_ns, b_ns = (mean_wait_ns(side.get(name)) for side in figures)
        row = [name, number(effects.jobs), time(a_ns), share_bar(a_ns, most_ns)]
        row += [time(b_ns), share_bar(b_ns, most_ns), number(effects.later), number(effects.only_a)]
        row += [
            time(effects.later_ns),
            number(effects.earlier),
            number(effects.only_b),
            time(effects.earlier_ns),
        ]
        rows.append(row)
    heads = (kind, "jobs", "mean wait in A", "", "in B", "", "later", "never in B", "later by")
    return _bounded(f"By {kind}", (*heads, "earlier", "never in A", "earlier by"), rows)


def _jobs(title: str, rows: Sequence[JobEffect]) -> str:
    """Return the jobs with the largest effects in one direction."""
    if not rows:
        return ""
    cells = [
        (
            row.a.job,
            "->".join(row.queues()),
            "->".join(row.users()),
            time(row.a.submitted_ns),
            time(row.a.wait_ns),
            time(row.b.wait_ns),
            time(None if row.delay_ns is None else abs(row.delay_ns)),
        )
        for row in rows[:JOBS_MAX]
    ]
    heads = ("job", "queue", "user", "submitted", "wait in A", "wait in B", "by")
    return table(f"{title}: {counted(len(rows), 'job')}", heads, cells, texts=3)


def _consequences(why: Why) -> str:
    """Return, for each job that starts at another time, the job that has its room."""
    rows = [
        (
            each.job,
            each.waits_in,
            each.node_id,
            each.taken_by or "no other job",
            each.reason or "nothing known",
        )
        for each in why.consequences
    ]
    heads = ("job", "waits in", "room on", "taken by", "what blocks it")
    return table("Jobs whose start differs", heads, rows, texts=5)


def _bounded(caption: str, heads: Sequence[str], rows: Sequence[Sequence[str]], *, texts: int = 1) -> str:
    """Return a table of at most 50 rows, with a note about the others."""
    rest = len(rows) - _PAGE_ROWS_MAX
    return table(caption, heads, rows[:_PAGE_ROWS_MAX], texts=texts) + _paragraphs(_rest(rest))


def _rest(count: int) -> Iterator[str]:
    """Yield a note about the rows that are left out, if any."""
    if count > 0:
        yield f"and {number(count)} more, which the JSON document has"
