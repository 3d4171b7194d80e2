"""Policies of a program say which work ends for other work, and which is spared for a time."""

from __future__ import annotations

from typing import Any

import pytest
from support.proxy.policy_clusters import MIDNIGHT, Cluster, quantities, text

from licorne import policies, si
from licorne.proxy.core.scheduler.engine_names import EngineName

SECOND = 1_000_000_000
QUEUES = "[{name: a, resources: {guaranteed: {vcore: 1m}}}, {name: b}]"
CHEAPEST = "preemption: {victims: policy/victims}"
SPARED = "policies: {protection: [victims]}"


class Cheapest:
    """What has the smallest price ends first; what has none fails."""

    def victim_cost(self, victim: policies.VictimView, _: int) -> int:
        assert (victim.node_id, victim.queue, victim.user) == ("n1", "root.b", "ada")
        return int(victim.ask.tags["price"])


class Spared:
    """What is dear may not end for ten seconds."""

    def spares(self, victim: policies.VictimView, now_ns: int) -> policies.Wait | None:
        until_ns = victim.bound_at_ns + 10 * SECOND
        dear = victim.ask.tags["price"] == "9"
        return policies.Wait("it is dear", until_ns) if dear and now_ns < until_ns else None


def ask(cluster: Cluster, key: str, application: str, **tags: str) -> None:
    new: dict[str, Any] = {
        "allocationKey": key,
        "applicationID": application,
        "resourcePerAlloc": quantities({"vcore": 1}),
        "allocationTags": tags,
        "preemptionPolicy": {"allowPreemptSelf": True, "allowPreemptOther": True},
    }
    cluster.scheduler.update_allocation(si.AllocationRequest(rmID="rm", allocations=[new]))


def busy(policy: type, partition: str, prices: dict[str, str], engine: EngineName = "direct") -> Cluster:
    """Return a node full of work with prices, and an ask that may have some of it ended."""
    cluster = Cluster(
        {"victims": policy}, text(QUEUES, partition=partition, root="preemption.delay: 1s"), engine=engine
    )
    cluster.nodes(n1={"vcore": len(prices)})
    cluster.application("other", "root.b")
    for key, price in prices.items():
        ask(cluster, key, "other", **({"price": price} if price else {}))
    assert cluster.run() == [*prices]
    cluster.application("app", "root.a")
    ask(cluster, "first", "app")
    return cluster


def ended_by(cluster: Cluster, seconds: int) -> list[str]:
    """Return what has ended by that second after midnight."""
    while cluster.scheduler.now_ns() < MIDNIGHT + seconds * SECOND:
        cluster.scheduler.advance_to(cluster.scheduler.now_ns() + SECOND)
        cluster.run()
    return [each.split()[0] for each in cluster.listener.all("released ")]


@pytest.mark.parametrize("engine", ["direct", "actors", "threads"])
def test_what_costs_least_by_a_policy_ends_first(engine: EngineName) -> None:
    """And the record of it names the policy."""
    cluster = busy(Cheapest, CHEAPEST, {"dear": "9", "cheap": "1", "usual": "5"}, engine)

    assert ended_by(cluster, 3) == ["cheap"]
    found = cluster.scheduler.explain("app")
    assert found is not None
    assert "then what costs least by policy victims (1)" in found.preemptions[0].victims[0].reason
    assert not cluster.failures


def test_what_a_policy_fails_for_ends_last() -> None:
    cluster = busy(Cheapest, CHEAPEST, {"none": "", "usual": "5", "young": ""})

    assert ended_by(cluster, 3) == ["usual"]
    assert {(each.callback, each.subject) for each in cluster.failures} == {
        ("policy victims.victim_cost", "none"),
        ("policy victims.victim_cost", "young"),
    }


@pytest.mark.parametrize("engine", ["direct", "actors", "threads"])
def test_what_a_policy_spares_ends_when_it_says(engine: EngineName) -> None:
    """An explanation says what protects it; what is not spared ends at once."""
    cluster = busy(Spared, SPARED, {"dear": "9"}, engine)

    assert ended_by(cluster, 3) == []
    found = cluster.scheduler.explain("app")
    assert found is not None
    (why,) = [each for each in found.asks[0].blockers if each.reason.name == "PROTECTED"]
    assert why.detail.endswith("the first, dear, by policy victims: it is dear")
    assert why.until_ns == MIDNIGHT + 10 * SECOND
    assert ended_by(cluster, 9) == []
    assert ended_by(cluster, 11) == ["dear"]


def test_others_end_in_place_of_what_is_spared() -> None:
    cluster = busy(Spared, SPARED, {"usual": "5", "dear": "9"})

    assert ended_by(cluster, 3) == ["usual"]


def test_what_is_spared_without_a_time_is_asked_about_again() -> None:
    """After a second, though nothing changes."""

    class Until:
        def spares(self, _: policies.VictimView, __: int) -> policies.Wait | None:
            return policies.Wait("not yet") if is_spared else None

    is_spared = True
    cluster = busy(Until, SPARED, {"dear": "9"})
    assert ended_by(cluster, 2) == []
    is_spared = False
    assert ended_by(cluster, 20) == ["dear"]


def test_what_is_spared_does_not_end_for_a_lowered_maximum() -> None:
    """Until it is spared no longer."""
    partition = f"preemption: {{quotapreemptionenabled: true, enabled: false}}\n    {SPARED}"
    cluster = busy(Spared, partition, {"dear": "9", "more": "9"})
    own = "{name: b, resources: {max: {vcore: 1m}}, properties: {quota.preemption.delay: 1s}}"
    configuration = text(QUEUES.replace("{name: b}", own), partition=partition)
    cluster.scheduler.update_configuration(si.UpdateConfigurationRequest(rmID="rm", config=configuration))

    assert ended_by(cluster, 9) == []
    assert len(ended_by(cluster, 12)) == 1


def test_what_is_spared_does_not_end_for_an_ask_that_needs_its_node() -> None:
    """Until it is spared no longer."""
    partition = f"preemption: {{enabled: false}}\n    {SPARED}"
    cluster = busy(Spared, partition, {"dear": "9"})
    daemon: dict[str, Any] = {
        "allocationKey": "daemon",
        "applicationID": "app",
        "resourcePerAlloc": quantities({"vcore": 1}),
        "allocationTags": {"yunikorn.apache.org/requiredNode": "n1"},
        "priority": 5,
    }
    cluster.scheduler.update_allocation(si.AllocationRequest(rmID="rm", allocations=[daemon]))

    assert ended_by(cluster, 9) == []
    assert ended_by(cluster, 12) == ["dear"]
