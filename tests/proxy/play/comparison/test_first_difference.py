"""The first decision that differs: of two lists of decisions, and of two runs."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from licorne.proxy.play.comparison.first_difference import (
    FirstDifference,
    difference_document,
    difference_lines,
    first_difference,
)
from licorne.proxy.play.simulation.record import Decision, DecisionKind

_MINUTE = 60 * 10**9


def _decision(
    ask: str,
    minute: int = 0,
    node: str = "n1",
    kind: DecisionKind = DecisionKind.PLACED,
    queue: str = "root.q",
) -> Decision:
    """Build a decision; a rejection has its node as its reason."""
    is_rejected = kind is DecisionKind.REJECTED
    return Decision(
        at_ns=minute * _MINUTE,
        kind=kind,
        ask=ask,
        node_id="" if is_rejected else node,
        reason=node if is_rejected else "",
        application="app",
        queue=queue,
        user="u",
    )


class Row(NamedTuple):
    """The decisions of A and of B after a common one, and the lines about their first difference."""

    a: list[Decision]
    b: list[Decision]
    lines: list[str]


CASES: dict[str, Row] = {
    "another node": Row(
        [_decision("x", 1)],
        [_decision("x", 1, "n2")],
        [
            "  A: x of app (root.q, u) is placed on n1",
            "     in B it is placed on n2, at 1m0s",
            "  B: x of app (root.q, u) is placed on n2",
            "     in A it is placed on n1, at 1m0s",
        ],
    ),
    "another ask first": Row(
        [_decision("x", 1), _decision("y", 2)],
        [_decision("y", 1), _decision("x", 3)],
        [
            "  A: x of app (root.q, u) is placed on n1",
            "     in B it is placed on n1, at 3m0s",
            "  B: y of app (root.q, u) is placed on n1",
            "     in A it is placed on n1, at 2m0s",
        ],
    ),
    "later in B": Row(
        [_decision("x", 1)],
        [_decision("x", 5, queue="root.other")],
        [
            "  A: x of app (root.q, u) is placed on n1",
            "     in B it is placed on n1, in root.other, at 5m0s",
            "  B decides nothing more at this moment",
        ],
    ),
    "never in A": Row(
        [],
        [_decision("x", 1)],
        [
            "  A decides nothing more at this moment",
            "  B: x of app (root.q, u) is placed on n1",
            "     A does not: it decides nothing about x from this moment on",
        ],
    ),
    "rejected in B": Row(
        [_decision("x", 1)],
        [_decision("x", 1, "too large", DecisionKind.REJECTED)],
        [
            "  A: x of app (root.q, u) is placed on n1",
            "     in B it is rejected: too large, at 1m0s",
            "  B: x of app (root.q, u) is rejected: too large",
            "     in A it is placed on n1, at 1m0s",
        ],
    ),
    "preempted in B": Row(
        [],
        [_decision("before", 1, kind=DecisionKind.PREEMPTED)],
        [
            "  A decides nothing more at this moment",
            "  B: before of app (root.q, u) is preempted on n1",
            "     A does not: it decides nothing about before from this moment on",
        ],
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_first_difference_is_shown_with_what_the_other_run_does(case: Row) -> None:
    """Behind a decision that both have."""
    before = _decision("before")

    lines = list(difference_lines(first_difference([before, *case.a], [before, *case.b])))

    assert ["the first decision that differs is number 2, at 1m0s:", *case.lines] == lines


def test_an_other_queue_with_the_same_result_is_no_difference() -> None:
    """A queue that has another name would otherwise hide every difference that matters."""
    assert None is first_difference([_decision("x")], [_decision("x", queue="root.renamed")])


def test_two_runs_without_a_difference_say_so() -> None:
    """In the text and in the document."""
    assert (["no decision differs"], None) == (list(difference_lines(None)), difference_document(None))


def test_the_document_has_both_decisions_and_what_the_other_run_does() -> None:
    """With times in nanoseconds; where a run decides nothing there is null."""
    decision = {
        "at_ns": _MINUTE,
        "kind": "placed",
        "ask": "x",
        "node_id": "n1",
        "reason": "",
        "application": "app",
        "queue": "root.q",
        "user": "u",
    }
    expected = {
        "number": 1,
        "at_ns": _MINUTE,
        "a": decision,
        "b": None,
        "a_in_b": {**decision, "at_ns": 2 * _MINUTE},
        "b_in_a": None,
    }

    assert expected == difference_document(first_difference([_decision("x", 1)], [_decision("x", 2)]))


_RUNS = st.lists(
    st.builds(_decision, st.sampled_from("xyz"), st.integers(0, 2), st.sampled_from(["n1", "n2"])), max_size=6
).map(lambda run: sorted(run, key=lambda decision: decision.at_ns))


@given(_RUNS, _RUNS)
def test_all_before_the_first_difference_is_the_same(a: list[Decision], b: list[Decision]) -> None:
    """And the decision itself is not; two runs without a difference are equal."""
    found = first_difference(a, b)

    if found is None:
        assert a == b
    else:
        index = found.number - 1
        assert a[:index] == b[:index]
        assert a[index : index + 1] != b[index : index + 1]


@given(_RUNS, _RUNS)
def test_to_exchange_a_and_b_exchanges_the_sides(a: list[Decision], b: list[Decision]) -> None:
    """The moment and the number stay."""
    there, back = first_difference(a, b), first_difference(b, a)

    expected = back and FirstDifference(
        number=back.number, at_ns=back.at_ns, a=back.b, b=back.a, a_in_b=back.b_in_a, b_in_a=back.a_in_b
    )
    assert expected == there
