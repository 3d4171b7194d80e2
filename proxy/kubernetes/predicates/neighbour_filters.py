"""The filters that look at other pods: host ports, spreading over domains, affinity of pods.

Host ports concern the pods of one node. The others count pods over the cluster: each of them is a *rule* that
a pod has, or that other pods impose on it. A rule defines the contribution of a node to its tally, and
decides about a node from the tally. Rules with equal keys count the same pods, so that the pods of one
controller share a tally.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Protocol, final

import msgspec

from licorne.proxy.kubernetes.objects import ContainerPort, KubernetesNode, Namespace, Pod
from licorne.proxy.kubernetes.placement_objects import (
    Affinity,
    LabelRequirement,
    LabelSelector,
    PodAffinityTerm,
    TopologySpreadConstraint,
)
from licorne.proxy.kubernetes.predicates.cluster_view import (
    ClusterView,
    Contribution,
    NodeState,
    TopologyTally,
    anti_affinity_terms,
)
from licorne.proxy.kubernetes.predicates.node_filters import fits_node_selection, untolerated_taint
from licorne.proxy.kubernetes.predicates.selectors import labels_match

_ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - the name of Kubernetes for all addresses; nothing listens here
_EMPTY_SELECTOR: Final = LabelSelector()


class NeighbourRule(Protocol):
    """A condition on the pods near the place of a pod."""

    @property
    def plugin(self) -> str:
        """The filter of Kubernetes for the rule."""
        ...

    @property
    def key(self) -> bytes:
        """A text that is equal for rules that count the same pods."""
        ...

    def contribution(self, state: NodeState) -> Contribution:
        """Return the contribution of a node to the tally of the rule."""
        ...

    def refusal(self, node: KubernetesNode, tally: TopologyTally) -> str | None:
        """Return why a node is refused, or `None`; the tally is current."""
        ...


def looks_at_neighbours(pod: Pod) -> bool:
    """Return whether the place of a pod depends on other pods by its own constraints."""
    return bool(
        anti_affinity_terms(pod)
        or _affinity_terms(pod)
        or any(map(_is_required, pod.spec.topology_spread_constraints))
        or any(_host_ports(pod))
    )


def own_rules(pod: Pod, namespaces: Mapping[str, Namespace]) -> Iterator[NeighbourRule]:
    """List the rules of a pod, in the order in which Kubernetes applies them."""
    constraints = tuple(filter(_is_required, pod.spec.topology_spread_constraints))
    if constraints:
        yield SpreadRule(pod, constraints)
    terms = _affinity_terms(pod)
    if terms:
        yield _AffinityRule(pod, tuple(resolved_term(term, pod, namespaces) for term in terms))
    terms = anti_affinity_terms(pod)
    if terms:
        yield _AntiAffinityRule(tuple(resolved_term(term, pod, namespaces) for term in terms))


def imposed_rule(pod: Pod, view: ClusterView) -> NeighbourRule:
    """Return the rule that pods with anti-affinity impose on this pod; only their nodes contribute."""
    namespace = view.namespaces.get(pod.metadata.namespace)
    return _ImposedRule(pod, {} if namespace is None else namespace.metadata.labels)


def refused_by_ports(pod: Pod, state: NodeState) -> str | None:
    """Refuse a node where a host port of the pod is in use (the filter `NodePorts`)."""
    needed = list(_host_ports(pod))
    if not needed:
        return None
    for other in state.pods:
        for used in _host_ports(other):
            for port in needed:
                if _conflict(port, used):
                    return f"another pod on the node uses the host port {port.host_port} ({port.protocol})"
    return None


def _host_ports(pod: Pod) -> Iterator[ContainerPort]:
    """List the host ports that a pod needs as long as it runs."""
    for container in pod.spec.containers:
        for port in container.ports:
            if port.host_port > 0:
                yield port
    for container in pod.spec.init_containers:
        if container.restart_policy == "Always":
            for port in container.ports:
                if port.host_port > 0:
                    yield port


def _conflict(port: ContainerPort, used: ContainerPort) -> bool:
    if port.host_port != used.host_port or (port.protocol or "TCP") != (used.protocol or "TCP"):
        return False
    address, in_use = port.host_ip or _ANY_ADDRESS, used.host_ip or _ANY_ADDRESS
    return address == in_use or _ANY_ADDRESS in {address, in_use}


def _is_required(constraint: TopologySpreadConstraint) -> bool:
    return constraint.when_unsatisfiable == "DoNotSchedule"


@final
class SpreadRule:
    """Spread the pods that match a selector evenly over domains (the filter `PodTopologySpread`)."""

    plugin: ClassVar[str] = "PodTopologySpread"

    def __init__(self, pod: Pod, constraints: tuple[TopologySpreadConstraint, ...]) -> None:
        """Take constraints of the pod; each has a different topology key."""
        self._pod = pod
        self.constraints = tuple(_with_own_labels(constraint, pod) for constraint in constraints)
        self._counts_itself = tuple(
            labels_match(constraint.label_selector, pod.metadata.labels) for constraint in self.constraints
        )

    @property
    def key(self) -> bytes:
        """A text that is equal for rules that count the same pods."""
        pod = self._pod
        node_affinity = None if pod.spec.affinity is None else pod.spec.affinity.node_affinity
        return rule_key(
            (
                self.plugin,
                self.constraints,
                pod.metadata.namespace,
                pod.spec.node_selector,
                None if node_affinity is None else node_affinity.required,
                pod.spec.tolerations,
            )
        )

    def contribution(self, state: NodeState) -> Contribution:
        """Return the matching pods on a node, by its domain of each constraint."""
        labels = state.node.metadata.labels
        for constraint in self.constraints:
            if constraint.topology_key not in labels:
                return ()
        return tuple(
            (
                (constraint.topology_key, labels[constraint.topology_key]),
                self._counted(constraint, state.pods),
            )
            for constraint in self.constraints
            if self._takes_part(constraint, state.node)
        )

    def _takes_part(self, constraint: TopologySpreadConstraint, node: KubernetesNode) -> bool:
        """Return whether the pods are to be spread over a node."""
        spec = self._pod.spec
        if constraint.node_affinity_policy == "Honor" and not fits_node_selection(
            spec.node_selector, spec.affinity, node
        ):
            return False
        return constraint.node_taints_policy != "Honor" or untolerated_taint(self._pod, node) is None

    def _counted(self, constraint: TopologySpreadConstraint, pods: tuple[Pod, ...]) -> int:
        selector = constraint.label_selector
        if selector is None or selector == _EMPTY_SELECTOR:
            return 0
        namespace = self._pod.metadata.namespace
        counted = 0
        for pod in pods:
            metadata = pod.metadata
            if metadata.namespace == namespace and metadata.deletion_timestamp is None:
                counted += labels_match(selector, metadata.labels)
        return counted

    def refusal(self, node: KubernetesNode, tally: TopologyTally) -> str | None:
        """Return why the skew would be too large on a node, or `None`."""
        for constraint, counts_itself in zip(self.constraints, self._counts_itself, strict=True):
            key = constraint.topology_key
            value = node.metadata.labels.get(key)
            if value is None:
                return f"the node has no label {key}, over which the pod is to be spread"
            least, domains = tally.least(key)
            if domains < (1 if constraint.min_domains is None else constraint.min_domains):
                least = 0
            if tally.count((key, value)) + counts_itself - least > constraint.max_skew:
                return f"the pods would be spread over {key} with a skew of more than {constraint.max_skew}"
        return None


def _with_own_labels(constraint: TopologySpreadConstraint, pod: Pod) -> TopologySpreadConstraint:
    """Extend the selector of a constraint with the pod's own values of its `matchLabelKeys`."""
    labels = pod.metadata.labels
    own = tuple(
        LabelRequirement(key=key, operator="In", values=(labels[key],))
        for key in constraint.match_label_keys
        if key in labels
    )
    selector = constraint.label_selector
    if not own or selector is None:
        return constraint
    return msgspec.structs.replace(
        constraint,
        label_selector=LabelSelector(
            match_labels=selector.match_labels, match_expressions=selector.match_expressions + own
        ),
    )


