"""Fingerprints: what is one finding, and what are two."""

from __future__ import annotations

import queue
import time
from dataclasses import replace

import pytest
from support.lockcheck.lock_corpus import RECORD, Guard, nest
from support.lockcheck.lock_reports import a_cycle
from support.waiting import EXPIRING_SECONDS

from licorne.lockcheck import Condition, Edge, Lock, Rung, session, unit
from licorne.lockcheck.findings.findings import Finding, fingerprint_of, fingerprint_of_steps
from licorne.lockcheck.findings.terms import Frame, Kind


def test_two_kinds_of_blocking_call_at_one_place_are_two_findings() -> None:
    """To accept the sleep does not hide the queue, and to accept one queue does not hide another."""
    first, second = queue.Queue[int](), queue.Queue[int]()
    first.put(1)
    second.put(1)
    with session(on=RECORD) as opened, Lock("a"):
        time.sleep(1e-9)
        first.get()
        second.get()

    assert ["sleep", "queue", "queue"] == [finding.text.split()[0] for finding in opened.findings]
    assert 3 == len({finding.fingerprint for finding in opened.findings})


def test_cycles_over_the_same_classes_at_other_places_are_two_findings() -> None:
    """Each pair of locks is taken in both orders, by functions of its own."""
    with session(on=RECORD) as opened:
        one, other = (Lock("a"), Lock("b")), (Lock("a"), Lock("b"))
        nest("one", *one)
        nest("two", *one[::-1])
        hold_here(*other)

    found = [finding for finding in opened.findings if finding.rung is Rung.R2]
    assert 2 == len({finding.fingerprint for finding in found}) == len(found)


def hold_here(first: Guard, second: Guard) -> None:
    """Take two locks in both orders, at places of its own."""
    with unit("three"), first, second:
        pass
    with unit("four"), second, first:
        pass


def an_edge(held: str, wanted: str, file: str = "/here/it.py", line: int = 1) -> Edge:
    """Return an edge between two classes, at one place."""
    place = (Frame(file, line, "work", f"with {wanted}:"),)
    return Edge("t", held, wanted, (held,), place, place, f"{held}[W] -> {wanted}[W]")


def test_a_cycle_is_the_same_from_whichever_step_in_another_folder_and_on_another_line() -> None:
    """Only its classes, modes, files, functions and lines of text count."""
    there, back = an_edge("a", "b"), an_edge("b", "a")
    moved = [an_edge("b", "a", "/there/it.py", 7), an_edge("a", "b", "/there/it.py", 9)]

    assert fingerprint_of_steps([there, back]) == fingerprint_of_steps(moved)
    assert fingerprint_of_steps([there, back]) != fingerprint_of_steps([there, an_edge("b", "a", "other.py")])
    assert fingerprint_of("it.py:3") == fingerprint_of("it.py:4")


def test_a_finding_that_rises_is_counted_anew_and_one_that_is_known_better_keeps_its_rung() -> None:
    """What is acted on has the rung at which it was found now."""
    watch = session(on=RECORD).watch
    low = Finding(Rung.R1, Kind.CYCLE, "a cycle", (), fingerprint="f")
    high = replace(low, rung=Rung.R5)
    acted = [watch.note(low), watch.note(low), watch.note(high), watch.note(low)]

    assert [(Rung.R1, 1), (Rung.R1, 2), (Rung.R5, 1), (Rung.R1, 2)] == [
        (one.rung, one.count) for one in acted
    ]
    assert [(Rung.R5, 2)] == [(one.rung, one.count) for one in watch.findings]


def test_a_cycle_has_the_same_fingerprint_in_every_session() -> None:
    """The numbers of its locks and threads do not belong to it."""
    assert [one.fingerprint for one in a_cycle().findings] == [one.fingerprint for one in a_cycle().findings]


@pytest.mark.parametrize("timeout", [0, -1])
def test_a_condition_that_is_looked_at_once_does_not_block(timeout: int) -> None:
    """Another lock may be held meanwhile; a wait with a longer limit is a finding."""
    with session(on=RECORD) as opened:
        outer, changed = Lock("outer"), Condition(name="changed")
        with outer, changed:
            changed.wait(timeout)
        quiet = opened.findings
        with outer, changed:
            changed.wait(EXPIRING_SECONDS)

    assert () == quiet
    assert [Kind.BLOCKING] == [finding.kind for finding in opened.findings]
