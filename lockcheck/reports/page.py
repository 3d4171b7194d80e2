"""A summary as one HTML file that needs nothing else: the graph, the findings, and a filter by class.

The page is bounded (`BYTES_MAX`): what does not fit is left out, the weakest evidence first, and the page
shows how much that is.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from ..findings.evidence import DEFAULT_FAIL_ON
from ..findings.findings import Finding
from ..findings.text import finding_text
from ..sessions.summaries import ObservedEdge, Summary
from ..sessions.text import closing
from .diagrams import dangerous, lock_classes
from .page_graph import draw

BYTES_MAX: Final = 300_000
_CHOICES_SHARE: Final = 20_000
_GRAPH_SHARE: Final = 70_000
_CLASS_EDGES_SHARE: Final = 50_000
_FINDINGS_SHARE: Final = 140_000
_CLOSING_SHARE: Final = 5_000
_CLASSES_DRAWN_MAX: Final = 60
_TEMPLATE: Final = Path(__file__).with_name("page.html")
_CLASS_EDGE: Final = re.compile(r"(.*)\[[RW]\] -> (.*)\[[RW]\]", re.DOTALL)


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
    """Join parts as long as they fit into a share of the page; say how many do not."""
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