@final
@dataclass(frozen=True, slots=True)
class ResolvedTerm:
    """A term of a pod with its namespaces resolved to names."""

    topology_key: str
    selector: LabelSelector | None
    namespaces: frozenset[str] | None
    """`None` means all."""

    def matches(self, pod: Pod) -> bool:
        """Return whether the term is about a pod."""
        if self.namespaces is not None and pod.metadata.namespace not in self.namespaces:
            return False
        return labels_match(self.selector, pod.metadata.labels)


def resolved_term(term: PodAffinityTerm, owner: Pod, namespaces: Mapping[str, Namespace]) -> ResolvedTerm:
    """Return a term of a pod with the names of its namespaces."""
    names: frozenset[str] | None = named_namespaces(term, owner)
    selector = term.namespace_selector
    if selector is not None:
        names = (
            None
            if selector == _EMPTY_SELECTOR
            else frozenset(term.namespaces).union(
                namespace.metadata.name
                for namespace in list(namespaces.values())
                if labels_match(selector, namespace.metadata.labels)
            )
        )
    return ResolvedTerm(term.topology_key, term.label_selector, names)


def named_namespaces(term: PodAffinityTerm, owner: Pod) -> frozenset[str]:
    """Return the namespaces that a term of a pod names: by default that of the pod."""
    if not term.namespaces and term.namespace_selector is None:
        return frozenset({owner.metadata.namespace})
    return frozenset(term.namespaces)


