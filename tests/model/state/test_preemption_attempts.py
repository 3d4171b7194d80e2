"""How often preemption is tried."""

from __future__ import annotations

from support.model.builders import SECOND_NS, START_NS, TEN, an_ask

from licorne.model.applications.ask_walk import Candidate, CandidateKind
from licorne.model.applications.pending_asks import CHECK_INTERVAL_NS, AskRecord, has_own_answer
from licorne.model.state.rates import (
    FAILED_ATTEMPTS_MAX,
    AttemptShape,
    FailedAttempts,
    due_ns,
)

STAMP = (1, 2, 3)
LATER = (1, 2, 4)
SHAPE = AttemptShape("root.a", TEN, 0, nodes_tried=False, reserved_node="")


def a_candidate(checked_ns: int | None = None) -> Candidate:
    return Candidate(
        an_ask(), CandidateKind.PREEMPTION, "", triggered_preemption=False, preemption_checked_ns=checked_ns
    )


def test_an_ask_is_due_after_the_delay() -> None:
    """It counts from its creation."""
    assert START_NS + 30 * SECOND_NS == due_ns(a_candidate(), 30 * SECOND_NS)


def test_an_ask_that_was_tried_is_due_fifteen_seconds_later() -> None:
    """Or after the delay, whichever is later."""
    late = a_candidate(START_NS + 20 * SECOND_NS)
    early = a_candidate(START_NS)

    assert START_NS + 35 * SECOND_NS == due_ns(late, 30 * SECOND_NS)
    assert START_NS + 30 * SECOND_NS == due_ns(early, 30 * SECOND_NS)


def test_what_was_not_tried_stands_for_nothing() -> None:
    """Shapes differ by leaf, size, priority, whether nodes were tried, and a node of one's own."""
    failed = FailedAttempts()
    failed.note(SHAPE, START_NS, STAMP)
    others = [
        SHAPE._replace(leaf="root.b"),
        SHAPE._replace(priority=1),
        SHAPE._replace(nodes_tried=True),
        SHAPE._replace(reserved_node="n1"),
    ]

    assert [None] * 4 == [failed.until_ns(other, START_NS, STAMP) for other in others]


def test_a_failed_attempt_holds_for_others_while_nothing_changes() -> None:
    """For as long as the ask itself would wait."""
    failed = FailedAttempts()
    failed.note(SHAPE, START_NS, STAMP)
    end_ns = START_NS + CHECK_INTERVAL_NS

    assert end_ns == failed.until_ns(SHAPE, end_ns - 1, STAMP)
    assert failed.until_ns(SHAPE, end_ns, STAMP) is None


def test_a_failed_attempt_holds_for_a_second_when_something_changes() -> None:
    """A busy cluster changes all the time, and an attempt looks at every allocation."""
    failed = FailedAttempts()
    failed.note(SHAPE, START_NS, STAMP)
    end_ns = START_NS + SECOND_NS

    assert end_ns == failed.until_ns(SHAPE, end_ns - 1, LATER)
    assert failed.until_ns(SHAPE, end_ns, LATER) is None


def test_only_so_many_attempts_are_remembered() -> None:
    """The oldest is forgotten, one that is noted again is the youngest."""
    failed = FailedAttempts()
    for number in range(FAILED_ATTEMPTS_MAX):
        failed.note(SHAPE._replace(priority=number), START_NS, STAMP)
    failed.note(SHAPE, START_NS, STAMP)
    failed.note(SHAPE._replace(priority=-1), START_NS, STAMP)

    assert FAILED_ATTEMPTS_MAX == len(failed)
    assert failed.until_ns(SHAPE, START_NS, STAMP) is not None
    assert failed.until_ns(SHAPE._replace(priority=1), START_NS, STAMP) is None


def test_an_ask_that_preemption_never_looked_at_is_answered_with_the_others() -> None:
    """It differs from them by its age alone."""
    assert not has_own_answer(AskRecord(an_ask(), (0, START_NS, 0)), "", START_NS)


def test_an_ask_with_a_past_or_a_node_has_an_answer_of_its_own() -> None:
    """It has preempted, was tried less than fifteen seconds ago, or has a node that is kept for it."""
    triggered = AskRecord(an_ask(), (0, START_NS, 0))
    triggered.preemption_triggered = True
    tried = AskRecord(an_ask(), (0, START_NS, 0))
    tried.preemption_checked_ns = START_NS

    assert has_own_answer(triggered, "", START_NS)
    assert has_own_answer(AskRecord(an_ask(), (0, START_NS, 0)), "n1", START_NS)
    assert has_own_answer(tried, "", START_NS + CHECK_INTERVAL_NS - 1)
    assert not has_own_answer(tried, "", START_NS + CHECK_INTERVAL_NS)
