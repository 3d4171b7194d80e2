"""The text that a person acts on."""

from __future__ import annotations

from support.lockcheck.lock_corpus import RECORD, hold

from licorne.lockcheck import Lock, Order, Rung, RWLock, session, unit
from licorne.lockcheck.findings.findings import counted
from licorne.lockcheck.locks.rwlock import PlainRWLock


def take_queue_then_application(queue: PlainRWLock, application: PlainRWLock) -> None:
    """Take them in the one order."""
    with queue.write(), application.read():
        pass


def take_application_then_queue(queue: PlainRWLock, application: PlainRWLock) -> None:
    """Take them in the other order."""
    with application.write(), queue.write():
        pass


def report() -> str:
    """Return the report of a path that closes."""
    with session(on=RECORD, name="test_it") as opened:
        queue, application = RWLock("queue", key="root.a"), RWLock("application", key="app-1")
        with unit("scheduler"):
            take_queue_then_application(queue, application)
        with unit("rm"):
            take_application_then_queue(queue, application)
    return opened.report_text()


def test_every_step_shows_where_the_first_lock_was_taken_and_where_the_second_is_wanted() -> None:
    """With file, line, function and the line itself."""
    text = report()

    assert "scheduler held queue root.a [W], taken at" in text
    assert "scheduler wanted application app-1 [R] at" in text
    assert "in take_queue_then_application: with queue.write(), application.read():" in text
    assert "in take_application_then_queue: with application.write(), queue.write():" in text


def test_the_standstill_is_drawn_in_columns() -> None:
    """A column an execution: first what it takes, then what it waits for."""
    lines = report().splitlines()
    at = lines.index("  how it comes to a standstill:")

    assert ["rm", "scheduler"] == lines[at + 1].split()
    assert "takes application app-1 [W]" == lines[at + 2].strip()
    assert "takes queue root.a [W]" == lines[at + 3].strip()
    assert "waits for queue root.a [W]" == lines[at + 4].strip()
    assert "waits for application app-1 [R]" == lines[at + 5].strip()
    assert lines[at + 2].index("takes") < lines[at + 3].index("takes")


def test_a_step_to_reverse_is_suggested() -> None:
    """And the reasons why nothing guards the path are listed."""
    text = report()

    assert "suggestion: let " in text
    assert "no lock is held by two of them in modes that exclude each other" in text


def test_the_report_begins_with_the_strongest_evidence_and_ends_with_what_was_looked_at() -> None:
    """Findings carry the test in which they were seen first."""
    lines = report().splitlines()

    assert lines[0].startswith(
        "Possible deadlock, not seen yet: application app-1 [W] then queue root.a [W] in "
    )
    assert "first in test_it" in lines[0]
    assert lines[-2].startswith("lockcheck, level full: found ")


def test_a_broken_declaration_names_its_clause() -> None:
    """So that whoever reads it knows which side is wrong."""
    with session(Order("queue < application"), on=RECORD) as opened:
        hold(RWLock("application", key="a").write(), RWLock("queue", key="q").read())

    assert "  declared: queue < application" in opened.report_text()


def test_at_the_level_order_the_place_is_shown_and_older_stacks_are_not_kept() -> None:
    """They would cost something on every new edge."""
    with session(Order("queue < application"), level="order", on=RECORD) as opened:
        hold(Lock("application"), Lock("queue"))

    (finding,) = opened.findings
    assert Rung.R0 is finding.rung
    assert finding.edges[0].want_stack
    assert "(no stack: the level `order` keeps none)" in opened.report_text()


def test_one_of_something_is_singular() -> None:
    """Whatever it is."""
    assert ["1 edge", "2 edges", "0 edges"] == [counted(count, "edge") for count in (1, 2, 0)]
    assert ["1 search", "2 searches"] == [counted(count, "search", "searches") for count in (1, 2)]
