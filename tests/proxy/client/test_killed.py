"""Servers and resource managers (RMs) that are killed under load: no allocation is lost, doubled or leaked.

See `support.proxy.cluster_program`: its journal is what really runs.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import final

import pytest
from support.proxy.cluster_program import TASKS, fingerprint, scheduler_books
from support.proxy.cutting_proxy import CuttingProxy
from support.proxy.processes import ServerProcess, start_server
from support.proxy.waiting import wait_until

from licorne import RemoteScheduler

TESTS = Path(__file__).parents[2]
SECONDS = 90


@final
class Round:
    """A server, a cluster with its RM, and what is killed."""

    def __init__(self, folder: Path, seed: int, stack: ExitStack) -> None:
        self.random = random.Random(seed)  # noqa: S311 - it makes no secrets
        self._seed = seed
        self.journal = folder / "journal"
        self.journal.touch()
        self._stack = stack
        self._errors = folder / "errors.txt"
        self.server = self._started()
        self.proxy = stack.enter_context(CuttingProxy(self.server.port))
        self._address = self.server.address
        self.manager = self._manager(self.proxy.address)

    def _started(self, *arguments: str) -> ServerProcess:
        server = start_server(*arguments)
        self._stack.callback(_end, server.process)
        return server

    def _manager(self, address: str) -> subprocess.Popen[str]:
        errors = self._stack.enter_context(self._errors.open("a", encoding="utf-8"))
        process = subprocess.Popen(  # noqa: S603 - our own program
            [
                sys.executable,
                "-m",
                "support.proxy.cluster_program",
                address,
                str(self.journal),
                str(self._seed),
            ],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=TESTS,
        )
        self._stack.callback(_end, process)
        return process

    def wait_for_load(self) -> None:
        """Wait until a random part of the tasks has been placed."""
        wanted = self.random.randrange(100, TASKS - 500) * len(f"+task-{TASKS} n10\n")
        started = self.journal.stat().st_size
        wait_until(
            lambda: self.journal.stat().st_size > min(started + wanted // 2, TASKS * 12) or self.has_ended(),
            "the tasks are placed",
            SECONDS,
        )

    def has_ended(self) -> bool:
        return self.manager.poll() is not None

    def kill_server(self) -> None:
        _kill(self.server.process)
        self.server = self._started("--address", self._address)

    def kill_manager(self) -> None:
        _kill(self.manager)
        self.manager = self._manager(self.proxy.address)

    def kill_both(self) -> None:
        _kill(self.server.process)
        _kill(self.manager)
        self.server = self._started("--address", self._address)
        self.manager = self._manager(self.proxy.address)

    def cut_connection(self) -> None:
        self.proxy.cut_after(self.random.randrange(1, 5_000))

    def check(self) -> None:
        """Wait for the end; the books of both sides must be equal, and each task has run once."""
        output, _ = self.manager.communicate(timeout=SECONDS)
        errors = self._errors.read_text(encoding="utf-8")
        assert self.manager.returncode == 0, errors
        document = json.loads(output)
        sys.stdout.write(f"{document}\n")
        assert document["rm"] == document["nodes"] == document["applications"], errors
        lines = self.journal.read_text(encoding="utf-8").splitlines()
        begun = [line[1:].split()[0] for line in lines if line.startswith("+")]
        assert len(begun) == len(set(begun)) == TASKS


def _kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def _end(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        _kill(process)
    elif process.stdout is not None:
        process.stdout.close()


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
        played.check()


@pytest.mark.parametrize(
    "kills", [["server"], ["manager", "connection"], ["both"]], ids=["server", "manager", "both"]
)
def test_nothing_is_lost_doubled_or_leaked(kills: list[str], tmp_path: Path) -> None:
    """The fingerprints of the books are printed."""
    play(tmp_path, len(kills[0]), kills)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(50))
def test_nothing_is_lost_in_many_rounds(seed: int, tmp_path: Path) -> None:
    """What is killed, how often and when is random."""
    chosen = random.Random(seed)  # noqa: S311 - it makes no secrets
    play(tmp_path, seed, chosen.choices([*KILLS], k=chosen.randrange(1, 4)))


def test_the_books_that_are_compared_come_from_the_scheduler(tmp_path: Path) -> None:
    """A task that only one side knows changes the fingerprint."""
    with ExitStack() as stack:
        played = Round(tmp_path, 1, stack)
        played.wait_for_load()
        with RemoteScheduler(played.server.address) as scheduler:
            by_node, _ = scheduler_books(scheduler)
        assert by_node
        assert fingerprint(by_node) != fingerprint({**by_node, "task-x": "n1"})
