"""The graph of classes as SVG: outer locks above inner ones, edges that lead upwards drawn at the side."""

from __future__ import annotations

import html
from collections import defaultdict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from ..sessions.summaries import ObservedEdge, Summary

__all__ = ["draw", "rows_of"]

_WIDTH: Final = 190
_HEIGHT: Final = 100
_BOX: Final = 32
_NAME_MAX: Final = 22


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
    places: dict[str, tuple[int, int]] = {}
    for name in names:
        row = rows[name]
        places[name] = (_WIDTH // 2 + 20 + columns[row] * _WIDTH, 40 + row * _HEIGHT)
        columns[row] += 1
    width = 120 + max(columns.values()) * _WIDTH
    height = 80 + max(rows.values()) * _HEIGHT
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
    """Return the row of each class: below all that are held while it is wanted, unless that is a cycle."""
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


def _box(name: str, place: tuple[int, int], attribute: str) -> str:
    x, y = place
    shown = name if len(name) <= _NAME_MAX else name[: _NAME_MAX - 1] + "…"
    half = _WIDTH // 2 - 10
    return (
        f'<g {attribute}><title>{html.escape(name)}</title><rect rx="6" x="{x - half}" y="{y - _BOX // 2}" '
        f'width="{2 * half}" height="{_BOX}"/><text x="{x}" y="{y + 5}">{html.escape(shown)}</text></g>'
    )


def _edge(
    places: dict[str, tuple[int, int]],
    ends: tuple[str, str],
    class_edges: Sequence[ObservedEdge],
    bad: Collection[str],
    attribute: str,
) -> str:
    (x, y), (to_x, to_y) = places[ends[0]], places[ends[1]]
    half = _BOX // 2
    if to_y > y:
        path = f"M{x} {y + half} C{x} {y + 50} {to_x} {to_y - 50} {to_x} {to_y - half}"
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
