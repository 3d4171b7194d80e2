"""A summary as one HTML file that needs nothing else: the graph, the findings, and a filter by class.

The page is bounded (`BYTES_MAX`): what does not fit is left out, the weakest evidence first, and the page
shows how much that is.
"""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from ..findings.findings import Finding, finding_text
from ..findings.terms import DEFAULT_FAIL_ON
from ..sessions.session import closing
from ..sessions.summaries import ObservedEdge, Summary
from .diagrams import dangerous, lock_classes

BYTES_MAX: Final = 300_000
_CHOICES_SHARE: Final = 20_000
_GRAPH_SHARE: Final = 70_000
_CLASS_EDGES_SHARE: Final = 50_000
_FINDINGS_SHARE: Final = 140_000
_CLOSING_SHARE: Final = 5_000
_CLASSES_DRAWN_MAX: Final = 60
_TEMPLATE: Final = Path(__file__).with_name("page.html")
_CLASS_EDGE: Final = re.compile(r"(.*)\[[RW]\] -> (.*)\[[RW]\]", re.DOTALL)
_WIDTH: Final = 190
_GAP: Final = 68
"""Between the boxes of two rows."""
_LINE: Final = 16
_LINE_WIDTH_MAX: Final = 22
"""In characters of the usual width."""
_PARTS: Final = re.compile(r"[^\W_]*[\W_]*")
"""A word of a name, and what stands after it, where a line may end."""


