"""Whether a pod may run on a node: all filters in the order of kube-scheduler; the first refusal counts.

The only omitted filter of kube-scheduler is `NodeResourcesFit`, because the core counts resources itself.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import final

import msgspec

from licorne.proxy.kubernetes.objects import Pod
from licorne.proxy.kubernetes.predicates.cluster_view import ClusterView, NodeState, TopologyTally
from licorne.proxy.kubernetes.predicates.neighbour_filters import (
    NeighbourRule,
    imposed_rule,
    looks_at_neighbours,
    own_rules,
    refused_by_ports,
)
from licorne.proxy.kubernetes.predicates.node_filters import (
    refused_by_affinity,
    refused_by_name,
    refused_by_taint,
    refused_for_cordon,
    refused_for_features,
    required_features,
)
from licorne.proxy.kubernetes.predicates.volume_filters import (
    claim_keys,
    refused_by_binding,
    refused_by_zone,
    refused_for_devices,
    refused_for_exclusive_claim,
)

_TALLIES_MAX = 64
"""The maximum number of tallies. One takes about 200 bytes per contributing node."""

_CLASS_BYTES = 12

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
    if looks_at_neighbours(pod):
        return ""
    spec = pod.spec
    affinity = None if spec.affinity is None else spec.affinity.node_affinity
    looked_at = (
        spec.node_name,
        spec.node_selector,
        None if affinity is None else affinity.required,
        spec.tolerations,
        list(claim_keys(pod)),
        spec.resource_claims != (),
        required_features(pod),
    )
    text = msgspec.json.encode(looked_at, order="deterministic")
    return blake2b(text, digest_size=_CLASS_BYTES).hexdigest()


@final
class PodFilters:
    """The filters over one cluster, with the counts of pods for some of them.

    Only one thread may use them. The cluster may change in the meantime, see `ClusterView`.
    """

    __slots__ = ("_rules", "_rules_of", "_tallies", "_view")

    def __init__(self, view: ClusterView) -> None:
        """Create the filters for the nodes of this view."""
        self._view = view
        self._tallies: OrderedDict[bytes, TopologyTally] = OrderedDict()
        self._rules: list[tuple[NeighbourRule, TopologyTally]] = []
        self._rules_of: tuple[Pod, int] | None = None
        """The pod and the version for which `_rules` were made: most pods are checked on many nodes in a
        row."""

    def why_refused(self, pod: Pod, node_name: str, *, allocate: bool) -> str | None:
        """Return why a pod may not run on a node, or `None` if it may.

        Args:
            pod: The pod, which is not on a node yet.
            node_name: The name of the node.
            allocate: Whether the pod is to be placed now; otherwise storage and devices are not checked,
                since they may change as long as a node is only reserved.

        Returns:
            The first refusal, in the form `failed plugin: '<name>': <sentence>`.
        """
        state = self._view.nodes.get(node_name)
        if state is None:
            return _refusal("NodeName", "the node is not known")
        return (
            self._refusal_whoever_is_there(pod, state)
            or _refusal("NodePorts", refused_by_ports(pod, state))
            or (self._refusal_for_storage(pod, state) if allocate else None)
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
        if self._refusal_whoever_is_there(pod, state) or self._refusal_for_storage(pod, state):
            return None
        if refused_for_devices(pod) is not None:
            return None
        rules = self._rules_for(pod)
        try:
            gone = {victim.metadata.uid for victim in victims[:start_index]}
            for index in range(start_index, len(victims)):
                gone.add(victims[index].metadata.uid)
                left = tuple(other for other in state.pods if other.metadata.uid not in gone)
                if _fits_then(pod, NodeState(state.node, left), rules):
                    return index
        finally:
            for _, tally in rules:
                tally.put(state)
        return None

    def is_kept_away(self, pod: Pod) -> bool:
        """Return whether a pod on any node excludes this one from its domain by anti-affinity."""
        if not self._view.anti_affinity_nodes:
            return False
        return not self._imposed(pod)[1].is_empty

    def _refusal_whoever_is_there(self, pod: Pod, state: NodeState) -> str | None:
        for plugin, refused in _NODE_FILTERS:
            sentence = refused(pod, state.node)
            if sentence is not None:
                return _refusal(plugin, sentence)
        return None

    def _refusal_for_storage(self, pod: Pod, state: NodeState) -> str | None:
        if not pod.spec.volumes:
            return None
        return (
            _refusal("VolumeRestrictions", refused_for_exclusive_claim(pod, self._view))
            or _refusal("VolumeBinding", refused_by_binding(pod, state.node, self._view))
            or _refusal("VolumeZone", refused_by_zone(pod, state.node, self._view))
        )

    def _refusal_for_neighbours(self, pod: Pod, state: NodeState) -> str | None:
        for rule, tally in self._rules_for(pod):
            sentence = rule.refusal(state.node, tally)
            if sentence is not None:
                return _refusal(rule.plugin, sentence)
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
        tally.refresh(nodes)
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
    """Return whether the neighbour filters accept a node in a hypothetical state."""
    if refused_by_ports(pod, state) is not None:
        return False
    for _, tally in rules:
        tally.put(state)
    return all(rule.refusal(state.node, tally) is None for rule, tally in rules)


def _refusal(plugin: str, sentence: str | None) -> str | None:
    return None if sentence is None else f"failed plugin: '{plugin}': {sentence}"
