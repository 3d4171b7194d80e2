"""From documents to the configuration: resources parsed, partitions named, one root queue in each.

Problems with single values are noted and the value is left out, so that the rules check all others. The
findings of the rules are then true of what could be read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from ..resources.quantities import QuantityError, parse_quantity, parse_vcore
from ..resources.resource import EMPTY, Resource
from .documents import YamlChildTemplate, YamlLimit, YamlPartition, YamlQueue, YamlRule
from .problems import Position, RuleFinding
from .schema import (
    LIMIT_KINDS,
    ChildTemplateConfig,
    FilterConfig,
    LimitConfig,
    NodeSortPolicyConfig,
    PartitionConfig,
    PoliciesConfig,
    PreemptionConfig,
    QueueConfig,
    RuleConfig,
)

DEFAULT_PARTITION: Final = "default"
ROOT: Final = "root"

_VCORE: Final = "vcore"
_SUFFIXES: Final = ("k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_RESOURCES: Final = "resources."


def partition_name(document: YamlPartition) -> str:
    """Return the name of a partition: `default` for the empty name and for `default` in any case."""
    name = document.name
    return DEFAULT_PARTITION if name.lower() in {"", DEFAULT_PARTITION} else name


def has_root(document: YamlPartition) -> bool:
    """Return whether the top queue of a partition is written down: alone, and called root in any case."""
    queues = document.queues or ()
    return len(queues) == 1 and queues[0].name.lower() == ROOT


def build_partition(document: YamlPartition, findings: list[RuleFinding]) -> PartitionConfig:
    """Build one partition; unparsable quantities are appended to the findings."""
    policy, preemption = document.nodesortpolicy, document.preemption
    limits = tuple(_limit(limit, findings) for limit in document.limits)
    return PartitionConfig(
        name=partition_name(document),
        root=_root(document, limits, findings),
        placement_rules=tuple(_rule(rule) for rule in document.placementrules),
        limits=limits,
        preemption=PreemptionConfig(
            enabled=preemption.enabled,
            quota_preemption_enabled=preemption.quotapreemptionenabled,
            victims=preemption.victims,
            jobs=preemption.jobs,
        ),
        node_sort_policy=NodeSortPolicyConfig(
            type=policy.type, resource_weights=MappingProxyType(policy.resourceweights)
        ),
        policies=PoliciesConfig(
            admission=document.policies.admission,
            filters=document.policies.filters,
            protection=document.policies.protection,
        ),
        user_group_resolver=document.usergroupresolver.type,
        position=document.position,
        positions=MappingProxyType(document.positions(closed=("queues", "placementrules", "limits"))),
    )


def parse_resource(
    texts: Mapping[str, str], positions: Mapping[str, Position], prefix: str, findings: list[RuleFinding]
) -> Resource:
    """Parse the entries of a resource one by one; those that are no quantities are noted and left out.

    Args:
        texts: The quantities by resource type; `vcore` is in cores or milli-cores.
        positions: Where things stand; the entry of a type is at `<prefix>.<type>`.
        prefix: The path of the resource.
        findings: What is wrong is appended here.
    """
    quantities: dict[str, int] = {}
    for name, text in texts.items():
        try:
            quantities[name] = parse_vcore(text) if name == _VCORE else parse_quantity(text)
        except QuantityError as error:
            findings.append(RuleFinding(positions[f"{prefix}.{name}"], f"{error}{_suffix_hint(text)}"))
    return Resource(quantities) if quantities else EMPTY


def _suffix_hint(text: str) -> str:
    """Name the suffix that was probably meant: `k` for `K`, `G` for `GB`."""
    number = text.strip().rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    written = text.strip()[len(number) :].lower()
    written = written.removesuffix("b") if len(written) > 1 else written
    meant = next((suffix for suffix in _SUFFIXES if suffix.lower() == written), None)
    wanted = f"{number}{meant}"
    return f"; did you mean {wanted!r}?" if meant and number[:1].isdigit() and wanted != text.strip() else ""


def _root(
    document: YamlPartition, limits: tuple[LimitConfig, ...], findings: list[RuleFinding]
) -> QueueConfig:
    """Return the root queue, made where it is not written, with the limits of the partition."""
    queues = tuple(_queue(queue, findings) for queue in document.queues or ())
    if has_root(document):
        root = replace(queues[0], parent=True)
        return root if root.limits else replace(root, limits=limits)
    position = document.positions(closed=("queues",)).get("queues", document.position)
    return QueueConfig(name=ROOT, parent=True, queues=queues, limits=limits, position=position)


def _queue(document: YamlQueue, findings: list[RuleFinding]) -> QueueConfig:
    """Build a queue and all below it."""
    positions = _queue_positions(document)
    guaranteed, maximum = document.resources.guaranteed or {}, document.resources.max or {}
    lend = document.resources.lend or {}
    template = document.childtemplate
    return QueueConfig(
        name=document.name,
        parent=document.parent,
        guaranteed=parse_resource(guaranteed, positions, "guaranteed", findings),
        max=parse_resource(maximum, positions, "max", findings),
        lend=parse_resource(lend, positions, "lend", findings),
        max_applications=document.maxapplications,
        properties=MappingProxyType(document.properties),
        admin_acl=document.adminacl,
        submit_acl=document.submitacl,
        child_template=_template(template) if template is not None else None,
        queues=tuple(_queue(queue, findings) for queue in document.queues),
        limits=tuple(_limit(limit, findings) for limit in document.limits),
        guaranteed_texts=MappingProxyType(guaranteed),
        max_texts=MappingProxyType(maximum),
        lend_texts=MappingProxyType(lend),
        position=document.position,
        positions=MappingProxyType(positions),
    )


def _queue_positions(document: YamlQueue) -> dict[str, Position]:
    return _without_resources(document.positions(closed=("queues", "limits", "childtemplate")))


def _without_resources(positions: dict[str, Position]) -> dict[str, Position]:
    """Return the positions with the names below `resources`: `max` instead of `resources.max`."""
    return {path.removeprefix(_RESOURCES): position for path, position in positions.items()}


def _template(document: YamlChildTemplate) -> ChildTemplateConfig:
    return ChildTemplateConfig(
        max_applications=document.maxapplications,
        properties=MappingProxyType(document.properties),
        guaranteed=MappingProxyType(document.resources.guaranteed or {}),
        max=MappingProxyType(document.resources.max or {}),
        lend=MappingProxyType(document.resources.lend or {}),
        position=document.position,
        positions=MappingProxyType(_without_resources(document.positions())),
    )


def _limit(document: YamlLimit, findings: list[RuleFinding]) -> LimitConfig:
    positions = document.positions()
    texts = {kind.key: written for kind in LIMIT_KINDS if (written := getattr(document, kind.key))}
    return LimitConfig(
        description=document.limit,
        users=document.users,
        groups=document.groups,
        resources=MappingProxyType(
            {key: parse_resource(written, positions, key, findings) for key, written in texts.items()}
        ),
        max_applications=document.maxapplications,
        weight=document.weight,
        resource_texts=MappingProxyType(texts),
        position=document.position,
        positions=MappingProxyType(positions),
    )


def _rule(document: YamlRule) -> RuleConfig:
    who = document.filter
    return RuleConfig(
        name=document.name,
        create=document.create,
        value=document.value,
        filter=FilterConfig(type=who.type, users=who.users, groups=who.groups),
        parent=_rule(document.parent) if document.parent is not None else None,
        position=document.position,
        positions=MappingProxyType(document.positions(closed=("parent",))),
    )
