"""Servers and resource managers (RMs) that are killed under load: no allocation is lost, doubled or leaked.

See `support.door.cluster_program`: its journal is what really runs.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Final, final

import pytest
from support.door.cluster_layout import tasks
from support.door.cluster_program import books_of
from support.door.cluster_round import ClusterProcess, end
from support.proxy.cutting_proxy import CuttingProxy
from support.proxy.processes import ServerProcess, start_server

from licorne import RemoteScheduler

PARTITIONS: Final = ("default",)
COUNT: Final = 600


@final
class Round:
    """A server, a cluster with its RM, and what is killed."""

    def __init__(self, folder: Path, seed: int, stack: ExitStack) -> None:
        self._random = random.Random(seed)  # noqa: S311 - it makes no secrets
        self._stack = stack
        self.server = self._started()
        self._proxy = stack.enter_context(CuttingProxy(self.server.port))
        self._address = self.server.address
        self.cluster = ClusterProcess(folder, self._proxy.address, PARTITIONS, COUNT, stack)

    def _started(self, *arguments: str) -> ServerProcess:
        server = start_server(*arguments)
        self._stack.callback(end, server.process)
        return server

    def wait_for_load(self) -> None:
        """Wait until a random part of the tasks has been placed."""
        self.cluster.wait_for_load(self._random.randrange(20, COUNT // 2))

    def kill_server(self) -> None:
        self.server.process.kill()
        self.server.process.communicate()
        self.server = self._started("--address", self._address)

    def kill_manager(self) -> None:
        self.cluster.kill()
        self.cluster.restart()

    def kill_both(self) -> None:
        self.cluster.kill()
        self.kill_server()
        self.cluster.restart()

    def cut_connection(self) -> None:
        self._proxy.cut_after(self._random.randrange(1, 5_000))


KILLS: dict[str, Callable[[Round], None]] = {
    "server": Round.kill_server,
    "manager": Round.kill_manager,
    "both": Round.kill_both,
    "connection": Round.cut_connection,
}


def play(folder: Path, seed: int, kills: list[str]) -> None:
    """Run a cluster, and kill what is named, each at a random moment."""
    with ExitStack() as stack:
        played = Round(folder, seed, stack)
        for kill in kills:
            played.wait_for_load()
            KILLS[kill](played)
        played.cluster.check()
        played.cluster.say_goodbye()


@pytest.mark.parametrize(
    "kills", [["server"], ["manager", "connection"], ["both"]], ids=["server", "manager", "both"]
)
def test_nothing_is_lost_doubled_or_leaked(kills: list[str], tmp_path: Path) -> None:
    """The books of both sides are equal, and each task has run once."""
    play(tmp_path, len(kills[0]), kills)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(50))
def test_nothing_is_lost_in_many_rounds(seed: int, tmp_path: Path) -> None:
    """What is killed, how often and when is random."""
    chosen = random.Random(seed)  # noqa: S311 - it makes no secrets
    play(tmp_path, seed, chosen.choices([*KILLS], k=chosen.randrange(1, 4)))


def test_the_books_that_are_compared_come_from_the_scheduler(tmp_path: Path) -> None:
    """They have what runs, by nodes and by applications."""
    with ExitStack() as stack:
        played = Round(tmp_path, 1, stack)
        played.wait_for_load()
        with RemoteScheduler(played.server.address) as scheduler:
            by_node, _ = books_of(scheduler)
        assert by_node
        assert by_node.keys() <= set(tasks(PARTITIONS, COUNT))
