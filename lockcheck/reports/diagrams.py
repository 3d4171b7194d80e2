"""The learned graph of classes as DOT and as Mermaid; edges of a cycle at R2 or above are red."""

from __future__ import annotations

from collections.abc import Iterator

from ..findings.terms import Kind, Rung
from ..sessions.summaries import ObservedEdge, Summary


def dot(summary: Summary) -> str:
    """Return the graph for Graphviz."""
    return "\n".join(["digraph lockcheck {", "  node [shape=box];", *_dot_lines(summary), "}", ""])


def mermaid(summary: Summary) -> str:
    """Return the graph for Mermaid, as Markdown has it."""
    names = {name: f"n{at}" for at, name in enumerate(lock_classes(summary))}
    lines = ["flowchart LR", *(f"    {short}[{_mermaid_text(name)}]" for name, short in names.items())]
    red: list[str] = []
    bad = dangerous(summary)
    for at, one in enumerate(summary.class_edges):
        label = _mermaid_text(f"{one.held_mode} to {one.wanted_mode}, {one.count}")
        lines.append(f"    {names[one.held]} -->|{label}| {names[one.wanted]}")
        red += [str(at)] if str(one) in bad else []
    if red:
        lines.append(f"    linkStyle {','.join(red)} stroke:red,stroke-width:2px")
    return "\n".join([*lines, ""])


def lock_classes(summary: Summary) -> tuple[str, ...]:
    """Return the names of all classes, those of the declared orders first."""
    declared = (name for order in summary.orders for step in order.steps for name in (step.held, step.wanted))
    seen = sorted(name for class_edge in summary.class_edges for name in (class_edge.held, class_edge.wanted))
    return tuple(dict.fromkeys([*declared, *seen]))


def dangerous(summary: Summary) -> frozenset[str]:
    """Return the edges of cycles at R2 or above, and those that a declaration forbids."""
    return frozenset(
        edge.class_edge
        for finding in summary.findings
        for edge in finding.edges
        if edge.class_edge is not None
        and (finding.rung >= Rung.R2 or finding.kind in {Kind.ORDER, Kind.SAME_CLASS})
    )


def _dot_lines(summary: Summary) -> Iterator[str]:
    bad = dangerous(summary)
    for name in lock_classes(summary):
        yield f"  {_dot_text(name)};"
    for one in summary.class_edges:
        style = _style(one, red=str(one) in bad)
        label = _dot_text(f"{one.held_mode}->{one.wanted_mode} x{one.count}")
        yield f"  {_dot_text(one.held)} -> {_dot_text(one.wanted)} [label={label}{style}];"


def _style(class_edge: ObservedEdge, *, red: bool) -> str:
    return (", color=red, penwidth=2" if red else "") + ("" if class_edge.waits else ", style=dashed")


def _dot_text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _mermaid_text(text: str) -> str:
    """Return a text in quotes; Mermaid needs quotes in it as character codes."""
    escaped = text.replace("&", "#amp;").replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;")
    return f'"{escaped}"'
