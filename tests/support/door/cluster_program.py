"""The resource manager (RM) of a cluster with several partitions, as a process that may be killed.

    python -m support.door.cluster_program ADDRESS JOURNAL TASKS PARTITION ...

The journal is the cluster: what runs goes on, whatever happens to the RM, and is in the journal before the
RM does anything else with it. The program has each task placed once, ends some where many run, and recovers
whenever it is started or connected again. When all tasks have been placed it waits until the books of the
scheduler are equal to its own, and prints a line of JSON. Then it stays, until its standard input ends.
Exit status 3: a task was placed twice, or rejected.
"""

from __future__ import annotations

import json
import os
import random
import sys
import threading
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NoReturn, final

from support.door.cluster_layout import (
    KEPT,
    RM_ID,
    Books,
    application_of,
    applications,
    ask,
    configuration,
    nodes,
    release,
    run_by,
    tasks,
)
from support.waiting import WAIT_SECONDS, happens, wait_until

from licorne import LicorneError, Recovery, RemoteScheduler, ResourceManager, SchedulerAPI
from licorne.proxy.si import si_pb2 as si

_TICK_SECONDS: Final = 0.01
"""How often a task of each application may end: it sets the pace."""


def books_of(scheduler: Any) -> tuple[Books, Books]:
    """Return what runs by the nodes of a scheduler, and by its applications; it checks its sums."""
    scheduler.validate()
    snapshot: Any = scheduler.snapshot(rm_id=RM_ID)
    by_node = {
        allocation["allocationKey"]: node["nodeID"]
        for partition in snapshot["nodes"].values()
        for node in partition
        for allocation in node.get("allocations") or ()
    }
    by_application = {
        allocation["allocationKey"]: allocation["nodeId"]
        for partition in snapshot["applications"].values()
        for application in partition
        for allocation in application.get("allocations") or ()
    }
    return by_node, by_application


@final
class PartitionedCluster(ResourceManager):
    """What runs, and the RM that decides nothing: it does what the scheduler says.

    Args:
        journal: The file of what has begun and ended.
        partitions: The names of its partitions.
        count: How many tasks each has.
    """

    def __init__(self, journal: Path, partitions: Sequence[str], count: int) -> None:
        self._partitions = partitions
        self._tasks = tasks(partitions, count)
        self._random = random.Random(count)  # noqa: S311 - which task ends
        self._journal = os.open(journal, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        lines = journal.read_text(encoding="utf-8").split("\n")[:-1]
        self.running = run_by(lines)
        self._begun = {line[1:].partition(" ")[0] for line in lines if line.startswith("+")}
        self._lock = threading.RLock()
        self._of_application: defaultdict[str, list[str]] = defaultdict(list)
        for task in self.running:
            self._of_application[application_of(task)].append(task)
        self.recoveries = 0
        self.all_placed = threading.Event()
        self._scheduler: SchedulerAPI | None = None
        self._recovery: Recovery | None = None

    def recover(self, scheduler: SchedulerAPI) -> None:
        """Register, and send all that is known."""
        self._scheduler = scheduler
        self.reconnected()

    def reconnected(self) -> None:
        """Register again, and send all that is known."""
        assert self._scheduler is not None
        self.recoveries += 1
        text = configuration(self._partitions)
        with self._lock:
            allocations = [ask(task, node) for task, node in self.running.items()]
            asks = [ask(task) for task in self._tasks if task not in self._begun]
            self._recovery = recovery = Recovery(
                self._scheduler,
                si.RegisterResourceManagerRequest(rmID=RM_ID, policyGroup="queues", config=text),
                self,
                nodes=[node for name in self._partitions for node in nodes(name)],
                applications=[each for name in self._partitions for each in applications(name)],
                allocations=allocations,
                asks=asks,
            )
        recovery.start()
        self._look_whether_done()

    def update_allocation(self, response: si.AllocationResponse) -> None:
        """Start what is placed."""
        with self._lock:
            for allocation in response.new:
                self._begin(allocation.allocationKey, allocation.nodeID)
        for rejected in response.rejectedAllocations:
            _fail(f"{rejected.allocationKey} was rejected: {rejected.reason}")
        self._look_whether_done()

    def end_some(self) -> None:
        """End a task of each application that has many."""
        with self._lock:
            for running in self._of_application.values():
                if len(running) > KEPT:
                    self._end(running.pop(self._random.randrange(len(running))))

    def update_application(self, response: si.ApplicationResponse) -> None:
        """All applications are welcome."""
        for rejected in response.rejected:
            _fail(f"{rejected.applicationID} was rejected: {rejected.reason}")

    def _write(self, line: str) -> None:
        os.write(self._journal, f"{line}\n".encode())

    def _begin(self, task: str, node: str) -> None:
        if task in self._begun:
            _fail(f"{task} was placed on {node}, but runs on {self.running.get(task, 'no node any more')}")
        self._write(f"+{task} {node}")
        self.running[task] = node
        self._begun.add(task)
        self._of_application[application_of(task)].append(task)

    def _end(self, task: str) -> None:
        self._write(f"-{task}")
        del self.running[task]
        assert self._recovery is not None
        request = si.AllocationRequest(rmID=RM_ID, releases={"allocationsToRelease": [release(task)]})
        with suppress(LicorneError):  # If the connection is lost, it is not sent again when that is back.
            self._recovery.update_allocation(request)

    def _look_whether_done(self) -> None:
        if len(self._begun) == len(self._tasks):
            self.all_placed.set()


def _fail(text: str) -> NoReturn:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
    os._exit(3)


def _connected(address: str) -> RemoteScheduler:
    def connect() -> RemoteScheduler | None:
        with suppress(LicorneError):
            return RemoteScheduler(address, timeout=WAIT_SECONDS)
        return None

    scheduler = wait_until(connect, "the door answers")
    assert scheduler is not None
    return scheduler


def _has_equal_books(scheduler: RemoteScheduler, running: Books) -> bool:
    with suppress(LicorneError):  # It is away, or comes back.
        by_node, by_application = books_of(scheduler)
        return by_node == by_application == running
    return False


def main(address: str, journal: str, count: str, *partitions: str) -> None:
    """Run until all tasks have been placed, the books are equal, and the standard input has ended."""
    cluster = PartitionedCluster(Path(journal), partitions, int(count))
    scheduler = _connected(address)
    cluster.recover(scheduler)
    while not cluster.all_placed.wait(_TICK_SECONDS):
        cluster.end_some()
    equal = happens(lambda: _has_equal_books(scheduler, cluster.running))
    document = {"equal": equal, "running": len(cluster.running), "recoveries": cluster.recoveries}
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()
    sys.stdin.read()
    scheduler.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
