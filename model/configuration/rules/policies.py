"""Rules about policies that a configuration names: the program has given each, and it decides there."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from ...policies.policies import POLICY_PREFIX, PolicyPoint, is_policy_word, refused_name
from ..names import did_you_mean
from ..problems import Position, RuleFinding
from ..queue_properties import APPLICATION_SORT_POLICY
from ..schema import PartitionConfig, QueueConfig

GivenPoints = Mapping[str, Collection[PolicyPoint]]
"""The policies that the program has given, by name, with the points at which each decides."""


def policies_are_given(partition: PartitionConfig, points: GivenPoints) -> Iterator[RuleFinding]:
    """Refuse each policy that the program has not given, or that does not decide there."""
    for key, word, point in (
        ("nodesortpolicy.type", partition.node_sort_policy.type, PolicyPoint.NODE_ORDER),
        ("preemption.victims", partition.preemption.victims, PolicyPoint.VICTIM_ORDER),
    ):
        if is_policy_word(word):
            yield from _finding(word, point, partition.positions[key], points)
    named = partition.policies
    for key, names, point in (
        ("admission", named.admission, PolicyPoint.ADMISSION),
        ("filters", named.filters, PolicyPoint.FILTER),
        ("protection", named.protection, PolicyPoint.PROTECTION),
    ):
        for index, name in enumerate(names):
            yield from _finding(name, point, partition.positions[f"policies.{key}[{index}]"], points)
    yield from _of_queues(partition.root, points)


def _of_queues(queue: QueueConfig, points: GivenPoints) -> Iterator[RuleFinding]:
    template = queue.child_template
    for holder in (queue,) if template is None else (queue, template):
        word = holder.properties.get(APPLICATION_SORT_POLICY, "")
        if is_policy_word(word):
            position = holder.positions.get(f"properties.{APPLICATION_SORT_POLICY}", holder.position)
            yield from _finding(word, PolicyPoint.APPLICATION_ORDER, position, points)
    for child in queue.queues:
        yield from _of_queues(child, points)


def _finding(word: str, point: PolicyPoint, position: Position, points: GivenPoints) -> Iterator[RuleFinding]:
    refusal = refused_name(word, point, points)
    if refusal is not None:
        name = word.removeprefix(POLICY_PREFIX)
        yield RuleFinding(position, f"{refusal}{'' if name in points else did_you_mean(name, tuple(points))}")
