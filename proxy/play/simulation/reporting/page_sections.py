"""The parts of the page: queues and their waits, fairness, the packing of nodes, and preemptions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Final

from .figures import QueueFigures, RunFigures, UserFigures
from .page_parts import (
    Area,
    Axis,
    Chart,
    LimitLine,
    ShownRun,
    amount,
    bars,
    change_of,
    draw,
    factor,
    longest_ns,
    named_queue,
    number,
    percent,
    side_by_side,
    table,
    time,
)

_STYLES: Final = ("first", "second", "third", "fourth")
_GROUPS_MAX: Final = 200
_LISTED_MAX: Final = 200
_QUEUES_DRAWN_MAX: Final = 40
_ROWS_MAX: Final = 500


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


def dominant_resource(queue: QueueFigures, figures: RunFigures) -> str:
    """Return the resource type that a queue uses and wants the largest share of, empty if it has none.

    If some types are guaranteed, it is one of those; if not, and some have a maximum, one of those.
    """

    def share(name: str) -> tuple[int, str]:
        total = sum(queue.used.get(name, ())) + sum(queue.pending.get(name, ()))
        whole = sum(figures.cluster_capacity.get(name, ()))
        return total * 10**6 // whole if whole else 0, name

    needed = {*queue.used, *queue.pending}
    limited = needed & queue.guaranteed.keys() or needed & queue.maximum.keys()
    return max(limited or needed, key=share, default="")


def queue_section(runs: Sequence[ShownRun]) -> str:
    """Return the use of each queue over time."""
    names = sorted({queue.queue for run in runs for queue in run.figures.queues})
    drawn = names
    if len(names) > _QUEUES_DRAWN_MAX:
        work = {
            name: max(queue.tasks.submitted for run in runs if (queue := named_queue(run, name)) is not None)
            for name in names
        }
        drawn = sorted(sorted(names, key=lambda name: (-work[name], name))[:_QUEUES_DRAWN_MAX])
    resources = {name: _resource_of(name, runs) for name in drawn}
    tops: dict[str, int] = {}
    for name, resource in resources.items():
        tops[resource] = max(tops.get(resource, 0), _top_of(name, resource, runs))
    charts = [
        _queue_charts(number, name, resources[name], tops[resources[name]], runs)
        for number, name in enumerate(drawn)
    ]
    note = (
        ""
        if len(drawn) == len(names)
        else (f"<p>The {len(drawn)} of {number(len(names))} queues with the most tasks are drawn.</p>")
    )
    kind = "grid-of-charts" if len(runs) == 1 else "grid-of-charts pairs"
    tables = "".join(_limits_table(run) for run in runs)
    return (
        '<section><h2>Queues over time</h2><p class="soft">For each queue the resource that it needs '
        f"the largest share of, of those that are limited, in use and waiting, against its limits.</p>{note}"
        f'<div class="{kind}">{"".join(charts)}</div>{tables}</section>'
    )


def _found(name: str, runs: Sequence[ShownRun]) -> list[tuple[ShownRun, QueueFigures]]:
    return [(run, queue) for run in runs if (queue := named_queue(run, name)) is not None]


def _resource_of(name: str, runs: Sequence[ShownRun]) -> str:
    """Return the resource type of the charts of a queue."""
    found = _found(name, runs)
    return next((one for run, queue in found if (one := dominant_resource(queue, run.figures))), "")


def _top_of(name: str, resource: str, runs: Sequence[ShownRun]) -> int:
    return max(_top(queue, run.figures, resource) for run, queue in _found(name, runs))


def _queue_charts(serial: int, name: str, resource: str, top: int, runs: Sequence[ShownRun]) -> str:
    """Return the chart of one queue in each run; all charts of a resource have one scale."""
    axis = Axis(end_ns=longest_ns(runs), top=top, show=lambda value: amount(resource, value))
    charts = [
        draw(_queue_chart(f"q{serial}{run.suffix}", run, queue, resource, axis))
        for run, queue in _found(name, runs)
    ]
    return side_by_side(charts)


def _top(queue: QueueFigures, figures: RunFigures, resource: str) -> int:
    """Return the end of the scale: what waits is cut where it is far more than the cluster has."""
    used, pending = _series(queue, resource, figures)
    there = max(figures.cluster_capacity.get(resource, (1,)))
    both = max((one + other for one, other in zip(used, pending, strict=True)), default=0)
    maximum = min(queue.maximum.get(resource, 0), there)
    return max(max(used, default=0), min(both, there), queue.guaranteed.get(resource, 0), maximum, 1)


def _series(
    queue: QueueFigures, resource: str, figures: RunFigures
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the use and the need of a queue, nothing where there is no series."""
    nothing = (0,) * len(figures.fairness)
    return queue.used.get(resource, nothing), queue.pending.get(resource, nothing)


def _queue_chart(key: str, run: ShownRun, queue: QueueFigures, resource: str, axis: Axis) -> Chart:
    """Return the chart of one queue."""
    figures = run.figures
    used, pending = _series(queue, resource, figures)
    both = [one + other for one, other in zip(used, pending, strict=True)]
    is_cut = max(both, default=0) > axis.top
    mean = sum(used) // max(len(used), 1)
    levels = [
        LimitLine(name=f"{kind} {amount(resource, limits[resource])}", style=kind, value=limits[resource])
        for kind, limits in (("guaranteed", queue.guaranteed), ("maximum", queue.maximum))
        if resource in limits
    ]
    description = f"Mean use {amount(resource, mean)}, highest {amount(resource, max(used, default=0))}"
    description += "".join(f"; {level.name}" for level in levels)
    return Chart(
        key=key,
        title=queue.queue,
        subtitle=run.subtitle(resource or "no resource"),
        description=f"{description}.",
        axis=axis,
        interval_ns=figures.interval_ns,
        end_ns=figures.end_ns,
        areas=(
            Area(name="in use", style="used", values=used),
            Area(
                name="waiting (cut at the scale)" if is_cut else "waiting",
                style="pending",
                values=both,
                bottom=used,
                shown=pending,
            ),
        ),
        levels=levels,
    )


