"""Policies of a program that know classes of asks: orders of nodes, and filters."""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar

import pytest
from support.proxy.policy_clusters import Cluster, quantities, text

from licorne import LicorneError, policies, si
from licorne.proxy.core.scheduler.engine_names import EngineName

ORDERED = "nodesortpolicy: {type: policy/own}"
FILTERED = "policies: {filters: [own]}"


class Preferring:
    """The class of an ask is the zone that it prefers; without one the last node in name is first."""

    asked: ClassVar[Counter[str]] = Counter()

    def node_key(self, node: policies.NodeView) -> float:
        return -ord(node.node_id[-1])

    def ask_class(self, ask: policies.AskView) -> Any:
        return 5 if ask.allocation_key == "bug" else ask.tags.get("zone", "")

    def node_key_for(self, ask_class: str, node: policies.NodeView) -> Any:
        Preferring.asked[f"{ask_class} {node.node_id}"] += 1
        return None if ask_class == "broken" else node.attributes.get("zone") != ask_class


class Numbered(Preferring):
    """Answers with numbers."""

    def node_key_for(self, ask_class: str, node: policies.NodeView) -> Any:
        answer = super().node_key_for(ask_class, node)
        return answer if answer is None else float(answer)


class ByClass:
    """Refuses nodes of other zones; asks of one zone get equal answers."""

    asked: ClassVar[Counter[str]] = Counter()

    def filter_class(self, ask: policies.AskView) -> str:
        return ask.tags.get("zone", "")

    def refuses(self, ask: policies.AskView, node: policies.NodeView) -> str | None:
        ByClass.asked[f"{ask.allocation_key} {node.node_id}"] += 1
        zone = ask.tags.get("zone", "")
        return "another zone" if zone and node.attributes.get("zone") != zone else None


@pytest.fixture(autouse=True)
def _nothing_was_asked() -> None:
    Preferring.asked.clear()
    ByClass.asked.clear()


def zones(policy: type, partition: str, engine: EngineName = "direct", vcore: int = 2) -> Cluster:
    """Return a cluster with three nodes in zones a, b and c."""
    cluster = Cluster({"own": policy}, text(partition=partition), engine=engine)
    for zone in "abc":
        node = {
            "nodeID": f"n{zone}",
            "action": "CREATE",
            "attributes": {"zone": zone},
            "schedulableResource": quantities({"vcore": vcore}),
        }
        cluster.scheduler.update_node(si.NodeRequest(rmID="rm", nodes=[node]))
    cluster.application("app")
    return cluster


def ask(cluster: Cluster, key: str, zone: str = "") -> None:
    new: dict[str, Any] = {
        "allocationKey": key,
        "applicationID": "app",
        "resourcePerAlloc": quantities({"vcore": 1}),
        "allocationTags": {"zone": zone} if zone else {},
    }
    cluster.scheduler.update_allocation(si.AllocationRequest(rmID="rm", allocations=[new]))
    cluster.run()


def node_of(cluster: Cluster, key: str) -> str:
    """Return the node on which an ask was placed."""
    snapshot: Any = cluster.scheduler.snapshot()
    found = [
        node["nodeID"]
        for node in snapshot["nodes"]["default"]
        for allocation in node.get("allocations", ())
        if allocation["allocationKey"] == key
    ]
    return found[0] if found else ""


@pytest.mark.parametrize("engine", ["direct", "actors", "threads"])
def test_each_class_has_an_order_of_nodes(engine: EngineName) -> None:
    """What it prefers is first; without room there, equal nodes are in the order of their names."""
    cluster = zones(Numbered, ORDERED, engine)
    for number, zone in enumerate(["b", "", "b", "b", "c", "a"]):
        ask(cluster, str(number), zone)

    assert [node_of(cluster, str(number)) for number in range(6)] == ["nb", "nc", "nb", "na", "nc", "na"]
    assert not cluster.failures


def test_a_class_is_asked_about_nodes_that_have_changed() -> None:
    cluster = zones(Numbered, ORDERED, vcore=9)
    for number in range(4):
        ask(cluster, str(number), "b")

    assert Preferring.asked == {"b na": 1, "b nb": 4, "b nc": 1}


def test_an_ask_without_an_answer_has_no_class() -> None:
    cluster = zones(Numbered, ORDERED)
    ask(cluster, "bug")

    assert node_of(cluster, "bug") == "nc"
    (failure,) = cluster.failures
    assert (failure.callback, failure.subject) == ("policy own.ask_class", "bug")


