"""The cluster as the filters see it: nodes with their pods, namespaces, and storage.

A thread that watches the API server replaces entries while another asks the filters. Entries are immutable
and replaced whole, so that no lock is needed: a thread copies the entries before it iterates.

Filters that look at neighbours need counts over the whole cluster. A tally remembers the contribution of each
node, and the view records which nodes have changed, so that a pod that arrives or leaves costs only the
recount of its node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias, final

from ..objects import KubernetesNode, Namespace, PersistentVolume, PersistentVolumeClaim, Pod, StorageClass
from ..placement_objects import PodAffinityTerm
from ..storage_objects import CsiDriver, CsiStorageCapacity

Domain: TypeAlias = tuple[str, str]
"""The key of a label of nodes, and one of its values."""
Contribution: TypeAlias = tuple[tuple[Domain, int], ...]
"""The domains of a node, with the number of pods on it that count there; the number may be 0."""
HOST_LABEL: Final = "kubernetes.io/hostname"
_CHANGES_MAX: Final = 10_000
"""How many changes of nodes are kept: a tally that has not seen the dropped ones counts all nodes again."""


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

    The writer replaces entries first; then it increments `version` and adds to `node_changes`. A reader reads
    these first, so that its figures are never older than the version that it records for them.
    """

    @property
    def version(self) -> int:
        """A number that grows whenever a node, a pod on a node or a namespace has changed."""
        ...

    @property
    def node_changes(self) -> ChangedNodes:
        """The nodes that were added, changed with their pods, or removed."""
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

    @property
    def csi_drivers(self) -> Mapping[str, CsiDriver]:
        """The drivers that make volumes by name."""
        ...

    @property
    def storage_capacities(self) -> Mapping[str, CsiStorageCapacity]:
        """The room for new volumes by `<namespace>/<name>`."""
        ...


@final
class ChangedNodes:
    """The names of the nodes that have changed, in order. One thread adds names, and others read them."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: tuple[int, list[str]] = (0, [])
        """The number of dropped names, and the later ones."""

    def __len__(self) -> int:
        """Return the number of changes so far."""
        dropped, names = self._kept
        return dropped + len(names)

    def add(self, name: str) -> None:
        """Record a change of a node, after its state is replaced."""
        dropped, names = self._kept
        names.append(name)
        if len(names) > _CHANGES_MAX:
            half = len(names) // 2
            self._kept = (dropped + half, names[half:])

    def after(self, count: int) -> Sequence[str] | None:
        """Return the names after the first `count` changes, `None` if some of them are dropped."""
        dropped, names = self._kept
        return None if count < dropped else names[count - dropped :]


@final
class TopologyTally:
    """The pods that count in each domain. A domain exists while some node contributes to it.

    Only one thread may use a tally.
    """

    __slots__ = ("_by_node", "_change_count", "_contribution", "_domains", "_levels")

    def __init__(self, contribution: Callable[[NodeState], Contribution]) -> None:
        """Begin without nodes.

        Args:
            contribution: Returns the contribution of one state of a node, always the same for the same state.
        """
        self._contribution = contribution
        self._by_node: dict[str, tuple[object, Contribution]] = {}
        self._change_count = -1
        """The number of changes of nodes that are counted, -1 for none."""
        self._domains: dict[Domain, tuple[int, int]] = {}
        """Per domain, the number of contributing nodes, and the number of pods that they count."""
        self._levels: dict[str, dict[int, int]] = {}
        """Per label, the number of domains by the number of pods that they count."""

    def refresh(self, nodes: Mapping[str, NodeState], changes: ChangedNodes) -> None:
        """Count the changed nodes again, and forget those that are gone; the first time, count all.

        Args:
            nodes: The nodes to count.
            changes: All changes of nodes of the cluster.
        """
        count = len(changes)
        names = changes.after(self._change_count) if self._change_count >= 0 else None
        self._change_count = count if names is None else self._change_count + len(names)
        for name in dict.fromkeys([*list(nodes), *self._by_node] if names is None else names):
            state = nodes.get(name)
            known = self._by_node.get(name)
            if state is None:
                if known is not None:
                    self._add(self._by_node.pop(name)[1], -1)
            elif known is None or known[0] is not state.identity:
                self.put(state)

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

    def values(self, key: str) -> list[str]:
        """Return the values of a label with a domain, in any order."""
        return [domain[1] for domain in self._domains if domain[0] == key]

    def least(self, key: str) -> tuple[int, int]:
        """Return the smallest count among the domains of a label and their number; (0, 0) without any."""
        levels = self._levels.get(key, {})
        return min(levels, default=0), sum(levels.values())

    def _add(self, contribution: Contribution, sign: int) -> None:
        domains = self._domains
        for domain, added in contribution:
            nodes, pods = domains.get(domain, (0, 0))
            levels = self._levels.setdefault(domain[0], {})
            if nodes:
                _count(levels, pods, -1)
            if nodes + sign:
                domains[domain] = (nodes + sign, pods + sign * added)
                _count(levels, pods + sign * added, 1)
            else:
                del domains[domain]


def _count(levels: dict[int, int], pods: int, change: int) -> None:
    """Change the number of domains that count so many pods."""
    levels[pods] = levels.get(pods, 0) + change
    if not levels[pods]:
        del levels[pods]
