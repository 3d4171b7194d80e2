"""A comparison as one self-contained HTML file, without scripts and references to other files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Final

from ...base.terminal.standard_output import counted
from ..simulation.reporting.page_parts import bars, number, table, time
from ..simulation.reporting.report_files import filled_page
from .comparison import JOBS_MAX, TwoRuns
from .effects import Effects, JobEffect
from .first_difference import difference_lines
from .why import Why, settings_line

_ROWS_MAX: Final = 50
_BARS_MAX: Final = 12
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
    sections = [
        _section("The first decision that differs", _difference(comparison)),
        _section("Who pays", _parts("queue", effects.queues) + _parts("user", effects.users)),
        _section(
            "Jobs",
            _jobs("Start later in B", effects.later) + _jobs("Start earlier in B", effects.earlier),
        ),
    ]
    if comparison.why is not None:
        sections.insert(1, _section("Settings", _settings(comparison.why)))
        sections.append(_section("What follows", _consequences(comparison.why)))
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
            "tiles": _tiles(effects.total, effects.unpaired),
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
    tiles = [
        ("jobs", number(total.jobs), f"{number(unpaired)} of one run alone, left out"),
        ("later in B", number(total.later), f"{number(total.only_a)} never start in B"),
        ("later by", time(total.later_ns), "added up"),
        ("earlier in B", number(total.earlier), f"{number(total.only_b)} never start in A"),
        ("earlier by", time(total.earlier_ns), "added up"),
        ("at the same time", number(total.same), "in A and in B"),
    ]
    items = (
        f'<div><dt>{escape(name)}</dt><dd class="value">{escape(value)}</dd>'
        f'<dd class="note">{escape(note)}</dd></div>'
        for name, value, note in tiles
    )
    return f'<dl class="tiles">{"".join(items)}</dl>'


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


def _parts(kind: str, parts: Mapping[str, Effects]) -> str:
    """Return the effects by queue or user, the largest losses first, with a chart of the losses."""
    rows = [
        (
            name,
            number(effects.jobs),
            number(effects.later),
            number(effects.only_a),
            time(effects.later_ns),
            number(effects.earlier),
            number(effects.only_b),
            time(effects.earlier_ns),
        )
        for name, effects in parts.items()
    ]
    heads = (kind, "jobs", "later", "never in B", "later by", "earlier", "never in A", "earlier by")
    losing = {name: effects.later_ns for name, effects in parts.items() if effects.later_ns}
    shown = dict(list(losing.items())[:_BARS_MAX])
    chart = ""
    if shown:
        title = f"Later by, by {kind}: {', '.join(f'{name} {time(ns)}' for name, ns in shown.items())}"
        chart = (
            f'<figure class="chart"><figcaption><span>{escape(title)}</span></figcaption>'
            f"{bars(f'pays-{kind}', f'Later by, by {kind}', tuple(shown), tuple(shown.values()))}</figure>"
        )
    return chart + _bounded(f"By {kind}", heads, rows)


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
    rest = len(rows) - _ROWS_MAX
    return table(caption, heads, rows[:_ROWS_MAX], texts=texts) + _paragraphs(_rest(rest))


def _rest(count: int) -> Iterator[str]:
    """Yield a note about the rows that are left out, if any."""
    if count > 0:
        yield f"and {number(count)} more, which the JSON document has"
