"""The report as one HTML file that needs nothing else: no script, no other file, no address."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Final, NamedTuple

from ....base.terminal.tables import counted
from .figures import RunFigures
from .node_sections import fairness_section, packing_section, preemption_section
from .page_text import change_of, factor, number, percent, time
from .queue_sections import dominant_resource, queue_section, wait_section
from .shown_runs import ShownRun

_TEMPLATE: Final = Path(__file__).with_name("page.html")
_NOTES: Final = Path(__file__).with_name("figure_notes.html")
_PLACE: Final = re.compile(r"@([a-z_]+)@")


class _Tile(NamedTuple):
    """One value of the head: its name, its number for differences, its kind, and a note."""

    name: str
    value: int | None
    kind: str
    note: str


def to_html(figures: RunFigures, other: RunFigures | None = None) -> str:
    """Return the page.

    Args:
        figures: The figures of a simulation.
        other: Those of another one, which are shown beside it with the differences.
    """
    runs = [ShownRun("", "", figures)]
    if other is not None:
        runs = [ShownRun("this run", "a", figures), ShownRun("compared with", "b", other)]
    sections = [
        wait_section(runs),
        queue_section(runs),
        fairness_section(runs),
        packing_section(runs),
        preemption_section(runs),
    ]
    interval = " and ".join(dict.fromkeys(time(run.figures.interval_ns) for run in runs))
    return filled_page(
        {
            "title": escape(f"{figures.workload}: simulation report"),
            "class_styles": _class_styles(len(figures.packing.classes)),
            "heading": escape(figures.workload),
            "summary": "<br>".join(_summary(run) for run in runs),
            "tiles": _tiles(runs),
            "sections": "\n".join(sections),
            "notes": _NOTES.read_text(encoding="utf-8").strip().replace("@interval@", interval),
        }
    )


def filled_page(parts: Mapping[str, str]) -> str:
    """Return a page with its style.

    Args:
        parts: The HTML of `title`, `heading`, `summary`, `tiles`, `sections` and `notes`, and further CSS,
            `class_styles`.
    """
    return _PLACE.sub(lambda match: parts[match[1]], _TEMPLATE.read_text(encoding="utf-8"))


def _summary(run: ShownRun) -> str:
    """Return in one line what was simulated."""
    figures = run.figures
    ended = "interrupted after " if figures.interrupted else ""
    parts = [
        counted(figures.nodes, "node"),
        counted(figures.total.tasks.submitted, "task"),
        counted(sum(queue.is_leaf for queue in figures.queues), "queue"),
        f"{ended}{time(figures.end_ns)} of virtual time",
        f"engine {figures.engine}",
    ]
    name = f"{run.label}: {figures.workload}, " if run.label else ""
    return escape(f"{name}{', '.join(parts)}")


def _tiles(runs: list[ShownRun]) -> str:
    """Return the most important values, with those of the other run."""
    tiles = [_values(run.figures) for run in runs]
    items = []
    for at, tile in enumerate(tiles[0]):
        note = tile.note
        if len(tiles) > 1:
            before = tiles[1][at]
            change = change_of(tile.value, before.value, tile.kind)
            note = f"{_shown(before)} in the other run: {change}"
        items.append(
            f'<div><dt>{escape(tile.name)}</dt><dd class="value">{escape(_shown(tile))}</dd>'
            f'<dd class="note">{escape(note)}</dd></div>'
        )
    return f'<dl class="tiles">{"".join(items)}</dl>'


def _values(figures: RunFigures) -> list[_Tile]:
    """Return the values of the head of one run."""
    tasks, waits = figures.total.tasks, figures.total.waits
    p50, p90, p99, longest = (
        (None,) * 4 if waits is None else (waits.p50_ns, waits.p90_ns, waits.p99_ns, waits.max_ns)
    )
    slowdown = figures.total.slowdown
    mean, median = (None, None) if slowdown is None else (slowdown.mean, slowdown.p50)
    resource = dominant_resource(figures.total, figures)
    use = figures.mean_use_permille(resource)
    return [
        _Tile("tasks placed", tasks.placed, "count", f"of {number(tasks.submitted)}"),
        _Tile("median wait", p50, "time", f"90 % within {time(p90)}"),
        _Tile("99 % waited at most", p99, "time", f"longest {time(longest)}"),
        _Tile("bounded slowdown", mean, "factor", f"mean; median {factor(median)}"),
        _Tile("makespan", figures.makespan_ns, "time", "from the first ask to the last end"),
        _Tile(f"{resource or 'cluster'} in use", use, "percent", "mean of the whole time"),
        _Tile("fairness", figures.fairness_mean, "percent", "mean of the whole time"),
        _Tile(
            "preemptions",
            figures.preemptions.count,
            "count",
            f"{number(tasks.waiting)} tasks wait at the end",
        ),
    ]


def _shown(tile: _Tile) -> str:
    """Return the value of a tile as text."""
    if tile.kind == "count" and tile.value is not None:
        return number(tile.value)
    return {"time": time, "factor": factor}.get(tile.kind, percent)(tile.value)


def _class_styles(count: int) -> str:
    """Return the shades of the classes of nodes: the fuller, the stronger."""
    shades = ["8%", *(f"{14 + 86 * at // (count - 2)}%" for at in range(count - 1))]
    return "\n".join(
        f".class-{at} {{ fill: var(--accent); fill-opacity: {shade}; }}"
        f" .key.class-{at} {{ opacity: {shade}; }}"
        for at, shade in enumerate(shades)
    )
