"""The configuration as the scheduler uses it: checked, normalised, frozen, each part with its position.

Three things differ from the file: partition names are filled in, every partition has exactly one top queue
called `root` (inserted when missing, always a parent), and limits written at the partition are also those of
its root queue. Everything else keeps the spelling of the file; names of queues are converted to lower case
when queues are made of them. Positions are not compared: two configurations are equal when they
mean the same.

Rules about the configuration, the checks of a cycle and the explanations walk this table, so that a kind is
added by a row here and by its key in `licorne.model.configuration.documents`.

The functions at the end build it from documents. A problem with a single value is noted and the value left
out, so that the rules check all others. The findings of the rules are then true of the values that could be
read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, assert_never

from ..resources.quantities import QuantityError, parse_quantity, parse_vcore
from ..resources.resource import EMPTY, Resource
from .problems import NOWHERE, Position, Problem, RuleFinding
from .shares import ALL_TYPES, CLUSTER, Share, Whole, share_of
from .windows import WindowConfig, build_windows

if TYPE_CHECKING:  # Pydantic is loaded where a configuration is read.
    from .documents import YamlChildTemplate, YamlLimit, YamlPartition, YamlQueue, YamlRule


def _nothing() -> Mapping[str, str]:
    return MappingProxyType({})


def _no_resources() -> Mapping[str, Resource]:
    return MappingProxyType({})


def _no_texts() -> Mapping[str, Mapping[str, str]]:
    return MappingProxyType({})


def _no_weights() -> Mapping[str, float]:
    return MappingProxyType({})


def _no_positions() -> Mapping[str, Position]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitConfig:
    """The limits of named users and groups in a queue; `*` in a list stands for everyone else.

    `resources` are the limits by the keys of `LIMIT_KINDS`, those without quantities left out;
    0 applications means no limit to their number. `weight` is that of each of the users in a leaf that orders
    them, as it was written. `positions` knows `limit`, `users`, `users[0]`, `groups`, `groups[0]`,
    `maxresources`, `maxresources.<type>`, `maxapplications` and `weight`, as far as they are in the file.
    """

    description: str = ""
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    resources: Mapping[str, Resource] = field(default_factory=_no_resources)
    max_applications: int = 0
    weight: str = ""
    resource_texts: Mapping[str, Mapping[str, str]] = field(default_factory=_no_texts, compare=False)
    position: Position = field(default=NOWHERE, compare=False)
    positions: Mapping[str, Position] = field(default_factory=_no_positions, compare=False, repr=False)

    def resource(self, kind: LimitKind) -> Resource:
        """Return the limit of a kind, `EMPTY` without one."""
        return self.resources.get(kind.key, EMPTY)

    @property
    def only_weighs(self) -> bool:
        """Whether it gives a weight, and limits nothing."""
        return bool(self.weight) and not (self.max_applications or self.resource_texts or self.resources)

    def texts(self, kind: LimitKind) -> Mapping[str, str]:
        """Return the limit of a kind as text."""
        return self.resource_texts.get(kind.key, _nothing())


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildTemplateConfig:
    """The settings of dynamic queues below a queue; resources stay texts until such a queue is made.

    The texts are checked when the configuration is read: all of those of a parent queue can be parsed.
    """

    max_applications: int = 0
    properties: Mapping[str, str] = field(default_factory=_nothing)
    guaranteed: Mapping[str, str] = field(default_factory=_nothing)
    max: Mapping[str, str] = field(default_factory=_nothing)
    lend: Mapping[str, str] = field(default_factory=_nothing)
    position: Position = field(default=NOWHERE, compare=False)
    positions: Mapping[str, Position] = field(default_factory=_no_positions, compare=False, repr=False)

    @property
    def is_empty(self) -> bool:
        """Return whether the template has no settings."""
        maps = (self.properties, self.guaranteed, self.max, self.lend)
        return self.max_applications == 0 and not any(
            name and text for texts in maps for name, text in texts.items()
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueConfig:
    """One queue and all below it; the name is in the spelling of the file.

    `guaranteed`, `max` and `lend` are `EMPTY` when absent, the `_texts` beside them are what was written. So
    are those that are parts of the cluster: their size is known when nodes are.
    `max_applications` 0 means not set. `positions` knows the keys of the queue that are in the file
    (`name`, `parent`, `guaranteed`, `max`, `lend`, `maxapplications`, `adminacl`, ...) and the entries of its
    maps (`max.memory`, `properties.priority.offset`).
    """

    name: str
    parent: bool = False
    guaranteed: Resource = EMPTY
    max: Resource = EMPTY
    lend: Resource = EMPTY
    """The part of the guarantee that others may use while the queue does not; all of a type that it omits."""
    guaranteed_share: Share | None = None
    """The part of the maximum of the parent that the guarantee is."""
    max_share: Share | None = None
    max_applications: int = 0
    properties: Mapping[str, str] = field(default_factory=_nothing)
    admin_acl: str = ""
    submit_acl: str = ""
    child_template: ChildTemplateConfig | None = None
    queues: tuple[QueueConfig, ...] = ()
    limits: tuple[LimitConfig, ...] = ()
    guaranteed_texts: Mapping[str, str] = field(default_factory=_nothing, compare=False)
    max_texts: Mapping[str, str] = field(default_factory=_nothing, compare=False)
    lend_texts: Mapping[str, str] = field(default_factory=_nothing, compare=False)
    position: Position = field(default=NOWHERE, compare=False)
    positions: Mapping[str, Position] = field(default_factory=_no_positions, compare=False, repr=False)

    @property
    def is_leaf(self) -> bool:
        """Return whether the queue made of this holds applications: it is not a parent and has no queues."""
        return not self.parent and not self.queues


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterConfig:
    """The users and groups that a placement rule applies to; type and entries are as written."""

    type: str = ""
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleConfig:
    """One placement rule with the rule that finds its parent queue, if there is one."""

    name: str
    create: bool = False
    value: str = ""
    filter: FilterConfig = field(default_factory=FilterConfig)
    parent: RuleConfig | None = None
    position: Position = field(default=NOWHERE, compare=False)
    positions: Mapping[str, Position] = field(default_factory=_no_positions, compare=False, repr=False)


class VictimJobs(Enum):
    """Whether victims are taken one by one or gang by gang; the values are those of the configuration."""

    PARTS = "parts"
    WHOLE = "whole"

    @property
    def is_whole(self) -> bool:
        """Whether a gang ends as a whole before others lose members too."""
        match self:
            case VictimJobs.PARTS:
                return False
            case VictimJobs.WHOLE:
                return True
            case _:
                assert_never(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class PreemptionConfig:
    """How a partition preempts; `None` means not set: preemption is on, quota preemption off.

    `victims` is the order of victims as written, or the empty text, and so is `jobs` what they are taken by.
    """

    enabled: bool | None = None
    quota_preemption_enabled: bool | None = None
    victims: str = ""
    jobs: str = ""

    @property
    def whole_jobs(self) -> bool:
        """Whether a gang ends as a whole before others lose members too."""
        return VictimJobs(self.jobs or VictimJobs.PARTS).is_whole

    @property
    def victims_word(self) -> str:
        """The order of victims of a configuration that has been checked; the empty text means `youngest`."""
        return self.victims or "youngest"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSortPolicyConfig:
    """The name of an order of nodes as written, or the empty text, and what each resource type weighs."""

    type: str = ""
    resource_weights: Mapping[str, float] = field(default_factory=_no_weights)

    @property
    def word(self) -> str:
        """The order of a configuration that has been checked; the empty text means `fair`."""
        return self.type or "fair"


@dataclass(frozen=True, slots=True, kw_only=True)
class PoliciesConfig:
    """The policies of a partition that belong to no single queue, by their names."""

    admission: tuple[str, ...] = ()
    """All of them must let an application start; asked in this order."""
    filters: tuple[str, ...] = ()
    """None of them may refuse a node that an ask gets; asked in this order."""
    protection: tuple[str, ...] = ()
    """None of them may spare what ends for something else; asked in this order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionConfig:
    """One partition; `limits` are those written at the partition itself, the root queue has them too."""

    name: str
    root: QueueConfig
    placement_rules: tuple[RuleConfig, ...] = ()
    limits: tuple[LimitConfig, ...] = ()
    preemption: PreemptionConfig = field(default_factory=PreemptionConfig)
    node_sort_policy: NodeSortPolicyConfig = field(default_factory=NodeSortPolicyConfig)
    topology: tuple[str, ...] = ()
    """The attributes of nodes that name their domains, the widest level first."""
    windows: tuple[WindowConfig, ...] = ()
    """When nodes are reserved, for maintenance or for some users."""
    policies: PoliciesConfig = field(default_factory=PoliciesConfig)
    user_group_resolver: str = ""
    position: Position = field(default=NOWHERE, compare=False)
    positions: Mapping[str, Position] = field(default_factory=_no_positions, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerConfig:
    """A whole configuration.

    `text` is what was read and `checksum` its fingerprint; `warnings` are about probable mistakes.
    """

    partitions: tuple[PartitionConfig, ...] = ()
    checksum: str = ""
    text: str = field(default="", compare=False, repr=False)
    warnings: tuple[Problem, ...] = field(default=(), compare=False, repr=False)


class LimitKind(NamedTuple):
    """A key of `limits` whose value is a resource."""

    key: str
    """The key in the configuration."""
    title: str
    """The key as messages and documents spell it."""
    name: str
    """Its name in messages, in the limit that they are about."""
    name_above: str
    """Its name in a queue above."""
    counts_usage: bool
    """Whether what the holder uses counts as well; otherwise each ask is compared with the limit alone."""


MAX_RESOURCES: Final = LimitKind(
    "maxresources", "MaxResources", "max resource", "maximum resource", counts_usage=True
)
LIMIT_KINDS: Final = (MAX_RESOURCES,)


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
        topology=document.topology,
        windows=build_windows(document.windows, findings),
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
    """Parse the entries of a resource one by one; those that are not quantities are noted and left out.

    Args:
        texts: The quantities by resource type; `vcore` is in cores or milli-cores.
        positions: Where things stand; the entry of a type is at `<prefix>.<type>`.
        prefix: The path of the resource.
        findings: Errors are appended here.
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
    own = CLUSTER if has_root(document) else None
    queues = tuple(_queue(queue, findings, CLUSTER, own) for queue in document.queues or ())
    if own is not None:
        root = replace(queues[0], parent=True)
        return root if root.limits else replace(root, limits=limits)
    position = document.positions(closed=("queues",)).get("queues", document.position)
    return QueueConfig(name=ROOT, parent=True, queues=queues, limits=limits, position=position)


def _quota(
    texts: Mapping[str, str],
    positions: Mapping[str, Position],
    key: str,
    whole: Whole,
    findings: list[RuleFinding],
) -> tuple[Resource, Share | None]:
    """Return a quota, and the share that it is if it is one."""
    if ALL_TYPES not in texts:
        return parse_resource(texts, positions, key, findings), None
    share = share_of(whole, texts[ALL_TYPES], positions[key], findings)
    return (EMPTY, None) if share is None else (share.of(whole.maximum), share)


def _queue(
    document: YamlQueue, findings: list[RuleFinding], whole: Whole, own: Whole | None = None
) -> QueueConfig:
    """Build a queue and all below it; `own` is its maximum as the children see it, if that is known."""
    positions = _queue_positions(document)
    guaranteed_texts, max_texts = document.resources.guaranteed or {}, document.resources.max or {}
    guaranteed, guaranteed_share = _quota(guaranteed_texts, positions, "guaranteed", whole, findings)
    maximum, max_share = _quota(max_texts, positions, "max", whole, findings)
    if own is None:
        own = CLUSTER if max_share is not None and whole.is_of_cluster else Whole(maximum or None)
    lend = document.resources.lend or {}
    template = document.childtemplate
    return QueueConfig(
        name=document.name,
        parent=document.parent,
        guaranteed=guaranteed,
        max=maximum,
        guaranteed_share=guaranteed_share,
        max_share=max_share,
        lend=parse_resource(lend, positions, "lend", findings),
        max_applications=document.maxapplications,
        properties=MappingProxyType(document.properties),
        admin_acl=document.adminacl,
        submit_acl=document.submitacl,
        child_template=_template(template) if template is not None else None,
        queues=tuple(_queue(queue, findings, own) for queue in document.queues),
        limits=tuple(_limit(limit, findings) for limit in document.limits),
        guaranteed_texts=MappingProxyType(guaranteed_texts),
        max_texts=MappingProxyType(max_texts),
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
