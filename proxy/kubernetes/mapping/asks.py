"""Pods as asks and allocations of the scheduler, their ends, and nodes as messages.

The key of a pod is its uid. A pod with a node is an existing allocation, a pod without one an ask; so the
same functions serve a new pod and one that is found after a restart.

Taints, labels and conditions are not sent: the predicates read them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ....model.resources.quantities import QuantityError
from ...si import constants
from ...si import si_pb2 as si
from ..objects import KubernetesNode, PersistentVolumeClaim, Pod, PriorityClass
from ..quantities import node_resource, quantity_nano
from ..storage_objects import CsiStorageCapacity
from .pod_sizes import pod_resource
from .settings import (
    ALLOW_PREEMPTION,
    CORDONED,
    DEFAULT_RACK,
    HOST_NAME_OF_SHIM,
    LABEL_TAG_PREFIX,
    PARTITION,
    POD_NAME_TAG,
    POD_NAMESPACE_TAG,
    PREDICATE_CLASS_TAG,
    RACK_NAME_OF_SHIM,
    REQUIRED_NODE_TAG,
    KubernetesSettings,
    creation_seconds,
    is_placeholder,
    task_group_name,
)

_NODE_NAME_FIELD: Final = "metadata.name"
_PRIORITY_MAX: Final = 2**31 - 1
_SOME_TIME: Final = "1970-01-01T00:00:00Z"
_WITH_SIZE = frozenset({si.NodeInfo.CREATE, si.NodeInfo.CREATE_DRAIN, si.NodeInfo.UPDATE})


def why_unusable(item: object, settings: KubernetesSettings) -> str:
    """Return why an object cannot become a message, empty if it can or need not."""
    try:
        match item:
            case KubernetesNode():
                node_info(item, si.NodeInfo.CREATE, settings)
            case Pod() if not item.is_terminal:
                pod_resource(item)
                creation_seconds(item.metadata.creation_timestamp or _SOME_TIME)
                if abs(item.spec.priority or 0) > _PRIORITY_MAX:
                    return f"expected a priority of 32 bits, got {item.spec.priority}"
            case PersistentVolumeClaim():
                quantity_nano(item.spec.resources.requests.get("storage", 0))
            case CsiStorageCapacity():
                quantity_nano(item.capacity or 0)
                quantity_nano(item.maximum_volume_size or 0)
    except (QuantityError, ValueError, OverflowError) as error:
        return str(error)
    return ""


def ask(
    pod: Pod,
    application_id: str,
    priority_classes: Mapping[str, PriorityClass],
    settings: KubernetesSettings,
    *,
    originator: bool = False,
    predicate_class: str = "",
) -> si.Allocation:
    """Return a pod as an ask, or with a node as an existing allocation.

    Args:
        pod: The pod.
        application_id: The application that it belongs to.
        priority_classes: The priority classes of the cluster by name; they are read during the call.
        settings: Whether there are gangs.
        originator: Whether it is the first pod of its application; a placeholder never is.
        predicate_class: The class of pods that share the answers about nodes, empty if the pod shares none.

    Raises:
        QuantityError: A quantity of the pod cannot be read.
    """
    spec = pod.spec
    tags = _tags(pod, settings)
    node_name = required_node(pod)
    if node_name:
        tags[REQUIRED_NODE_TAG] = node_name
    if predicate_class:
        tags[PREDICATE_CLASS_TAG] = predicate_class
    placeholder = is_placeholder(pod)
    return si.Allocation(
        allocationKey=pod.metadata.uid,
        applicationID=application_id,
        partitionName=PARTITION,
        allocationTags=tags,
        resourcePerAlloc=_resource(pod),
        priority=spec.priority or 0,
        nodeID=spec.node_name,
        taskGroupName=task_group_name(pod, settings),
        placeholder=placeholder,
        originator=originator and not placeholder,
        preemptionPolicy=si.PreemptionPolicy(
            allowPreemptSelf=allows_preemption_of_itself(pod, priority_classes),
            allowPreemptOther=allows_preemption_of_others(pod),
        ),
    )


def foreign_allocation(pod: Pod, settings: KubernetesSettings) -> si.Allocation:
    """Return a pod of another scheduler as an allocation that this scheduler only counts.

    Raises:
        QuantityError: A quantity of the pod cannot be read.
    """
    mirrors_a_file = any(owner.kind == "Node" for owner in pod.metadata.owner_references)
    tags = _tags(pod, settings)
    tags[constants.FOREIGN] = constants.ALLOC_TYPE_STATIC if mirrors_a_file else constants.ALLOC_TYPE_DEFAULT
    return si.Allocation(
        allocationKey=pod.metadata.uid,
        partitionName=PARTITION,
        allocationTags=tags,
        resourcePerAlloc=_resource(pod),
        priority=pod.spec.priority or 0,
        nodeID=pod.spec.node_name,
    )


def release(
    application_id: str, key: str, termination_type: si.TerminationType, message: str
) -> si.AllocationRelease:
    """Return the end of an ask or allocation.

    Args:
        application_id: Its application, the empty text for a foreign pod.
        key: The uid of the pod.
        termination_type: Why it ends; a confirmation repeats the type from the scheduler.
        message: The text for people.
    """
    return si.AllocationRelease(
        partitionName=PARTITION,
        applicationID=application_id,
        allocationKey=key,
        terminationType=termination_type,
        message=message,
    )


def foreign_release(pod: Pod) -> si.AllocationRelease:
    """Return the end of a pod of another scheduler."""
    return release("", pod.metadata.uid, si.STOPPED_BY_RM, "pod terminated")


def required_node(pod: Pod) -> str:
    """Return the only node for a pod of a daemon set, the empty text for other pods.

    The daemon set names it by a required affinity to the name of the node; the last term that does so counts.
    """
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None or affinity.node_affinity.required is None:
        return ""
    if not any(owner.kind == "DaemonSet" for owner in pod.metadata.owner_references):
        return ""
    terms = affinity.node_affinity.required.node_selector_terms
    requirements = (each for term in terms for each in term.match_fields)
    names = [each.values[0] for each in requirements if each.key == _NODE_NAME_FIELD and each.values]
    return names[-1] if names else ""


def allows_preemption_of_itself(pod: Pod, priority_classes: Mapping[str, PriorityClass]) -> bool:
    """Return whether a pod may be ended for another: its own setting, else that of its class, else yes."""
    own = pod.metadata.annotations.get(ALLOW_PREEMPTION)
    if own in {"true", "false"}:
        return own == "true"
    priority_class = priority_classes.get(pod.spec.priority_class_name)
    return priority_class is None or priority_class.metadata.annotations.get(ALLOW_PREEMPTION) != "false"


def allows_preemption_of_others(pod: Pod) -> bool:
    """Return whether others may be ended for a pod."""
    return pod.spec.preemption_policy != "Never"


def _tags(pod: Pod, settings: KubernetesSettings) -> dict[str, str]:
    """Return the tags of a pod: namespace, name, creation time, and its labels if they are shown."""
    metadata = pod.metadata
    tags = {POD_NAMESPACE_TAG: metadata.namespace, POD_NAME_TAG: metadata.name}
    for key, value in metadata.labels.items() if settings.shows_labels else ():
        tags[LABEL_TAG_PREFIX + key] = value
    if metadata.creation_timestamp:
        tags[constants.CREATION_TIME] = str(creation_seconds(metadata.creation_timestamp))
    return tags


def _resource(pod: Pod) -> si.Resource:
    return si.Resource(
        resources={name: si.Quantity(value=amount) for name, amount in pod_resource(pod).items()}
    )


def node_info(
    node: KubernetesNode, action: si.NodeInfo.ActionFromRM, settings: KubernetesSettings
) -> si.NodeInfo:
    """Return the message about a node; it contains the size if the node is created or changed.

    Raises:
        QuantityError: A quantity of the node cannot be read.
    """
    name = node.metadata.name
    info = si.NodeInfo(nodeID=name, action=action, attributes=_attributes(node, settings))
    if action in _WITH_SIZE:
        for kind, amount in node_resource(node).items():
            info.schedulableResource.resources[kind].value = amount
    return info


def node_changes(old: KubernetesNode | None, new: KubernetesNode | None) -> list[si.NodeInfo.ActionFromRM]:
    """Return the messages about a node, in order.

    A new node is created drained. The pods on it are sent next, and `DRAIN_TO_SCHEDULABLE` after them, so
    that nothing is placed in their room. A cordon is an attribute that is only shown: pods that tolerate it
    may use the node, and a filter keeps the others off.

    Args:
        old: The node before the change, `None` if it is new.
        new: The node after the change, `None` if it is gone.
    """
    if new is None:
        return [] if old is None else [si.NodeInfo.DECOMISSION]
    if old is None:
        return [si.NodeInfo.CREATE_DRAIN, si.NodeInfo.DRAIN_TO_SCHEDULABLE]
    is_resized = old.status.allocatable != new.status.allocatable and node_resource(old) != node_resource(new)
    is_changed = is_resized or old.spec.unschedulable != new.spec.unschedulable
    return [si.NodeInfo.UPDATE] if is_changed else []


def _attributes(node: KubernetesNode, settings: KubernetesSettings) -> dict[str, str]:
    """Return host and rack by both names in use, the cordon, the instance type, and the labels of domains."""
    name = node.metadata.name
    attributes = {
        HOST_NAME_OF_SHIM: name,
        RACK_NAME_OF_SHIM: DEFAULT_RACK,
        constants.HOST_NAME: name,
        constants.RACK_NAME: DEFAULT_RACK,
        CORDONED: "true" if node.spec.unschedulable else "false",
    }
    instance_type = node.metadata.labels.get(settings.instance_type_label)
    if instance_type:
        attributes[constants.INSTANCE_TYPE] = instance_type
    labels = node.metadata.labels
    return attributes | {label: labels[label] for label in settings.topology_labels if label in labels}
