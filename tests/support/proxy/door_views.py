"""The view of a door over schedulers of this process, each behind a REST server of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, Final

import httpx
from support.proxy.manager_requests import TWO, application_request, ask_request, node_request
from support.waiting import WAIT_SECONDS, wait_until

from licorne import ResourceManager, Scheduler
from licorne.model.configuration.extra import ExtraConfig
from licorne.proxy.core.metrics.figures import Metrics
from licorne.proxy.core.scheduler.managers.manager_life import ManagerStatus
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.views.rest.running import RestServer, RestSettings
from licorne.proxy.wire.door.view.application import DoorRest
from licorne.proxy.wire.door.workers import LinkState, PartitionPlace

PARTITIONS: Final = ("default", "second")


def place_at(rest_address: str, partition: str = "default", rm_id: str = "rm") -> PartitionPlace:
    """Return the place of a partition that runs."""
    return PartitionPlace(
        rm_id=rm_id,
        partition=partition,
        state=LinkState.RUNNING,
        since_ns=1_700_000_000 * 10**9,
        reason="",
        address="127.0.0.1:3333",
        rest_address=rest_address,
        worker_number=1,
        waiting=0,
    )


class StandingDoor:
    """A door whose places are those that a test says; the rest one scheduler answers."""

    def __init__(self, scheduler: Scheduler, places: Sequence[PartitionPlace]) -> None:
        self._scheduler = scheduler
        self.standing = tuple(places)
        self.metrics: Metrics = scheduler.metrics

    def places(self) -> tuple[PartitionPlace, ...]:
        return self.standing

    def change(self, partition: str, **changes: Any) -> None:
        """Change the place of a partition."""
        self.standing = tuple(
            replace(each, **changes) if each.partition == partition else each for each in self.standing
        )

    def resource_managers(self) -> tuple[ManagerStatus, ...]:
        return self._scheduler.resource_managers()

    def callbacks_waiting(self, rm_id: str) -> int:
        return self._scheduler.callbacks_waiting(rm_id)

    def configuration_text(self, rm_id: str) -> str:
        return self._scheduler.configuration_text(rm_id)

    def extra_configuration(self, rm_id: str) -> ExtraConfig:
        return self._scheduler.extra_configuration(rm_id)


def filled(scheduler: Scheduler, partitions: Sequence[str], rm_id: str = "rm") -> Scheduler:
    """Register an RM that has some of the partitions, with nodes, applications, and asks that wait."""
    request = si.RegisterResourceManagerRequest(
        rmID=rm_id, config=TWO, buildInfo={"version": "7"}, extraConfig={"event.trackingEnabled": "true"}
    )
    scheduler.register_resource_manager(request, ResourceManager(), partitions=[*partitions])
    for name in partitions:
        start = f"{rm_id}-{name}"
        scheduler.update_node(node_request(f"{start}-n1", f"{start}-n2", rm_id=rm_id, partition=name))
        scheduler.update_application(
            application_request(f"{start}-app", f"{start}-new", rm_id=rm_id, partition=name)
        )
        scheduler.run_until_idle()
        for ask in range(4 + PARTITIONS.index(name)):
            scheduler.update_allocation(
                ask_request(
                    f"{start}-{ask}", application=f"{start}-app", rm_id=rm_id, partition=name, memory=45
                )
            )
        scheduler.run_until_idle()
    return scheduler


class Both:
    """One scheduler with all partitions, and a door over two workers with a half each; each with a client."""

    def __init__(self, one: httpx.Client, door: httpx.Client, standing: StandingDoor) -> None:
        self.one = one
        self.door = door
        self.standing = standing


@contextmanager
def viewed(door: StandingDoor, settings: RestSettings | None = None) -> Iterator[httpx.Client]:
    """Serve the view of a door, and give a client of it."""
    with (
        DoorRest(door, settings) as server,
        httpx.Client(base_url=f"http://127.0.0.1:{server.port}", timeout=WAIT_SECONDS) as client,
    ):
        yield client


@contextmanager
def half_each(rm_ids: Sequence[str] = ("rm",)) -> Iterator[Both]:
    """Give the same state behind one scheduler and behind a door over two."""
    with ExitStack() as stack:

        def serve(partitions: Sequence[str]) -> tuple[Scheduler, str]:
            scheduler = stack.enter_context(Scheduler(engine="direct"))
            for rm_id in rm_ids:
                filled(scheduler, partitions, rm_id)
            scheduler.record_history()
            scheduler.check_health()
            server = stack.enter_context(RestServer(scheduler))
            return scheduler, f"127.0.0.1:{server.port}"

        one, address = serve(PARTITIONS)
        rest = {name: serve([name])[1] for name in PARTITIONS}
        places = [place_at(rest[name], name, rm_id) for rm_id in rm_ids for name in PARTITIONS]
        standing = StandingDoor(one, places)
        door = stack.enter_context(viewed(standing))
        client = httpx.Client(base_url=f"http://{address}", timeout=WAIT_SECONDS)
        yield Both(stack.enter_context(client), door, standing)


class LiveWorkers:
    """Two workers of this process, a door over them, and how one is replaced."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.default, address = self.start("default")
        self.second, other = self.start("second")
        self.door = StandingDoor(self.default, [place_at(address), place_at(other, "second")])

    def start(self, partition: str) -> tuple[Scheduler, str]:
        scheduler = self._stack.enter_context(Scheduler())
        _begin(scheduler, partition)
        server = self._stack.enter_context(RestServer(scheduler))
        return scheduler, f"127.0.0.1:{server.port}"

    def lose_second(self) -> None:
        """Lose the worker of `second`."""
        lost = {"state": LinkState.STARTING, "rest_address": "", "reason": "killed"}
        self.door.change("second", since_ns=5_000_000_000, **lost)

    def replace_second(self) -> None:
        """Lose the worker of `second`, and have another one."""
        self.lose_second()
        self.second, address = self.start("second")
        self.door.change("second", state=LinkState.RUNNING, rest_address=address, reason="")


def _begin(scheduler: Scheduler, partition: str) -> None:
    scheduler.register("rm", ResourceManager(), configuration=TWO, partitions=[partition])
    scheduler.update_node(node_request(f"{partition}-1", partition=partition))
    wait_until(lambda: f"{partition}-1" in str(scheduler.snapshot()), "the node is there")
