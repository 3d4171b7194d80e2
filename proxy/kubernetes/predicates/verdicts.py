"""Whether a pod may run on a node: all filters in the order of kube-scheduler; the first refusal counts.

The only omitted filter of kube-scheduler is `NodeResourcesFit`, because the core counts resources itself.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple, final

import msgspec

from licorne.proxy.kubernetes.objects import KubernetesNode, Pod
from licorne.proxy.kubernetes.predicates.cluster_view import ClusterView, NodeState, TopologyTally
from licorne.proxy.kubernetes.predicates.neighbour_filters import (
    NeighbourRule,
    imposed_rule,
    looks_at_neighbours,
    own_rules,
    refused_by_ports,
)
from licorne.proxy.kubernetes.predicates.node_filters import (
    missing_feature,
    refused_by_affinity,
    refused_by_name,
    refused_by_taint,
    refused_for_cordon,
    refused_for_features,
    required_features,
    taint_text,
    untolerated_taint,
)
from licorne.proxy.kubernetes.predicates.volume_filters import (
    claim_keys,
    exclusive_claims,
    names_disks,
    refused_by_binding,
    refused_by_disks,
    refused_by_zone,
    refused_for_devices,
    users_of_exclusive_claims,
)

_TALLIES_MAX = 64
"""The maximum number of tallies. One takes about 200 bytes per contributing node."""

_CLASSES_MAX = 64
"""For how many classes of pods the reasons of nodes are kept."""
_CLASS_BYTES = 12
_FEW_WORDS = {
    "NodeName": "another node than the pod names",
    "NodeUnschedulable": "cordoned",
    "TaintToleration": "untolerated taint",
    "NodeAffinity": "node affinity",
    "NodeDeclaredFeatures": "missing feature",
    "NodePorts": "host port in use",
    "VolumeRestrictions": "volume in use",
    "VolumeBinding": "volume binding",
    "VolumeZone": "volume in another zone",
    "PodTopologySpread": "topology spread",
    "InterPodAffinity": "pod affinity",
    "DynamicResources": "claimed devices",
}
"""The names of the refusals in conditions; those of a taint and a feature follow."""

_NODE_FILTERS = (
    ("NodeName", refused_by_name),
    ("NodeUnschedulable", refused_for_cordon),
    ("TaintToleration", refused_by_taint),
    ("NodeAffinity", refused_by_affinity),
    ("NodeDeclaredFeatures", refused_for_features),
)
"""The last one is also the last in kube-scheduler: it depends only on the node, like the others."""


def predicate_class(pod: Pod) -> str:
    """Return a text that is equal for pods whose answers are equal on each node.

    This holds as long as no other pod excludes the pods by its anti-affinity, see `PodFilters.is_kept_away`.

    Returns:
        24 hexadecimal digits, or an empty text if the answers depend on other pods.
    """
    if looks_at_neighbours(pod) or names_disks(pod):
        return ""
    looked_at = (*node_conditions(pod), list(claim_keys(pod)), pod.spec.resource_claims != ())
    text = msgspec.json.encode(looked_at, order="deterministic")
    return blake2b(text, digest_size=_CLASS_BYTES).hexdigest()


def node_conditions(pod: Pod) -> tuple[object, ...]:
    """Return the parts of a pod on which the refusals of `refusal_of_node` depend."""
    spec = pod.spec
    affinity = None if spec.affinity is None else spec.affinity.node_affinity
    required = None if affinity is None else affinity.required
    return spec.node_name, spec.node_selector, required, spec.tolerations, required_features(pod)


class FilterRefusal(NamedTuple):
    """The refusal of a node by a filter."""

    plugin: str
    """The filter, by its name in kube-scheduler."""
    sentence: str


def refusal_of_node(pod: Pod, node: KubernetesNode) -> FilterRefusal | None:
    """Return the first refusal of a node that depends on no other pod, `None` if there is none."""
    for plugin, refused in _NODE_FILTERS:
        sentence = refused(pod, node)
        if sentence is not None:
            return FilterRefusal(plugin, sentence)
    return None


@final
class PodFilters:
    """The filters over one cluster, with the counts of pods for some of them.

    Only one thread may use them. The cluster may change in the meantime, see `ClusterView`.
    """

    __slots__ = ("_rules", "_rules_of", "_tallies", "_users_for", "_view")

    def __init__(self, view: ClusterView) -> None:
        """Create the filters for the nodes of this view."""
        self._view = view
        self._tallies: OrderedDict[bytes, TopologyTally] = OrderedDict()
        self._rules: list[tuple[NeighbourRule, TopologyTally]] = []
        self._users_for: tuple[Pod, int, frozenset[str]] | None = None
        self._rules_of: tuple[Pod, int] | None = None
        """The pod and the version for which `_rules` were made: most pods are checked on many nodes in a
        row."""

    def why_refused(self, pod: Pod, node_name: str, *, allocate: bool) -> str | None:
        """Return why a pod may not run on a node, or `None` if it may.

        Args:
            pod: The pod, which is not on a node yet.
            node_name: The name of the node.
            allocate: Whether the pod is to be placed now; otherwise devices are not checked, since they may
                change as long as a node is only reserved. Storage is: a node that a volume cannot be reached
                from would be reserved without use, and pods whose volumes are there would wait for ever.

        Returns:
            The first refusal, in the form `failed plugin: '<name>': <sentence>`.
        """
        state = self._view.nodes.get(node_name)
        refusal = (
            FilterRefusal("NodeName", "the node is not known")
            if state is None
            else self.first_refusal(pod, state, allocate=allocate)
        )
        return None if refusal is None else f"failed plugin: '{refusal.plugin}': {refusal.sentence}"

    def first_refusal(self, pod: Pod, state: NodeState, *, allocate: bool) -> FilterRefusal | None:
        """Return the first refusal of a node for a pod, `None` if it may run there; see `why_refused`."""
        return (
            refusal_of_node(pod, state.node)
            or _refusal("NodePorts", refused_by_ports(pod, state))
            or self._refusal_for_storage(pod, state)
            or self._refusal_for_neighbours(pod, state)
            or (_refusal("DynamicResources", refused_for_devices(pod)) if allocate else None)
        )

    def first_index_that_fits(
        self, pod: Pod, node_name: str, victims: Sequence[Pod], start_index: int
    ) -> int | None:
        """Return how many pods must leave a node before another may run there.

        Counts of spreading and affinity are reduced by the pods that leave. (The scheduler that Licorne
        replaces does not reduce them, and so finds no victims for pods that are refused by such counts.)

        Args:
            pod: The pod, which is not on a node yet.
            node_name: The name of the node.
            victims: The pods that may leave, in this order. Pods that are not on the node change nothing.
            start_index: Pods before this index leave in any case.

        Returns:
            The first index, from `start_index` on, such that the pod may run on the node without the victims
            up to and including this one; `None` if it may not run there even without all of them.
        """
        assert start_index >= 0, start_index
        state = self._view.nodes.get(node_name)
        if state is None:
            return None
        if refusal_of_node(pod, state.node) or refused_for_devices(pod) is not None:
            return None
        if refused_by_binding(pod, state.node, self._view) or refused_by_zone(pod, state.node, self._view):
            return None
        users = self._users_of_claims(pod)
        if not users <= {other.metadata.uid for other in state.pods}:
            return None
        rules = self._rules_for(pod)
        state = self._view.nodes.get(node_name)  # not older than the tallies, which get it back below
        if state is None:
            return None
        try:
            gone = {victim.metadata.uid for victim in victims[:start_index]}
            for index in range(start_index, len(victims)):
                gone.add(victims[index].metadata.uid)
                left = tuple(other for other in state.pods if other.metadata.uid not in gone)
                if users <= gone and _fits_then(pod, NodeState(state.node, left), rules):
                    return index
        finally:
            for _, tally in rules:
                tally.put(state)
        return None

    def is_kept_away(self, pod: Pod) -> bool:
        """Return whether others may exclude this pod, though not all of its class.

        A pod on a node may have anti-affinity to it, or use a claim that is for a single pod.
        """
        if exclusive_claims(pod, self._view):
            return True
        if not self._view.anti_affinity_nodes:
            return False
        return not self._imposed(pod)[1].is_empty

    def _refusal_for_storage(self, pod: Pod, state: NodeState) -> FilterRefusal | None:
        if not pod.spec.volumes:
            return None
        return (
            _refusal("VolumeRestrictions", self._refusal_for_other_users(pod, state))
            or _refusal("VolumeBinding", refused_by_binding(pod, state.node, self._view))
            or _refusal("VolumeZone", refused_by_zone(pod, state.node, self._view))
        )

    def _refusal_for_other_users(self, pod: Pod, state: NodeState) -> str | None:
        refusal = refused_by_disks(pod, state.pods)
        if refusal is None and self._users_of_claims(pod):
            return "a claim of the pod may be used by a single pod, and another pod uses it"
        return refusal

    def _users_of_claims(self, pod: Pod) -> frozenset[str]:
        """Return the pods that use claims which a pod needs alone, found once for all nodes."""
        version = self._view.version
        if self._users_for is None or self._users_for[0] is not pod or self._users_for[1] != version:
            self._users_for = (pod, version, users_of_exclusive_claims(pod, self._view))
        return self._users_for[2]

    def _refusal_for_neighbours(self, pod: Pod, state: NodeState) -> FilterRefusal | None:
        for rule, tally in self._rules_for(pod):
            sentence = rule.refusal(state.node, tally)
            if sentence is not None:
                return FilterRefusal(rule.plugin, sentence)
        return None

    def _rules_for(self, pod: Pod) -> list[tuple[NeighbourRule, TopologyTally]]:
        """Return the rules of a pod, with current tallies."""
        view = self._view
        version = view.version
        if self._rules_of is not None and self._rules_of[0] is pod and self._rules_of[1] == version:
            return self._rules
        rules = [self._counted(rule, view.nodes) for rule in own_rules(pod, view.namespaces)]
        if view.anti_affinity_nodes:
            rules.append(self._imposed(pod))
        self._rules, self._rules_of = rules, (pod, version)
        return rules

    def _imposed(self, pod: Pod) -> tuple[NeighbourRule, TopologyTally]:
        return self._counted(imposed_rule(pod, self._view), self._view.anti_affinity_nodes)

    def _counted(
        self, rule: NeighbourRule, nodes: Mapping[str, NodeState]
    ) -> tuple[NeighbourRule, TopologyTally]:
        tally = self._tally_of(rule)
        tally.refresh(nodes, self._view.node_changes)
        return rule, tally

    def _tally_of(self, rule: NeighbourRule) -> TopologyTally:
        key = rule.key
        tally = self._tallies.get(key)
        if tally is None:
            tally = self._tallies[key] = TopologyTally(rule.contribution)
            if len(self._tallies) > _TALLIES_MAX:
                self._tallies.popitem(last=False)
        else:
            self._tallies.move_to_end(key)
        return tally


def _fits_then(pod: Pod, state: NodeState, rules: list[tuple[NeighbourRule, TopologyTally]]) -> bool:
    """Return whether the filters that look at other pods accept a node in a hypothetical state."""
    if refused_by_ports(pod, state) is not None or refused_by_disks(pod, state.pods) is not None:
        return False
    for _, tally in rules:
        tally.put(state)
    return all(rule.refusal(state.node, tally) is None for rule, tally in rules)


def _refusal(plugin: str, sentence: str | None) -> FilterRefusal | None:
    return None if sentence is None else FilterRefusal(plugin, sentence)


def _read_fields(pod: Pod) -> bytes:
    """Return a text that is equal for pods which the filters cannot distinguish, apart from their volumes."""
    return msgspec.json.encode((pod.metadata.namespace, pod.metadata.labels, pod.spec), order="deterministic")


@final
class NodeReasons:
    """The first reasons of nodes in a few words, for conditions; equal pods share them.

    Only one thread may use them.
    """

    __slots__ = ("_by_class", "_filters", "_shared", "_view")

    def __init__(self, view: ClusterView) -> None:
        """Begin without reasons."""
        self._view = view
        self._filters = PodFilters(view)
        self._by_class: OrderedDict[str, dict[str, tuple[KubernetesNode, str]]] = OrderedDict()
        """By class, then by node: the node as it was, and its reason, empty if it accepts the class."""
        self._shared: tuple[int, dict[bytes, Mapping[str, str]]] = (-1, {})
        """A version of the view, and its answers by the fields of pods that filters read."""

    def refused(self, pod: Pod) -> Mapping[str, str]:
        """Return the nodes that refuse a pod, each with its first reason."""
        if pod.spec.volumes:  # Changes of claims and volumes are no other version.
            return self._refused(pod)
        version = self._view.version
        if self._shared[0] != version:
            self._shared = (version, {})
        shared, key = self._shared[1], _read_fields(pod)
        reasons = shared.get(key)
        if reasons is None:
            reasons = shared[key] = self._refused(pod)
            if len(shared) > _CLASSES_MAX:
                del shared[next(iter(shared))]
        return reasons

    def _refused(self, pod: Pod) -> dict[str, str]:
        is_shared = not (pod.spec.volumes or self._filters.is_kept_away(pod))
        name = predicate_class(pod) if is_shared else ""
        known = self._by_class.pop(name, {}) if name else {}
        reasons = {}
        for node_name, state in list(self._view.nodes.items()):
            before = known.get(node_name)
            if before is None or before[0] is not state.node:
                before = (state.node, self._reason(pod, state))
            reasons[node_name] = before
        if name:
            self._by_class[name] = reasons
            if len(self._by_class) > _CLASSES_MAX:
                self._by_class.popitem(last=False)
        return {node_name: reason for node_name, (_, reason) in reasons.items() if reason}

    def _reason(self, pod: Pod, state: NodeState) -> str:
        refusal = self._filters.first_refusal(pod, state, allocate=True)
        if refusal is None:
            return ""
        words = _FEW_WORDS[refusal.plugin]
        taint = untolerated_taint(pod, state.node)
        if refusal.plugin == "TaintToleration" and taint is not None:
            return f"{words} {taint_text(taint)}"
        if refusal.plugin == "NodeDeclaredFeatures":
            return f"{words} {missing_feature(pod, state.node)}"
        return words
