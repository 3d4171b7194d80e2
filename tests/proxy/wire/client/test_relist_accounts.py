"""After a relist the accounts are those of a scheduler that has been told the same from the beginning."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any, Final, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn
from support.proxy.knowing_manager import KnowingManager, accounts
from support.proxy.manager_days import Day, days
from support.proxy.noting_scheduler import Noting

from licorne import Recovery, RemoteScheduler, Scheduler
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.wire.client.recovery_parts import RecoveryState
from licorne.proxy.wire.server.server import ServerSettings, ServerThread

T = TypeVar("T")
SCHEDULERS: Final = ("direct", "actors", "threads", "remote")
EXAMPLES: Final = 30


@contextmanager
def stepped(kind: str) -> Iterator[Any]:
    """Give a stepped scheduler, in this process or behind a server."""
    if kind != "remote":
        engine: Any = kind
        with Scheduler(engine=engine, stepped=True) as scheduler:
            yield scheduler
        return
    with (
        Scheduler(engine="direct") as served,
        ServerThread(served, ServerSettings()) as server,
        RemoteScheduler(server.address) as scheduler,
    ):
        yield scheduler


@st.composite
def changes(draw: DrawFn) -> tuple[Day, KnowingManager]:
    """Draw a day, and what is there after it: some of what there was, perhaps changed, and something new."""
    before, after = draw(days()), draw(days())
    truth = KnowingManager()
    truth.know(nodes=[*after.nodes, *_some(draw, before.nodes)])
    for node in truth.nodes.values():
        node.action = draw(st.sampled_from([si.NodeInfo.CREATE, si.NodeInfo.CREATE_DRAIN]))
    truth.know(applications=[*after.applications, *_some(draw, before.applications)])
    for application in before.applications:
        now = truth.applications.get(application.applicationID)
        if now is not None and now.partitionName == application.partitionName:
            now.CopyFrom(application)  # Its queue and its user stay what they were.
    owners = {entry.allocationKey: entry.applicationID for entry in before.allocations}
    for allocation in after.allocations:
        if owners.get(allocation.allocationKey) == allocation.applicationID != "":
            allocation.allocationKey += " anew"  # Of one application and key it would be the same.
    for allocation in (*after.allocations, *_some(draw, before.allocations)):
        _find(draw, truth, allocation)
    return before, truth


def _some(draw: DrawFn, entries: Iterable[T]) -> list[T]:
    return [deepcopy(entry) for entry in entries if draw(st.integers(0, 3))]


def _find(draw: DrawFn, truth: KnowingManager, allocation: si.Allocation) -> None:
    """Have the manager know an allocation or an ask if it may be there, perhaps elsewhere or larger."""
    is_foreign, partition = not allocation.applicationID, allocation.partitionName
    application = truth.applications.get(allocation.applicationID)
    is_placeable = is_foreign or (application is not None and application.partitionName == partition)
    nodes = [node.nodeID for node in truth.nodes.values() if partition_of(node) == partition]
    places = nodes if is_foreign else ["", *nodes]
    if allocation.allocationKey in {**truth.placed, **truth.asks} or not (is_placeable and places):
        return
    if allocation.nodeID not in places or draw(st.booleans()):
        allocation.nodeID = draw(st.sampled_from(places))
    if draw(st.integers(0, 3)) == 0:
        allocation.resourcePerAlloc.resources["memory"].value = draw(st.integers(1, 25))
    truth.know(allocations=[allocation])


def partition_of(node: si.NodeInfo) -> str:
    return node.attributes["si/node-partition"]


def lived(day: Day, manager: KnowingManager, scheduler: Noting, batch_max: int) -> Recovery:
    """Have a manager begin with nothing and live a day, until nothing more can be placed."""
    recovery = manager.recovery(scheduler, batch_max=batch_max)
    recovery.start()
    door: Any = recovery
    manager.send(door, nodes=day.nodes, applications=day.applications, allocations=day.allocations)
    scheduler.scheduler.run_until_idle()
    return recovery


def note_placements(truth: KnowingManager, before: KnowingManager) -> None:
    """Have a manager know which of its asks the scheduler has placed where they may stay."""
    for key, ask in [*truth.asks.items()]:
        placed = before.placed.get(key, si.Allocation())
        node = truth.nodes.get(placed.nodeID, si.NodeInfo())
        is_same = placed.applicationID == ask.applicationID and placed.partitionName == ask.partitionName
        if is_same and placed.nodeID == node.nodeID and partition_of(node) == ask.partitionName:
            ask.nodeID = placed.nodeID
            truth.placed[key] = truth.asks.pop(key)


def comparable(scheduler: Scheduler) -> Any:
    """Return the accounts, without those of what has ended, and without who has run before."""
    snapshot: Any = scheduler.snapshot()
    return {
        "queues": {name: dict(_queues(root)) for name, root in snapshot["queues"].items()},
        "users": {name: dict(_usages(owners, "userName")) for name, owners in snapshot["users"].items()},
        "groups": {name: dict(_usages(owners, "groupName")) for name, owners in snapshot["groups"].items()},
        "nodes": accounts(scheduler)["nodes"],
        "applications": {
            name: {entry["applicationID"]: _application(entry) for entry in entries if _is_active(entry)}
            for name, entries in snapshot["applications"].items()
        },
    }


def _queues(queue: Any) -> Iterator[tuple[str, Any]]:
    amounts = [queue.get(f"{kind}Resource") for kind in ("allocated", "pending")]
    if queue["isManaged"] or any(amounts):
        yield queue["queuename"], amounts
    for child in queue.get("children", []):
        yield from _queues(child)


def _usages(owners: Any, name: str) -> Iterator[tuple[tuple[str, str], Any]]:
    for owner in owners:
        levels = [owner["queues"]]
        for level in levels:
            levels += level.get("children", [])
            if any(level.get("resourceUsage", {}).values()):
                yield (owner[name], level["queuePath"]), level["resourceUsage"]


def _application(entry: Any) -> Any:
    keys = ("queueName", "usedResource", "pendingResource", "user", "groups")
    asks = {
        kind: sorted(ask["allocationKey"] for ask in entry.get(kind, []))
        for kind in ("allocations", "requests")
    }
    return [entry.get(key) for key in keys], asks


def _is_active(entry: Any) -> bool:
    return entry["applicationState"] not in ("Completed", "Failed", "Rejected")


# ------------------------------------------------------------------------------------------- the tests


@pytest.mark.parametrize("kind", SCHEDULERS)
@given(change=changes(), batch_max=st.sampled_from([1, 3, 1_000]))
@settings(max_examples=EXAMPLES)
def test_a_relist_leads_to_the_accounts_of_a_recovery(
    kind: str, change: tuple[Day, KnowingManager], batch_max: int
) -> None:
    """From any state to any other one; and a second relist has nothing to send."""
    day, truth = change
    manager = KnowingManager()
    with stepped(kind) as scheduler, Scheduler(engine="direct") as fresh:
        noting = Noting(scheduler)
        recovery = lived(day, manager, noting, batch_max)
        truth.relist(recovery)
        scheduler.deliver()
        scheduler.validate()
        note_placements(truth, manager)
        expected = truth.recovery(fresh)
        expected.start()
        fresh.deliver()

        assert (RecoveryState.RUNNING, ()) == (recovery.state, recovery.rejections)
        assert comparable(fresh) == comparable(scheduler)

        noting.sent.clear()
        truth.relist(recovery)
        scheduler.deliver()

        assert (RecoveryState.RUNNING, []) == (recovery.state, noting.sent)
