"""Rules about the order of nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..problems import RuleFinding
from ..schema import NodeSortPolicy, PartitionConfig
from ..words import did_you_mean

_POLICIES: Final = tuple(policy.value for policy in NodeSortPolicy)


def node_policy_is_known(partition: PartitionConfig) -> Iterator[RuleFinding]:
    """Refuse a policy that does not exist; case matters, and the empty text means `fair`."""
    policy = partition.node_sort_policy.type
    if policy and policy not in _POLICIES:
        position = partition.positions["nodesortpolicy.type"]
        yield RuleFinding(position, f"undefined policy: {policy}{did_you_mean(policy, _POLICIES)}")


def node_weights_are_not_negative(partition: PartitionConfig) -> Iterator[RuleFinding]:
    """Refuse negative weights of resource types."""
    for name, weight in partition.node_sort_policy.resource_weights.items():
        if weight < 0:
            position = partition.positions[f"nodesortpolicy.resourceweights.{name}"]
            yield RuleFinding(position, f"negative resource weight for {name} is not allowed: {weight:g}")