def to_html(summary: Summary) -> str:
    """Return the page."""
    names = lock_classes(summary)
    parts = {
        "closing": html.escape(closing(summary)[: _CLOSING_SHARE // 6]).replace("\n", "<br>\n"),
        "choices": _fitting(_choices(names), _CHOICES_SHARE, "classes", "<span>{}</span>"),
        "graph": _graph(summary, names),
        "findings": _fitting(_findings(summary), _FINDINGS_SHARE, "findings") or "<p>None.</p>",
        "edges": _fitting(
            map(_class_edge_row, summary.class_edges),
            _CLASS_EDGES_SHARE,
            "edges",
            '<tr><td colspan="5">{}</td></tr>',
        ),
    }
    template = _TEMPLATE.read_text(encoding="utf-8")
    page = re.sub(
        r"\{(" + "|".join(parts) + r")\}", lambda found: parts[found[1]], template
    )  # one pass, so that names in braces are not replaced
    assert len(page.encode(errors="backslashreplace")) <= BYTES_MAX, (
        "please report: the shares of a page are too large"
    )
    return page


def classes_attribute(names: Iterable[str]) -> str:
    """Return the attribute that the filter reads: the classes that a part of the page is about."""
    listed = json.dumps(list(dict.fromkeys(names)))
    return f'data-classes="{html.escape(listed)}"'


def _choices(names: Sequence[str]) -> Iterable[str]:
    return (
        f'<label><input type="checkbox" checked value="{html.escape(name)}"> {html.escape(name)}</label>'
        for name in names
    )


def _graph(summary: Summary, names: Sequence[str]) -> str:
    if not names:
        return "<p>No edges were learned.</p>"
    if len(names) <= _CLASSES_DRAWN_MAX:
        drawn = draw(summary, names, dangerous(summary), classes_attribute)
        if len(drawn.encode(errors="backslashreplace")) <= _GRAPH_SHARE:
            return drawn
    return f"<p>{len(names)} classes are too many to draw; the table below has their edges.</p>"


def _findings(summary: Summary) -> Iterable[str]:
    sites = summary.sites
    for finding in summary.findings:
        first, _, rest = finding_text(finding, sites).partition("\n")
        fails = " class='fails'" if finding.rung in DEFAULT_FAIL_ON else ""
        yield (
            f'<details{fails} id="{html.escape(finding.fingerprint)}" '
            f"{classes_attribute(_classes_of(finding))}>"
            f"<summary>{html.escape(first)}</summary><pre>{html.escape(rest)}</pre></details>\n"
        )


def _classes_of(finding: Finding) -> Iterable[str]:
    for edge in finding.edges:
        found = _CLASS_EDGE.fullmatch(edge.class_edge) if edge.class_edge is not None else None
        if found is not None:
            yield from found.groups()


def _class_edge_row(class_edge: ObservedEdge) -> str:
    attribute = classes_attribute((class_edge.held, class_edge.wanted))
    tried = "" if class_edge.waits else ", only tried"
    return (
        f"<tr {attribute}><td>{html.escape(class_edge.held)} [{class_edge.held_mode}]</td>"
        f"<td>{html.escape(class_edge.wanted)} [{class_edge.wanted_mode}]{tried}</td>"
        f'<td class="n">{class_edge.count}</td><td class="n">{len(class_edge.sites)}</td>'
        f"<td>{html.escape(class_edge.test or '')}</td></tr>\n"
    )


def _fitting(parts: Iterable[str], share: int, what: str, around: str = "<p>{}</p>") -> str:
    """Join parts as long as they fit into a share of the page; name the number of the others."""
    taken: list[str] = []
    left_out = 0
    for part in parts:
        size = len(part.encode(errors="backslashreplace"))
        if left_out or size > share:
            left_out += 1
        else:
            taken.append(part)
            share -= size
    if left_out:
        taken.append(
            around.format(f"{left_out} further {what} do not fit into this page; the JSON has them.")
        )
    return "".join(taken)


class _Place(NamedTuple):
    """The middle of a box, half of its height, and the lines of the name in it; in pixels."""

    x: int
    y: int
    half: int
    lines: list[str]


def draw(
    summary: Summary,
    names: Sequence[str],
    bad: Collection[str],
    attribute: Callable[[Iterable[str]], str],
) -> str:
    """Return the drawing.

    Args:
        summary: what to draw.
        names: the classes.
        bad: edges to be drawn in red.
        attribute: returns the attribute by which the filter finds parts, given the classes of a part.
    """
    rows = rows_of(names, summary.class_edges)
    columns: dict[int, int] = defaultdict(int)
    lines = {name: lines_of(name) for name in names}
    half_heights: dict[int, int] = defaultdict(int)
    for name in names:
        half_heights[rows[name]] = max(half_heights[rows[name]], (len(lines[name]) + 1) * _LINE // 2)
    middle_of_row: dict[int, int] = {}
    height = 24
    for row in sorted(half_heights):
        middle_of_row[row] = height + half_heights[row]
        height += 2 * half_heights[row] + _GAP
    places: dict[str, _Place] = {}
    for name in names:
        row = rows[name]
        x = _WIDTH // 2 + 20 + columns[row] * _WIDTH
        places[name] = _Place(x, middle_of_row[row], (len(lines[name]) + 1) * _LINE // 2, lines[name])
        columns[row] += 1
    width = 120 + max(columns.values()) * _WIDTH
    height += 24 - _GAP
    grouped: dict[tuple[str, str], list[ObservedEdge]] = defaultdict(list)
    for class_edge in summary.class_edges:
        grouped[class_edge.held, class_edge.wanted].append(class_edge)
    edges = [_edge(places, ends, class_edges, bad, attribute(ends)) for ends, class_edges in grouped.items()]
    boxes = [_box(name, places[name], attribute([name])) for name in names]
    return (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" role="img" aria-label="Edges of classes">'
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" '
        'markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 8 4 0 8"/></marker></defs>' + "".join([*edges, *boxes]) + "</svg>"
    )


def rows_of(names: Sequence[str], class_edges: Iterable[ObservedEdge]) -> dict[str, int]:
    """Return the row of each class: below all that are held while it is requested, unless that is a cycle."""
    rows: dict[str, int] = {}
    outer: dict[str, set[str]] = defaultdict(set)
    for class_edge in class_edges:
        outer[class_edge.wanted].add(class_edge.held)

    def place(name: str, above: frozenset[str]) -> int:
        if name not in rows:
            known = sorted(outer[name] - above - {name})
            rows[name] = 1 + max((place(one, above | {name}) for one in known), default=-1)
        return rows[name]

    for name in names:
        place(name, frozenset())
    return rows


def lines_of(name: str) -> list[str]:
    """Return a name as lines that fit into a box; together they are the name, whatever its length."""
    lines, left = [""], float(_LINE_WIDTH_MAX)
    for part in _PARTS.findall(name):
        width = sum(map(_width, part))
        if width > left and lines[-1]:
            lines.append("")
            left = _LINE_WIDTH_MAX
        for sign in part:
            if _width(sign) > left:
                lines.append("")
                left = _LINE_WIDTH_MAX
            lines[-1] += sign
            left -= _width(sign)
    return lines


def _width(sign: str) -> float:
    """Return the width of a sign beside the usual one, or a little more."""
    if unicodedata.east_asian_width(sign) in "WF":
        return 2
    return 1.7 if sign in "MWmw@%" else 1.4 if sign.isupper() else 1


def _box(name: str, place: _Place, attribute: str) -> str:
    x, y, half, lines = place
    wide = _WIDTH // 2 - 10
    first = y + 5 - (len(lines) - 1) * _LINE // 2
    texts = "".join(
        f'<tspan x="{x}" y="{first + at * _LINE}">{html.escape(line)}</tspan>'
        for at, line in enumerate(lines)
    )
    return (
        f'<g {attribute}><title>{html.escape(name)}</title><rect rx="6" x="{x - wide}" y="{y - half}" '
        f'width="{2 * wide}" height="{2 * half}"/><text>{texts}</text></g>'
    )


def _edge(
    places: dict[str, _Place],
    ends: tuple[str, str],
    class_edges: Sequence[ObservedEdge],
    bad: Collection[str],
    attribute: str,
) -> str:
    (x, y, half, _), (to_x, to_y, to_half, _) = places[ends[0]], places[ends[1]]
    if to_y > y:
        begins, stops = y + half, to_y - to_half
        path = f"M{x} {begins} C{x} {begins + 34} {to_x} {stops - 34} {to_x} {stops}"
    else:
        x, to_x = x + _WIDTH // 2 - 10, to_x + _WIDTH // 2 - 10
        away = max(x, to_x) + 70
        path = f"M{x} {y - 6} C{away} {y - 6} {away} {to_y + 6} {to_x} {to_y + 6}"
    red = any(str(class_edge) in bad for class_edge in class_edges)
    kinds = ["bad"] * red + ["tried"] * (not any(class_edge.waits for class_edge in class_edges))
    title = "\n".join(f"{class_edge}, {class_edge.count} times" for class_edge in class_edges)
    return (
        f'<g class="{" ".join(kinds)}" {attribute}><title>{html.escape(title)}</title>'
        f'<path marker-end="url(#tip)" d="{path}"/></g>'
    )
