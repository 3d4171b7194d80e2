"""Filters of a program keep asks from nodes: wherever an ask may get one, and whatever else decides."""

from __future__ import annotations

from typing import Any

import pytest
from support.proxy.listening import Listener
from support.proxy.policy_clusters import HOUR, MIDNIGHT, Cluster, quantities, text

from licorne import policies, si
from licorne.proxy.core.scheduler.engine_names import EngineName

FILTERED = text(partition="policies: {filters: [rack]}")


class Rack:
    """What has a tag runs on the node of that name."""

    def refuses(self, ask: policies.AskView, node: policies.NodeView) -> str | None:
        wanted = ask.tags.get("rack", "")
        return None if wanted in ("", node.node_id) else f"it is for rack {wanted}"


def tagged(cluster: Cluster, key: str, rack: str, *, vcore: int = 1, **fields: Any) -> None:
    """Have an application of that name ask for something on a rack."""
    ask = {
        "allocationKey": key,
        "applicationID": "app",
        "resourcePerAlloc": quantities({"vcore": vcore}),
        "allocationTags": {"rack": rack, **fields.pop("tags", {})},
        **fields,
    }
    cluster.scheduler.update_allocation(si.AllocationRequest(rmID="rm", allocations=[ask]))


def nodes_of(cluster: Cluster) -> dict[str, str]:
    found = cluster.scheduler.explain("app")
    assert found is not None
    return {ask.allocation_key: ask.node_id for ask in found.asks if ask.node_id}


@pytest.mark.parametrize("backfill", ["", "backfill.reservations: '1'", "backfill.reservations: all"])
@pytest.mark.parametrize("engine", ["direct", "actors", "threads"])
def test_an_ask_runs_where_no_filter_refuses_it(engine: EngineName, backfill: str) -> None:
    """The others do not wait for it, and an explanation has the words of the policy."""
    cluster = Cluster(
        {"rack": Rack}, text(partition="policies: {filters: [rack]}", root=backfill), engine=engine
    )
    cluster.nodes(n1={"vcore": 4}, n2={"vcore": 4})
    cluster.application("app", walltime="1h")
    tagged(cluster, "second", "n2")
    tagged(cluster, "nowhere", "n9")
    tagged(cluster, "any", "")

    assert cluster.run() == ["second", "any"]
    assert nodes_of(cluster)["second"] == "n2"
    found = cluster.scheduler.explain("app")
    (why,) = [each for ask in found.asks for each in ask.blockers]
    assert why.detail == "policy rack: it is for rack n9"
    cluster.nodes(n9={"vcore": 1})
    assert cluster.run() == ["nowhere"]
    assert nodes_of(cluster)["nowhere"] == "n9"


@pytest.mark.parametrize("engine", ["direct", "actors", "threads"])
def test_a_gang_is_placed_whole_where_no_filter_refuses_it(engine: EngineName) -> None:
    """Or not at all."""
    configuration = text(partition="policies: {filters: [rack]}", root="gang.placing: whole")
    cluster = Cluster({"rack": Rack}, configuration, engine=engine)
    cluster.nodes(n1={"vcore": 4}, n2={"vcore": 1})
    cluster.application("app", gangSize="2", gangPlacing="whole")
    tagged(cluster, "one", "n2")
    tagged(cluster, "two", "n3")
    assert cluster.run() == []
    (why,) = cluster.blocked("app")
    assert why.startswith("every node with room is refused: policy rack: it is for rack n")
    cluster.nodes(n3={"vcore": 1})
    assert sorted(cluster.run()) == ["one", "two"]
    assert nodes_of(cluster) == {"one": "n2", "two": "n3"}


def test_an_ask_preempts_where_no_filter_refuses_it() -> None:
    """Nothing ends on a node that it could not use."""
    queues = "[{name: a, resources: {guaranteed: {vcore: 2m}}}, {name: b}]"
    configuration = text(queues, partition="policies: {filters: [rack]}", root="preemption.delay: 1s")
    cluster = Cluster({"rack": Rack}, configuration)
    cluster.nodes(n1={"vcore": 1}, n2={"vcore": 1})
    cluster.application("other", "root.b")
    policy: dict[str, Any] = {"preemptionPolicy": {"allowPreemptSelf": True, "allowPreemptOther": True}}
    for key in ("x", "y"):
        ask = {
            "allocationKey": key,
            "applicationID": "other",
            "resourcePerAlloc": quantities({"vcore": 1}),
            **policy,
        }
        cluster.scheduler.update_allocation(si.AllocationRequest(rmID="rm", allocations=[ask]))
    assert cluster.run() == ["x", "y"]
    cluster.application("app", "root.a")
    tagged(cluster, "nowhere", "n9", **policy)
    tagged(cluster, "first", "n1", **policy)
    for second in range(1, 40):
        cluster.scheduler.advance_to(MIDNIGHT + second * 1_000_000_000)
        cluster.run()

    ended = [each for each in cluster.listener.heard if "PREEMPTED" in each]
    assert len(ended) == 1
    assert "x" in ended[0]


