"""The preferences of pods as scores of nodes, as kube-scheduler computes them.

Three of its plugins score: preferred terms of node affinity; preferred terms of affinity and anti-affinity
between pods, those of the pod and those of the pods on nodes; and spread constraints that refuse no node
(`ScheduleAnyway`). A score is a whole number from 0 to 100, relative to the nodes that are compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, final

import msgspec

from ..decoding import resolve_structs
from ..objects import Namespace, Pod
from ..placement_objects import PodAffinityTerm, PodAffinityTerms, TopologySpreadConstraint
from .cluster_view import HOST_LABEL, ChangedNodes, Contribution, Domain, NodeState, TopologyTally
from .neighbour_filters import ResolvedTerm, SpreadRule, named_namespaces, resolved_term, rule_key
from .selectors import labels_match, term_holds

SCORE_WEIGHTS: Final = {"NodeAffinity": 2, "PodTopologySpread": 2, "InterPodAffinity": 2}
"""The plugins that score by what pods prefer, with their weights in kube-scheduler."""
_SCORE_MAX: Final = 100
_REQUIRED_WEIGHT: Final = 1
"""The weight of a required affinity of a pod on a node to other pods."""
_NO_TERMS: Final = PodAffinityTerms()
_TERM: Final = "term"


class WeightedTerm(msgspec.Struct, frozen=True):
    """A term of a pod on a node about other pods; its weight is negative for anti-affinity."""

    weight: int
    namespaces: tuple[str, ...]
    term: PodAffinityTerm

    def matches(self, pod: Pod, namespace_labels: Mapping[str, str]) -> bool:
        """Return whether the term is about a pod; the labels are those of its namespace."""
        metadata, term = pod.metadata, self.term
        return labels_match(term.label_selector, metadata.labels) and (
            metadata.namespace in self.namespaces or labels_match(term.namespace_selector, namespace_labels)
        )


def term_texts(pod: Pod) -> Iterator[str]:
    """Return the weighted terms of a pod on a node about other pods, as texts."""
    affinity = pod.spec.affinity
    if affinity is None:
        return
    attracting, repelling = affinity.pod_affinity or _NO_TERMS, affinity.pod_anti_affinity or _NO_TERMS
    weighted = [(_REQUIRED_WEIGHT, term) for term in attracting.required]
    weighted += [(each.weight, each.pod_affinity_term) for each in attracting.preferred]
    weighted += [(-each.weight, each.pod_affinity_term) for each in repelling.preferred]
    for weight, term in weighted:
        names = tuple(sorted(named_namespaces(term, pod)))
        yield rule_key(WeightedTerm(weight, names, term)).decode()


_DECODER: Final = msgspec.json.Decoder(WeightedTerm)


@final
class TermIndex:
    """The different terms of the pods on nodes about other pods. Only one thread may use it."""

    def __init__(self) -> None:
        self._tally = TopologyTally(_terms_of)
        self._terms: dict[str, WeightedTerm] = {}

    def refresh(self, nodes: Mapping[str, NodeState], changes: ChangedNodes) -> None:
        """Follow the changes of nodes."""
        self._tally.refresh(nodes, changes)

    def about(self, pod: Pod, namespaces: Mapping[str, Namespace]) -> dict[str, WeightedTerm]:
        """Return the terms about a pod by their texts, in order.

        Its own terms are among them, so that the first pod of a template is in the class of the others.
        """
        texts = sorted({*self._tally.values(_TERM), *term_texts(pod)})
        if not texts:
            return {}
        if len(self._terms) > 2 * len(texts):
            self._terms = {}
        for text in texts:
            if text not in self._terms:
                self._terms[text] = _DECODER.decode(text)
        namespace = namespaces.get(pod.metadata.namespace)
        labels = {} if namespace is None else namespace.metadata.labels
        return {text: self._terms[text] for text in texts if self._terms[text].matches(pod, labels)}


def _terms_of(state: NodeState) -> Contribution:
    counts: dict[Domain, int] = {}
    for pod in state.pods:
        for text in term_texts(pod):
            counts[_TERM, text] = counts.get((_TERM, text), 0) + 1
    return tuple(counts.items())


def has_preferences(pod: Pod) -> bool:
    """Return whether a pod prefers nodes itself."""
    affinity = pod.spec.affinity
    if any(map(_is_preferred, pod.spec.topology_spread_constraints)):
        return True
    return affinity is not None and any(
        terms is not None and terms.preferred
        for terms in (affinity.node_affinity, affinity.pod_affinity, affinity.pod_anti_affinity)
    )


@final
class PodPreferences:
    """What the pods of one class prefer, with the counts that their scores depend on.

    Only one thread may use them.

    Args:
        pod: A pod of the class.
        namespaces: The namespaces of the cluster.
        imposed: The terms of pods on nodes about the pod, by their texts.
    """

    def __init__(
        self, pod: Pod, namespaces: Mapping[str, Namespace], imposed: Mapping[str, WeightedTerm]
    ) -> None:
        affinity = pod.spec.affinity
        node_affinity = None if affinity is None else affinity.node_affinity
        self._node_terms = () if node_affinity is None else node_affinity.preferred
        constraints = tuple(filter(_is_preferred, pod.spec.topology_spread_constraints))
        self._spread = SpreadRule(pod, constraints) if constraints else None
        self._own = tuple(_own_terms(pod, namespaces))
        self._imposed = imposed
        neighbours = TopologyTally(self._weights_on) if self._own or imposed else None
        self._neighbours = neighbours
        self._spread_tally = TopologyTally(self._spread.contribution) if self._spread else None

    @property
    def key(self) -> bytes:
        """A text that is equal for pods with equal scores on equal nodes."""
        spread = None if self._spread is None else self._spread.key.decode()
        return rule_key((self._node_terms, spread, self._own, list(self._imposed)))

    def refresh(self, nodes: Mapping[str, NodeState], changes: ChangedNodes) -> None:
        """Follow the changes of nodes."""
        for tally in (self._spread_tally, self._neighbours):
            if tally is not None:
                tally.refresh(nodes, changes)

    def scores(self, candidates: Sequence[NodeState]) -> dict[str, list[int]]:
        """Return the relative scores of nodes by plugin; a plugin without an effect has none."""
        found = {}
        if self._node_terms:
            found["NodeAffinity"] = self._node_scores(candidates)
        if self._spread is not None and self._spread_tally is not None:
            found["PodTopologySpread"] = _spread_scores(self._spread, self._spread_tally, candidates)
        if self._neighbours is not None and not self._neighbours.is_empty:
            found["InterPodAffinity"] = _neighbour_scores(self._neighbours, candidates)
        return found

    def _node_scores(self, candidates: Sequence[NodeState]) -> list[int]:
        raw = [
            sum(
                each.weight
                for each in self._node_terms
                if term_holds(each.preference, state.node.metadata.labels, state.node.metadata.name)
            )
            for state in candidates
        ]
        most = max(raw, default=0)
        return [_SCORE_MAX * weight // most for weight in raw] if most else raw

    def _weights_on(self, state: NodeState) -> Contribution:
        """Return the weights of the terms between a pod of the class and the pods on a node."""
        labels = state.node.metadata.labels
        sums: dict[Domain, int] = {}

        def add(key: str, weight: int) -> None:
            if key in labels:
                domain = key, labels[key]
                sums[domain] = sums.get(domain, 0) + weight

        for pod in state.pods:
            for term, weight in self._own:
                if term.matches(pod):
                    add(term.topology_key, weight)
            for text in term_texts(pod) if self._imposed else ():
                imposed = self._imposed.get(text)
                if imposed is not None:
                    add(imposed.term.topology_key, imposed.weight)
        return tuple(sums.items())


def _own_terms(pod: Pod, namespaces: Mapping[str, Namespace]) -> Iterator[tuple[ResolvedTerm, int]]:
    affinity = pod.spec.affinity
    if affinity is None:
        return
    for terms, sign in ((affinity.pod_affinity, 1), (affinity.pod_anti_affinity, -1)):
        for each in (terms or _NO_TERMS).preferred:
            yield resolved_term(each.pod_affinity_term, pod, namespaces), sign * each.weight


def _spread_scores(rule: SpreadRule, tally: TopologyTally, candidates: Sequence[NodeState]) -> list[int]:
    """Return the scores by spread constraints: the fewer pods match in the domains of a node, the higher.

    A node without one of the labels has the score 0.
    """
    keys = [constraint.topology_key for constraint in rule.constraints]
    labels = [state.node.metadata.labels for state in candidates]
    compared = [own for own in labels if all(key in own for key in keys)]
    weights = [
        math.log(2 + (len(compared) if key == HOST_LABEL else len({own[key] for own in compared})))
        for key in keys
    ]

    def crowding(own: Mapping[str, str]) -> int:
        total = 0.0
        for constraint, key, weight in zip(rule.constraints, keys, weights, strict=True):
            total += tally.count((key, own[key])) * weight + (constraint.max_skew - 1)
        return math.floor(total + 0.5)

    raw = [crowding(own) for own in compared]
    least, most = min(raw, default=0), max(raw, default=0)
    left = iter(
        [_SCORE_MAX * (most + least - score) // most for score in raw] if most else [_SCORE_MAX] * len(raw)
    )
    return [next(left) if all(key in own for key in keys) else 0 for own in labels]


def _neighbour_scores(tally: TopologyTally, candidates: Sequence[NodeState]) -> list[int]:
    raw = [sum(map(tally.count, state.node.metadata.labels.items())) for state in candidates]
    least, most = min(raw, default=0), max(raw, default=0)
    if most == least:
        return [0] * len(raw)
    return [int(_SCORE_MAX * ((score - least) / (most - least))) for score in raw]


def _is_preferred(constraint: TopologySpreadConstraint) -> bool:
    return constraint.when_unsatisfiable == "ScheduleAnyway"


resolve_structs(__name__)
