"""Backfilling with predicates of the RM: what they refuse has no promise, and its explanation says so."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import pytest
from support.model.builders import FakePredicates, a_resource
from support.model.harness import Harness

from licorne.model.explanation.explain import explain
from licorne.model.explanation.planned_starts import PlannedStart
from licorne.model.explanation.values import Explanation
from licorne.model.values.allocation import RefusalReason


def a_partition(predicates: FakePredicates) -> Harness:
    """Return a node of ten."""
    harness = Harness(root='properties: {backfill.reservations: "1"}', predicates=predicates)
    harness.nodes("n1", capacity=a_resource(vcore=10_000))
    return harness


def send(harness: Harness, name: str, size: int, tags: dict[str, str], required_node: str = "") -> None:
    """Submit a job, an application with one ask, and run cycles."""
    harness.submit(name, tags=tags)
    harness.ask(
        name, application_id=name, resource=a_resource(vcore=size * 1000), required_node=required_node
    )
    harness.run_until_idle()


def explained(harness: Harness, name: str) -> Explanation:
    """Return the explanation of a job."""
    explanation = explain(harness.state, name)
    assert explanation is not None
    return explanation


DENIED: Final = PlannedStart(reason="the RM's predicates refuse the nodes with room")


@dataclass(frozen=True)
class Refused:
    """A job that the RM refuses, and the subject of its blocker."""

    tags: dict[str, str] = field(default_factory=dict)
    required_node: str = ""
    subject: str = ""
    planned: PlannedStart | None = DENIED


CASES = {
    "any node would do": Refused(),
    "it is a gang that is placed whole": Refused(tags={"gangSize": "1"}),
    "it needs its node, which is reserved for it": Refused(required_node="n1", subject="n1", planned=None),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_the_rm_refuses_has_no_promise_and_is_explained(case: Refused) -> None:
    """The blocker has the words of the RM, and no start is expected: what comes behind waits for nothing."""
    harness = a_partition(FakePredicates(refused={("a", "n1"): "n1 has a taint"}))
    send(harness, "a", 8, case.tags, case.required_node)
    (waiting,) = explained(harness, "a").waiting
    (blocker,) = waiting.blockers

    expected = (RefusalReason.PREDICATES, case.subject, "n1 has a taint", case.planned)
    assert expected == (blocker.reason, blocker.subject, blocker.detail, waiting.planned_start)


def test_what_the_rm_refuses_delays_nothing() -> None:
    """A job behind it starts, however long it runs; and it starts itself once the RM agrees."""
    predicates = FakePredicates(refused={("a", "n1"): "n1 has a taint"})
    harness = a_partition(predicates)
    send(harness, "a", 2, {})
    send(harness, "b", 8, {})
    before = harness.placements
    predicates.refused.clear()
    harness.wait(1)

    assert ({"b": "n1"}, {"a": "n1", "b": "n1"}) == (before, harness.placements)


def test_an_older_refusal_is_no_blocker_of_what_is_promised_a_start() -> None:
    """The last walk counts: by then its node is full."""
    harness = a_partition(FakePredicates(refused={("a", "n1"): "n1 has a taint"}))
    send(harness, "a", 8, {})
    send(harness, "b", 4, {"walltime": "1h"})
    (waiting,) = explained(harness, "a").waiting

    assert RefusalReason.PREDICATES not in [blocker.reason for blocker in waiting.blockers]
    assert waiting.planned_start is not None
    assert waiting.planned_start.is_promised