@pytest.mark.parametrize("policy", [Preferring, Numbered])
def test_nodes_without_a_key_are_last(policy: type) -> None:
    """A Boolean is no number; all are last then, in the order of their names."""
    cluster = zones(policy, ORDERED)
    ask(cluster, "key", "broken" if policy is Numbered else "b")

    assert node_of(cluster, "key") == "na"
    assert {each.callback for each in cluster.failures} == {"policy own.node_key_for"}


def test_asks_of_more_than_16_classes_are_placed_by_the_order_of_all() -> None:
    """They are counted; after a minute an unused class gives its place to another one."""
    cluster = zones(Numbered, ORDERED, vcore=30)
    for number in range(16):
        ask(cluster, f"first{number}", f"zone-{number}")
    ask(cluster, "more", "b")

    assert node_of(cluster, "more") == "nc"
    (figures,) = cluster.scheduler.figures().policies.values()
    assert figures.without_class == 1
    cluster.scheduler.advance_to(cluster.scheduler.now_ns() + 60_000_000_000)
    ask(cluster, "late", "b")
    assert node_of(cluster, "late") == "nb"


@pytest.mark.parametrize("engine", ["direct", "actors", "threads"])
def test_a_filter_answers_once_for_a_class_and_a_node(engine: EngineName) -> None:
    """Until the node changes."""
    cluster = zones(ByClass, FILTERED, engine)
    for number in range(4):
        ask(cluster, str(number), "c")

    assert [node_of(cluster, str(number)) for number in range(4)] == ["nc", "nc", "", ""]
    assert ByClass.asked["0 na"] + ByClass.asked["0 nb"] == 2
    assert not any(ByClass.asked[f"{number} n{zone}"] for number in (1, 2, 3) for zone in "ab")
    ask(cluster, "other")
    assert node_of(cluster, "other") != ""


@pytest.mark.parametrize("missing", ["ask_class", "node_key_for", "node_key"])
def test_a_method_is_refused_that_needs_another_one(missing: str) -> None:
    methods = {
        name: getattr(Preferring, name)
        for name in ("node_key", "ask_class", "node_key_for")
        if name != missing
    }
    with pytest.raises(LicorneError, match=f"the policy 'own' has .*: expected .*{missing}"):
        Cluster({"own": type("Own", (), methods)}, text())


class Alternating(Numbered):
    """Prefers the node with the fewest placements, which the resource manager never reports."""

    def __init__(self) -> None:
        self.on: Counter[str] = Counter()

    def class_version(self, _: str) -> str:
        return str(self.on.total())

    def node_key_for(self, ask_class: str, node: policies.NodeView) -> float:
        super().node_key_for(ask_class, node)
        return self.on[node.node_id]

    def placed(self, _: policies.AskView, node_id: str) -> None:
        self.on[node_id] += 1


class Confused(Numbered):
    """Answers where nothing is expected, and with a version that is not a text."""

    def class_version(self, _: str) -> Any:
        return 5

    def placed(self, _: policies.AskView, node_id: str) -> Any:
        return node_id


@pytest.mark.parametrize("engine", ["direct", "actors", "threads"])
def test_all_keys_of_a_class_are_asked_for_again_in_a_new_version(engine: EngineName) -> None:
    """Also an ask without a class is reported to the policy once it is placed."""
    cluster = zones(Alternating, ORDERED, engine, vcore=9)
    for number, zone in enumerate(["", "b", "b", "b", "b"]):
        ask(cluster, str(number), zone)

    assert [node_of(cluster, str(number)) for number in range(5)] == ["nc", "na", "nb", "na", "nb"]
    assert Preferring.asked == {"b na": 4, "b nb": 4, "b nc": 4}
    assert not cluster.failures


def test_a_wrong_version_counts_as_unchanged() -> None:
    cluster = zones(Confused, ORDERED, vcore=9)
    for number in range(2):
        ask(cluster, str(number), "b")

    assert Preferring.asked == {"b na": 1, "b nb": 2, "b nc": 1}
    found = {(each.callback, each.subject) for each in cluster.failures}
    assert found == {
        ("policy own.class_version", "b"),
        ("policy own.placed", "0"),
        ("policy own.placed", "1"),
    }
