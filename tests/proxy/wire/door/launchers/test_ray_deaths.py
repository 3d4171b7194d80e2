"""Parts of a cluster of Ray die while a door is at work (`make test-ray`); each test has its own cluster."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Final

import pytest
from support.proxy.listening import Listener
from support.proxy.manager_requests import TWO, application_request, ask_request, node_request
from support.proxy.ray_cluster import RayCluster, ray_cluster
from support.proxy.worker_processes import pid_listening_at
from support.waiting import let_time_pass, wait_until

from licorne import LicorneError
from licorne.proxy.wire.door.door import Door
from licorne.proxy.wire.door.launchers.ray import RayLauncher
from licorne.proxy.wire.door.workers import LinkState

pytestmark = [pytest.mark.ray, pytest.mark.filterwarnings("default")]

BOTH: Final = ("default", "second")
SLOW_SECONDS: Final = 120
ASKS: Final = 3_000
"""How many containers are asked for in each partition."""


@pytest.fixture
def cluster() -> Iterator[RayCluster]:
    with ray_cluster() as running:
        yield running


@pytest.fixture
def launcher(cluster: RayCluster) -> RayLauncher:
    return RayLauncher(cluster.address, ["--insecure-public"])


@pytest.fixture
def door(launcher: RayLauncher) -> Iterator[Door]:
    """Return a door whose launcher has a spare worker on each of two nodes, as a rule."""
    with Door(launcher, start_timeout_seconds=SLOW_SECONDS) as door:
        yield door


def begin(door: Door, launcher: RayLauncher) -> Listener:
    """Register an RM with a node and an application in each partition."""
    listener = Listener()
    door.register("rm", listener, configuration=TWO)
    for name in BOTH:
        door.update_node(node_request(f"node-{name}", partition=name, memory=ASKS))
        door.update_application(application_request(f"app-{name}", partition=name))
    wait_until(lambda: len(launcher._workers._spares) == 2, seconds=SLOW_SECONDS)
    return listener


def ask(door: Door, count: int) -> None:
    """Ask for containers in both partitions, at some 500 a second."""
    for number in range(count):
        for name in BOTH:
            key = f"{name}-{number}"
            door.update_allocation(ask_request(key, application=f"app-{name}", partition=name))
        let_time_pass(0.004)


def addresses(door: Door) -> dict[str, str]:
    """Return where the worker of each partition is."""
    return {place.partition: place.address for place in door.places()}


def test_a_node_dies_under_load(door: Door, launcher: RayLauncher, cluster: RayCluster) -> None:
    """Its partition goes on at a spare worker on another node; nothing is lost, nothing is placed twice."""
    listener = begin(door, launcher)
    before = addresses(door)
    raylets = {name: cluster.raylet_pid_of(pid_listening_at(before[name])) for name in BOTH}
    victim = next(name for name in BOTH if not cluster.is_head(raylets[name]))
    asking = threading.Thread(target=ask, args=(door, ASKS))
    asking.start()
    wait_until(lambda: sum(text.startswith("placed") for text in listener.heard) > ASKS // 3, seconds=60)
    cluster.kill_node(raylets[victim])
    killed_at = time.monotonic()
    wait_until(
        lambda: any(p.partition == victim and p.worker_number > 1 for p in door.places()),
        seconds=SLOW_SECONDS,
    )
    took_seconds = time.monotonic() - killed_at
    asking.join()
    wanted = {f"placed {name}-{number}" for name in BOTH for number in range(ASKS)}
    wait_until(lambda: wanted <= set(listener.heard), seconds=SLOW_SECONDS)
    counts = Counter(text for text in listener.heard if text.startswith("placed"))

    assert set(counts.values()) == {1}
    assert took_seconds < 20  # Ray itself needs longer to see that the node is gone.


def test_the_head_dies(door: Door, launcher: RayLauncher, cluster: RayCluster) -> None:
    """Ray ends its driver after a minute; the sessions go on, and there is no new worker."""
    listener = begin(door, launcher)
    cluster.kill_head_service()
    wait_until(lambda: launcher._side is None and launcher._reason, seconds=150)
    ask(door, 100)
    wanted = {f"placed {name}-{number}" for name in BOTH for number in range(100)}
    wait_until(lambda: wanted <= set(listener.heard), seconds=SLOW_SECONDS)

    assert [place.state for place in door.places()] == [LinkState.RUNNING] * 2
    with pytest.raises(LicorneError, match="the program that connects to Ray ended with status"):
        launcher.start("third", threading.Event())
