"""The filters that look at other pods refuse what those of Kubernetes refuse."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from support.kubernetes.held_view import HeldView, view_of
from support.kubernetes.placing import (
    HOST,
    ZONE,
    a_namespace,
    a_node,
    a_pod,
    affinity,
    anti_affinity,
    beside,
    spread,
    term,
)

from licorne.proxy.kubernetes.objects import Pod
from licorne.proxy.kubernetes.predicates.cluster_view import NodeState
from licorne.proxy.kubernetes.predicates.neighbour_filters import looks_at_neighbours, refused_by_ports
from licorne.proxy.kubernetes.predicates.verdicts import PodFilters

WEB = {"matchLabels": {"app": "web"}}
DB = {"matchLabels": {"app": "db"}}


def web(name: str, on: str, **more: Any) -> Pod:
    return a_pod(name, labels={"app": "web"}, nodeName=on, **more)


def fitting(pod: Pod, view: HeldView) -> str:
    """Name the nodes that accept a pod, as one text."""
    filters = PodFilters(view)
    return " ".join(name for name in view.nodes if filters.why_refused(pod, name, allocate=True) is None)


def port(number: int, protocol: str | None = None, address: str | None = None) -> dict[str, Any]:
    optional = {"protocol": protocol, "hostIP": address}
    return {"hostPort": number, **{key: value for key, value in optional.items() if value is not None}}


def with_ports(*ports: dict[str, Any]) -> Pod:
    return a_pod(containers=[{"name": "main"}, {"name": "more", "ports": list(ports)}])


def with_early_port(restart_policy: str | None) -> Pod:
    early = {"name": "early", "ports": [port(80)], "restartPolicy": restart_policy}
    return a_pod(initContainers=[early])


class PortCase(NamedTuple):
    """A pod, one that is there, and whether their ports conflict."""

    pod: Pod
    there: Pod
    conflict: bool


PORT_CASES = {
    "the same port": PortCase(with_ports(port(80)), with_ports(port(80)), conflict=True),
    "another port": PortCase(with_ports(port(80)), with_ports(port(81)), conflict=False),
    "one of several": PortCase(with_ports(port(1), port(80)), with_ports(port(80), port(2)), conflict=True),
    "no port of the node": PortCase(with_ports(port(0)), with_ports(port(0)), conflict=False),
    "TCP is meant if no protocol is named": PortCase(
        with_ports(port(80)), with_ports(port(80, "TCP")), conflict=True
    ),
    "another protocol": PortCase(with_ports(port(80)), with_ports(port(80, "UDP")), conflict=False),
    "the same address": PortCase(
        with_ports(port(80, address="10.0.0.1")), with_ports(port(80, address="10.0.0.1")), conflict=True
    ),
    "another address": PortCase(
        with_ports(port(80, address="10.0.0.1")), with_ports(port(80, address="10.0.0.2")), conflict=False
    ),
    "all addresses are asked for": PortCase(
        with_ports(port(80)), with_ports(port(80, address="10.0.0.2")), conflict=True
    ),
    "all addresses are in use": PortCase(
        with_ports(port(80, address="10.0.0.1")),
        with_ports(port(80, address="0.0.0.0")),  # noqa: S104 - as Kubernetes has it
        conflict=True,
    ),
    "a container that runs all the time": PortCase(
        with_ports(port(80)), with_early_port("Always"), conflict=True
    ),
    "a container that ends before": PortCase(with_early_port(None), with_ports(port(80)), conflict=False),
}


@pytest.mark.parametrize("case", PORT_CASES.values(), ids=PORT_CASES)
def test_a_port_of_a_node_is_used_once(case: PortCase) -> None:
    """Ports conflict by number, protocol and address."""
    refusal = "another pod on the node uses the host port 80 (TCP)" if case.conflict else None

    assert refusal == refused_by_ports(case.pod, NodeState(a_node(), (a_pod("idle"), case.there)))


class PlaceCase(NamedTuple):
    """What a pod with the label `app=web` asks for, what is there, and the nodes that accept it."""

    spec: dict[str, Any]
    there: list[Pod]
    fitting: str


def zones() -> list[Any]:
    """Two nodes in the east, one in the west, and one without a zone."""
    places = {"e1": "east", "e2": "east", "w1": "west", "x1": None}
    return [a_node(name, labels={} if zone is None else {ZONE: zone}) for name, zone in places.items()]


def constrained(*constraints: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"topologySpreadConstraints": list(constraints), **spec}


LEAVING = {"deletionTimestamp": "2026-11-28T08:46:11Z"}
SPREAD_CASES = {
    "a domain may be one ahead": PlaceCase(constrained(spread(WEB)), [], "e1 e2 w1"),
    "a domain may not be two ahead": PlaceCase(constrained(spread(WEB)), [web("a", "e1")], "w1"),
    "a wider skew is allowed": PlaceCase(constrained(spread(WEB, maxSkew=2)), [web("a", "e1")], "e1 e2 w1"),
    "a wish refuses nothing": PlaceCase(
        constrained(spread(WEB, whenUnsatisfiable="ScheduleAnyway")), [web("a", "e1")], "e1 e2 w1 x1"
    ),
    "other pods do not count": PlaceCase(
        constrained(spread(WEB)),
        [a_pod("a", nodeName="e1"), web("b", "e1", namespace="red"), web("c", "e1", metadata=LEAVING)],
        "e1 e2 w1",
    ),
    "a pod that does not count itself fills up": PlaceCase(
        constrained(spread(DB)), [a_pod("a", labels={"app": "db"}, nodeName="e1")], "e1 e2 w1"
    ),
    "an empty selector counts the pod alone": PlaceCase(
        constrained(spread({})), [web("a", "e1"), web("b", "e1")], "e1 e2 w1"
    ),
    "no selector counts nothing": PlaceCase(constrained(spread(None)), [web("a", "e1")], "e1 e2 w1"),
    "too few domains count as an empty one": PlaceCase(
        constrained(spread(WEB, minDomains=3)), [web("a", "e1"), web("b", "w1")], ""
    ),
    "enough domains do not": PlaceCase(
        constrained(spread(WEB, minDomains=2)), [web("a", "e1"), web("b", "w1")], "e1 e2 w1"
    ),
    "nodes without all of the labels do not count": PlaceCase(
        constrained(spread(WEB), spread(WEB, HOST, maxSkew=3)), [web("a", "x1")], "e1 e2 w1"
    ),
    "nodes that the pod does not select do not count": PlaceCase(
        constrained(spread(WEB), nodeSelector={ZONE: "east"}), [web("a", "e1")], "e1 e2"
    ),
    "nodes that the pod does not select count if the policy says so": PlaceCase(
        constrained(spread(WEB, nodeAffinityPolicy="Ignore"), nodeSelector={ZONE: "east"}),
        [web("a", "e1")],
        "",
    ),
    "the labels of the pod itself narrow the selector": PlaceCase(
        constrained(spread({}, matchLabelKeys=["app", "absent"])),
        [web("a", "e1"), a_pod("b", nodeName="w1"), a_pod("c", nodeName="w1")],
        "w1",
    ),
}


@pytest.mark.parametrize("case", SPREAD_CASES.values(), ids=SPREAD_CASES)
def test_pods_are_spread_over_domains(case: PlaceCase) -> None:
    """A node is refused if its domain would have too many more pods than the one with the fewest."""
    assert case.fitting == fitting(a_pod(labels={"app": "web"}, **case.spec), view_of(zones(), case.there))


@pytest.mark.parametrize(("policy", "nodes"), {"Honor": "e1", "Ignore": ""}.items())
def test_tainted_nodes_count_as_the_policy_says(policy: str, nodes: str) -> None:
    """A domain whose only node refuses the pod is the emptiest one, unless taints are honoured."""
    taints = [{"key": "gpu", "effect": "NoSchedule"}]
    tainted = a_node("w1", labels={ZONE: "west"}, taints=taints)
    view = view_of([a_node("e1", labels={ZONE: "east"}), tainted], [web("a", "e1")])
    constraint = spread(WEB, nodeTaintsPolicy=policy)

    assert nodes == fitting(a_pod(labels={"app": "web"}, topologySpreadConstraints=[constraint]), view)


TEAM = {"matchLabels": {"team": "one"}}
AFFINITY_CASES = {
    "the domain of a pod that matches": PlaceCase(
        {"affinity": affinity(beside(DB))}, [a_pod("a", labels={"app": "db"}, nodeName="e1")], "e1 e2"
    ),
    "no pod matches": PlaceCase({"affinity": affinity(beside(DB))}, [web("a", "e1")], ""),
    "the first of a group begins anywhere": PlaceCase({"affinity": affinity(beside(WEB))}, [], "e1 e2 w1"),
    "the second of a group follows": PlaceCase({"affinity": affinity(beside(WEB))}, [web("a", "w1")], "w1"),
    "a pod outside of all domains does not count": PlaceCase(
        {"affinity": affinity(beside(WEB))}, [web("a", "x1")], "e1 e2 w1"
    ),
    "one pod must match all terms": PlaceCase(
        {"affinity": affinity(beside(WEB), beside({"matchLabels": {"tier": "front"}}))},
        [web("a", "e1"), a_pod("b", labels={"tier": "front"}, nodeName="e1")],
        "",
    ),
    "no selector matches no pod": PlaceCase({"affinity": affinity(beside(None))}, [web("a", "e1")], ""),
    "anti-affinity keeps out of the domain": PlaceCase(
        {"affinity": anti_affinity(beside(WEB))}, [web("a", "e1")], "w1 x1"
    ),
    "one term of anti-affinity is enough": PlaceCase(
        {"affinity": anti_affinity(beside(WEB, HOST), beside(DB))}, [web("a", "e1")], "e2 w1 x1"
    ),
    "anti-affinity of another pod keeps out of its domain": PlaceCase(
        {}, [a_pod("a", nodeName="e1", affinity=anti_affinity(beside(WEB)))], "w1 x1"
    ),
    "anti-affinity of another pod to others has no effect": PlaceCase(
        {}, [a_pod("a", nodeName="e1", affinity=anti_affinity(beside(DB)))], "e1 e2 w1 x1"
    ),
    "anti-affinity outside of all domains has no effect": PlaceCase(
        {}, [a_pod("a", nodeName="x1", affinity=anti_affinity(beside(WEB)))], "e1 e2 w1 x1"
    ),
    "pods of other namespaces do not count": PlaceCase(
        {"affinity": anti_affinity(beside(WEB))}, [web("a", "e1", namespace="red")], "e1 e2 w1 x1"
    ),
    "namespaces are named": PlaceCase(
        {"affinity": anti_affinity(beside(WEB, namespaces=["red"]))},
        [web("a", "e1", namespace="red"), web("b", "w1")],
        "w1 x1",
    ),
    "namespaces are selected": PlaceCase(
        {"affinity": anti_affinity(beside(WEB, namespaceSelector=TEAM))},
        [web("a", "e1", namespace="red"), web("b", "w1"), web("c", "x1", namespace="unknown")],
        "w1 x1",
    ),
    "namespaces are named and selected": PlaceCase(
        {"affinity": anti_affinity(beside(WEB, HOST, namespaces=["blue"], namespaceSelector=TEAM))},
        [web("a", "e1", namespace="red"), web("b", "w1"), web("c", "x1", namespace="green")],
        "e2 x1",
    ),
    "an empty selector selects all namespaces": PlaceCase(
        {"affinity": anti_affinity(beside(WEB, HOST, namespaceSelector={}))},
        [web("a", "e1", namespace="red"), web("b", "w1"), web("c", "x1", namespace="unknown")],
        "e2",
    ),
    "another pod selects the namespace": PlaceCase(
        {},
        [
            a_pod(
                "a", namespace="red", nodeName="e1", affinity=anti_affinity(beside(WEB, namespaceSelector={}))
            ),
            a_pod("b", nodeName="x1", affinity=anti_affinity(beside(WEB, HOST, namespaceSelector=TEAM))),
        ],
        "w1 x1",
    ),
}


@pytest.mark.parametrize("case", AFFINITY_CASES.values(), ids=AFFINITY_CASES)
def test_pods_go_where_their_affinity_and_that_of_others_let_them(case: PlaceCase) -> None:
    """Terms of affinity ask for a pod in the domain of the node, those of anti-affinity for none."""
    namespaces = [a_namespace("blue"), a_namespace("red", team="one"), a_namespace("green", team="two")]
    view = view_of(zones(), case.there, namespaces)

    assert case.fitting == fitting(a_pod(labels={"app": "web"}, **case.spec), view)


LOOKING = {
    "nothing": (a_pod(), False),
    "a node": (a_pod(nodeSelector={"a": "b"}, affinity={"nodeAffinity": {}}), False),
    "a port of the pod alone": (with_ports(port(0)), False),
    "a port of the node": (with_ports(port(80)), True),
    "a wish to be spread": (
        a_pod(topologySpreadConstraints=[spread(WEB, whenUnsatisfiable="ScheduleAnyway")]),
        False,
    ),
    "to be spread": (a_pod(topologySpreadConstraints=[spread(WEB)]), True),
    "affinity": (a_pod(affinity=affinity(beside(WEB))), True),
    "anti-affinity": (a_pod(affinity=anti_affinity(beside(WEB))), True),
    "preferences of affinity": (a_pod(affinity={"podAffinity": {}, "podAntiAffinity": {}}), False),
    "labels of nodes": (a_pod(affinity={"nodeAffinity": {"x": [term("a", "Exists")]}}), False),
}


@pytest.mark.parametrize(("pod", "looks"), LOOKING.values(), ids=LOOKING)
def test_a_pod_that_looks_at_neighbours_is_known_by_its_specification(pod: Pod, looks: bool) -> None:  # noqa: FBT001 - a column
    """Host ports, constraints that refuse, and required terms make a pod depend on other pods."""
    assert looks == looks_at_neighbours(pod)
