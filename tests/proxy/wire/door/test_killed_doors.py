"""A door is killed, alone and with workers: the resource manager (RM) recovers, no process is left."""

from __future__ import annotations

import os
import random
import signal
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, final

import pytest
from support.door.cluster_layout import run_by
from support.door.cluster_program import books_of
from support.door.cluster_round import SECONDS, ClusterProcess, end
from support.proxy.processes import ServerProcess, start_server
from support.waiting import wait_until

from licorne import LicorneError, RemoteScheduler

PARTITIONS = ("a", "b")


@final
class Doors:
    """A door in a process of its own, and those that follow it on its address."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.door = self._started("127.0.0.1:0")
        self.address = self.door.address

    def _started(self, address: str) -> ServerProcess:
        door = start_server("--address", address, "--rest-address", "127.0.0.1:0", name="door")
        self._stack.callback(end, door.process)
        return door

    def workers(self) -> list[int]:
        """Return the processes that the door has started, also the spare one."""
        pid = self.door.process.pid
        children: list[int] = []
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                children += map(int, (thread / "children").read_text(encoding="ascii").split())
        return children

    def kill(self, also: list[int]) -> None:
        """Kill the door and some of its workers; no worker outlives it."""
        workers = self.workers()
        for pid in [self.door.process.pid, *also]:
            os.kill(pid, signal.SIGKILL)
        self.door.process.communicate()
        wait_until(lambda: not [pid for pid in workers if is_alive(pid)], "no worker is left", SECONDS)
        self.door = self._started(self.address)

    def stop(self) -> None:
        """End the door in order; no worker outlives it."""
        workers = self.workers()
        self.door.process.terminate()
        self.door.process.communicate()
        wait_until(lambda: not [pid for pid in workers if is_alive(pid)], "no worker is left", SECONDS)


def is_alive(pid: int) -> bool:
    """Return whether a process runs."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def books(scheduler: RemoteScheduler) -> Any:
    """Return what runs by the nodes and by the applications, or why that is not known."""
    try:
        return books_of(scheduler)
    except LicorneError as error:
        return error


def play(folder: Path, seed: int, kills: int, count: int) -> None:
    """Run a cluster, and kill the door and a random number of its workers."""
    chosen = random.Random(seed)  # noqa: S311 - it makes no secrets
    with ExitStack() as stack:
        doors = Doors(stack)
        cluster = ClusterProcess(folder, doors.address, PARTITIONS, count, stack)
        for _ in range(kills):
            cluster.wait_for_load(chosen.randrange(20, count // 2))
            workers = doors.workers()
            doors.kill(also=chosen.sample(workers, min(seed % 3, len(workers))))
        cluster.check()
        expected = run_by(cluster.journal)
        with RemoteScheduler(doors.address) as scheduler:
            assert (expected, expected) == books_of(scheduler)
            for pid in doors.workers():
                os.kill(pid, signal.SIGKILL)
            wait_until(lambda: books(scheduler) == (expected, expected), "the books are equal again", SECONDS)
        cluster.say_goodbye()
        doors.stop()


def test_nothing_is_lost_with_a_door_and_a_worker(tmp_path: Path) -> None:
    """The RM registers again by its own recovery."""
    play(tmp_path, 1, 1, 600)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(20))
def test_nothing_is_lost_with_many_doors(seed: int, tmp_path: Path) -> None:
    """Up to two workers are killed at once with the door."""
    play(tmp_path, seed, 2, 3_000)
