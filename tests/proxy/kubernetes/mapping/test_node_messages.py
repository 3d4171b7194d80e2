"""Nodes as messages: their attributes and sizes, and what is said when one comes, changes or goes."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import pytest
from google.protobuf.json_format import MessageToDict
from support.kubernetes.decoded import node_of

from licorne.proxy.kubernetes.mapping.asks import node_changes, node_info
from licorne.proxy.kubernetes.mapping.settings import KubernetesSettings
from licorne.proxy.kubernetes.objects import KubernetesNode
from licorne.proxy.si import si_pb2 as si

SETTINGS: Final = KubernetesSettings()
NAMES: Final = {
    "si.io/hostname": "node-1",
    "si.io/rackname": "/rack-default",
    "si/hostname": "node-1",
    "si/rackname": "/rack-default",
    "licorne/cordoned": "false",
}
CREATE_DRAIN: Final = si.NodeInfo.CREATE_DRAIN
UPDATE: Final = si.NodeInfo.UPDATE
DRAIN: Final = si.NodeInfo.DRAIN_NODE
SCHEDULABLE: Final = si.NodeInfo.DRAIN_TO_SCHEDULABLE
GONE: Final = si.NodeInfo.DECOMISSION


def test_labels_of_a_node_that_name_its_domains_are_attributes() -> None:
    """Others are not, and a node may lack one."""
    settings = KubernetesSettings(topology_labels=("zone", "rack"))
    node = node_of(labels={"zone": "z1", "tier": "gold"})

    assert {**NAMES, "zone": "z1"} == dict(node_info(node, CREATE_DRAIN, settings).attributes)


def test_a_new_node_has_a_size_and_attributes() -> None:
    """Host and rack have two names each, since both are in use."""
    assert {
        "nodeID": "node-1",
        "action": "CREATE_DRAIN",
        "attributes": NAMES,
        "schedulableResource": {
            "resources": {
                "vcore": {"value": "4000"},
                "memory": {"value": str(8 << 30)},
                "pods": {"value": "110"},
            }
        },
    } == MessageToDict(node_info(node_of(), CREATE_DRAIN, SETTINGS))


@pytest.mark.parametrize("action", [si.NodeInfo.CREATE, CREATE_DRAIN, UPDATE])
def test_a_node_that_is_created_or_changed_has_its_size(action: si.NodeInfo.ActionFromRM) -> None:
    """The scheduler takes it as the whole size."""
    assert node_info(node_of(), action, SETTINGS).HasField("schedulableResource")


@pytest.mark.parametrize("action", [DRAIN, SCHEDULABLE, GONE])
def test_other_messages_about_a_node_have_no_size(action: si.NodeInfo.ActionFromRM) -> None:
    """Nothing about it changes by them."""
    assert not node_info(node_of(), action, SETTINGS).HasField("schedulableResource")


class Typed(NamedTuple):
    labels: dict[str, str]
    expected: str | None
    settings: KubernetesSettings = SETTINGS


TYPES: Final = {
    "the label of Kubernetes says the instance type": Typed({"node.kubernetes.io/instance-type": "m5"}, "m5"),
    "another label can be set": Typed(
        {"size": "large"}, "large", KubernetesSettings(instance_type_label="size")
    ),
    "a node without the label has no type": Typed({"size": "large"}, None),
    "an empty label is no type": Typed({"node.kubernetes.io/instance-type": ""}, None),
}


@pytest.mark.parametrize("case", TYPES.values(), ids=TYPES)
def test_a_node_says_its_instance_type(case: Typed) -> None:
    """Use is counted by it."""
    info = node_info(node_of(labels=case.labels), CREATE_DRAIN, case.settings)

    assert case.expected == info.attributes.get("si/instance-type")


class Change(NamedTuple):
    old: KubernetesNode | None
    new: KubernetesNode | None
    expected: list[Any]


LARGER: Final = {"cpu": "8", "memory": "8Gi", "pods": "110"}
CASES: Final = {
    "a new node is created drained, and used afterwards": Change(
        None, node_of(), [CREATE_DRAIN, SCHEDULABLE]
    ),
    "so is a new node that is cordoned": Change(
        None, node_of(unschedulable=True), [CREATE_DRAIN, SCHEDULABLE]
    ),
    "a node that is gone is taken away": Change(node_of(), None, [GONE]),
    "a node that never was is not mentioned": Change(None, None, []),
    "a new size is an update": Change(node_of(), node_of(allocatable=LARGER), [UPDATE]),
    "the same size in other words is no change": Change(
        node_of(), node_of(allocatable={"cpu": "4000m", "memory": "8192Mi", "pods": "110"}), []
    ),
    "a cordon is an update: a filter looks at it": Change(node_of(), node_of(unschedulable=True), [UPDATE]),
    "so is its end": Change(node_of(unschedulable=True), node_of(), [UPDATE]),
    "a cordon and a size are one": Change(node_of(unschedulable=True), node_of(allocatable=LARGER), [UPDATE]),
    "labels are not sent": Change(node_of(), node_of(labels={"zone": "b"}), []),
    "a node without a change is not mentioned": Change(node_of(), node_of(), []),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_is_said_of_a_node(case: Change) -> None:
    """In order, by the difference of what was and what is."""
    assert case.expected == node_changes(case.old, case.new)
