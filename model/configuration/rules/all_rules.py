"""All rules of a configuration, each applied to everything it is about, and those about partitions."""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ...policies.policies import is_policy_word
from ...resources.resource import Resource
from ..documents import YamlPartition
from ..names import did_you_mean
from ..policies import NODE_ORDER_WORDS, VICTIM_ORDER_WORDS
from ..problems import RuleFinding
from ..schema import (
    LIMIT_KINDS,
    ROOT,
    LimitKind,
    PartitionConfig,
    QueueConfig,
    VictimJobs,
    has_root,
    partition_name,
)
from . import limits, placement, queues

PARTITION_NAME_MAX: Final = 256
_PLAIN_NAME: Final = re.compile(r"[^\[\]/\\\s\x00-\x1f\x7f]+")
_JOBS: Final = tuple(jobs.value for jobs in VictimJobs)


def validate_documents(partitions: Sequence[YamlPartition]) -> Iterator[RuleFinding]:
    """Apply the rules about what is written before a configuration is made of it."""
    yield from partition_names_are_unique(partitions)
    for partition in partitions:
        yield from partition_names_are_plain(partition)
        yield from queues_are_listed(partition)
        yield from root_is_spelled_root(partition)
        yield from root_has_no_resources(partition)


def validate_partition(partition: PartitionConfig) -> list[RuleFinding]:
    """Apply the rules about one partition."""
    findings = list(limits_agree(partition))
    findings.extend(_queues(partition.root, 1))
    findings.extend(queues.run_times_fit(partition.root, {}))
    queues.resources_fit(partition.root, findings)
    findings.extend(_rules(partition))
    findings.extend(node_policy_is_known(partition))
    findings.extend(domains_to_fill_exist(partition))
    findings.extend(node_weights_are_not_negative(partition))
    findings.extend(levels_are_names(partition))
    findings.extend(victims_are_known(partition))
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
    yield from queues.shares_fit(queue)
    yield from queues.lend_fits_guarantee(queue)
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
        kind: limits.limit_resources_fit_levels_above(queue, kind, above, findings)
        for kind, above in resources_above.items()
    }
    applications_here = limits.limit_applications_fit_levels_above(queue, applications_above, findings)
    for child in queue.queues:
        _levels(child, resources_here, applications_here, findings)


def partition_names_are_unique(partitions: Sequence[YamlPartition]) -> Iterator[RuleFinding]:
    """Refuse a second partition of one name, whatever the case; without a name it is the default one."""
    seen: set[str] = set()
    for partition in partitions:
        name = partition_name(partition).lower()
        if name in seen:
            position = partition.positions(closed=("queues",)).get("name", partition.position)
            yield RuleFinding(position, f"duplicate partition name found with name {name}")
        seen.add(name)


def partition_names_are_plain(partition: YamlPartition) -> Iterator[RuleFinding]:
    """Refuse a long name, or one that reads as a path or as that of another RM: `[alice]default`."""
    name = partition_name(partition)
    if len(name) > PARTITION_NAME_MAX or not _PLAIN_NAME.fullmatch(name):
        position = partition.positions(closed=("queues",)).get("name", partition.position)
        shown = f"{name[:PARTITION_NAME_MAX]}..." if len(name) > PARTITION_NAME_MAX else name
        text = f"a partition may not be called {shown!r}: without brackets, slashes, white space and control "
        yield RuleFinding(position, f"{text}characters, and at most {PARTITION_NAME_MAX} characters")


def queues_are_listed(partition: YamlPartition) -> Iterator[RuleFinding]:
    """Refuse a partition without a list of queues; the list may be empty."""
    if partition.queues is None:
        position = partition.positions(closed=("limits",)).get("queues", partition.position)
        yield RuleFinding(position, "queue config is not set")


def root_is_spelled_root(partition: YamlPartition) -> Iterator[RuleFinding]:
    """Refuse a top queue called `Root` or `ROOT`.

    The recorded core's check accepts it, and then the partition cannot be made.
    """
    for queue in partition.queues or ():
        if has_root(partition) and queue.name != ROOT:
            position = queue.positions(closed=("queues",)).get("name", queue.position)
            yield RuleFinding(
                position,
                f"partition cannot be created without root queue: the top queue is called {queue.name!r}; "
                f"did you mean {ROOT!r}?",
            )


def root_has_no_resources(partition: YamlPartition) -> Iterator[RuleFinding]:
    """Refuse resources of the root queue, empty ones too: it has what the nodes have."""
    if not has_root(partition):
        return
    for queue in partition.queues or ():
        positions = queue.positions(closed=("queues",))
        resources = queue.resources
        for key in ("guaranteed", "max", "lend"):
            if getattr(resources, key) is not None:
                position = positions[f"resources.{key}"]
                yield RuleFinding(position, "root queue must not have resource limits set")


def limits_agree(partition: PartitionConfig) -> Iterator[RuleFinding]:
    """Refuse limits at the partition that are not those of its root queue, when both have some."""
    if partition.limits and partition.limits != partition.root.limits:
        position = partition.positions["limits"]
        yield RuleFinding(position, "partition limits and root queue limits are not equivalent")


def node_policy_is_known(partition: PartitionConfig) -> Iterator[RuleFinding]:
    """Refuse a policy that does not exist; case matters, and the empty text means `fair`."""
    policy = partition.node_sort_policy.type
    if policy and policy not in NODE_ORDER_WORDS and not is_policy_word(policy):
        position = partition.positions["nodesortpolicy.type"]
        yield RuleFinding(position, f"undefined policy: {policy}{did_you_mean(policy, NODE_ORDER_WORDS)}")


def domains_to_fill_exist(partition: PartitionConfig) -> Iterator[RuleFinding]:
    """Refuse an order of nodes by their domains in a partition without any."""
    if partition.node_sort_policy.type == "domainpacking" and not partition.topology:
        position = partition.positions["nodesortpolicy.type"]
        yield RuleFinding(
            position, "the order domainpacking needs domains of nodes: topology names their levels"
        )


def node_weights_are_not_negative(partition: PartitionConfig) -> Iterator[RuleFinding]:
    """Refuse negative weights of resource types."""
    for name, weight in partition.node_sort_policy.resource_weights.items():
        if weight < 0:
            position = partition.positions[f"nodesortpolicy.resourceweights.{name}"]
            yield RuleFinding(position, f"negative resource weight for {name} is not allowed: {weight:g}")


def levels_are_names(partition: PartitionConfig) -> Iterator[RuleFinding]:
    """Refuse a level of the topology that has no name, or one twice."""
    for index, level in enumerate(partition.topology):
        if not level or level in partition.topology[:index]:
            why = "is written twice" if level else "has no name: it is an attribute of nodes, as rack is"
            yield RuleFinding(
                partition.positions[f"topology[{index}]"], f"the level {level!r} of the topology {why}"
            )


def victims_are_known(partition: PartitionConfig) -> Iterator[RuleFinding]:
    """Refuse an order of victims that does not exist; the empty text means the first that does."""
    preemption = partition.preemption
    for key, written, known in (
        ("victims", "" if is_policy_word(preemption.victims) else preemption.victims, VICTIM_ORDER_WORDS),
        ("jobs", preemption.jobs, _JOBS),
    ):
        if written and written not in known:
            wanted = " or ".join(repr(word) for word in known)
            yield RuleFinding(
                partition.positions[f"preemption.{key}"],
                f"preemption.{key} is {written!r}, and must be {wanted}{did_you_mean(written, known)}",
            )
