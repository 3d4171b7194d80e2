"""Resource managers (RMs) that register at a door while a worker does not come: others do not wait for it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import final

import pytest
from support.door.thread_workers import ThreadWorkers
from support.proxy.listening import WAIT_SECONDS, Listener
from support.proxy.manager_requests import ONE, configuration_request, node_request
from support.proxy.waiting import wait_until

from licorne import RequestError
from licorne.model.errors import LicorneError
from licorne.model.values.manager_state import ManagerState
from licorne.proxy.door.door import Door
from licorne.proxy.door.workers import LaunchedWorker

SLOW = ONE.replace("name: default", "name: slow")


@final
class SlowWorkers:
    """A launcher whose worker for the partition `slow` does not come before `comes` is set."""

    def __init__(self) -> None:
        self._workers = ThreadWorkers()
        self.comes = threading.Event()
        self.is_waiting = threading.Event()
        self._stopped = threading.Event()

    def start(self, partition: str, given_up: threading.Event) -> LaunchedWorker:
        """Start a server, at once or later."""
        self.is_waiting.set()
        while partition == "slow" and not self.comes.wait(0.01):
            if given_up.is_set() or self._stopped.is_set():
                raise LicorneError("nobody waits for the worker any more")
        return self._workers.start(partition, given_up)

    def lost(self, worker: LaunchedWorker) -> None:
        """Note that a worker is lost."""
        self._workers.lost(worker)

    def stop(self) -> None:
        """End all servers."""
        self._stopped.set()
        self._workers.stop()


@pytest.fixture
def workers() -> SlowWorkers:
    """Return what starts the workers."""
    return SlowWorkers()


@pytest.fixture
def door(workers: SlowWorkers) -> Iterator[Door]:
    """Return a door."""
    with Door(workers) as door:
        yield door


@pytest.fixture
def registering(door: Door, workers: SlowWorkers) -> Iterator[Future[None]]:
    """Return the registration of an RM that waits for its worker."""
    with ThreadPoolExecutor(1) as threads:
        future = threads.submit(door.register, "slow", Listener(), configuration=SLOW)
        assert workers.is_waiting.wait(WAIT_SECONDS)
        yield future
        workers.comes.set()


def test_an_rm_lives_while_another_one_waits_for_its_worker(
    door: Door, workers: SlowWorkers, registering: Future[None]
) -> None:
    """It registers, changes, is paused, stopped and forgotten."""
    door.register("rm", Listener(), configuration=ONE)
    door.update_configuration(
        configuration_request(ONE.replace("{name: leaf}", "{name: leaf}, {name: more}"))
    )
    assert door.pause_manager("rm", "a test")
    assert door.stop_manager("rm", "a test")
    door.forget_manager("rm")
    assert not registering.done()

    workers.comes.set()
    registering.result(WAIT_SECONDS)
    assert [("slow", ManagerState.RUNNING)] == [(each.rm_id, each.state) for each in door.resource_managers()]


def test_a_door_stops_while_an_rm_waits_for_its_worker(door: Door, registering: Future[None]) -> None:
    """The registration fails, and no thread of a link is left."""
    door.stop()
    with pytest.raises(RequestError, match="has been stopped"):
        registering.result(WAIT_SECONDS)
    wait_until(
        lambda: not [each for each in threading.enumerate() if each.name.startswith("licorne-link-")],
        "the threads of the links have ended",
    )


def test_callbacks_of_two_registrations_do_not_overlap(door: Door) -> None:
    """One that registers again inside a callback is called back when that callback has ended."""
    first, second = Listener(), Listener()
    ended: list[int] = []

    def register(_: str) -> None:
        first.react = lambda _: None
        door.register("rm", second, configuration=ONE)
        door.update_node(node_request("again"))
        assert not second.hears(lambda: bool(second.heard), 0.05), "the first callback has not ended"
        ended.append(len(second.heard))

    first.react = register
    door.register("rm", first, configuration=ONE)
    door.update_node(node_request("node"))
    second.wait_for("accepted again")

    assert [0] == ended
