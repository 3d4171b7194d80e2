"""Neighbouring allocations that exist are recovered in one step, with the outcome of one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.model.builders import TEN, a_resource, an_ask_submission
from support.model.harness import Harness

from licorne.model.limits.limits import HolderKind
from licorne.model.limits.user_limits import usage_views
from licorne.model.nodes.node import NodeFacts
from licorne.model.requests.existing import RECOVERED_TOGETHER_MAX
from licorne.model.values.allocation import Allocation
from licorne.model.values.messages import (
    AllocationPlaced,
    AllocationsRecovered,
    AllocationsRejected,
    AllocationSubmission,
    ApplicationChanged,
    NodeAction,
)

QUEUES = """
- name: leaf
  resources: {max: {memory: 20}}
  limits: [{limit: "", groups: [staff], maxresources: {memory: 15}}]
"""
APPLICATIONS = ("app", "other", "gone")
NODES = ("one", "two", "three", "gone")
KINDS: tuple[HolderKind, ...] = ("user", "group")


@st.composite
def submissions(draw: st.DrawFn) -> AllocationSubmission:
    """Draw an ask or an allocation that exists; few keys, so that many are used twice."""
    kind = draw(st.sampled_from(("existing",) * 6 + ("ask", "placeholder", "foreign", "part")))
    key = f"k{draw(st.integers(0, 11))}" + ("#allocation:u" if kind == "part" else "")
    is_foreign = kind == "foreign"
    return an_ask_submission(
        key,
        "" if is_foreign else draw(st.sampled_from(APPLICATIONS[:2] * 4 + APPLICATIONS[2:])),
        node_id="" if kind == "ask" else draw(st.sampled_from(NODES[:3] * 4 + NODES[3:])),
        resource=a_resource(memory=draw(st.integers(0, 6)), vcore=draw(st.integers(0, 3))),
        task_group_name="g" if kind == "placeholder" else "",
        placeholder=kind == "placeholder",
        tags={"foreign": "default"} if is_foreign else {},
    )


def a_partition() -> Harness:
    """Return a partition with nodes, one of them cordoned, and two applications, one of them a gang."""
    h = Harness(QUEUES)
    h.nodes("one", "two")
    h.nodes("three", action=NodeAction.CREATE_DRAIN)
    h.submit("app")
    h.submit("other", placeholder_ask=TEN)
    h.forget()
    return h


def said(h: Harness) -> tuple[list[object], list[ApplicationChanged], list[str]]:
    """Return what the RM has heard: placements, states of applications, and reasons of rejections."""
    rejected = [each for answer in h.heard(AllocationsRejected) for each in answer.rejections]
    texts = [f"{each.allocation_key}: {each.reason}" for each in rejected]
    return [*map(described, h.placed)], h.heard(ApplicationChanged), texts


def described(allocation: Allocation) -> object:
    """Return the values of an allocation, which has no equality of its own."""
    ask = allocation.ask
    return (
        *(ask.allocation_key, ask.application_id, ask.resource, ask.created_at_ns, ask.placeholder),
        *(allocation.node_id, allocation.bound_at_ns, allocation.instance_type),
    )


def shown(h: Harness) -> list[object]:
    """Return what nodes, queues, users and applications have."""
    return [
        *[of_node(h.node(name)) for name in NODES[:3]],
        *[(queue.path, queue.allocated, queue.pending, queue.running) for queue in h.state.tree],
        *[of_application(h, name) for name in APPLICATIONS[:2] if name in h.state.entries],
        *[
            (kind, view.name, view.groups, row.queue_path, dict(row.usage), row.applications)
            for kind in KINDS
            for view in usage_views(h.state.limits, kind)
            for row in view.queues
        ],
        (h.state.placed.allocations, h.state.placed.placeholders, h.state.placed.placed_in),
        [entry.node_id for entry in h.state.nodes if entry.schedulable],
    ]


def of_node(node: NodeFacts) -> object:
    """Return what a node has."""
    return node.available, node.allocated, node.occupied, [*map(described, node.allocations)]


def of_application(h: Harness, name: str) -> object:
    """Return what an application has, and what waits there."""
    entry = h.entry(name)
    facts = entry.facts
    return (
        *(facts.state, facts.pending, facts.allocated, facts.placeholder_allocated, facts.submitted_at_ns),
        [(described(placed.allocation), placed.released) for placed in entry.application.allocations.all()],
        [(record.ask.allocation_key, record.order) for record in entry.application.asks.waiting()],
    )


def after(send: Callable[[Harness], None]) -> list[object]:
    """Return what is said and shown after requests, and after the scheduling that follows."""
    h = a_partition()
    send(h)
    h.validate()
    seen = [said(h), shown(h)]
    h.update_node("three", NodeAction.DRAIN_TO_SCHEDULABLE)
    h.run_until_idle()
    h.validate()
    return [*seen, said(h), shown(h)]


@settings(max_examples=60)
@given(st.lists(submissions(), max_size=24))
def test_one_request_does_what_many_do(given_ones: Sequence[AllocationSubmission]) -> None:
    """Whatever is among them: what is refused, known, waiting, foreign, a placeholder or a part of an ask."""

    def one_by_one(h: Harness) -> None:
        for submission in given_ones:
            h.partition.update_allocations([submission], ())

    together = after(lambda h: h.partition.update_allocations(list(given_ones), ()))

    assert after(one_by_one) == together


@pytest.mark.parametrize(
    ("count", "answers"),
    [(1, []), (3, [3]), (RECOVERED_TOGETHER_MAX + 2, [RECOVERED_TOGETHER_MAX, 2])],
)
def test_the_rm_gets_neighbours_in_one_answer(count: int, answers: list[int]) -> None:
    """Of one application, and no answer is larger than a bound; a single one is answered as before."""
    h = a_partition()

    h.ask(*[f"k{number}" for number in range(count)], node_id="one")

    assert answers == [len(answer.allocations) for answer in h.heard(AllocationsRecovered)]
    assert int(not answers) == len(h.heard(AllocationPlaced))


def test_a_key_that_another_application_of_the_request_uses_is_refused() -> None:
    """What is kept for one step counts already: of asks as of allocations that exist."""
    h = a_partition()

    h.partition.update_allocations(
        [an_ask_submission("k", "app", node_id="one"), an_ask_submission("k", "other", node_id="one")], ()
    )
    h.partition.update_allocations([an_ask_submission("w", "app"), an_ask_submission("w", "other")], ())

    in_use = "is in use by application app"
    assert [f"k: allocation key k {in_use}", f"w: allocation key w {in_use}"] == said(h)[2]


@pytest.mark.parametrize("node_id", ["", "one"], ids=["asks", "allocations"])
def test_a_key_stays_claimed_when_unused_ones_are_forgotten(node_id: str) -> None:
    """That happens in the midst of a large request: its own keys are in use by then."""
    h = a_partition()
    keys = [f"k{number}" for number in range(4100)]
    h.ask(*keys, node_id=node_id)

    rejected = h.ask(*keys[-5:], application_id="other")

    assert keys[-5:] == [each.allocation_key for each in rejected]
