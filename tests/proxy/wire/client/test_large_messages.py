"""What is more than a server takes at once: divided where it can be, and refused in the client where not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.proxy.knowing_manager import CONFIGURATION, a_node, an_allocation, an_application
from support.proxy.listening import Listener
from support.proxy.manager_requests import ONE, application_request, ask_request, node_request
from support.proxy.served import served
from support.waiting import WAIT_SECONDS

from licorne import Recovery, RemoteScheduler, RequestError
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.si.messages import MESSAGE_BYTES_MAX
from licorne.proxy.wire.client.recovery_parts import RecoveryState

MIB = 1 << 20


@pytest.fixture
def scheduler() -> Iterator[RemoteScheduler]:
    """Return a client of a real server."""
    with served() as server, RemoteScheduler(server.address) as scheduler:
        yield scheduler


def large(key: str, size_bytes: int, node_id: str = "") -> si.Allocation:
    """Return an ask or allocation with a long tag."""
    allocation = an_allocation(key, node_id=node_id)
    allocation.allocationTags["note"] = "x" * size_bytes
    return allocation


def recovery(scheduler: RemoteScheduler, *entries: si.Allocation) -> Recovery:
    """Return a recovery of asks and allocations."""
    return Recovery(
        scheduler,
        si.RegisterResourceManagerRequest(rmID="rm", config=CONFIGURATION),
        Listener(),
        nodes=[a_node("n1", memory=1_000)],
        applications=[an_application("app")],
        allocations=[each for each in entries if each.nodeID],
        asks=[each for each in entries if not each.nodeID],
    )


def test_a_recovery_of_more_than_a_message_comes_to_its_end(scheduler: RemoteScheduler) -> None:
    """18 entries, far fewer than `batch_max`, have 18 MiB together."""
    entries = [large(f"k{number}", MIB, node_id="n1" if number < 9 else "") for number in range(18)]
    recovered = recovery(scheduler, *entries)
    recovered.start()

    assert RecoveryState.RUNNING is recovered.wait(WAIT_SECONDS)
    assert () == recovered.rejections


def test_an_entry_that_no_message_can_have_fails_the_recovery(scheduler: RemoteScheduler) -> None:
    """The text names it. The session goes on: it would be lost again and again otherwise."""
    recovered = recovery(scheduler, large("small", 10, "n1"), large("huge", MESSAGE_BYTES_MAX, "n1"))
    recovered.start()

    assert RecoveryState.FAILED is recovered.wait(WAIT_SECONDS)
    assert "allocation 'huge' has 16,777," in recovered.failure
    assert "a server takes 16,777,216 bytes in one message" in recovered.failure
    assert scheduler.is_connected


def test_a_request_that_is_too_large_is_refused_before_it_is_sent(scheduler: RemoteScheduler) -> None:
    """What is sent after it arrives."""
    listener = Listener()
    scheduler.register("rm", listener)
    request = si.AllocationRequest(rmID="rm", allocations=[large("huge", MESSAGE_BYTES_MAX)])

    with pytest.raises(RequestError, match=r"update_allocation of 16,777,\d+ bytes is not sent.*'huge' has"):
        scheduler.update_allocation(request)

    scheduler.update_node(node_request("n1"))
    listener.wait_for("accepted n1")


def test_requests_that_follow_each_other_are_not_merged_into_one_that_is_too_large(
    scheduler: RemoteScheduler,
) -> None:
    """20 requests of 1 MiB, sent at once."""
    listener = Listener()
    scheduler.register("rm", listener, configuration=ONE)
    scheduler.update_node(node_request("n1", memory=1_000))
    scheduler.update_application(application_request("app"))
    listener.wait_for("accepted app")
    for number in range(20):
        scheduler.update_allocation(si.AllocationRequest(rmID="rm", allocations=[large(f"k{number}", MIB)]))
    scheduler.update_allocation(ask_request("last"))

    listener.wait_for_count("placed ", 21)
