"""Findings as text that a person can act on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from .evidence import Frame, Kind, Rung
from .findings import Edge, Finding

FRAMES_MAX: Final = 8


def finding_text(finding: Finding, sites: Mapping[str, int]) -> str:
    """Yield the lines of a finding: what, where each lock was taken and wanted, and why it is one.

    Args:
        finding: what was found.
        sites: how many places in the code make each edge, for the suggestion which one to reverse.
    """
    return "\n".join(_lines(finding, sites))


def _lines(finding: Finding, sites: Mapping[str, int]) -> Iterator[str]:
    times = f", {finding.count} times" if finding.count > 1 else ""
    test = f", first in {finding.test}" if finding.test else ""
    yield f"{finding.sentence}  [{finding.rung_text}, {finding.fingerprint}{times}{test}]"
    if finding.clause is not None:
        yield f"  declared: {finding.clause}"
    for edge in finding.edges:
        yield from _edge_lines(edge)
    drawn = scenario(finding)
    if drawn:
        safe = finding.rung is Rung.R1
        yield "  how it would come to a standstill:" if safe else "  how it comes to a standstill:"
        yield from (f"    {line}" for line in drawn)
    if finding.why:
        yield "  what speaks against it:" if finding.rung is Rung.R1 else "  why:"
        yield from (f"    - {reason}" for reason in finding.why)
    if finding.replay is not None:
        yield f"  replay file: {finding.replay}"
    advice = suggestion(finding, sites)
    if advice is not None:
        yield f"  suggestion: {advice}"


def suggestion(finding: Finding, sites: Mapping[str, int]) -> str | None:
    """Return which step of a cycle to reverse, in words; `None` if the finding is no cycle."""
    if finding.kind not in {Kind.CYCLE, Kind.DEADLOCK}:
        return None
    # An actor that runs as an execution of its own holds itself, and cannot release that.
    holding = [edge for edge in finding.edges if edge.held not in {None, edge.execution}]
    if not holding:
        return None
    edge = suggested(holding, sites)
    wanted = edge.wanted.partition(", in the way is ")[0]
    if edge.class_edge is None:  # not a lock, so it cannot be taken before
        return f"have {edge.execution} release {edge.held} before it waits for {wanted}"
    count = sites.get(edge.class_edge, 0)
    places = f" ({count} {'place' if count == 1 else 'places'} in the code)" if count else ""
    return f"let {edge.execution} take {wanted} before {edge.held}{places}, or release {edge.held} first"


def suggested(edges: Sequence[Edge], sites: Mapping[str, int]) -> Edge:
    """Return the edge to reverse: that of the fewest places, and of equals the one that holds least."""
    return min(
        edges, key=lambda edge: (sites.get(edge.class_edge, 1) if edge.class_edge else 1, len(edge.all_held))
    )


def _edge_lines(edge: Edge) -> Iterator[str]:
    if edge.held is not None:
        yield f"  {edge.execution} held {edge.held}, taken at"
        yield from _stack(edge.hold_stack)
    if edge.wanted != "None":
        yield f"  {edge.execution} wanted {edge.wanted} at"
        yield from _stack(edge.want_stack)
    elif edge.want_stack:
        yield f"  {edge.execution} was at"
        yield from _stack(edge.want_stack)
    if len(edge.all_held) > 1:
        yield f"    all that it held: {', '.join(edge.all_held)}"


def _stack(frames: tuple[Frame, ...]) -> Iterator[str]:
    if not frames:
        yield "    (no stack: the level `order` keeps none)"
    yield from (f"    {frame}" for frame in frames[:FRAMES_MAX])


def scenario(finding: Finding) -> list[str]:
    """Yield the executions of a cycle side by side: first each takes what it holds, then each waits."""
    if finding.kind not in {Kind.CYCLE, Kind.DEADLOCK}:
        return []
    edges = finding.edges
    rows: list[tuple[int, str]] = []
    rows += [(place, f"takes {edge.held}") for place, edge in enumerate(edges) if edge.held is not None]
    rows += [(place, f"waits for {edge.wanted}") for place, edge in enumerate(edges)]
    widths = [
        max(len(edge.execution), *(len(text) for at, text in rows if at == place))
        for place, edge in enumerate(edges)
    ]
    drawn = [_row([edge.execution for edge in edges], widths)]
    for place, text in rows:
        drawn.append(_row([text if at == place else "" for at in range(len(edges))], widths))
    return drawn


def _row(cells: list[str], widths: list[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def counted(count: int, one: str, many: str = "") -> str:
    """Return a number with what it counts: `1 edge`, `2 edges`; `many` is a plural without `s`."""
    return f"{count} {one if count == 1 else many or one + 's'}"
