"""Workers, real processes, whose interpreter hangs: pings are answered, and nothing else."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.door.faulty_workers import HANG, HANGS, faulty_interpreter
from support.door.watched_workers import WatchedWorkers
from support.proxy.listening import Listener
from support.proxy.manager_requests import ONE, application_request, ask_request, node_request
from support.waiting import wait_until

from licorne.proxy.base.process import is_compiled
from licorne.proxy.wire.door.door import Door
from licorne.proxy.wire.door.session import SILENCE_SECONDS
from licorne.proxy.wire.door.workers import LinkState, PartitionPlace

pytestmark = pytest.mark.skipif(is_compiled(), reason="machine code does not look its constants up")
SLOW_SECONDS = 60


@pytest.fixture(autouse=True)
def _faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give workers an interpreter that can be held, and let a second of the door pass in less."""
    monkeypatch.setattr(sys, "executable", faulty_interpreter(tmp_path))
    monkeypatch.setattr("licorne.proxy.wire.door.link.TICK_SECONDS", 0.1)


def runs_after(door: Door, number: int) -> PartitionPlace:
    """Wait until the partition runs on a worker after that of a number."""

    def runs() -> bool:
        (place,) = door.places()
        return place.state is LinkState.RUNNING and place.worker_number > number

    wait_until(runs, f"it runs on a worker after {number}", SLOW_SECONDS)
    return door.places()[0]


def test_a_worker_that_hangs_is_killed_and_replaced() -> None:
    """The next one has all, and goes on."""
    workers, listener = WatchedWorkers(), Listener()
    with Door(workers) as door:
        door.register("rm", listener, configuration=ONE)
        door.update_node(node_request("node"))
        door.update_application(application_request("app"))
        listener.wait_for("accepted node", "accepted app")
        (before,) = door.places()
        workers.signal(before, HANG)
        door.update_allocation(ask_request("one"))
        after = runs_after(door, before.worker_number)
        wait_until(lambda: "placed one" in listener.heard, "it is placed", SLOW_SECONDS)
        wait_until(lambda: not workers.is_alive(before), "it is killed", SLOW_SECONDS)

    assert f"the worker has given no sign of life for {SILENCE_SECONDS} s" in after.reason


@pytest.mark.soak
def test_a_request_that_holds_two_workers_is_not_given_to_the_third() -> None:
    """The RM hears that it is rejected, and why."""
    listener = Listener()
    with Door(WatchedWorkers()) as door:
        door.register("rm", listener, configuration=ONE)
        door.update_node(node_request("node"))
        listener.wait_for("accepted node")
        wait_until(lambda: not len(door._managers.links()[0]._under_way), "all is carried out", SLOW_SECONDS)
        door.update_application(application_request(HANGS))
        runs_after(door, 2)
        door.update_application(application_request("app"))
        door.update_allocation(ask_request("one"))
        wait_until(lambda: "placed one" in listener.heard, "it is placed", SLOW_SECONDS)
        numbers = [place.worker_number for place in door.places()]

    (reason,) = listener.all(f"rejected {HANGS}: ")
    assert "two workers in a row were lost" in reason
    assert [3] == numbers
