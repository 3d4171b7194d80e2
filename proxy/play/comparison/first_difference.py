"""The first decision that differs between two simulations of one input, and what the other run does instead.

Up to it both runs are the same; whatever differs later follows from it, or from a difference of the
configurations that had no effect until then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import final

from ....model.configuration.durations import duration_text
from ..simulation.decisions import Decision, DecisionKind
from ..simulation.report import JsonDocument


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FirstDifference:
    """The first decision that differs.

    `number` counts decisions from 1, `at_ns` is the moment. `a` and `b` are what A and B decide, `None` where
    a run decides nothing more at that moment. `a_in_b` is what B decides next about the ask of `a`, now or
    later, and `b_in_a` the reverse; `None` where that is nothing.
    """

    number: int
    at_ns: int
    a: Decision | None
    b: Decision | None
    a_in_b: Decision | None
    b_in_a: Decision | None


def first_difference(a: Sequence[Decision], b: Sequence[Decision]) -> FirstDifference | None:
    """Return the first difference of the decisions of two simulations, `None` if all are the same."""
    for index, (of_a, of_b) in enumerate(zip_longest(a, b)):
        if of_a is None or of_b is None or not of_a.is_same(of_b):
            at_ns = min(decision.at_ns for decision in (of_a, of_b) if decision is not None)
            now_a, now_b = _at(of_a, at_ns), _at(of_b, at_ns)
            return FirstDifference(
                number=index + 1,
                at_ns=at_ns,
                a=now_a,
                b=now_b,
                a_in_b=_next_about(now_a, b, index),
                b_in_a=_next_about(now_b, a, index),
            )
    return None


def _at(decision: Decision | None, at_ns: int) -> Decision | None:
    """Return a decision if it is of that moment."""
    return decision if decision is not None and decision.at_ns == at_ns else None


def _next_about(decision: Decision | None, others: Sequence[Decision], start: int) -> Decision | None:
    """Return the first decision of another run about the same ask, from a position on."""
    if decision is None:
        return None
    return next((others[n] for n in range(start, len(others)) if others[n].ask == decision.ask), None)


def difference_lines(difference: FirstDifference | None) -> Iterator[str]:
    """Yield the first difference as lines of text."""
    if difference is None:
        yield "no decision differs"
        return
    yield (
        f"the first decision that differs is number {difference.number:,}, "
        f"at {duration_text(difference.at_ns)}:"
    )
    for side, other, decision, there in (
        ("A", "B", difference.a, difference.a_in_b),
        ("B", "A", difference.b, difference.b_in_a),
    ):
        if decision is None:
            yield f"  {side} decides nothing more at this moment"
            continue
        yield (
            f"  {side}: {decision.ask} of {decision.application} ({_owner(decision)}) is {_result(decision)}"
        )
        yield f"     {_elsewhere(other, decision, there)}"


def _owner(decision: Decision) -> str:
    """Return the queue and the user of a decision as text."""
    return ", ".join(filter(None, (decision.queue, decision.user))) or "of no queue and no user"


def _result(decision: Decision) -> str:
    """Return what was decided as text."""
    if decision.kind is DecisionKind.REJECTED:
        return f"rejected: {decision.reason}"
    return f"{decision.kind.value} on {decision.node_id}"


def _elsewhere(side: str, decision: Decision, there: Decision | None) -> str:
    """Return what the other run does with the same ask as text."""
    if there is None:
        return f"{side} does not: it decides nothing about {decision.ask} from this moment on"
    queue = f", in {there.queue}" if there.queue != decision.queue else ""
    return f"in {side} it is {_result(there)}{queue}, at {duration_text(there.at_ns)}"


def difference_document(difference: FirstDifference | None) -> JsonDocument:
    """Return the first difference as a JSON document, null where no decision differs."""
    if difference is None:
        return None
    return {
        "number": difference.number,
        "at_ns": difference.at_ns,
        "a": _decision_document(difference.a),
        "b": _decision_document(difference.b),
        "a_in_b": _decision_document(difference.a_in_b),
        "b_in_a": _decision_document(difference.b_in_a),
    }


def _decision_document(decision: Decision | None) -> JsonDocument:
    """Return one decision as a JSON document."""
    return None if decision is None else {**decision._asdict(), "kind": decision.kind.value}
