"""The filters that depend on the pod and the node alone refuse what those of Kubernetes refuse."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from support.kubernetes.placing import a_node, a_pod, node_affinity, term

from licorne.proxy.kubernetes.predicates.node_filters import (
    refused_by_affinity,
    refused_by_name,
    refused_by_taint,
    refused_for_cordon,
    required_features,
)

NAMES = {"": None, "n1": None, "n2": "the pod names another node"}


@pytest.mark.parametrize(("name", "refusal"), NAMES.items(), ids=["none", "this node", "another node"])
def test_a_pod_that_names_a_node_gets_no_other(name: str, refusal: str | None) -> None:
    """A name that the pod has in its specification decides."""
    assert refusal == refused_by_name(a_pod(nodeName=name), a_node("n1"))


RESTARTS = [{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}]
MOUNT = [{"name": "v", "mountPath": "/v", "bindMountOptions": ["noexec"]}]
FEATURES: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "a plain pod needs none": ({"containers": [{"volumeMounts": [{"name": "v"}]}], "hostNetwork": True}, ()),
    "one that may use the users of its host": ({"hostNetwork": True, "hostUsers": True}, ()),
    "one whose container restarts all": (
        {"containers": [{"restartPolicyRules": RESTARTS}]},
        ("RestartAllContainersOnContainerExits",),
    ),
    "one whose init container does": (
        {"initContainers": [{"restartPolicyRules": RESTARTS}]},
        ("RestartAllContainersOnContainerExits",),
    ),
    "one with users of its own on the network of the host": (
        {"hostNetwork": True, "hostUsers": False},
        ("UserNamespacesHostNetworkSupport",),
    ),
    "one that mounts with options": ({"containers": [{"volumeMounts": MOUNT}]}, ("VolumeBindMountOptions",)),
}


@pytest.mark.parametrize("case", FEATURES.values(), ids=FEATURES)
def test_a_pod_needs_features_of_its_node(case: tuple[dict[str, Any], tuple[str, ...]]) -> None:
    """As Kubernetes 1.37 infers them."""
    spec, expected = case

    assert expected == required_features(a_pod(**spec))


CORDON = "node.kubernetes.io/unschedulable"


class CordonCase(NamedTuple):
    """Tolerations of a pod, and whether they open a node that is cordoned."""

    tolerations: list[dict[str, str]]
    opens: bool


CORDON_CASES = {
    "nothing is tolerated": CordonCase([], opens=False),
    "the cordon is tolerated": CordonCase([{"key": CORDON, "operator": "Exists"}], opens=True),
    "the cordon is tolerated with its empty value": CordonCase([{"key": CORDON}], opens=True),
    "a cordon with a value is tolerated": CordonCase([{"key": CORDON, "value": "yes"}], opens=False),
    "its effect alone is tolerated": CordonCase([{"operator": "Exists", "effect": "NoSchedule"}], opens=True),
    "another effect is tolerated": CordonCase([{"operator": "Exists", "effect": "NoExecute"}], opens=False),
}


@pytest.mark.parametrize("case", CORDON_CASES.values(), ids=CORDON_CASES)
def test_a_cordoned_node_refuses_pods_that_do_not_tolerate_it(case: CordonCase) -> None:
    """The cordon counts as a taint without a value."""
    pod = a_pod(tolerations=case.tolerations)

    assert (None if case.opens else "the node is marked as unschedulable") == refused_for_cordon(
        pod, a_node(unschedulable=True)
    )


def test_a_node_without_cordon_is_not_refused_for_one() -> None:
    """A pod without tolerations may run on a node that is not cordoned."""
    assert None is refused_for_cordon(a_pod(), a_node())


class TaintCase(NamedTuple):
    """A taint, a toleration, and whether it tolerates the taint."""

    taint: dict[str, str]
    toleration: dict[str, str]
    tolerates: bool


def taint(value: str = "", effect: str = "NoSchedule") -> dict[str, str]:
    return {"key": "gpu", "value": value, "effect": effect}


def toleration(operator: str = "", value: str = "", key: str = "gpu", effect: str = "") -> dict[str, str]:
    return {"key": key, "operator": operator, "value": value, "effect": effect}


TAINT_CASES = {
    "an equal value": TaintCase(taint("a"), toleration("Equal", "a"), tolerates=True),
    "an equal value, the operator being missing": TaintCase(taint("a"), toleration("", "a"), tolerates=True),
    "another value": TaintCase(taint("a"), toleration("Equal", "b"), tolerates=False),
    "any value": TaintCase(taint("a"), toleration("Exists"), tolerates=True),
    "another key": TaintCase(taint("a"), toleration("Exists", key="cpu"), tolerates=False),
    "any key": TaintCase(taint("a"), toleration("Exists", key=""), tolerates=True),
    "any effect": TaintCase(taint(effect="NoExecute"), toleration("Exists"), tolerates=True),
    "the effect": TaintCase(
        taint(effect="NoExecute"), toleration("Exists", effect="NoExecute"), tolerates=True
    ),
    "another effect": TaintCase(
        taint(effect="NoExecute"), toleration("Exists", effect="NoSchedule"), tolerates=False
    ),
    "an effect that is a preference": TaintCase(
        taint(effect="PreferNoSchedule"), toleration("Exists", key="cpu"), tolerates=True
    ),
    "less": TaintCase(taint("5"), toleration("Lt", "6"), tolerates=True),
    "not less": TaintCase(taint("6"), toleration("Lt", "6"), tolerates=False),
    "greater": TaintCase(taint("-1"), toleration("Gt", "-2"), tolerates=True),
    "not greater": TaintCase(taint("6"), toleration("Gt", "6"), tolerates=False),
    "a number with a leading zero": TaintCase(taint("05"), toleration("Lt", "6"), tolerates=False),
    "a limit with a leading zero": TaintCase(taint("5"), toleration("Lt", "06"), tolerates=False),
    "a text to compare": TaintCase(taint("few"), toleration("Lt", "6"), tolerates=False),
    "a number that is too large": TaintCase(taint("1" + "0" * 20), toleration("Gt", "6"), tolerates=False),
    "an unknown operator": TaintCase(taint("a"), toleration("Near", "a"), tolerates=False),
}


@pytest.mark.parametrize("case", TAINT_CASES.values(), ids=TAINT_CASES)
def test_a_taint_refuses_pods_that_do_not_tolerate_it(case: TaintCase) -> None:
    """A toleration fits by key, effect and value."""
    pod = a_pod(tolerations=[case.toleration])

    assert case.tolerates == (refused_by_taint(pod, a_node(taints=[case.taint])) is None)


def test_the_first_taint_that_is_not_tolerated_is_named() -> None:
    """The sentence names the taint as people write it, without `=` if it has no value."""
    pod = a_pod(tolerations=[toleration("Exists")])
    taints = [taint("a"), {"key": "old", "effect": "NoExecute"}, {"key": "new", "effect": "NoSchedule"}]

    assert "the pod does not tolerate the taint old:NoExecute of the node" == refused_by_taint(
        pod, a_node(taints=taints)
    )


class SelectionCase(NamedTuple):
    """What a pod asks of the label `disk`, and whether a node with `disk=ssd` fits."""

    spec: dict[str, Any]
    fits: bool


SSD, HDD = term("disk", "In", "ssd"), term("disk", "In", "hdd")
SELECTION_CASES = {
    "nothing": SelectionCase({}, fits=True),
    "an affinity to pods alone": SelectionCase({"affinity": {"podAffinity": {}}}, fits=True),
    "preferences alone": SelectionCase({"affinity": {"nodeAffinity": {}}}, fits=True),
    "the node selector fits": SelectionCase({"nodeSelector": {"disk": "ssd"}}, fits=True),
    "the node selector does not fit": SelectionCase({"nodeSelector": {"disk": "hdd"}}, fits=False),
    "the label is missing": SelectionCase({"nodeSelector": {"size": "8"}}, fits=False),
    "the affinity fits": SelectionCase({"affinity": node_affinity(SSD)}, fits=True),
    "the affinity does not fit": SelectionCase({"affinity": node_affinity(HDD)}, fits=False),
    "there are no terms": SelectionCase({"affinity": node_affinity()}, fits=False),
    "only the selector fits": SelectionCase(
        {"nodeSelector": {"disk": "ssd"}, "affinity": node_affinity(HDD)}, fits=False
    ),
    "only the affinity fits": SelectionCase(
        {"nodeSelector": {"disk": "hdd"}, "affinity": node_affinity(SSD)}, fits=False
    ),
}


@pytest.mark.parametrize("case", SELECTION_CASES.values(), ids=SELECTION_CASES)
def test_a_pod_selects_nodes_by_labels(case: SelectionCase) -> None:
    """Node selector and required node affinity must both fit."""
    node = a_node(labels={"disk": "ssd"})
    refusal = (
        None if case.fits else "the node does not match the node selector or the node affinity of the pod"
    )

    assert refusal == refused_by_affinity(a_pod(**case.spec), node)
