"""One round of a test: a door with workers, a cluster with its resource manager (RM), and what is killed."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final, final

from support.door.cluster_layout import RM_ID, beyond_maximum, configuration, run_by, tasks
from support.door.cluster_program import books_of
from support.door.watched_workers import WatchedWorkers
from support.waiting import let_time_pass, wait_until

from licorne import LicorneError, ReplacedError, ResourceManager
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.wire.door.door import Door
from licorne.proxy.wire.door.workers import LinkState, PartitionPlace
from licorne.proxy.wire.server.server import ServerThread

TESTS: Final = Path(__file__).parents[2]
SECONDS: Final = 150.0


@final
class ClusterProcess:
    """The cluster and its RM in a process of its own; see `support.door.cluster_program`.

    Args:
        folder: Gets its journal and what it reports.
        address: That of the door.
        partitions: The names of its partitions.
        count: How many tasks each has.
        stack: Ends it.
    """

    def __init__(
        self, folder: Path, address: str, partitions: tuple[str, ...], count: int, stack: ExitStack
    ) -> None:
        self._journal = folder / "journal"
        self._journal.touch()
        self._errors = folder / "errors.txt"
        self._arguments = [address, str(self._journal), str(count), *partitions]
        self._tasks = tasks(partitions, count)
        self._stack = stack
        self._process = self._started()

    def _started(self) -> subprocess.Popen[str]:
        errors = self._stack.enter_context(self._errors.open("a", encoding="utf-8"))
        command = [sys.executable, "-m", "support.door.cluster_program", *self._arguments]
        process = subprocess.Popen(  # noqa: S603 - our own program
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=TESTS
        )
        self._stack.callback(end, process)
        return process

    @property
    def journal(self) -> list[str]:
        """The lines of its journal."""
        return self._journal.read_text(encoding="utf-8").split("\n")[:-1]

    def begun(self, partition: str = "") -> int:
        """Return how many tasks have begun, in one partition or in all."""
        return sum(line.startswith(f"+{partition}") for line in self.journal)

    def wait_for_load(self, count: int, partition: str = "") -> None:
        """Wait until so many more tasks have begun, or all."""
        wanted = min(self.begun(partition) + count, len(self._tasks))
        wait_until(
            lambda: self.begun(partition) >= wanted or self._process.poll() is not None,
            f"{count} more tasks are placed; {self._errors.read_text(encoding='utf-8')}",
            SECONDS,
        )

    def kill(self) -> None:
        """Kill the RM; what runs goes on."""
        self._process.kill()
        self._process.communicate()

    def restart(self) -> None:
        """Start the RM again: it recovers."""
        self._process = self._started()

    def check(self) -> None:
        """Wait until each task has run once; the books must be equal, and no maximum was exceeded."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        errors = self._errors.read_text(encoding="utf-8")
        assert line, errors
        sys.stdout.write(line)
        assert json.loads(line)["equal"], errors
        begun = [line[1:].partition(" ")[0] for line in self.journal if line.startswith("+")]
        assert sorted(self._tasks) == sorted(begun)
        assert [] == [*beyond_maximum(self.journal)]

    def say_goodbye(self) -> None:
        """Have the RM end in order."""
        self._process.communicate()
        assert self._process.returncode == 0


