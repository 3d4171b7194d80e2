from __future__ import annotations

import pytest

from licorne.model.configuration.reader import load
from licorne.proxy.play.simulation.workloads.workload import configuration_for, queue_name


def test_a_configuration_has_a_leaf_for_each_queue() -> None:
    """Queues on the way are parents; order and repetitions do not matter."""
    root = load(configuration_for(["root.b.y", "root.a", "root.b.x", "root.a"])).partitions[0].root

    assert ["a", "b"] == [queue.name for queue in root.queues]
    assert ["x", "y"] == [queue.name for queue in root.queues[1].queues]


def test_everyone_may_submit() -> None:
    """A default must not turn users away."""
    assert load(configuration_for(["root.a"])).partitions[0].root.submit_acl == "*"


def test_the_node_sort_policy_and_its_weights_are_written() -> None:
    """A packing test packs."""
    text = configuration_for(["root.a"], node_sort_policy="binpacking", resource_weights={"gpu": 2.0})

    policy = load(text).partitions[0].node_sort_policy

    assert ("binpacking", {"gpu": 2.0}) == (policy.type, dict(policy.resource_weights))


@pytest.mark.parametrize(
    ("text", "expected"), [("LS", "ls"), ("a.b c", "a_b_c"), ("", "_"), ("x" * 99, "x" * 64)]
)
def test_any_text_becomes_a_legal_queue_name(text: str, expected: str) -> None:
    """Names of traces may hold what names of queues may not."""
    assert expected == queue_name(text)
    load(configuration_for([f"root.{expected}"]))
