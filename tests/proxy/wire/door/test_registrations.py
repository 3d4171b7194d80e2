"""Resource managers (RMs) that register at a door while a worker does not come: others do not wait for it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, final

import grpc
import pytest
from support.door.thread_workers import ThreadWorkers
from support.proxy.listening import Listener
from support.proxy.manager_requests import ONE, TWO, configuration_request, node_request
from support.waiting import WAIT_SECONDS, stays, wait_until

from licorne import RemoteScheduler, Scheduler
from licorne.model.errors import LicorneError
from licorne.model.values.states import ManagerState
from licorne.proxy.core.scheduler.answering.questions import UnavailableError
from licorne.proxy.si import licorne_v1_pb2 as v1
from licorne.proxy.wire.client.connection import Connection
from licorne.proxy.wire.door.door import Door
from licorne.proxy.wire.door.workers import LaunchedWorker
from licorne.proxy.wire.server.calls import status_of
from licorne.proxy.wire.server.server import ServerThread

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
        if partition == "slow":
            wait_until(lambda: any(each.is_set() for each in (self.comes, given_up, self._stopped)))
            if not self.comes.is_set():
                raise LicorneError("nobody waits for the worker any more")
        return self._workers.start(partition, given_up)

    def lost(self, worker: LaunchedWorker) -> None:
        """Note that a worker is lost."""
        self._workers.lost(worker)

    def stop(self) -> None:
        """End all servers."""
        self._stopped.set()
        self._workers.stop()


@final
class DyingWorkers:
    """A launcher whose first workers die while they start.

    Args:
        count: How many.
    """

    def __init__(self, count: int) -> None:
        self._workers = ThreadWorkers()
        self.left = count
        self.lost, self.stop = self._workers.lost, self._workers.stop

    def start(self, partition: str, given_up: threading.Event) -> LaunchedWorker:
        """Start a server, unless it dies."""
        if self.left > 0:
            self.left -= 1
            raise LicorneError("a worker ended by signal 9 before it listened")
        return self._workers.start(partition, given_up)


def test_a_worker_that_dies_while_it_starts_is_replaced() -> None:
    """The system may have killed it for its memory: the registration is as good as before."""
    workers = DyingWorkers(1)
    with Door(workers) as door:
        door.register("rm", Listener(), configuration=ONE)
        assert (0, ["rm"]) == (workers.left, [each.rm_id for each in door.resource_managers()])


def test_a_new_partition_whose_worker_dies_while_it_starts_gets_another_one() -> None:
    """A reload tries again as a registration does."""
    workers = DyingWorkers(0)
    with Door(workers) as door:
        door.register("rm", Listener(), configuration=ONE)
        workers.left = 1
        door.update_configuration(configuration_request(TWO))
        assert ["default", "second"] == [place.partition for place in door.places()]


def test_a_registration_whose_workers_all_die_may_be_tried_again() -> None:
    """Its status is not that of a wrong request, and its text says why there is no worker."""
    with Door(DyingWorkers(10**6), start_timeout_seconds=0.2) as door:
        with pytest.raises(UnavailableError) as caught:
            door.register("rm", Listener(), configuration=ONE)

        said = status_of(caught.value)
    text = "registration of RM failed: partition 'default' has no worker within 0.2 s: "
    assert (grpc.StatusCode.UNAVAILABLE, f"{text}a worker ended by signal 9 before it listened") == said


def test_a_client_waits_as_long_as_a_door_may_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """A registration takes as long as the start of the workers, up to 60 s; other calls wait less."""
    waited: dict[str | None, float] = {}

    def call_later(self: Connection, message: v1.ManagerMessage, *others: Any) -> Future[v1.Answer]:
        waited[message.WhichOneof("body")] = others[-1] if others else 0.0
        return known(self, message, *others)

    known = Connection.call_later
    monkeypatch.setattr(Connection, "call_later", call_later)
    with ServerThread(Scheduler()) as server, RemoteScheduler(server.address) as client:
        client.register("rm", Listener(), configuration=ONE)

    assert waited["register"] > 60 > waited["goodbye"]


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
    with pytest.raises(UnavailableError, match="the door has been stopped"):
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
        assert stays(lambda: not second.heard, 0.05), "the first callback has not ended"
        ended.append(len(second.heard))

    first.react = register
    door.register("rm", first, configuration=ONE)
    door.update_node(node_request("node"))
    second.wait_for("accepted again")

    assert [0] == ended