@final
class Round:
    """A door in this process, its workers in others, and a cluster.

    Args:
        folder: Gets the journal.
        seed: Chooses moments.
        stack: Ends all.
        partitions: Those of the cluster.
        count: How many tasks each has.
        behind_proxies: See `WatchedWorkers`.
    """

    def __init__(
        self,
        folder: Path,
        seed: int,
        stack: ExitStack,
        *,
        partitions: tuple[str, ...] = ("a", "b"),
        count: int = 600,
        behind_proxies: bool = False,
    ) -> None:
        self.random = random.Random(seed)  # noqa: S311 - it makes no secrets
        self.partitions = partitions
        self.failures: list[str] = []
        self.workers = WatchedWorkers(behind_proxies=behind_proxies)
        self._double = stack.enter_context(Door(self.workers.of_another_door()))
        """It has started before the door: the workers refuse it."""
        self.door = Door(
            self.workers,
            on_error=lambda failure: self.failures.append(f"{failure.callback}: {failure.error}"),
        )
        server = stack.enter_context(ServerThread(self.door))
        self.cluster = ClusterProcess(folder, server.address, partitions, count, stack)

    def place(self, partition: str) -> PartitionPlace | None:
        """Return where a partition is, `None` while the RM is not registered."""
        return next((place for place in self.door.places() if place.partition == partition), None)

    def running(self, partition: str, after: int = 0) -> PartitionPlace:
        """Wait until a partition runs, on a worker after that of a number; return where."""

        def runs() -> bool:
            place = self.place(partition)
            return place is not None and place.state is LinkState.RUNNING and place.worker_number > after

        wait_until(runs, f"{partition} runs: {self.door.places()} {self.failures}", SECONDS)
        place = self.place(partition)
        assert place is not None
        return place

    def kill_worker(self, partition: str) -> int:
        """Kill the worker of a partition; return its number."""
        place = self.running(partition)
        self.workers.signal(place, signal.SIGKILL)
        return place.worker_number

    def kill_recovering(self, partition: str, after: int) -> int:
        """Kill a worker at a random moment while it gets what the partition holds; return its number."""

        def recovers() -> bool:
            place = self.place(partition)
            return place is not None and place.worker_number > after and bool(place.address)

        wait_until(recovers, f"{partition} recovers", SECONDS)
        let_time_pass(self.random.random() * self.random.choice([0.002, 0.05, 0.2]))
        place = self.place(partition)
        assert place is not None
        self.workers.signal(place, signal.SIGKILL)
        return place.worker_number

    def register_by_double(self) -> None:
        """Have an older door register the RM with the workers of this one; some worker refuses it."""
        with suppress(ReplacedError):
            self._double.register(RM_ID, ResourceManager(), configuration=configuration(self.partitions))
            raise AssertionError("no worker refused the older door")

    def kill_registering(self, before: PartitionPlace) -> None:
        """Kill the worker of a partition at a random moment while the RM registers again."""
        partition = before.partition
        wait_until(lambda: self.place(partition) not in (before, None), "the RM registers again", SECONDS)
        let_time_pass(self.random.random() * self.random.choice([0.002, 0.05, 0.2]))
        self.workers.signal(before, signal.SIGKILL)

    def kill_reloading(self, partition: str) -> None:
        """Kill a worker that has prepared a configuration before that is committed; all must have it then."""
        self.running(partition)
        change = self.door.prepare_configuration(self._reload("between"))
        number = self.kill_worker(partition)
        let_time_pass(self.random.random() * 0.1)  # The door may know it by then.
        change.commit()
        self._wait_for_queue("between", partition, number)

    def kill_while_reloading(self, partition: str) -> None:
        """Kill a worker at a random moment of a change; all must have it then."""
        place = self.running(partition)
        killing = threading.Timer(self.random.random() * 0.05, self.workers.signal, [place, signal.SIGKILL])
        killing.start()
        self.door.update_configuration(self._reload("while"))
        self._wait_for_queue("while", partition, place.worker_number)

    def _reload(self, queue: str) -> si.UpdateConfigurationRequest:
        text = configuration(self.partitions, extra_queue=queue)
        return si.UpdateConfigurationRequest(rmID=RM_ID, config=text)

    def _wait_for_queue(self, name: str, partition: str, after: int) -> None:
        self.running(partition, after)
        expected = [["root.a", "root.b", f"root.{name}"]] * len(self.partitions)
        wait_until(lambda: self._queues() == expected, f"all have the queue: {self._queues()}", SECONDS)

    def _queues(self) -> Any:
        """Return the names of the queues in use in each partition, or why they are not known."""
        try:
            snapshot: Any = self.door.snapshot(rm_id=RM_ID)
        except LicorneError as error:
            return error
        return [
            sorted(each["queuename"] for each in root["children"] if each["status"] == "Active")
            for root in snapshot["queues"].values()
        ]

    def check(self) -> None:
        """Wait for the end; the books of RM, workers and door must be equal.

        What the door holds is seen when all workers are lost: the next ones know what it has given them.
        """
        self.cluster.check()
        expected = run_by(self.cluster.journal)
        wait_until(lambda: self._books() == (expected, expected), "the books are equal", SECONDS)
        killed = [(name, self.kill_worker(name)) for name in self.partitions]
        for name, number in killed:
            self.running(name, number)
        wait_until(lambda: self._books() == (expected, expected), "the books are equal again", SECONDS)
        assert [0] * len(self.partitions) == [place.waiting for place in self.door.places()]
        unexpected = [text for text in self.failures if not text.startswith("partition ")]
        assert [] == unexpected, unexpected
        self.cluster.say_goodbye()

    def _books(self) -> Any:
        try:
            return books_of(self.door)
        except LicorneError as error:  # A partition is away.
            return error


def end(process: subprocess.Popen[str]) -> None:
    """Kill a process, unless it has ended."""
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()
