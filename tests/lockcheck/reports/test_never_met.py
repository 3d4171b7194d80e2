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

@pytest.mark.lockcheck(role="server")
def test_first_then_second():
    nest("first", "second")

@pytest.mark.lockcheck(role="server")
def test_second_then_first():
    nest("second", "first")

def test_third_then_first():
    nest("third", "first")

def test_first_then_third():
    nest("first", "third")
"""


def seen(name: str, path: Path, role: str | None = None) -> Summary:
    """Return what a test has to say that takes some locks inside each other."""
    with session(on=RECORD, name=name, role=role) as opened:
        hold(*path(Cluster()))
    return opened.summary()


def down(role: str | None = None) -> Summary:
    """Return what a test has to say that takes an application, then a node."""
    return seen("test_down", lambda c: (c.application.write(), c.node.write()), role)


def up(role: str | None = None) -> Summary:
    """Return what a test has to say that takes them the other way round."""
    return seen("test_up", lambda c: (c.node.write(), c.application.write()), role)


def test_what_two_tests_do_is_shown_as_never_ran_together() -> None:
    """Each step with the test that took it and its stacks; at R1, for it was no deadlock and could not be."""
    (finding,) = cycles_across_sessions(merged([down(), up()]))
    text = finding_text(finding, {})

    assert finding.rung is Rung.R1
    assert "a cycle over tests: application[W] -> node[W], then node[W] -> application[W]" in text
    assert "its steps never ran together: application[W] -> node[W] in test_down" in text
    assert "MainThread of test_up held node n1 [W], taken at" in text


def test_tests_of_one_role_are_checked_as_one_program() -> None:
    """At R2, where nothing guards the path; other roles are other programs."""
    (finding,) = cycles_across_sessions(merged([down("server"), up("server")]))
    (other,) = cycles_across_sessions(merged([down("server"), up("client")]))

    assert (Rung.R2, Rung.R1) == (finding.rung, other.rung)
    assert "the program does this at the same time: the tests have the role server" in finding.why


def test_a_gate_other_keys_readers_and_tries_guard_a_path_of_one_role() -> None:
    """What summaries know of guards; a path through a step that only tries is none at all."""
    gated = [
        seen("a", lambda c: (c.root.write(), c.application.write(), c.node.write()), "server"),
        seen("b", lambda c: (c.root.write(), c.node.write(), c.application.write()), "server"),
    ]
    keyed = [down("server"), seen("b", lambda c: (c.node_2.write(), c.application.write()), "server")]
    readers = [
        seen("a", lambda c: (c.application.read(), c.node.read()), "server"),
        seen("b", lambda c: (c.node.read(), c.application.read()), "server"),
    ]

    for summaries, reason in (
        (gated, "guarded by queue root, held in both"),
        (keyed, "the other one held node n2"),
        (readers, "only readers meet at node, unless a writer comes between them"),
    ):
        (finding,) = cycles_across_sessions(merged(summaries))
        assert finding.rung is Rung.R1
        assert [why for why in finding.why if reason in why], finding.why


@pytest.mark.parametrize("seconds", [0, 9])
def test_a_step_that_only_tries_or_gives_up_closes_nothing(seconds: float) -> None:
    """Nobody waits there for ever."""
    with session(on=RECORD, name="tries", role="server") as opened:
        c = Cluster()
        with c.node.write():
            assert c.application.acquire_write(seconds)
            c.application.release_write()

    assert () == cycles_across_sessions(merged([down("server"), opened.summary()]))


def test_locks_without_a_key_are_identified_by_their_class() -> None:
    """Their numbers differ from run to run."""
    one = seen("one", lambda _: (Lock("first"), Lock("second")), "server")
    two = seen("two", lambda _: (Lock("second"), Lock("first")), "server")
    (finding,) = cycles_across_sessions(merged([one, two]))

    assert finding.rung is Rung.R2


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
    """However many summaries come in between; roles survive a process of their own."""
    merged_back = MergedSummaries("full")
    for held, wanted in (("first", "second"), ("second", "third"), ("third", "first")):
        summary = seen(f"test_{held}", lambda _, h=held, w=wanted: (Lock(h), Lock(w)), "ring")  # type: ignore[misc]
        merged_back.add(from_json(to_json(summary), "here"))
        for _ in range(40):
            merged_back.add(Summary("full"))
    summary, (finding,) = merged_back.with_cycles()

    assert (Rung.R2, 3) == (finding.rung, len(finding.edges))
    assert (finding,) == summary.findings


def test_under_pytest_the_role_is_given_by_the_marker_and_the_run_fails(tmp_path: Folder) -> None:
    """No test alone does; what has no role is only counted."""
    code, said = run_module(tmp_path, MODULE, "--lockcheck=full")

    assert 1 == code
    assert "4 passed" in said
    assert "found 1 at R1, 1 at R2" in said
    assert "2 of them over several tests" in said
    assert (
        "over several tests: Possible deadlock, not seen yet: a cycle over tests: first[W] -> second[W]"
        in said
    )
