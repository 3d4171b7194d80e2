"""The filters that look at storage: bound claims, and storage that this scheduler does not support.

A pod waits for claims that another component binds (class `Immediate`). A claim that waits for its first
consumer is accepted where its class can make a volume; it gets the volume when the pod is placed. Refused are
claims that need the choice of an existing volume, claims for a single pod, and devices. Limits of volumes per
node are not checked: the kubelet of a full node rejects the pod.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from licorne.proxy.kubernetes.objects import (
    SELECTED_NODE,
    KubernetesNode,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
)
from licorne.proxy.kubernetes.predicates.cluster_view import ClusterView
from licorne.proxy.kubernetes.predicates.selectors import node_matches

_ALONE = "ReadWriteOncePod"
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_NO_PROVISIONER = "kubernetes.io/no-provisioner"

_ZONE, _REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
_TODAYS_NAME: Final[Mapping[str, str]] = {
    "failure-domain.beta.kubernetes.io/zone": _ZONE,
    "failure-domain.beta.kubernetes.io/region": _REGION,
    _ZONE: _ZONE,
    _REGION: _REGION,
}
"""The labels that name zones and regions, with their present names."""
_BETWEEN_ZONES = "__"


def claim_keys(pod: Pod) -> Iterator[str]:
    """Return the claims of a pod, including those for its ephemeral volumes, as `<namespace>/<name>`."""
    for name in pod.claim_names:
        yield f"{pod.metadata.namespace}/{name}"


def refused_for_exclusive_claim(pod: Pod, view: ClusterView) -> str | None:
    """Refuse a pod with a claim for a single pod (a part of the filter `VolumeRestrictions`)."""
    for key in claim_keys(pod):
        claim = view.claims.get(key)
        if claim is not None and _ALONE in claim.spec.access_modes:
            return f"the claim {key} has the access mode {_ALONE}, which this scheduler does not support"
    return None


def refused_by_binding(pod: Pod, node: KubernetesNode, view: ClusterView) -> str | None:
    """Refuse nodes that cannot reach a volume, and pods with unbound claims (`VolumeBinding`)."""
    for key in claim_keys(pod):
        claim = view.claims.get(key)
        refusal = (
            f"the claim {key} does not exist"
            if claim is None
            else _unusable(key, claim, pod)
            or _unbound(key, claim, node, view)
            or _unreachable(key, claim, node, view)
        )
        if refusal is not None:
            return refusal
    return None


def refused_by_zone(pod: Pod, node: KubernetesNode, view: ClusterView) -> str | None:
    """Refuse nodes outside the zones and regions that labels of a volume name (the filter `VolumeZone`).

    A node without any such label is not refused: its cluster may consist of one zone.
    """
    labels = node.metadata.labels
    if not any(label in labels for label in _TODAYS_NAME):
        return None
    for volume in _bound_volumes(pod, view):
        for label, today in _TODAYS_NAME.items():
            zones = _zones(volume.metadata.labels.get(label, ""))
            if zones and labels.get(label, labels.get(today)) not in zones:
                return f"the volume {volume.metadata.name} is in another zone or region than the node"
    return None


def refused_for_devices(pod: Pod) -> str | None:
    """Refuse pods that claim devices (the filter `DynamicResources`)."""
    if pod.spec.resource_claims:
        return "the pod claims devices (spec.resourceClaims), which this scheduler does not support"
    return None


def _unusable(key: str, claim: PersistentVolumeClaim, pod: Pod) -> str | None:
    if claim.status.phase == "Lost":
        return f"the claim {key} has lost its volume"
    if claim.metadata.deletion_timestamp is not None:
        return f"the claim {key} is being deleted"
    if _is_ephemeral(key, pod) and not _is_made_for(claim, pod):
        return f"the claim {key} was not made for the pod"
    return None


def _is_ephemeral(key: str, pod: Pod) -> bool:
    return any(
        volume.persistent_volume_claim is None
        and volume.ephemeral is not None
        and key == f"{pod.full_name}-{volume.name}"
        for volume in pod.spec.volumes
    )


def _is_made_for(claim: PersistentVolumeClaim, pod: Pod) -> bool:
    return any(
        owner.controller and owner.uid == pod.metadata.uid for owner in claim.metadata.owner_references
    )


def is_to_be_provided(claim: PersistentVolumeClaim, view: ClusterView) -> bool:
    """Return whether a claim gets its volume when a node has been chosen for its pod."""
    storage_class = _class_of(claim, view)
    return (
        not claim.spec.volume_name
        and storage_class is not None
        and storage_class.volume_binding_mode == "WaitForFirstConsumer"
        and storage_class.provisioner != _NO_PROVISIONER
    )


def _class_of(claim: PersistentVolumeClaim, view: ClusterView) -> StorageClass | None:
    name = claim.metadata.annotations.get(_CLASS_ANNOTATION, claim.spec.storage_class_name)
    return view.storage_classes.get(name) if name else None


def _unbound(key: str, claim: PersistentVolumeClaim, node: KubernetesNode, view: ClusterView) -> str | None:
    """Return why the volume of a claim is missing, `None` if it exists or can be made for the node."""
    if claim.spec.volume_name:
        return None if claim.status.phase == "Bound" else f"the claim {key} is not bound yet"
    storage_class = _class_of(claim, view)
    if storage_class is None or storage_class.volume_binding_mode != "WaitForFirstConsumer":
        return f"the claim {key} is not bound yet"
    if storage_class.provisioner == _NO_PROVISIONER:
        return (
            f"the claim {key} needs a volume that exists already, and this scheduler does not choose volumes"
        )
    selected = claim.metadata.annotations.get(SELECTED_NODE, node.metadata.name)
    if selected != node.metadata.name:
        return f"the claim {key} is being given a volume for node {selected}"
    if not _can_be_made(storage_class, node):
        return f"the class {storage_class.metadata.name} of the claim {key} makes no volumes for the node"
    return None


def _can_be_made(storage_class: StorageClass, node: KubernetesNode) -> bool:
    labels = node.metadata.labels
    return not storage_class.allowed_topologies or any(
        all(labels.get(each.key) in each.values for each in term.match_label_expressions)
        for term in storage_class.allowed_topologies
    )


def _unreachable(
    key: str, claim: PersistentVolumeClaim, node: KubernetesNode, view: ClusterView
) -> str | None:
    if not claim.spec.volume_name:
        return None  # it will be made for the node
    volume = view.volumes.get(claim.spec.volume_name)
    if volume is None:
        return f"the volume {claim.spec.volume_name} of the claim {key} does not exist"
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return None
    if node_matches(affinity.required, node.metadata.labels, None):
        return None
    return f"the volume {claim.spec.volume_name} of the claim {key} cannot be reached from the node"


def _bound_volumes(pod: Pod, view: ClusterView) -> Iterator[PersistentVolume]:
    for key in claim_keys(pod):
        claim = view.claims.get(key)
        volume = view.volumes.get(claim.spec.volume_name) if claim is not None else None
        if volume is not None:
            yield volume


def _zones(text: str) -> frozenset[str]:
    """Read the zones in a label; with an empty name among them the label has no effect, as in Kubernetes."""
    zones = frozenset(zone.strip() for zone in text.split(_BETWEEN_ZONES))
    return frozenset() if "" in zones else zones
