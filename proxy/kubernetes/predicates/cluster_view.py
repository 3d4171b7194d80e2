"""What the filters see of a cluster: nodes with their pods, namespaces, and what there is of storage.

A thread that watches the API server replaces entries while another asks the filters. Entries are immutable
and replaced whole, so that no lock is needed: who iterates copies the entries first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from licorne.proxy.kubernetes.objects import (
    KubernetesNode,
    Namespace,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodAffinityTerm,
    StorageClass,
)


def anti_affinity_terms(pod: Pod) -> tuple[PodAffinityTerm, ...]:
    """Return the required terms that say which pods this one must not share a domain with."""
    affinity = pod.spec.affinity
    if affinity is None or affinity.pod_anti_affinity is None:
        return ()
    return affinity.pod_anti_affinity.required


@dataclass(frozen=True, slots=True, eq=False)
class NodeState:
    """A node and the pods on it at one moment. Each has an identity: two are never equal.

    Args:
        node: The node.
        pods: All pods on it that have not ended, in any order. Those that the scheduler has placed and whose
            binding the API server has not reported yet belong to them.
    """

    node: KubernetesNode
    pods: tuple[Pod, ...] = ()
    anti_affinity_pods: tuple[Pod, ...] = field(init=False)
    """Those of the pods that have required terms of anti-affinity."""
    identity: object = field(init=False, default_factory=object)
    """What tells this state from an earlier one of the node; to keep it does not keep the pods alive."""

    def __post_init__(self) -> None:
        """Find the pods that keep others away, once, because every pod that is placed must ask for them."""
        object.__setattr__(
            self, "anti_affinity_pods", tuple(pod for pod in self.pods if anti_affinity_terms(pod))
        )


class ClusterView(Protocol):
    """A cluster as the filters see it.

    The writer replaces entries first and increments `version` afterwards. A reader takes the version first,
    so that it never holds figures which are older than the version that it notes for them.
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
        """Those of the nodes whose state has `anti_affinity_pods`, by name: mostly none."""
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
