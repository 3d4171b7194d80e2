"""Cycles whose steps were taken in different tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path as Folder
from typing import TYPE_CHECKING

import pytest
from support.lockcheck.lock_corpus import RECORD, Cluster, Guard, hold
from support.lockcheck.pytest_runs import run_module

from licorne.lockcheck import Lock, Rung, session, unit
from licorne.lockcheck.findings.findings import finding_text
from licorne.lockcheck.reports.documents import from_json, to_json
from licorne.lockcheck.reports.several_runs import MergedSummaries, cycles_across_sessions
from licorne.lockcheck.sessions.summaries import Summary, merged

if TYPE_CHECKING:
    Path = Callable[[Cluster], tuple[Guard, ...]]

MODULE = """
import pytest
from licorne.lockcheck import Lock

def nest(*names):
    if names:
        with Lock(names[0]):
            nest(*names[1:])

def test_first_then_second():
    nest("first", "second")

def test_second_then_first():
    nest("second", "first")

def test_third_then_first():
    nest("third", "first")

def test_first_then_third():
    nest("first", "third")
"""


def seen(name: str, path: Path) -> Summary:
    """Return what a test has to say that takes some locks inside each other."""
    with session(on=RECORD, name=name) as opened:
        hold(*path(Cluster()))
    return opened.summary()


def down() -> Summary:
    """Return what a test has to say that takes an application, then a node."""
    return seen("test_down", lambda c: (c.application.write(), c.node.write()))


def up() -> Summary:
    """Return what a test has to say that takes them the other way round."""
    return seen("test_up", lambda c: (c.node.write(), c.application.write()))


def test_what_two_tests_do_is_shown_as_never_ran_together() -> None:
    """Each step with the test that took it and its stacks; at R1, for it was no deadlock and could not be."""
    (finding,) = cycles_across_sessions(merged([down(), up()]))
    text = finding_text(finding, {})

    assert finding.rung is Rung.R1
    assert "a cycle over tests: application[W] -> node[W], then node[W] -> application[W]" in text
    assert "its steps never ran together: application[W] -> node[W] in test_down" in text
    assert "MainThread of test_up held node n1 [W], taken at" in text


@pytest.mark.parametrize("seconds", [0, 9])
def test_a_step_that_only_tries_or_gives_up_closes_nothing(seconds: float) -> None:
    """Nobody waits there for ever."""
    with session(on=RECORD, name="tries") as opened:
        c = Cluster()
        with c.node.write():
            assert c.application.acquire_write(seconds)
            c.application.release_write()

    assert () == cycles_across_sessions(merged([down(), opened.summary()]))


def test_what_one_test_has_found_itself_is_not_reported_again() -> None:
    """It knew the instances; nor is a cycle reported of which all steps are of one test."""
    with session(on=RECORD, name="both") as opened:
        c = Cluster()
        with unit("one"):
            hold(c.application.write(), c.node.write())
        with unit("two"):
            hold(c.node.write(), c.application.write())
    found = opened.summary()

    assert [Rung.R2] == [finding.rung for finding in found.findings]
    assert () == cycles_across_sessions(merged([down(), up(), found]))
    assert () == cycles_across_sessions(found)


def test_three_tests_have_a_cycle_and_all_is_merged_and_read_back() -> None:
    """However many summaries come in between; they survive a process of their own."""
    merged_back = MergedSummaries("full")
    for held, wanted in (("first", "second"), ("second", "third"), ("third", "first")):
        summary = seen(f"test_{held}", lambda _, h=held, w=wanted: (Lock(h), Lock(w)))  # type: ignore[misc]
        merged_back.add(from_json(to_json(summary), "here"))
        for _ in range(40):
            merged_back.add(Summary("full"))
    summary, (finding,) = merged_back.with_cycles()

    assert (Rung.R1, 3) == (finding.rung, len(finding.edges))
    assert (finding,) == summary.findings


def test_under_pytest_they_are_counted_and_fail_where_that_rung_does(tmp_path: Folder) -> None:
    """No test alone does."""
    code, said = run_module(tmp_path, MODULE, "--lockcheck=full", "--lockcheck-fail-on=R1")

    assert 1 == code
    assert "4 passed" in said
    assert "found 2 at R1" in said
    assert "2 of them over several tests" in said
    assert "since something guards it: a cycle over tests: first[W] -> second[W]" in said
