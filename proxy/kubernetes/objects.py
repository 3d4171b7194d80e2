"""The objects of Kubernetes, with only the fields that a scheduler reads.

They are decoded from JSON by msgspec, which skips every other field. A field that the API server leaves out
has the default of Kubernetes. `gc=False`: no object refers back to another, so the garbage collector need not
look at the tens of thousands of them.
"""

from __future__ import annotations

from typing import Final

import msgspec

from .decoding import resolve_structs
from .placement_objects import Affinity, NodeSelector, Toleration, TopologySpreadConstraint

SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
"""The annotation of a claim with the node for which a volume is to be made."""


class _Read(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False, kw_only=True):
    """The common base of these structs."""


class OwnerReference(_Read, frozen=True):
    """The owner of an object."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class ObjectMeta(_Read, frozen=True):
    """The metadata of an object."""

    name: str = ""
    generate_name: str = ""
    """The beginning of a name that the API server makes."""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str = ""
    """RFC 3339 in UTC, whole seconds, for example `2026-11-28T08:46:11Z`."""
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()


class ContainerResources(_Read, frozen=True):
    """Quantities as texts in the notation of Kubernetes; numbers are possible too."""

    requests: dict[str, str | int | float] = {}


class ContainerPort(_Read, frozen=True):
    """A port of a container; with a host port, also a port of the node."""

    host_port: int = 0
    """0 for none."""
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = "TCP"


class RestartRule(_Read, frozen=True):
    """The action when a container ends in a certain way."""

    action: str = ""


class VolumeMount(_Read, frozen=True):
    """A volume in a container."""

    bind_mount_options: tuple[msgspec.Raw, ...] = ()


class Container(_Read, frozen=True):
    """A container of a pod, or one that runs before its containers."""

    name: str = ""
    resources: ContainerResources = ContainerResources()
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str | None = None
    """`Always` makes an init container a sidecar, which keeps running."""
    restart_policy_rules: tuple[RestartRule, ...] = ()
    volume_mounts: tuple[VolumeMount, ...] = ()


class ClaimSource(_Read, frozen=True):
    """The claim of a volume."""

    claim_name: str = ""


class EphemeralSource(_Read, frozen=True):
    """A claim that is made for the pod, with the name `<pod>-<volume>`."""


class Disk(_Read, frozen=True):
    """A disk that a pod names itself; it has only the fields of its kind."""

    pd_name: str = ""
    volume_id: str = msgspec.field(default="", name="volumeID")
    iqn: str = ""
    monitors: tuple[str, ...] = ()
    pool: str = "rbd"
    image: str = ""
    read_only: bool = False


class Volume(_Read, frozen=True):
    """A volume of a pod."""

    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: EphemeralSource | None = None
    gce_persistent_disk: Disk | None = None
    aws_elastic_block_store: Disk | None = None
    iscsi: Disk | None = None
    rbd: Disk | None = None


class ObjectReference(_Read, frozen=True):
    """The name of another object."""

    name: str = ""
    kind: str = ""
    namespace: str = ""
    uid: str = ""
    api_version: str = ""


class SchedulingGroup(_Read, frozen=True):
    """The group with which a pod starts."""

    pod_group_name: str = ""


class PodSpec(_Read, frozen=True):
    """The specification of a pod."""

    scheduler_name: str = ""
    node_name: str = ""
    """The node that it is assigned to, empty if none."""
    priority: int | None = None
    priority_class_name: str = ""
    service_account_name: str = ""
    preemption_policy: str | None = None
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: dict[str, str | int | float] = {}
    resources: ContainerResources | None = None
    """The resources of the pod as a whole, instead of the sum of its containers."""
    volumes: tuple[Volume, ...] = ()
    scheduling_gates: tuple[ObjectReference, ...] = ()
    scheduling_group: SchedulingGroup | None = None
    image_pull_secrets: tuple[ObjectReference, ...] = ()
    resource_claims: tuple[msgspec.Raw, ...] = ()
    host_network: bool = False
    host_users: bool | None = None
    """`False` gives the pod separate users."""


class PodCondition(_Read, frozen=True):
    """One condition of a pod."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class StatusResources(_Read, frozen=True):
    """The requests that were carried out."""

    requests: dict[str, str | int | float] | None = None
    """`None` if the kubelet does not report it."""


class ContainerStatus(_Read, frozen=True):
    """The resources of a container, which differ from its requests while it is resized."""

    name: str = ""
    allocated_resources: dict[str, str | int | float] | None = None
    """The resources that the kubelet has promised; `None` if it does not report them."""
    resources: StatusResources | None = None


