"""The cluster as the filters see it: nodes with their pods, namespaces, and storage.

A thread that watches the API server replaces entries while another asks the filters. Entries are immutable
and replaced whole, so that no lock is needed: a thread copies the entries before it iterates.

Filters that look at neighbours need counts over the whole cluster. A tally remembers the contribution of each
node, so that a pod that arrives or leaves costs only the recount of its node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, final

from ..objects import (
    KubernetesNode,
    Namespace,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodAffinityTerm,
    StorageClass,
)

Domain: TypeAlias = tuple[str, str]
"""The key of a label of nodes, and one of its values."""
Contribution: TypeAlias = tuple[tuple[Domain, int], ...]
"""The domains of a node, with the number of pods on it that count there; the number may be 0."""


def anti_affinity_terms(pod: Pod) -> tuple[PodAffinityTerm, ...]:
    """Return the required terms for the pods with which this one must not share a domain."""
    affinity = pod.spec.affinity
    if affinity is None or affinity.pod_anti_affinity is None:
        return ()
    return affinity.pod_anti_affinity.required


@dataclass(frozen=True, slots=True, eq=False)
class NodeState:
    """A node and the pods on it at one moment. Each has an identity: two are never equal.

    Args:
        node: The node.
        pods: All pods on it that have not ended, in any order, including placed pods whose binding the API
            server has not reported yet.
    """

    node: KubernetesNode
    pods: tuple[Pod, ...] = ()
    anti_affinity_pods: tuple[Pod, ...] = field(init=False)
    """The pods with required terms of anti-affinity."""
    identity: object = field(init=False, default_factory=object)
    """Distinguishes this state from earlier ones of the node; keeping it does not keep the pods alive."""

    def __post_init__(self) -> None:
        """Find the pods with anti-affinity once, because each placement must check their terms."""
        object.__setattr__(
            self, "anti_affinity_pods", tuple(pod for pod in self.pods if anti_affinity_terms(pod))
        )


class ClusterView(Protocol):
    """A cluster as the filters see it.

    The writer replaces entries first and increments `version` afterwards. A reader reads the version first,
    so that its figures are never older than the version that it records for them.
    """

    @property
    def version(self) -> int:
        """A number that grows whenever a node, a pod on a node or a namespace has changed."""
        ...

    @property
    def nodes(self) -> Mapping[str, NodeState]:
        """The nodes by name."""
        ...

    @property
    def anti_affinity_nodes(self) -> Mapping[str, NodeState]:
        """The nodes whose state has `anti_affinity_pods`, by name: mostly empty."""
        ...

    @property
    def namespaces(self) -> Mapping[str, Namespace]:
        """The namespaces by name."""
        ...

    @property
    def claims(self) -> Mapping[str, PersistentVolumeClaim]:
        """The claims of storage by `<namespace>/<name>`."""
        ...

    @property
    def volumes(self) -> Mapping[str, PersistentVolume]:
        """The volumes by name."""
        ...

    @property
    def storage_classes(self) -> Mapping[str, StorageClass]:
        """The classes of storage by name."""
        ...


@final
class TopologyTally:
    """The pods that count in each domain. A domain exists while some node contributes to it.

    Only one thread may use a tally.
    """

    __slots__ = ("_by_node", "_contribution", "_domains", "_least")

    def __init__(self, contribution: Callable[[NodeState], Contribution]) -> None:
        """Begin without nodes.

        Args:
            contribution: Returns the contribution of one state of a node, always the same for the same state.
        """
        self._contribution = contribution
        self._by_node: dict[str, tuple[object, Contribution]] = {}
        self._domains: dict[Domain, tuple[int, int]] = {}
        """Per domain, the number of contributing nodes, and the number of pods that they count."""
        self._least: dict[str, tuple[int, int]] = {}

    def refresh(self, nodes: Mapping[str, NodeState]) -> None:
        """Count again the nodes whose state has changed, and forget those that are gone."""
        states = list(nodes.values())
        by_node = self._by_node
        for state in states:
            known = by_node.get(state.node.metadata.name)
            if known is None or known[0] is not state.identity:
                self.put(state)
        if len(by_node) > len(states):
            names = {state.node.metadata.name for state in states}
            for name in [name for name in by_node if name not in names]:
                self._add(by_node.pop(name)[1], -1)

    def put(self, state: NodeState) -> None:
        """Count a node in this state, instead of its earlier one."""
        name = state.node.metadata.name
        known = self._by_node.get(name)
        contribution = self._contribution(state)
        self._by_node[name] = (state.identity, contribution)
        if known is None:
            self._add(contribution, 1)
        elif known[1] != contribution:
            self._add(known[1], -1)
            self._add(contribution, 1)

    @property
    def is_empty(self) -> bool:
        """Whether it has no domains."""
        return not self._domains

    def count(self, domain: Domain) -> int:
        """Return the number of pods that count in a domain, 0 if it does not exist."""
        counted = self._domains.get(domain)
        return 0 if counted is None else counted[1]

    def least(self, key: str) -> tuple[int, int]:
        """Return the smallest count among the domains of a label and their number; (0, 0) without any."""
        known = self._least.get(key)
        if known is None:
            counts = [pods for (label, _), (_, pods) in self._domains.items() if label == key]
            known = self._least[key] = (min(counts, default=0), len(counts))
        return known

    def _add(self, contribution: Contribution, sign: int) -> None:
        domains = self._domains
        for domain, added in contribution:
            nodes, pods = domains.get(domain, (0, 0))
            if nodes + sign:
                domains[domain] = (nodes + sign, pods + sign * added)
            else:
                del domains[domain]
        self._least.clear()
