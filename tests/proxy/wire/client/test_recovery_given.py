"""In which form a recovery may be given what a resource manager knows, and which partitions it registers."""

from __future__ import annotations

from typing import Any

import pytest
from support.proxy.knowing_manager import (
    CONFIGURATION,
    KnowingManager,
    a_node,
    an_allocation,
    an_application,
)
from support.proxy.noting_scheduler import Noting

from licorne import Recovery, RequestError, Scheduler
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.wire.client.recovery_parts import RecoveryState

REGISTRATION = si.RegisterResourceManagerRequest(rmID="rm", config=CONFIGURATION)
PLACED = [an_allocation("a", node_id="n1"), an_allocation("theirs", node_id="n1", foreign=True)]


def recovery_of(scheduler: Any, **given: Any) -> Recovery:
    everything: dict[str, Any] = {"nodes": [a_node("n1")], "applications": [an_application("app")]}
    return Recovery(scheduler, REGISTRATION, KnowingManager(), **(everything | given))


@pytest.mark.parametrize(
    "of", [lambda each: each, si.Allocation.SerializeToString], ids=["messages", "bytes"]
)
def test_allocations_and_asks_may_be_messages_or_bytes_of_any_iterable(scheduler: Noting, of: Any) -> None:
    """They are read once, and the program may do with them what it wants afterwards."""
    allocations, asks = map(of, map(copied, PLACED)), map(of, [an_allocation("waits")])
    recovery = recovery_of(scheduler, allocations=allocations, asks=asks)
    recovery.start()
    scheduler.scheduler.run_until_idle()

    assert (RecoveryState.RUNNING, ()) == (recovery.state, recovery.rejections)
    assert [
        "register",
        "n1 CREATE_DRAIN",
        "app",
        "a on n1, theirs on n1, licorne-recovery [rm]default on none",
        "n1 DRAIN_TO_SCHEDULABLE",
        "waits on none",
    ] == scheduler.sent


def copied(message: si.Allocation) -> si.Allocation:
    return si.Allocation.FromString(message.SerializeToString())


def test_what_is_listed_anew_may_be_bytes(scheduler: Noting) -> None:
    """What is the same is not sent; what has another size is."""
    recovery = recovery_of(scheduler, allocations=PLACED)
    recovery.start()
    scheduler.scheduler.run_until_idle()
    scheduler.sent.clear()
    larger = an_allocation("a", memory=20, node_id="n1")
    recovery.relist(
        nodes=[a_node("n1")],
        applications=[an_application("app")],
        allocations=[entry.SerializeToString() for entry in (larger, PLACED[1])],
    )
    scheduler.scheduler.run_until_idle()

    assert ["app", "a on n1"] == scheduler.sent


def test_the_allocations_of_an_application_are_sent_one_after_the_other(scheduler: Noting) -> None:
    """A scheduler recovers them in one step then; each application keeps the order of its own."""
    recovery = recovery_of(
        scheduler,
        applications=[an_application("app"), an_application("other")],
        allocations=[
            an_allocation(f"{name}-{number}", name, 1, node_id="n1")
            for number in (2, 1)
            for name in ("other", "app")
        ],
    )
    recovery.start()
    scheduler.scheduler.run_until_idle()

    assert "other-2 on n1, other-1 on n1, app-2 on n1, app-1 on n1" == scheduler.sent[3]


def test_some_partitions_of_a_configuration_may_be_registered() -> None:
    """The others are not made; a name that the configuration does not have is refused."""
    with Scheduler(engine="direct") as scheduler:
        with pytest.raises(RequestError, match="nowhere"):
            recovery_of(scheduler, partitions=["nowhere"]).start()
        recovery = recovery_of(scheduler, allocations=PLACED, partitions=["default"])
        recovery.start()
        scheduler.run_until_idle()
        snapshot: Any = scheduler.snapshot()

    assert RecoveryState.RUNNING is recovery.state
    assert ["default"] == [entry["name"] for entry in snapshot["partitions"]]
