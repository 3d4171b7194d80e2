"""The parts of the page: charts as SVG, texts and tables, for one run or two side by side.

The drawing is stretched to the available width. Texts are HTML next to it, so that they keep their size on
every screen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final, NamedTuple

from .....model.configuration.durations import short_duration_text
from .figures import QueueFigures, RunFigures

_WIDTH: Final = 1000
_HEIGHT: Final = 240
_TABLE_ROWS_MAX: Final = 24
_BYTE_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_BYTES: Final = frozenset({"memory", "ephemeral-storage"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """The common scales of charts that are side by side: time up to an end, values up to a top."""

    end_ns: int
    top: int
    show: Callable[[int], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Area:
    """A drawn series, from the values of `bottom` (default 0) up to `values`.

    `style` is a CSS class; `shown` are the values for the table, default `values`. `is_line` draws a line.
    """

    name: str
    style: str
    values: Sequence[int | None]
    bottom: Sequence[int] = ()
    shown: Sequence[int | None] = ()
    is_line: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitLine:
    """A constant value, drawn as a line."""

    name: str
    style: str
    value: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """One chart; `key` is unique in the page, `description` describes it in a sentence."""

    key: str
    title: str
    subtitle: str
    description: str
    axis: Axis
    interval_ns: int
    end_ns: int
    areas: Sequence[Area]
    levels: Sequence[LimitLine] = ()
    has_legend: bool = True


def draw(chart: Chart) -> str:
    """Return a chart with its legend and the table of its values."""
    axis = chart.axis
    shapes = [_grid(), *(_area(area, chart) for area in chart.areas)]
    shapes += [_level(level, axis) for level in chart.levels if level.value <= axis.top]
    svg = (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-labelledby="{chart.key}-t {chart.key}-d"><title id="{chart.key}-t">{escape(chart.title)}, '
        f'{escape(chart.subtitle)}</title><desc id="{chart.key}-d">{escape(chart.description)}</desc>'
        f"{''.join(shapes)}</svg>"
    )
    legend = _legend(chart) if chart.has_legend else ""
    return (
        f'<figure class="chart"><figcaption><strong>{escape(chart.title)}</strong> '
        f"<span>{escape(chart.subtitle)}</span></figcaption>"
        f'<div class="plot"><div class="y" aria-hidden="true"><span>{escape(axis.show(axis.top))}</span>'
        f"<span>{escape(axis.show(axis.top // 2))}</span><span>0</span></div>{svg}"
        f'<div class="x" aria-hidden="true"><span>0</span><span>{time(axis.end_ns // 2)}</span>'
        f"<span>{time(axis.end_ns)}</span></div></div>{legend}{_values(chart)}</figure>"
    )


def bars(key: str, title: str, names: Sequence[str], counts: Sequence[int]) -> str:
    """Return a small bar chart of counts, each as a share of the largest."""
    most = max(counts, default=0) or 1
    width = _WIDTH / len(counts)
    shapes = "".join(
        f'<rect class="used" x="{at * width + 8:.1f}" y="{_HEIGHT - height:.1f}" width="{width - 16:.1f}" '
        f'height="{height:.1f}"/>'
        for at, height in enumerate(max(_HEIGHT * count / most, 6) if count else 0 for count in counts)
        if height
    )
    said = ", ".join(f"{name}: {count:,}" for name, count in zip(names, counts, strict=True) if count)
    return (
        f'<svg class="bars" viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-labelledby="{key}-t {key}-d"><title id="{key}-t">{escape(title)}</title>'
        f'<desc id="{key}-d">{escape(said) or "nothing"}</desc><path class="grid" d="M0 {_HEIGHT}H{_WIDTH}"/>'
        f"{shapes}</svg>"
    )


def _grid() -> str:
    """Return the lines at zero, half and full."""
    half = _HEIGHT // 2
    return f'<path class="grid" d="M0 0H{_WIDTH}M0 {half}H{_WIDTH}M0 {_HEIGHT}H{_WIDTH}"/>'


def _x(at_ns: int, axis: Axis) -> str:
    return f"{_WIDTH * at_ns / max(axis.end_ns, 1):.1f}".removesuffix(".0")


def _y(value: int, axis: Axis) -> str:
    share = min(value / max(axis.top, 1), 1.0)
    return f"{_HEIGHT * (1 - share):.1f}".removesuffix(".0")


def _area(area: Area, chart: Chart) -> str:
    """Return the steps of a series; a missing value leaves a gap."""
    pieces: list[list[int]] = []
    for at, value in enumerate(area.values):
        if value is None:
            continue
        if not pieces or pieces[-1][-1] != at - 1:
            pieces.append([])
        pieces[-1].append(at)
    path = []
    for piece in pieces:
        steps = [(at, area.values[at] or 0) for at in piece]
        path.append(_steps(steps, chart, "M"))
        if not area.is_line:
            bottom = [(at, area.bottom[at] if area.bottom else 0) for at in reversed(piece)]
            path.append(_steps(bottom, chart, "L", is_backwards=True) + "Z")
    kind = "line" if area.is_line else "area"
    return f'<path class="{kind} {area.style}" d="{"".join(path)}"><title>{escape(area.name)}</title></path>'


def _steps(steps: Sequence[tuple[int, int]], chart: Chart, begin: str, *, is_backwards: bool = False) -> str:
    """Return the path along steps; equal neighbours are merged."""
    axis = chart.axis
    path: list[str] = []
    last = ""
    for at, value in steps:
        start_ns, end_ns = at * chart.interval_ns, min((at + 1) * chart.interval_ns, chart.end_ns)
        if is_backwards:
            start_ns, end_ns = end_ns, start_ns
        y = _y(value, axis)
        if y == last:
            path[-1] = f"H{_x(end_ns, axis)}"
            continue
        path += [f"V{y}" if path else f"{begin}{_x(start_ns, axis)} {y}", f"H{_x(end_ns, axis)}"]
        last = y
    return "".join(path)


def _level(level: LimitLine, axis: Axis) -> str:
    return (
        f'<path class="level {level.style}" d="M0 {_y(level.value, axis)}H{_WIDTH}">'
        f"<title>{escape(level.name)}</title></path>"
    )


def _legend(chart: Chart) -> str:
    """Return the names of the drawn series."""
    entries = [(area.style, area.name) for area in chart.areas]
    entries += [
        (level.style, level.name + ("" if level.value <= chart.axis.top else " (above the scale)"))
        for level in chart.levels
    ]
    items = "".join(f'<li><span class="key {style}"></span>{escape(name)}</li>' for style, name in entries)
    return f'<ul class="legend">{items}</ul>'


def _values(chart: Chart) -> str:
    """Return the table behind a chart, with at most `_TABLE_ROWS_MAX` rows of means."""
    count = len(chart.areas[0].values) if chart.areas else 0
    together = max(-(-count // _TABLE_ROWS_MAX), 1)
    rows = []
    for start in range(0, count, together):
        row = [time(start * chart.interval_ns)]
        for area in chart.areas:
            known = [
                value for value in (area.shown or area.values)[start : start + together] if value is not None
            ]
            row.append(chart.axis.show(sum(known) // len(known)) if known else time(None))
        rows.append(row)
    headings = ("from", *(area.name for area in chart.areas))
    return table(f"{chart.title}, {chart.subtitle}: values", headings, rows, is_long=True)


def number(value: int) -> str:
    """Write a whole number with separators."""
    return f"{value:,}"


def decimal(value: float) -> str:
    """Write a number with the decimals that three digits need."""
    if 0 < abs(value) < 1:
        return f"{value:.3g}"
    decimals = 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def amount(resource: str, value: int) -> str:
    """Write a resource amount: cores for `vcore`, binary units for amounts in bytes."""
    if resource == "vcore":
        return f"{decimal(value / 1000)} cores"
    if resource in _BYTES:
        unit = 0
        scaled: float = value
        while abs(scaled) >= 1024 and unit + 1 < len(_BYTE_UNITS):
            scaled, unit = scaled / 1024, unit + 1
        return f"{decimal(scaled)} {_BYTE_UNITS[unit]}"
    return decimal(value)


def percent(permille: int | None) -> str:
    """Write thousandths as percent."""
    return "–" if permille is None else f"{permille / 10:.1f} %"  # noqa: RUF001 - a dash for no value


def factor(permille: int | None) -> str:
    """Write thousandths as a factor."""
    return "–" if permille is None else f"{permille / 1000:.2f} ×"  # noqa: RUF001 - as above, and the sign


def time(nanoseconds: int | None) -> str:
    """Write a duration."""
    return "–" if nanoseconds is None else short_duration_text(nanoseconds)  # noqa: RUF001 - as above


def change_of(now: int | None, before: int | None, kind: str) -> str:
    """Write a difference with its sign.

    Args:
        now: The value of this run, `None` if it is missing.
        before: The value of the other run.
        kind: `time`, `percent`, `factor` or `count`.
    """
    if now is None or before is None:
        return "–"  # noqa: RUF001 - as above
    difference = now - before
    if difference == 0:
        return "same"
    sign = "+" if difference > 0 else "−"  # noqa: RUF001 - the sign for minus
    size = abs(difference)
    if kind == "time":
        return f"{sign}{short_duration_text(size)}"
    if kind == "factor":
        return f"{sign}{factor(size)}"
    return f"{sign}{size / 10:.1f} pp" if kind == "percent" else f"{sign}{size:,}"


def table(
    caption: str,
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    texts: int = 1,
    is_long: bool = False,
) -> str:
    """Return a table; cells are plain text, or drawings.

    Args:
        caption: The title of the table.
        headings: One for each column.
        rows: The cells of each row.
        texts: The number of columns with text; the others have numbers.
        is_long: Whether only the caption is shown at first.
    """
    kinds = ["" if at < texts else ' class="n"' for at in range(len(headings))]
    head = "".join(
        f'<th scope="col"{kind}>{escape(text)}</th>' for kind, text in zip(kinds, headings, strict=True)
    )
    body = []
    for row in rows:
        first, *others = row
        cells = "".join(f"<td{kind}>{_cell(text)}</td>" for kind, text in zip(kinds[1:], others, strict=True))
        body.append(f'<tr><th scope="row"{kinds[0]}>{escape(first)}</th>{cells}</tr>')
    label = escape(caption)
    hidden = ' class="hidden"' if is_long else ""
    text = (
        f'<div class="scroll" role="region" aria-label="{label}" tabindex="0"><table><caption{hidden}>{label}'
        f"</caption><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
    )
    return f"<details><summary>{label}</summary>{text}</details>" if is_long else text


def tiles_of(*tiles: tuple[str, str, str]) -> str:
    """Return the values of the head: the name of each, its value, and a note."""
    items = (
        f'<div><dt>{escape(name)}</dt><dd class="value">{escape(value)}</dd>'
        f'<dd class="note">{escape(note)}</dd></div>'
        for name, value, note in tiles
    )
    return f'<dl class="tiles">{"".join(items)}</dl>'


class Drawing(str):
    """HTML in a cell of a table."""

    __slots__ = ()


def share_bar(value: int, most: int) -> Drawing:
    """Return a bar for a value, as a share of the largest one."""
    return Drawing(f'<span class="bar" style="width:{100 * value / (most or 1):.1f}%"></span>')


def interval(low: int, middle: int, high: int, most: int) -> Drawing:
    """Return a line from a value to another one, with a mark between them, and zero in the middle."""
    at = [f"{50 + 48 * value / (most or 1):.1f}" for value in (low, middle, high)]
    path = f"M50 0V16M{at[0]} 8H{at[2]}M{at[1]} 3V13"
    attributes = 'class="interval" viewBox="0 0 100 16" preserveAspectRatio="none" aria-hidden="true"'
    return Drawing(f'<svg {attributes}><path d="{path}"/></svg>')


def alert(text: str) -> str:
    """Return a sentence that has to be seen first."""
    return f'<p class="alert">{escape(text)}</p>'


def _cell(text: str) -> str:
    return text if isinstance(text, Drawing) else escape(text)


class ShownRun(NamedTuple):
    """One simulation: its name in the page, the end of its keys, and its figures."""

    label: str
    suffix: str
    figures: RunFigures

    def subtitle(self, text: str) -> str:
        """Return a subtitle that names the run, if there are two."""
        return f"{text}, {self.label}" if self.label else text


def longest_ns(runs: Sequence[ShownRun]) -> int:
    """Return the end of the longest run."""
    return max(run.figures.end_ns for run in runs)


def named_queue(run: ShownRun, name: str) -> QueueFigures | None:
    """Return the queue of that name, `None` if the run does not have it."""
    return next((queue for queue in run.figures.queues if queue.queue == name), None)


def side_by_side(charts: Sequence[str]) -> str:
    """Return charts that belong together: a single one unchanged, several in a row."""
    return charts[0] if len(charts) == 1 else f'<div class="pair">{"".join(charts)}</div>'
