"""The parts of the page about fairness, the packing of nodes, and preemptions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from .charts import Area, Axis, Chart, draw
from .figures import RunFigures
from .page_text import change_of, number, percent, table, time
from .shown_runs import ShownRun, longest_ns, side_by_side

_STYLES: Final = ("first", "second", "third", "fourth")
_GROUPS_MAX: Final = 200
_LISTED_MAX: Final = 200


def _percent_axis(runs: Sequence[ShownRun]) -> Axis:
    return Axis(end_ns=longest_ns(runs), top=1000, show=percent)


def fairness_section(runs: Sequence[ShownRun]) -> str:
    """Return the fairness over time."""
    charts = []
    for run in runs:
        figures = run.figures
        known = [value for value in figures.fairness if value is not None]
        charts.append(
            draw(
                Chart(
                    key=f"f{run.suffix}",
                    title="Fairness among queues",
                    subtitle=run.subtitle(f"mean {percent(figures.fairness_mean)}"),
                    description=f"Mean {percent(figures.fairness_mean)}, lowest "
                    f"{percent(min(known, default=None))}; 100 % is every queue at its fair share.",
                    axis=_percent_axis(runs),
                    interval_ns=figures.interval_ns,
                    end_ns=figures.end_ns,
                    areas=(Area(name="fairness", style="first", values=figures.fairness, is_line=True),),
                    has_legend=False,
                )
            )
        )
    return (
        '<section class="wide"><h2>Fairness over time</h2><p class="soft">Jain&rsquo;s index of what '
        "queues have relative to their fair share. Where the line is missing, nothing is in use.</p>"
        f"{side_by_side(charts)}{_decayed_fairness(runs)}</section>"
    )


def _decayed_fairness(runs: Sequence[ShownRun]) -> str:
    """Return the fairness of what queues have used over time, nothing where no parent has a half-life."""
    charts = [
        draw(
            Chart(
                key=f"d{run.suffix}-{number_of}",
                title=f"Fairness of the decayed use below {one.parent}",
                subtitle=run.subtitle(f"mean {percent(one.index_mean)}"),
                description=f"Mean {percent(one.index_mean)}; 100 % is as much by weight for all, where what "
                f"is past counts half after {time(one.half_life_ns)}.",
                axis=_percent_axis(runs),
                interval_ns=run.figures.interval_ns,
                end_ns=run.figures.end_ns,
                areas=(Area(name="fairness", style="first", values=one.index, is_line=True),),
                has_legend=False,
            )
        )
        for run in runs
        for number_of, one in enumerate(run.figures.decayed_fairness)
    ]
    return side_by_side(charts) if charts else ""


def packing_section(runs: Sequence[ShownRun]) -> str:
    """Return how full nodes are over time, and how their free room is split up."""
    full = [_packing_chart(run, runs) for run in runs]
    split = [_fragmentation_chart(run, runs) for run in runs if run.figures.packing.fragmentation]
    parts = side_by_side(full) + (side_by_side(split) if split else "")
    return (
        '<section class="wide"><h2>Packing of nodes</h2><p class="soft">How many nodes are how full, the '
        "fullest at the bottom; and how much of the free room is in pieces.</p>"
        f'<div class="grid-of-charts pairs">{parts}</div></section>'
    )


def _packing_chart(run: ShownRun, runs: Sequence[ShownRun]) -> str:
    """Return the classes of nodes, stacked from the fullest to the empty ones."""
    figures = run.figures
    packing = figures.packing
    bottom = [0] * len(figures.fairness)
    areas = []
    for at in range(len(packing.classes) - 1, -1, -1):
        top = [min(low + value, 1000) for low, value in zip(bottom, packing.by_class[at], strict=True)]
        if any(packing.by_class[at]):
            areas.append(
                Area(
                    name=packing.classes[at],
                    style=f"class-{at}",
                    values=top,
                    bottom=bottom,
                    shown=packing.by_class[at],
                )
            )
        bottom = top
    means = [
        (figures.mean_of(values), name)
        for name, values in zip(packing.classes, packing.by_class, strict=True)
    ]
    said = ", ".join(f"{name}: {percent(mean)}" for mean, name in means if mean)
    return draw(
        Chart(
            key=f"p{run.suffix}",
            title="Nodes by how full they are",
            subtitle=run.subtitle("share of all nodes"),
            description=f"Means: {said}." if said else "There are no nodes.",
            axis=_percent_axis(runs),
            interval_ns=figures.interval_ns,
            end_ns=figures.end_ns,
            areas=areas,
        )
    )


def _fragmentation_chart(run: ShownRun, runs: Sequence[ShownRun]) -> str:
    """Return the fragmentation of the resource types that the cluster has most use of."""
    figures = run.figures
    names = sorted(
        figures.packing.fragmentation, key=lambda name: (-(figures.mean_use_permille(name) or 0), name)
    )[: len(_STYLES)]
    return draw(
        Chart(
            key=f"g{run.suffix}",
            title="Fragmentation",
            subtitle=run.subtitle("share of the free room on nodes that hold something"),
            description=f"Of {', '.join(names)}.",
            axis=_percent_axis(runs),
            interval_ns=figures.interval_ns,
            end_ns=figures.end_ns,
            areas=[
                Area(name=name, style=style, values=figures.packing.fragmentation[name], is_line=True)
                for style, name in zip(_STYLES, names, strict=False)
            ],
        )
    )


def preemption_section(runs: Sequence[ShownRun]) -> str:
    """Return the preemptions by queue and reason, and the first ones."""
    counts = [
        {
            (group.queue, group.for_queue, group.reason): group.count
            for group in run.figures.preemptions.groups
        }
        for run in runs
    ]
    keys = sorted(
        {key for one in counts for key in one}, key=lambda key: (-max(one.get(key, 0) for one in counts), key)
    )
    if not keys:
        return "<section><h2>Preemptions</h2><p>No work was preempted.</p></section>"
    rows = []
    for key in keys[:_GROUPS_MAX]:
        values = [one.get(key, 0) for one in counts]
        row = [key[0], key[1] or "not known", key[2], number(values[0])]
        if len(values) > 1:
            row += [number(values[1]), change_of(values[0], values[1], "count")]
        rows.append(row)
    headings = ["preempted in", "for queue", "reason", "tasks"]
    headings += ["in the other run", "change"] if len(runs) > 1 else []
    body = table("Preemptions by queue and reason", headings, rows, texts=3)
    body += "".join(_listed(run) for run in runs if run.figures.preemptions.listed)
    return f"<section><h2>Preemptions</h2>{body}</section>"


def _listed(run: ShownRun) -> str:
    """Return the first preemptions of a run, one by one."""
    figures: RunFigures = run.figures
    rows = [
        (
            time(one.at_ns),
            one.allocation,
            one.application,
            one.user,
            one.queue,
            one.for_ask or "–",  # noqa: RUF001 - a dash for no value
            one.for_queue or "–",  # noqa: RUF001 - likewise
            one.reason,
        )
        for one in figures.preemptions.listed[:_LISTED_MAX]
    ]
    headings = ("at", "allocation", "application", "user", "queue", "for ask", "for queue", "reason")
    caption = run.subtitle(f"The first {len(rows)} of {number(figures.preemptions.count)} preemptions")
    return table(caption, headings, rows, texts=8, is_long=True)
