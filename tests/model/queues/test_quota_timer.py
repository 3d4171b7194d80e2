"""When a maximum that was lowered is enforced."""

from __future__ import annotations

from typing import Final

import pytest
from support.model.builders import SECOND_NS, START_NS, TEN, TWENTY, a_queue_tree, a_resource

from licorne.model.configuration.queue_properties import QUOTA_PREEMPTION_DELAY
from licorne.model.queues.queue import Queue
from licorne.model.queues.quota import (
    is_over_maximum,
    next_due_ns,
    quota_changed,
    quota_settings,
    quotas_changed,
    usage_raised,
)
from licorne.model.resources.resource import Resource

DELAY_NS = 10 * SECOND_NS


def a_queue(
    maximum: Resource | None = TEN, *, used: int = 15, delay: str = "10s", managed: bool = True
) -> Queue:
    """Return a leaf that uses fifteen of ten."""
    root = Queue("root", None, is_leaf=False, managed=True)
    queue = Queue("leaf", root, is_leaf=True, managed=managed)
    queue.apply_properties({QUOTA_PREEMPTION_DELAY: delay} if delay else {})
    queue.set_quota(None, maximum)
    for level in queue.above:
        level.charge(a_resource(memory=used))
    return queue


def test_a_queue_is_over_its_own_maximum_in_any_type() -> None:
    """Without a maximum it never is."""
    assert is_over_maximum(a_queue())
    assert not is_over_maximum(a_queue(used=10))
    assert not is_over_maximum(a_queue(None))
    assert not is_over_maximum(a_queue(a_resource(vcore=1)))


DUE: Final = {
    "a lowered maximum is due after the delay": (TEN, TWENTY, DELAY_NS, START_NS + DELAY_NS),
    # The recorded core never enforces this one.
    "a maximum that is lowered for one type and raised for another is lowered": (
        a_resource(memory=10, vcore=9),
        a_resource(memory=20, vcore=1),
        DELAY_NS,
        START_NS + DELAY_NS,
    ),
    "a first maximum is lowered from no limit": (TEN, None, DELAY_NS, START_NS + DELAY_NS),
    "a maximum of another type is lowered from no limit": (
        TEN,
        a_resource(vcore=1),
        DELAY_NS,
        START_NS + DELAY_NS,
    ),
    "a maximum that stays is not due again": (TEN, TEN, DELAY_NS, None),
    "a raised maximum is not due": (TEN, a_resource(memory=5), DELAY_NS, None),
    "a new delay starts the time of an old maximum, which was not enforced": (
        TEN,
        TEN,
        0,
        START_NS + DELAY_NS,
    ),
}


@pytest.mark.parametrize(("maximum", "before", "delay_before", "due_ns"), DUE.values(), ids=DUE)
def test_a_changed_maximum_is_due_if_it_was_lowered(
    maximum: Resource, before: Resource | None, delay_before: int, due_ns: int | None
) -> None:
    """The delay counts from the change."""
    queue = a_queue(maximum)
    quota_changed(queue, before, delay_before, START_NS)

    assert due_ns == queue.quota_preemption_due_ns


def test_another_delay_moves_the_time() -> None:
    """By the difference, from when it had started."""
    queue = a_queue()
    queue.quota_preemption_due_ns = START_NS + 30 * SECOND_NS
    quota_changed(queue, TEN, 30 * SECOND_NS, START_NS + 5 * SECOND_NS)

    assert START_NS + DELAY_NS == queue.quota_preemption_due_ns


def test_a_change_that_ends_the_excess_ends_the_time() -> None:
    """So do a queue without maximum, without delay, or that is not configured."""
    queues = [
        a_queue(used=10),
        a_queue(None),
        a_queue(delay=""),
        a_queue(managed=False),
    ]
    for queue in queues:
        queue.quota_preemption_due_ns = START_NS
        quota_changed(queue, TWENTY, DELAY_NS, START_NS)

    assert [None] * 4 == [queue.quota_preemption_due_ns for queue in queues]


def test_usage_that_is_raised_past_the_maximum_starts_the_time() -> None:
    """On each level that it happens to; a time that runs goes on."""
    queue = a_queue()
    usage_raised(queue, START_NS)
    usage_raised(queue, START_NS + SECOND_NS)

    assert START_NS + DELAY_NS == queue.quota_preemption_due_ns
    assert queue.parent is not None
    assert queue.parent.quota_preemption_due_ns is None


def test_usage_within_the_maximum_starts_nothing() -> None:
    """Nor does it where there is no delay or the queue is not configured."""
    queues = [a_queue(used=10), a_queue(delay=""), a_queue(managed=False)]
    for queue in queues:
        usage_raised(queue, START_NS)

    assert [None] * 3 == [queue.quota_preemption_due_ns for queue in queues]


def test_a_whole_tree_is_compared_with_what_it_was() -> None:
    """A queue that is new was without a maximum."""
    tree = a_queue_tree("- name: leaf\n  properties: {quota.preemption.delay: 10s}")
    leaf = tree.find("root.leaf")
    assert leaf is not None
    leaf.charge(a_resource(memory=15))
    before = quota_settings(tree)
    leaf.set_quota(None, TEN)
    quotas_changed(tree, before, START_NS)

    assert START_NS + DELAY_NS == leaf.quota_preemption_due_ns
    assert START_NS + DELAY_NS == next_due_ns(tree)


def test_nothing_is_due_where_no_time_runs() -> None:
    """No queue has a time."""
    assert next_due_ns([a_queue()]) is None
