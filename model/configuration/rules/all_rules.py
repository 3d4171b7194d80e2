"""All rules of a configuration, each applied to everything it is about."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence

from ...resources.resource import Resource
from ..documents import YamlPartition
from ..limit_kinds import LIMIT_KINDS, LimitKind
from ..problems import RuleFinding
from ..schema import PartitionConfig, QueueConfig
from . import limit_levels, limits, nodes, placement, preemption, queues, resources, runtimes, structure


def validate_documents(partitions: Sequence[YamlPartition]) -> Iterator[RuleFinding]:
    """Apply the rules about what is written before a configuration is made of it."""
    yield from structure.partition_names_are_unique(partitions)
    for partition in partitions:
        yield from structure.partition_names_are_plain(partition)
        yield from structure.queues_are_listed(partition)
        yield from structure.root_is_spelled_root(partition)
        yield from structure.root_has_no_resources(partition)


def validate_partition(partition: PartitionConfig) -> list[RuleFinding]:
    """Apply the rules about one partition."""
    findings = list(structure.limits_agree(partition))
    findings.extend(_queues(partition.root, 1))
    findings.extend(runtimes.run_times_fit(partition.root, {}))
    resources.resources_fit(partition.root, findings)
    findings.extend(_rules(partition))
    findings.extend(nodes.node_policy_is_known(partition))
    findings.extend(nodes.node_weights_are_not_negative(partition))
    findings.extend(preemption.victims_are_known(partition))
    _levels(partition.root, {kind: ChainMap() for kind in LIMIT_KINDS}, ChainMap(), findings)
    return findings


def _queues(queue: QueueConfig, level: int) -> Iterator[RuleFinding]:
    """Apply the rules about single queues to a queue and all below it."""
    yield from queues.access_lists_are_readable(queue)
    yield from _limits(queue)
    yield from queues.child_names_are_valid(queue)
    yield from queues.child_names_are_unique(queue, level)
    yield from queues.application_maxima_fit(queue)
    yield from queues.template_resources_are_readable(queue)
    yield from resources.lend_fits_guarantee(queue)
    yield from queues.own_properties_are_readable(queue)
    for child in queue.queues:
        yield from _queues(child, level + 1)


def _limits(queue: QueueConfig) -> Iterator[RuleFinding]:
    """Apply the rules about the limits of one queue."""
    yield from limits.limits_name_someone(queue)
    yield from limits.limit_names_are_valid(queue)
    yield from limits.limits_name_each_once(queue)
    yield from limits.wildcards_come_last(queue)
    yield from limits.wildcard_group_is_not_alone(queue)
    yield from limits.limit_resources_are_positive(queue)
    yield from limits.limits_limit_something(queue)
    yield from limits.limit_weights_are_readable(queue)
    yield from limits.limit_applications_fit_queue(queue)
    yield from limits.limit_resources_fit_queue(queue)


def _rules(partition: PartitionConfig) -> Iterator[RuleFinding]:
    """Apply the rules about placement rules."""
    for number, rule in enumerate(partition.placement_rules):
        yield from placement.rule_names_are_valid(rule)
        yield from placement.filter_types_are_known(rule)
        yield from placement.filter_entries_are_readable(rule)
        yield from placement.fixed_queues_exist(number, rule, partition.root)


def _levels(
    queue: QueueConfig,
    resources_above: Mapping[LimitKind, ChainMap[tuple[str, str], Resource]],
    applications_above: ChainMap[tuple[str, str], int],
    findings: list[RuleFinding],
) -> None:
    """Apply the rules about limits on different levels to a queue and all below it."""
    resources_here = {
        kind: limit_levels.limit_resources_fit_levels_above(queue, kind, above, findings)
        for kind, above in resources_above.items()
    }
    applications_here = limit_levels.limit_applications_fit_levels_above(queue, applications_above, findings)
    for child in queue.queues:
        _levels(child, resources_here, applications_here, findings)
