"""Pods as asks and allocations: every field, and what becomes of daemon pods, classes and foreign pods."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import pytest
from google.protobuf.json_format import MessageToDict
from support.kubernetes.decoded import CREATED_SECONDS, pod_of, priority_class

from licorne.proxy.kubernetes.mapping.asks import (
    allows_preemption_of_itself,
    ask,
    foreign_allocation,
    foreign_release,
    release,
    required_node,
)
from licorne.proxy.kubernetes.mapping.settings import KubernetesSettings
from licorne.proxy.si import si_pb2 as si

D: Final = "yunikorn.apache.org/"
SETTINGS: Final = KubernetesSettings()
CONTAINERS: Final = [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]
POD_TAGS: Final = {
    "kubernetes.io/meta/namespace": "team",
    "kubernetes.io/meta/podName": "pod-1",
    "creationTime": CREATED_SECONDS,
}
MEMBER: Final = {f"{D}task-group-name": "g"}
PLACEHOLDER: Final = {**MEMBER, "internal.yunikorn.apache.org/placeholder": "true"}


def by_name(*names: str, operator: str = "In") -> dict[str, Any]:
    """Return a term that selects nodes by name."""
    return {"matchFields": [{"key": "metadata.name", "operator": operator, "values": list(names)}]}


def daemon(*terms: dict[str, Any], kind: str = "DaemonSet") -> dict[str, Any]:
    """Return the parts of a pod whose owner requires a node."""
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return {
        "ownerReferences": [{"kind": kind, "name": "agent", "uid": "u"}],
        "spec": {"affinity": {"nodeAffinity": required}},
    }


def test_a_pod_is_an_ask() -> None:
    """Its key is the uid; its tags say where it is and what its labels are."""
    pod = pod_of(labels={"role": "driver"}, spec={"containers": CONTAINERS, "priority": 7})

    message = MessageToDict(ask(pod, "app", {}, SETTINGS))

    assert {
        "allocationKey": "uid-1",
        "applicationID": "app",
        "partitionName": "default",
        "allocationTags": {**POD_TAGS, "kubernetes.io/label/role": "driver"},
        "resourcePerAlloc": {"resources": {"vcore": {"value": "1000"}, "pods": {"value": "1"}}},
        "priority": 7,
        "preemptionPolicy": {"allowPreemptSelf": True, "allowPreemptOther": True},
    } == message


class Row(NamedTuple):
    metadata: dict[str, Any]
    options: dict[str, Any]
    expected: dict[str, Any]


FIELDS: Final = {
    "a pod with a node is an allocation": Row({"spec": {"nodeName": "node-1"}}, {}, {"nodeID": "node-1"}),
    "a pod without a node is an ask": Row({}, {}, {"nodeID": ""}),
    "without a priority it is zero": Row({}, {}, {"priority": 0}),
    "a priority may be negative": Row({"spec": {"priority": -5}}, {}, {"priority": -5}),
    "a first pod is the originator": Row({}, {"originator": True}, {"originator": True}),
    "a later pod is not the originator": Row({}, {}, {"originator": False}),
    "a placeholder is never the originator": Row(
        {"annotations": PLACEHOLDER}, {"originator": True}, {"originator": False, "placeholder": True}
    ),
    "a member names its task group": Row(
        {"annotations": MEMBER}, {}, {"taskGroupName": "g", "placeholder": False}
    ),
    "a placeholder names its task group": Row(
        {"annotations": PLACEHOLDER}, {}, {"taskGroupName": "g", "placeholder": True}
    ),
    "with gangs disabled the task group is left out": Row(
        {"annotations": MEMBER}, {"settings": KubernetesSettings(gangs_disabled=True)}, {"taskGroupName": ""}
    ),
}


@pytest.mark.parametrize("case", FIELDS.values(), ids=FIELDS)
def test_a_field_of_an_ask(case: Row) -> None:
    """Each follows from the pod."""
    options = {"settings": SETTINGS, **case.options}

    message = ask(pod_of(**case.metadata), "app", {}, **options)

    assert case.expected == {name: getattr(message, name) for name in case.expected}


def test_a_predicate_class_is_a_tag() -> None:
    """Without one the pod is asked about alone."""
    tag = "licorne/predicate-class"
    shared = ask(pod_of(), "app", {}, SETTINGS, predicate_class="c").allocationTags
    alone = ask(pod_of(), "app", {}, SETTINGS).allocationTags

    assert ("c", False) == (shared[tag], tag in alone)


DAEMONS: Final = {
    "a daemon pod requires the node of its affinity": (daemon(by_name("n1")), "n1"),
    "the first name of a term counts": (daemon(by_name("n1", "n2")), "n1"),
    "the last term counts": (daemon(by_name("n1"), by_name("n2")), "n2"),
    "the operator is not looked at": (daemon(by_name("n1", operator="NotIn")), "n1"),
    "a term without a name is passed over": (daemon(by_name("n1"), by_name()), "n1"),
    "another field is passed over": (
        daemon({"matchFields": [{"key": "metadata.uid", "operator": "In", "values": ["x"]}]}),
        "",
    ),
    "a label is no name": (
        daemon({"matchExpressions": [{"key": "metadata.name", "operator": "In", "values": ["x"]}]}),
        "",
    ),
    "a pod of another owner requires no node": (daemon(by_name("n1"), kind="ReplicaSet"), ""),
    "a daemon pod without an affinity requires no node": ({**daemon(), "spec": {}}, ""),
    "an affinity to pods requires no node": ({**daemon(), "spec": {"affinity": {"podAffinity": {}}}}, ""),
    "a preference requires no node": (
        {
            **daemon(),
            "spec": {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}},
        },
        "",
    ),
}


@pytest.mark.parametrize("case", DAEMONS.values(), ids=DAEMONS)
def test_a_daemon_pod_is_for_one_node(case: tuple[dict[str, Any], str]) -> None:
    """Which is a tag of its ask."""
    parts, expected = case
    pod = pod_of(**parts)

    tag = ask(pod, "app", {}, SETTINGS).allocationTags.get(f"{D}requiredNode", "")

    assert (expected, expected) == (required_node(pod), tag)


CLASSES: Final = {
    "keep": priority_class("keep", allow_preemption="false"),
    "yield": priority_class("yield", allow_preemption="true"),
    "odd": priority_class("odd", allow_preemption="no"),
    "plain": priority_class("plain"),
}
VICTIMS: Final = {
    "a pod may be ended": (None, "", True),
    "a pod may forbid it": ("false", "", False),
    "the pod decides before its class that it may": ("true", "keep", True),
    "the pod decides before its class that it may not": ("false", "yield", False),
    "another word of the pod says nothing": ("no", "keep", False),
    "the words are compared exactly": ("False", "", True),
    "its class may forbid it": (None, "keep", False),
    "its class may allow it": (None, "yield", True),
    "another word of the class says nothing": (None, "odd", True),
    "a class may say nothing": (None, "plain", True),
    "a class that is not known says nothing": (None, "gone", True),
}


@pytest.mark.parametrize("case", VICTIMS.values(), ids=VICTIMS)
def test_a_pod_may_be_ended_for_another(case: tuple[str | None, str, bool]) -> None:
    """As it says, else as its priority class says."""
    own, class_name, expected = case
    annotations = {} if own is None else {f"{D}allow-preemption": own}
    pod = pod_of(annotations=annotations, spec={"priorityClassName": class_name})

    policy = ask(pod, "app", CLASSES, SETTINGS).preemptionPolicy

    assert (expected, expected) == (allows_preemption_of_itself(pod, CLASSES), policy.allowPreemptSelf)


@pytest.mark.parametrize(
    ("policy", "expected"), [("Never", False), ("PreemptLowerPriority", True), (None, True)]
)
def test_others_may_be_ended_for_a_pod(policy: str | None, *, expected: bool) -> None:
    """Unless its preemption policy is `Never`."""
    pod = pod_of(spec={} if policy is None else {"preemptionPolicy": policy})

    assert expected is ask(pod, "app", {}, SETTINGS).preemptionPolicy.allowPreemptOther


@pytest.mark.parametrize(("owner", "expected"), [("Node", "static"), ("DaemonSet", "default")])
def test_a_foreign_pod_is_an_allocation_without_an_application(owner: str, expected: str) -> None:
    """One that a kubelet reads from a file cannot be moved, and is static."""
    pod = pod_of(
        labels={"k": "v"},
        ownerReferences=[{"kind": owner, "name": "x", "uid": "u"}],
        spec={
            "schedulerName": "default-scheduler",
            "nodeName": "node-1",
            "containers": CONTAINERS,
            "priority": 3,
        },
    )

    assert {
        "allocationKey": "uid-1",
        "partitionName": "default",
        "allocationTags": {**POD_TAGS, "kubernetes.io/label/k": "v", "foreign": expected},
        "resourcePerAlloc": {"resources": {"vcore": {"value": "1000"}, "pods": {"value": "1"}}},
        "priority": 3,
        "nodeID": "node-1",
    } == MessageToDict(foreign_allocation(pod, KubernetesSettings()))


def test_labels_are_left_out_where_everybody_reads() -> None:
    """A REST interface without a token shows the tags of asks."""
    pod = pod_of(labels={"secret": "x"}, spec={"containers": CONTAINERS, "nodeName": "n1"})
    settings = KubernetesSettings(shows_labels=False)

    made = ask(pod, "app", {}, settings), foreign_allocation(pod, settings)

    assert [] == [tag for each in made for tag in each.allocationTags if "label" in tag]


def test_a_foreign_pod_ends() -> None:
    """It has no application, and nobody confirms it."""
    assert {
        "partitionName": "default",
        "allocationKey": "uid-1",
        "terminationType": "STOPPED_BY_RM",
        "message": "pod terminated",
    } == MessageToDict(foreign_release(pod_of()))


def test_a_release_says_why() -> None:
    """With the type that the scheduler gave, where it confirms."""
    assert {
        "partitionName": "default",
        "applicationID": "app",
        "allocationKey": "uid-1",
        "terminationType": "PLACEHOLDER_REPLACED",
        "message": "task completed",
    } == MessageToDict(release("app", "uid-1", si.PLACEHOLDER_REPLACED, "task completed"))