class PodStatus(_Read, frozen=True):
    """The status of a pod."""

    phase: str = ""
    """`Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`; empty before the API server has set it."""
    reason: str = ""
    conditions: tuple[PodCondition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    allocated_resources: dict[str, str | int | float] | None = None
    """The resources that the kubelet has promised to the whole pod; `None` if it does not report them."""
    resources: StatusResources | None = None


class Pod(_Read, frozen=True):
    """A pod."""

    metadata: ObjectMeta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def full_name(self) -> str:
        """Namespace and name, separated by a slash."""
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def claim_names(self) -> tuple[str, ...]:
        """The claims of storage that it mounts, including those made for its ephemeral volumes."""
        names = []
        for volume in self.spec.volumes:
            if volume.persistent_volume_claim is not None:
                names.append(volume.persistent_volume_claim.claim_name)
            elif volume.ephemeral is not None:
                names.append(f"{self.metadata.name}-{volume.name}")
        return tuple(names)

    @property
    def is_terminal(self) -> bool:
        """Whether it has ended, so that it uses no resources."""
        return self.status.phase in {"Succeeded", "Failed"}


class Taint(_Read, frozen=True):
    """A mark that keeps pods without a toleration off a node."""

    key: str
    effect: str
    """`NoSchedule`, `NoExecute` or `PreferNoSchedule`."""
    value: str = ""


class NodeSpec(_Read, frozen=True):
    """The specification of a node."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeCondition(_Read, frozen=True):
    """One condition of a node."""

    type: str = ""
    status: str = ""


class NodeStatus(_Read, frozen=True):
    """The status of a node."""

    allocatable: dict[str, str | int | float] = {}
    conditions: tuple[NodeCondition, ...] = ()
    declared_features: tuple[str, ...] = ()
    """The features of its kubelet that not every kubelet has."""


class KubernetesNode(_Read, frozen=True):
    """A node."""

    metadata: ObjectMeta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class Namespace(_Read, frozen=True):
    """A namespace."""

    metadata: ObjectMeta


class PriorityClass(_Read, frozen=True):
    """A class of priority."""

    metadata: ObjectMeta
    value: int = 0


class ClaimSpec(_Read, frozen=True):
    """The request of a claim of storage, and its volume."""

    volume_name: str = ""
    storage_class_name: str | None = None
    access_modes: tuple[str, ...] = ()
    resources: ContainerResources = ContainerResources()


class ClaimStatus(_Read, frozen=True):
    """The status of a claim."""

    phase: str = ""
    """`Pending`, `Bound` or `Lost`."""


class PersistentVolumeClaim(_Read, frozen=True):
    """A claim of storage."""

    metadata: ObjectMeta
    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus = ClaimStatus()


class VolumeNodeAffinity(_Read, frozen=True):
    """The nodes that can reach a volume."""

    required: NodeSelector | None = None


class VolumeSpec(_Read, frozen=True):
    """The specification of a volume."""

    node_affinity: VolumeNodeAffinity | None = None


class PersistentVolume(_Read, frozen=True):
    """A volume of the cluster."""

    metadata: ObjectMeta
    spec: VolumeSpec = VolumeSpec()


class TopologyRequirement(_Read, frozen=True):
    """The values that a label of a node may have."""

    key: str
    values: tuple[str, ...] = ()


class TopologyTerm(_Read, frozen=True):
    """Requirements, all of which a node meets."""

    match_label_expressions: tuple[TopologyRequirement, ...] = ()


class StorageClass(_Read, frozen=True):
    """A class of storage."""

    metadata: ObjectMeta
    provisioner: str = ""
    volume_binding_mode: str = "Immediate"
    """`Immediate` or `WaitForFirstConsumer`."""
    allowed_topologies: tuple[TopologyTerm, ...] = ()
    """The nodes for which it can make volumes: each that matches one term; without terms all nodes."""


class ConfigMap(_Read, frozen=True):
    """Configuration that is stored in the cluster."""

    metadata: ObjectMeta
    data: dict[str, str] = {}
    binary_data: dict[str, str] = {}
    """Values in base64."""


class BindingTarget(_Read, frozen=True):
    """The node of a binding."""

    name: str
    kind: str = "Node"
    api_version: str = "v1"


class Binding(_Read, frozen=True, omit_defaults=False):
    """The request to assign a pod to a node."""

    metadata: ObjectMeta
    target: BindingTarget
    api_version: str = "v1"
    kind: str = "Binding"


class LeaseSpec(_Read, frozen=True):
    """The holder of a lease, and its times."""

    holder_identity: str = ""
    lease_duration_seconds: int = 0
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int = 0


class ApiUser(_Read, frozen=True):
    """A user of the API server."""

    username: str = ""
    groups: tuple[str, ...] = ()


class SelfReviewStatus(_Read, frozen=True):
    """The answer to a `SelfSubjectReview`."""

    user_info: ApiUser


class SelfReview(_Read, frozen=True):
    """A `SelfSubjectReview`: the user who creates it."""

    status: SelfReviewStatus


class Lease(_Read, frozen=True):
    """A lease, which one process holds at a time."""

    metadata: ObjectMeta
    spec: LeaseSpec = LeaseSpec()
    api_version: str = "coordination.k8s.io/v1"
    kind: str = "Lease"


class EventSeries(_Read, frozen=True):
    """How often an event has happened."""

    count: int = 0
    last_observed_time: str = ""


class KubernetesEvent(_Read, frozen=True):
    """An event of an object, of `events.k8s.io/v1`."""

    metadata: ObjectMeta
    reason: str = ""
    note: str = ""
    regarding: ObjectReference = ObjectReference()
    series: EventSeries | None = None


resolve_structs(__name__)
