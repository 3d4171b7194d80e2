"""What a session has to say, as values, and several of them as one."""

from __future__ import annotations

from support.lockcheck.lock_corpus import RECORD, hold
from support.lockcheck.lock_reports import a_cycle, a_sound_program

from licorne.lockcheck import Lock, Rung, session, unit
from licorne.lockcheck.findings.findings import suggestion
from licorne.lockcheck.sessions.summaries import merged


def test_a_summary_has_the_strongest_finding_first_and_edges_with_their_places() -> None:
    """Each edge with the session that saw it first, and both stacks."""
    summary = a_cycle().summary()
    class_edge = next(one for one in summary.class_edges if str(one) == "application[W] -> queue[W]")

    assert [Rung.R2, Rung.R1, Rung.R0] == [finding.rung for finding in summary.findings]
    assert (1, True, "test_it") == (class_edge.count, class_edge.waits, class_edge.test)
    assert class_edge.example.hold_stack
    assert class_edge.example.want_stack


def test_what_is_only_tried_is_distinguished() -> None:
    """Nobody waits there."""
    with session(on=RECORD) as opened:
        outer, inner = Lock("outer"), Lock("inner")
        with outer:
            assert inner.acquire(blocking=False)
            inner.release()
    (class_edge,) = opened.summary().class_edges

    assert not class_edge.waits


def test_merging_counts_the_same_finding_once_and_keeps_who_saw_it_first() -> None:
    """By fingerprint; edges by classes and modes, orders by what they say."""
    first, second = a_cycle("first").summary(), a_cycle("second").summary()
    both = merged([first, second, a_sound_program().summary()])

    assert [finding.fingerprint for finding in first.findings] == [
        finding.fingerprint for finding in both.findings
    ]
    assert {2} == {finding.count for finding in both.findings}
    assert {"first"} == {finding.test for finding in both.findings}
    assert {*map(str, first.class_edges), "partition[R] -> queue[W]"} == {*map(str, both.class_edges)}
    assert 1 == len(both.orders)


def test_the_step_that_the_fewest_places_make_is_suggested() -> None:
    """There the least has to be changed."""
    with session(on=RECORD) as opened:
        first, second = Lock("first"), Lock("second")
        with unit("often"):
            with first, second:
                pass
            with first, second:
                pass
        with unit("once"), second, first:
            pass
    summary = opened.summary()
    (finding,) = summary.findings

    assert {"first[W] -> second[W]": 2, "second[W] -> first[W]": 1} == summary.sites
    assert "let once take first" in str(suggestion(finding, summary.sites))
    assert "(1 place in the code)" in opened.report_text()


def test_a_guarded_path_is_drawn_too() -> None:
    """As it would come to a standstill without its guard."""
    with session(on=RECORD) as opened:
        gate, first, second = Lock("gate"), Lock("first"), Lock("second")
        with unit("one"):
            hold(gate, first, second)
        with unit("two"):
            hold(gate, second, first)

    assert "  how it would come to a standstill:" in opened.report_text()
