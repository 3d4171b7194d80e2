"""All rules of a configuration, each applied to everything it is about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import limit_levels as validation_limit_levels
from . import limits as validation_limits
from . import nodes as validation_nodes
from . import placement as validation_placement
from . import queues as validation_queues
from . import resources as validation_resources
from . import structure as validation_structure

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ...resources.resource import Resource
    from ..documents import PartitionDocument
    from ..problems import RuleFinding
    from ..schema import PartitionConfig, QueueConfig

__all__ = ["validate_documents", "validate_partition"]


def validate_documents(partitions: Sequence[PartitionDocument]) -> Iterator[RuleFinding]:
    """Apply the rules about what is written before a configuration is made of it."""
    yield from validation_structure.partition_names_are_unique(partitions)
    for partition in partitions:
        yield from validation_structure.queues_are_listed(partition)
        yield from validation_structure.root_is_spelled_root(partition)
        yield from validation_structure.root_has_no_resources(partition)


def validate_partition(partition: PartitionConfig) -> list[RuleFinding]:
    """Apply the rules about one partition."""
    findings = list(validation_structure.limits_agree(partition))
    findings.extend(_queues(partition.root, 1))
    validation_resources.resources_fit(partition.root, findings)
    findings.extend(_rules(partition))
    findings.extend(validation_nodes.node_policy_is_known(partition))
    findings.extend(validation_nodes.node_weights_are_not_negative(partition))
    _levels(partition.root, {}, {}, findings)
    return findings


def _queues(queue: QueueConfig, level: int) -> Iterator[RuleFinding]:
    """Apply the rules about single queues to a queue and all below it."""
    yield from validation_queues.access_lists_are_readable(queue)
    yield from _limits(queue)
    yield from validation_queues.child_names_are_valid(queue)
    yield from validation_queues.child_names_are_unique(queue, level)
    yield from validation_queues.application_maxima_fit(queue)
    yield from validation_queues.template_resources_are_readable(queue)
    for child in queue.queues:
        yield from _queues(child, level + 1)


def _limits(queue: QueueConfig) -> Iterator[RuleFinding]:
    """Apply the rules about the limits of one queue."""
    yield from validation_limits.limits_name_someone(queue)
    yield from validation_limits.limit_names_are_valid(queue)
    yield from validation_limits.limits_name_each_once(queue)
    yield from validation_limits.wildcards_come_last(queue)
    yield from validation_limits.wildcard_group_is_not_alone(queue)
    yield from validation_limits.limit_resources_are_positive(queue)
    yield from validation_limits.limits_limit_something(queue)
    yield from validation_limits.limit_applications_fit_queue(queue)
    yield from validation_limits.limit_resources_fit_queue(queue)


def _rules(partition: PartitionConfig) -> Iterator[RuleFinding]:
    """Apply the rules about placement rules."""
    for number, rule in enumerate(partition.placement_rules):
        yield from validation_placement.rule_names_are_valid(rule)
        yield from validation_placement.filter_types_are_known(rule)
        yield from validation_placement.filter_entries_are_readable(rule)
        yield from validation_placement.fixed_queues_exist(number, rule, partition.root)


def _levels(
    queue: QueueConfig,
    resources: Mapping[tuple[str, str], Resource],
    applications: Mapping[tuple[str, str], int],
    findings: list[RuleFinding],
) -> None:
    """Apply the rules about limits on different levels to a queue and all below it."""
    resources = validation_limit_levels.limit_resources_fit_levels_above(queue, resources, findings)
    applications = validation_limit_levels.limit_applications_fit_levels_above(queue, applications, findings)
    for child in queue.queues:
        _levels(child, resources, applications, findings)
