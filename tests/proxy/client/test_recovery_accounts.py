"""After a recovery the accounts are those from before, whatever the order and the number of requests."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn
from support.proxy.knowing_manager import (
    CONFIGURATION,
    KnowingManager,
    a_node,
    accounts,
    an_allocation,
    an_application,
)

from licorne import Scheduler
from licorne.proxy.client.recovery import RecoveryState
from licorne.proxy.si import si_pb2 as si

if TYPE_CHECKING:
    from licorne.proxy.scheduler.scheduler import EngineName

ENGINES: tuple[EngineName, ...] = ("direct", "actors", "threads")
_PLACES = (
    {"queue": "root.leaf"},
    {"queue": "root.gangs"},
    {"queue": "", "namespace": "blue"},
    {"queue": "", "namespace": "red"},
    {"queue": "root.leaf", "partition": "second"},
)


@dataclass
class Day:
    """What one resource manager does before the crash."""

    nodes: list[si.NodeInfo]
    applications: list[si.AddApplicationRequest]
    allocations: list[si.Allocation]
    ends: int


@st.composite
def days(draw: DrawFn) -> Day:
    """Draw nodes, applications of several users in all kinds of queues, asks, existing and foreign ones."""
    nodes = []
    for number in range(draw(st.integers(1, 4))):
        partition = draw(st.sampled_from(["", "second"]))
        size, drained = draw(st.integers(20, 80)), draw(st.booleans())
        nodes.append(a_node(f"n{number}", size, partition=partition, drained=drained))
    applications = []
    for number in range(draw(st.integers(1, 5))):
        place: dict[str, Any] = draw(st.sampled_from(_PLACES))
        user = draw(st.sampled_from(["ada", "bob", "eve"]))
        placeholders = 20 if place["queue"] == "root.gangs" else 0
        applications.append(an_application(f"app{number}", **place, user=user, placeholders=placeholders))
    allocations = []
    for number in range(draw(st.integers(0, 16))):
        allocation = _allocation(draw, f"a{number}", draw(st.sampled_from(applications)), nodes)
        allocations.append(allocation)
    return Day(nodes, applications, allocations, draw(st.integers(0, 3)))


def _allocation(
    draw: DrawFn, key: str, application: si.AddApplicationRequest, nodes: list[si.NodeInfo]
) -> si.Allocation:
    size = draw(st.integers(1, 25) | st.sampled_from([10, 20]))
    partition = application.partitionName
    node_ids = [node.nodeID for node in nodes if node.attributes["si/node-partition"] == partition]
    node_id = draw(st.sampled_from(["", *node_ids]))
    if node_id and draw(st.booleans()):
        return an_allocation(key, memory=size, node_id=node_id, partition=partition, foreign=True)
    is_placeholder = application.HasField("placeholderAsk") and draw(st.booleans())
    return an_allocation(
        key,
        application.applicationID,
        size,
        node_id=node_id,
        partition=partition,
        placeholder=is_placeholder,
        task_group="group" if is_placeholder else "",
    )


def lived(day: Day, manager: KnowingManager, scheduler: Scheduler) -> None:
    """Have a manager live a day with a scheduler, until nothing more can be placed."""
    scheduler.register("rm", manager, configuration=CONFIGURATION)
    manager.send(scheduler, nodes=day.nodes, applications=day.applications, allocations=day.allocations)
    scheduler.run_until_idle()
    for key in _ends(manager)[: day.ends]:
        manager.end(scheduler, key)
    scheduler.run_until_idle()


def _ends(manager: KnowingManager) -> list[str]:
    """Return what may end so that each application which has run still runs: that it did is not sent."""
    members = {key: entry for key, entry in sorted(manager.placed.items()) if not entry.placeholder}
    left = Counter(allocation.applicationID for allocation in members.values())
    keys = []
    for key, allocation in members.items():
        if left[allocation.applicationID] > 1 or not allocation.applicationID:
            left[allocation.applicationID] -= 1
            keys.append(key)
    return keys


@pytest.mark.parametrize("engine", ENGINES)
@given(day=days(), batch_max=st.sampled_from([1, 2, 5, 1_000]), rng=st.randoms(use_true_random=False))
@settings(max_examples=30, deadline=None)
def test_a_recovery_restores_all_accounts(
    engine: EngineName, day: Day, batch_max: int, rng: random.Random
) -> None:
    """In one request a kind or in several, whatever the order in which the manager gives what it knows."""
    manager = KnowingManager()
    with Scheduler(engine="direct") as before, Scheduler(engine=engine, stepped=True) as scheduler:
        lived(day, manager, before)
        recovery = manager.recovery(
            scheduler, batch_max=batch_max, order=lambda entries: rng.sample(entries, len(entries))
        )
        recovery.start()
        scheduler.deliver()
        scheduler.validate()

        assert RecoveryState.RUNNING is recovery.state
        assert () == recovery.rejections
        assert accounts(before) == accounts(scheduler)
        assert 0 == scheduler.run_until_idle()


@given(day=days(), rng=st.randoms(use_true_random=False))
@settings(max_examples=30, deadline=None)
def test_any_order_in_which_each_follows_what_it_needs_restores_all_accounts(
    day: Day, rng: random.Random
) -> None:
    """Without the helper: an allocation after its node and its application, and everything else anywhere."""
    manager = KnowingManager()
    with Scheduler(engine="direct") as before, Scheduler(engine="direct") as scheduler:
        lived(day, manager, before)
        scheduler.register("rm", KnowingManager(), configuration=CONFIGURATION)
        for request in _some_order(manager, rng):
            _send(scheduler, request)
        scheduler.deliver()
        scheduler.validate()

        assert accounts(before) == accounts(scheduler)


def _some_order(manager: KnowingManager, rng: random.Random) -> list[Any]:
    """Return all that a manager knows, shuffled as far as what each needs comes before it."""
    waiting: list[Any] = [
        *manager.nodes.values(),
        *manager.applications.values(),
        *manager.placed.values(),
        *manager.asks.values(),
    ]
    rng.shuffle(waiting)
    sent: set[str] = {""}
    order = []
    while waiting:
        entry = next(entry for entry in waiting if _needs(entry) <= sent)
        waiting.remove(entry)
        order.append(entry)
        sent.add(entry.applicationID if isinstance(entry, si.AddApplicationRequest) else "")
        sent.add(entry.nodeID if isinstance(entry, si.NodeInfo) else "")
    return order


def _needs(entry: Any) -> set[str]:
    return {entry.nodeID, entry.applicationID} if isinstance(entry, si.Allocation) else set()


def _send(scheduler: Scheduler, entry: Any) -> None:
    if isinstance(entry, si.NodeInfo):
        scheduler.update_node(si.NodeRequest(rmID="rm", nodes=[entry]))
    elif isinstance(entry, si.AddApplicationRequest):
        scheduler.update_application(si.ApplicationRequest(rmID="rm", new=[entry]))
    else:
        scheduler.update_allocation(si.AllocationRequest(rmID="rm", allocations=[entry]))
