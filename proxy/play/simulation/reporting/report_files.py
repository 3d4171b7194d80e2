"""The report as files: one HTML page for people, JSON that can be read again for a comparison, and CSV."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import ValidationError

from ....base.files.input_files import InputError, read_text
from ....base.files.json_text import JsonError, parse_json
from ....base.terminal.standard_output import counted
from .figures import FORMAT, KIND, QueueFigures, RunFigures
from .page_parts import ShownRun, alert, change_of, factor, number, percent, tiles_of, time
from .page_sections import (
    dominant_resource,
    fairness_section,
    packing_section,
    preemption_section,
    queue_section,
    wait_section,
)

_TEMPLATE: Final = Path(__file__).with_name("page.html")
_NOTES: Final = Path(__file__).with_name("figure_notes.html")
_PLACE: Final = re.compile(r"@([a-z_]+)@")
_COLUMNS: Final = ("figure", "queue", "item", "start_ns", "end_ns", "value")
FigureRow = tuple[str, str, str, int, int, int]


class _Tile(NamedTuple):
    """One value of the head: its name, its number for differences, its kind, and a note."""

    name: str
    value: int | None
    kind: str
    note: str


def to_html(figures: RunFigures, other: RunFigures | None = None, never_started: str = "") -> str:
    """Return the page.

    Args:
        figures: The figures of a simulation.
        other: The figures of another simulation, which are shown next to it with the differences.
        never_started: The sentence about jobs that never started; empty if all did, or it is unknown.
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
            "tiles": (alert(never_started) if never_started else "") + _tiles(runs),
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
    """Return a summary of the simulation in one line."""
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
        items.append((tile.name, _shown(tile), note))
    return tiles_of(*items)


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
    """Return the shades of the classes of nodes: fuller nodes are darker."""
    shades = ["8%", *(f"{14 + 86 * at // (count - 2)}%" for at in range(count - 1))]
    return "\n".join(
        f".class-{at} {{ fill: var(--accent); fill-opacity: {shade}; }}"
        f" .key.class-{at} {{ opacity: {shade}; }}"
        for at, shade in enumerate(shades)
    )


def to_json(figures: RunFigures) -> str:
    """Return the figures as one line of JSON."""
    left_out = None if figures.decayed_fairness else {"decayed_fairness"}
    return f"{figures.model_dump_json(exclude=left_out)}\n"


def read_figures(path: Path) -> RunFigures:
    """Read the figures written by `to_json`.

    Raises:
        InputError: The file cannot be read, or has other contents.
    """
    try:
        document = parse_json(read_text(path))
    except JsonError as error:
        raise InputError(path, f"is not JSON: {error}") from error
    wanted = "a document of figures, as `licorne simulate --report-json` writes them"
    kind = document.get("kind") if isinstance(document, dict) else None
    if not isinstance(document, dict) or kind != KIND:
        raise InputError(path, f"is not {wanted}: its kind is {kind!r}, not {KIND!r}")
    if document.get("format") != FORMAT:
        raise InputError(path, f"has the format {document.get('format')!r}; this program reads {FORMAT}")
    try:
        # This goes through text: in a JSON document a list stands for a tuple.
        return RunFigures.model_validate_json(read_text(path))
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(str(step) for step in first["loc"]) or "the document"
        given = repr(first["input"])
        short = given if len(given) <= 80 else f"{given[:77]}..."
        raise InputError(path, f"is not {wanted}: {place}: {first['msg']}, not {short}") from error


def to_csv(figures: RunFigures) -> str:
    """Return the figures as CSV: a row for each value, with its figure, its queue, and its interval.

    The columns are `figure`, `queue` (empty for the whole cluster), `item` (a resource type, a class of
    nodes, a reason), `start_ns`, `end_ns` and `value`. Values are in the units of the JSON document.
    """
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(_COLUMNS)
    writer.writerows(figure_rows(figures))
    return file.getvalue()


def figure_rows(figures: RunFigures) -> Iterator[FigureRow]:
    """Yield a row for each value: figure, queue, item, start and end in nanoseconds, value."""
    for name, values in figures.cluster_capacity.items():
        yield from _over_time(figures, "capacity", "", name, values)
    for queue in (figures.total, *figures.queues):
        yield from _queue_rows(figures, queue)
    yield from _over_time(figures, "fairness_permille", "", "", figures.fairness)
    for decayed in figures.decayed_fairness:
        yield from _over_time(figures, "decayed_fairness_permille", decayed.parent, "", decayed.index)
    for use_class, values in zip(figures.packing.classes, figures.packing.by_class, strict=True):
        yield from _over_time(figures, "nodes_permille", "", use_class, values)
    for resource, shares in figures.packing.fragmentation.items():
        yield from _over_time(figures, "fragmentation_permille", "", resource, shares)
    for group in figures.preemptions.groups:
        item = f"{group.reason}: {group.for_queue}" if group.for_queue else group.reason
        yield ("preemptions", group.queue, item, 0, figures.end_ns, group.count)


def _queue_rows(figures: RunFigures, queue: QueueFigures) -> Iterator[FigureRow]:
    """Yield the rows of one queue."""
    name = queue.queue
    for kind, amounts in (("guaranteed", queue.guaranteed), ("maximum", queue.maximum)):
        for resource, value in amounts.items():
            yield (kind, name, resource, 0, figures.end_ns, value)
    for kind, value in queue.tasks.model_dump().items():
        yield (f"tasks_{kind}", name, "", 0, figures.end_ns, value)
    if queue.waits is not None:
        for kind in ("p50_ns", "p90_ns", "p99_ns", "max_ns"):
            yield (f"wait_{kind}", name, "", 0, figures.end_ns, getattr(queue.waits, kind))
        bounds = [*map(str, figures.wait_bounds_ns), "more"]
        for bound, count in zip(bounds, queue.waits.classes, strict=True):
            yield ("wait_class", name, bound, 0, figures.end_ns, count)
    for kind, series in (("used", queue.used), ("pending", queue.pending)):
        for resource, values in series.items():
            yield from _over_time(figures, kind, name, resource, values)


def _over_time(
    figures: RunFigures, kind: str, queue: str, item: str, values: tuple[int | None, ...]
) -> Iterator[FigureRow]:
    """Yield a row for each interval with a value."""
    for at, value in enumerate(values):
        if value is not None:
            start_ns = at * figures.interval_ns
            yield (kind, queue, item, start_ns, min(start_ns + figures.interval_ns, figures.end_ns), value)
