"""After a recovery the accounts are those from before, whatever the order and the number of requests."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.proxy.knowing_manager import CONFIGURATION, KnowingManager, accounts
from support.proxy.manager_days import Day, days, lived

from licorne import Scheduler
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.wire.client.recovery_parts import RecoveryState

if TYPE_CHECKING:
    from licorne.proxy.core.scheduler.engine_names import EngineName

ENGINES: tuple[EngineName, ...] = ("direct", "actors", "threads")


@pytest.mark.parametrize("engine", ENGINES)
@given(day=days(), batch_max=st.sampled_from([1, 2, 5, 1_000]), rng=st.randoms(use_true_random=False))
@settings(max_examples=30)
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
@settings(max_examples=30)
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
