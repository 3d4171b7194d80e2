"""The document of the configuration in effect: in JSON with the names of Go, in YAML with its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Required, final

from typing_extensions import TypedDict

from ....model.configuration.durations import duration_text
from ....model.configuration.schema import (
    LIMIT_KINDS,
    FilterConfig,
    LimitConfig,
    PartitionConfig,
    QueueConfig,
    RuleConfig,
    SchedulerConfig,
)
from ....model.configuration.shares import ALL_TYPES
from ....model.configuration.windows import WindowConfig
from ....model.values.documents import Document, Json
from .declarations import Names, Texts, whole


class ConfigurationDocument(TypedDict, total=False):
    """In the names of Go."""

    Partitions: list[ConfiguredPartitionDocument]
    Checksum: str
    Extra: Texts
    DeadlockDetectionEnabled: Required[bool]
    DeadlockTimeoutSeconds: Required[int]


class ConfiguredPreemptionDocument(TypedDict, total=False):
    """The settings of preemption."""

    Enabled: bool
    QuotaPreemptionEnabled: bool
    Victims: str
    Jobs: str


class ConfiguredNodeSortDocument(TypedDict, total=False):
    """The order in which nodes are tried."""

    Type: Required[str]
    ResourceWeights: dict[str, float]


class ConfiguredResolverDocument(TypedDict, total=False):
    """Where the groups of users come from."""

    Type: str


class ConfiguredHoldersDocument(TypedDict, total=False):
    """For whom a window is."""

    Users: list[str]
    Groups: list[str]
    Applications: list[str]
    Queues: list[str]


class ConfiguredWindowDocument(TypedDict, total=False):
    """A span of time for which nodes are reserved."""

    Name: Required[str]
    Nodes: list[str]
    Attributes: Texts
    From: Required[str]
    To: Required[str]
    Zone: Required[str]
    Every: str
    Drain: Required[str]
    For: ConfiguredHoldersDocument


class ConfiguredPartitionDocument(TypedDict, total=False):
    """A partition of the configuration."""

    Name: Required[str]
    Queues: Required[list[ConfiguredQueueDocument]]
    PlacementRules: list[ConfiguredRuleDocument]
    Limits: list[ConfiguredLimitDocument]
    Topology: list[str]
    Windows: list[ConfiguredWindowDocument]
    Preemption: Required[ConfiguredPreemptionDocument]
    NodeSortPolicy: Required[ConfiguredNodeSortDocument]
    UserGroupResolver: Required[ConfiguredResolverDocument]


class ConfiguredResourcesDocument(TypedDict, total=False):
    """The guarantee and the maximum of a queue, as texts."""

    Guaranteed: Texts | str
    Max: Texts | str
    Lend: Texts


class ConfiguredTemplateDocument(TypedDict, total=False):
    """The settings of dynamic leaf queues."""

    MaxApplications: int
    Properties: Texts
    Resources: ConfiguredResourcesDocument


class ConfiguredQueueDocument(TypedDict, total=False):
    """A queue of the configuration."""

    Name: Required[str]
    Parent: bool
    Resources: Required[ConfiguredResourcesDocument]
    MaxApplications: int
    Properties: Texts
    AdminACL: str
    SubmitACL: str
    ChildTemplate: Required[ConfiguredTemplateDocument]
    Queues: list[ConfiguredQueueDocument]
    Limits: list[ConfiguredLimitDocument]


class ConfiguredLimitDocument(TypedDict, total=False):
    """A limit of users and groups."""

    Limit: str
    Users: Names
    Groups: Names
    MaxResources: Texts
    MaxApplications: int


class ConfiguredFilterDocument(TypedDict, total=False):
    """To whom a rule applies."""

    Type: Required[str]
    Users: Names
    Groups: Names


class ConfiguredRuleDocument(TypedDict, total=False):
    """A placement rule of the configuration."""

    Name: Required[str]
    Create: bool
    Value: str
    Parent: ConfiguredRuleDocument
    Filter: Required[ConfiguredFilterDocument]


def configuration_document(config: SchedulerConfig, extra: Mapping[str, str], *, yaml: bool) -> Document:
    """Return the document of a configuration.

    Args:
        config: The configuration of the queues.
        extra: The extra configuration, as it came.
        yaml: Whether the names are those of the YAML file. It also leaves out groups that are empty.
    """
    writer = _Writer(yaml=yaml)
    return writer.named(
        Partitions=[writer.partition(partition) for partition in config.partitions],
        Checksum=config.checksum,
        Extra=dict(extra),
    ) | {
        writer.name("DeadlockDetectionEnabled"): False,
        writer.name("DeadlockTimeoutSeconds"): 60,
    }


@final
class _Writer:
    """Writes the parts of a configuration, all in one spelling; what is empty is left out."""

    def __init__(self, *, yaml: bool) -> None:
        self._yaml = yaml

    def name(self, name: str) -> str:
        """Return the name of a field."""
        return name.lower() if self._yaml else name

    def named(self, **fields: Json) -> Document:
        """Return a group of fields."""
        return {self.name(name): value for name, value in fields.items() if value}

    def _group(self, name: str, group: Document) -> Document:
        """Return a group in a field: in JSON it is there even if it is empty."""
        return {} if self._yaml and not group else {self.name(name): group}

    def partition(self, partition: PartitionConfig) -> Document:
        """Return the document of a partition."""
        policy = partition.node_sort_policy
        preemption = partition.preemption
        weights: Document = {name: whole(weight) for name, weight in policy.resource_weights.items()}
        flags: Document = {
            "Enabled": preemption.enabled,
            "QuotaPreemptionEnabled": preemption.quota_preemption_enabled,
            "Victims": preemption.victims or None,
            "Jobs": preemption.jobs or None,
        }
        return (
            self.named(
                Name=partition.name,
                Queues=[self._queue(partition.root)],
                PlacementRules=[self._rule(rule) for rule in partition.placement_rules],
                Limits=self._limits(partition.limits),
                Topology=list(partition.topology),
                Windows=[self._window(window) for window in partition.windows],
            )
            | self._group(
                "Preemption",
                {self.name(name): value for name, value in flags.items() if value is not None},
            )
            | self._group("NodeSortPolicy", self._typed(policy.type, ResourceWeights=weights))
            | self._group("UserGroupResolver", self.named(Type=partition.user_group_resolver))
        )

    def _window(self, window: WindowConfig) -> Document:
        when = window.when
        return self.named(
            Name=window.name,
            Nodes=list(window.nodes),
            Attributes={**window.attributes},
            From=when.begin.isoformat(),
            To=when.end.isoformat(),
            Zone=when.zone,
            Every=f"{when.every_days}d" if when.every_days else "",
            Drain=duration_text(window.drain_ns),
            For=self.named(
                Users=list(window.users),
                Groups=list(window.groups),
                Applications=list(window.applications),
                Queues=list(window.queues),
            ),
        )

    def _typed(self, kind: str, **fields: Json) -> Document:
        """Return a group with a type: in JSON the type is there even if it is empty."""
        written: Document = {} if self._yaml and not kind else {self.name("Type"): kind}
        return written | self.named(**fields)

    def _queue(self, queue: QueueConfig) -> Document:
        template = queue.child_template
        below: Document = {}
        if template is not None:
            below = self.named(
                MaxApplications=template.max_applications, Properties=_texts(template.properties)
            ) | self._resources(template.guaranteed, template.max, template.lend)
        elif not self._yaml:
            below = self._resources({}, {}, {})
        return (
            self.named(Name=queue.name, Parent=queue.parent)
            | self._resources(queue.guaranteed_texts, queue.max_texts, queue.lend_texts)
            | self.named(
                MaxApplications=queue.max_applications,
                Properties=_texts(queue.properties),
                AdminACL=queue.admin_acl,
                SubmitACL=queue.submit_acl,
            )
            | self._group("ChildTemplate", below)
            | self.named(
                Queues=[self._queue(child) for child in queue.queues], Limits=self._limits(queue.limits)
            )
        )

    def _resources(
        self, guaranteed: Mapping[str, str], maximum: Mapping[str, str], lend: Mapping[str, str]
    ) -> Document:
        fields = self.named(Guaranteed=_texts(guaranteed), Max=_texts(maximum), Lend=_texts(lend))
        return self._group("Resources", fields)

    def _limits(self, limits: Sequence[LimitConfig]) -> Json:
        return [
            self.named(
                Limit=limit.description,
                Users=[*limit.users],
                Groups=[*limit.groups],
                **{kind.title: _texts(limit.texts(kind)) for kind in LIMIT_KINDS},
                MaxApplications=limit.max_applications,
            )
            for limit in limits
        ]

    def _rule(self, rule: RuleConfig) -> Document:
        return (
            self.named(Name=rule.name, Create=rule.create)
            | self._group("Filter", self._filter(rule.filter))
            | self.named(Parent=None if rule.parent is None else self._rule(rule.parent), Value=rule.value)
        )

    def _filter(self, entries: FilterConfig) -> Document:
        return self._typed(entries.type, Users=[*entries.users], Groups=[*entries.groups])


def _texts(texts: Mapping[str, str]) -> Json:
    """Return texts by their names; a percentage of all types is a text alone."""
    return texts[ALL_TYPES] if ALL_TYPES in texts else dict(texts.items())
