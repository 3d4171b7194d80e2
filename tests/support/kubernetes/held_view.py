"""A cluster that a test holds in its hands, as the filters see one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from licorne.proxy.kubernetes.objects import (
    KubernetesNode,
    Namespace,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
)
from licorne.proxy.kubernetes.predicates.cluster_view import ChangedNodes, NodeState
from licorne.proxy.kubernetes.storage_objects import CsiDriver, CsiStorageCapacity


@dataclass
class HeldView:
    """A `ClusterView` that a test changes."""

    nodes: dict[str, NodeState] = field(default_factory=dict)
    anti_affinity_nodes: dict[str, NodeState] = field(default_factory=dict)
    namespaces: dict[str, Namespace] = field(default_factory=dict)
    claims: dict[str, PersistentVolumeClaim] = field(default_factory=dict)
    volumes: dict[str, PersistentVolume] = field(default_factory=dict)
    storage_classes: dict[str, StorageClass] = field(default_factory=dict)
    csi_drivers: dict[str, CsiDriver] = field(default_factory=dict)
    storage_capacities: dict[str, CsiStorageCapacity] = field(default_factory=dict)
    pods: dict[str, Pod] = field(default_factory=dict)
    """The pods that wait, by uid."""
    node_changes: ChangedNodes = field(default_factory=ChangedNodes)
    version: int = 0

    def put(self, node: KubernetesNode, pods: Iterable[Pod] = ()) -> None:
        """Add a node with its pods, or replace it."""
        state = NodeState(node, tuple(pods))
        name = node.metadata.name
        self.nodes[name] = state
        if state.anti_affinity_pods:
            self.anti_affinity_nodes[name] = state
        else:
            self.anti_affinity_nodes.pop(name, None)
        self._note_change(name)

    def remove(self, name: str) -> None:
        """Take a node away."""
        del self.nodes[name]
        self.anti_affinity_nodes.pop(name, None)
        self._note_change(name)

    def node_of(self, _uid: str) -> str:
        """Return the node of a pod that waits: it has none."""
        return ""

    def _note_change(self, name: str) -> None:
        self.node_changes.add(name)
        self.version += 1


def view_of(
    nodes: Iterable[KubernetesNode], pods: Iterable[Pod] = (), namespaces: Iterable[Namespace] = ()
) -> HeldView:
    """Put pods on the nodes that they name."""
    view = HeldView(namespaces={namespace.metadata.name: namespace for namespace in namespaces})
    there = list(pods)
    for node in nodes:
        view.put(node, [pod for pod in there if pod.spec.node_name == node.metadata.name])
    return view
