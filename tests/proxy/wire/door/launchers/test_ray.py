"""Workers that Ray starts, on a real cluster of three nodes (`make test-ray`)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Final

import pytest
from support.proxy.listening import Listener
from support.proxy.manager_requests import TWO
from support.proxy.ray_cluster import RayCluster, children_of, ray_cluster
from support.proxy.worker_processes import is_alive, pid_listening_at, public_workers
from support.waiting import wait_until

from licorne import LicorneError, RemoteScheduler
from licorne.proxy.wire.door.launchers.ray import RayLauncher
from licorne.proxy.wire.door.workers import LaunchedWorker, LaunchError

pytestmark = [pytest.mark.ray, pytest.mark.filterwarnings("default")]

NEVER: Final = threading.Event()
SLOW_SECONDS: Final = 90
"""Ray needs half a minute to note that a node is gone."""
PARENT: Final = """
import sys, threading, time
from licorne.proxy.wire.door.launchers.ray import RayLauncher

launcher = RayLauncher(sys.argv[1], ["--insecure-public"])
worker = launcher.start("second", threading.Event())
print(worker.address, worker.token, flush=True)
time.sleep(100)
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    with ray_cluster() as running:
        yield running


@pytest.fixture
def launcher(cluster: RayCluster) -> Iterator[RayLauncher]:
    launcher = RayLauncher(cluster.address, ["--insecure-public"])
    yield launcher
    launcher.stop()


def registered(worker: LaunchedWorker) -> RemoteScheduler:
    """Return a client of a worker, with an RM that has registered for the partition."""
    client = RemoteScheduler(worker.address, token=worker.token)
    client.register("rm", Listener(), configuration=TWO, partitions=[worker.partition])
    return client


def test_a_lost_worker_is_replaced_by_a_spare_and_ray_starts_the_next(launcher: RayLauncher) -> None:
    """The spare is there at once, and on another node; the lost process ends."""
    first = launcher.start("second", NEVER)
    with registered(first):
        lost = pid_listening_at(first.address)
    wait_until(lambda: len(launcher._workers._spares) == 2, seconds=SLOW_SECONDS)
    node = launcher._workers._used[first].node
    began_at = time.monotonic()
    launcher.lost(first)
    second = launcher.start("second", NEVER)
    took_seconds = time.monotonic() - began_at

    assert took_seconds < 1
    assert launcher._workers._used[second].node != node
    wait_until(lambda: lost not in public_workers(), seconds=SLOW_SECONDS)
    wait_until(lambda: len(launcher._workers._spares) == 2, seconds=SLOW_SECONDS)
    with registered(second) as client:
        assert client.is_connected


def test_workers_go_on_without_the_program_beside_the_door(launcher: RayLauncher) -> None:
    """It is started again, and finds the workers that were there."""
    first = launcher.start("second", NEVER)
    with registered(first) as client:
        wait_until(lambda: len(launcher._workers._spares) == 2, seconds=SLOW_SECONDS)
        before = set(launcher._workers._spares)
        assert launcher._side is not None
        launcher._side.kill()
        wait_until(lambda: launcher._side is None)
        with pytest.raises(LicorneError) as caught:
            launcher.start("default", NEVER)
        wait_until(lambda: set(launcher._workers._spares) == before, seconds=SLOW_SECONDS)
        other = launcher.start("default", NEVER)

        assert str(caught.value) == (
            "Ray has no worker for partition 'default': the program that connects to Ray ended by signal 9"
        )
        assert (client.is_connected, other.number) == (True, 1)


def test_all_workers_end_when_the_launcher_stops(cluster: RayCluster) -> None:
    """The spare ones, too."""
    launcher = RayLauncher(cluster.address, ["--insecure-public"])
    launcher.start("second", NEVER)
    wait_until(lambda: len(launcher._workers._spares) == 2, seconds=SLOW_SECONDS)
    before = public_workers()
    launcher.stop()

    assert len(before) == 3
    wait_until(lambda: not public_workers(), seconds=SLOW_SECONDS)


def test_all_workers_end_when_the_door_is_killed(cluster: RayCluster) -> None:
    """The program beside it sees that, and ends them."""
    command = [sys.executable, "-c", PARENT, cluster.address]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:  # noqa: S603 - ours
        assert parent.stdout is not None
        address, token = parent.stdout.readline().split()
        with registered(LaunchedWorker("second", address, 1, token)):
            beside = children_of(parent.pid)
            parent.kill()

    wait_until(lambda: not public_workers(), seconds=SLOW_SECONDS)
    wait_until(lambda: not any(map(is_alive, beside)), seconds=SLOW_SECONDS)


def test_refused_options_are_said(cluster: RayCluster) -> None:
    """Without TLS a worker does not listen on the address of its node unless it is told to."""
    launcher = RayLauncher(cluster.address)
    with pytest.raises(LaunchError) as caught:
        launcher.start("second", NEVER)
    launcher.stop()

    assert "can be reached from other machines: give --tls-cert and --tls-key" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_there_is_no_cluster() -> None:
    """The reason is one line, and it is tried again."""
    lines: list[str] = []
    launcher = RayLauncher("127.0.0.1:1", write=lines.append)
    wait_until(lambda: len(lines) > 1, seconds=SLOW_SECONDS)
    with pytest.raises(LicorneError) as caught:
        launcher.start("second", NEVER)
    launcher.stop()

    assert str(caught.value) == (
        "Ray has no worker for partition 'second': Ray at '127.0.0.1:1' cannot be used: "
        "ConnectionRefusedError: [Errno 111] Connection refused"
    )


def test_sessions_outlive_the_raylet_of_their_node(cluster: RayCluster, launcher: RayLauncher) -> None:
    """Ray starts the actor elsewhere, which becomes a spare; the door ends the session when it likes."""
    tries = [launcher.start(name, NEVER) for name in ("second", "default")]
    raylets = {worker: cluster.raylet_pid_of(pid_listening_at(worker.address)) for worker in tries}
    first = next(worker for worker in tries if not cluster.is_head(raylets[worker]))
    wait_until(lambda: len(launcher._workers._spares) == 2, seconds=SLOW_SECONDS)
    with registered(first) as client:
        process = pid_listening_at(first.address)
        os.kill(raylets[first], signal.SIGKILL)
        wait_until(lambda: len(launcher._workers._spares) >= 3, seconds=SLOW_SECONDS)

        assert client.is_connected
    wait_until(lambda: process not in public_workers(), seconds=SLOW_SECONDS)
