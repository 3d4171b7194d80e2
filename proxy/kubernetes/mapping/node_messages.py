"""Nodes as messages, and what has to be said when one comes, changes or goes.

Taints, labels and conditions are not sent: the predicates read them.
"""

from __future__ import annotations

from ...si import constants
from ...si import si_pb2 as si
from ..objects import KubernetesNode
from .names import DEFAULT_RACK, HOST_NAME_OF_SHIM, RACK_NAME_OF_SHIM
from .pod_sizes import node_resource
from .settings import KubernetesSettings

_WITH_SIZE = frozenset({si.NodeInfo.CREATE, si.NodeInfo.CREATE_DRAIN, si.NodeInfo.UPDATE})


def node_info(
    node: KubernetesNode, action: si.NodeInfo.ActionFromRM, settings: KubernetesSettings
) -> si.NodeInfo:
    """Return the message about a node; its size goes along where it is created or changed.

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
    """Return what is to be said about a node, in order.

    A new node is created drained. The pods that are on it are sent next, and `DRAIN_TO_SCHEDULABLE` after
    them, so that nothing is placed where they already are.

    Args:
        old: The node as it was, `None` if it is new.
        new: The node as it is, `None` if it is gone.
    """
    if new is None:
        return [] if old is None else [si.NodeInfo.DECOMISSION]
    if old is None:
        created = [si.NodeInfo.CREATE_DRAIN]
        return created if new.spec.unschedulable else [*created, si.NodeInfo.DRAIN_TO_SCHEDULABLE]
    actions: list[si.NodeInfo.ActionFromRM] = []
    if old.status.allocatable != new.status.allocatable and node_resource(old) != node_resource(new):
        actions.append(si.NodeInfo.UPDATE)
    if old.spec.unschedulable != new.spec.unschedulable:
        drained = new.spec.unschedulable
        actions.append(si.NodeInfo.DRAIN_NODE if drained else si.NodeInfo.DRAIN_TO_SCHEDULABLE)
    return actions


def _attributes(node: KubernetesNode, settings: KubernetesSettings) -> dict[str, str]:
    """Return host and rack by both names that are in use, and the instance type if the node has one."""
    name = node.metadata.name
    attributes = {
        HOST_NAME_OF_SHIM: name,
        RACK_NAME_OF_SHIM: DEFAULT_RACK,
        constants.HOST_NAME: name,
        constants.RACK_NAME: DEFAULT_RACK,
    }
    instance_type = node.metadata.labels.get(settings.instance_type_label)
    if instance_type:
        attributes[constants.INSTANCE_TYPE] = instance_type
    return attributes
