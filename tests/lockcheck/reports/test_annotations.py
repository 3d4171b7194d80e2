"""Findings as annotations of GitHub's workflows."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from support.lockcheck.lock_reports import summary_of_a_cycle

from licorne.lockcheck.findings.evidence import DEFAULT_FAIL_ON
from licorne.lockcheck.reports.annotations import to_annotations
from licorne.lockcheck.sessions.summaries import Summary

ROOT = Path(__file__).parents[3]


def test_each_finding_is_one_line_beside_its_place_the_strongest_first() -> None:
    """What fails is an error, what is only noted a notice; places are relative to the root."""
    lines = to_annotations(summary_of_a_cycle(), ROOT, DEFAULT_FAIL_ON).splitlines()

    assert ["error", "notice", "error"] == [re.match(r"::(\w+) ", line)[1] for line in lines]  # type: ignore[index]
    assert lines[0].startswith("::error file=tests/support/lockcheck/lock_corpus.py,line=")
    assert ",title=lockcheck R2%3A cycle::a cycle of 2 steps: " in lines[0]
    assert "%0ASuggestion: let " in lines[0]


def test_what_a_baseline_accepts_is_a_notice_and_faults_are_errors() -> None:
    """A reader sees the reason beside the code."""
    summary = summary_of_a_cycle()
    first = replace(summary, findings=summary.findings[:1])
    text = to_annotations(first, ROOT, DEFAULT_FAIL_ON, accepted={summary.findings[0].fingerprint: "known"})

    assert text.startswith("::notice ")
    assert text.endswith("%0AAccepted: known\n")
    assert "::error title=lockcheck::KeyError%0A1\n" == to_annotations(
        Summary("full", faults=("KeyError\n1",)), ROOT, DEFAULT_FAIL_ON
    )


def test_no_name_can_end_a_command_or_begin_another_one() -> None:
    """Signs that mean something to GitHub are escaped; a file elsewhere keeps its path."""
    summary = summary_of_a_cycle()
    finding = summary.findings[0]
    frame = replace(finding.edges[0].want_stack[0], file="/x/a,b:c%.py")
    edges = (replace(finding.edges[0], want_stack=(frame,)),)
    odd = replace(finding, text="a\n::error::b", edges=edges, why=())
    (line,) = to_annotations(replace(summary, findings=(odd,)), ROOT, DEFAULT_FAIL_ON).splitlines()

    assert line.startswith(f"::error file=/x/a%2Cb%3Ac%25.py,line={frame.line},")
    assert "::a%0A::error::b" in line
