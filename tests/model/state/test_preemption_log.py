"""What is remembered of preemptions, and how it is explained."""

from __future__ import annotations

from support.model.preemption_scenes import a_preemption

from licorne.model.state.preemption_log import (
    RECORDS_MAX,
    PreemptionLog,
    PreemptionRecord,
)


def waits(_: PreemptionRecord) -> bool:
    return True


def test_an_explanation_names_the_ask_and_each_victim() -> None:
    """One line says for whom, one for each victim says who, where and why."""
    lines = a_preemption("ask", "v1", "v2").explain()

    assert (
        "ask needs room",
        "v1 of other in root.b on n1: it is the youngest",
        "v2 of other in root.b on n1: it is the youngest",
    ) == lines


def test_an_explanation_ends_with_the_loop() -> None:
    """That a preemption repeats an earlier one is part of it."""
    assert a_preemption(loop="again").explain()[-1] == "loop: again"


def test_a_log_explains_asks_and_victims_by_their_key() -> None:
    """Each ask or victim finds the whole preemption."""
    log = PreemptionLog()
    log.add(a_preemption("ask", "v1"), waits)
    log.add(a_preemption("other", "v2"), waits)

    assert a_preemption("ask", "v1").explain() == log.explain("ask")
    assert a_preemption("other", "v2").explain() == log.explain("v2")
    assert log.explain("unknown") == ()


def test_a_log_forgets_the_oldest() -> None:
    """It has a bound for what it explains."""
    log = PreemptionLog()
    for number in range(RECORDS_MAX + 1):
        log.add(a_preemption(f"ask{number}"), waits)

    assert RECORDS_MAX == len(log)
    assert next(iter(log)).allocation_key == "ask1"
    assert () == log.explain("ask0")


def test_a_log_knows_the_last_preemption_for_every_ask_that_waits() -> None:
    """However many there were since; those of asks that wait no longer are forgotten in time."""
    log = PreemptionLog()
    for number in range(8 * RECORDS_MAX):
        log.add(a_preemption(f"ask{number}"), lambda record: record.allocation_key.endswith("0"))

    known = [number for number in range(8 * RECORDS_MAX) if log.last_for(f"ask{number}", "app") is not None]
    assert set(range(0, 8 * RECORDS_MAX, 10)) <= set(known)
    assert len(known) <= 2 * RECORDS_MAX


def test_a_log_knows_the_last_preemption_for_an_ask() -> None:
    """Of the ask with that key in that application."""
    log = PreemptionLog()
    log.add(a_preemption("ask", "v1"), waits)
    log.add(a_preemption("ask", "v2"), waits)

    assert a_preemption("ask", "v2") == log.last_for("ask", "app")
    assert log.last_for("ask", "another") is None


def test_a_log_counts_loops() -> None:
    """Also those that it has forgotten since."""
    log = PreemptionLog()
    log.add(a_preemption(loop="again"), waits)
    for number in range(RECORDS_MAX):
        log.add(a_preemption(f"ask{number}"), waits)

    assert log.loops == 1