def _affinity_terms(pod: Pod) -> tuple[PodAffinityTerm, ...]:
    affinity: Affinity | None = pod.spec.affinity
    if affinity is None or affinity.pod_affinity is None:
        return ()
    return affinity.pod_affinity.required


@final
class _AffinityRule:
    """Place a pod in domains with a pod that matches all of its terms (a part of `InterPodAffinity`)."""

    plugin: ClassVar[str] = "InterPodAffinity"

    def __init__(self, pod: Pod, terms: tuple[ResolvedTerm, ...]) -> None:
        self._terms = terms
        self._matches_itself = self._matched_by(pod)

    @property
    def key(self) -> bytes:
        return rule_key(("affinity", self._terms))

    def contribution(self, state: NodeState) -> Contribution:
        matching = sum(map(self._matched_by, state.pods))
        if not matching:
            return ()
        labels = state.node.metadata.labels
        keys = dict.fromkeys(term.topology_key for term in self._terms)
        return tuple(((key, labels[key]), matching) for key in keys if key in labels)

    def _matched_by(self, pod: Pod) -> bool:
        return all(term.matches(pod) for term in self._terms)

    def refusal(self, node: KubernetesNode, tally: TopologyTally) -> str | None:
        labels = node.metadata.labels
        is_beside = True
        for term in self._terms:
            value = labels.get(term.topology_key)
            if value is None:
                return f"the node has no label {term.topology_key}, which the pod affinity names"
            if not tally.count((term.topology_key, value)):
                is_beside = False
        # The first pod of a group may run anywhere, or the group could never start.
        if is_beside or (tally.is_empty and self._matches_itself):
            return None
        return "no pod that the pod affinity asks for is in the domains of the node"


@final
class _AntiAffinityRule:
    """Keep a pod out of domains with a pod that matches one of its terms (a part of `InterPodAffinity`)."""

    plugin: ClassVar[str] = "InterPodAffinity"

    def __init__(self, terms: tuple[ResolvedTerm, ...]) -> None:
        self._terms = terms

    @property
    def key(self) -> bytes:
        return rule_key(("anti-affinity", self._terms))

    def contribution(self, state: NodeState) -> Contribution:
        labels = state.node.metadata.labels
        return tuple(
            ((term.topology_key, labels[term.topology_key]), 1)
            for term in self._terms
            if term.topology_key in labels and any(map(term.matches, state.pods))
        )

    def refusal(self, node: KubernetesNode, tally: TopologyTally) -> str | None:
        labels = node.metadata.labels
        for term in self._terms:
            value = labels.get(term.topology_key)
            if value is not None and tally.count((term.topology_key, value)):
                return f"a pod that the pod anti-affinity excludes is in the same {term.topology_key}"
        return None


@final
class _ImposedRule:
    """Keep a pod out of domains of pods whose anti-affinity excludes it (a part of `InterPodAffinity`)."""

    plugin: ClassVar[str] = "InterPodAffinity"

    def __init__(self, pod: Pod, namespace_labels: dict[str, str]) -> None:
        self._pod = pod
        self._namespace_labels = namespace_labels

    @property
    def key(self) -> bytes:
        metadata = self._pod.metadata
        return rule_key(("imposed", metadata.namespace, metadata.labels, self._namespace_labels))

    def contribution(self, state: NodeState) -> Contribution:
        labels = state.node.metadata.labels
        keys = dict.fromkeys(
            term.topology_key
            for owner in state.anti_affinity_pods
            for term in anti_affinity_terms(owner)
            if term.topology_key in labels and self._is_excluded_by(term, owner)
        )
        return tuple(((key, labels[key]), 1) for key in keys)

    def _is_excluded_by(self, term: PodAffinityTerm, owner: Pod) -> bool:
        metadata = self._pod.metadata
        return labels_match(term.label_selector, metadata.labels) and (
            metadata.namespace in named_namespaces(term, owner)
            or labels_match(term.namespace_selector, self._namespace_labels)
        )

    def refusal(self, node: KubernetesNode, tally: TopologyTally) -> str | None:
        if not tally.is_empty:
            for domain in node.metadata.labels.items():
                if tally.count(domain):
                    return f"the anti-affinity of a pod in the same {domain[0]} excludes the pod"
        return None


def rule_key(parts: object) -> bytes:
    """Return a text that is equal for equal parts."""
    return msgspec.json.encode(parts, order="deterministic")