def _limits_table(run: ShownRun) -> str:
    """Return mean use and need against the limits, for every queue and resource type."""
    figures = run.figures
    rows = []
    for queue in figures.queues[:_ROWS_MAX]:
        for resource in sorted({*queue.used, *queue.pending, *queue.guaranteed, *queue.maximum}):
            used, pending = _series(queue, resource, figures)
            limits = (queue.guaranteed.get(resource), queue.maximum.get(resource))
            rows.append(
                [
                    queue.queue,
                    resource,
                    *("none" if limit is None else amount(resource, limit) for limit in limits),
                    amount(resource, figures.mean_of(used)),
                    amount(resource, max(used, default=0)),
                    amount(resource, figures.mean_of(pending)),
                ]
            )
    headings = ("queue", "resource", "guaranteed", "maximum", "mean use", "highest use", "mean waiting")
    return table(run.subtitle("All queues and resources"), headings, rows, texts=2, is_long=True)


def wait_section(runs: Sequence[ShownRun]) -> str:
    """Return how long the tasks of each queue waited."""
    names = sorted({queue.queue for run in runs for queue in run.figures.queues if queue.is_leaf})
    names = ["", *names[:_ROWS_MAX]]
    charts = "".join(
        _wait_bars(f"w{serial}{run.suffix}", run, name)
        for serial, name in enumerate(names[:_QUEUES_DRAWN_MAX])
        for run in runs
    )
    users = sorted({user.user for run in runs for user in run.figures.users})
    of_users = _owner_table("user", runs, users[:_ROWS_MAX], _user) if users else ""
    return (
        '<section><h2>Waiting times</h2><p class="soft">From asking to the first node, of the '
        "tasks that got one. The slowdown is the time from asking to the end by the time that a task ran, "
        "ten seconds at least, of those that completed.</p>"
        f"{_owner_table('queue', runs, names, _queue)}{of_users}"
        "<details><summary>How many tasks waited how long</summary>"
        f'<div class="waits">{charts}</div></details></section>'
    )


def _queue(run: ShownRun, name: str) -> QueueFigures | None:
    """Return a queue, or all together without a name."""
    return named_queue(run, name) if name else run.figures.total


def _user(run: ShownRun, name: str) -> UserFigures | None:
    return next((user for user in run.figures.users if user.user == name), None)


def _owner_table(
    kind: str,
    runs: Sequence[ShownRun],
    names: Sequence[str],
    of: Callable[[ShownRun, str], QueueFigures | UserFigures | None],
) -> str:
    """Return what became of the tasks of each queue or user; of two runs this one with the differences."""
    headings = [kind]
    rows = []
    for name in names:
        found = [of(run, name) for run in runs]
        row = [name or "all queues"]
        headings = [kind]
        for title, how, show, read in _COLUMNS:
            values = [None if one is None else read(one) for one in found]
            row.append(show(values[0]))
            headings.append(title)
            if len(runs) > 1:
                row.append(change_of(values[0], values[1], how))
                headings.append("change")
        rows.append(row)
    caption = f"{kind.capitalize()} by {kind}" + (
        ", and how this differs from the other run" if runs[1:] else ""
    )
    return table(caption, headings, rows)


def _number(value: int | None) -> str:
    return "0" if value is None else number(value)


def _wait(name: str) -> Callable[[QueueFigures | UserFigures], int | None]:
    return lambda one: None if one.waits is None else getattr(one.waits, name)


_COLUMNS: Final = (
    ("tasks", "count", _number, lambda one: one.tasks.submitted),
    ("placed", "count", _number, lambda one: one.tasks.placed),
    ("preempted", "count", _number, lambda one: one.tasks.preempted),
    ("median", "time", time, _wait("p50_ns")),
    ("90 %", "time", time, _wait("p90_ns")),
    ("99 %", "time", time, _wait("p99_ns")),
    ("longest", "time", time, _wait("max_ns")),
    ("slowdown", "factor", factor, lambda one: None if one.slowdown is None else one.slowdown.mean),
)
"""The title of a column, the kind of its differences, how a value is written, and where it stands."""


def _wait_bars(key: str, run: ShownRun, name: str) -> str:
    """Return the histogram of a queue."""
    queue = _queue(run, name)
    waits = None if queue is None else queue.waits
    counts = waits.classes if waits is not None else (0,) * (len(run.figures.wait_bounds_ns) + 1)
    bounds = run.figures.wait_bounds_ns
    names = ["none", *(f"up to {time(bound)}" for bound in bounds[1:]), f"more than {time(bounds[-1])}"]
    ticks = "".join(
        f"<span>{text}</span>" for text in ("0", *(f"≤{time(bound)}" for bound in bounds[1:]), "more")
    )
    title = run.subtitle(name or "all queues")
    caption = f"Waiting times of {title}"
    rows = [
        (label, number(count), percent(1000 * count // max(sum(counts), 1)))
        for label, count in zip(names, counts, strict=True)
    ]
    return (
        f'<figure class="chart"><figcaption><strong>{escape(title)}</strong></figcaption>'
        f"{bars(key, caption, names, counts)}"
        f'<div class="ticks" aria-hidden="true">{ticks}</div>'
        f"{table(f'{caption}: values', ('wait', 'tasks', 'share'), rows, is_long=True)}</figure>"
    )
