"""When a maximum that was lowered is enforced."""

from __future__ import annotations

from support.model.builders import SECOND_NS, START_NS, TEN, a_queue_tree, a_resource

from licorne.model.configuration.queue_properties import QUOTA_PREEMPTION_DELAY
from licorne.model.queues.queue import Queue
from licorne.model.queues.quota_timer import (
    is_over_maximum,
    next_due_ns,
    quota_changed,
    quota_settings,
    quotas_changed,
    usage_raised,
)
from licorne.model.resources.resource import Resource

DELAY_NS = 10 * SECOND_NS
TWENTY = a_resource(memory=20)


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


def test_a_lowered_maximum_is_due_after_the_delay() -> None:
    """It counts from the change."""
    queue = a_queue()
    quota_changed(queue, TWENTY, DELAY_NS, START_NS)

    assert START_NS + DELAY_NS == queue.quota_preemption_due_ns


def test_a_maximum_that_is_lowered_for_one_type_and_raised_for_another_is_lowered() -> None:
    """The recorded core never enforces it."""
    queue = a_queue(a_resource(memory=10, vcore=9))
    quota_changed(queue, a_resource(memory=20, vcore=1), DELAY_NS, START_NS)

    assert queue.quota_preemption_due_ns is not None


def test_a_first_maximum_is_lowered_from_no_limit() -> None:
    """Also where it newly limits one type beside others."""
    first, another = a_queue(), a_queue()
    quota_changed(first, None, DELAY_NS, START_NS)
    quota_changed(another, a_resource(vcore=1), DELAY_NS, START_NS)

    assert first.quota_preemption_due_ns is not None
    assert another.quota_preemption_due_ns is not None


def test_a_maximum_that_stays_or_is_raised_starts_nothing() -> None:
    """What is enforced once is over with."""
    same, raised = a_queue(), a_queue()
    quota_changed(same, TEN, DELAY_NS, START_NS)
    quota_changed(raised, a_resource(memory=5), DELAY_NS, START_NS)

    assert same.quota_preemption_due_ns is None
    assert raised.quota_preemption_due_ns is None


def test_a_delay_that_is_new_starts_the_time_of_an_old_maximum() -> None:
    """It was not enforced before."""
    queue = a_queue()
    quota_changed(queue, TEN, 0, START_NS)

    assert START_NS + DELAY_NS == queue.quota_preemption_due_ns


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