def test_an_ask_that_needs_a_node_gets_it_where_no_filter_refuses_it() -> None:
    """It has nothing end there either."""
    cluster = Cluster({"rack": Rack}, FILTERED)
    cluster.nodes(n1={"vcore": 1})
    cluster.application("app")
    tagged(cluster, "usual", "n1", preemptionPolicy={"allowPreemptSelf": True})
    assert cluster.run() == ["usual"]
    tagged(cluster, "daemon", "n2", tags={"yunikorn.apache.org/requiredNode": "n1"}, priority=9)
    for second in range(1, 5):
        cluster.scheduler.advance_to(MIDNIGHT + second * 1_000_000_000)
        cluster.run()

    assert not [each for each in cluster.listener.heard if "PREEMPTED" in each]


def test_filters_and_predicates_must_both_agree() -> None:
    """Predicates that answer at once are asked about what filters let through."""

    class OnlySecond(Listener):
        def predicates(self, args: si.PredicatesArgs) -> None:
            asked.add((args.allocationKey, args.nodeID))
            if args.nodeID != "n2":
                raise RuntimeError("not there")

    asked: set[tuple[str, str]] = set()
    cluster = Cluster({"rack": Rack}, FILTERED, listener=OnlySecond())
    cluster.nodes(n1={"vcore": 4}, n2={"vcore": 4})
    cluster.application("app")
    tagged(cluster, "both", "n2")
    tagged(cluster, "neither", "n1")
    cluster.run()

    assert nodes_of(cluster) == {"both": "n2"}
    assert asked == {("both", "n2"), ("neither", "n1")}


@pytest.mark.parametrize("word", ["time", "outside", "object"])
def test_what_a_filter_refused_is_asked_again(word: str) -> None:
    """After a second: whatever its answer depends on, nothing of it is kept."""

    class Later:
        depends_on = frozenset({word})
        every_ns = HOUR

        def refuses(self, _: policies.AskView, __: policies.NodeView) -> str | None:
            return None if is_open else "not yet"

    is_open = False
    cluster = Cluster({"rack": Later}, FILTERED)
    cluster.nodes(n1={"vcore": 4})
    cluster.application("app")
    tagged(cluster, "key", "")
    assert cluster.run() == []
    is_open = True
    cluster.scheduler.advance_to(MIDNIGHT + 1_000_000_000)
    assert cluster.run() == ["key"]


def test_a_filter_that_raises_refuses() -> None:
    class Broken:
        def refuses(self, _: policies.AskView, node: policies.NodeView) -> str | None:
            if node.node_id == "n1":
                raise RuntimeError("a bug")
            return None

    cluster = Cluster({"rack": Broken}, FILTERED)
    cluster.nodes(n1={"vcore": 4}, n2={"vcore": 4})
    cluster.application("app")
    tagged(cluster, "key", "")
    cluster.run()

    assert nodes_of(cluster) == {"key": "n2"}
    assert [(each.callback, each.subject) for each in cluster.failures] == [
        ("policy rack.refuses", "key on n1")
    ]


def test_a_reload_names_filters_and_drops_them() -> None:
    """While an ask is refused."""
    cluster = Cluster({"rack": Rack}, FILTERED)
    cluster.nodes(n1={"vcore": 4})
    cluster.application("app")
    tagged(cluster, "one", "n2")
    assert cluster.run() == []
    cluster.scheduler.update_configuration(si.UpdateConfigurationRequest(rmID="rm", config=text()))
    assert cluster.run() == ["one"]
    cluster.scheduler.update_configuration(si.UpdateConfigurationRequest(rmID="rm", config=FILTERED))
    tagged(cluster, "two", "n2")
    assert cluster.run() == []


def test_a_node_is_not_reserved_by_an_ask_whose_queue_has_become_a_parent() -> None:
    """It was reserved for an ask that needs it, which a filter refuses there."""
    cluster = Cluster({"rack": Rack}, FILTERED)
    cluster.nodes(n1={"vcore": 1})
    cluster.application("app")
    tagged(cluster, "daemon", "n2", tags={"yunikorn.apache.org/requiredNode": "n1"})
    assert cluster.run() == []
    cluster.application("other", "root.b")
    cluster.ask("key", "other", vcore=1)
    assert cluster.run() == []
    parent = text("[{name: a, queues: [{name: c}]}, {name: b}]")
    cluster.scheduler.update_configuration(si.UpdateConfigurationRequest(rmID="rm", config=parent))

    assert cluster.run() == ["key"]


def test_a_start_is_held_no_longer_where_a_filter_refuses_another_job() -> None:
    """In a queue that backfills what was refused is tried after a second, and what is held at its time."""

    class HalfASecond(Rack):
        def may_start(self, application: policies.ApplicationView, now_ns: int) -> policies.Wait | None:
            is_held = application.application_id == "held" and now_ns < half_ns
            return policies.Wait("not yet", half_ns) if is_held else None

    half_ns = MIDNIGHT + 500_000_000
    configuration = text(
        partition="policies: {filters: [rack], admission: [rack]}", root="backfill.reservations: '1'"
    )
    cluster = Cluster({"rack": HalfASecond}, configuration)
    cluster.nodes(n1={"vcore": 4})
    for name in ("app", "held"):
        cluster.application(name, walltime="1h")
    tagged(cluster, "nowhere", "n9")
    cluster.ask("key", "held", vcore=1)
    assert cluster.run() == []
    assert cluster.scheduler.next_deadline_ns() == half_ns
    cluster.scheduler.advance_to(half_ns)
    cluster.run()

    assert cluster.listener.all("placed ") == ["key"]
