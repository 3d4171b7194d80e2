"""The learned graph as DOT and Mermaid."""

from __future__ import annotations

from support.lockcheck.lock_corpus import RECORD, hold
from support.lockcheck.lock_reports import summary_of_a_cycle

from licorne.lockcheck import Lock, session
from licorne.lockcheck.reports.diagrams import dot, lock_classes, mermaid
from licorne.lockcheck.sessions.summaries import Summary


def test_dot_has_every_class_and_edge_and_cycles_in_red() -> None:
    """Declared classes stand there too, used or not."""
    lines = dot(summary_of_a_cycle()).splitlines()

    assert '  "node";' in lines
    assert '  "application" -> "queue" [label="W->W x1", color=red, penwidth=2];' in lines
    assert '  "gate" -> "first" [label="W->W x2"];' in lines


def test_mermaid_has_them_too() -> None:
    """The links in red are named by their numbers."""
    summary = summary_of_a_cycle()
    lines = mermaid(summary).splitlines()
    at = [str(class_edge) for class_edge in summary.class_edges].index("application[W] -> queue[W]")

    assert "flowchart LR" == lines[0]
    assert '    n0["queue"]' in lines
    assert '    n1 -->|"W to W, 1"| n0' in lines
    assert lines[-1].startswith(f"    linkStyle {at},")


def test_names_are_quoted() -> None:
    """A quote or a bracket in the name of a class ends nothing."""
    with session(on=RECORD) as opened:
        hold(Lock('a "b" [c]'), Lock("d<e>"))

    assert r'  "a \"b\" [c]" -> "d<e>"' in dot(opened.summary())
    assert 'n0["a #quot;b#quot; [c]"]' in mermaid(opened.summary())
    assert 'n1["d#lt;e#gt;"]' in mermaid(opened.summary())


def test_an_empty_summary_gives_an_empty_graph() -> None:
    """And no link in red."""
    assert () == lock_classes(Summary("full"))
    assert "flowchart LR\n" == mermaid(Summary("full"))
