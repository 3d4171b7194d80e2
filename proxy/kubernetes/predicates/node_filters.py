"""The filters that depend only on the pod and the node: name, cordon, taints, node selector and affinity.

Each returns why the node is refused, as one sentence, or `None` if it is not. The sentences do not name the
node, so that the same reason on many nodes can be reported once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from licorne.proxy.kubernetes.objects import KubernetesNode, Pod, Taint
from licorne.proxy.kubernetes.placement_objects import Affinity, Toleration
from licorne.proxy.kubernetes.predicates.selectors import node_matches, whole_number

_CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
_REFUSING_EFFECTS = frozenset({"NoSchedule", "NoExecute"})
_RESTART_ALL = "RestartAllContainers"
_PLAIN_DECIMAL = re.compile(r"0|-?[1-9][0-9]*")


def refused_by_name(pod: Pod, node: KubernetesNode) -> str | None:
    """Refuse all nodes except the one that the pod names, if it names one (the filter `NodeName`)."""
    name = pod.spec.node_name
    if not name or name == node.metadata.name:
        return None
    return "the pod names another node"


def refused_for_cordon(pod: Pod, node: KubernetesNode) -> str | None:
    """Refuse a node that is cordoned, unless the pod tolerates that (the filter `NodeUnschedulable`)."""
    if not node.spec.unschedulable or _tolerated(_CORDON, pod.spec.tolerations):
        return None
    return "the node is marked as unschedulable"


def refused_by_taint(pod: Pod, node: KubernetesNode) -> str | None:
    """Refuse a node with a taint that the pod does not tolerate (the filter `TaintToleration`)."""
    if not node.spec.taints:
        return None
    taint = untolerated_taint(pod, node)
    if taint is None:
        return None
    return f"the pod does not tolerate the taint {taint_text(taint)} of the node"


def refused_by_affinity(pod: Pod, node: KubernetesNode) -> str | None:
    """Refuse a node that the node selector or node affinity excludes (the filter `NodeAffinity`)."""
    if fits_node_selection(pod.spec.node_selector, pod.spec.affinity, node):
        return None
    return "the node does not match the node selector or the node affinity of the pod"


def refused_for_features(pod: Pod, node: KubernetesNode) -> str | None:
    """Refuse a node whose kubelet lacks a feature that the pod needs (the filter `NodeDeclaredFeatures`)."""
    missing = missing_feature(pod, node)
    return f"the node does not declare the feature {missing}, which the pod needs" if missing else None


def missing_feature(pod: Pod, node: KubernetesNode) -> str:
    """Return the first feature that a node lacks for a pod, empty for none."""
    declared = node.status.declared_features
    return next((name for name in required_features(pod) if name not in declared), "")


def required_features(pod: Pod) -> tuple[str, ...]:
    """Return the features that a node has to declare for a pod, as in Kubernetes 1.37; mostly none."""
    spec = pod.spec
    found = []
    containers = (*spec.containers, *spec.init_containers)
    if any(rule.action == _RESTART_ALL for each in containers for rule in each.restart_policy_rules):
        found.append("RestartAllContainersOnContainerExits")
    if spec.host_network and spec.host_users is False:
        found.append("UserNamespacesHostNetworkSupport")
    if any(mount.bind_mount_options for each in containers for mount in each.volume_mounts):
        found.append("VolumeBindMountOptions")
    return tuple(found)


def fits_node_selection(
    node_selector: dict[str, str], affinity: Affinity | None, node: KubernetesNode
) -> bool:
    """Return whether a node fulfils both the node selector and the required node affinity of a pod."""
    labels = node.metadata.labels
    for key, value in node_selector.items():
        if labels.get(key) != value:
            return False
    if affinity is None or affinity.node_affinity is None or affinity.node_affinity.required is None:
        return True
    return node_matches(affinity.node_affinity.required, labels, node.metadata.name)


def untolerated_taint(pod: Pod, node: KubernetesNode) -> Taint | None:
    """Return the first taint that keeps the pod off the node; mere preferences never do."""
    for taint in node.spec.taints:
        if taint.effect in _REFUSING_EFFECTS and not _tolerated(taint, pod.spec.tolerations):
            return taint
    return None


def taint_text(taint: Taint) -> str:
    """Return a taint as `kubectl taint` takes it."""
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def _tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "" | "Equal":
            return toleration.value == taint.value
        case "Exists":
            return True
        case "Lt" | "Gt":
            return _compares(toleration, taint)
        case _:
            return False


def _compares(toleration: Toleration, taint: Taint) -> bool:
    """Compare the value of a taint with that of a toleration; both must be numbers in their shortest form."""
    if not _PLAIN_DECIMAL.fullmatch(taint.value) or not _PLAIN_DECIMAL.fullmatch(toleration.value):
        return False
    of_taint, limit = whole_number(taint.value), whole_number(toleration.value)
    if of_taint is None or limit is None:
        return False
    return of_taint < limit if toleration.operator == "Lt" else of_taint > limit
