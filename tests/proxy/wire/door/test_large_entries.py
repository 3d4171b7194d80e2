"""Partitions that hold more than one message may have, and entries that no message may have."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.door.thread_workers import ThreadWorkers
from support.proxy.listening import Listener
from support.proxy.manager_requests import ONE, application_request, ask_request, node_request
from support.waiting import wait_until

from licorne import RequestError
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.wire.door.door import Door
from licorne.proxy.wire.door.routing import ENTRY_BYTES_MAX
from licorne.proxy.wire.door.workers import LinkState

MIB = 1 << 20


@pytest.fixture
def workers() -> ThreadWorkers:
    """Return what starts the workers."""
    return ThreadWorkers()


@pytest.fixture
def listener() -> Listener:
    """Return a resource manager."""
    return Listener()


@pytest.fixture
def door(workers: ThreadWorkers, listener: Listener) -> Iterator[Door]:
    """Return a door with a node, and an application."""
    with Door(workers, start_timeout_seconds=10) as door:
        door.register("rm", listener, configuration=ONE)
        door.update_node(node_request("n1", memory=3))
        door.update_application(application_request("app"))
        listener.wait_for("accepted app")
        yield door


def large_ask(key: str, size_bytes: int) -> si.AllocationRequest:
    """Return an ask with a long tag."""
    request = ask_request(key)
    request.allocations[0].allocationTags["note"] = "x" * size_bytes
    return request


def test_a_partition_that_holds_more_than_a_message_is_recovered(
    door: Door, listener: Listener, workers: ThreadWorkers
) -> None:
    """On the next worker, which takes all of it: what runs, and what waits."""
    for number in range(18):
        door.update_allocation(large_ask(f"k{number}", MIB))
    listener.wait_for_count("placed ", 3)
    workers.end("default")
    wait_until(lambda: [place.worker_number for place in door.places()] == [2], "another worker has it")
    wait_until(lambda: door.places()[0].state is LinkState.RUNNING, "it has recovered")

    door.update_node(node_request("n2"))
    listener.wait_for_count("placed ", 18)
    assert ["default"] == [worker.partition for worker in workers.lost_workers]


def test_an_entry_that_no_recovery_could_send_is_refused(door: Door, listener: Listener) -> None:
    """With its name and its size, and with its request as a whole; nothing of it is noted."""
    request = large_ask("huge", ENTRY_BYTES_MAX)
    request.allocations.add().CopyFrom(ask_request("small").allocations[0])

    with pytest.raises(RequestError, match=r"allocation 'huge' has 4,194,\d+ bytes, more than the 4,194,304"):
        door.update_allocation(request)

    door.update_allocation(ask_request("next"))
    listener.wait_for("placed next")
    assert ["next"] == listener.all("placed ")


def test_a_request_that_no_worker_takes_at_once_is_refused(door: Door) -> None:
    """Its entries may come in several requests."""
    request = si.AllocationRequest(rmID="rm")
    for number in range(6):
        request.MergeFrom(large_ask(f"k{number}", 3 * MIB))

    with pytest.raises(RequestError, match=r"it has 18,\d+,\d+ bytes, and a worker takes 16,777,152 at once"):
        door.update_allocation(request)
