"""The filters that look at storage: claims, disks of one writer, and storage that is not supported.

A pod waits for claims that another component binds (class `Immediate`). A claim that waits for its first
consumer is accepted where its class can make a volume; it gets the volume when the pod is placed. A claim for
a single pod is refused while another pod on a node uses it. Refused are claims that need the choice of an
existing volume, and devices. Limits of volumes per node are not checked: the kubelet of a full node rejects
the pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from licorne.proxy.kubernetes.objects import (
    SELECTED_NODE,
    Disk,
    KubernetesNode,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
    Volume,
)
from licorne.proxy.kubernetes.predicates.cluster_view import HOST_LABEL, ClusterView
from licorne.proxy.kubernetes.predicates.selectors import labels_match, node_matches
from licorne.proxy.kubernetes.quantities import quantity_nano

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


def names_disks(pod: Pod) -> bool:
    """Return whether a pod names disks that not every pod may use together with it."""
    return any(disk is not None for volume in pod.spec.volumes for disk in _disks(volume))


def refused_by_disks(pod: Pod, others: Iterable[Pod]) -> str | None:
    """Refuse a node whose pods use a disk of the pod (a part of the filter `VolumeRestrictions`)."""
    if names_disks(pod):
        for other in others:
            if any(_conflict(one, its) for one in pod.spec.volumes for its in other.spec.volumes):
                return f"the pod {other.full_name} on the node uses a disk of the pod"
    return None


def _disks(volume: Volume) -> tuple[Disk | None, ...]:
    return volume.gce_persistent_disk, volume.aws_elastic_block_store, volume.iscsi, volume.rbd


def _conflict(volume: Volume, other: Volume) -> bool:
    """Return whether two pods on one node cannot use these volumes; for most kinds both may read."""
    pairs = zip(_disks(volume), _disks(other), strict=True)
    return any(
        one is not None
        and its is not None
        and (one.pd_name, one.volume_id, one.iqn) == (its.pd_name, its.volume_id, its.iqn)
        and not (one.read_only and its.read_only and not one.volume_id)
        and (not one.image or _is_same_image(one, its))
        for one, its in pairs
    )


def _is_same_image(one: Disk, other: Disk) -> bool:
    same = (one.pool, one.image) == (other.pool, other.image)
    return same and not set(one.monitors).isdisjoint(other.monitors)


def exclusive_claims(pod: Pod, view: ClusterView) -> frozenset[str]:
    """Return the names of the claims of a pod that only a single pod may use."""
    claims = ((name, view.claims.get(f"{pod.metadata.namespace}/{name}")) for name in _mounted_claims(pod))
    return frozenset(
        name for name, claim in claims if claim is not None and _ALONE in claim.spec.access_modes
    )


def users_of_exclusive_claims(pod: Pod, view: ClusterView) -> frozenset[str]:
    """Return the uids of the pods on nodes that use a claim which the pod needs alone."""
    names = exclusive_claims(pod, view)
    if not names:
        return frozenset()
    return frozenset(
        other.metadata.uid
        for state in list(view.nodes.values())
        for other in state.pods
        if other.metadata.namespace == pod.metadata.namespace and not names.isdisjoint(_mounted_claims(other))
    )


def _mounted_claims(pod: Pod) -> Iterator[str]:
    """Return the claims that a pod names, without those that are made for it."""
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield volume.persistent_volume_claim.claim_name


def refused_on_every_node(pod: Pod, view: ClusterView) -> str | None:
    """Return why no node can have a pod now because of its storage and devices, `None` if one may."""
    for name in pod.claim_names:
        key = f"{pod.metadata.namespace}/{name}"
        claim = view.claims.get(key)
        if claim is None:
            return f"persistentvolumeclaim {name!r} not found"
        refusal = (
            _unusable(key, claim, pod) or _unbound(key, claim, view) or _without_volume(key, claim, view)
        )
        if refusal is not None:
            return refusal
    return refused_for_devices(pod)


def refused_by_binding(pod: Pod, node: KubernetesNode, view: ClusterView) -> str | None:
    """Refuse nodes that cannot reach a volume, and pods with unbound claims (`VolumeBinding`)."""
    for key in claim_keys(pod):
        claim = view.claims.get(key)
        refusal = (
            f"the claim {key} does not exist"
            if claim is None
            else _unusable(key, claim, pod)
            or _unbound(key, claim, view)
            or _not_made(key, claim, node, view)
            or _without_volume(key, claim, view)
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


def is_bound_to_node(pod: Pod, view: ClusterView) -> bool:
    """Return whether a volume of a pod is, or is being made, on one node: another node would not help."""
    return any(
        _is_on_one_node(view.volumes.get(claim.spec.volume_name))
        if claim.spec.volume_name
        else SELECTED_NODE in claim.metadata.annotations
        for key in claim_keys(pod)
        if (claim := view.claims.get(key)) is not None
    )


def _is_on_one_node(volume: PersistentVolume | None) -> bool:
    affinity = None if volume is None else volume.spec.node_affinity
    required = None if affinity is None else affinity.required
    return required is not None and all(
        any(each.key == HOST_LABEL and each.operator == "In" for each in term.match_expressions)
        for term in required.node_selector_terms
    )


def _class_of(claim: PersistentVolumeClaim, view: ClusterView) -> StorageClass | None:
    name = claim.metadata.annotations.get(_CLASS_ANNOTATION, claim.spec.storage_class_name)
    return view.storage_classes.get(name) if name else None


def _unbound(key: str, claim: PersistentVolumeClaim, view: ClusterView) -> str | None:
    """Return why the volume of a claim is missing, `None` if it exists or can be made for some node."""
    if claim.spec.volume_name:
        return None if claim.status.phase == "Bound" else f"the claim {key} is not bound yet"
    storage_class = _class_of(claim, view)
    if storage_class is None or storage_class.volume_binding_mode != "WaitForFirstConsumer":
        return f"the claim {key} is not bound yet"
    if storage_class.provisioner == _NO_PROVISIONER:
        return (
            f"the claim {key} needs a volume that exists already, and this scheduler does not choose volumes"
        )
    return None


def _not_made(key: str, claim: PersistentVolumeClaim, node: KubernetesNode, view: ClusterView) -> str | None:
    """Return why a volume that is still to be made cannot be made for the node."""
    storage_class = _class_of(claim, view)
    if claim.spec.volume_name or storage_class is None:
        return None
    selected = claim.metadata.annotations.get(SELECTED_NODE, node.metadata.name)
    if selected != node.metadata.name:
        return f"the claim {key} is being given a volume for node {selected}"
    if not _can_be_made(storage_class, node):
        return f"the class {storage_class.metadata.name} of the claim {key} makes no volumes for the node"
    if not _has_capacity(claim, storage_class, node, view):
        return f"the storage that the node can reach has no room for the claim {key}"
    return None


def _has_capacity(
    claim: PersistentVolumeClaim, storage_class: StorageClass, node: KubernetesNode, view: ClusterView
) -> bool:
    """Return whether a driver that publishes its room has enough for a claim, where the node reaches it."""
    driver = view.csi_drivers.get(storage_class.provisioner)
    requested = claim.spec.resources.requests.get("storage")
    if driver is None or not driver.spec.storage_capacity or requested is None:
        return True
    size = quantity_nano(requested)
    for each in list(view.storage_capacities.values()):
        room = each.capacity if each.maximum_volume_size is None else each.maximum_volume_size
        if (
            each.storage_class_name == storage_class.metadata.name
            and room is not None
            and quantity_nano(room) >= size
            and each.node_topology is not None
            and labels_match(each.node_topology, node.metadata.labels)
        ):
            return True
    return False


def _can_be_made(storage_class: StorageClass, node: KubernetesNode) -> bool:
    labels = node.metadata.labels
    return not storage_class.allowed_topologies or any(
        all(labels.get(each.key) in each.values for each in term.match_label_expressions)
        for term in storage_class.allowed_topologies
    )


def _without_volume(key: str, claim: PersistentVolumeClaim, view: ClusterView) -> str | None:
    name = claim.spec.volume_name
    return (
        f"the volume {name} of the claim {key} does not exist" if name and name not in view.volumes else None
    )


def _unreachable(
    key: str, claim: PersistentVolumeClaim, node: KubernetesNode, view: ClusterView
) -> str | None:
    volume = view.volumes.get(claim.spec.volume_name)
    affinity = None if volume is None else volume.spec.node_affinity
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
