"""The parts of a pod that restrict or prefer the nodes on which it runs, as Kubernetes has them."""

from __future__ import annotations

from typing import Final

import msgspec

from .decoding import resolve_structs

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


class _PlacementPart(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False, kw_only=True):
    """The common base of these structs."""


class LabelRequirement(_PlacementPart, frozen=True):
    """A condition on one label, or on one field of a node."""

    key: str
    operator: str
    """`In`, `NotIn`, `Exists`, `DoesNotExist`; of nodes also `Gt`, `Lt`."""
    values: tuple[str, ...] = ()


class LabelSelector(_PlacementPart, frozen=True):
    """Conditions on labels, all of which must hold; an empty selector matches everything."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[LabelRequirement, ...] = ()


class NodeSelectorTerm(_PlacementPart, frozen=True):
    """Conditions on a node, all of which must hold; an empty term matches no node."""

    match_expressions: tuple[LabelRequirement, ...] = ()
    match_fields: tuple[LabelRequirement, ...] = ()


class NodeSelector(_PlacementPart, frozen=True):
    """Terms, one of which must hold."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredNodes(_PlacementPart, frozen=True):
    """Nodes that a pod prefers; an empty term matches no node."""

    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(_PlacementPart, frozen=True):
    """The nodes that a pod needs, and those that it prefers."""

    required: NodeSelector | None = msgspec.field(default=None, name=_REQUIRED)
    preferred: tuple[PreferredNodes, ...] = msgspec.field(default=(), name=_PREFERRED)


class PodAffinityTerm(_PlacementPart, frozen=True):
    """Pods, and the label of nodes within one value of which a pod is to be near them, or not to be."""

    topology_key: str = ""
    label_selector: LabelSelector | None = None
    """`None` matches no pod."""
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None


class PreferredPods(_PlacementPart, frozen=True):
    """Pods that a pod prefers to be near, or not to be near."""

    weight: int = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinityTerms(_PlacementPart, frozen=True):
    """The terms of affinity or of anti-affinity."""

    required: tuple[PodAffinityTerm, ...] = msgspec.field(default=(), name=_REQUIRED)
    preferred: tuple[PreferredPods, ...] = msgspec.field(default=(), name=_PREFERRED)


class Affinity(_PlacementPart, frozen=True):
    """The places where a pod needs or prefers to run."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinityTerms | None = None
    pod_anti_affinity: PodAffinityTerms | None = None


class Toleration(_PlacementPart, frozen=True):
    """Taints that a pod tolerates."""

    key: str = ""
    operator: str = ""
    """`Equal`, which an empty text means too, `Exists`, `Lt` or `Gt`."""
    value: str = ""
    effect: str = ""
    """An empty text tolerates every effect."""


class TopologySpreadConstraint(_PlacementPart, frozen=True):
    """How evenly pods are to be spread over the values of a label of nodes."""

    max_skew: int
    topology_key: str
    when_unsatisfiable: str
    """`DoNotSchedule` or `ScheduleAnyway`."""
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"
    match_label_keys: tuple[str, ...] = ()


resolve_structs(__name__)
